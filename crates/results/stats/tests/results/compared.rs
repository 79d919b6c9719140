//! Suites compared, their overhead on the line, and rankings of devices.

use crate::fixture::{journal, measured, ping, record, round_trips, tcp, transfer, udp};
use crate::frame_fixture::{self, assert_close, searched};
use journal::Journal;
use plan::{Adapter, Cell, Encryptor, Measurement, OpenVpn, WireGuard, WireGuardProgram};
use stats::{CeilingBasis, CellResult, Control, Rank, RankedBy, Ranking, Results};
use wire::Suite;

/// A cell of that DUT.
fn with(mut cell: Cell, name: &str, adapter: Adapter) -> Cell {
    cell.id = format!("{}/{name}", cell.group);
    cell.dut.name = name.into();
    cell.dut.adapter = adapter;
    cell
}

fn ours(suite: &str) -> Adapter {
    Adapter::Cipherbench(Encryptor::new(Suite::from_name(suite).unwrap()))
}

/// A run of TCP with the megabytes of each repeat in two seconds.
fn bulk(cells: &[(Cell, &[u64])]) -> Journal {
    let repeats = cells[0].1.len() as u32;
    let all = cells.iter().map(|(cell, _)| cell.clone()).collect();
    let mut run = journal(all, repeats, 8);
    for (cell, megabytes) in cells {
        for (repeat, megabytes) in (1..).zip(*megabytes) {
            record(&mut run, &cell.id, repeat, measured(transfer(*megabytes)));
        }
    }
    run
}

#[track_caller]
fn ranking(results: &Results, by: RankedBy) -> &Ranking {
    results
        .rankings
        .iter()
        .find(|found| found.by == by)
        .unwrap()
}

fn ranks(ranking: &Ranking) -> Vec<(&str, u32, u32)> {
    let places = ranking.places.iter().map(|place| {
        let Rank { first, last } = place.rank.unwrap();
        (place.dut.as_str(), first, last)
    });
    places.collect()
}

#[track_caller]
fn overhead(cell: &CellResult) -> (f64, f64) {
    let found = cell.overhead.as_ref().unwrap();
    (found.packet_bytes, found.overhead_bytes)
}

/// By hand: IPv4 and UDP 28, ESP 8, IV, padding and 2, ICV.
#[test]
fn each_suite_adds_what_its_rfc_says() {
    let cells = [
        // 28 + 8 + 8 + (1500 + 2 in 4: 1504) + 16 = 1564
        ("aes-256-gcm", 64.0),
        // 28 + 8 + 16 + (1502 in 16: 1504) + 12 = 1568
        ("aes-128-cbc-hmac-sha1", 68.0),
        // 28 + 8 + 16 + 1504 + 32 = 1588
        ("aes-256-cbc-hmac-sha512", 88.0),
        // 28 + 8 + 8 + (1502 in 8: 1504) + 12 = 1560
        ("des-cbc-hmac-md5", 60.0),
    ];
    let runs: Vec<(Cell, &[u64])> = cells
        .iter()
        .map(|(name, _)| (with(tcp(name), name, ours(name)), &[100][..]))
        .collect();
    let results = Results::of(&bulk(&runs));
    for (cell, (name, bytes)) in results.cells.iter().zip(cells) {
        let (packet, added) = overhead(cell);
        assert_close(packet, 1500.0);
        assert_close(added, bytes);
        let found = cell.overhead.as_ref().unwrap();
        assert_close(found.overhead_percent, 100.0 * bytes / 1500.0);
        assert_eq!(found.suite, name);
    }
}

/// By hand: IPv4 and UDP 28, type to counter 16, tag 16, and padding to 16 that ends at the
/// tunnel's MTU.
#[test]
fn wireguard_pads_but_not_beyond_the_mtu() {
    let go = || {
        Adapter::WireGuard(WireGuard {
            program: WireGuardProgram::Go,
        })
    };
    // 1500 would be 1504; 512 + 28 = 540 is 544; 1465 + 28 = 1493 would be 1504, and is 1500.
    let cells = [
        (with(tcp("a"), "a", go()), 60.0),
        (with(udp(512, None), "b", go()), 64.0),
        (with(udp(1465, None), "c", go()), 67.0),
    ];
    let planned = cells.iter().map(|(cell, _)| cell.clone()).collect();
    let results = Results::of(&journal(planned, 1, 8));
    for (cell, (_, added)) in results.cells.iter().zip(&cells) {
        assert_close(overhead(cell).1, *added);
    }
}

