//! Impairment profiles: the map `impairments` of a campaign, and the axis `impair` of its trials.

use impair::{Distribution, Jitter, Loss, Queue, Rate, Reorder};
use plan::{ImpairProfile, Impairment, nanos};
use std::time::Duration;
use units::{Bytes, Layer, Ratio};
use yaml::{Map, Node, Reported, Spanned};

const NAME_CHARS_MAX: usize = 32;
const PROFILES_MAX: usize = 100;
/// Seed of a profile that names none.
const SEED_DEFAULT: u32 = 1;
/// No frame of a trial waits longer.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Below this a handshake of a few packets takes longer than a trial.
const RATE_BPS_MIN: u64 = 10_000;
const RATE_BPS_MAX: u64 = 1_000_000_000_000;
/// A queue holds the longest frame at least.
const QUEUE_BYTES: std::ops::RangeInclusive<Bytes> = Bytes::new(10_000)..=Bytes::new(1 << 30);
const QUEUE_PACKETS_MAX: u32 = 1_000_000;
/// Default queue in front of a rate.
const QUEUE_DEFAULT: Queue = Queue::TimeNs(100_000_000);

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
        body.map(|map| read(map, name.value))
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

/// Reads the axis of a trial: names of profiles, which are resolved by [`select`].
pub(crate) fn names(node: Node<'_>) -> Result<Vec<Spanned<String>>, Reported> {
    node.one_or_many(|item| Ok(item.spanned(item.text()?.to_owned())))
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
    let seed = map.with_default("seed", SEED_DEFAULT, |node| node.integer(0..=u32::MAX));
    let apart = [map.optional("a-to-b"), map.optional("b-to-a")];
    let [a_to_b, b_to_a] = match apart {
        // Only in this form are keys of an impairment requested at this level: next to `a-to-b`
        // they are reported as unknown, not ignored.
        [None, None] => {
            let both = read_direction(map);
            [both.clone(), both]
        }
        apart => apart.map(|direction| match direction {
            Some(node) => node.map(read_direction),
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
    let delay = map.with_default("delay", Duration::ZERO, time);
    let jitter = map.with_default("jitter", None, |node| jitter(node).map(Some));
    let loss = map.with_default("loss", None, |node| loss(node).map(Some));
    let reorder = map.with_default("reorder", None, |node| node.map(reorder).map(Some));
    let duplicate = map.with_default("duplicate", 0, share);
    let corrupt = map.with_default("corrupt", 0, share);
    let rate = map.with_default("rate", None, |node| {
        let rate = node.bit_rate(Layer::L1, RATE_BPS_MIN..=RATE_BPS_MAX)?;
        Ok(Some(rate.bps()))
    });
    let queue = map.optional("queue");
    // Read also without a rate, for the mistakes in it.
    let read_queue = queue.map_or(Ok(QUEUE_DEFAULT), |node| node.map(self::queue));
    let (rate, read_queue) = (rate?, read_queue?);
    if let (None, Some(node)) = (rate, queue) {
        let what = "without a rate nothing waits in a queue";
        return Err(node.mistake(what, "write `rate: 10 Mbit/s`, or remove `queue`"));
    }
    Ok(Impairment {
        delay_ns: nanos(delay?),
        jitter: jitter?,
        loss: loss?,
        reorder: reorder?,
        duplicate_ppm: duplicate?,
        corrupt_ppm: corrupt?,
        rate: rate.map(|bps| Rate {
            bps,
            queue: read_queue,
        }),
    })
}

fn time(node: Node<'_>) -> Result<Duration, Reported> {
    node.duration(Duration::ZERO..=TIME_MAX)
}

fn share(node: Node<'_>) -> Result<u32, Reported> {
    let ratio = node.ratio(Ratio::from_ppm(0)..=Ratio::from_percent(100))?;
    // In range, so it fits.
    Ok(ratio.ppm() as u32)
}

fn jitter(node: Node<'_>) -> Result<Jitter, Reported> {
    let of = |time, distribution| Jitter {
        time_ns: nanos(time),
        distribution,
    };
    if !node.is_map() {
        return Ok(of(time(node)?, Distribution::default()));
    }
    node.map(|map| {
        let time = map.required("time").and_then(time);
        let distribution = map.with_default("distribution", Distribution::default(), |node| {
            node.choice("distribution")
        });
        Ok(of(time?, distribution?))
    })
}

fn loss(node: Node<'_>) -> Result<Loss, Reported> {
    if !node.is_map() {
        return share(node).map(|ppm| Loss::Random { ppm });
    }
    node.map(|map| {
        let to_bad = map.required("p").and_then(share);
        // The model of Gilbert and Elliott (as in `tc-netem`): `p` leads to the bad state, `r`
        // back.
        let to_good = map.required("r").and_then(|node| match share(node)? {
            0 => {
                let what = "with `r: 0 %` a burst never ends";
                Err(node.mistake(what, "its mean length in frames is 1 / r: write 20 % for 5"))
            }
            share => Ok(share),
        });
        let bad = map.with_default("bad", 1_000_000, share);
        let good = map.with_default("good", 0, share);
        Ok(Loss::Bursts {
            to_bad_ppm: to_bad?,
            to_good_ppm: to_good?,
            bad_ppm: bad?,
            good_ppm: good?,
        })
    })
}

fn reorder(map: &Map<'_>) -> Result<Reorder, Reported> {
    let ppm = map.required("share").and_then(share);
    let by = map.required("by").and_then(time);
    Ok(Reorder {
        ppm: ppm?,
        by_ns: nanos(by?),
    })
}

/// Reads the one key that limits the queue, in bytes, packets or time.
fn queue(map: &Map<'_>) -> Result<Queue, Reported> {
    let bytes = map.optional("bytes").map(|node| {
        let size = node.size(QUEUE_BYTES)?;
        Ok(Queue::Bytes(size.get()))
    });
    let packets = map
        .optional("packets")
        .map(|node| node.integer(1..=QUEUE_PACKETS_MAX).map(Queue::Packets));
    let time = map
        .optional("time")
        .map(|node| time(node).map(|time| Queue::TimeNs(nanos(time))));
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
