//! Sessions as iperf3 really reported them, put together.

use super::*;
use crate::iperf3::Sessions;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

macro_rules! pair {
    ($name:literal) => {
        Pair {
            sender: Sessions::parse(include_str!(concat!(
                "../../tests/data/iperf3-3.12-",
                $name,
                ".client.json"
            )))
            .unwrap()
            .sent
            .unwrap(),
            receiver: Sessions::parse(include_str!(concat!(
                "../../tests/data/iperf3-3.12-",
                $name,
                ".server.json"
            )))
            .unwrap()
            .received
            .unwrap(),
        }
    };
}

fn timing(warmup_ms: u64) -> Timing {
    Timing {
        interval_ns: 100 * MS,
        step_ns: 100 * MS,
        warmup_ns: warmup_ms * MS,
        run_ns: 1000 * MS,
    }
}

/// Assembles what `iperf3` counted from A to B.
fn assemble(
    pairs: &[Pair],
    timing: &Timing,
    parameters: &ToolParameters,
) -> Result<(Transfer, Totals), TransferError> {
    let asked = TransferSettings {
        tool: "iperf3",
        timing,
        parameters,
        way: FlowDirection::AToB,
        link_bps: None,
        apart_ns: 0,
    };
    super::assemble(pairs, &asked)
}

fn udp() -> ToolParameters {
    ToolParameters {
        datagram_bytes: Some(1472),
        ..ToolParameters::default()
    }
}

#[test]
fn two_processes_are_summed_in_bytes_and_on_the_timeline() {
    let pairs = [pair!("tcp-process-0"), pair!("tcp-process-1")];
    let (transfer, totals) = assemble(&pairs, &timing(0), &ToolParameters::default()).unwrap();
    assert_eq!(transfer.received_bytes, 1_466_595_976 + 1_453_387_056);
    assert_eq!(transfer.sent_bytes, 1_467_875_328 + 1_456_603_136);
    assert_eq!(transfer.duration_ns, 1_003_440_000);
    assert_eq!(transfer.retransmits, Some(0));
    assert_eq!(transfer.datagrams, None);
    assert_eq!(transfer.intervals.len(), 10);
    assert_eq!(
        transfer.intervals.iter().map(|i| i.bytes).sum::<u64>(),
        transfer.received_bytes
    );
    assert_eq!(totals.received_bytes, transfer.received_bytes);
    assert_eq!(totals.received_summary_bytes, Some(totals.received_bytes));
}

#[test]
fn the_warm_up_is_left_out_of_the_figure_but_not_of_the_totals() {
    let (transfer, totals) = assemble(
        &[pair!("tcp-2-streams")],
        &timing(300),
        &ToolParameters::default(),
    )
    .unwrap();
    // The receiver's first three intervals in the recorded report.
    let warm_up = 162_725_512 + 119_341_432 + 118_095_872;
    assert_eq!(totals.received_bytes, 1_259_601_920);
    assert_eq!(transfer.received_bytes, totals.received_bytes - warm_up);
    assert_eq!(transfer.duration_ns, 1_005_715_000 - 300_775_000);
    assert_eq!(transfer.intervals.len(), 7);
    assert_eq!(
        (totals.offered_bytes, totals.offered_ns),
        (transfer.sent_bytes, 702_481_000)
    );
}

#[test]
fn udp_loss_is_sent_minus_received() {
    let (transfer, _) = assemble(&[pair!("udp-loss")], &timing(0), &udp()).unwrap();
    let datagrams = transfer.datagrams.unwrap();
    assert_eq!((datagrams.sent, datagrams.lost), (33_462, 869));
    assert_eq!(transfer.received_bytes, (33_462 - 869) * 1472);
    let (transfer, _) = assemble(&[pair!("udp-100m")], &timing(0), &udp()).unwrap();
    assert_eq!(transfer.datagrams.unwrap().lost, 0);
}