#[test]
fn without_encryption_or_sealing_per_packet_there_is_no_overhead() {
    let shared = Adapter::Cipherbench(Encryptor {
        aggregate: true,
        ..Encryptor::new(Suite::Aes256Gcm)
    });
    let cells = [
        with(tcp("direct"), "direct", Adapter::Direct),
        with(tcp("shared"), "shared", shared),
        with(udp(4000, None), "long", ours("aes-256-gcm")),
    ];
    let results = Results::of(&journal(cells.to_vec(), 1, 8));
    for cell in &results.cells {
        assert_eq!(cell.overhead, None, "{}", cell.id);
        assert_eq!(cell.ceiling, None, "{}", cell.id);
    }
}

#[test]
fn the_ceiling_of_a_line_is_its_rate_less_the_overhead() {
    let direct = with(tcp("direct"), "direct", Adapter::Direct);
    let gcm = with(tcp("gcm"), "gcm", ours("aes-256-gcm"));
    let mut run = bulk(&[(direct, &[200]), (gcm, &[100])]);
    run.header.plan.lab.link_bps = Some(1_000_000_000);
    let results = Results::of(&run);
    // 1448 B of 1538 B in clear, and of 1564 + 38 B as ESP.
    for (cell, line_bytes, megabits) in [(0, 1538.0, 800.0), (1, 1602.0, 400.0)] {
        let found = results.cells[cell].ceiling.as_ref().unwrap();
        let most = 1e9 * 1448.0 / line_bytes;
        assert_eq!(found.basis, CeilingBasis::LineRate);
        assert_close(found.payload_bps.unwrap(), most);
        assert_close(found.reached.unwrap(), 1e6 * megabits / most);
        assert_eq!((found.frames_per_s, &found.baseline_cell), (None, &None));
    }
}

#[test]
fn without_a_line_rate_the_ceiling_is_the_baselines_figure_less_the_longer_packets() {
    let direct = with(tcp("direct"), "direct", Adapter::Direct);
    let gcm = with(tcp("gcm"), "gcm", ours("aes-256-gcm"));
    let results = Results::of(&bulk(&[(direct, &[200, 300]), (gcm, &[100, 100])]));
    assert_eq!(results.cells[0].ceiling, None);
    let found = results.cells[1].ceiling.as_ref().unwrap();
    assert_eq!(found.basis, CeilingBasis::Baseline);
    assert_eq!(found.baseline_cell.as_deref(), Some("tcp/direct"));
    assert_close(found.payload_bps.unwrap(), 1e9 * 1538.0 / 1602.0);
    assert_close(found.reached.unwrap(), 0.4 * 1602.0 / 1538.0);
}

#[test]
fn a_load_that_the_campaign_gives_makes_the_baseline_no_ceiling() {
    let cell = |name: &str, adapter| with(udp(512, Some(1_000_000)), name, adapter);
    let cells = [
        (cell("direct", Adapter::Direct), &[1][..]),
        (cell("gcm", ours("aes-256-gcm")), &[1]),
    ];
    let mut run = bulk(&cells);
    assert_eq!(Results::of(&run).cells[1].ceiling, None);
    run.header.plan.lab.link_bps = Some(1_000_000_000);
    let results = Results::of(&run);
    // 512 B of 512 + 28 in clear; 540 + 2 in 4: 544 + 60 = 604, and 38 B on the line.
    let found = results.cells[1].ceiling.as_ref().unwrap();
    assert_close(found.payload_bps.unwrap(), 1e9 * 512.0 / 642.0);
}

#[test]
fn a_line_carries_fewer_frames_of_a_suite_than_in_clear() {
    let cells = [
        (
            frame_fixture::throughput("router", 64),
            &[(Some(900_000), Some(910_000))][..],
        ),
        (
            frame_fixture::throughput("auto", 64),
            &[(Some(400_000), Some(410_000))],
        ),
    ];
    let mut run = searched(&cells);
    run.header.plan.lab.link_bps = Some(1_000_000_000);
    let results = Results::of(&run);
    // 64 + 20 B; an IP packet of 46 B is 28 + 8 + 8 + 48 + 16 = 108 B as ESP, and 38 B are around
    // it.
    for (cell, line_bytes) in [(0, 84.0), (1, 146.0)] {
        let found = results.cells[cell].ceiling.as_ref().unwrap();
        assert_close(found.frames_per_s.unwrap(), 1e9 / 8.0 / line_bytes);
        assert_eq!(found.payload_bps, None);
    }
    assert_close(overhead(&results.cells[1]).1, 62.0);
}

