//! Claims beside figures of known size.

use crate::fixture::*;
use crate::frame_fixture::{self, RIG, searched, throughput};
use journal::Journal;
use journal::record::{Figures, Outcome};
use plan::{Adapter, Bound, Claim, ClaimUnit, Percentile, WireGuard, WireGuardProgram, Xfrm};
use stats::{ClaimResult, ClaimVerdict, Results};
use wire::Suite;

fn claim(trial: &str, bound: Bound, value: u64, unit: ClaimUnit, cell: &str) -> Claim {
    Claim {
        dut: "cipherbench".into(),
        trial: trial.into(),
        bound,
        value,
        unit,
        goal: None,
        load_percent: None,
        percentile: (trial == "ping").then_some(Percentile::P50),
        source: "data sheet".into(),
        conditions: String::new(),
        cells: vec![cell.into()],
    }
}

fn judged(mut journal: Journal, claim: Claim) -> ClaimResult {
    journal.header.plan.claims = vec![claim];
    let mut found = Results::of(&journal).claims;
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// TCP of the device at these megabytes in two seconds, beside a path that carries 500.
fn tcp_run(megabytes: &[u64]) -> Journal {
    let repeats = megabytes.len() as u32;
    let mut run = journal(vec![tcp("direct"), tcp("cipherbench")], repeats, 8);
    for (repeat, megabytes) in (1..).zip(megabytes) {
        record(&mut run, "tcp/direct", repeat, measured(transfer(500)));
        record(
            &mut run,
            "tcp/cipherbench",
            repeat,
            measured(transfer(*megabytes)),
        );
    }
    run
}

fn at_least_gbit(run: Journal, tenths: u64) -> ClaimResult {
    let value = tenths * 100_000_000;
    let claim = claim(
        "tcp",
        Bound::AtLeast,
        value,
        ClaimUnit::PayloadBps,
        "tcp/cipherbench",
    );
    judged(run, claim)
}

#[test]
fn a_shortfall_with_shared_cores_is_not_decided() {
    let on = |cpus, tenths| {
        let mut run = tcp_run(&[246, 250, 254]);
        run.header.environment.cpus = cpus;
        at_least_gbit(run, tenths)
    };
    // Two stations with a core each, and two gateways with a worker each.
    assert_eq!(on(4, 11).verdict, ClaimVerdict::NotMet);
    let crowded = on(3, 11);
    assert_eq!(crowded.verdict, ClaimVerdict::NotDecided);
    assert!(
        crowded
            .reason
            .contains("want 4 cores of a machine that has 3"),
        "{}",
        crowded.reason
    );
    // Without sharing it would be faster still.
    assert_eq!(on(3, 9).verdict, ClaimVerdict::Met);
}

#[test]
fn the_devices_of_others_take_cores_too() {
    let with = |adapter, cpus| {
        let mut run = tcp_run(&[246, 250, 254]);
        run.header.environment.cpus = cpus;
        run.header.plan.cells[1].dut.adapter = adapter;
        at_least_gbit(run, 11)
    };
    let go = Adapter::WireGuard(WireGuard {
        program: WireGuardProgram::Go,
    });
    let kernel = Adapter::Xfrm(Xfrm {
        suite: Suite::Aes256Gcm,
    });
    for adapter in [go, kernel] {
        let crowded = with(adapter.clone(), 2);
        assert_eq!(crowded.verdict, ClaimVerdict::NotDecided, "{adapter:?}");
        assert!(
            crowded
                .reason
                .contains("want 4 cores of a machine that has 2"),
            "{}",
            crowded.reason
        );
        assert_eq!(with(adapter, 4).verdict, ClaimVerdict::NotMet);
    }
    // A router adds nothing to the cores that the stations need.
    let router = Adapter::Router { nat: false };
    assert_eq!(with(router, 2).verdict, ClaimVerdict::NotMet);
}

#[test]
fn a_claim_below_the_interval_is_met_and_one_above_it_is_not() {
    // 0.984, 1.0 and 1.016 Gbit/s: from 0.96 to 1.04 with 95 %.
    let run = || tcp_run(&[246, 250, 254]);
    let met = at_least_gbit(run(), 9);
    assert_eq!(met.verdict, ClaimVerdict::Met, "{}", met.reason);
    assert!((met.ratio.unwrap() - 1.0 / 0.9).abs() < 1e-9);
    assert_eq!(met.claim, "at least 900 Mbit/s payload");
    assert_eq!(met.conditions, None);
    assert!(
        met.conditions_here.contains("aes-256-gcm") && met.conditions_here.contains("MTU 1500 B")
    );
    let missed = at_least_gbit(run(), 11);
    assert_eq!(missed.verdict, ClaimVerdict::NotMet, "{}", missed.reason);
    // Beyond every repeat, but not beyond what three repeats leave possible.
    let wide = at_least_gbit(tcp_run(&[240, 250, 262]), 11);
    assert_eq!(wide.verdict, ClaimVerdict::NotDecided, "{}", wide.reason);
    let within = at_least_gbit(run(), 10);
    assert_eq!(within.verdict, ClaimVerdict::NotDecided);
    assert!(
        within.reason.ends_with("the claim lies within."),
        "{}",
        within.reason
    );
}

/// Fifty claims that are exactly the truth of noisy figures: one run in twenty decides any of them.
#[test]
fn claims_are_one_question() {
    let mut random = 1_u64;
    let mut uniform = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % 5_000
    };
    // Nearly normal.
    let mut noise = || -> u64 { (0..4).map(|_| uniform()).sum() };
    let wrong = (0..40).filter(|_| {
        let cells: Vec<_> = (0..50).map(|n| tcp(&format!("box {n}"))).collect();
        let mut run = journal(cells.clone(), 3, 8);
        for cell in &cells {
            for repeat in 1..=3 {
                // 250 MB in two seconds are 1 Gbit/s.
                let mut found = transfer(250);
                if let Figures::Transfer(transfer) = &mut found.figures {
                    transfer.received_bytes = 249_990_000 + noise();
                }
                record(&mut run, &cell.id, repeat, measured(found));
            }
            let value = 1_000_000_000;
            run.header.plan.claims.push(claim(
                "tcp",
                Bound::AtLeast,
                value,
                ClaimUnit::PayloadBps,
                &cell.id,
            ));
        }
        let claims = Results::of(&run).claims;
        claims
            .iter()
            .any(|found| found.verdict != ClaimVerdict::NotDecided)
    });
    assert!(wrong.count() <= 4);
}

