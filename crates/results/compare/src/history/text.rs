//! A history for a terminal.

use super::{Course, History, Series, Turn};
use crate::Difference;
use crate::changes::in_words;
use guard::visible;
use std::fmt::Write;
use units::human::counted;

/// Differences that are listed with a change.
const DIFFERENCES_MAX: usize = 8;
/// Steps of a course in characters, from the lowest to the highest.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Characters of a course, which has the last runs.
const COURSE_MAX: usize = 40;
/// Text for a change of a figure without any other recorded change.
pub(super) const NOTHING_ELSE: &str =
    "nothing that is recorded of lab, machine, program and settings changed here";
/// The states that are listed with all changes, and their titles.
pub(super) const LISTED: [(Course, &str); 3] = [
    (Course::Worse, "Worse since a run"),
    (Course::Unusual, "Unusual in the last run"),
    (Course::Better, "Better since a run"),
];

/// Returns the history as text: the answer, each series with a change, the others in a line each,
/// the runs.
#[must_use]
pub fn history_text(history: &History) -> String {
    let mut text = format!("{}\n", visible(&history.answer()));
    for (state, title) in LISTED {
        let all: Vec<&Series> = history.of(state).collect();
        if all.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{title} ({})", all.len());
        for series in all {
            listed(&mut text, history, series);
        }
    }
    let steady: Vec<&Series> = history.of(Course::Steady).collect();
    if !steady.is_empty() {
        let _ = writeln!(text, "\nWithout a change ({})", steady.len());
        for series in steady {
            let _ = writeln!(text, "  {}  {}", visible(&series.title()), series.course());
        }
    }
    let short = history.of(Course::TooShort).count() as u64;
    if short > 0 {
        let _ = writeln!(text, "\n{}", too_short(short));
    }
    text.push_str("\nRuns, the oldest first\n");
    for (at, run) in history.runs.iter().enumerate() {
        let _ = writeln!(
            text,
            "  {:>3}  {}  {}: {}, {}",
            at + 1,
            run.started_utc,
            visible(&run.name),
            visible(&run.campaign),
            visible(&run.program)
        );
    }
    let _ = writeln!(text, "\n{}", history.method());
    text
}

fn listed(text: &mut String, history: &History, series: &Series) {
    let _ = writeln!(text, "  {}  {}", visible(&series.title()), series.course());
    for turn in &series.turns {
        let _ = writeln!(
            text,
            "    {}",
            visible(&series.turn_in_words(history, turn))
        );
        for difference in turn.differences.iter().take(DIFFERENCES_MAX) {
            let _ = writeln!(text, "      {}", visible(&difference_in_words(difference)));
        }
        let more = turn.differences.len().saturating_sub(DIFFERENCES_MAX) as u64;
        if more > 0 {
            let _ = writeln!(text, "      … and {more} more (`--json`)");
        }
        if turn.differences.is_empty() {
            let _ = writeln!(text, "      {NOTHING_ELSE}");
        }
        if let Some(command) = &turn.bisect {
            let _ = writeln!(text, "      to find the commit: {}", visible(command));
        }
    }
    if let Some(words) = series.unusual_in_words() {
        let _ = writeln!(text, "    {words}");
    }
}

pub(super) fn difference_in_words(difference: &Difference) -> String {
    let shown = |value: &str| match value {
        "" => "nothing".to_owned(),
        value => value.to_owned(),
    };
    format!(
        "{}: {} → {}",
        difference.what,
        shown(&difference.base),
        shown(&difference.other)
    )
}

/// How many figures are in too few runs.
pub(super) fn too_short(count: u64) -> String {
    let figures = counted(count, "figure");
    let verb = if count == 1 { "is" } else { "are" };
    format!("{figures} {verb} in fewer than 4 runs of one campaign, too few to find a change.")
}

impl History {
    /// The series in a state, in order.
    pub(super) fn of(&self, state: Course) -> impl Iterator<Item = &Series> {
        self.series
            .iter()
            .filter(move |series| series.state == state)
    }

    /// The history in a sentence.
    pub(super) fn answer(&self) -> String {
        let runs = counted(self.runs.len() as u64, "run");
        let states = [
            (Course::Worse, "worse since a run"),
            (Course::Unusual, "unusual in the last run"),
            (Course::Better, "better since a run"),
            (Course::Steady, "without a change"),
            (Course::TooShort, "in too few runs"),
        ];
        let counts: Vec<String> = states
            .into_iter()
            .map(|(state, words)| (self.of(state).count(), words))
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{count} {words}"))
            .collect();
        if counts.is_empty() {
            return format!("{runs} without a figure.");
        }
        let figures = counted(self.series.len() as u64, "figure");
        format!("{figures} over {runs}: {}.", counts.join(", "))
    }

    /// How changes are found.
    pub(super) fn method(&self) -> String {
        let chance = self.alpha * 100.0;
        format!(
            "A change lasts for two runs at least, and its interval and the scatter within all parts exclude no change; each \
             run counts as one value. Intervals are simultaneous over all figures (one misses with a probability of \
             {chance:.2} %); of 1000 simulated histories of 9 runs without a change 27 showed one."
        )
    }
}

impl Series {
    /// Cell and quantity.
    pub(super) fn title(&self) -> String {
        let quantity = in_words(self.quantity, self.load_percent);
        format!("{} {quantity}", self.cell)
    }

    /// Its values as a row of bars from the lowest to the highest, and the last value.
    fn course(&self) -> String {
        let values: Vec<f64> = self.points.iter().map(|point| point.value).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let bar = |value: &f64| {
            let share = if high > low {
                (value - low) / (high - low)
            } else {
                0.5
            };
            STEPS[(share * (STEPS.len() - 1) as f64).round() as usize]
        };
        let from = values.len().saturating_sub(COURSE_MAX);
        let bars: String = values[from..].iter().map(bar).collect();
        let last = values.last().map(|last| self.quantity.print(*last));
        format!("{bars}  {}", last.unwrap_or_default())
    }

    /// A change: its direction, the values around it, its size with the interval, and its run.
    pub(super) fn turn_in_words(&self, history: &History, turn: &Turn) -> String {
        let shift = &turn.shift;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let run = &history.runs[self.points[shift.at].run];
        format!(
            "{}: {} → {} ({:+.1} %, {:+.1} to {:+.1} %) from {} on",
            if turn.is_better { "better" } else { "worse" },
            self.quantity.print(shift.before),
            self.quantity.print(shift.after),
            percent(shift.ratio),
            percent(shift.low),
            percent(shift.high),
            run.name,
        )
    }

    /// The last run, if it is unusual.
    pub(super) fn unusual_in_words(&self) -> Option<String> {
        let found = self.unusual?;
        Some(format!(
            "the last run is {} than expected: {}; the runs before it make {} to {} likely. Another run decides.",
            if found.is_better { "better" } else { "worse" },
            self.quantity.print(found.value),
            self.quantity.print(found.low),
            self.quantity.print(found.high),
        ))
    }
}