#[test]
fn suites_of_one_device_are_ordered_from_the_oldest_to_the_strongest() {
    let names = [
        "aes-256-gcm",
        "null-hmac-sha256",
        "aes-128-cbc-hmac-sha256",
        "chacha20-poly1305",
        "des-cbc-hmac-md5",
        "aes-128-cbc-hmac-md5",
        "3des-cbc-hmac-sha1",
        "aes-128-gcm",
    ];
    let cells = names.map(|name| with(tcp(name), name, ours(name)));
    let results = Results::of(&journal(cells.to_vec(), 1, 8));
    let [matrix] = &results.suites[..] else {
        panic!("{:?}", results.suites)
    };
    assert_eq!(matrix.device, "cipherbench");
    let rows = matrix.entries.iter().map(|entry| {
        let hash = entry.hash.as_deref().unwrap_or("-");
        (entry.cipher.as_str(), hash, entry.insecure.is_some())
    });
    let wanted = [
        ("none", "SHA-256", true),
        ("DES-CBC", "MD5", true),
        ("3DES-CBC", "SHA-1", true),
        ("AES-128-CBC", "MD5", true),
        ("AES-128-CBC", "SHA-256", false),
        ("ChaCha20-Poly1305", "-", false),
        ("AES-128-GCM", "-", false),
        ("AES-256-GCM", "-", false),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), wanted);
}

#[test]
fn devices_that_differ_in_more_than_the_suite_have_matrices_of_their_own() {
    let encryptor = |suite, workers| {
        Adapter::Cipherbench(Encryptor {
            workers,
            ..Encryptor::new(suite)
        })
    };
    let openvpn = |suite| Adapter::OpenVpn(OpenVpn { suite });
    let cells = [
        with(tcp("a"), "one", encryptor(Suite::Aes256Gcm, 1)),
        with(
            tcp("b"),
            "one chacha",
            encryptor(Suite::ChaCha20Poly1305, 1),
        ),
        with(tcp("c"), "two", encryptor(Suite::Aes256Gcm, 2)),
        with(
            tcp("d"),
            "two chacha",
            encryptor(Suite::ChaCha20Poly1305, 2),
        ),
        with(tcp("e"), "three", encryptor(Suite::Aes256Gcm, 3)),
        with(tcp("f"), "openvpn", openvpn(Suite::Aes256Gcm)),
        with(tcp("g"), "openvpn chacha", openvpn(Suite::ChaCha20Poly1305)),
        with(
            tcp("h"),
            "wireguard",
            Adapter::WireGuard(WireGuard {
                program: WireGuardProgram::Go,
            }),
        ),
    ];
    let results = Results::of(&journal(cells.to_vec(), 1, 8));
    let devices = results
        .suites
        .iter()
        .map(|matrix| (matrix.device.as_str(), matrix.entries.len()));
    let wanted = [
        ("cipherbench as in one", 2),
        ("cipherbench as in two", 2),
        ("openvpn", 2),
    ];
    assert_eq!(devices.collect::<Vec<_>>(), wanted);
}

/// Inputs of rankings; the rule itself has its own tests.
#[test]
fn devices_are_ranked_and_other_duts_are_references() {
    let null = Adapter::Cipherbench(Encryptor {
        engine: "null".parse().unwrap(),
        ..Encryptor::new(Suite::Aes256Gcm)
    });
    let go = Adapter::WireGuard(WireGuard {
        program: WireGuardProgram::Go,
    });
    let results = Results::of(&bulk(&[
        (with(tcp("a"), "direct", Adapter::Direct), &[900, 900, 900]),
        (with(tcp("b"), "go", go), &[200, 210, 220]),
        (
            with(tcp("c"), "gcm", ours("aes-256-gcm")),
            &[2110, 2195, 2310],
        ),
        (
            with(tcp("d"), "chacha", ours("chacha20-poly1305")),
            &[240, 230, 220],
        ),
        (with(tcp("e"), "null", null), &[800, 800, 800]),
        (
            with(tcp("f"), "des", ours("des-cbc-hmac-md5")),
            &[10, 10, 10],
        ),
    ]));
    let found = ranking(&results, RankedBy::PayloadThroughput);
    assert_eq!(
        ranks(found),
        [("gcm", 1, 1), ("chacha", 2, 3), ("go", 2, 3), ("des", 4, 4)]
    );
    // Ratios are geometric means, half a per cent from those of the means at most.
    let near = |found: Option<f64>, wanted: f64| (found.unwrap() / wanted - 1.0).abs() < 0.005;
    let [direct, null] = &found.references[..] else {
        panic!("{:?}", found.references);
    };
    assert_eq!((direct.rank, null.rank), (None, None));
    assert_eq!((direct.dut.as_str(), direct.control), ("direct", None));
    assert_eq!(null.control, Some(Control::NoEncryption));
    assert!(near(direct.ratio_to_best, 900.0 / 2205.0));
    assert!(near(null.ratio_to_best, 800.0 / 2205.0));
    assert_eq!(found.yardstick, "gcm");
    let go = &found.places[2];
    assert!(near(go.ratio_to_yardstick, 210.0 / 2205.0));
    // 4.30 standard errors to both sides, on logarithms.
    assert!(
        (go.low.unwrap() / (186.0 * 4e6) - 1.0).abs() < 0.01,
        "{go:?}"
    );
    assert!(
        (go.high.unwrap() / (236.6 * 4e6) - 1.0).abs() < 0.01,
        "{go:?}"
    );
    assert!(found.places[3].insecure.is_some() && go.insecure.is_none());
    // One core of four was busy, half of it the DUT's, in all of them.
    let by_cost = ranking(&results, RankedBy::PayloadBitsPerCpuSecond);
    assert_eq!(ranks(by_cost), ranks(found));
    assert_close(by_cost.places[0].value, 2205.0 * 4e6);
}

