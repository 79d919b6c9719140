//! The key `capture` of a campaign.

use plan::{Capture, CapturePoint, Keep};
use units::Bytes;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Map, Node, Reported, Spanned, Value};

/// A point, a list of points, or a map.
pub(crate) const VALUE: Value = Value::Any(&[POINTS, Value::Map(KEYS)]);
const POINTS: Value = Value::OneOrMany(&Value::Name(Value::variants::<CapturePoint>));
const WHOLE: Bytes = Bytes::new(Capture::SNAP_BYTES_MAX as u64);
/// Bytes of each frame that are kept by default: the headers, also of a tunnel, and some payload.
const SNAP_DEFAULT: Bytes = Bytes::new(256);
const ONE_IN_DEFAULT: u32 = 100;
const KEEP: [(&str, Option<bool>); 3] = [
    ("first", None),
    ("ring", Some(false)),
    ("sampled", Some(true)),
];

#[rustfmt::skip]
const KEYS: &[Key] = &[
    Key::new("at", POINTS, Required,
        "The link between the gateways; the links of the stations, a file for each")
        .words("place or list"),
    Key::new("keep", Value::Name(|| Value::names(&KEEP)), Default("first"),
        "The first frames that fit; the last ones; or one in `one_in` at random over the whole \
         trial, thinned evenly if they do not fit"),
    Key::new("one_in", Value::Integer(2, 1_000_000), Depends("100"), "One frame in this many")
        .range("2 to 1000000, with `keep: sampled`"),
    // All captures of a trial are in memory until its end.
    Key::new("size", Value::Size(64 << 10, 256 << 20), Default("4 MiB"),
        "Most frames kept, as bytes in a file; it is memory until the trial ends"),
    // At least Ethernet, IPv6 and a transport header.
    Key::new("snap", Value::Or("whole", &Value::Size(78, Capture::SNAP_BYTES_MAX as u64)),
        Depends("256 B, with `secrets` `whole`"), "Most bytes kept of a frame"),
    Key::new("secrets", Value::Switch, Default("off"),
        "Write the keys of our tunnels next to the capture, see below"),
    Key::new("evidence", Value::Switch, Default("off"),
        "A trial whose capture is missing or lacks frames is invalid (`captured`). Otherwise that \
         is a warning, and changes no figure"),
];

/// Reads a point, a list of points, or a map.
pub(crate) fn read(node: Node<'_>) -> Result<Option<Spanned<Capture>>, Reported> {
    let capture = if node.is_map() {
        node.keys(KEYS, |map| read_map(map, map.read("at", points)))
    } else {
        let at = points(node)?;
        // The other keys have their defaults.
        Ok(yaml::defaults(KEYS, |map| read_map(map, Ok(at))))
    };
    Ok(Some(node.spanned(capture?)))
}

fn points(node: Node<'_>) -> Result<Vec<CapturePoint>, Reported> {
    let mut read = Vec::new();
    node.one_or_many(|item| {
        let point = item.choice::<CapturePoint>("place to capture at")?;
        if read.contains(&point) {
            let what = format!("`{}` is given twice", point.name());
            return Err(item.mistake(what, "one capture a place: remove one"));
        }
        read.push(point);
        Ok(point)
    })
}

fn read_map(map: &Map<'_>, at: Result<Vec<CapturePoint>, Reported>) -> Result<Capture, Reported> {
    let sampled = map.read("keep", |node| node.one_of("keep", &KEEP));
    let one_in = map.find::<Spanned<u32>>("one_in");
    let (size, snap) = (map.get("size"), map.find::<Option<Bytes>>("snap"));
    let (secrets, evidence) = (map.get("secrets"), map.get("evidence"));
    let secrets = secrets?;
    // Refused, not ignored, with another `keep`: all frames would be expected to be sampled.
    let keep = match (sampled?, one_in?) {
        (Some(true), one_in) => Keep::Sampled {
            one_in: one_in.map_or(ONE_IN_DEFAULT, |one_in| one_in.value),
        },
        (_, Some(one_in)) => {
            let what = "only `keep: sampled` takes one frame in some";
            return Err(map
                .node()
                .mistake_at(&one_in.place, what, "remove `one_in`, or sample"));
        }
        (Some(false), None) => Keep::Ring,
        (None, None) => Keep::First,
    };
    // A cut packet cannot be decrypted.
    let snap_default = if secrets { WHOLE } else { SNAP_DEFAULT };
    let snap = match snap? {
        Some(given) => given.unwrap_or(WHOLE),
        None => snap_default,
    };
    Ok(Capture {
        at: at?,
        keep,
        bytes_max: size?,
        snap_bytes: snap.get() as u32,
        secrets,
        evidence: evidence?,
    })
}
