//! Classes of service: whether they arrive, whether the outer header carries them, and round trips
//! of each.

use crate::kit::column::{Declared, text};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::evidence::of_trial;
use plan::TransferDirection;
use stats::{CellResult, LoadedClassResult};
use std::collections::BTreeMap;
use units::human::bit_rate;

pub(super) const SECTION: Section = Section::result("classes", "Classes of service", |run, out| {
    out.tables(classes(run));
    out.tables(loads(run));
});

/// Packets by the name of their class.
type Packets = BTreeMap<String, u64>;

/// Share of the sampled packets, in per cent, from which on all count as of one class: tools and
/// devices have connections of their own.
const ALL_PERCENT: u64 = 90;
/// Sampled packets expected of a class from which on their absence means something.
const EXPECTED_MIN: f64 = 10.0;
/// Part of the expected packets from which on a class counts as carried: samples catch bursts of
/// one connection.
const CARRIED_MIN: f64 = 0.1;

/// One row per cell with a class of service; `None` without any.
fn classes(run: &Run<'_>) -> Option<Table> {
    let note = "DSCP by sampled packets, all repeats: sent by the tools, seen by the receiving station, and in the \
                outermost IP header between the gateways; copied: the tunnel's header has the packet's class (RFC \
                4301 section 5.1.2), cleared: it has be; round trips of the class on the idle path, and under TCP load \
                both ways";
    let mut table = Table::new("Classes of service", note)
        .labels(["Cell"])
        .texts(["Sent", "Arrived", "Outer header"])
        .figures(["p50 idle", "p99 idle", "p50 loaded", "p99 loaded"]);
    for cell in &run.results.cells {
        let planned = run.planned(cell);
        let stations = planned.and_then(|planned| planned.stations);
        let Some(asked) = stations.and_then(|stations| stations.dscp) else {
            continue;
        };
        let has_form = planned.is_some_and(|planned| planned.dut.adapter.form().is_some());
        let (received, outer) = seen(run, cell);
        let mut cells = vec![
            Cell::label(&cell.id),
            Cell::plain(asked.name()),
            words(&received).map_or_else(Cell::missing, Cell::plain),
            outer_in_words(&outer, asked.name(), has_form).map_or_else(Cell::missing, Cell::plain),
        ];
        let latency = cell.latency();
        let both = TransferDirection::Duplex.name();
        let loaded = latency.and_then(|found| found.loaded.iter().find(|it| it.load == both));
        for pooled in [
            latency.map(|found| &found.pooled),
            loaded.map(|found| &found.pooled),
        ] {
            cells.push(Cell::time(pooled.map(|found| found.p50_ns)));
            cells.push(Cell::time(pooled.and_then(|found| found.p99_ns)));
        }
        table.push(cells);
    }
    table.with_rows()
}

/// One row for each class of several that loaded the path in parallel; `None` without any.
fn loads(run: &Run<'_>) -> Option<Table> {
    let note = "one TCP load per class, all at the same time; payload that arrived while the echo requests of the cell \
                were sent, all repeats, and its part of all classes that way; equal parts in a tunnel and unequal ones \
                without it: the tunnel hides the classes from the queue; outer header: the class's part of the packets \
                sampled between the gateways under the load";
    let mut table = Table::new("Classes that compete", note)
        .labels(["Cell", "Load", "Class"])
        .texts(["Outer header"])
        .figures(["A to B", "Share", "B to A", "Share back"]);
    for cell in &run.results.cells {
        let loaded = cell.latency().map_or(&[][..], |found| &found.loaded);
        let planned = run.planned(cell);
        let has_form = planned.is_some_and(|planned| planned.dut.adapter.form().is_some());
        for (load, class) in loaded
            .iter()
            .flat_map(|load| load.classes.iter().map(move |class| (load, class)))
        {
            let mut cells = vec![
                Cell::label(&cell.id),
                Cell::label(load.load),
                Cell::label(class.class),
                carried_in_words(&load.outer_dscp, class, has_form)
                    .map_or_else(Cell::missing, Cell::plain),
            ];
            for (bps, share) in class.payload_bps.iter().zip(class.share) {
                // Without a share the load did not go that way.
                let rate = share.map(|_| bit_rate(*bps));
                cells.push(Cell::or_missing(rate));
                let share = share.map(|share| format!("{:.0} %", share * 100.0));
                cells.push(Cell::derived_or_missing(share));
            }
            table.push(cells);
        }
    }
    table.with_rows()
}

/// Sampled packets at the receiving station and between the gateways, of all repeats.
fn seen(run: &Run<'_>, cell: &CellResult) -> (Packets, Packets) {
    let (mut received, mut outer) = (Packets::new(), Packets::new());
    for evidence in run.trials(cell).filter_map(of_trial) {
        for (sum, found) in [
            (&mut received, &evidence.received_dscp),
            (&mut outer, &evidence.cipher_link.dscp),
        ] {
            for (class, packets) in found {
                let sum = sum.entry(class.clone()).or_default();
                *sum = sum.saturating_add(*packets);
            }
        }
    }
    (received, outer)
}

