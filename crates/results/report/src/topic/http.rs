//! Transactions, over HTTP and as short flows: rates, times and bottlenecks.

pub(crate) mod columns;

use crate::kit::cells::{FORMAT, mean, ratio_cell, with_repeats, without_figure};
use crate::kit::chart::bars::{self, Bar, Lying};
use crate::kit::fact::{Fact, Subject};
use crate::kit::format::{Scale, bit_rate};
use crate::kit::ratios::rate;
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use maud::Markup;
use plan::{HttpServer, HttpTest, Measurement};
use stats::{CellResult, Estimate, HttpFigures, HttpTimesResult, Metric, Percentiles};
use units::Bytes;

pub(super) const FLOWS: Section = Section::result("flows", "Short flows", |run, out| {
    let how = format!("Bars: mean of the repeats. {}", run.whiskers());
    out.chart("Short flows per second", how, || {
        chart(run, true, "flow-rates")
    });
    out.tables(flows(run));
});

pub(super) const HTTP: Section = Section::result("http", "HTTP", |run, out| {
    let how = format!("Bars: mean of the repeats. {}", run.whiskers());
    out.chart("Transactions per second", how, || {
        chart(run, false, "http-rates")
    });
    out.tables(http(run));
    out.tables(http_times(run));
});

/// Titles of the columns for one kind of time.
const TIMES: [&str; 4] = ["p50", "p90", "p99", "Max"];

/// Rates of every cell; `None` if nothing is measured over HTTP.
fn http(run: &Run<'_>) -> Option<Table> {
    let note = format!(
        "transactions of the sustain phase that brought the whole object, compared byte by byte; {FORMAT}; ratio: \
         transactions/s by those of the baseline, paired by repeat; limit: the full resource, by CPU time and by \
         files written directly (Store); unknown: none observed was full"
    );
    let figures = [
        "Objects",
        "Transactions/s",
        "Ratio",
        "Connections/s",
        "Most open",
        "Failed",
        "Store",
    ];
    let mut table = Table::new("Transactions over HTTP", note)
        .labels(["Traffic", "DUT"])
        .figures(figures)
        .texts(["Limit"]);
    for (cell, test) in over_http(run) {
        let labels = [Cell::label(test.in_words()), dut(run, cell)];
        let row = match cell.http() {
            Some(found) => rates(run, cell, found),
            None => without_figure(cell, figures.len() + 1),
        };
        table.push(labels.into_iter().chain(row).collect());
    }
    table.with_rows()
}

/// Times to first and last byte by size of the objects; `None` if no client reports them.
fn http_times(run: &Run<'_>) -> Option<Table> {
    let note = "all repeats pooled, resolved to 1 %; from the moment at which the transaction should begin (open loop), or \
                began; opening a connection is part of its first one; a percentile is given if at least one time is \
                longer";
    let titles = |of: &'static str| TIMES.map(|title| format!("{of} {title}"));
    let mut table = Table::new("Time to first and last byte over HTTP", note)
        .labels(["Traffic", "DUT", "Object"])
        .figures(titles("TTFB"))
        .figures(titles("TTLB"));
    for (cell, test) in over_http(run) {
        for found in cell.http().map_or(&[][..], |found| &found.times) {
            let mut row = vec![
                Cell::label(test.in_words()),
                dut(run, cell),
                Cell::label(Bytes::new(found.object_bytes).to_string()),
            ];
            row.extend(times(found));
            table.push(row);
        }
    }
    table.with_rows()
}

/// Completion times of short flows by size; `None` if none are measured.
fn flows(run: &Run<'_>) -> Option<Table> {
    let note = format!(
        "all repeats pooled, resolved to 1 %; completion time: from the moment at which a flow should begin to \
         connect, to its last byte, compared byte by byte; a percentile is given if at least one time is longer; \
         rates: {FORMAT}; ratio: flows/s by those of the baseline, paired by repeat"
    );
    let mut table = Table::new("Completion time of short flows", note)
        .labels(["Traffic", "DUT"])
        .figures(TIMES)
        .figures(["Flows", "Flows/s", "Ratio", "Failed"])
        .texts(["Limit"]);
    // Short flows are transactions without HTTP.
    for (cell, test) in http_cells(run).filter(|(_, test)| test.server == HttpServer::Plain) {
        let labels = [Cell::label(test.in_words()), dut(run, cell)];
        let times = cell
            .http()
            .and_then(|found| Some((found, found.times.first()?)));
        let row = match times {
            Some((found, times)) => {
                let of_times = percentiles(&times.last_byte).into_iter();
                let [rate, ratio, failed, limit] = rate_cells(run, cell, found);
                let flows = with_repeats(times.last_byte.n.to_string(), cell);
                of_times
                    .chain([Cell::plain(flows), rate, ratio, failed, limit])
                    .collect()
            }
            None => without_figure(cell, TIMES.len() + 5),
        };
        table.push(labels.into_iter().chain(row).collect());
    }
    table.with_rows()
}

