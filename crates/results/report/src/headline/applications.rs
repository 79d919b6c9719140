//! Transactions over HTTP, short flows and video in a few words and numbers.

use super::{Fact, rate};
use crate::format::counted;
use crate::layout::Run;
use crate::tables::http_cells;
use plan::{HttpServer, HttpTest};
use stats::{CellResult, Metric};

/// One fact per application for which the device has a figure.
pub(super) fn facts(run: &Run<'_>, device: &str) -> Vec<Fact> {
    let is_flow = |test: &HttpTest| test.server == HttpServer::Plain;
    let over_http = transactions(run, device, "HTTP transactions", |test| !is_flow(test));
    let flows = transactions(run, device, "Short flows", is_flow);
    [over_http, flows, video(run, device)]
        .into_iter()
        .flatten()
        .collect()
}

/// Transactions per second relative to the baseline, and the highest throughput of objects.
fn transactions(
    run: &Run<'_>,
    device: &str,
    label: &str,
    is_wanted: impl Fn(&HttpTest) -> bool,
) -> Option<Fact> {
    let of_device = http_cells(run).filter(|(cell, _)| cell.dut == device);
    let cells: Vec<_> = of_device.filter(|(_, test)| is_wanted(test)).collect();
    let (test, best) = cells
        .iter()
        .filter_map(|(cell, test)| Some((test, &cell.http()?.object_throughput_bps)))
        .max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))?;
    let words = test.in_words();
    let own: Vec<&CellResult> = cells.iter().map(|(cell, _)| *cell).collect();
    let metric = Metric::TransactionsPerSecond;
    Some(rate(run, (label.to_owned(), words), &own, metric, best))
}

/// Share of frames shown undamaged, over all cells.
fn video(run: &Run<'_>, device: &str) -> Option<Fact> {
    let of_device = run.results.cells.iter().filter(|cell| cell.dut == device);
    let found: Vec<_> = of_device.filter_map(CellResult::video).collect();
    let sum =
        |count: fn(&stats::VideoFigures) -> u64| found.iter().map(|it| count(it)).sum::<u64>();
    let expected = sum(|it| it.frames_expected);
    let bad = sum(|it| it.frames_missing + it.frames_damaged);
    let mut detail = vec![counted(sum(|it| it.freezes), "freeze")];
    let packets = || found.iter().filter_map(|it| it.packets.as_ref());
    let sent: u64 = packets().map(|it| it.sent).sum();
    if sent > 0 {
        let lost: u64 = packets().map(|it| it.lost).sum();
        detail.push(format!("{lost} of {} lost", counted(sent, "RTP packet")));
    }
    (expected > 0).then(|| Fact {
        label: "Video".to_owned(),
        figure: format!("{} of {expected}", expected.saturating_sub(bad)),
        unit: "frames shown undamaged".to_owned(),
        range: String::new(),
        detail: detail.join(", "),
    })
}
