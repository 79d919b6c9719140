//! The key `capture` of a campaign.

use plan::{Capture, CapturePoint, Keep};
use units::Bytes;
use yaml::{Map, Node, Reported, Spanned};

/// Bytes of each frame that are kept by default: the headers, also of a tunnel, and some payload.
const SNAP_DEFAULT: Bytes = Bytes::new(256);
/// Ethernet, IPv6 and a transport header.
const SNAP_MIN: Bytes = Bytes::new(78);
/// All captures of a trial are in memory until its end.
const SIZE: std::ops::RangeInclusive<Bytes> = Bytes::new(64 << 10)..=Bytes::new(256 << 20);
const SIZE_DEFAULT: Bytes = Bytes::new(4 << 20);
const ONE_IN_DEFAULT: u32 = 100;

/// Reads a point, a list of points, or a map.
pub(crate) fn read(node: Node<'_>) -> Result<Option<Spanned<Capture>>, Reported> {
    if node.is_map() {
        let capture = node.map(read_map)?;
        return Ok(Some(node.spanned(capture)));
    }
    let capture = Capture {
        at: points(node)?,
        keep: Keep::First,
        bytes_max: SIZE_DEFAULT.get(),
        snap_bytes: SNAP_DEFAULT.get() as u32,
        secrets: false,
        evidence: false,
    };
    Ok(Some(node.spanned(capture)))
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

fn read_map(map: &Map<'_>) -> Result<Capture, Reported> {
    let at = map.required("at").and_then(points);
    let sampled = map.with_default("keep", None, |node| {
        let kinds = [
            ("first", None),
            ("ring", Some(false)),
            ("sampled", Some(true)),
        ];
        node.one_of("keep", &kinds)
    });
    let one_in = map.with_default("one_in", None, |node| {
        let one_in = node.integer(2..=1_000_000)?;
        Ok(Some(node.spanned(one_in)))
    });
    let size = map.with_default("size", SIZE_DEFAULT, |node| node.size(SIZE));
    let whole = Bytes::new(Capture::SNAP_BYTES_MAX.into());
    let snap = map.with_default("snap", None, |node| {
        let bytes = node.word_or("whole", |node| node.size(SNAP_MIN..=whole))?;
        Ok(Some(bytes.unwrap_or(whole)))
    });
    let secrets = map.with_default("secrets", false, Node::bool);
    let evidence = map.with_default("evidence", false, Node::bool);
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
    let snap_default = if secrets { whole } else { SNAP_DEFAULT };
    Ok(Capture {
        at: at?,
        keep,
        bytes_max: size?.get(),
        snap_bytes: snap?.unwrap_or(snap_default).get() as u32,
        secrets,
        evidence: evidence?,
    })
}
