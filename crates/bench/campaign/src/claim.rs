//! Claims: figures from data sheets about DUTs, and the cells that measure them.
//!
//! To let a claim select by one more axis: see [`selector`].

mod selector;

use crate::dut::Listed;
use crate::expand::Draft;
use crate::frames::rate::{self, Rate};
use crate::keys::SHARE;
use plan::{Bound, Claim, ClaimUnit, Coordinate, Percentile, Procedure};
use std::time::Duration;
use units::{BitRate, FrameRate, Layer, Ratio};
use yaml::Absent::{Depends, Required};
use yaml::{FromNode, Key, Map, Node, Reported, Spanned, Value};

/// Tables with more cannot be read.
const CLAIMS_MAX: usize = 100;
const TEXT_CHARS_MAX: usize = 200;
const BPS_MAX: u64 = 1_000_000_000_000;
const TIME_MAX: Duration = Duration::from_secs(3600);

/// The quantity of a claim about a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// Payload bits per second.
    Payload,
    /// Frames per second, or the bit rate of the frames at a layer.
    Frames,
    /// Time.
    Time,
}

/// Trials that measure quantities of data sheets.
const TRIALS: [(&str, Measure); 7] = [
    ("tcp", Measure::Payload),
    ("udp", Measure::Payload),
    ("ping", Measure::Time),
    ("throughput", Measure::Frames),
    ("load", Measure::Frames),
    ("latency", Measure::Time),
    ("recovery", Measure::Time),
];
/// The trials among them that measure distributions of times.
const HAVE_PERCENTILES: [&str; 2] = ["ping", "latency"];

#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    Key::new("dut", Value::Text, Required,
        "The DUT that the claim is about. The name of an entry with lists as settings selects all \
         of its DUTs").words("name").range("name of a DUT"),
    Key::new("trial", Value::Name(|| Value::names(&TRIALS)), Required,
        "Kind of trial that measures it"),
    // Of the two exactly one is given, so neither is required and neither has a default.
    Key::new("at_least", FIGURE, Depends(""),
        "Lowest figure that meets the claim. A claim has this or `at_most`")
        .words("figure").range("see below").excludes(&["at_most"]),
    Key::new("at_most", FIGURE, Depends(""), "Highest figure that meets the claim")
        .words("figure").range("see below"),
    Key::new("source", Value::Text, Required, "The publication").range(ONE_LINE),
    Key::new("conditions", Value::Text, Depends("not stated"), "Conditions of the claim")
        .range(ONE_LINE),
    Key::new("goal", Value::Text, Depends("the first"), "The goal; its lower bound is compared")
        .words("name").range("of `throughput`"),
    Key::new("percentile", Value::Name(Value::variants::<Percentile>), Depends("`p50`"),
        "Percentile that is compared").range("`p50`, `p99`; of `ping` and `latency`"),
    Key::new("load", SHARE, Depends("all"), "Share of the throughput to which the claim applies")
        .range("a load of the trial; of `latency`"),
    selector::KEYS,
];
const ONE_LINE: &str = "one line, 200 characters";
/// A number with a unit, which depends on the trial.
const FIGURE: Value = Value::Notation("^[0-9]+(\\.[0-9]+)? ?[A-Za-zµμ0-9/ ]+$");

/// A claim as read: its DUT, trial and axes are checked once the cells are known.
#[derive(Debug)]
pub(crate) struct ClaimConfig {
    dut: Spanned<String>,
    trial: Spanned<&'static str>,
    bound: Bound,
    value: (u64, ClaimUnit),
    goal: Option<Spanned<String>>,
    load_percent: Option<Spanned<u8>>,
    percentile: Option<Spanned<Percentile>>,
    source: String,
    conditions: String,
    selectors: Vec<Spanned<Coordinate>>,
}

