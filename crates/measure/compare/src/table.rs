//! What texts and Markdown print of a comparison, row by row.

use crate::{CellChange, Comparison, Direction, Outcome};

/// The directions with their titles, in the order of importance.
pub(crate) const DIRECTIONS: [(Direction, &str); 4] = [
    (Direction::Regression, "Regressions"),
    (Direction::Improvement, "Improvements"),
    (Direction::Undecided, "Undecided"),
    (Direction::Unchanged, "No change"),
];

impl CellChange {
    /// The change with its interval: `-6.2 % (-8.1 to -4.2 %)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let change = percent(self.ratio);
        match self.interval() {
            Some((low, high)) => format!("{change} % ({} to {} %)", percent(low), percent(high)),
            None => format!("{change} % (unknown scatter)"),
        }
    }

    /// Cell, quantity, both means, change.
    pub(crate) fn row(&self) -> [String; 4] {
        let cell = match &self.other_cell {
            None => self.cell.clone(),
            Some(other) => format!("{} → {other}", self.cell),
        };
        let means = [self.base, self.other].map(|value| self.quantity.print(value));
        [
            cell,
            self.quantity_in_words(),
            means.join(" → "),
            self.in_words(),
        ]
    }
}

/// The change in per cent: `+1.2`, `-12`, `0.0`.
pub(crate) fn percent(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    let decimals = if percent.abs() < 9.95 { 1 } else { 0 };
    let text = format!("{percent:+.decimals$}");
    match text.as_str() {
        "+0.0" | "-0.0" => "0.0".to_owned(),
        _ => text,
    }
}

/// The changes of one direction.
pub(crate) fn of_direction(
    changes: &[CellChange],
    direction: Direction,
) -> impl Iterator<Item = &CellChange> {
    changes
        .iter()
        .filter(move |change| change.direction == direction)
}

impl Comparison {
    /// What the intervals are, as a sentence.
    pub(crate) fn method(&self) -> String {
        let count = self.intervals;
        format!(
            "Intervals are of ratios, simultaneous over {}: the chance that any misses is at most 5 % (Šidák).",
            units::human::counted(count as u64, "comparison")
        )
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
        let gates = units::human::counted(self.gates.len() as u64, "gate");
        format!("{gates}: {}", counts.join(", "))
    }
}

/// Only the first rows of long lists are printed; JSON has all.
pub(crate) const ROWS_MAX: usize = 50;

/// `title (3)`, or `title (first 50 of 400)`.
pub(crate) fn counted_title(title: &str, count: usize) -> String {
    match count > ROWS_MAX {
        true => format!("{title} (first {ROWS_MAX} of {count})"),
        false => format!("{title} ({count})"),
    }
}
