//! The language of gates and of a campaign's limits: rules about figures.
//!
//! ```text
//! gate      = { filter } quantity [ "at" load ] condition
//! filter    = kind of trial | key "=" value | "round trip"
//! load      = frame rate | number "%"
//! condition = ( ">=" | "<=" | "=" ) ( figure | number "%" [ "of" reference ] )
//!           | ( "drops" | "rises" ) ">" number "%" [ "against" reference ]
//! reference = "baseline" | "dut=" name | "run=" folder
//! value     = word | '"' text '"'
//! ```
//!
//! `>=`, `<=` and `=` say what must hold, `drops` and `rises` what must not happen. A gate is met
//! if the whole interval of the figure keeps it, and violated if all of it breaks it. Otherwise it
//! is undecided, which counts as not met.

mod check;
mod filter;
mod parse;

pub use filter::GateFilter;
pub use parse::GateError;

use plan::{Bound, Cell};
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;
use units::Layer;

/// A rule about the figures of cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// As given.
    pub text: String,
    /// Conditions that a cell must meet for the gate to apply.
    pub filters: Vec<GateFilter>,
    /// Word of the quantity ([`crate::Quantity::word`]), or [`Gate::LOSS`].
    pub quantity: String,
    /// The load of the figure; `None`: each.
    pub at: Option<GateLoad>,
    /// The condition.
    pub limit: GateLimit,
    /// Their places in the text.
    places: Places,
}

/// The load of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateLoad {
    /// Frames per second.
    FramesPerS(u64),
    /// Per cent of the throughput, of `latency`, or of the highest load, of `loss-curve`.
    Percent(u8),
}

/// The condition of a gate.
#[derive(Debug, Clone, PartialEq)]
pub enum GateLimit {
    /// The figure itself is limited.
    Figure {
        /// The side that keeps the gate.
        bound: Bound,
        /// In the unit's base: bit/s, frames/s, 1/s, ns, frames, or a share.
        value: f64,
        /// The unit.
        unit: GateUnit,
    },
    /// The ratio to another figure is limited.
    Ratio {
        /// The side that keeps the gate.
        bound: Bound,
        /// The ratio: 0.95 of `drops > 5 %`.
        ratio: f64,
        /// The other figure; `None`: the same cell in the base of a comparison.
        reference: Option<GateReference>,
    },
    /// No frame may be lost.
    NoLoss,
}

/// Unit of a limited figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateUnit {
    /// Bits per second of payload, of objects, or per CPU-second.
    Bits,
    /// Bits of frames per second at a layer.
    BitsAt(Layer),
    /// Frames per second.
    FramesPerS,
    /// Transactions, set-ups or operations per second.
    PerS,
    /// Nanoseconds.
    Ns,
    /// Frames.
    Frames,
    /// Share of the frames sent.
    Share,
}

/// The figure that another one is limited by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateReference {
    /// The baseline in the group of the cell.
    Baseline,
    /// The DUT of this name in the group of the cell.
    Dut(String),
    /// The same cell of a stored run.
    Run(String),
}

/// Byte ranges in the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Places {
    filters: Vec<Range<usize>>,
    quantity: Range<usize>,
    load: Range<usize>,
    limit: Range<usize>,
    reference: Range<usize>,
}

/// The outcome of a limit, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitOutcome {
    /// The whole interval keeps it.
    Met,
    /// Neither: the interval crosses it, a figure is missing, or no cell is selected.
    Undecided,
    /// The whole interval breaks it.
    Violated,
}

impl LimitOutcome {
    /// Returns the name for readers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Undecided => "undecided",
            Self::Violated => "violated",
        }
    }

    /// The outcome of an interval. A value exactly at the limit keeps it.
    #[must_use]
    pub fn of((low, high): (f64, f64), bound: Bound, limit: f64) -> Self {
        let (keeps, breaks) = match bound {
            Bound::AtLeast => (low >= limit, high < limit),
            Bound::AtMost => (high <= limit, low > limit),
        };
        match (keeps, breaks) {
            (true, _) => Self::Met,
            (_, true) => Self::Violated,
            _ => Self::Undecided,
        }
    }
}

impl Gate {
    /// The quantity that is no ratio and has no comparison between runs.
    pub const LOSS: &'static str = "loss";

    /// Whether it is about a cell.
    #[must_use]
    pub fn applies(&self, cell: &Cell) -> bool {
        // The calibration measures the tester, and no gate is about it.
        !cell.calibration && self.filters.iter().all(|filter| filter.admits(cell))
    }

    /// The stored run that it refers to.
    #[must_use]
    pub fn run(&self) -> Option<&str> {
        match &self.limit {
            GateLimit::Ratio {
                reference: Some(GateReference::Run(folder)),
                ..
            } => Some(folder),
            _ => None,
        }
    }

    /// The cell that a cell is compared with, if the gate names one.
    #[must_use]
    pub fn reference<'c>(&self, cell: &Cell, cells: &'c [Cell]) -> Option<&'c Cell> {
        let GateLimit::Ratio {
            reference: Some(reference),
            ..
        } = &self.limit
        else {
            return None;
        };
        let mut group = cells.iter().filter(|other| other.group == cell.group);
        group.find(|other| !other.calibration && reference.is(other))
    }

    /// The gate with another filter at a place, as a text.
    #[must_use]
    pub fn with_filter(&self, at: usize, filter: &str) -> String {
        let filters = self.filters.iter().enumerate();
        let mut parts: Vec<String> = filters
            .map(|(place, own)| match place {
                place if place == at => filter.to_owned(),
                _ => own.to_string(),
            })
            .collect();
        parts.push(self.text[self.places.quantity.start..].to_owned());
        parts.join(" ")
    }
}

impl GateReference {
    /// Whether a cell of the run may be it.
    pub(crate) fn is(&self, cell: &Cell) -> bool {
        match self {
            Self::Baseline => cell.dut.adapter.profile().role == plan::Role::Baseline,
            Self::Dut(name) => cell.dut.name == *name,
            Self::Run(_) => false,
        }
    }

    /// In a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Baseline => "the baseline".to_owned(),
            Self::Dut(name) => name.clone(),
            Self::Run(folder) => format!("run {folder}"),
        }
    }
}

impl GateUnit {
    /// A value for people.
    #[must_use]
    pub fn print(self, value: f64) -> String {
        use units::human::{bit_rate, duration_ns, frame_rate, number};
        match self {
            Self::Bits => bit_rate(value),
            Self::BitsAt(layer) => format!("{} {layer}", bit_rate(value)),
            Self::FramesPerS => frame_rate(value),
            Self::PerS => format!("{}/s", number(value)),
            Self::Ns => duration_ns(value),
            Self::Frames => format!("{} frames", number(value)),
            Self::Share => share(value),
        }
    }

    /// Key of values in results.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Bits => "bps",
            Self::BitsAt(Layer::L1) => "l1_bps",
            Self::BitsAt(Layer::L2) => "l2_bps",
            Self::BitsAt(_) => "ip_bps",
            Self::FramesPerS => "frames_per_s",
            Self::PerS => "per_s",
            Self::Ns => "ns",
            Self::Frames => "frames",
            Self::Share => "ratio",
        }
    }
}

/// A share of frames: in per cent, small ones in parts per million.
fn share(value: f64) -> String {
    use units::human::number;
    if value > 0.0 && value < 1e-4 {
        format!("{} ppm", number(1e6 * value))
    } else {
        format!("{} %", number(100.0 * value))
    }
}
