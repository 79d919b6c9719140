//! Video: the losses, and the frames that the players showed.

pub(crate) mod columns;

use crate::kit::cells::{FORMAT, with_repeats, without_figure};
use crate::kit::chart::bars::{self, Bar, Lying};
use crate::kit::fact::{Fact, Subject};
use crate::kit::format::{Scale, counted, loss};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use maud::Markup;
use plan::{Measurement, VideoTest};
use stats::{CellResult, VideoFigures};

pub(super) const SECTION: Section = Section::result("video", "Video", |run, out| {
    let how = "Solid: frames that the players showed as they are, of all repeats. Striped: missing or damaged.";
    out.chart("Frames shown undamaged", how, || chart(run, "video-frames"));
    out.tables(video(run));
});

/// Every cell; `None` if no video is measured.
fn video(run: &Run<'_>) -> Option<Table> {
    let note = format!(
        "sums over all streams and repeats; ratios: {FORMAT}; packets: RTP's, of whole clips; late: more than 100 ms \
         above the shortest transit; frames of the measured part: missing were never shown, damaged differ from the \
         clip's in any bit; PSNR of the worst damaged one; freezes: gaps of 150 ms more than one frame \
         and three times as long, with their share of the time"
    );
    let figures = [
        "Packets lost",
        "Late",
        "Frames",
        "Missing",
        "Damaged",
        "Worst PSNR",
        "Freezes",
        "Frozen",
        "Longest gap",
    ];
    let mut table = Table::new("Video as players showed it", note)
        .labels(["Traffic", "DUT"])
        .figures(figures);
    for cell in &run.results.cells {
        let Some(test) = test_of(run, cell) else {
            continue;
        };
        // Not the plan's name, which lacks the mark of an insecure device.
        let labels = [test.in_words(), run.label(&cell.dut)].map(Cell::label);
        let row = match cell.video() {
            Some(found) => row(cell, found),
            None => without_figure(cell, figures.len()),
        };
        table.push(labels.into_iter().chain(row).collect());
    }
    table.with_rows()
}

fn test_of<'r>(run: &'r Run<'_>, cell: &CellResult) -> Option<&'r VideoTest> {
    match &run.planned(cell)?.measurement {
        Measurement::Video(test) => Some(test),
        _ => None,
    }
}

fn row(cell: &CellResult, found: &VideoFigures) -> Vec<Cell> {
    let packets = found.packets.as_ref();
    let lost = packets.map(|found| loss(found.lost, &found.loss_ratio));
    let late = packets.map(|found| format!("{} of {}", found.late, found.sent));
    let frozen = format!("{:.1} %", 100.0 * found.frozen_ratio.mean);
    vec![
        Cell::or_missing(lost),
        Cell::or_missing(late),
        Cell::plain(with_repeats(found.frames_expected.to_string(), cell)),
        Cell::plain(found.frames_missing.to_string()),
        Cell::plain(found.frames_damaged.to_string()),
        Cell::or_missing(found.psnr_least_db.map(|db| format!("{db:.1} dB"))),
        Cell::plain(found.freezes.to_string()),
        Cell::plain(frozen),
        Cell::time(Some(found.longest_gap_ns)),
    ]
}

/// Share of frames shown undamaged, over all cells.
pub(super) fn facts(of: &Subject<'_>) -> Vec<Fact> {
    let (run, device) = (of.run, of.device);
    let of_device = run.results.cells.iter().filter(|cell| cell.dut == device);
    let found: Vec<_> = of_device.filter_map(CellResult::video).collect();
    let sum = |count: fn(&VideoFigures) -> u64| found.iter().map(|it| count(it)).sum::<u64>();
    let expected = sum(|it| it.frames_expected);
    // A damaged frame was shown, but not as it was sent.
    let bad = sum(|it| it.frames_missing + it.frames_damaged);
    let mut detail = vec![counted(sum(|it| it.freezes), "freeze")];
    let packets = || found.iter().filter_map(|it| it.packets.as_ref());
    let sent: u64 = packets().map(|it| it.sent).sum();
    // Over HTTP there are no RTP packets.
    if sent > 0 {
        let lost: u64 = packets().map(|it| it.lost).sum();
        detail.push(format!("{lost} of {} lost", counted(sent, "RTP packet")));
    }
    let fact = (expected > 0).then(|| Fact {
        label: "Video".to_owned(),
        figure: format!("{} of {expected}", expected.saturating_sub(bad)),
        unit: "frames shown undamaged".to_owned(),
        range: String::new(),
        detail: detail.join(", "),
        brief: String::new(),
    });
    fact.into_iter().collect()
}

/// Share of the frames that players showed undamaged; `None` without a figure.
fn chart(run: &Run<'_>, id: &str) -> Option<Markup> {
    let cells = run.results.cells.iter();
    let bars = cells.filter_map(|cell| {
        let test = test_of(run, cell)?;
        // Without frames, there is no share.
        let figure = cell.video().filter(|found| found.frames_expected > 0);
        let figure = figure.map(|found| {
            let bad = found.frames_missing + found.frames_damaged;
            let good = found.frames_expected.saturating_sub(bad);
            Lying {
                value: 100.0 * good as f64 / found.frames_expected as f64,
                repeats: [100.0 * good as f64 / found.frames_expected as f64; 2],
                offered: Some(100.0),
                text: format!("{good} of {} frames", found.frames_expected),
            }
        });
        Some(Bar {
            setting: test.in_words(),
            name: run.label(&cell.dut),
            cell,
            figure,
        })
    });
    let bars: Vec<Bar<'_>> = bars.collect();
    let title = "Video frames shown undamaged";
    let words = (title, "frames shown undamaged, %", "missing or damaged");
    bars::draw(run, id, words, &bars, |_| Scale::plain())
}
