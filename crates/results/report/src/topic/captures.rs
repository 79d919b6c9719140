//! Captures of the trials: protocols, lengths and files.

pub(crate) mod columns;

use crate::kit::format::percent;
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::groups::words_of;
use crate::order::{grouped, sorted, unique};
use journal::record::CaptureContents;
use stats::TrialCapture;
use std::collections::BTreeMap;
use units::human;

pub(super) const SECTION: Section = Section::result("captures", "Captures", |run, out| {
    out.tables(capture_protocols(run));
    out.tables(capture_lengths(run));
    out.details("Files of the captures", capture_files(run));
})
.not_brief();

/// Frames by a key, over all captures of a device.
type Counts<K> = BTreeMap<K, u64>;

/// Frames by protocol, with Wireshark's names.
fn capture_protocols(run: &Run<'_>) -> Vec<Table> {
    let note = "frames in the captures of all repeats, and their share; names and nesting are Wireshark's, no deeper than \
                the transport protocol and the form of a tunnel";
    let counts = |contents: &CaptureContents| {
        let protocols = contents.protocols.iter();
        protocols.map(|it| (it.path.clone(), it.frames)).collect()
    };
    tables(
        run,
        ("Protocols", note, "Protocol"),
        counts,
        |path: &String| {
            // The depth of the protocol, as it is inside the ones before it.
            let depth = path.matches(':').count();
            let name = path.rsplit(':').next().unwrap_or_default();
            format!("{}{name}", "· ".repeat(depth))
        },
    )
}

/// Frames by length.
fn capture_lengths(run: &Run<'_>) -> Vec<Table> {
    let note = "frames in the captures of all repeats by length before they were cut, without FCS, and their share; a frame \
                longer than the MTU is a super-packet, which a network card or the kernel cuts later";
    let counts = |contents: &CaptureContents| {
        let lengths = contents.lengths.iter();
        lengths.map(|it| (it.upto_bytes, it.frames)).collect()
    };
    tables(
        run,
        ("Frame lengths", note, "Up to"),
        counts,
        |bytes| match bytes {
            // The last class has no upper end.
            &u32::MAX => "longer".to_owned(),
            bytes => format!("{bytes} B"),
        },
    )
}

/// Builds a table for each group and place, with a row for each key.
fn tables<K: Ord + Clone>(
    run: &Run<'_>,
    (caption, note, label): (&str, &str, &str),
    counts: impl Fn(&CaptureContents) -> Vec<(K, u64)>,
    name_of: impl Fn(&K) -> String,
) -> Vec<Table> {
    let words = run.group_words();
    let captures = run.results.captures.iter();
    let placed = captures.filter_map(|it| {
        let cell = run.cell(&it.cell)?;
        Some((
            (cell.group.as_str(), it.capture.at),
            (cell.dut.as_str(), it),
        ))
    });
    // Captures at different places see different protocols, so each place has a table.
    let places = grouped(placed).into_iter();
    places
        .map(|((group, at), captures)| {
            let duts = unique(captures.iter().map(|(dut, _)| *dut));
            let all = duts.iter().map(|dut| {
                let own = captures.iter().filter(|(its, _)| its == dut);
                sum(own.map(|(_, it)| *it), &counts)
            });
            let all: Vec<(Counts<K>, u64)> = all.collect();
            // A device may lack protocols or lengths of the others.
            let keys = sorted(all.iter().flat_map(|(own, _)| own.keys().cloned()));
            let name = words_of(&words, group).name;
            let mut table = Table::new(format!("{caption} at {}: {name}", at.name()), note)
                .labels([label])
                .figures(duts.iter().map(|dut| run.label(dut)));
            for key in &keys {
                let figures = all.iter().map(|(own, frames)| match own.get(key) {
                    None => Cell::missing(),
                    Some(count) => {
                        // A capture without frames must not give NaN.
                        let share = 100.0 * *count as f64 / (*frames).max(1) as f64;
                        Cell::plain(format!("{count} ({})", percent(share)))
                    }
                });
                table.push(
                    [Cell::label(name_of(key))]
                        .into_iter()
                        .chain(figures)
                        .collect(),
                );
            }
            table
        })
        .filter(|table| !table.rows.is_empty())
        .collect()
}

/// Returns the frames by key, and the number of all frames.
fn sum<'c, K: Ord>(
    captures: impl Iterator<Item = &'c TrialCapture>,
    counts: impl Fn(&CaptureContents) -> Vec<(K, u64)>,
) -> (Counts<K>, u64) {
    let mut sum = Counts::new();
    let mut all = 0;
    for TrialCapture { capture, .. } in captures {
        all += capture.contents.frames;
        for (key, frames) in counts(&capture.contents) {
            *sum.entry(key).or_default() += frames;
        }
    }
    (sum, all)
}

/// Every capture, with its file.
fn capture_files(run: &Run<'_>) -> Option<Table> {
    let note =
        "pcapng, in the run's folder; dropped: not copied, because no core was idle to read them";
    let mut table = Table::new("Captures", note)
        .labels(["Measurement", "Device", "Repeat", "At"])
        .figures(["Frames", "Data", "Dropped", "CPU time"])
        .texts(["File", "Keys"]);
    let words = run.group_words();
    for TrialCapture {
        cell,
        repeat,
        capture,
    } in &run.results.captures
    {
        let Some(cell) = run.cell(cell) else { continue };
        let contents = &capture.contents;
        let file = match (&capture.file, &capture.problem) {
            (Some(file), _) => Cell::file(file),
            (None, problem) => Cell::reason(problem.as_deref().unwrap_or("missing")),
        };
        // With a file, the problem is about its keys; without one, it is about the file.
        let keys = match (&capture.secrets, &capture.problem) {
            (Some(keys), _) => Cell::file(keys),
            (None, Some(problem)) if capture.file.is_some() => Cell::reason(problem),
            (None, _) => Cell::missing(),
        };
        table.push(vec![
            Cell::label(words_of(&words, &cell.group).name),
            Cell::label(run.label(&cell.dut)),
            Cell::label(repeat.to_string()),
            Cell::label(capture.at.name()),
            Cell::plain(contents.frames.to_string()),
            Cell::plain(human::data(contents.bytes as f64)),
            Cell::faults(contents.dropped),
            Cell::plain(human::duration_ns(contents.cpu_ns as f64)),
            file,
            keys,
        ]);
    }
    table.with_rows()
}
