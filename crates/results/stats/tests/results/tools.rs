//! The same transfer by several tools: whether they agree, and the reported reason if not.

use crate::fixture::*;
use crate::frame_fixture::{self, kinds};
use journal::record::{Figures, FrameResult, Measured, Transfer};
use plan::{Adapter, Cell, Coordinate, Load, Measurement, Procedure, Tool};
use proptest::prelude::*;
use stats::{Results, ToolCheck, WarningKind};

const DATAGRAM_BYTES: u32 = 1000;
/// Bytes of a frame besides its datagram: IPv4, UDP, Ethernet and FCS.
const FRAME_BYTES: u16 = 1046;
const FRAMES_PER_S: u64 = 10_000;

/// A cell and what each of its repeats measured.
type Tried = (Cell, Vec<Measured>);

fn by(tool: Tool, mut cell: Cell) -> Cell {
    match &mut cell.measurement {
        Measurement::Tcp { tool: of_cell, .. } | Measurement::Udp { tool: of_cell, .. } => {
            *of_cell = tool;
        }
        other => panic!("{other:?} has no tool"),
    }
    cell.group = format!("{}/tool={}", cell.group, tool.name());
    cell.coordinates = Coordinate::all_in(&cell.group);
    cell.id = format!("{}/{}", cell.group, cell.dut.name);
    cell
}

/// TCP by a tool that received these megabytes in the repeats.
fn received(tool: Tool, megabytes: &[u64]) -> Tried {
    let repeats = megabytes.iter().map(|&megabytes| transfer(megabytes));
    (by(tool, tcp("direct")), repeats.collect())
}

/// UDP by a tool that sent and lost this many datagrams in both repeats, of two seconds each.
fn sent(tool: Tool, sent: u64, lost: u64) -> Tried {
    let measured = datagrams(DATAGRAM_BYTES.into(), sent, lost);
    let cell = by(tool, udp(DATAGRAM_BYTES, None));
    (cell, vec![measured.clone(), measured])
}

fn transfer_in(measured: &mut Measured) -> &mut Transfer {
    match &mut measured.figures {
        Figures::Transfer(transfer) => transfer,
        other => panic!("{other:?}"),
    }
}

/// A load of frames, with the given number received in each second.
fn frames(frame_bytes: u16, frames_per_s: u64, forwarded: u64) -> Tried {
    let load = Procedure::Load(Load {
        frames_per_s: Some(frames_per_s),
        duration_ns: SECOND_NS,
    });
    let mut cell = frame_fixture::cell("router", frame_bytes, load);
    (cell.dut.name, cell.dut.adapter) = ("direct".into(), Adapter::Direct);
    let mut measured = transfer(0);
    measured.figures = Figures::Frames(Box::new(FrameResult {
        trials: vec![frame_fixture::trial(frames_per_s, forwarded)],
        ..FrameResult::default()
    }));
    (cell, vec![measured.clone(), measured])
}

fn results(tried: &[Tried]) -> Results {
    let cells = tried.iter().map(|(cell, _)| cell.clone()).collect();
    let repeats = tried[0].1.len() as u32;
    let mut run = journal(cells, repeats, 8);
    for (cell, found) in tried {
        for (repeat, found) in (1..).zip(found) {
            record(&mut run, &cell.id, repeat, measured(found.clone()));
        }
    }
    Results::of(&run)
}

#[track_caller]
fn only(tried: &[Tried]) -> ToolCheck {
    let results = results(tried);
    let [check] = results.tool_checks.as_slice() else {
        panic!("{:#?}", results.tool_checks)
    };
    let warns = kinds(&results).contains(&WarningKind::ToolsDisagree);
    assert_eq!(warns, !check.agree);
    check.clone()
}

/// Why the second tool is slower.
#[track_caller]
fn reason(tried: &[Tried]) -> Option<String> {
    let check = only(tried);
    assert!(!check.agree, "{check:#?}");
    check.reason
}

#[test]
fn tools_within_five_per_cent_agree() {
    let check = only(&[
        received(Tool::Iperf3, &[1000; 3]),
        received(Tool::Iperf2, &[950; 3]),
    ]);
    assert!(check.agree && check.reason.is_none(), "{check:?}");
    assert_eq!(
        (check.question.as_str(), check.dut.as_str()),
        ("tcp", "direct")
    );
    let tools: Vec<_> = check.figures.iter().map(|figure| &figure.tool).collect();
    assert_eq!(tools, ["iperf3", "iperf2"]);
    frame_fixture::assert_close(check.difference_percent, 5.0);
}

