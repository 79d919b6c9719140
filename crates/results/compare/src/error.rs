//! Why runs cannot be compared.

use crate::cells::devices;
use crate::{Options, Run, gate};
use yaml::names;

/// Why runs cannot be compared. The texts name the problem, its place and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The same run, or a copy of it, is given twice.
    #[error(
        "{first} and {second} are the same run: both began at {started_utc} with the same plan\nhelp: \
             give another run; to compare two devices of one run: cipherbench compare {first} --match \
             OLD=NEW"
    )]
    SameRun {
        /// First place it was given.
        first: String,
        /// Second place it was given.
        second: String,
        /// Start of the run, ISO 8601.
        started_utc: String,
    },
    /// A single run, and no devices to compare.
    #[error(
        "{run} is the only run, and no devices are given to compare in it\nhelp: give a second run, or \
             `--match OLD=NEW` with two of its devices: {devices}; gates on figures alone need neither"
    )]
    OneRun {
        /// The run.
        run: String,
        /// Its devices.
        devices: String,
    },
    /// No run is given.
    #[error("no run is given\nhelp: give the folders of two runs")]
    NoRun,
    /// A history of fewer than two runs.
    #[error(
        "a history needs at least two runs, and shows changes from four on\nhelp: give the folders of runs"
    )]
    TooFewRuns,
    /// A match that names no pair of devices of these runs.
    #[error(
        "`--match {given}`: {problem}\nhelp: {hint}it is OLD=NEW, a device of the first run and one of the \
             other; {run} has {devices}"
    )]
    NoSuchDevice {
        /// The match as given.
        given: String,
        /// Why it does not match.
        problem: String,
        /// The run that lacks the device.
        run: String,
        /// The device that was most likely meant, as a question, or nothing.
        hint: String,
        /// Its devices.
        devices: String,
    },
}

pub(crate) fn check(runs: &[Run<'_>], options: &Options) -> Result<(), CompareError> {
    let base = runs.first().ok_or(CompareError::NoRun)?;
    let is_alone = runs.len() == 1 && options.matches.is_empty();
    if is_alone && !gate::are_of_figures(&options.gates) {
        return Err(CompareError::OneRun {
            run: base.name.to_owned(),
            devices: listed(base),
        });
    }
    check_distinct(runs)?;
    let others = match runs.len() {
        1 => runs,
        _ => &runs[1..],
    };
    // A match must hold in each run, or the cells of one would be missing silently.
    for other in others {
        for given in &options.matches {
            check_match(given, base, other)?;
        }
    }
    Ok(())
}

/// Checks the runs of a history.
pub(crate) fn check_series(runs: &[Run<'_>]) -> Result<(), CompareError> {
    match runs {
        [] | [_] => Err(CompareError::TooFewRuns),
        runs => check_distinct(runs),
    }
}

fn check_distinct(runs: &[Run<'_>]) -> Result<(), CompareError> {
    for (place, second) in runs.iter().enumerate() {
        let header = &second.journal.header;
        // By header and not by folder: a copy of a run would show no change of anything.
        let same = |first: &&Run<'_>| first.journal.header == *header;
        if let Some(first) = runs[..place].iter().find(same) {
            return Err(CompareError::SameRun {
                first: first.name.to_owned(),
                second: second.name.to_owned(),
                started_utc: journal::time::utc(header.started_unix_ns),
            });
        }
    }
    Ok(())
}

fn check_match(given: &crate::Match, base: &Run<'_>, other: &Run<'_>) -> Result<(), CompareError> {
    let has = |run: &Run<'_>, name: &str| devices(run.journal).any(|known| known == name);
    let lacks = |run: &Run<'_>, name: &str| {
        let hint = names::question(names::nearest(name, devices(run.journal)));
        (format!("{} has no device `{name}`", run.name), hint)
    };
    let ((problem, hint), run) = match (has(base, &given.old), has(other, &given.new)) {
        (false, _) => (lacks(base, &given.old), base),
        (_, false) => (lacks(other, &given.new), other),
        _ if given.old == given.new && base.name == other.name => {
            let problem = "a device cannot be compared with itself".to_owned();
            ((problem, String::new()), base)
        }
        _ => return Ok(()),
    };
    Err(CompareError::NoSuchDevice {
        given: given.to_string(),
        problem,
        run: run.name.to_owned(),
        hint,
        devices: listed(run),
    })
}

fn listed(run: &Run<'_>) -> String {
    // A device has a cell for each setting, and is named once.
    let mut names: Vec<&str> = Vec::new();
    for name in devices(run.journal) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