#[test]
fn udp_loss_after_the_warm_up_leaves_out_what_was_lost_in_it() {
    // The first two intervals lost 514 + 191 of the 869.
    let (transfer, _) = assemble(&[pair!("udp-loss")], &timing(200), &udp()).unwrap();
    assert_eq!(transfer.datagrams.unwrap().lost, 869 - 514 - 191);
}

#[test]
fn the_last_datagrams_in_flight_are_not_lost() {
    // A sent 271190; B's highest sequence number is 265014, with 18517 missing below it.
    let (transfer, totals) = assemble(&[pair!("udp-flood")], &timing(0), &udp()).unwrap();
    let datagrams = transfer.datagrams.unwrap();
    assert_eq!((datagrams.sent, datagrams.lost), (265_014, 18_517));
    assert_eq!(transfer.received_bytes, (265_014 - 18_517) * 1472);
    assert_eq!(totals.sent_bytes, 271_190 * 1472);
}

#[test]
fn a_path_that_dies_at_the_end_loses_all_that_was_sent_since() {
    let mut pair = pair!("udp-100m");
    // B saw nothing of the last two intervals of 0.1 s: 1698 datagrams.
    for step in &mut pair.receiver.steps[8..] {
        (step.bytes, step.packets) = (0, Some(0));
    }
    let (transfer, _) = assemble(&[pair], &timing(0), &udp()).unwrap();
    let datagrams = transfer.datagrams.unwrap();
    assert_eq!((datagrams.sent, datagrams.lost), (8486, 1698));
}

#[test]
fn a_path_that_stalls_at_the_end_for_longer_than_buffers_explain_is_not_lossless() {
    // B read nothing of the last 6176 datagrams, 23 ms of traffic.
    let lost = |window_bytes| {
        let parameters = ToolParameters {
            window_bytes: Some(window_bytes),
            ..udp()
        };
        let (transfer, _) = assemble(&[pair!("udp-flood")], &timing(0), &parameters).unwrap();
        transfer.datagrams.unwrap().lost
    };
    // The kernel doubles the requested size, and charges 512 B for each datagram.
    let held = 6176 * (1472 + 512) / 2;
    assert_eq!(lost(held), 18_517);
    assert_eq!(lost(held - 1), 18_517 + 6176);
}

#[test]
fn a_path_that_carries_nothing_after_the_warm_up_loses_everything() {
    let step = |n: u64, packets| Step {
        start_ns: n * 100 * MS,
        end_ns: (n + 1) * 100 * MS,
        bytes: packets * 100,
        packets: Some(packets),
        retransmits: None,
        rtt_ns: None,
    };
    let sender = Session {
        steps: (0..10).map(|n| step(n, 50)).collect(),
        ..Session::default()
    };
    let receiver = Session {
        steps: (0..10)
            .map(|n| step(n, if n < 2 { 50 } else { 0 }))
            .collect(),
        ..Session::default()
    };
    let parameters = ToolParameters {
        datagram_bytes: Some(100),
        ..ToolParameters::default()
    };
    let (transfer, _) = assemble(&[Pair { sender, receiver }], &timing(300), &parameters).unwrap();
    let datagrams = transfer.datagrams.unwrap();
    assert_eq!(
        (datagrams.sent, datagrams.lost, transfer.received_bytes),
        (350, 350, 0)
    );
}

#[test]
fn a_tool_that_stopped_in_the_warm_up_is_an_error() {
    let error = assemble(
        &[pair!("tcp-2-streams")],
        &timing(5000),
        &ToolParameters::default(),
    );
    assert_eq!(
        error,
        Err(TransferError::NothingMeasured {
            tool: "iperf3",
            station: "a",
            warmup_ms: 5000
        })
    );
}

#[test]
fn bytes_that_are_not_those_of_whole_datagrams_are_an_error() {
    for datagram_bytes in [1471, 736] {
        let datagram_bytes = Some(datagram_bytes);
        let parameters = ToolParameters {
            datagram_bytes,
            ..ToolParameters::default()
        };
        let error = assemble(&[pair!("udp-loss")], &timing(0), &parameters).unwrap_err();
        assert!(
            error.to_string().contains("station a counts 49256064 B"),
            "{error}"
        );
    }
    let mut pair = pair!("udp-loss");
    pair.receiver.steps[3].bytes += 1;
    let error = assemble(&[pair], &timing(0), &udp()).unwrap_err();
    assert!(error.to_string().contains("station b counts"), "{error}");
}