#[test]
fn tools_further_apart_than_their_spreads_are_named_in_a_warning() {
    let results = results(&[
        received(Tool::Iperf3, &[1000; 3]),
        received(Tool::Iperf2, &[940; 3]),
    ]);
    let warning = results.warnings.iter();
    let warning = warning.filter(|warning| warning.kind == WarningKind::ToolsDisagree);
    let [warning] = warning.collect::<Vec<_>>()[..] else {
        panic!("{:#?}", results.warnings)
    };
    assert_eq!(
        warning.cells,
        ["tcp/tool=iperf3/direct", "tcp/tool=iperf2/direct"]
    );
    for part in ["`tcp` of `direct`", "iperf3", "no reason was found"] {
        assert!(warning.text.contains(part), "{}", warning.text);
    }
    // The same distance does not count if the repeats leave a smaller one possible.
    let check = only(&[
        received(Tool::Iperf3, &[960, 1000, 1040]),
        received(Tool::Iperf2, &[910, 940, 950]),
    ]);
    let low = check.difference_low_percent.unwrap();
    assert!(
        check.agree && low < 5.0 && check.difference_percent > 6.0,
        "{check:?}"
    );
}

#[test]
fn a_difference_counts_where_the_repeats_exclude_chance() {
    let found = |least: u64| {
        only(&[
            received(Tool::Iperf3, &[least, 105, 110, 110, 110]),
            received(Tool::Iperf2, &[70, 70, 70, 90, 90]),
        ])
    };
    // With one pair alike, the difference may be chance.
    let apart = found(100);
    assert!(!apart.agree, "{apart:?}");
    let alike = found(70);
    assert!(alike.agree && alike.difference_percent > 20.0, "{alike:?}");
}

#[test]
fn one_repeat_one_tool_or_another_question_is_no_check() {
    let other_device = {
        let cell = by(Tool::Iperf2, tcp("cipherbench"));
        (cell, vec![transfer(500), transfer(500)])
    };
    for tried in [
        vec![
            received(Tool::Iperf3, &[1000]),
            received(Tool::Iperf2, &[500]),
        ],
        vec![received(Tool::Iperf3, &[1000; 2])],
        vec![received(Tool::Iperf3, &[1000; 2]), other_device],
        vec![
            received(Tool::Iperf3, &[1000; 2]),
            sent(Tool::Iperf2, 20_000, 0),
        ],
    ] {
        assert_eq!(results(&tried).tool_checks, []);
    }
}

#[test]
fn a_tool_that_used_up_its_core_is_the_bottleneck() {
    let busy = |mut tried: Tried, cores: f64| {
        for measured in &mut tried.1 {
            measured.cpu.station_a_ns = (measured.cpu.wall_ns as f64 * cores) as u64;
        }
        tried
    };
    let slow = |cores, others| {
        reason(&[
            busy(received(Tool::Iperf3, &[1000; 2]), others),
            busy(received(Tool::Iperf2, &[500; 2]), cores),
        ])
    };
    let found = slow(1.0, 0.5).unwrap();
    for part in [
        "iperf2 used up its cores on station A (1.00 of 1)",
        "the other tool had not",
    ] {
        assert!(found.contains(part), "{found}");
    }
    let found = slow(0.95, 0.95).unwrap();
    assert!(found.contains("as the other tool had"), "{found}");
    // The fast one's core is no reason for the slow one.
    assert_eq!(slow(0.8, 1.0), None);
}

#[test]
fn other_parameters_come_before_all_other_reasons() {
    let full = |mut tried: Tried| {
        for measured in &mut tried.1 {
            measured.cpu.station_a_ns = measured.cpu.wall_ns;
        }
        tried
    };
    let mut short = full(sent(Tool::Iperf2, 10_000, 0));
    for measured in &mut short.1 {
        let transfer = transfer_in(measured);
        transfer.parameters.datagram_bytes = Some(512);
    }
    let found = reason(&[sent(Tool::Iperf3, 20_000, 0), short]);
    assert_eq!(
        found.unwrap(),
        "they used datagrams in bytes of 512 and 1000"
    );
    for (streams, window_bytes, said) in [
        (
            Some(8),
            Some(65_536),
            Some("they used numbers of streams of 8 and 4"),
        ),
        // The kernel's own choice is unknown for both.
        (None, Some(65_536), None),
    ] {
        let mut slow = received(Tool::Iperf2, &[500; 2]);
        for measured in &mut slow.1 {
            let parameters = &mut transfer_in(measured).parameters;
            (parameters.streams, parameters.window_bytes) = (streams, window_bytes);
        }
        let found = reason(&[received(Tool::Iperf3, &[1000; 2]), slow]);
        assert_eq!(found.as_deref(), said);
    }
}

