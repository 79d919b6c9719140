//! Impairment profiles: the map `impairments` of a campaign, and the axis `impair` of its trials.

use crate::keys::{SHARE, seconds};
use impair::{Distribution, Jitter, Loss, Queue, Rate, Reorder};
use plan::{ImpairProfile, Impairment};
use std::time::Duration;
use units::Layer;
use yaml::Absent::{Default, Depends, Required};
use yaml::{FromNode, Key, Map, Node, Reported, Spanned, Value};

const NAME_CHARS_MAX: usize = 32;
const PROFILES_MAX: usize = 100;
/// Default queue in front of a rate.
const QUEUE_DEFAULT: Queue = Queue::TimeNs(100_000_000);

/// The profiles of a campaign by name.
pub(crate) const VALUE: Value = Value::Entries(&Value::Map(PROFILE));

#[rustfmt::skip]
const PROFILE: &[Key] = &[
    // Of both directions. Next to `a-to-b` a key here would be given twice.
    Key::group("(direction)", DIRECTION),
    Key::new("a-to-b", Value::Map(DIRECTION), Depends("none"), "The keys above, for frames from A to B")
        .excludes(BOTH).apart(),
    Key::new("b-to-a", Value::Map(DIRECTION), Depends("none"), "The same from B to A")
        .excludes(BOTH).apart(),
    Key::new("seed", Value::Integer(0, u32::MAX as u64), Default("1"),
        "Seed of all random decisions; a key of the profile, not of a direction"),
];
/// The keys of [`DIRECTION`]: at the profile they are of both directions.
const BOTH: &[&str] = &[
    "delay",
    "jitter",
    "loss",
    "reorder",
    "duplicate",
    "corrupt",
    "rate",
    "queue",
];

#[rustfmt::skip]
const DIRECTION: &[Key] = &[
    Key::new("delay", TIME, Default("0 s"), "Constant delay").range("up to 10 s"),
    Key::new("jitter", Value::Any(&[TIME, Value::Map(JITTER)]), Depends("none"),
        "Variation of the delay. `normal` (the default) has the time as standard deviation around \
         the delay, `uniform` as the largest distance from it; `exponential` and `pareto` (Lomax \
         of shape 3) add to it and have the time as mean. Frames keep their order: a frame that \
         would overtake waits, and follows the previous one at the `rate`, as with netem; so \
         dense traffic is delayed by more than the mean")
        .words("time, or map of `time` and `distribution`")
        .range("up to 10 s; `normal`, `uniform`, `exponential`, `pareto`"),
    Key::new("loss", Value::Any(&[SHARE, Value::Map(BURSTS)]), Depends("none"),
        "Frames lost at random; or in bursts, by the model of Gilbert and Elliott: `p` and `r` \
         are the probabilities, before each frame, of a change to the bad state and back, `bad` \
         (100 %) and `good` (0 %) the loss in them. The mean length of a burst is 1 / `r` frames")
        .words("ratio, or map of `p`, `r`, `bad`, `good`")
        .range("0 % to 100 %, in parts per million"),
    Key::new("reorder", Value::Map(REORDER), Depends("none"),
        "Frames that are held back by a time, so that later ones overtake them")
        .words("map of `share` and `by`").range("up to 10 s").apart(),
    Key::new("duplicate", SHARE, Default("0 %"), "Frames that arrive twice"),
    Key::new("corrupt", SHARE, Default("0 %"),
        "Frames with a flipped bit after the first 62 bytes: the next device would drop a frame \
         with damaged headers, which is loss. An altered echo reply, which `ping` does not \
         detect, counts as lost"),
    // Below 10 kbit/s a handshake of a few packets takes longer than a trial.
    Key::new("rate", Value::BitRate(Layer::L1, 10_000, 1_000_000_000_000), Depends("none"),
        "The narrowest link, preamble and gap counted as for \
         [`link_rate`](lab.md#a-link-with-a-rate)").range("10 kbit/s to 1 Tbit/s, L1"),
    Key::new("queue", Value::Map(QUEUE), Depends("100 ms"),
        "Capacity of the queue before the rate; further frames are lost. `bytes` are at L1")
        .words("map of one of `time`, `bytes`, `packets`")
        .range("up to 10 s; 10 kB to 1 GiB; 1 to 1000000").apart(),
];

