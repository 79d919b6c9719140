//! Curves of engines, and where they take turns, in words.

use super::table::Table;
use dispatch::{Curve, Direction, Dispatch, EngineCurves};
use serde::Serialize;
use units::human;
use wire::Suite;

/// Batches for which it is told who wins.
const BATCHES: [u64; 3] = [1, 8, 32];

/// What engines cost for a suite.
#[derive(Serialize)]
pub(super) struct SuiteCurves {
    pub(super) suite: Suite,
    pub(super) engines: Vec<EngineCurves>,
    /// Who wins where.
    turns: Vec<Turns>,
}

/// Who wins in a direction, with batches of a size.
#[derive(Serialize)]
struct Turns {
    direction: Direction,
    batch: u64,
    turns: Vec<Turn>,
}

#[derive(Serialize)]
struct Turn {
    from_inner_bytes: usize,
    engine: String,
}

impl SuiteCurves {
    pub(super) fn of(dispatch: &Dispatch) -> Self {
        let batches = |direction| match direction {
            Direction::SealFrom => &BATCHES[..1],
            Direction::Seal | Direction::Open => &BATCHES,
        };
        let turns = |direction: Direction, batch: u64| Turns {
            direction,
            batch,
            turns: dispatch
                .turns(direction, batch)
                .into_iter()
                .map(|turn| Turn {
                    from_inner_bytes: turn.from_inner_bytes,
                    engine: turn.engine,
                })
                .collect(),
        };
        Self {
            suite: dispatch.suite(),
            engines: dispatch.curves().to_vec(),
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

    /// Two tables: what each engine costs, and who wins.
    pub(super) fn text(&self) -> String {
        self.costs() + "\n" + &self.winners()
    }

    fn costs(&self) -> String {
        let head = [
            "engine",
            "direction",
            "per batch",
            "per packet",
            "per byte",
            "per byte of the longest",
            "farthest point",
        ];
        let title = format!("{}, what a batch costs in ns", self.suite);
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
                    engine.engine.clone(),
                    direction.name().to_owned(),
                    ns(per_batch_ps),
                    ns(per_packet_ps),
                    ns(per_byte_ps),
                    ns(per_longest_byte_ps),
                    format!("{:.0} % off", fit.deviation() * 100.0),
                ]);
            }
        }
        table.text()
    }

    fn winners(&self) -> String {
        let title = format!("{}, the engine by length of the inner packets", self.suite);
        let head = ["direction", "batch", "engine"].map(str::to_owned).to_vec();
        let mut table = Table::new(title, head, 3);
        for turns in &self.turns {
            table.push(vec![
                turns.direction.name().to_owned(),
                turns.batch.to_string(),
                turns.in_words(),
            ]);
        }
        table.text()
    }

    /// Lengths at which the winner changes in a direction, with the largest batch that is told.
    pub(super) fn crossovers(&self, direction: Direction) -> Vec<usize> {
        let told = self
            .turns
            .iter()
            .rev()
            .find(|turns| turns.direction == direction);
        let turns = told.map_or(&[][..], |told| &told.turns);
        turns
            .iter()
            .skip(1)
            .map(|turn| turn.from_inner_bytes)
            .collect()
    }
}

impl Turns {
    /// `rustcrypto below 96 B, ipsec-mb`.
    fn in_words(&self) -> String {
        let ends = self
            .turns
            .iter()
            .skip(1)
            .map(|next| Some(next.from_inner_bytes));
        let word = |(turn, end): (&Turn, Option<usize>)| match end {
            Some(end) => format!("{} below {end} B", turn.engine),
            None => turn.engine.clone(),
        };
        let words: Vec<_> = self
            .turns
            .iter()
            .zip(ends.chain([None]))
            .map(word)
            .collect();
        words.join(", ")
    }
}
