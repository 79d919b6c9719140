use super::*;

fn error(text: &str) -> String {
    text.parse::<Gate>().unwrap_err().to_string()
}

fn ratio(gate: &Gate) -> (Bound, f64) {
    match gate.limit {
        GateLimit::Ratio { bound, ratio, .. } => (bound, ratio),
        _ => panic!("{gate:?}"),
    }
}

#[test]
fn a_gate_has_filters_a_quantity_a_verb_and_a_bound() {
    let gate: Gate = "tcp dut=cipherbench throughput drops > 5 %"
        .parse()
        .unwrap();
    assert_eq!(
        gate.filters,
        [
            GateFilter::Kind("tcp".into()),
            GateFilter::Device("cipherbench".into())
        ]
    );
    assert_eq!(gate.quantity, "throughput");
    let (bound, kept) = ratio(&gate);
    assert!(bound == Bound::AtLeast && (kept - 0.95).abs() < 1e-12);
    let tight: Gate = "throughput throughput drops>5%".parse().unwrap();
    assert_eq!(tight.filters, [GateFilter::Kind("throughput".into())]);
    let spaced: Gate = "dut=\"a > b\" mtu=1500 p99 rises > 2.5 %".parse().unwrap();
    assert_eq!(
        spaced.filters,
        [
            GateFilter::Device("a > b".into()),
            GateFilter::Value(Axis::Mtu, "1500".into())
        ]
    );
    let (bound, kept) = ratio(&spaced);
    assert!(bound == Bound::AtMost && (kept - 1.025).abs() < 1e-12);
}

#[test]
fn a_comparison_has_a_figure_or_a_share_of_another_one() {
    use crate::analysis::gate::GateUnit;
    let figure = |text: &str| match text.parse::<Gate>().unwrap().limit {
        GateLimit::Figure { bound, value, unit } => (bound, value, unit),
        other => panic!("{text}: {other:?}"),
    };
    for (text, bound, value, unit) in [
        (
            "tcp throughput >= 5 Gbit/s",
            Bound::AtLeast,
            5e9,
            GateUnit::Bits,
        ),
        (
            "tcp throughput ≥ 5 Gbit/s",
            Bound::AtLeast,
            5e9,
            GateUnit::Bits,
        ),
        (
            "throughput throughput>=1.5Mpps",
            Bound::AtLeast,
            1.5e6,
            GateUnit::FramesPerS,
        ),
        (
            "mrr throughput >= 10 Gbit/s L1",
            Bound::AtLeast,
            1e10,
            GateUnit::BitsAt(units::Layer::L1),
        ),
        ("round trip p99 <= 300 us", Bound::AtMost, 3e5, GateUnit::Ns),
        (
            "loss at 1 Mpps <= 10 ppm",
            Bound::AtMost,
            1e-5,
            GateUnit::Share,
        ),
        ("udp loss<=0.1%", Bound::AtMost, 1e-3, GateUnit::Share),
        (
            "http transactions >= 5000/s",
            Bound::AtLeast,
            5000.0,
            GateUnit::PerS,
        ),
        (
            "burst >= 100 frames",
            Bound::AtLeast,
            100.0,
            GateUnit::Frames,
        ),
    ] {
        let found = figure(text);
        assert_eq!((found.0, found.2), (bound, unit), "{text}");
        assert!((found.1 / value - 1.0).abs() < 1e-12, "{text}: {found:?}");
    }
    for text in ["loss at 1 Mpps = 0", "loss=0", "loss = 0 %", "loss <= 0"] {
        let gate: Gate = text.parse().unwrap();
        assert_eq!(gate.limit, GateLimit::NoLoss, "{text}");
    }
    let gate: Gate = "loss at 1 Mpps = 0".parse().unwrap();
    assert_eq!(gate.at, Some(GateLoad::FramesPerS(1_000_000)));
    let gate: Gate = "latency p99 at 50 % <= 1 ms".parse().unwrap();
    assert_eq!(gate.at, Some(GateLoad::Percent(50)));
    let gate: Gate = "round trip p50 <= 1 ms".parse().unwrap();
    assert_eq!(gate.filters, [GateFilter::RoundTrip]);
    for (text, kept, wanted) in [
        (
            "tcp throughput >= 80 % of baseline",
            0.8,
            GateReference::Baseline,
        ),
        (
            "tcp throughput >= 80% of dut=\"a b\"",
            0.8,
            GateReference::Dut("a b".into()),
        ),
        (
            "tcp throughput drops > 5 % against run=runs/old",
            0.95,
            GateReference::Run("runs/old".into()),
        ),
    ] {
        let gate: Gate = text.parse().unwrap();
        assert!((ratio(&gate).1 - kept).abs() < 1e-12, "{text}");
        let GateLimit::Ratio { reference, .. } = gate.limit else {
            unreachable!("it has a ratio");
        };
        assert_eq!(reference, Some(wanted), "{text}");
    }
}