#[rustfmt::skip]
const JITTER: &[Key] = &[
    Key::new("time", TIME, Required, "The time that the distribution has"),
    Key::new("distribution", Value::Name(Value::variants::<Distribution>), Default("normal"),
        "Distribution of the delays"),
];

#[rustfmt::skip]
const BURSTS: &[Key] = &[
    Key::new("p", SHARE, Required, "Probability of a change to the bad state"),
    Key::new("r", SHARE, Required, "Probability of a change back"),
    Key::new("bad", SHARE, Default("100 %"), "Loss in the bad state"),
    Key::new("good", SHARE, Default("0 %"), "Loss in the good state"),
];

#[rustfmt::skip]
const REORDER: &[Key] = &[
    Key::new("share", SHARE, Required, "Share of the frames that are held back"),
    Key::new("by", TIME, Required, "Time for which they are held back"),
];

/// A queue holds the longest frame at least.
#[rustfmt::skip]
const QUEUE: &[Key] = &[
    Key::new("bytes", Value::Size(10_000, 1 << 30), Depends("one of the three"), "Bytes at L1")
        .excludes(&["packets", "time"]),
    Key::new("packets", Value::Integer(1, 1_000_000), Depends("one of the three"), "Frames")
        .excludes(&["time"]),
    Key::new("time", TIME, Depends("one of the three"), "Time at the rate"),
];

/// No frame of a trial waits longer.
const TIME: Value = Value::Time(Duration::ZERO, seconds(10));

/// The profiles of a campaign that defines none.
pub(crate) fn built_in() -> Vec<ImpairProfile> {
    vec![ImpairProfile::none()]
}

/// Reads the map of profiles; `none` is there already.
pub(crate) fn read_all(node: Node<'_>) -> Result<Vec<ImpairProfile>, Reported> {
    let read = node.entries(|name, body| {
        // Each campaign has this profile, and reports do not mention it.
        if name.value == ImpairProfile::NONE {
            let what = "`none` is the profile that does nothing";
            return Err(body.mistake_at(&name.place, what, "give this one another name"));
        }
        if !is_name(name.value) {
            let what = format!("`{}` is not a name for a profile", name.value);
            let help = format!("write 1 to {NAME_CHARS_MAX} of `a-z`, `0-9`, `-`");
            return Err(body.mistake_at(&name.place, what, help));
        }
        body.keys(PROFILE, |map| read(map, name.value))
    })?;
    if read.len() > PROFILES_MAX {
        let what = format!("the campaign has more than {PROFILES_MAX} impairments");
        return Err(node.mistake(what, "remove those that no trial uses"));
    }
    Ok(built_in().into_iter().chain(read).collect())
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_part)
}

/// Returns the profiles of those names.
pub(crate) fn select<'p>(
    node: Node<'_>,
    names: &[Spanned<String>],
    profiles: &'p [ImpairProfile],
) -> Result<Vec<Spanned<&'p ImpairProfile>>, Reported> {
    let mut result = Ok(());
    let mut found: Vec<Spanned<&ImpairProfile>> = Vec::new();
    for Spanned { value: name, place } in names {
        match profiles.iter().find(|profile| profile.name == *name) {
            None => {
                let known: Vec<_> = profiles.iter().map(|it| it.name.as_str()).collect();
                let what = format!("no impairment of this campaign is named `{name}`");
                let help = format!("its `impairments` are {}", known.join(", "));
                // The loop continues, so that all wrong names are reported.
                result = Err(node.mistake_at(place, what, help));
            }
            Some(profile) if found.iter().any(|it| it.value == profile) => {
                let help = "it would make the same cells twice: remove one";
                result = Err(node.mistake_at(place, "this impairment is given twice", help));
            }
            Some(profile) => found.push(Spanned {
                value: profile,
                place: place.clone(),
            }),
        }
    }
    result.map(|()| found)
}