/// The class of nearly all packets.
fn only(packets: &Packets) -> Option<&str> {
    let all = sum(packets);
    let most = packets.iter().max_by_key(|(_, count)| **count)?;
    (u128::from(*most.1) * 100 >= all * u128::from(ALL_PERCENT)).then_some(most.0)
}

fn sum(packets: &Packets) -> u128 {
    packets.values().map(|count| u128::from(*count)).sum()
}

/// The class of nearly all packets, or each with its share; `None` without packets.
fn words(packets: &Packets) -> Option<String> {
    let all = sum(packets);
    if all == 0 {
        return None;
    }
    if let Some(class) = only(packets) {
        return Some(class.to_owned());
    }
    let shares = packets.iter();
    let shares: Vec<_> = shares
        .map(|(class, count)| format!("{class} {} %", u128::from(*count) * 100 / all))
        .collect();
    Some(shares.join(", "))
}

/// The class of the outer header, and how it depends on the class sent.
fn outer_in_words(outer: &Packets, asked: &str, has_form: bool) -> Option<String> {
    let words = words(outer)?;
    let finding = match only(outer) {
        _ if !has_form => "no tunnel",
        None => "mixed",
        // A tunnel that copies and one that clears look the same.
        Some("be") if asked == "be" => return Some(words),
        Some(class) if class == asked => "copied",
        Some("be") => "cleared",
        Some(_) => "other",
    };
    Some(format!("{words}: {finding}"))
}

/// Whether the outer headers have the class of one of several loads; `None` if too few packets were
/// sampled for its part of the load.
fn carried_in_words(outer: &Packets, class: &LoadedClassResult, has_form: bool) -> Option<String> {
    let all = sum(outer);
    let own = outer.get(class.class).map_or(0, |count| u128::from(*count));
    let share = class
        .share
        .iter()
        .flatten()
        .fold(0.0, |a: f64, b| a.max(*b));
    let expected = all as f64 * share;
    if expected < EXPECTED_MIN {
        return None;
    }
    let part = format!("{own} of {all}");
    let is_carried = own as f64 >= expected * CARRIED_MIN;
    let finding = if !has_form {
        "no tunnel"
    } else if !is_carried {
        "not carried"
    } else if class.class == "be" {
        // A tunnel that carries no class has packets of this one alone.
        return Some(part);
    } else {
        "carried"
    };
    Some(format!("{part}: {finding}"))
}

/// The outer header's class.
pub(super) const COLUMNS: &[Declared] = &[(
    "outer_dscp",
    "most frequent class of service of the sampled packets between the gateways; empty without `dscp`",
    |row| {
        row.planned?.stations?.dscp?;
        let outer = &of_trial(row.trial)?.cipher_link.dscp;
        text(outer.iter().max_by_key(|(_, packets)| **packets)?.0)
    },
)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_of_several_loads_is_carried_or_not() {
        let class = |class, share| LoadedClassResult {
            class,
            payload_bps: [1e6, 0.0],
            share: [Some(share), None],
        };
        let both: Packets = [("be".to_owned(), 300), ("ef".to_owned(), 100)].into();
        let be: Packets = [("be".to_owned(), 400)].into();
        let of =
            |outer, name, share, has_form| carried_in_words(outer, &class(name, share), has_form);
        for (outer, name, share, has_form, words) in [
            (&both, "ef", 0.25, true, Some("100 of 400: carried")),
            (&be, "ef", 0.25, true, Some("0 of 400: not carried")),
            (&be, "be", 0.75, true, Some("400 of 400")),
            (&both, "ef", 0.25, false, Some("100 of 400: no tunnel")),
            // One packet in a hundred may have missed the sample.
            (&be, "ef", 0.01, true, None),
            (&Packets::new(), "ef", 0.25, true, None),
        ] {
            assert_eq!(
                of(outer, name, share, has_form).as_deref(),
                words,
                "{name} {share}"
            );
        }
    }

    #[test]
    fn the_outer_header_is_copied_cleared_or_other() {
        let packets = |list: &[(&str, u64)]| -> Packets {
            let list = list.iter();
            list.map(|(class, count)| ((*class).to_owned(), *count))
                .collect()
        };
        let of =
            |list: &[(&str, u64)], asked, has_form| outer_in_words(&packets(list), asked, has_form);
        let copied = of(&[("ef", 95), ("be", 5)], "ef", true);
        assert_eq!(copied.as_deref(), Some("ef: copied"));
        assert_eq!(of(&[("be", 9)], "ef", true).as_deref(), Some("be: cleared"));
        assert_eq!(of(&[("be", 9)], "be", true).as_deref(), Some("be"));
        assert_eq!(of(&[("cs1", 9)], "ef", true).as_deref(), Some("cs1: other"));
        assert_eq!(
            of(&[("ef", 9)], "ef", false).as_deref(),
            Some("ef: no tunnel")
        );
        let mixed = of(&[("ef", 50), ("be", 50)], "ef", true);
        assert_eq!(mixed.as_deref(), Some("be 50 %, ef 50 %: mixed"));
        assert_eq!(of(&[], "ef", true), None);
        assert_eq!(
            of(&[("ef", u64::MAX), ("be", 1)], "ef", true).as_deref(),
            Some("ef: copied")
        );
    }
}
