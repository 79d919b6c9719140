//! Reading `engine: …` in configuration and campaign files, with the position of every mistake.

use std::time::Duration;

use units::{Bytes, Layer, Ratio};
use yaml::{Map, Node, Reported};

use crate::{Choice, CpuChoice, EngineModel, NULL, engines};

/// Longest inner packet; a higher threshold would have no effect.
const BELOW_MAX: u64 = 65_535;
/// No device has a latency of more than a second.
const LATENCY_MAX: Duration = Duration::from_secs(1);
/// Rate of one unit: slower than any link to faster than any memory.
const RATE_BPS_MIN: u64 = 1_000_000;
const RATE_BPS_MAX: u64 = 10_000_000_000_000;
/// The model stores a time for each place in the queue.
const QUEUE_MAX: u32 = 4096;
const PARALLEL_MAX: u16 = 256;
const QUEUE_DEFAULT: u32 = 64;
const PARALLEL_DEFAULT: u16 = 1;
const PPM: f64 = 1e6;

impl Choice {
    /// Reads a choice of engine. `insecure` is true if the file allows the control [`NULL`].
    /// Callers pass `true` if a mistake in the file leaves that unknown, so that nothing is
    /// reported twice.
    ///
    /// # Errors
    /// Unknown engines and keys, a threshold of 0 or above 64 KB, a model without a rate or with
    /// one out of range, errors outside 0 to 1, the control without `insecure`.
    pub fn read(node: Node<'_>, insecure: bool) -> Result<Self, Reported> {
        if !node.is_map() {
            return read_cpu(node, insecure).map(Self::from);
        }
        node.map(|map| {
            let (below, model) = (map.optional("below"), map.optional("model"));
            match (below, model) {
                (Some(below), None) => read_threshold(map, below, insecure),
                (None, Some(model)) => read_model(map, model, insecure),
                (Some(_), Some(model)) => {
                    // Marks these keys as read, so that they are not reported as unknown too.
                    let _ = (map.optional("use"), map.optional("else"));
                    Err(model.mistake(
                        "an engine has either a threshold or a model",
                        "remove `below` and `use`, or `model`",
                    ))
                }
                (None, None) => {
                    let _ = (map.optional("use"), map.optional("else"));
                    Err(node.mistake(
                        "this does not select an engine",
                        "write a name, `{ below: 128 B, use: rustcrypto, else: ipsec-mb }` or \
                         `{ model: { latency: 50 µs, rate: 10 Gbit/s }, else: auto }`",
                    ))
                }
            }
        })
    }
}

fn read_threshold(map: &Map<'_>, below: Node<'_>, insecure: bool) -> Result<Choice, Reported> {
    let below = below.size(Bytes::new(1)..=Bytes::new(BELOW_MAX));
    let named = |key| {
        map.required(key)
            .and_then(|node| read_named(node, insecure))
    };
    let (small, large) = (named("use"), named("else"));
    Ok(Choice::Threshold {
        below: below?.get() as usize,
        small: small?,
        large: large?,
    })
}

fn read_model(map: &Map<'_>, model: Node<'_>, insecure: bool) -> Result<Choice, Reported> {
    let model = model.map(|map| {
        let latency = map
            .required("latency")
            .and_then(|node| node.duration(Duration::ZERO..=LATENCY_MAX));
        let rate = map
            .required("rate")
            .and_then(|node| node.bit_rate(Layer::Ip, RATE_BPS_MIN..=RATE_BPS_MAX));
        let queue = map.with_default("queue", QUEUE_DEFAULT, |node| node.integer(1..=QUEUE_MAX));
        let parallel = map.with_default("parallel", PARALLEL_DEFAULT, |node| {
            node.integer(1..=PARALLEL_MAX)
        });
        let errors = map.with_default("errors", 0, read_errors);
        let engine = map.with_default("engine", CpuChoice::Auto, |node| read_cpu(node, insecure));
        Ok(EngineModel {
            latency: latency?,
            rate_bps: rate?.bps(),
            queue: queue?,
            parallel: parallel?,
            errors_ppm: errors?,
            engine: engine?,
        })
    });
    let otherwise = map.optional("else").map(|node| read_cpu(node, insecure));
    Ok(Choice::Model {
        model: model?,
        otherwise: otherwise.transpose()?,
    })
}

/// Reads a share from 0 to 1, such as `0.001` or `0.1 %`, as parts per million.
fn read_errors(node: Node<'_>) -> Result<u32, Reported> {
    let share = node.text().ok().and_then(|text| text.parse::<f64>().ok());
    let Some(share) = share else {
        let ratio = node.ratio(Ratio::from_ppm(0)..=Ratio::from_percent(100))?;
        return Ok(ratio.ppm() as u32);
    };
    let ppm = (share * PPM).round();
    if !(0.0..=1.0).contains(&share) {
        Err(node.mistake(
            format!("a share of {share} of the batches cannot fail"),
            "`errors` must be from 0 to 1, or from 0 % to 100 %",
        ))
    } else if (share * PPM - ppm).abs() > 1e-3 {
        Err(node.mistake(
            format!("{share} is finer than a millionth"),
            "write at most six decimal places",
        ))
    } else {
        Ok(ppm as u32)
    }
}

/// Reads `auto` or an engine's name.
fn read_cpu(node: Node<'_>, insecure: bool) -> Result<CpuChoice, Reported> {
    read_one(node, &["auto"], insecure).map(|name| match name {
        "auto" => CpuChoice::Auto,
        name => CpuChoice::Named(name.to_owned()),
    })
}

/// Reads an engine's name.
fn read_named(node: Node<'_>, insecure: bool) -> Result<String, Reported> {
    read_one(node, &[], insecure).map(str::to_owned)
}

/// Reads one of the words or an engine's name, available on this host or not.
fn read_one(
    node: Node<'_>,
    words: &[&'static str],
    insecure: bool,
) -> Result<&'static str, Reported> {
    let known: Vec<_> = words
        .iter()
        .copied()
        .chain(engines())
        .chain([NULL])
        .map(|name| (name, name))
        .collect();
    match node.one_of("engine", &known)? {
        NULL if !insecure => Err(node.mistake(
            "the engine `null` neither encrypts nor authenticates",
            "it is a control for measurements: write `insecure: true` if that is intended",
        )),
        name => Ok(name),
    }
}
