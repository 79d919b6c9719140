//! Transactions, short flows and video: one bar per cell.

use super::bars::{Bar, Bars, Lying};
use crate::format::Scale;
use crate::layout::Run;
use crate::tables::http_cells;
use maud::Markup;
use plan::{HttpServer, HttpTest, Measurement};

/// Transactions per second, over HTTP or of short flows; `None` without a figure.
pub(crate) fn transactions(run: &Run<'_>, is_flow: bool, id: &str) -> Option<Markup> {
    let is_wanted = |test: &HttpTest| (test.server == HttpServer::Plain) == is_flow;
    let cells = http_cells(run).filter(|(_, test)| is_wanted(test));
    let bars = cells.map(|(cell, test)| Bar {
        setting: test.in_words(),
        name: run.label(&cell.dut),
        cell,
        figure: cell.http().map(|found| {
            let rate = &found.transactions_per_s;
            Lying::of(rate, Scale::si(rate.mean, "/s").estimate(rate))
        }),
    });
    let (title, quantity) = if is_flow {
        ("Short flows per second", "flows")
    } else {
        ("Transactions per second over HTTP", "transactions")
    };
    let bars = Bars {
        title: title.to_owned(),
        quantity,
        lost: "",
        bars: bars.collect(),
    };
    bars.draw(run, id, |most| Scale::si(most, "/s"))
}

/// Share of the frames that players showed undamaged; `None` without a figure.
pub(crate) fn video(run: &Run<'_>, id: &str) -> Option<Markup> {
    let cells = run.results.cells.iter();
    let bars = cells.filter_map(|cell| {
        let Measurement::Video(test) = &run.planned(cell)?.measurement else {
            return None;
        };
        let figure = cell.video().filter(|found| found.frames_expected > 0);
        let figure = figure.map(|found| {
            let bad = found.frames_missing + found.frames_damaged;
            let good = found.frames_expected.saturating_sub(bad);
            Lying {
                value: 100.0 * good as f64 / found.frames_expected as f64,
                reach: 0.0,
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
    let bars = Bars {
        title: "Video frames shown undamaged".to_owned(),
        quantity: "frames shown undamaged, %",
        lost: "missing or damaged",
        bars: bars.collect(),
    };
    bars.draw(run, id, |_| Scale::plain())
}
