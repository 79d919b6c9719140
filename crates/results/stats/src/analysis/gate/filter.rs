//! Conditions that a cell must meet for a gate to apply.

use plan::{Axis, Cell, LatencyPath, Measurement, Procedure};
use std::fmt;

/// A condition that a cell must meet for a gate to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateFilter {
    /// This kind of trial.
    Kind(String),
    /// A device of this name.
    Device(String),
    /// This value on an axis.
    Value(Axis, String),
    /// Frames or echo requests that go there and back.
    RoundTrip,
}

impl fmt::Display for GateFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(name) => f.write_str(name),
            Self::Device(name) => write!(f, "dut={}", quoted(name)),
            Self::Value(axis, value) => write!(f, "{}={}", axis.key(), quoted(value)),
            Self::RoundTrip => f.write_str("round trip"),
        }
    }
}

/// A value as a filter has it: in quotation marks if it has blanks or signs.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !"<>=%≥≤".contains(c);
    if value.chars().all(is_plain) {
        value.to_owned()
    } else {
        format!("\"{value}\"")
    }
}

impl GateFilter {
    /// The filter of this kind that admits a cell; `None` if the cell is not on its axis.
    #[must_use]
    pub fn of(&self, cell: &Cell) -> Option<String> {
        let own = match self {
            Self::Kind(_) => Self::Kind(cell.measurement.name().to_owned()),
            Self::Device(_) => Self::Device(cell.dut.name.clone()),
            Self::Value(axis, _) => {
                let plain = || cell.value(*axis).map(|value| value.plain());
                Self::Value(*axis, in_id(*axis, cell).or_else(plain)?)
            }
            Self::RoundTrip => Self::Kind(cell.measurement.name().to_owned()),
        };
        Some(own.to_string())
    }

    /// Whether it admits a cell.
    #[must_use]
    pub fn admits(&self, cell: &Cell) -> bool {
        match self {
            Self::Kind(name) => cell.measurement.name() == name,
            Self::Device(name) => cell.dut.name == *name,
            // A value may be written as in the id (`500ms`) or plain (`500000000`).
            Self::Value(axis, wanted) => {
                in_id(*axis, cell).is_some_and(|value| value == *wanted)
                    || cell
                        .value(*axis)
                        .is_some_and(|value| value.plain() == *wanted)
            }
            Self::RoundTrip => match &cell.measurement {
                Measurement::Ping { .. } => true,
                Measurement::Frames(test) => match &test.procedure {
                    Procedure::Latency(test) => test.path == LatencyPath::RoundTrip,
                    _ => false,
                },
                _ => false,
            },
        }
    }
}

/// A cell's value on an axis as its id has it.
fn in_id(axis: Axis, cell: &Cell) -> Option<String> {
    let named = cell.coordinates.iter().find(|at| at.axis == axis)?;
    let text = named.to_string();
    text.split_once('=').map(|(_, value)| value.to_owned())
}
