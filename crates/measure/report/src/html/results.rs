//! The sections with figures: for each set a chart, what it shows in words, and its tables.

use super::parts::{section, table};
use crate::chart;
use crate::layout::{Protocol, Run, Set};
use crate::{format, tables};
use maud::{Markup, html};

/// All sections with figures, in the order of the documents.
pub(super) fn sections(run: &Run<'_>) -> Markup {
    html! {
        (of(run, Protocol::Tcp, "tcp", "TCP throughput", tcp))
        (of(run, Protocol::Udp, "udp", "UDP throughput and loss", udp))
        (of(run, Protocol::Ping, "latency", "Latency", latency))
        (super::frames::sections(run))
        (super::scaling::scaling(run))
        @if let Some(spread) = tables::spread(run) {
            (section("spread", "Spread of the repeats", table(&spread)))
        }
        @if has_cpu(run) { (cpu(run)) }
    }
}

/// Whether there are tables of CPU time by role: crypto devices have none, theirs stands with their speed.
pub(super) fn has_cpu(run: &Run<'_>) -> bool {
    !run.only_devices()
}

/// A section for the sets of one protocol, or nothing when there are none.
fn of(
    run: &Run<'_>,
    protocol: Protocol,
    id: &str,
    title: &str,
    set: fn(&Run<'_>, &Set<'_>, &str) -> Markup,
) -> Markup {
    let sets = run.sets_of(protocol);
    if sets.is_empty() {
        return html! {};
    }
    let content = html! {
        @for (index, found) in sets.iter().enumerate() {
            (set(run, found, &format!("{id}-{index}")))
        }
    };
    section(id, title, content)
}

/// A chart with what it shows; the tables stand beside it.
pub(super) fn figure(chart: &Markup, title: &str, how_to_read: &str) -> Markup {
    html! {
        figure {
            figcaption { span.title { (title) } span.note { (how_to_read) } }
            (chart)
        }
    }
}

fn tcp(run: &Run<'_>, set: &Set<'_>, id: &str) -> Markup {
    html! {
        (bars(run, set, None, id))
        @for found in tables::throughput(run, set) { (table(&found)) }
        (timeline(run, set, id))
    }
}

fn bars(run: &Run<'_>, set: &Set<'_>, payload: Option<u32>, id: &str) -> Markup {
    let chart = chart::throughput::draw(run, set, payload, &format!("{id}-bars"));
    let note = match set.compared_with() {
        Some(baseline) => format!(
            "Bars: mean of the repeats. Whiskers: the farthest repeat's distance. In the bars: \
             ratio to {baseline}."
        ),
        None => "Bars: mean of the repeats. Whiskers: the farthest repeat's distance.".to_owned(),
    };
    figure(
        &chart,
        &format!(
            "Payload throughput by MTU and cores per station: {}",
            set.common
        ),
        &note,
    )
}

fn timeline(run: &Run<'_>, set: &Set<'_>, id: &str) -> Markup {
    let scales = match set.payloads().len() {
        0 | 1 => "One scale for all panels.",
        _ => "Each datagram size has a scale of its own.",
    };
    html! {
        @if let Some(chart) = chart::timeline::draw(run, set, &format!("{id}-time")) {
            (figure(&chart, "Over time", &format!("Payload received, a line per repeat. {scales}")))
        }
    }
}

fn udp(run: &Run<'_>, set: &Set<'_>, id: &str) -> Markup {
    html! {
        @if let Some(chart) = chart::datagrams::draw(run, set, &format!("{id}-datagrams")) {
            @let title = format!("Offered, received and lost: {}", set.common);
            (figure(&chart, &title, "Solid: received. Striped: offered, but lost on the way. \
                                     Whiskers: the farthest repeat's distance."))
        }
        (table(&tables::datagrams(run, set)))
        @if set.mtus().len() * set.cores().len() > 1 {
            @for (index, payload) in set.payloads().into_iter().enumerate() {
                (bars(run, set, payload, &format!("{id}-{index}")))
            }
            @for found in tables::throughput(run, set) { (table(&found)) }
        }
        (timeline(run, set, id))
    }
}

fn latency(run: &Run<'_>, set: &Set<'_>, id: &str) -> Markup {
    html! {
        @for (index, point) in set.points.iter().enumerate() {
            @if let Some(chart) = chart::latency::draw(run, set, point, &format!("{id}-{index}")) {
                @let conditions = format!("{}, {}", set.name_of(point), set.common);
                @let title = format!("Round-trip time by percentile: {conditions}");
                (figure(&chart, &title, "All repeats pooled. Each nine is as wide as the one \
                                         before; both axes are logarithmic."))
            }
        }
        (table(&tables::latency(run, set)))
    }
}

fn cpu(run: &Run<'_>) -> Markup {
    let content = html! {
        @for (index, set) in run.sets().iter().enumerate() {
            @if let Some(chart) = chart::cpu::draw(run, set, &format!("cpu-{index}")) {
                @let title = format!("{}, {}", capitalized(set.protocol.name()), set.common);
                (figure(&chart, &title, &reading(run, set)))
            }
            (table(&tables::cpu(run, set)))
        }
        @for set in run.frame_sets() { (table(&tables::frames::cpu(run, &set))) }
    };
    section("cpu", "CPU", content)
}

fn reading(run: &Run<'_>, set: &Set<'_>) -> String {
    let cores = run.cpus().map_or_else(String::new, |cpus| {
        format!(" The machine has {}.", format::counted(cpus.into(), "core"))
    });
    match set.protocol {
        Protocol::Ping => format!("Cores kept busy, by role.{cores}"),
        _ => format!(
            "Left: cores kept busy, by role.{cores} Right: payload received per CPU-second of the \
             whole machine."
        ),
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(characters).collect()
    })
}