/// Made by hand after version 3.16; version 3.12 has equal counts.
#[test]
fn the_sequence_numbers_decide_where_a_threaded_sender_counted_fewer_bytes() {
    let mut pair = pair!("udp-100m");
    for step in &mut pair.sender.steps {
        step.bytes -= 2 * 1472;
    }
    let sequence = pair.sender.packets();
    let (transfer, totals) = assemble(&[pair.clone()], &timing(0), &udp()).unwrap();
    assert_eq!(totals.sent_bytes, sequence * 1472);
    assert_eq!(totals.offered_bytes, totals.sent_bytes);
    assert_eq!(totals.uncounted_bytes, 2 * 1472);
    assert_eq!(transfer.datagrams.unwrap().lost, 0);
    // Two datagrams of each of two streams in every interval are the most.
    // Twenty datagrams are missing already: two in each of ten intervals.
    pair.sender.steps[0].bytes -= (4 * 10 - 2 * 10) * 1472;
    assert!(assemble(&[pair.clone()], &timing(0), &udp()).is_ok());
    pair.sender.steps[0].bytes -= 1472;
    assert!(assemble(&[pair], &timing(0), &udp()).is_err());
}

proptest! {
    #[test]
    fn a_timeline_keeps_every_byte(
        lengths in proptest::collection::vec((50 * MS..150 * MS, 0..1u64 << 40), 1..30),
        others in proptest::collection::vec((0..150 * MS, 0..1u64 << 40), 1..30),
    ) {
        let session = |lengths: &[(u64, u64)]| {
            let mut start_ns = 0;
            let steps = lengths.iter().map(|&(length, bytes)| {
                let step = Step { start_ns, end_ns: start_ns + length, bytes, ..Step::default() };
                start_ns += length;
                step
            });
            Session { steps: steps.collect(), ..Session::default() }
        };
        let (one, two) = (session(&lengths), session(&others));
        let windows = [Window { steps: &one.steps }, Window { steps: &two.steps }];
        let intervals = timeline(&windows, 100 * MS);
        prop_assert_eq!(intervals.iter().map(|i| i.bytes).sum::<u64>(), one.bytes() + two.bytes());
        prop_assert!(intervals.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        prop_assert_eq!(intervals[0].start_ns, 0);
    }
}

/// One stray datagram, whose number is far ahead, as it stood in a real report.
#[test]
fn a_receiver_that_knows_of_more_datagrams_than_were_sent_is_refused() {
    let mut pair = pair!("udp-100m");
    let step = &mut pair.receiver.steps[4];
    step.packets = step.packets.map(|packets| packets + 364_936);
    let error = assemble(&[pair], &timing(0), &udp())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("iperf3 on station b knows of 369"),
        "{error}"
    );
    assert!(error.contains("station a had sent 5"), "{error}");
}

#[test]
fn a_receiver_that_knows_of_datagrams_early_is_refused_though_the_totals_agree() {
    let mut early = pair!("udp-100m");
    let steps = &mut early.receiver.steps;
    // One interval early is within the clocks' difference, two are not.
    let moved = steps[3].packets.unwrap();
    (steps[2].packets, steps[3].packets) = (steps[2].packets.map(|n| n + moved), Some(0));
    let of_bytes = std::mem::take(&mut steps[3].bytes);
    steps[2].bytes += of_bytes;
    assert!(assemble(&[early.clone()], &timing(0), &udp()).is_ok());
    let steps = &mut early.receiver.steps;
    let moved = steps[4].packets.unwrap() + steps[5].packets.unwrap();
    (steps[2].packets, steps[4].packets) = (steps[2].packets.map(|n| n + moved), Some(0));
    steps[5].packets = Some(0);
    let of_bytes = std::mem::take(&mut steps[4].bytes) + std::mem::take(&mut steps[5].bytes);
    steps[2].bytes += of_bytes;
    let error = assemble(&[early], &timing(0), &udp()).unwrap_err();
    assert!(
        matches!(error, TransferError::MoreThanSent { by_ms: 300, .. }),
        "{error}"
    );
}

