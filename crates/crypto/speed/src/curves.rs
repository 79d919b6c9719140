//! Curves of engines and their crossovers, as text and as charts.

use crate::chart::{Chart, Series};
use crate::insecure::{self, engine_name, suite_name};
use crate::table::Table;
use dispatch::{Curve, Direction, Dispatch, EngineCurves, Load, Turn};
use serde::Serialize;
use units::human;
use wire::Suite;
use wire::overhead::esp_bytes;

/// Batch sizes with a reported fastest engine.
const BATCHES: [u64; 3] = [1, 8, 32];
/// The batch that is charted.
const BATCH_CHARTED: u64 = 32;

/// The cost curves of all engines for a suite.
#[derive(Serialize)]
pub(crate) struct SuiteCurves {
    suite: Suite,
    /// Why the suite must not protect data.
    #[serde(skip_serializing_if = "Option::is_none")]
    insecure: Option<&'static str>,
    engines: Vec<EngineCurves>,
    /// The fastest engine by packet length.
    turns: Vec<Turns>,
}

/// The fastest engines in a direction, for one batch size.
#[derive(Serialize)]
struct Turns {
    direction: Direction,
    batch: u64,
    turns: Vec<Turn>,
}

impl SuiteCurves {
    pub(crate) fn of(dispatch: &Dispatch) -> Self {
        // Single packets have no batches.
        let batches = |direction| match direction {
            Direction::SealFrom => &BATCHES[..1],
            Direction::Seal | Direction::Open => &BATCHES,
        };
        let turns = |direction: Direction, batch: u64| Turns {
            direction,
            batch,
            turns: dispatch.turns(direction, batch),
        };
        let (suite, engines) = (dispatch.suite(), dispatch.curves().to_vec());
        Self {
            suite,
            insecure: engines
                .iter()
                .find_map(|it| insecure::reason(suite, &it.engine)),
            engines,
            turns: Direction::ALL
                .into_iter()
                .flat_map(|direction| {
                    batches(direction)
                        .iter()
                        .map(move |&batch| (direction, batch))
                })
                .map(|(direction, batch)| turns(direction, batch))
                .collect(),
        }
    }

    /// The measured suites and engines.
    pub(crate) fn measured(&self) -> impl Iterator<Item = (Suite, &str)> {
        self.engines
            .iter()
            .map(|engine| (self.suite, engine.engine.as_str()))
    }

    /// Two tables: the cost of each engine, and the fastest engines.
    pub(crate) fn text(&self, width: usize) -> String {
        self.costs(width) + "\n" + &self.winners(width)
    }

    fn costs(&self, width: usize) -> String {
        let head = [
            "engine",
            "direction",
            "per batch",
            "per packet",
            "per byte",
            "per byte of the longest",
            "farthest point",
        ];
        let title = format!("{}, cost of a batch in ns", suite_name(self.suite));
        let mut table = Table::new(title, head.map(str::to_owned).to_vec(), 2);
        for engine in &self.engines {
            for direction in Direction::ALL {
                let fit = engine.of(direction);
                let Curve {
                    per_batch_ps,
                    per_packet_ps,
                    per_byte_ps,
                    per_longest_byte_ps,
                } = fit.curve;
                let ns = |ps: u64| human::number(ps as f64 / 1e3);
                table.push(vec![
                    engine_name(&engine.engine),
                    direction.name().to_owned(),
                    ns(per_batch_ps),
                    ns(per_packet_ps),
                    ns(per_byte_ps),
                    ns(per_longest_byte_ps),
                    format!("{:.0} % off", fit.deviation() * 100.0),
                ]);
            }
        }
        table.text(width)
    }

    fn winners(&self, width: usize) -> String {
        let suite = suite_name(self.suite);
        let title = format!("{suite}, the engine by length of the inner packets");
        let head = ["direction", "batch", "engine"].map(str::to_owned).to_vec();
        let mut table = Table::new(title, head, 3);
        for turns in &self.turns {
            table.push(vec![
                turns.direction.name().to_owned(),
                turns.batch.to_string(),
                turns.in_words(),
            ]);
        }
        table.text(width)
    }

    /// One chart per direction: lines are predictions, dots are measurements.
    pub(crate) fn charts(&self) -> [Chart; 3] {
        Direction::ALL.map(|direction| self.chart(direction))
    }

