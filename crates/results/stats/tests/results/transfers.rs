//! Transfers from B to A and both ways, and the figures of RFC 6349.

use crate::fixture::*;
use journal::record::*;
use plan::{Cell, Measurement, TransferDirection};
use stats::{CeilingBasis, DirectionName, Results, Rfc6349};

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * right.abs()
}

pub(crate) fn going(mut cell: Cell, to: TransferDirection) -> Cell {
    match &mut cell.measurement {
        Measurement::Tcp { direction, .. } | Measurement::Udp { direction, .. } => *direction = to,
        other => panic!("{other:?}"),
    }
    cell
}

fn one_way(measured: Measured) -> Transfer {
    match measured.figures {
        Figures::Transfer(transfer) => transfer,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn both(there: Measured, back: Measured) -> Outcome {
    let transfer = Transfer {
        reverse: Some(Box::new(one_way(back))),
        ..one_way(there.clone())
    };
    measured(Measured {
        figures: Figures::Transfer(transfer),
        ..there
    })
}

/// The rate is over the time in which datagrams came, the offered load over that in which they were
/// sent.
#[test]
fn a_queue_that_drained_is_a_warning_and_each_rate_is_over_its_own_time() {
    let cell = udp(1000, None);
    let mut run = journal(vec![cell.clone()], 2, 8);
    record(&mut run, &cell.id, 1, measured(datagrams(1000, 1000, 10)));
    let mut transfer = one_way(datagrams(1000, 1000, 10));
    let time_ns = transfer.duration_ns;
    transfer.parameters.datagram_bytes = Some(1000);
    transfer.datagrams.as_mut().unwrap().drain = Some(Drain {
        time_ns: time_ns / 5,
        offered: 900,
        offered_ns: time_ns / 5 * 4,
    });
    let drained = Measured {
        figures: Figures::Transfer(transfer),
        ..Measured::default()
    };
    record(&mut run, &cell.id, 2, measured(drained));
    let results = Results::of(&run);
    let bulk = results.cells[0].bulk().unwrap();
    let values = |found: &stats::Estimate| [0, 1].map(|at| found.values[at].value);
    let [one, other] = values(&bulk.payload_throughput_bps);
    assert!(close(one, other));
    let [one, other] = values(&bulk.offered_payload_bps);
    assert!(close(one / 1000.0, other / (900.0 / 0.8)), "{one} {other}");
    let counted = bulk.datagrams.as_ref().unwrap();
    let [one, other] = values(&counted.offered_datagrams_per_s);
    assert!(close(one / 1000.0, other / (900.0 / 0.8)), "{one} {other}");
    let kind = stats::WarningKind::QueueDrained;
    let found = results.warnings.iter().find(|one| one.kind == kind);
    let text = &found.unwrap().text;
    assert!(
        text.starts_with("In 1 trial of 1 cell datagrams came for"),
        "{text}"
    );
}

#[test]
fn a_duplex_transfer_has_each_way_apart_and_their_sum() {
    let cell = going(udp(1000, None), TransferDirection::Duplex);
    let mut run = journal(vec![cell.clone()], 1, 8);
    let (there, back) = (datagrams(1000, 1000, 10), datagrams(1000, 3000, 90));
    record(&mut run, &cell.id, 1, both(there, back));
    let results = Results::of(&run);
    let bulk = results.cells[0].bulk().unwrap();
    let [there, back] = &bulk.directions[..] else {
        panic!("{:?}", bulk.directions)
    };
    let names = [there.direction, back.direction];
    assert_eq!(names, [DirectionName::AToB, DirectionName::BToA]);
    assert!(close(there.payload_throughput_bps.mean, 990.0 * 4000.0));
    assert!(close(back.payload_throughput_bps.mean, 2910.0 * 4000.0));
    assert!(close(bulk.payload_throughput_bps.mean, 3900.0 * 4000.0));
    let lost = |found: &Option<stats::Datagrams>| found.as_ref().unwrap().lost;
    assert_eq!((lost(&there.datagrams), lost(&back.datagrams)), (10, 90));
    let sum = bulk.datagrams.as_ref().unwrap();
    assert_eq!((sum.sent, sum.lost), (4000, 100));
    assert!(close(sum.loss_ratio.mean, 0.025));
    assert_eq!(there.rfc6349, None, "of TCP only");
}

#[test]
fn a_record_of_one_way_is_no_duplex_transfer() {
    let cell = going(tcp("direct"), TransferDirection::Duplex);
    let mut run = journal(vec![cell.clone()], 1, 8);
    record(&mut run, &cell.id, 1, measured(transfer(250)));
    let results = Results::of(&run);
    assert_eq!(results.cells[0].bulk(), None);
    let reason = &results.cells[0].reasons[0].text;
    assert!(reason.contains("does not hold the ways"), "{reason}");
}

/// A transfer of which 1 % was sent again, with a round trip of 100 µs idle and 250 µs loaded.
fn with_facts(megabytes: u64, congestion: &str) -> Measured {
    let mut found = transfer(megabytes);
    if let Figures::Transfer(transfer) = &mut found.figures {
        transfer.retransmits = Some(transfer.sent_bytes / 99 / 1000);
        transfer.tcp = Some(TcpFacts {
            segment_bytes: Some(1000),
            loaded_rtt_ns: Some(250_000),
            baseline_rtt_ns: Some(100_000),
            congestion: Some(congestion.to_owned()),
        });
    }
    found
}

fn rfc6349(results: &Results, cell: usize) -> &Rfc6349 {
    let bulk = results.cells[cell].bulk().unwrap();
    bulk.directions[0].rfc6349.as_ref().unwrap()
}

#[test]
fn rfc_6349_compares_with_the_line_rate() {
    let mut run = journal(vec![tcp("direct")], 1, 8);
    run.header.plan.lab.link_bps = Some(1_000_000_000);
    record(&mut run, "tcp/direct", 1, measured(with_facts(99, "bbr")));
    let results = Results::of(&run);
    let found = rfc6349(&results, 0);
    let ideal = found.ideal.as_ref().unwrap();
    assert_eq!(ideal.basis, CeilingBasis::LineRate);
    // Of a frame of 1538 B on the line, 1448 B are payload (with timestamps).
    assert!(close(ideal.payload_bps, 1e9 * 1448.0 / 1538.0));
    let ideal_ns = 99e6 * 8e9 / ideal.payload_bps;
    assert!(close(ideal.ideal_transfer_ns.mean, ideal_ns));
    assert!(close(ideal.measured_transfer_ns.mean, 2e9));
    assert!(close(ideal.transfer_time_ratio.mean, 2e9 / ideal_ns));
    assert!(close(found.efficiency_percent.as_ref().unwrap().mean, 99.0));
    assert!(close(
        found.buffer_delay_percent.as_ref().unwrap().mean,
        150.0
    ));
    assert_eq!(found.congestion_control.as_deref(), Some("bbr"));
}

#[test]
fn a_round_trip_shorter_than_the_baseline_gives_no_buffer_delay() {
    let mut run = journal(vec![tcp("direct")], 3, 8);
    for (repeat, loaded_ns) in [(1, 58_000), (2, 226_000), (3, 25_000)] {
        let mut trial = transfer(99);
        if let Figures::Transfer(transfer) = &mut trial.figures {
            transfer.tcp = Some(TcpFacts {
                baseline_rtt_ns: Some(50_000),
                loaded_rtt_ns: Some(loaded_ns),
                ..TcpFacts::default()
            });
        }
        record(&mut run, "tcp/direct", repeat, measured(trial));
    }
    let results = Results::of(&run);
    let found = rfc6349(&results, 0);
    assert!(!found.is_comparable());
    assert_eq!(found.buffer_delay_percent, None);
    assert_eq!(found.buffer_delay_ns, None);
    assert!(found.baseline_rtt_ns.is_some() && found.loaded_rtt_ns.is_some());
}

#[test]
fn rfc_6349_has_no_figure_for_what_the_tool_does_not_report() {
    let mut run = journal(vec![tcp("direct"), tcp("aes")], 1, 8);
    record(
        &mut run,
        "tcp/direct",
        1,
        measured(with_facts(250, "cubic")),
    );
    let mut silent = transfer(100);
    if let Figures::Transfer(transfer) = &mut silent.figures {
        transfer.tcp = Some(TcpFacts::default());
    }
    record(&mut run, "tcp/aes", 1, measured(silent));
    let results = Results::of(&run);
    assert_eq!(
        rfc6349(&results, 0).ideal,
        None,
        "the baseline is not compared with itself"
    );
    let found = rfc6349(&results, 1);
    let missing = (
        &found.efficiency_percent,
        &found.baseline_rtt_ns,
        &found.buffer_delay_percent,
    );
    assert_eq!(missing, (&None, &None, &None));
    let ideal = found.ideal.as_ref().unwrap();
    assert_eq!(ideal.basis, CeilingBasis::Baseline);
    assert!(ideal.transfer_time_ratio.mean > 2.0, "{ideal:?}");
}
