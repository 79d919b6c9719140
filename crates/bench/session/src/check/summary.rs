//! The result of a check of many files: a line for each good one, and what several have in common
//! once.

use super::{Checked, Refused};
use crate::{kernel, programs, sysctls};
use std::path::{Path, PathBuf};
use units::human::counted;

/// If more files than this have mistakes, each shows its first one only.
const WHOLE_MAX: usize = 4;
/// Checks of at least this many files end with their number.
const COUNTED_FROM: usize = 5;

/// The texts of a check.
#[derive(Debug)]
pub struct CheckSummary {
    /// A line for each file without mistakes.
    pub good: String,
    /// Warnings, notes and mistakes.
    pub bad: String,
    /// Whether a file has a mistake.
    pub is_refused: bool,
}

/// Returns the texts of checked files, in their order.
#[must_use]
pub fn check_summary(paths: &[PathBuf], checked: &[Result<Checked, Refused>]) -> CheckSummary {
    let all = || paths.iter().map(PathBuf::as_path).zip(checked);
    let good: Vec<(&Path, &Checked)> = all()
        .filter_map(|(path, found)| Some((path, found.as_ref().ok()?)))
        .collect();
    let refused: Vec<&Refused> = all()
        .filter_map(|(_, found)| found.as_ref().err())
        .collect();
    let mut bad = warnings(&good);
    for found in &refused {
        let text = if refused.len() > WHOLE_MAX {
            &found.short
        } else {
            &found.whole
        };
        bad += &format!("{text}\n");
        // Several paragraphs without a gap would be read as one.
        if refused.len() > WHOLE_MAX {
            bad += "\n";
        }
    }
    if paths.len() >= COUNTED_FROM && !refused.is_empty() {
        bad += &format!(
            "{}: {} without mistakes, {} with mistakes\n",
            counted(paths.len() as u64, "file"),
            good.len(),
            refused.len()
        );
        if refused.len() > WHOLE_MAX {
            bad += "help: `cipherbench check FILE` shows all mistakes of a file\n";
        }
    }
    CheckSummary {
        good: good
            .iter()
            .map(|(path, found)| format!("ok  {}  {}\n", path.display(), found.summary))
            .collect(),
        bad,
        is_refused: !refused.is_empty(),
    }
}

/// What good files lack here, each once for all files that have it.
fn warnings(good: &[(&Path, &Checked)]) -> String {
    let mut text = String::new();
    let lacking = |is: fn(&Checked) -> bool| -> Vec<(&Path, &Checked)> {
        good.iter()
            .filter(|(_, found)| is(found))
            .copied()
            .collect()
    };
    match lacking(|found| !found.missing.is_empty()).as_slice() {
        [(path, found)] => {
            let subject = format!("{}: ", path.display());
            text += &programs::warning(&subject, &found.missing, found.cells).unwrap_or_default();
        }
        several => {
            let missing = several.iter().map(|(_, found)| found.missing.as_slice());
            text += &programs::warning_of_several(&missing.collect::<Vec<_>>());
        }
    }
    match lacking(|found| !found.lacks.is_empty()).as_slice() {
        [(path, found)] => {
            let subject = format!("{}: ", path.display());
            text += &kernel::warning(&subject, &found.lacks, found.cells).unwrap_or_default();
        }
        several => {
            let lacks = several.iter().map(|(_, found)| found.lacks.as_slice());
            text += &kernel::warning_of_several(&lacks.collect::<Vec<_>>());
        }
    }
    // Each names a DUT of its campaign.
    for (path, found) in good {
        let subject = format!("{}: ", path.display());
        text += &sysctls::warning(&subject, &found.unknown).unwrap_or_default();
    }
    let mut note = |which: &[(&Path, &Checked)], words: &str| {
        let subject = match which {
            [] => return,
            [(path, _)] => path.display().to_string(),
            several => counted(several.len() as u64, "file"),
        };
        text += &format!("note: {subject}: {words}\n");
    };
    note(
        &lacking(|found| found.has_hosts),
        "programs, cores and interfaces of a lab's hosts are not looked at: `cipherbench doctor --lab FILE` does",
    );
    note(
        &lacking(|found| found.unfit > 0),
        "not for every lab that was given: `cipherbench check CAMPAIGN --lab FILE` has the reasons of one",
    );
    text
}
