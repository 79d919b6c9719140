//! No check that is to prove something passes on a trial by tools in which nothing came.

use super::*;

/// Checks of the tester and of the settings, and the bounds of what crossed links, which hold with
/// and without traffic.
const OTHERS: [&str; 10] = [
    "links-not-flooded",
    "sealed-as-sent",
    "offloads-as-asked",
    "path-unchanged",
    "cores-of-stations",
    "machine-was-ours",
    "tools-kept-time",
    "offered-as-intended",
    "links-lossless",
    "dut-as-asked",
];

fn nothing_comes(mut fixture: Fixture) -> Fixture {
    fixture.totals.received_bytes = 0;
    fixture.totals.received_summary_bytes = Some(0);
    if let Some(latency) = &mut fixture.latency {
        (latency.received, latency.round_trips_ns) = (0, Vec::new());
    }
    for (name, counters) in &mut fixture.counters {
        if name != "a/a0" {
            *counters = InterfaceCounters::default();
        }
    }
    fixture
        .dut_counters
        .values_mut()
        .for_each(|count| *count = 0);
    let received = fixture.settings.stack.iter_mut();
    received
        .filter(|(name, _)| name.contains("/In"))
        .for_each(|(_, count)| *count = 0);
    (fixture.cipher_link, fixture.watch) = (CipherLink::default(), CipherWatch::default());
    fixture
}

#[test]
fn no_proof_passes_where_nothing_came() {
    for fixture in [
        Fixture::tcp(Adapter::Direct, 1),
        Fixture::tcp(encrypting(), 1),
        Fixture::udp(None),
        Fixture::ping(encrypting()),
        Fixture::ping(Adapter::Direct),
    ] {
        let fixture = nothing_comes(fixture);
        let checks = fixture.checks().into_iter();
        let passed = checks.filter(|check| check.passed && !OTHERS.contains(&check.name.as_str()));
        let passed: Vec<String> = passed
            .map(|check| check.name)
            // The station offered its datagrams, and its sockets dropped none.
            .filter(|name| name != "station-kept-up")
            .collect();
        assert_eq!(passed, Vec::<String>::new(), "{:?}", fixture.cell);
    }
}