#[test]
fn an_upper_claim_is_reversed() {
    let upper = |tenths: u64| {
        let value = tenths * 100_000_000;
        let claim = claim(
            "tcp",
            Bound::AtMost,
            value,
            ClaimUnit::PayloadBps,
            "tcp/cipherbench",
        );
        judged(tcp_run(&[246, 250, 254]), claim).verdict
    };
    assert_eq!(upper(11), ClaimVerdict::Met);
    assert_eq!(upper(9), ClaimVerdict::NotMet);
    assert_eq!(upper(10), ClaimVerdict::NotDecided);
}

#[test]
fn one_repeat_decides_nothing() {
    let found = at_least_gbit(tcp_run(&[400]), 1);
    assert_eq!(found.verdict, ClaimVerdict::NotDecided);
    assert_eq!(found.reason, "One repeat has no spread.");
    assert!(found.measured.is_some());
}

#[test]
fn a_cell_without_a_figure_decides_nothing_and_says_why() {
    for (outcome, why) in [
        (
            Outcome::Invalid {
                reasons: vec!["clear text on the cipher link".into()],
                measured: Box::new(transfer(900)),
            },
            "The cell is invalid: clear text on the cipher link.",
        ),
        (
            Outcome::Failed {
                reason: "`gw1` died\nhelp: look at its log".into(),
            },
            "The cell failed: `gw1` died.",
        ),
    ] {
        let mut run = journal(vec![tcp("cipherbench")], 1, 8);
        record(&mut run, "tcp/cipherbench", 1, outcome);
        let found = at_least_gbit(run, 1);
        assert_eq!(
            (found.verdict, found.reason.as_str()),
            (ClaimVerdict::NotDecided, why)
        );
        assert_eq!((found.measured, found.ratio), (None, None));
    }
    let found = at_least_gbit(journal(vec![tcp("cipherbench")], 1, 8), 1);
    assert_eq!(found.reason, "The cell was not run.");
}