#[test]
fn the_shortest_round_trip_is_the_best_and_one_repeat_ranks_nothing() {
    let run = |repeats: u32| {
        let cells = vec![
            with(ping("a"), "slow", ours("aes-256-gcm")),
            with(ping("b"), "quick", ours("aes-128-gcm")),
            with(ping("c"), "dead", ours("chacha20-poly1305")),
        ];
        let mut run = journal(cells, repeats, 8);
        for repeat in 1..=repeats {
            let mut add = |cell, time| {
                let found = round_trips(0, &[time, time]);
                record(&mut run, cell, repeat, measured(found));
            };
            add("ping/slow", 90 + u64::from(repeat));
            add("ping/quick", 30);
        }
        Results::of(&run)
    };
    let results = run(3);
    let found = ranking(&results, RankedBy::RoundTripP50);
    assert_eq!(ranks(found), [("quick", 1, 1), ("slow", 2, 2)]);
    assert!(!found.higher_is_better);
    let ratio = found.places[1].ratio_to_best.unwrap();
    assert!((ratio / (92.0 / 30.0) - 1.0).abs() < 0.005, "{ratio}");
    assert_eq!(found.without_figure, ["dead"]);
    assert_eq!(results.rankings.len(), 1);
    let single = run(1);
    let found = ranking(&single, RankedBy::RoundTripP50);
    assert_eq!(ranks(found), [("quick", 1, 2), ("slow", 1, 2)]);
    assert_eq!((found.places[0].low, found.places[0].high), (None, None));
}

#[test]
fn devices_are_ranked_by_pairs_of_repeats_and_not_by_their_intervals() {
    // Both become slower together: the intervals overlap, but one is always 10 % ahead.
    let results = Results::of(&bulk(&[
        (
            with(tcp("a"), "a", ours("aes-256-gcm")),
            &[1100, 991, 880, 771, 660],
        ),
        (
            with(tcp("b"), "b", ours("aes-128-gcm")),
            &[1000, 900, 801, 700, 600],
        ),
    ]));
    let found = ranking(&results, RankedBy::PayloadThroughput);
    assert_eq!(ranks(found), [("a", 1, 1), ("b", 2, 2)]);
    assert!(found.places[0].low < found.places[1].high);
}

#[test]
fn frames_are_ranked_by_rate_and_one_device_alone_is_not_ranked() {
    let bounds = |lower: u64| [(Some(lower), Some(lower + 10)); 2];
    let (fast, slow, rig) = (bounds(500_000), bounds(300_000), bounds(900_000));
    let second = with(
        frame_fixture::throughput("auto", 64),
        "chacha",
        ours("chacha20-poly1305"),
    );
    let both = [
        (frame_fixture::throughput("straight", 64), &rig[..]),
        (frame_fixture::throughput("router", 64), &rig),
        (frame_fixture::throughput("auto", 64), &slow),
        (second, &fast),
    ];
    let results = Results::of(&searched(&both));
    let found = ranking(&results, RankedBy::FrameRate);
    assert_eq!(ranks(found), [("chacha", 1, 1), ("auto", 2, 2)]);
    let references: Vec<_> = found
        .references
        .iter()
        .map(|place| place.dut.as_str())
        .collect();
    assert_eq!(references, ["router"]);
    let alone = Results::of(&searched(&both[..3]));
    assert_eq!(alone.rankings, []);
}

#[test]
fn measurements_that_fill_no_path_have_no_matrix() {
    let names = ["aes-256-gcm", "aes-128-gcm"];
    let cells = names.map(|name| with(ping(name), name, ours(name)));
    assert!(matches!(cells[0].measurement, Measurement::Ping { .. }));
    assert_eq!(Results::of(&journal(cells.to_vec(), 1, 8)).suites, []);
}
