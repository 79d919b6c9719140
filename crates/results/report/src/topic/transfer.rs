//! Bulk transfers: throughput over TCP and UDP, and loss.

mod bars;
pub(crate) mod columns;
mod datagrams;
mod tables;
mod timeline;

use crate::kit::chart::grid;
use crate::kit::fact::{Fact, Subject};
use crate::kit::format::{counted, percent};
use crate::kit::ratios::rate;
use crate::kit::section::{Blocks, Section};
use crate::layout::{Point, Protocol, Run, Set, payload_name};
use stats::{CellResult, Metric};
use tables::{datagrams, each_way, goodput_drift, rfc6349, throughput};

pub(super) const TCP: Section = Section::result("tcp", "TCP throughput", |run, out| {
    let sets = run.sets_of(Protocol::Tcp);
    matrix(run, out, &sets, "tcp");
    for (index, set) in sets.iter().enumerate() {
        // TCP has no datagram size.
        bars(run, out, set, None, &format!("tcp-{index}"));
    }
    out.tables(throughput(run, &sets));
    out.tables(each_way(run, "tcp"));
    out.tables(rfc6349(run));
    for (index, set) in sets.iter().enumerate() {
        out.tables(goodput_drift(run, set));
        timeline(run, out, set, &format!("tcp-{index}"));
    }
})
.named("TCP");

/// Appends the throughput of all sets at a glance, if they form a matrix.
fn matrix(run: &Run<'_>, out: &mut Blocks, sets: &[Set<'_>], id: &str) {
    let how = "Means of the repeats; the darker or, on dark paper, the brighter, the more. Shades \
               follow the logarithm if figures span more than a decade.";
    out.chart(
        "Payload throughput of every device and setting",
        how,
        || grid::of_sets(run, sets, &format!("{id}-grid")),
    );
}

/// Appends throughput by MTU and cores, for one payload size.
fn bars(run: &Run<'_>, out: &mut Blocks, set: &Set<'_>, payload: Option<u32>, id: &str) {
    let how = format!("Bars: mean of the repeats. {}", run.whiskers());
    let note = match set.compared_with() {
        Some(baseline) => format!("{how} In the bars: ratio to {baseline}."),
        None => how,
    };
    let title = format!(
        "Payload throughput by MTU and cores per station: {}",
        set.common
    );
    out.chart(title, note, || {
        bars::draw(run, set, payload, &format!("{id}-bars"))
    });
}

/// Appends the received payload over time.
fn timeline(run: &Run<'_>, out: &mut Blocks, set: &Set<'_>, id: &str) {
    let scales = match set.payloads().len() {
        0 | 1 => "One scale for all panels.",
        _ => "Each datagram size has its own scale.",
    };
    let note = format!("Payload received, a line per repeat. {scales}");
    out.chart("Over time", note, || {
        timeline::draw(run, set, &format!("{id}-time"))
    });
}

pub(super) const UDP: Section = Section::result("udp", "UDP throughput and loss", |run, out| {
    let sets = run.sets_of(Protocol::Udp);
    matrix(run, out, &sets, "udp");
    for (index, set) in sets.iter().enumerate() {
        let id = format!("udp-{index}");
        out.chart(
            format!("Offered, received and lost: {}", set.common),
            format!(
                "Solid: received. Striped: offered, but lost on the way. {}",
                run.whiskers()
            ),
            || datagrams::draw(run, set, &format!("{id}-datagrams")),
        );
    }
    out.tables(datagrams(run, &sets));
    out.tables(each_way(run, "udp"));
    // A matrix of a single point repeats the table above.
    let is_matrix = |set: &Set<'_>| set.mtus().len() * set.cores().len() > 1;
    for (at, set) in sets.iter().enumerate().filter(|(_, set)| is_matrix(set)) {
        for (index, payload) in set.payloads().into_iter().enumerate() {
            bars(run, out, set, payload, &format!("udp-{at}-{index}"));
        }
    }
    if sets.iter().any(is_matrix) {
        out.tables(throughput(run, &sets));
    }
    for (index, set) in sets.iter().enumerate() {
        timeline(run, out, set, &format!("udp-{index}"));
    }
})
.named("UDP");

/// The throughput of a device in each set.
pub(super) fn facts(of: &Subject<'_>) -> Vec<Fact> {
    let facts = [Protocol::Tcp, Protocol::Udp]
        .into_iter()
        .flat_map(|protocol| {
            let all: Vec<&Set<'_>> = of.sets_of(protocol).collect();
            let facts = all.iter().filter_map(|set| fact(of, set, &all));
            facts.collect::<Vec<_>>()
        });
    facts.collect()
}

/// The best throughput of a device in a set, and its ratio to the baseline over the whole set.
/// `all` are the sets of the same protocol.
fn fact(of: &Subject<'_>, set: &Set<'_>, all: &[&Set<'_>]) -> Option<Fact> {
    let (run, device) = (of.run, of.device);
    let cells: Vec<(&Point<'_>, &CellResult)> = set
        .points
        .iter()
        .filter_map(|point| Some((point, point.cell(device)?)))
        .collect();
    let (point, best) = cells
        .iter()
        .filter_map(|(point, cell)| Some((point, cell.throughput_bps()?)))
        .max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))?;
    let mut label = vec![format!("{} throughput", set.protocol.name())];
    label.extend(set.own_words(all).map(str::to_owned));
    let label = label.join(", ");
    let mut words = vec![format!("MTU {} B", point.mtu), counted(point.cores, "core")];
    if set.protocol == Protocol::Udp {
        // The datagram size matters most for UDP, so it comes first.
        words.insert(0, format!("datagrams of {}", payload_name(point.payload)));
    }
    let words = words.join(", ");
    let own: Vec<&CellResult> = cells.iter().map(|(_, cell)| *cell).collect();
    let metric = Metric::PayloadThroughput;
    let mut fact = rate(run, (label, words), &own, metric, best);
    if set.protocol == Protocol::Udp {
        // A ratio above 1 may come at the price of loss.
        let lost = lost(own.into_iter()).unwrap_or_else(|| "none".to_owned());
        fact.unit.push_str(&format!(", {lost} lost"));
    }
    Some(fact)
}

/// Datagrams of some cells that were lost, or frames at the loads of their figures: `8.8 %`,
/// `42.1–42.9 %`; `None` if none were lost.
pub(crate) fn lost<'c>(cells: impl Iterator<Item = &'c CellResult>) -> Option<String> {
    let shares = cells.filter_map(|cell| {
        // A search finds a rate without loss; the highest forwarding rate may be one with.
        let frames = cell.frames().filter(|found| found.throughput.is_none());
        if let Some(load) = frames.and_then(|found| found.fastest()) {
            return Some(load.not_forwarded_ppm() / 1e4);
        }
        let found = cell.bulk()?.datagrams.as_ref()?;
        Some(match found.lost {
            0 => 0.0,
            _ => 100.0 * found.loss_ratio.mean,
        })
    });
    let (low, high) = shares
        .map(|share| (share, share))
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let (least, most) = (percent(low), percent(high));
    let range = if least == most {
        most
    } else {
        format!("{}–{most}", least.trim_end_matches(" %"))
    };
    (high > 0.0).then_some(range)
}