/// Reads the list of claims. A mistake in one keeps no other from being checked against the cells.
pub(crate) fn read_all(node: Node<'_>) -> Result<Vec<Result<ClaimConfig, Reported>>, Reported> {
    let claims = node.list(|item| Ok(item.keys(KEYS, ClaimConfig::read)))?;
    match claims.len() {
        0..=CLAIMS_MAX => Ok(claims),
        count => {
            let what = format!("{count} claims are more than {CLAIMS_MAX}");
            Err(node.mistake(what, "shorten the list"))
        }
    }
}

/// The claims with the cells that measure them. Mistakes go to `node`, the list.
pub(crate) fn resolve_all(
    node: Node<'_>,
    asked: &[Result<ClaimConfig, Reported>],
    drafts: &[Draft],
    duts: &[Listed],
) -> Result<Vec<Claim>, Reported> {
    let claims: Vec<_> = asked
        .iter()
        .map(|asked| match asked {
            Ok(asked) => asked.resolve(node, drafts, duts),
            Err(reported) => Err(*reported),
        })
        .collect();
    claims.into_iter().collect()
}

impl ClaimConfig {
    fn read(map: &Map<'_>) -> Result<Self, Reported> {
        let dut = map.get("dut");
        // The unit of the figure depends on the trial, so both are read together.
        let trials = TRIALS.map(|(name, measure)| (name, (name, measure)));
        let trial = map.required("trial").and_then(|node| {
            let (name, measure) = node.one_of("measurement", &trials)?;
            Ok((node.spanned(name), measure))
        });
        let bounds = [
            (Bound::AtLeast, map.optional("at_least")),
            (Bound::AtMost, map.optional("at_most")),
        ];
        let measured = trial
            .as_ref()
            .map(|(trial, measure)| (trial.value, *measure));
        let value = value(map, &bounds, measured.map_err(|reported| *reported));
        let goal = map.find("goal");
        let percentile = map.optional("percentile").map(|node| {
            let found = node.choice("percentile")?;
            Ok(node.spanned(found))
        });
        let load = map.optional("load").map(load).transpose();
        let (source, conditions) = (
            map.get_with("source", line),
            map.find_with("conditions", line),
        );
        let selectors = selector::read_all(map);
        let ((trial, _), percentile) = (trial?, percentile.transpose()?);
        if let Some(wrong) = percentile
            .as_ref()
            .filter(|_| !HAVE_PERCENTILES.contains(&trial.value))
        {
            let what = format!("`{}` has no percentiles", trial.value);
            return Err(map
                .node()
                .mistake_at(&wrong.place, what, "remove `percentile`"));
        }
        let (bound, value) = value?;
        Ok(Self {
            dut: dut?,
            trial,
            bound,
            value,
            goal: goal?,
            load_percent: load?,
            percentile,
            source: source?,
            conditions: conditions?.unwrap_or_default(),
            selectors: selectors?,
        })
    }