#[test]
fn bytes_without_a_rise_of_the_number_are_explained_by_reordering_or_refused() {
    let mut pair = pair!("udp-100m");
    let late = pair.receiver.steps[4].packets.replace(0).unwrap();
    pair.receiver.steps[5].packets = pair.receiver.steps[5].packets.map(|n| n + late);
    let error = assemble(&[pair.clone()], &timing(0), &udp())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("from 400 to 500 ms, which raised its highest number by 0"),
        "{error}"
    );
    pair.receiver.out_of_order = late;
    assert!(assemble(&[pair], &timing(0), &udp()).is_ok());
}

/// A starved iperf2 server answers the last datagram late, so that it is sent several times.
#[test]
fn last_datagrams_that_iperf2_repeats_are_no_stray_ones() {
    let is_taken = |tool, more| {
        let mut pair = pair!("udp-100m");
        let sent: u64 = pair.sender.steps.iter().filter_map(|it| it.packets).sum();
        let known: u64 = pair.receiver.steps.iter().filter_map(|it| it.packets).sum();
        let step = pair.receiver.steps.last_mut().unwrap();
        step.packets = step.packets.map(|packets| packets + sent - known + more);
        let asked = TransferSettings {
            tool,
            timing: &timing(0),
            parameters: &udp(),
            way: FlowDirection::AToB,
            link_bps: None,
            apart_ns: 0,
        };
        plausible::known_after_sent(&pair, &asked).is_ok()
    };
    let most = |tool| (0..).take_while(|more| is_taken(tool, *more)).last();
    // Two streams.
    assert_eq!((most("iperf3"), most("iperf2")), (Some(4), Some(24)));
}

#[test]
fn times_longer_than_the_trial_and_more_than_a_link_carries_are_refused() {
    let refused = |spoil: fn(&mut Pair), parameters: &ToolParameters, link_bps| {
        let mut pair = match parameters.datagram_bytes {
            Some(_) => pair!("udp-100m"),
            None => pair!("tcp-2-streams"),
        };
        let asked = |timing| TransferSettings {
            tool: "iperf2",
            timing,
            parameters,
            way: FlowDirection::AToB,
            link_bps,
            apart_ns: 0,
        };
        let timing = timing(0);
        assert!(super::assemble(&[pair.clone()], &asked(&timing)).is_ok());
        spoil(&mut pair);
        super::assemble(&[pair], &asked(&timing))
            .unwrap_err()
            .to_string()
    };
    // 512 days.
    let jitter = |pair: &mut Pair| pair.receiver.jitter_ns = 44_260_133_838_438_000;
    let error = refused(jitter, &udp(), None);
    assert!(
        error.starts_with("iperf2 on station b reports a jitter of "),
        "{error}"
    );
    assert!(error.contains("longer than the trial"), "{error}");
    let tcp = ToolParameters::default();
    let rtt = |pair: &mut Pair| pair.sender.steps[3].rtt_ns = Some(10_000_000_000);
    assert!(refused(rtt, &tcp, None).contains("station a reports a round trip of 10 s"));
    let end = |pair: &mut Pair| pair.receiver.steps[10].end_ns = 10_000_000_000;
    assert!(refused(end, &tcp, None).contains("an end of the test of 10 s"));
    let more = |pair: &mut Pair| pair.receiver.steps[5].bytes += 1_000_000_000;
    let error = refused(more, &tcp, Some(11_000_000_000));
    assert!(
        error.contains("more than its link of 11 Gbit/s carries"),
        "{error}"
    );
    let again = |pair: &mut Pair| pair.sender.steps[5].retransmits = Some(1_000_000_000);
    assert!(refused(again, &tcp, None).contains("1000001"));
    let size = |pair: &mut Pair| pair.sender.block_bytes = 1400;
    assert!(refused(size, &udp(), None).contains("datagrams of 1400 B where 1472 B"));
    let streams = |pair: &mut Pair| pair.receiver.streams = 7;
    assert!(refused(streams, &udp(), None).contains("7 streams where station a has 2"));
    let order = |pair: &mut Pair| pair.receiver.out_of_order = 1_000_000;
    assert!(refused(order, &udp(), None).contains("1000000 of 8486 datagrams out of order"));
}

