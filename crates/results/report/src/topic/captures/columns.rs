//! Columns of the captures of a trial.

use crate::kit::column::{Context, Declared, text};
use crate::layout::evidence::measured;
use journal::record::Captured;

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "captured_at",
        "places of capture during the trial, which costs time: `cipher`, `station-a`, `station-b`; empty: none",
        |row| joined(row, |capture| Some(capture.at.name())),
    ),
    (
        "capture_files",
        "files of the captures, from the run's folder",
        |row| joined(row, |capture| capture.file.as_deref()),
    ),
    ("capture_frames", "frames in these files together", |row| {
        sum(row, |capture| capture.contents.frames)
    }),
    (
        "capture_dropped",
        "frames that belong in these files but were not copied",
        |row| sum(row, |capture| capture.contents.dropped),
    ),
];

fn captures<'a>(row: &Context<'a>) -> Option<&'a [Captured]> {
    let captures = &measured(row.trial)?.captures[..];
    (!captures.is_empty()).then_some(captures)
}

fn joined<'a>(row: &Context<'a>, word: fn(&'a Captured) -> Option<&'a str>) -> Option<String> {
    let words: Vec<_> = captures(row)?.iter().filter_map(word).collect();
    Some(words.join(" "))
}

fn sum(row: &Context<'_>, count: fn(&Captured) -> u64) -> Option<String> {
    text(captures(row)?.iter().map(count).sum::<u64>())
}
