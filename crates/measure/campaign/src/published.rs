//! Published figures: the built-in references that a campaign names, and the cells beside which
//! they are printed. Whether both count the same is decided where they are compared.

use crate::expand::Draft;
use crate::plan::{
    DeviceTest, FrameTest, Measurement, Procedure, Published, PublishedUnit, RateBasis,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use yaml::{Node, Reported};

const NAMES: [(&str, &str); 2] = [
    (
        "crypto-card",
        include_str!("../../../../reference/crypto-card.toml"),
    ),
    (
        "baikal-gost",
        include_str!("../../../../reference/baikal-gost.toml"),
    ),
];

/// A reference file. Fields for readers only are skipped.
#[derive(Debug, Deserialize)]
pub(crate) struct Reference {
    source: String,
    #[serde(default)]
    table: Vec<Table>,
    #[serde(default)]
    figure: Vec<Figure>,
}

/// Speeds of one system by operation and size. `lint` reads further keys, and refuses unknown ones.
#[derive(Debug, Deserialize)]
struct Table {
    system: String,
    unit: Unit,
    concurrency: u32,
    bytes: Vec<u32>,
    figures: BTreeMap<String, Vec<f64>>,
}

/// One figure, and the cells beside which it is printed. `lint` refuses unknown keys here too.
#[derive(Debug, Deserialize)]
struct Figure {
    system: String,
    what: String,
    value: f64,
    unit: Unit,
    trial: Trial,
    operation: Option<String>,
    bytes: Option<u32>,
    concurrency: Option<u32>,
    suite: Option<String>,
    mix: Option<String>,
    counts: Option<RateBasis>,
}

/// The measurement that is most like that of a published figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Trial {
    /// The speed of a crypto device.
    Speed,
    /// The fatigue of crypto devices.
    Fatigue,
    /// A TCP transfer.
    Tcp,
    /// A search for the throughput of frames.
    Throughput,
}

impl Trial {
    const fn of(measurement: &Measurement) -> Option<Self> {
        match measurement {
            Measurement::Device(DeviceTest::Speed(_)) => Some(Self::Speed),
            Measurement::Device(DeviceTest::Fatigue(_)) => Some(Self::Fatigue),
            Measurement::Tcp { .. } => Some(Self::Tcp),
            Measurement::Frames(FrameTest {
                procedure: Procedure::Throughput(_),
                ..
            }) => Some(Self::Throughput),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum Unit {
    #[serde(rename = "MB/s")]
    Megabytes,
    #[serde(rename = "Mbit/s")]
    Megabits,
    #[serde(rename = "operations/s")]
    Operations,
    #[serde(rename = "% of devices")]
    Percent,
}

impl Unit {
    fn value(self, figure: f64) -> (u64, PublishedUnit) {
        match self {
            Self::Megabytes => ((figure * 1e6).round() as u64, PublishedUnit::BytesPerS),
            Self::Megabits => ((figure * 1e6).round() as u64, PublishedUnit::BitsPerS),
            Self::Operations => (figure.round() as u64, PublishedUnit::OperationsPerS),
            Self::Percent => (figure.round() as u64, PublishedUnit::PercentOfDevices),
        }
    }
}

/// Reads the names of one or several references.
pub(crate) fn read(node: Node<'_>) -> Result<Vec<Reference>, Reported> {
    node.one_or_many(|item| Ok(parse(item.one_of("reference", &NAMES)?)))
}

fn parse(text: &str) -> Reference {
    toml::from_str(text).expect("the built-in references have no mistakes: a test reads them")
}

/// Those figures that some cell measures, with these cells.
pub(crate) fn resolve(references: &[Reference], drafts: &[Draft]) -> Vec<Published> {
    let mut published = Vec::new();
    for reference in references {
        for table in &reference.table {
            for (operation, figures) in &table.figures {
                for (bytes, figure) in table.bytes.iter().zip(figures) {
                    let (value, unit) = table.unit.value(*figure);
                    published.push(Published {
                        source: reference.source.clone(),
                        system: table.system.clone(),
                        what: format!("{operation}, {bytes} B"),
                        value,
                        unit,
                        counts: None,
                        cells: cells(drafts, |draft| {
                            is_speed(draft, operation, Some(*bytes), table.concurrency)
                        }),
                    });
                }
            }
        }
        for figure in &reference.figure {
            let (value, unit) = figure.unit.value(figure.value);
            published.push(Published {
                source: reference.source.clone(),
                system: figure.system.clone(),
                what: figure.in_words(),
                value,
                unit,
                counts: figure.counts,
                cells: cells(drafts, |draft| figure.is_of(draft)),
            });
        }
    }
    published.retain(|figure| !figure.cells.is_empty());
    published
}

fn cells(drafts: &[Draft], is_of: impl Fn(&Draft) -> bool) -> Vec<String> {
    let found = drafts.iter().filter(|draft| is_of(draft));
    found.map(|draft| draft.cell.id.clone()).collect()
}

fn is_speed(draft: &Draft, operation: &str, bytes: Option<u32>, concurrency: u32) -> bool {
    match &draft.cell.measurement {
        Measurement::Device(DeviceTest::Speed(speed)) => {
            speed.operation == operation
                && (bytes.is_none() || speed.bytes == bytes)
                && speed.concurrency == concurrency
        }
        _ => false,
    }
}

impl Figure {
    fn in_words(&self) -> String {
        let subject = self.operation.as_ref().or(self.suite.as_ref());
        subject.map_or_else(
            || self.what.clone(),
            |subject| format!("{subject}: {}", self.what),
        )
    }

    fn is_of(&self, draft: &Draft) -> bool {
        if let Some(operation) = &self.operation {
            let concurrency = self.concurrency.unwrap_or(1);
            return is_speed(draft, operation, self.bytes, concurrency);
        }
        let cell = &draft.cell;
        if cell.calibration || Trial::of(&cell.measurement) != Some(self.trial) {
            return false;
        }
        let profile = cell.dut.adapter.profile();
        let suite = profile.carrier.map(|carrier| carrier.suite.name());
        // A maker's own format has no suite, and forwards nothing in clear.
        let is_unknown = suite.is_none() && profile.encrypts();
        if is_unknown || suite.map(str::to_owned) != self.suite {
            return false;
        }
        match &cell.measurement {
            Measurement::Frames(test) => {
                let mix = &test.traffic.frames.mix.name;
                self.mix.as_ref().is_none_or(|own| own == mix)
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_is_read_and_names_operations_that_there_are() {
        for (name, text) in NAMES {
            let reference = parse(text);
            assert!(!reference.table.is_empty() || !reference.figure.is_empty());
            for table in &reference.table {
                for (operation, figures) in &table.figures {
                    assert!(
                        operation::Operation::parse(operation).is_ok(),
                        "{operation}"
                    );
                    assert_eq!(figures.len(), table.bytes.len(), "{name}: {operation}");
                }
            }
            for figure in &reference.figure {
                let operation = figure.operation.iter();
                for operation in operation {
                    assert!(
                        operation::Operation::parse(operation).is_ok(),
                        "{operation}"
                    );
                }
                if let Some(mix) = &figure.mix {
                    assert!(wire::mix::FrameMix::named(mix).is_some(), "{mix}");
                }
                let counts = figure.counts.is_some();
                assert_eq!(
                    counts,
                    matches!(figure.trial, Trial::Tcp | Trial::Throughput),
                    "{name}: a rate of traffic, and nothing else, says what it counts: {}",
                    figure.in_words()
                );
            }
        }
    }
}