#[test]
fn less_offered_comes_before_more_lost() {
    let of = |offered, lost| {
        reason(&[
            sent(Tool::Iperf3, 20_000, 0),
            sent(Tool::Iperf2, offered, lost),
        ])
        .unwrap()
    };
    let found = of(10_000, 1_000);
    assert!(
        found.starts_with("iperf2 offered ") && found.contains("the sender is the bottleneck"),
        "{found}"
    );
    let found = of(20_000, 4_000);
    assert!(
        found.starts_with("iperf2 lost 20.0 % of its datagrams, the other 0.0 %"),
        "{found}"
    );
}

#[test]
fn segments_sent_again_are_a_reason_when_they_are_many() {
    let again = |mut tried: Tried, count: u64| {
        for measured in &mut tried.1 {
            transfer_in(measured).retransmits = Some(count);
        }
        tried
    };
    let slow = |count, others| {
        reason(&[
            again(received(Tool::Iperf3, &[1000; 2]), others),
            again(received(Tool::Iperf2, &[500; 2]), count),
        ])
    };
    let found = slow(310, 100).unwrap();
    assert!(
        found.starts_with("iperf2 retransmitted 310 segments, iperf3 100"),
        "{found}"
    );
    // Three times as many are not more than three times; and nine are few.
    assert_eq!(slow(300, 100), None);
    assert_eq!(slow(9, 0), None);
    // Without the tool's own report the reason is a guess, and worded as one.
    let beside_silent = |count| {
        reason(&[
            received(Tool::Iperf2, &[1000; 2]),
            again(received(Tool::Iperf3, &[500; 2]), count),
        ])
    };
    let found = beside_silent(254).unwrap();
    assert!(
        found.starts_with(
            "iperf3 retransmitted 254 segments, iperf2 does not report them: loss may have"
        ),
        "{found}"
    );
    assert_eq!(beside_silent(9), None);
}

#[test]
fn frames_of_the_same_load_stand_beside_datagrams() {
    let both = || [sent(Tool::Iperf3, 20_000, 0), sent(Tool::Iperf2, 20_000, 0)];
    let with = |of_frames: Tried| {
        let [one, other] = both();
        only(&[one, of_frames, other])
    };
    let check = with(frames(FRAME_BYTES, FRAMES_PER_S, FRAMES_PER_S));
    assert!(check.agree, "{check:?}");
    let last = &check.figures[2];
    assert_eq!(last.tool, "frames");
    let payload_bps = 8.0 * f64::from(DATAGRAM_BYTES) * FRAMES_PER_S as f64;
    frame_fixture::assert_close(last.payload_throughput_bps.mean, payload_bps);
    // A device with loss in the frame test but not with the tools.
    assert!(!with(frames(FRAME_BYTES, FRAMES_PER_S, 8_000)).agree);

    let mut other_device = frames(FRAME_BYTES, FRAMES_PER_S, 8_000);
    other_device.0.dut.name = "router".into();
    let mut with_offloads = frames(FRAME_BYTES, FRAMES_PER_S, 8_000);
    with_offloads.0.stations.as_mut().unwrap().offloads = true;
    let mut both_ways = frames(FRAME_BYTES, FRAMES_PER_S, 8_000);
    if let Measurement::Frames(test) = &mut both_ways.0.measurement {
        test.traffic.duplex = true;
    }
    for other in [
        frames(FRAME_BYTES + 4, FRAMES_PER_S, 8_000),
        frames(FRAME_BYTES, FRAMES_PER_S + 300, 8_000),
        other_device,
        with_offloads,
        both_ways,
    ] {
        let what = other.0.clone();
        assert_eq!(with(other).figures.len(), 2, "{what:?}");
    }
}

/// Cells of one question: datagrams by two tools, and two loads of frames.
fn of_one_question() -> impl Strategy<Value = Vec<Tried>> {
    let lost = || (17_000..=20_000_u64, 0..3_000_u64);
    let forwarded = || 8_000..=FRAMES_PER_S;
    (lost(), lost(), forwarded(), forwarded()).prop_map(|(one, other, first, second)| {
        let mut again = frames(FRAME_BYTES, FRAMES_PER_S, second);
        again.0.id.push_str("-again");
        vec![
            sent(Tool::Iperf3, one.0, one.1),
            sent(Tool::Iperf2, other.0, other.1),
            frames(FRAME_BYTES, FRAMES_PER_S, first),
            again,
        ]
    })
}

proptest! {
    #[test]
    fn the_order_of_the_plan_changes_nothing(
        (tried, shuffled) in of_one_question()
            .prop_flat_map(|tried| (Just(tried.clone()), Just(tried).prop_shuffle()))
    ) {
        let sorted = |tried: &[Tried]| {
            let mut check = only(tried);
            check.figures.sort_by(|a, b| a.cell.cmp(&b.cell));
            check
        };
        prop_assert_eq!(sorted(&tried), sorted(&shuffled));
    }
}
