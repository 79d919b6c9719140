//! Warnings about captures: their cost, missing packets, and keys stored next to them.

use super::{Warning, WarningKind, counted, warning, was};
use crate::figures::captures::TrialCapture;
use std::collections::BTreeSet;

pub(crate) fn warnings(captures: &[TrialCapture]) -> Vec<Warning> {
    let found = [ran(captures), incomplete(captures), secrets(captures)];
    found.into_iter().flatten().collect()
}

/// Figures include the cost of a capture.
fn ran(captures: &[TrialCapture]) -> Option<Warning> {
    let cells = cells(captures, |_| true)?;
    let text = format!(
        "In {} frames were captured during the trials: the copy takes time of the cores that forward \
         them.",
        counted(cells.len(), "cell")
    );
    let advice = "Compare these figures only with others of captured trials; measure rates again without `capture`.";
    warning(WarningKind::Captured, cells, text, advice)
}

/// Captures that lack frames, or their file.
fn incomplete(captures: &[TrialCapture]) -> Option<Warning> {
    let cells = cells(captures, |it| !it.capture.is_complete())?;
    let mut bad = captures.iter().filter(|it| !it.capture.is_complete());
    let first = bad.next().map(|it| {
        let capture = &it.capture;
        let contents = &capture.contents;
        let why = match (&capture.file, &capture.problem) {
            (None, Some(problem)) => problem.clone(),
            _ => format!(
                "{} of {} frames {} dropped",
                contents.dropped,
                contents.selected,
                was(contents.dropped)
            ),
        };
        format!(
            "`{}`, repeat {}, {}: {why}",
            it.cell,
            it.repeat,
            capture.at.name()
        )
    });
    let more = match bad.count() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let text = format!(
        "Captures of {} are incomplete: {}{more}.",
        counted(cells.len(), "cell"),
        first.unwrap_or_default()
    );
    let advice = "Figures do not depend on captures. For complete ones, sample, cut frames shorter, or leave a core idle; \
                  `evidence: on` makes a trial without its capture invalid.";
    warning(WarningKind::CaptureIncomplete, cells, text, advice)
}

/// Keys are in the run's folder.
fn secrets(captures: &[TrialCapture]) -> Option<Warning> {
    let cells = cells(captures, |it| it.capture.secrets.is_some())?;
    let text = format!(
        "The run's folder has the keys of the tunnels of {} next to the captures: with them anyone reads the captured \
         traffic.",
        counted(cells.len(), "cell")
    );
    let advice = "They were made for this run alone and protect nothing else; do not pass the `.esp_sa` files on with a \
                  report unless its readers are to open the captures.";
    warning(WarningKind::SecretsKept, cells, text, advice)
}

/// Cells of the captures that fit, each once; `None` if none does.
fn cells(captures: &[TrialCapture], fits: impl Fn(&TrialCapture) -> bool) -> Option<Vec<String>> {
    let mut seen = BTreeSet::new();
    let fitting = captures
        .iter()
        // The order of the captures is kept, and each cell is named at its first.
        .filter(|it| fits(it) && seen.insert(&it.cell));
    let cells: Vec<_> = fitting.map(|it| it.cell.clone()).collect();
    (!cells.is_empty()).then_some(cells)
}
