//! Transactions over HTTP, short flows and video in a few words and numbers.

use super::{Fact, ratios, repeats};
use crate::format::{self, Scale, counted};
use crate::layout::Run;
use campaign::plan::{HttpServer, HttpTest, Measurement};
use stats::{CellResult, Metric};

/// One fact for each application that the device has a figure of.
pub(super) fn facts(run: &Run<'_>, device: &str) -> Vec<Fact> {
    let is_flow = |test: &HttpTest| test.server == HttpServer::Plain;
    let over_http = transactions(run, device, "HTTP transactions", |test| !is_flow(test));
    let flows = transactions(run, device, "Short flows", is_flow);
    [over_http, flows, video(run, device)]
        .into_iter()
        .flatten()
        .collect()
}

/// Transactions per second against the baseline's, and the highest throughput of objects.
fn transactions(
    run: &Run<'_>,
    device: &str,
    label: &str,
    is_wanted: impl Fn(&HttpTest) -> bool,
) -> Option<Fact> {
    let of_device = run.results.cells.iter().filter(|cell| cell.dut == device);
    let cells: Vec<(&HttpTest, &CellResult)> = of_device
        .filter_map(|cell| match &run.planned(cell)?.measurement {
            Measurement::Http(test) if is_wanted(test) => Some((test, cell)),
            _ => None,
        })
        .collect();
    let (test, best) = cells
        .iter()
        .filter_map(|(test, cell)| Some((test, &cell.http()?.object_throughput_bps)))
        .max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))?;
    let at_most = if cells.len() > 1 { "at most " } else { "" };
    let words = campaign::http_in_words(test);
    let own = cells.iter().map(|(_, cell)| *cell);
    let label = label.to_owned();
    Some(match ratios::of(run, own, Metric::TransactionsPerSecond) {
        Some(found) => {
            let detail = format!("{at_most}{} of objects: {words}", format::bit_rate(best));
            found.fact(label, detail)
        }
        None => {
            let scale = Scale::si(best.mean, "bit/s");
            Fact {
                label,
                figure: scale.number(best.mean),
                range: repeats(best, &scale),
                unit: scale.unit,
                detail: format!("{at_most}of objects: {words}"),
            }
        }
    })
}

/// Frames that players showed as they are, of all cells.
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