    fn resolve(
        &self,
        node: Node<'_>,
        drafts: &[Draft],
        duts: &[Listed],
    ) -> Result<Claim, Reported> {
        let name = &self.dut.value;
        // The name of an entry means all of its DUTs: a data sheet rarely says which of them it
        // is about.
        let is = |dut: &&Listed| dut.dut.name == *name || dut.entry == *name;
        let meant: Vec<&str> = duts
            .iter()
            .filter(is)
            .map(|dut| dut.dut.name.as_str())
            .collect();
        if meant.is_empty() {
            let known: Vec<_> = duts.iter().map(|dut| dut.dut.name.as_str()).collect();
            let what = format!("no DUT of this campaign is named `{name}`");
            let help = format!("its DUTs are {}", known.join(", "));
            return Err(node.mistake_at(&self.dut.place, what, help));
        }
        let trial = self.trial.value;
        let mut found: Vec<&Draft> = drafts
            .iter()
            .filter(|draft| {
                // Calibration measures the tester, about which nothing is claimed.
                !draft.cell.calibration && meant.contains(&draft.cell.dut.name.as_str())
            })
            .filter(|draft| draft.cell.measurement.name() == trial)
            .collect();
        if found.is_empty() {
            let what = format!("no `{trial}` of `{name}` is measured");
            let help = format!("add a trial `{trial}` that measures it, or remove the claim");
            return Err(node.mistake_at(&self.trial.place, what, help));
        }
        // One after the other, so that the message names the first selector that leaves no cell.
        for selector in &self.selectors {
            found = selector::meeting(node, selector, trial, found)?;
        }
        self.check_goal(node, &found)?;
        self.check_load(node, &found)?;
        let (value, unit) = self.value;
        Ok(Claim {
            dut: name.clone(),
            trial: trial.to_owned(),
            bound: self.bound,
            value,
            unit,
            goal: self.goal.as_ref().map(|goal| goal.value.clone()),
            load_percent: self.load_percent.as_ref().map(|load| load.value),
            percentile: match &self.percentile {
                Some(given) => Some(given.value),
                // The median, which single slow frames do not shift.
                None => HAVE_PERCENTILES.contains(&trial).then_some(Percentile::P50),
            },
            source: self.source.clone(),
            conditions: self.conditions.clone(),
            cells: found.iter().map(|draft| draft.cell.id.clone()).collect(),
        })
    }

    /// A goal must be one that the searches of the claim's cells have.
    fn check_goal(&self, node: Node<'_>, found: &[&Draft]) -> Result<(), Reported> {
        let Some(goal) = &self.goal else {
            return Ok(());
        };
        let searched = found.iter().filter_map(|draft| match procedure(draft)? {
            Procedure::Throughput(search) => Some(&search.goals),
            _ => None,
        });
        // In the order of the file, as the help lists them.
        let mut known: Vec<&str> = Vec::new();
        for found in searched.flatten() {
            if !known.contains(&found.name.as_str()) {
                known.push(&found.name);
            }
        }
        if known.contains(&goal.value.as_str()) {
            return Ok(());
        }
        let what = format!("no `{}` here has a goal `{}`", self.trial.value, goal.value);
        let help = if known.is_empty() {
            "goals are of `throughput`: remove `goal`".to_owned()
        } else {
            format!("its goals are {}", known.join(", "))
        };
        Err(node.mistake_at(&goal.place, what, help))
    }

    /// A load must be one under which latency is measured.
    fn check_load(&self, node: Node<'_>, found: &[&Draft]) -> Result<(), Reported> {
        let Some(load) = &self.load_percent else {
            return Ok(());
        };
        let timed = found.iter().filter_map(|draft| match procedure(draft)? {
            Procedure::Latency(test) => Some(&test.percents),
            _ => None,
        });
        // Drafts of several DUTs time the same loads.
        let mut known: Vec<u8> = timed.flatten().copied().collect();
        known.sort_unstable();
        known.dedup();
        if known.contains(&load.value) {
            return Ok(());
        }
        let what = format!(
            "no `{}` here times a load of {} %",
            self.trial.value, load.value
        );
        let known: Vec<_> = known.iter().map(|percent| format!("{percent} %")).collect();
        let help = if known.is_empty() {
            "loads in per cent are of `latency`: remove `load`".to_owned()
        } else {
            format!("its loads are {}", known.join(", "))
        };
        Err(node.mistake_at(&load.place, what, help))
    }
}

fn procedure<'d>(draft: &&'d Draft) -> Option<&'d Procedure> {
    Some(&draft.cell.measurement.frames()?.procedure)
}

