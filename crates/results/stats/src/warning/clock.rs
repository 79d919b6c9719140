//! Warnings about the system's clock.

use super::{Warning, WarningKind, counted, warning};
use journal::Journal;
use std::collections::BTreeMap;
use units::human::duration_ns;

/// Cells that the warning describes one by one.
const DESCRIBED: usize = 3;

/// The clock was set during trials that count, with any outcome.
pub(super) fn stepped(journal: &Journal) -> Option<Warning> {
    let latest = journal.latest_trials().into_values();
    let mut steps: BTreeMap<&str, (i64, u32)> = BTreeMap::new();
    for trial in latest.filter(|trial| trial.clock_step_ns != 0) {
        let step = (trial.clock_step_ns, trial.repeat);
        let worst = steps.entry(&trial.cell).or_insert(step);
        // By size: a step back is as bad as one forward.
        if step.0.unsigned_abs() > worst.0.unsigned_abs() {
            *worst = step;
        }
    }
    steps.first_key_value()?;
    let words = steps.iter().take(DESCRIBED);
    let words = words.map(|(cell, (step_ns, repeat))| {
        let direction = if *step_ns > 0 { "forward" } else { "back" };
        let step = duration_ns(step_ns.unsigned_abs() as f64);
        format!("`{cell}`, repeat {repeat}: {step} {direction}")
    });
    let mut words = words.collect::<Vec<_>>().join("; ");
    if steps.len() > DESCRIBED {
        words += &format!("; and {} more", counted(steps.len() - DESCRIBED, "cell"));
    }
    let text = format!(
        "In {} the system's clock was set during a trial: {words}.",
        counted(steps.len(), "cell")
    );
    let advice = "Figures rest on a clock that cannot be set, but times of day, the course of a soak and \
                  what a tool reads of the time of day (ping, iperf2) do not: let nothing set the \
                  clock during a run, and measure again.";
    warning(
        WarningKind::ClockStepped,
        steps.into_keys().map(str::to_owned).collect(),
        text,
        advice,
    )
}