#[test]
fn a_device_as_fast_as_the_path_does_not_miss_a_claim() {
    // 0.98 of what the path carries: stations limit both.
    let found = at_least_gbit(tcp_run(&[490, 490, 490]), 30);
    assert_eq!(found.verdict, ClaimVerdict::NotDecided);
    assert!(
        found.reason.contains("tester is the limit"),
        "{}",
        found.reason
    );
    // A figure above the claim meets it, whatever the limit is.
    assert_eq!(
        at_least_gbit(tcp_run(&[490, 490, 490]), 19).verdict,
        ClaimVerdict::Met
    );
}

#[test]
fn a_rate_that_was_not_offered_cannot_be_missed() {
    let mut run = journal(vec![udp(512, Some(1_000_000_000))], 2, 8);
    for repeat in [1, 2] {
        record(
            &mut run,
            "udp/512/direct",
            repeat,
            measured(datagrams(512, 400_000, 0)),
        );
    }
    let value = 2_000_000_000;
    let claim = claim(
        "udp",
        Bound::AtLeast,
        value,
        ClaimUnit::PayloadBps,
        "udp/512/direct",
    );
    let found = judged(run, claim);
    assert_eq!(found.verdict, ClaimVerdict::NotDecided);
    assert_eq!(found.reason, "No more than 819 Mbit/s was offered.");
}

#[test]
fn a_time_that_the_path_takes_itself_is_not_attributed_to_the_device() {
    let run = || {
        let mut run = journal(vec![ping("direct"), ping("cipherbench")], 2, 8);
        for repeat in [1, 2] {
            record(
                &mut run,
                "ping/direct",
                repeat,
                measured(round_trips(0, &[20, 20, 20, 20])),
            );
            record(
                &mut run,
                "ping/cipherbench",
                repeat,
                measured(round_trips(0, &[70, 70, 70, 72])),
            );
        }
        run
    };
    let at_most = |us: u64| {
        let claim = claim(
            "ping",
            Bound::AtMost,
            us * 1_000,
            ClaimUnit::Ns,
            "ping/cipherbench",
        );
        judged(run(), claim)
    };
    assert_eq!(at_most(100).verdict, ClaimVerdict::Met);
    assert_eq!(at_most(50).verdict, ClaimVerdict::NotMet);
    let found = at_most(10);
    assert_eq!(found.verdict, ClaimVerdict::NotDecided);
    assert!(
        found.reason.contains("takes 20 µs itself"),
        "{}",
        found.reason
    );
}

#[test]
fn the_upper_bound_of_a_search_counts_too() {
    let bounds: [frame_fixture::Bounds; 3] = [(Some(400_000), Some(410_000)); 3];
    let at_least = |value: u64, unit: ClaimUnit| {
        let cells = [
            (throughput("auto", 64), &bounds[..]),
            (throughput("straight", 64), &RIG[..]),
        ];
        let cell = "throughput/frame=64/direction=both/auto";
        judged(
            searched(&cells),
            claim("throughput", Bound::AtLeast, value, unit, cell),
        )
    };
    let frames = ClaimUnit::FramesPerS;
    assert_eq!(at_least(400_000, frames).verdict, ClaimVerdict::Met);
    // Between the bounds it is undecided.
    assert_eq!(at_least(405_000, frames).verdict, ClaimVerdict::NotDecided);
    assert_eq!(at_least(411_000, frames).verdict, ClaimVerdict::NotMet);
    // 400 000 frames of 64 B are 268.8 Mbit/s on the line, 204.8 with their FCS.
    let l1 = at_least(268_800_000, ClaimUnit::L1Bps);
    assert_eq!(
        (l1.verdict, l1.unit.as_str()),
        (ClaimVerdict::Met, "l1_bps")
    );
    assert_eq!(
        at_least(268_800_000, ClaimUnit::L2Bps).verdict,
        ClaimVerdict::NotMet
    );
}