    fn chart(&self, direction: Direction) -> Chart {
        let packets = match direction {
            Direction::SealFrom => 1,
            Direction::Seal | Direction::Open => BATCH_CHARTED,
        };
        let series = self.engines.iter().map(|engine| {
            let fit = engine.of(direction);
            let ns = |ps: u64| ps as f64 / 1e3 / packets as f64;
            // Fine steps, since a straight line is curved on logarithmic axes.
            let lengths = (0..=56).map(|step| (64.0 * (f64::from(step) / 8.0).exp2()) as usize);
            let point = |inner_bytes: usize| {
                let load = Load::uniform(packets, esp_bytes(self.suite, inner_bytes) as u64);
                (inner_bytes as f64, ns(fit.curve.predict_ps(load)))
            };
            // Measurements count ESP packets, the axis inner ones. All measured lengths are
            // multiples of 16, and so have the padding of 64 B.
            let overhead = (esp_bytes(self.suite, 64) - 64) as f64;
            let measured = fit
                .points
                .iter()
                .filter(|point| point.load.packets == packets);
            Series {
                name: engine_name(&engine.engine),
                points: lengths.map(point).collect(),
                dots: measured
                    .map(|it| (it.load.longest_bytes as f64 - overhead, ns(it.measured_ps)))
                    .collect(),
            }
        });
        let suite = suite_name(self.suite);
        Chart {
            title: match direction {
                Direction::SealFrom => format!("{suite}, seal-from"),
                _ => format!("{suite}, {} in batches of {packets}", direction.name()),
            },
            unit: "ns per packet",
            series: series.collect(),
            marks: self.crossovers(direction),
        }
    }

    /// Lengths from which another engine wins in a direction, with the largest reported batch.
    fn crossovers(&self, direction: Direction) -> Vec<usize> {
        let crossovers = self
            .turns
            .iter()
            // The last is the largest batch.
            .rev()
            .find(|turns| turns.direction == direction);
        let turns = crossovers.map_or(&[][..], |crossovers| &crossovers.turns);
        turns
            .iter()
            .skip(1)
            .map(|turn| turn.from_inner_bytes)
            .collect()
    }
}

impl Turns {
    /// `one-engine below 96 B, another`.
    fn in_words(&self) -> String {
        let mut later = self.turns.iter().skip(1);
        let word = |turn: &Turn| match later.next() {
            Some(next) => format!(
                "{} below {} B",
                engine_name(&turn.engine),
                next.from_inner_bytes
            ),
            None => engine_name(&turn.engine),
        };
        self.turns.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot;
    use dispatch::Fit;

    /// An engine with these times per packet and per byte in every direction.
    fn engine(name: &str, per_packet_ps: u64, per_byte_ps: u64) -> EngineCurves {
        let fit = || Fit {
            curve: Curve {
                per_packet_ps,
                per_byte_ps,
                ..Curve::default()
            },
            points: Vec::new(),
        };
        EngineCurves {
            engine: name.to_owned(),
            seal: fit(),
            seal_from: fit(),
            open: fit(),
        }
    }

    #[test]
    fn every_suite_is_charted_within_72_columns() {
        for suite in Suite::ALL {
            let curves = SuiteCurves {
                suite,
                insecure: suite.insecure(),
                engines: vec![
                    engine("ipsec-mb", 20_000, 60),
                    engine("aws-lc", 90_000, 900),
                    engine("rustcrypto", 0, 31_000),
                    engine("null", 100, 0),
                ],
                turns: vec![Turns {
                    direction: Direction::Open,
                    batch: BATCH_CHARTED,
                    turns: [(20, "aws-lc"), (1000, "ipsec-mb")]
                        .map(|(from_inner_bytes, engine)| Turn {
                            from_inner_bytes,
                            engine: engine.to_owned(),
                        })
                        .into(),
                }],
            };
            for chart in curves.charts() {
                let text = plot::draw(&chart);
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(72), "{text}");
                assert_eq!(text.contains('^'), text.contains(", open"), "{text}");
                let named = text.contains("(insecure), ");
                assert_eq!(named, suite.insecure().is_some(), "{text}");
                assert!(text.contains("n null (insecure)"), "{text}");
            }
        }
    }
}