fn over_http<'r>(run: &'r Run<'_>) -> impl Iterator<Item = (&'r CellResult, &'r HttpTest)> {
    http_cells(run).filter(|(_, test)| test.server != HttpServer::Plain)
}

/// Every cell with transactions, over HTTP or as short flows, and its test.
fn http_cells<'r>(run: &'r Run<'_>) -> impl Iterator<Item = (&'r CellResult, &'r HttpTest)> {
    run.results
        .cells
        .iter()
        .filter_map(|cell| match &run.planned(cell)?.measurement {
            Measurement::Http(test) => Some((cell, test)),
            _ => None,
        })
}

/// The name as printed: unlike the plan's, it has the mark of an insecure device.
fn dut(run: &Run<'_>, cell: &CellResult) -> Cell {
    Cell::label(run.label(&cell.dut))
}

fn rates(run: &Run<'_>, cell: &CellResult, found: &HttpFigures) -> Vec<Cell> {
    let store = found.direct_write_bps.as_ref();
    let [rate, ratio, failed, limit] = rate_cells(run, cell, found);
    vec![
        Cell::plain(with_repeats(bit_rate(&found.object_throughput_bps), cell)),
        rate,
        ratio,
        Cell::or_missing(found.connections_per_s.as_ref().map(per_s)),
        Cell::or_missing(found.connections_most.map(|most| most.to_string())),
        failed,
        Cell::or_missing(store.map(|rate| mean(rate, "bit/s"))),
        limit,
    ]
}

/// Transactions per second, their ratio to the baseline, failures and bottleneck.
fn rate_cells(run: &Run<'_>, cell: &CellResult, found: &HttpFigures) -> [Cell; 4] {
    let failed = format!(
        "{} of {}",
        found.transactions_failed, found.transactions_attempted
    );
    [
        Cell::plain(per_s(&found.transactions_per_s)),
        ratio_cell(run, cell, Metric::TransactionsPerSecond),
        Cell::plain(failed),
        Cell::term(found.limit.in_words()),
    ]
}

fn per_s(rate: &Estimate) -> String {
    Scale::si(rate.mean, "").estimate(rate)
}

fn times(found: &HttpTimesResult) -> impl Iterator<Item = Cell> {
    percentiles(&found.first_byte)
        .into_iter()
        .chain(percentiles(&found.last_byte))
}

fn percentiles(times: &Percentiles) -> [Cell; 4] {
    [
        Cell::time(Some(times.p50_ns)),
        Cell::time(times.p90_ns),
        Cell::time(times.p99_ns),
        Cell::time(Some(times.max_ns)),
    ]
}

/// Transactions over HTTP, then short flows, if the device has a figure.
pub(super) fn facts(of: &Subject<'_>) -> Vec<Fact> {
    let is_flow = |test: &HttpTest| test.server == HttpServer::Plain;
    let over_http = fact(of, "HTTP transactions", |test| !is_flow(test));
    let flows = fact(of, "Short flows", is_flow);
    over_http.into_iter().chain(flows).collect()
}

/// Transactions per second relative to the baseline, and the highest throughput of objects.
fn fact(of: &Subject<'_>, label: &str, is_wanted: impl Fn(&HttpTest) -> bool) -> Option<Fact> {
    let (run, device) = (of.run, of.device);
    let of_device = http_cells(run).filter(|(cell, _)| cell.dut == device);
    let cells: Vec<_> = of_device.filter(|(_, test)| is_wanted(test)).collect();
    let (test, best) = cells
        .iter()
        .filter_map(|(cell, test)| Some((test, &cell.http()?.object_throughput_bps)))
        .max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))?;
    let words = test.in_words();
    let own: Vec<&CellResult> = cells.iter().map(|(cell, _)| *cell).collect();
    // The figure is a rate of objects, but its ratio is of transactions.
    let metric = Metric::TransactionsPerSecond;
    Some(rate(run, (label.to_owned(), words), &own, metric, best))
}

/// Transactions per second, over HTTP or of short flows; `None` without a figure.
fn chart(run: &Run<'_>, is_flow: bool, id: &str) -> Option<Markup> {
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
    let bars: Vec<Bar<'_>> = bars.collect();
    let scale = |most| Scale::si(most, "/s");
    bars::draw(run, id, (title, quantity, ""), &bars, scale)
}