#[test]
fn a_figure_limited_by_the_tester_does_not_miss_a_claim() {
    let cells = [
        (throughput("auto", 64), &RIG[..]),
        (throughput("straight", 64), &RIG[..]),
    ];
    let cell = "throughput/frame=64/direction=both/auto";
    let frames = ClaimUnit::FramesPerS;
    let found = judged(
        searched(&cells),
        claim("throughput", Bound::AtLeast, 2_000_000, frames, cell),
    );
    assert_eq!(found.verdict, ClaimVerdict::NotDecided);
    assert!(
        found.reason.starts_with("It is tester-limited: "),
        "{}",
        found.reason
    );
}

#[test]
fn claims_come_in_the_campaigns_order_a_row_for_each_cell() {
    let mut run = tcp_run(&[246, 250, 254]);
    let payload = ClaimUnit::PayloadBps;
    let mut first = claim("tcp", Bound::AtLeast, 1, payload, "tcp/cipherbench");
    first.cells.push("tcp/direct".into());
    let second = claim("tcp", Bound::AtMost, 1, payload, "tcp/direct");
    // A cell that the plan does not have is none.
    let third = claim("tcp", Bound::AtMost, 1, payload, "tcp/gone");
    run.header.plan.claims = vec![first, second, third];
    let cells: Vec<_> = Results::of(&run)
        .claims
        .into_iter()
        .map(|claim| claim.cell)
        .collect();
    assert_eq!(cells, ["tcp/cipherbench", "tcp/direct", "tcp/direct"]);
}

/// A claim about a search that found these bounds, on 8 cores beside a rig of the fixture.
fn by_bounds(bounds: &[frame_fixture::Bounds], bound: Bound, value: u64) -> ClaimResult {
    let cells = [
        (throughput("auto", 64), bounds),
        (throughput("straight", 64), &RIG[..bounds.len()]),
    ];
    let cell = "throughput/frame=64/direction=both/auto";
    let frames = ClaimUnit::FramesPerS;
    judged(
        searched(&cells),
        claim("throughput", bound, value, frames, cell),
    )
}

#[test]
fn bounds_that_some_repeats_found_decide_a_claim() {
    let some = [
        (Some(400_000), Some(410_000)),
        (Some(400_000), Some(410_000)),
        (None, Some(410_000)),
    ];
    let at_least = |value| by_bounds(&some, Bound::AtLeast, value);
    let met = at_least(300_000);
    assert_eq!(met.verdict, ClaimVerdict::Met, "{}", met.reason);
    assert_eq!(
        met.reason,
        "Found: lower bound 400 kpps (2 of 3 repeats), upper bound 410 kpps (mean of all repeats)."
    );
    assert_eq!(met.measured.unwrap().n, 2);
    let missed = at_least(500_000);
    assert_eq!(missed.verdict, ClaimVerdict::NotMet, "{}", missed.reason);
    let within = at_least(405_000);
    assert_eq!(within.verdict, ClaimVerdict::NotDecided);
    let at_most = by_bounds(&some, Bound::AtMost, 500_000);
    assert_eq!(at_most.verdict, ClaimVerdict::Met, "{}", at_most.reason);
}

#[test]
fn a_repeat_that_ended_below_a_claim_contradicts_the_others() {
    let below = [
        (Some(400_000), Some(410_000)),
        (Some(400_000), Some(410_000)),
        (None, Some(200_000)),
    ];
    let found = by_bounds(&below, Bound::AtLeast, 300_000);
    assert_eq!(found.verdict, ClaimVerdict::NotDecided, "{}", found.reason);
}

#[test]
fn one_lower_bound_has_no_spread_but_is_reported() {
    let some = [(Some(33_660), None), (None, Some(49_086))];
    let found = by_bounds(&some, Bound::AtLeast, 3_500);
    assert_eq!(found.verdict, ClaimVerdict::NotDecided);
    assert!(
        found.reason.starts_with(
            "Found: lower bound 33.7 kpps (1 of 2 repeats), upper bound 49.1 kpps \
             (1 of 2 repeats). One repeat has no spread."
        ),
        "{}",
        found.reason
    );
    assert!((found.ratio.unwrap() - 33_660.0 / 3_500.0).abs() < 1e-9);
}