#[test]
fn a_mistake_in_a_comparison_is_shown_with_its_place_and_a_hint() {
    for (text, place, words) in [
        (
            "tcp throughput >= 5",
            "\n                    ^\n",
            "`5` has no unit",
        ),
        (
            "tcp throughput >= 5 ms",
            "\n                    ^^^^\n",
            "no limit of `throughput`",
        ),
        (
            "tcp throughput >=",
            "\n                   ^\n",
            "no figure behind `>=`",
        ),
        (
            "tcp throughput >= 5 Gbit/s p99 <= 1 ms",
            "\n                                 ^^\n",
            "`<=` is a second condition",
        ),
        ("1 ms <= p99 <= 2 ms", "\n    ^^\n", "unknown quantity `ms`"),
        (
            "tcp throughput = 5 Gbit/s",
            "\n                 ^\n",
            "`=` is of `loss = 0` only",
        ),
        ("loss = 1 %", "\n       ^\n", "`=` is of `loss = 0` only"),
        ("loss >= 1 %", "\n       ^^\n", "limited from above"),
        ("loss <= 5", "\n          ^\n", "`5` has no unit"),
        ("loss drops > 5 %", "\n  ^^^^\n", "write `loss = 0`"),
        (
            "loss at much = 0",
            "\n          ^^^^\n",
            "`much` is no load",
        ),
        ("loss at = 0", "\n          ^\n", "no load behind `at`"),
        (
            "throughput >= 80 % of",
            "\n                       ^\n",
            "nothing behind `of`",
        ),
        (
            "throughput >= 80 % of direct",
            "\n                        ^^^^^^\n",
            "names no figure",
        ),
        (
            "throughput >= 5 Gbit/s of baseline",
            "\n                ^^^^^^^^\n",
            "no share of another figure",
        ),
    ] {
        let shown = error(text);
        assert!(shown.contains(place) && shown.contains(words), "{shown}");
    }
}

#[test]
fn a_mistake_is_shown_with_its_place_and_a_hint() {
    assert_eq!(
        error("tcp thruput drops > 5 %"),
        "unknown quantity `thruput` in the gate\n  tcp thruput drops > 5 %\n      ^^^^^^^\nhelp: did \
         you mean `throughput`? known quantities are throughput, transactions, set-ups, \
         operations, efficiency, p50, p99, burst, recovery, loss"
    );
    assert_eq!(
        error("tcp throughput drops > 5"),
        "`%` is missing in the gate\n  tcp throughput drops > 5\n                          ^\nhelp: a \
         gate is like `tcp dut=cipherbench throughput drops > 5 %` or `tcp throughput >= 5 Gbit/s`"
    );
    for (text, place, words) in [
        (
            "",
            "\n  ^\n",
            "`drops`, `rises`, `>=`, `<=` or `=` is missing",
        ),
        (
            "tpc throughput drops > 5 %",
            "\n  ^^^\n",
            "did you mean `tcp`?",
        ),
        (
            "µtu=1 p50 rises > 5 %",
            "\n  ^^^^^\n",
            "did you mean `mtu`?",
        ),
        (
            "dut= p50 rises > 5 %",
            "\n  ^^^^\n",
            "no value behind `dut=`",
        ),
        ("dut=\"a p50 rises > 5 %", "\n      ^\n", "without its end"),
        ("p50 > 5 %", "\n      ^\n", "without `drops` or `rises`"),
        (
            "p50 rises 5 %",
            "\n            ^\n",
            "`5` where `>` must be",
        ),
        (
            "p50 rises > 5,0 %",
            "\n              ^^^\n",
            "no bound in per cent",
        ),
        ("p50 drops > 100 %", "\n              ^^^\n", "below 100"),
        (
            "p50 rises > nan %",
            "\n              ^^^\n",
            "no bound in per cent",
        ),
        (
            "p50 rises > 5 % p99",
            "\n                  ^^^\n",
            "behind the end",
        ),
        ("drops > 5 %", "\n  ^\n", "no quantity"),
        ("p50 p99 rises > 5 %", "\n  ^^^\n", "the order is"),
    ] {
        let shown = error(text);
        assert!(shown.contains(place) && shown.contains(words), "{shown}");
    }
}

#[test]
fn another_spelling_of_a_rate_is_answered_with_ours() {
    for spelled in ["1 Gbps", "1 gbps"] {
        let found = error(&format!("throughput >= {spelled}"));
        assert!(found.contains("write `1 Gbit/s`"), "{found}");
    }
}
