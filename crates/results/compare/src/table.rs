//! The rows of a comparison that text and Markdown share.

use crate::changes::in_words;
use crate::{CellChange, Comparison, Direction, Outcome, RunPair, WithoutRatio};
use stats::{INTERVAL_MIN_REPEATS, Needed, REPEATS_MAX};
use units::human::counted;

/// The directions in the order of importance.
pub(crate) const DIRECTIONS: [Direction; 4] = [
    Direction::Regression,
    Direction::Improvement,
    Direction::Undecided,
    Direction::Unchanged,
];

impl CellChange {
    /// Returns the change with its interval: `-6.2 % (-8.1 to -4.2 %)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        self.in_words_at(None)
    }

    /// Cell, quantity, both geometric means, change. A mean of some repeats states their number.
    pub(crate) fn row(&self) -> [String; 4] {
        let mean = |value: &str, repeats, planned| {
            if repeats < planned {
                format!("{value} [{repeats} of {planned}]")
            } else {
                value.to_owned()
            }
        };
        let means = self
            .quantity
            .print_pair([self.base, self.other], self.digits());
        let [base, other] = &means.numbers;
        let base = mean(base, self.base_repeats, self.base_planned);
        let other = mean(other, self.other_repeats, self.other_planned);
        [
            self.cell_in_words(),
            self.quantity_in_words(),
            format!("{base} → {other} {}", means.unit)
                .trim_end()
                .to_owned(),
            self.in_words(),
        ]
    }

    /// The same row with the number of repeats that would decide. The outcome of a gate on it
    /// already states that for the gate's bound, and a second number would contradict it.
    fn undecided_row(&self, margin_percent: f64, is_gated: bool) -> Vec<String> {
        let mut row = self.row().to_vec();
        if is_gated {
            row.push("as its gate states".to_owned());
            return row;
        }
        // The interval is too wide because repeats are missing: the remedy is to measure these, and
        // not to plan more.
        let is_partly =
            self.base_repeats < self.base_planned || self.other_repeats < self.other_planned;
        row.push(match self.needed_within(margin_percent) {
            Needed::Repeats(_) | Needed::Scatter if is_partly => {
                "first measure the repeats that are missing (see the doubts)".to_owned()
            }
            Needed::Repeats(repeats) => {
                format!("about {repeats} repeats would decide (`run CAMPAIGN --repeats {repeats}`)")
            }
            Needed::Scatter if self.base_repeats.min(self.other_repeats) < INTERVAL_MIN_REPEATS => {
                "one repeat shows no scatter: `run CAMPAIGN --repeats 5`".to_owned()
            }
            Needed::Scatter => "equal repeats show no scatter: longer trials".to_owned(),
            Needed::NarrowerSearches => {
                "no number of repeats would decide: narrower searches (`width`)".to_owned()
            }
            Needed::UpperBound => {
                "a search found no upper bound: raise its `max_load` or `timeout`".to_owned()
            }
            Needed::TooNear => format!("more than {REPEATS_MAX} repeats would be needed"),
        });
        row
    }

    /// `tcp/x`; if the other cell's id differs, also its differing part: `tcp/x → y`.
    fn cell_in_words(&self) -> String {
        let Some(other) = &self.other_cell else {
            return self.cell.clone();
        };
        // The longest common beginning that ends with a slash, so that whole parts of the id are
        // printed.
        let slashes = self.cell.match_indices('/').map(|(at, _)| at + 1);
        let mut ends = slashes.rev();
        let same = ends.find(|&end| other.get(..end) == self.cell.get(..end));
        let common = same.unwrap_or(0);
        format!("{} → {}", self.cell, &other[common..])
    }
}

impl WithoutRatio {
    /// Cell, quantity, reason and remedy.
    pub(crate) fn row(&self) -> Vec<String> {
        let quantity = in_words(self.quantity, self.load_percent);
        let reason = format!("{}; {}", self.reason, self.help);
        vec![self.cell.clone(), quantity, reason]
    }
}

/// Title of the quantities of compared cells that have no ratio.
pub(crate) const WITHOUT_RATIO: &str = "Quantities that cannot be compared";

/// The changes of one direction.
fn of_direction(changes: &[CellChange], direction: Direction) -> impl Iterator<Item = &CellChange> {
    changes
        .iter()
        .filter(move |change| change.direction == direction)
}

impl Comparison {
    /// The rows of one direction; undecided changes have a column more, with the repeats that would
    /// decide.
    pub(crate) fn rows(&self, pair: &RunPair, direction: Direction) -> Vec<Vec<String>> {
        let row = |change: &CellChange| match direction {
            Direction::Undecided => {
                let is_gated = self.is_undecided_by_a_gate(pair.run, change);
                change.undecided_row(self.margin_percent, is_gated)
            }
            _ => change.row().to_vec(),
        };
        of_direction(&pair.changes, direction).map(row).collect()
    }