#[test]
fn copies_that_the_path_made_hide_no_loss() {
    let found = |duplicated, reordered, out_of_order| {
        let mut pair = pair!("udp-loss");
        // Of 33462 datagrams 869 were lost; copies of 800 arrived, in the interval that lost most.
        pair.receiver.steps[0].bytes += 800 * 1472;
        pair.receiver.out_of_order = out_of_order;
        let (mut transfer, totals) = assemble(&[pair], &timing(0), &udp()).unwrap();
        assert_eq!(transfer.datagrams.unwrap().lost, 69);
        let counts = impair::Counts {
            duplicated,
            reordered,
            ..impair::Counts::default()
        };
        leave_out_copies(&mut transfer, &totals, &counts);
        let datagrams = transfer.datagrams.unwrap();
        let counted: u64 = transfer.intervals.iter().map(|one| one.bytes).sum();
        // Each interval is rounded down by itself.
        assert!(counted.abs_diff(transfer.received_bytes) < 20);
        let received = (datagrams.sent - datagrams.lost) * 1472;
        assert_eq!(transfer.received_bytes, received);
        (datagrams.lost, datagrams.copies)
    };
    assert_eq!(found(900, 0, 800), (869, 800));
    // Frames that were held back came out of order too.
    assert_eq!(found(900, 50, 850), (869, 800));
    // A device may have refused the others.
    assert_eq!(found(700, 0, 800), (769, 700));
    assert_eq!(found(0, 0, 800), (69, 0));
}

#[test]
fn recorded_pairs_contradict_nothing() {
    for (pair, bytes) in [
        (pair!("udp-loss"), 1472),
        (pair!("udp-flood"), 1472),
        (pair!("udp-100m"), 1472),
        (pair!("udp-duplex"), 0),
        (pair!("tcp-duplex"), 0),
        (pair!("tcp-process-0"), 0),
        (pair!("tcp-process-1"), 0),
    ] {
        let block = u32::try_from(pair.sender.block_bytes).unwrap();
        let parameters = ToolParameters {
            datagram_bytes: Some(block).filter(|_| bytes > 0 || pair.sender.packets() > 0),
            ..ToolParameters::default()
        };
        let found = assemble(&[pair], &timing(0), &parameters);
        assert!(found.is_ok(), "{found:?}");
    }
}

/// The word to begin may have been lost once on an impaired path, and come a second late.
#[test]
fn ends_that_begin_apart_on_an_impaired_path_do_not_contradict_each_other() {
    let mut pair = pair!("udp-100m");
    let moved: u64 = pair.receiver.steps[3..8]
        .iter()
        .filter_map(|step| step.packets)
        .sum();
    let bytes: u64 = pair.receiver.steps[3..8]
        .iter()
        .map(|step| step.bytes)
        .sum();
    for step in &mut pair.receiver.steps[3..8] {
        (step.bytes, step.packets) = (0, Some(0));
    }
    let first = &mut pair.receiver.steps[0];
    (first.bytes, first.packets) = (first.bytes + bytes, first.packets.map(|n| n + moved));
    let (timing, parameters) = (timing(0), udp());
    let found = |apart_ns| {
        let asked = TransferSettings {
            tool: "iperf3",
            timing: &timing,
            parameters: &parameters,
            way: FlowDirection::BToA,
            link_bps: None,
            apart_ns,
        };
        super::assemble(std::slice::from_ref(&pair), &asked).map(drop)
    };
    assert!(matches!(found(0), Err(TransferError::MoreThanSent { .. })));
    assert_eq!(found(1000 * MS), Ok(()));
}
