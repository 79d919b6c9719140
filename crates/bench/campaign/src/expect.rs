//! Limits that the figures of a run must keep: gates, as `compare` reads them.

use crate::expand::Draft;
use journal::Journal;
use plan::{Cell, Expectation, LatencyPath, StoredFigure, StoredRun};
use stats::{Gate, GateError, Reading, Results};
use std::collections::BTreeMap;
use std::path::Path;
use yaml::{Node, Place, Reported, Spanned, Value};

/// Tables with more cannot be read.
const LIMITS_MAX: usize = 100;

pub(crate) const VALUE: Value = Value::List(&Value::Text);

/// A limit as read: its cells are checked once they are known.
#[derive(Debug)]
pub(crate) struct Limit {
    gate: Spanned<Gate>,
    /// The stored run that it refers to, with its figures.
    stored: Option<(String, Journal)>,
}

/// Reads the list of limits, and the runs that they refer to. A mistake in one keeps no other from
/// being checked against the cells.
pub(crate) fn read_all(node: Node<'_>) -> Result<Vec<Result<Limit, Reported>>, Reported> {
    let limits = node.list(|item| Ok(read(item)))?;
    match limits.len() {
        0..=LIMITS_MAX => Ok(limits),
        count => {
            let what = format!("{count} limits are more than {LIMITS_MAX}");
            Err(node.mistake(what, "shorten the list"))
        }
    }
}

fn read(node: Node<'_>) -> Result<Limit, Reported> {
    let text = node.text()?;
    let gate = text.parse::<Gate>().map_err(|error| {
        let place = node.place();
        mistake(node, &place, text, &error)
    })?;
    let gate = node.spanned(gate);
    let stored = match gate.value.run() {
        Some(folder) => Some((folder.to_owned(), stored(node, &gate, folder)?)),
        None => None,
    };
    Ok(Limit { gate, stored })
}

/// The journal of a run, by its folder relative to the campaign's.
fn stored(node: Node<'_>, gate: &Spanned<Gate>, folder: &str) -> Result<Journal, Reported> {
    let campaign = node.place().file;
    let root = Path::new(campaign.as_ref()).parent();
    let path = root.unwrap_or(Path::new("")).join(folder);
    journal::read(&path).map_err(|error| {
        let text = error.to_string();
        // The error has its remedy in a second line, which is about a command line.
        let what = text.lines().next().unwrap_or_default().to_owned();
        let help = "name the folder of a run, relative to the campaign, as in `of run=../runs/…`";
        let error = gate.value.bad_run(what, help.to_owned());
        mistake(node, &gate.place, &gate.value.text, &error)
    })
}

/// Reports a mistake of a gate at its place in the value.
fn mistake(node: Node<'_>, place: &Place, text: &str, error: &GateError) -> Reported {
    let mut place = place.clone();
    if let Some(spot) = &mut place.spot
        && let Some(line) = &spot.source_line
    {
        // Quotation marks may be in front. A text with escapes is marked as a whole.
        let written: String = line.chars().skip(spot.column - 1).collect();
        if let Some(at) = written.find(text.trim()) {
            let (before, length) = error.columns();
            spot.column += written[..at].chars().count() + before;
            spot.length = length;
        }
    }
    node.mistake_at(&place, error.problem(), error.help())
}

/// The limits, once the cells are known. Mistakes go to `node`, the list.
pub(crate) fn resolve_all(
    node: Node<'_>,
    asked: &[Result<Limit, Reported>],
    drafts: &[Draft],
) -> Result<Vec<Expectation>, Reported> {
    let cells: Vec<Cell> = drafts.iter().map(|draft| draft.cell.clone()).collect();
    let resolved = asked.iter().map(|limit| {
        let limit = limit.as_ref().map_err(|reported| *reported)?;
        let Spanned { value: gate, place } = &limit.gate;
        let wrong = |error: GateError| mistake(node, place, &gate.text, &error);
        gate.check(&cells).map_err(wrong)?;
        let stored = limit.stored.as_ref();
        let stored = stored.map(|(folder, journal)| figures(gate, folder, journal, &cells));
        Ok(Expectation {
            limit: gate.text.clone(),
            stored: stored.transpose().map_err(wrong)?,
        })
    });
    // Collected first: one mistake hides no other.
    let resolved: Vec<Result<Expectation, Reported>> = resolved.collect();
    resolved.into_iter().collect()
}

/// The figures of a stored run that a limit refers to.
fn figures(
    gate: &Gate,
    folder: &str,
    journal: &Journal,
    cells: &[Cell],
) -> Result<StoredRun, GateError> {
    let results = Results::of(journal);
    let mut figures = Vec::new();
    let mut without = BTreeMap::new();
    for cell in gate.limited(cells) {
        let known = results.cell(&cell.id);
        let readings = known.map_or_else(Vec::new, stats::CellResult::readings);
        let own = readings
            .iter()
            .filter(|it| it.quantity.word() == gate.quantity);
        let own: Vec<StoredFigure> = own.map(|it| figure(&cell.id, it)).collect();
        if own.is_empty() {
            let why = match known {
                Some(_) => "its cell has no such figure",
                None => "it has no such cell",
            };
            without.insert(cell.id.clone(), why.to_owned());
        }
        figures.extend(own);
    }
    if figures.is_empty() {
        let ids = results.cells.iter().filter(|cell| !cell.calibration);
        let ids: Vec<&str> = ids.map(|cell| cell.id.as_str()).take(4).collect();
        return Err(gate.bad_run(
            format!("run {folder} has no figure of any cell that this limits"),
            format!(
                "cells are compared by their ids; it has {} …",
                ids.join(", ")
            ),
        ));
    }
    let header = &journal.header;
    Ok(StoredRun {
        folder: folder.to_owned(),
        started_unix_ns: header.started_unix_ns,
        program: header.program.clone(),
        machine: stats::machine_in_words(&header.environment),
        figures,
        without,
    })
}

fn figure(cell: &str, reading: &Reading) -> StoredFigure {
    // Thousandths, so that a journal has integers only. No figure is negative.
    let thousandths = |of: &stats::Estimate| -> Vec<u64> {
        let values = of.values.iter();
        values.map(|one| (1e3 * one.value).round() as u64).collect()
    };
    StoredFigure {
        cell: cell.to_owned(),
        quantity: reading.quantity.key().to_owned(),
        load_percent: reading.load_percent,
        round_trip: reading.path.map(|path| path == LatencyPath::RoundTrip),
        values: thousandths(&reading.value),
        upper: reading.upper.as_ref().map_or_else(Vec::new, thousandths),
        is_open: reading.is_open,
    }
}