/// Reads a profile: one impairment for both directions, or one for each.
fn read(map: &Map<'_>, name: &str) -> Result<ImpairProfile, Reported> {
    let seed = map.get::<u32>("seed");
    let apart = [map.optional("a-to-b"), map.optional("b-to-a")];
    let [a_to_b, b_to_a] = match apart {
        // Only in this form are keys of an impairment requested at this level: next to `a-to-b`
        // they are reported as unknown, not ignored.
        [None, None] => {
            let both = read_direction(map);
            [both.clone(), both]
        }
        apart => apart.map(|direction| match direction {
            Some(node) => node.keys(DIRECTION, read_direction),
            None => Ok(Impairment::default()),
        }),
    };
    let profile = ImpairProfile {
        name: name.to_owned(),
        seed: seed?.into(),
        a_to_b: a_to_b?,
        b_to_a: b_to_a?,
    };
    let nothing = Impairment::default();
    if profile.a_to_b == nothing && profile.b_to_a == nothing {
        let what = format!("`{name}` impairs nothing");
        let help = "for example `{ loss: 1 % }`; the profile without impairments is `none`";
        Err(map.node().mistake(what, help))
    } else {
        Ok(profile)
    }
}

fn read_direction(map: &Map<'_>) -> Result<Impairment, Reported> {
    let delay = map.get("delay");
    let jitter = map.optional("jitter").map(jitter).transpose();
    let loss = map.optional("loss").map(loss).transpose();
    let reorder = map.optional("reorder");
    let reorder = reorder.map(|node| node.keys(REORDER, self::reorder));
    let (duplicate, corrupt) = (map.get("duplicate"), map.get("corrupt"));
    let rate = map.find("rate");
    let queue = map.optional("queue");
    // Read also without a rate, for the mistakes in it.
    let read_queue = queue.map_or(Ok(QUEUE_DEFAULT), |node| node.keys(QUEUE, self::queue));
    let (rate, read_queue) = (rate?, read_queue?);
    if let (None, Some(node)) = (rate, queue) {
        let what = "without a rate nothing waits in a queue";
        return Err(node.mistake(what, "write `rate: 10 Mbit/s`, or remove `queue`"));
    }
    Ok(Impairment {
        delay_ns: delay?,
        jitter: jitter?,
        loss: loss?,
        reorder: reorder.transpose()?,
        duplicate_ppm: duplicate?,
        corrupt_ppm: corrupt?,
        rate: rate.map(|bps| Rate {
            bps,
            queue: read_queue,
        }),
    })
}

fn jitter(node: Node<'_>) -> Result<Jitter, Reported> {
    if !node.is_map() {
        return Ok(Jitter {
            time_ns: u64::from_node(node, &TIME)?,
            distribution: Distribution::default(),
        });
    }
    node.keys(JITTER, |map| {
        let time = map.get("time");
        let distribution = map.read("distribution", |node| node.choice("distribution"));
        Ok(Jitter {
            time_ns: time?,
            distribution: distribution?,
        })
    })
}

fn loss(node: Node<'_>) -> Result<Loss, Reported> {
    if !node.is_map() {
        return u32::from_node(node, &SHARE).map(|ppm| Loss::Random { ppm });
    }
    node.keys(BURSTS, |map| {
        // The model of Gilbert and Elliott (as in `tc-netem`): `p` leads to the bad state, `r`
        // back.
        let to_bad = map.get("p");
        let to_good = map.get_with("r", |node, share: u32| match share {
            0 => {
                let what = "with `r: 0 %` a burst never ends";
                Err(node.mistake(what, "its mean length in frames is 1 / r: write 20 % for 5"))
            }
            share => Ok(share),
        });
        let (bad, good) = (map.get("bad"), map.get("good"));
        Ok(Loss::Bursts {
            to_bad_ppm: to_bad?,
            to_good_ppm: to_good?,
            bad_ppm: bad?,
            good_ppm: good?,
        })
    })
}

fn reorder(map: &Map<'_>) -> Result<Reorder, Reported> {
    let (ppm, by_ns) = (map.get("share"), map.get("by"));
    Ok(Reorder {
        ppm: ppm?,
        by_ns: by_ns?,
    })
}

/// Reads the one key that limits the queue, in bytes, packets or time.
fn queue(map: &Map<'_>) -> Result<Queue, Reported> {
    let bytes = map.find("bytes").map(|it| it.map(Queue::Bytes)).transpose();
    let packets = map
        .find("packets")
        .map(|it| it.map(Queue::Packets))
        .transpose();
    let time = map.find("time").map(|it| it.map(Queue::TimeNs)).transpose();
    let mut given = [bytes, packets, time].into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(queue), None) => queue,
        _ => {
            let what = "a queue is counted in one of `bytes`, `packets` and `time`";
            Err(map
                .node()
                .mistake(what, "for example `queue: { time: 50 ms }`"))
        }
    }
}