    fn is_undecided_by_a_gate(&self, run: usize, change: &CellChange) -> bool {
        let quantity = change.quantity_in_words();
        // A gate on the figures of each run has another question.
        let gates = self.gates.iter().filter(|gate| !gate.is_of_figures);
        let cells = gates.flat_map(|gate| &gate.cells);
        let own = cells.filter(|it| it.run == run && it.cell == change.cell);
        own.filter(|it| it.quantity == quantity)
            .any(|it| it.outcome == Outcome::Undecided)
    }
}

/// Headings of a table of changes.
pub(crate) const HEADINGS: [&str; 5] = [
    "Cell",
    "Quantity",
    "Geometric means",
    "Ratio - 1 (interval)",
    "To decide",
];

impl Comparison {
    /// Returns the result of a run in one sentence.
    pub(crate) fn answer(&self, pair: &RunPair) -> String {
        let count = |direction| of_direction(&pair.changes, direction).count() as u64;
        let (worse, better) = (count(Direction::Regression), count(Direction::Improvement));
        let (open, same) = (count(Direction::Undecided), count(Direction::Unchanged));
        let what = match pair.run {
            0 => format!("Devices within {}", self.runs[0].name),
            run => format!(
                "{} compared with {}",
                self.runs[run].name, self.runs[0].name
            ),
        };
        if pair.changes.is_empty() {
            return format!("{what}: no cell can be compared.");
        }
        let mut parts = Vec::new();
        if worse > 0 {
            parts.push(counted(worse, "regression"));
        }
        if better > 0 {
            parts.push(counted(better, "improvement"));
        }
        if same > 0 {
            parts.push(format!(
                "{same} without a change beyond {} %",
                self.margin_percent
            ));
        }
        if open > 0 {
            parts.push(format!("{open} undecided"));
        }
        let all = counted(pair.changes.len() as u64, "quantity");
        // `counted` forms plurals by an `s`.
        let all = all.replace("quantitys", "quantities");
        format!("{what}, {all}: {}.", parts.join(", "))
    }

    /// Returns the title of the changes of one direction, and its explanation.
    pub(crate) fn title(&self, direction: Direction) -> (String, Option<String>) {
        let margin = self.margin_percent;
        match direction {
            Direction::Regression => ("Regressions".to_owned(), None),
            Direction::Improvement => ("Improvements".to_owned(), None),
            Direction::Undecided => (
                "Undecided".to_owned(),
                Some(format!(
                    "no change (0 %) and changes beyond {margin} % are both possible; a change outside the interval is excluded; \
                     repeats are for {margin} %"
                )),
            ),
            Direction::Unchanged => (
                format!("No change beyond {margin} %"),
                Some("a change outside the interval is excluded".to_owned()),
            ),
        }
    }

    /// Explains the figures and intervals in sentences.
    pub(crate) fn method(&self) -> String {
        let changes = || self.pairs.iter().flat_map(|pair| &pair.changes);
        let mut text = String::from(
            "The change is the ratio of the two geometric means less 1; means in a report are arithmetic ones, and \
             differ a little.",
        );
        if changes().any(|change| change.paired) {
            text.push_str(
                " Both means are of the repeats that both devices have, which form pairs.",
            );
        }
        if changes().any(|change| change.ranked && change.low.is_some()) {
            text.push_str(
                " Intervals of quantities by which the report ranks these devices are at the level of the ranking (5 % over \
                 all pairs of devices by one quantity, Holm), so that both find the same.",
            );
        }
        if self.intervals > 0 {
            let others = if changes().any(|change| change.ranked) {
                "other intervals"
            } else {
                "intervals"
            };
            text.push_str(&format!(
                " The {others} are simultaneous over {}: the chance that any misses is at most 5 % (Šidák).",
                counted(self.intervals as u64, "comparison")
            ));
        }
        text
    }

    /// The outcome of all gates, with counts: `2 gates: 1 violated, 1 undecided`.
    pub(crate) fn gates_in_words(&self) -> String {
        let count = |outcome| {
            self.gates
                .iter()
                .filter(|gate| gate.outcome == outcome)
                .count()
        };
        let outcomes = [Outcome::Violated, Outcome::Undecided, Outcome::Passed];
        let counts = outcomes.map(|outcome| (count(outcome), outcome.name()));
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        let gates = counted(self.gates.len() as u64, "gate");
        format!("{gates}: {}", counts.join(", "))
    }
}

/// Rows of a long list that are printed; JSON has all.
pub(crate) const ROWS_MAX: usize = 50;

/// `title (3)`, or `title (first 50 of 400)`.
pub(crate) fn counted_title(title: &str, count: usize) -> String {
    if count > ROWS_MAX {
        format!("{title} (first {ROWS_MAX} of {count})")
    } else {
        format!("{title} ({count})")
    }
}