/// The one figure of a claim.
fn value(
    map: &Map<'_>,
    bounds: &[(Bound, Option<Node<'_>>); 2],
    trial: Result<(&str, Measure), Reported>,
) -> Result<(Bound, (u64, ClaimUnit)), Reported> {
    match bounds {
        [(bound, Some(node)), (_, None)] | [(_, None), (bound, Some(node))] => {
            Ok((*bound, figure(*node, trial?)?))
        }
        [(_, Some(_)), (_, Some(second))] => Err(second.mistake(
            "the claim has a figure already",
            "make two claims of it, one with `at_least` and one with `at_most`",
        )),
        [(_, None), (_, None)] => Err(map.node().mistake(
            "the claim has no figure",
            "write `at_least` or `at_most`, for example `at_least: 10 Gbit/s`",
        )),
    }
}

/// The unit of a text, if it is a figure.
fn noun(text: &str) -> Option<&'static str> {
    let layers = [Layer::L1, Layer::L2, Layer::Ip];
    // A bit rate of frames is read apart first: `10 Gbit/s L1` is no bit rate of payload.
    let number = layers
        .iter()
        .find_map(|layer| text.strip_suffix(layer.name()))
        .map(str::trim_end);
    if let Some(number) = number {
        let is_rate = BitRate::parse(number, Layer::L1).is_ok();
        return is_rate.then_some("a bit rate of frames");
    }
    if BitRate::parse(text, Layer::Payload).is_ok() {
        return Some("a bit rate");
    }
    if FrameRate::parse(text).is_ok() {
        return Some("a frame rate");
    }
    units::time::parse(text).is_ok().then_some("a time")
}

fn figure(node: Node<'_>, (trial, measure): (&str, Measure)) -> Result<(u64, ClaimUnit), Reported> {
    let text = node.text()?;
    let noun = noun(text);
    let (fits, measured, example) = match measure {
        Measure::Payload => (
            &["a bit rate"][..],
            "bits of payload per second",
            "10 Gbit/s",
        ),
        Measure::Frames => (
            // The reader of loads reports a missing layer.
            &["a bit rate", "a bit rate of frames", "a frame rate"][..],
            "frames per second",
            "1.2 Mpps` or `10 Gbit/s L1",
        ),
        Measure::Time => (&["a time"][..], "time", "50 µs"),
    };
    if let Some(noun) = noun.filter(|noun| !fits.contains(noun)) {
        let what = format!("`{text}` is {noun}, and `{trial}` measures {measured}");
        return Err(node.mistake(what, format!("write for example `{example}`")));
    }
    match measure {
        Measure::Payload => {
            let rate = node.bit_rate(Layer::Payload, 1..=BPS_MAX)?;
            Ok((rate.bps(), ClaimUnit::PayloadBps))
        }
        Measure::Frames => Ok(match rate::read(node)? {
            Rate::Frames(frames) => (frames, ClaimUnit::FramesPerS),
            Rate::Bits(rate) => {
                let unit = match rate.layer() {
                    Layer::L1 => ClaimUnit::L1Bps,
                    Layer::L2 => ClaimUnit::L2Bps,
                    Layer::Ip | Layer::Payload => ClaimUnit::IpBps,
                };
                (rate.bps(), unit)
            }
        }),
        Measure::Time => {
            let time = node.duration(Duration::from_nanos(1)..=TIME_MAX)?;
            Ok((plan::nanos(time), ClaimUnit::Ns))
        }
    }
}

fn load(node: Node<'_>) -> Result<Spanned<u8>, Reported> {
    let ratio = Ratio::from_node(node, &SHARE)?;
    if ratio.ppm().is_multiple_of(10_000) {
        // At most 100.
        Ok(node.spanned((ratio.ppm() / 10_000) as u8))
    } else {
        Err(node.mistake("loads are whole per cents", "write for example `50 %`"))
    }
}

/// A line of text for people.
fn line(node: Node<'_>, text: String) -> Result<String, Reported> {
    let length = text.trim().chars().count();
    if (1..=TEXT_CHARS_MAX).contains(&length) && !text.contains('\n') {
        Ok(text.trim().to_owned())
    } else {
        Err(node.mistake(
            "this text is empty or too long",
            format!("use one line of up to {TEXT_CHARS_MAX} characters"),
        ))
    }
}
