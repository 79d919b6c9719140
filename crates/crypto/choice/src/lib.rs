//! Reading `engine: …` in configuration and campaign files, with the position of every mistake.
//!
//! Journals have the text of a [`Choice`], which `catalog` parses without YAML.

#![forbid(unsafe_code)]

use std::time::Duration;

use units::{BitRate, Bytes, Layer, Ratio};
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Map, Node, Reported, Value};

use catalog::{Choice, CpuChoice, EngineModel, NULL, engines};

const PPM: f64 = 1e6;

const ENGINE: Value = Value::Name(|| engines().chain([NULL]).collect());

/// Keys of `engine` as a map: of a threshold or of a model.
#[rustfmt::skip]
const KEYS: &[Key] = &[
    Key::new("below", Value::Size(1, Choice::BELOW_MAX), Depends("none"),
        "length below which inner packets are processed by `use`").excludes(&["model"]),
    Key::new("use", ENGINE, Depends("with `below`"),
        "engine for packets shorter than `below`").excludes(&["model"]),
    Key::new("else", Value::Or("auto", &ENGINE), Depends("with `below`"),
        "engine for the other packets; with a model, for those that it would finish later"),
    Key::new("model", Value::Map(MODEL), Depends("none"), "a modelled coprocessor"),
];

/// Keys of `model`, in the order of `docs/speed.md`.
#[rustfmt::skip]
const MODEL: &[Key] = &[
    Key::new("latency", Value::Time(Duration::ZERO, EngineModel::LATENCY_MAX), Required,
        "from the end of a packet's processing until it is back, up to 1 s"),
    Key::new("rate", Value::BitRate(Layer::Ip, EngineModel::BPS_MIN, EngineModel::BPS_MAX), Required,
        "of one unit, in bits of ESP packets; 1 Mbit/s to 10 Tbit/s"),
    Key::new("parallel", Value::Integer(1, EngineModel::PARALLEL_MAX), Default("1"),
        "units that process packets in parallel, up to 256"),
    Key::new("queue", Value::Integer(1, EngineModel::QUEUE_MAX), Default("64"),
        "most packets in the device, up to 4096; more wait until one is back"),
    Key::new("errors", Value::Notation("^[0-9]+(\\.[0-9]+)? ?%?$"), Default("0"),
        "share of batches that fail, from 0 to 1 or in per cent; the same ones in every run"),
    Key::new("engine", Value::Or("auto", &ENGINE), Default("auto"), "engine that computes inside"),
];

/// The forms of a choice in a file.
pub const VALUE: Value = Value::Any(&[Value::Or("auto", &ENGINE), Value::Map(KEYS)]);

/// Reads a choice of engine. `insecure` is true if the file allows the control [`NULL`]. Callers
/// pass `true` if a mistake in the file leaves that unknown, so that nothing is reported twice.
///
/// # Errors
/// Unknown engines and keys, a threshold of 0 or above 64 KB, a model without a rate or with one
/// out of range, errors outside 0 to 1, the control without `insecure`.
pub fn read(node: Node<'_>, insecure: bool) -> Result<Choice, Reported> {
    if !node.is_map() {
        return read_cpu(node, insecure).map(Choice::from);
    }
    node.keys(KEYS, |map| {
        let (below, model) = (map.optional("below"), map.optional("model"));
        match (below, model) {
            (Some(_), None) => read_threshold(map, insecure),
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

fn read_threshold(map: &Map<'_>, insecure: bool) -> Result<Choice, Reported> {
    let below = map.get::<Bytes>("below");
    let named = |key| {
        map.required(key)
            .and_then(|node| read_named(node, insecure))
    };
    // All keys are read before the first mistake is returned: a file's mistakes come together.
    let (small, large) = (named("use"), named("else"));
    Ok(Choice::Threshold {
        below: below?.get() as usize,
        small: small?,
        large: large?,
    })
}

fn read_model(map: &Map<'_>, model: Node<'_>, insecure: bool) -> Result<Choice, Reported> {
    let model = model.keys(MODEL, |map| {
        let (latency, rate) = (map.get("latency"), map.get::<BitRate>("rate"));
        let (queue, parallel) = (map.get("queue"), map.get("parallel"));
        let errors = map.read("errors", read_errors);
        let engine = map.read("engine", |node| read_cpu(node, insecure));
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
    // A number alone is a share; with a unit it is a ratio.
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
    // Decimal fractions are not exact in binary, so that a whole number may be missed by a little.
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
    // Of this version, not of this host, which may only check the file for another one.
    match node.one_of("engine", &known)? {
        NULL if !insecure => Err(node.mistake(
            "the engine `null` neither encrypts nor authenticates",
            "it is a control for measurements: write `insecure: true` if that is intended",
        )),
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_has_the_declared_keys() {
        testing::keys::tables("speed.md", super::MODEL);
    }
}
