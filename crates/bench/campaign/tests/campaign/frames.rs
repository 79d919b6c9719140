//! Guarantees of plans of frame tests to their executor.

use campaign::{Campaign, HostFacts, LabFile, from_text, lab_from_text};
use plan::{
    Adapter, Criteria, Direction, FrameTest, Goal, IpVersion, LatencyPath, Measurement, Plan,
    PortKind, Ports, Procedure, Profile, Stations, ThroughputSearch, Traffic,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use std::collections::HashSet;
use std::time::Duration;
use wire::mix::{Contents, FrameMix, TestFrames};

const HOST: HostFacts = HostFacts { cores: 128 };
const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

fn plan_in(lab: &LabFile, duts: &str, trials: &str) -> Plan {
    let text = format!("campaign: c\nduts: [{duts}]\ntrials: [{trials}]\n");
    let campaign = from_text("c.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    campaign
        .plan(lab, &HOST)
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn plan(duts: &str, trials: &str) -> Plan {
    plan_in(&LabFile::built_in(), duts, trials)
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.cells.iter().map(|cell| cell.id.as_str()).collect()
}

fn tests(plan: &Plan) -> Vec<&FrameTest> {
    let tests = plan.cells.iter().map(|cell| match &cell.measurement {
        Measurement::Frames(test) => test,
        other => panic!("{other:?}"),
    });
    tests.collect()
}

#[test]
fn every_default_of_a_frame_test_is_explicit_in_the_plan() {
    let plan = plan("direct", "throughput: { frame: 64 B }");
    // The first cell is the calibration.
    let cell = &plan.cells[1];
    // The least MTU that IPv6 needs of a link.
    let stations = Stations {
        mtu: 1280,
        cores: 1,
        offloads: false,
        overlay: plan::Overlay::None,
        dscp: None,
    };
    assert_eq!((cell.stations, cell.tune), (Some(stations), false));
    let test = tests(&plan)[1];
    let expected = Traffic {
        frames: TestFrames {
            mix: FrameMix::fixed(64),
            flows: 64,
            tunnels: 1,
            contents: Contents::Fixed,
        },
        ip: IpVersion::V4,
        direction: Direction::Both,
        duplex: false,
        ports: Ports::default(),
    };
    assert_eq!(test.traffic, expected);
    let ndr = Goal {
        name: "ndr".to_owned(),
        criteria: Criteria {
            loss_ratio_ppm: 0,
            exceed_ratio_ppm: 500_000,
            initial_trial_ns: 100 * MS,
            final_trial_ns: 500 * MS,
            duration_sum_ns: S,
            width_ppm: 30_000,
        },
    };
    let pdr = Goal {
        name: "pdr".to_owned(),
        criteria: Criteria {
            loss_ratio_ppm: 5_000,
            ..ndr.criteria
        },
    };
    let expected = Procedure::Throughput(ThroughputSearch {
        profile: Profile::Fast,
        goals: vec![ndr, pdr],
        max_load: None,
        min_load: 1_000,
        drain_ns: 100 * MS,
        timeout_ns: 60 * S,
    });
    assert_eq!(test.procedure, expected);
}

#[test]
fn flows_left_open_are_the_same_for_each_tunnel_and_enough_for_the_cores() {
    let plan = plan(
        "straight",
        "load: { frame: 64 B, tunnels: [1, 3, 64, 1000, 65535], cores: [1, 100] }",
    );
    let flows: Vec<_> = tests(&plan)
        .iter()
        .map(|test| test.traffic.frames.flows)
        .collect();
    // One core first, in each the tunnels rise.
    assert_eq!(
        flows,
        [64, 66, 64, 1000, 65_535, 100, 102, 128, 1000, 65_535]
    );
}

#[test]
fn the_mtu_is_that_of_the_largest_frame() {
    let plan = plan(
        "straight",
        "load: { frame: [1298 B, 1299 B, 9216 B, imix] }",
    );
    let mtus: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| cell.stations.unwrap().mtu)
        .collect();
    // A frame is its packet and 18 B; short frames keep the least MTU.
    assert_eq!(mtus, [1280, 1281, 9198, 1500]);
}

#[test]
fn ports_are_forced_alone_or_together() {
    let plan = plan(
        "straight",
        "load: { frame: 64 B, ports: [auto, packet, { send: xdp }, { send: xdp, receive: packet }] }",
    );
    let ports: Vec<_> = tests(&plan).iter().map(|test| test.traffic.ports).collect();
    let of = |tx, rx| Ports { tx, rx };
    let (xdp, packet) = (Some(PortKind::Xdp), Some(PortKind::Packet));
    assert_eq!(
        ports,
        [
            of(None, None),
            of(packet, packet),
            of(xdp, None),
            of(xdp, packet)
        ]
    );
    assert!(
        ids(&plan)[3].contains("/ports=xdp-packet/"),
        "{:?}",
        ids(&plan)
    );
}

#[test]
fn weights_and_shares_of_a_mix_are_in_lowest_terms() {
    let plan = plan(
        "straight",
        "load: { frame: [{ 64 B: 70, 594 B: 40, 1518 B: 10 }, { 64 B: 12.5 %, 128 B: 87.5 % }, \
         { 512 B: 3 }] }",
    );
    let mixes: Vec<_> = tests(&plan)
        .iter()
        .map(|test| test.traffic.frames.mix.to_string())
        .collect();
    assert_eq!(mixes, ["7×64, 4×594, 1×1518", "1×64, 7×128", "512"]);
}

#[test]
fn every_group_of_frame_tests_is_calibrated_once_and_first() {
    let plan = plan(
        "direct, cipherbench",
        "ping: { mtu: 1500 B }, load: { frame: [64 B, 128 B] }, \
         load: { frame: 64 B, direction: encrypt, duts: cipherbench }",
    );
    let expected = [
        "ping/mtu=1500/direct",
        "ping/mtu=1500/cipherbench",
        "load/frame=64/direction=both/straight",
        "load/frame=64/direction=both/direct",
        "load/frame=64/direction=both/cipherbench",
        "load/frame=128/direction=both/straight",
        "load/frame=128/direction=both/direct",
        "load/frame=128/direction=both/cipherbench",
        "load/frame=64/direction=encrypt/straight",
        "load/frame=64/direction=encrypt/cipherbench",
    ];
    assert_eq!(ids(&plan), expected);
    for cell in &plan.cells {
        let is_straight = cell.dut.adapter.is_straight();
        assert_eq!(
            (cell.calibration, cell.calibrates()),
            (is_straight, is_straight)
        );
    }
    let calibration = plan.clone().calibration_only();
    // No cell of `ping`: tools have no ceiling.
    assert_eq!(ids(&calibration), [expected[2], expected[5], expected[8]]);
    // The same frames, the same procedure.
    for group in plan.cells.chunk_by(|a, b| a.group == b.group) {
        assert!(
            group
                .iter()
                .all(|cell| cell.measurement == group[0].measurement)
        );
    }
}

/// A calibration seals and opens as the stations of its group do, where all do alike.
#[test]
fn a_calibration_has_the_suite_of_its_group() {
    let gateway = "external: { name: edge, form: esp, suite: aes-128-cbc-hmac-sha256, \
                   gateway: { psk_file: /run/psk }, boxes: [{}] }";
    let lab = lab_from_text(
        "l.yaml",
        "lab: l\nexternal: { station_a: x0, station_b: x1 }\n",
    );
    let lab = lab.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let own = |suite: &str| format!("cipherbench: {{ suite: {suite} }}");
    let suite = |duts: &[&str], direction: &str| {
        let load = format!("load: {{ frame: 64 B, direction: {direction} }}");
        let plan = plan_in(&lab, &duts.join(", "), &load);
        let suites = plan.cells.iter().filter_map(|cell| match cell.dut.adapter {
            Adapter::Straight { suite } => Some(suite.to_string()),
            _ => None,
        });
        suites.collect::<Vec<_>>().join(" ")
    };
    let cbc = "aes-128-cbc-hmac-sha256";
    assert_eq!(suite(&[gateway], "decrypt"), cbc);
    assert_eq!(suite(&[gateway, &own(cbc), "direct"], "encrypt"), cbc);
    // WireGuard is not ESP, and so has no part in the choice.
    assert_eq!(suite(&["wireguard-go", gateway], "encrypt"), cbc);
    assert_eq!(
        suite(&[gateway, &own("aes-128-gcm")], "encrypt"),
        "aes-256-gcm"
    );
    assert_eq!(suite(&[&own(cbc)], "both"), "aes-256-gcm");
    assert_eq!(suite(&["direct"], "encrypt"), "aes-256-gcm");
    // A control that serves as calibration too.
    assert_eq!(suite(&["straight", gateway], "decrypt"), cbc);
}

#[test]
fn a_straight_control_serves_as_calibration() {
    let plan = plan(
        "direct, straight: { name: bare }",
        "load: { frame: 64 B }, load: { frame: 128 B, duts: direct }",
    );
    assert_eq!(
        ids(&plan),
        [
            "load/frame=64/direction=both/direct",
            "load/frame=64/direction=both/bare",
            "load/frame=128/direction=both/straight",
            "load/frame=128/direction=both/direct",
        ]
    );
    assert!(plan.cells[1].calibrates() && !plan.cells[1].calibration);
    assert_eq!(plan.calibration_only().cells.len(), 2);
}

#[test]
fn calibration_can_be_left_out() {
    let text = "campaign: c\ncalibrate: off\nduts: [direct]\ntrials: [load: { frame: 64 B }]\n";
    let campaign = from_text("c.yaml", text).unwrap();
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    assert_eq!(ids(&plan), ["load/frame=64/direction=both/direct"]);
}

#[test]
fn the_name_of_an_entry_stands_for_all_its_duts() {
    let plan = plan(
        "direct, cipherbench: { workers: [1, 2] }, cipherbench: { name: other }",
        "ping: { mtu: 1500 B, duts: [cipherbench] }, ping: { mtu: 1400 B, duts: cipherbench w2 }",
    );
    assert_eq!(
        ids(&plan),
        [
            "ping/mtu=1500/cipherbench-w1",
            "ping/mtu=1500/cipherbench-w2",
            "ping/mtu=1400/cipherbench-w2",
        ]
    );
}

#[test]
fn bit_rates_become_frames_of_the_mean_size() {
    let lab = lab_from_text("l.yaml", "lab: l\nlink_rate: 1 Gbit/s\n").unwrap();
    let plan = plan_in(
        &lab,
        "straight",
        "load: { frame: [64 B, imix], rate: [1 Gbit/s L1, 100 Mbit/s L2, 100 Mbit/s IP] }",
    );
    let rates: Vec<_> = tests(&plan)
        .iter()
        .map(|test| match &test.procedure {
            Procedure::Load(load) => load.frames_per_s.unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        rates,
        [1_488_095, 195_312, 271_739, 327_367, 34_546, 36_354]
    );
    let line_rates = plan.cells.iter().map(|cell| plan.lab.line_rate(cell));
    let line_rates: Vec<_> = line_rates.flatten().collect();
    assert_eq!(line_rates, [[1_488_095; 3], [327_367; 3]].concat());
}

#[test]
fn a_line_carries_less_of_frames_that_the_station_seals() {
    let lab = lab_from_text("l.yaml", "lab: l\nlink_rate: 1 Gbit/s\n").unwrap();
    let load = |direction: &str, rate: &str| {
        format!("load: {{ frame: [64 B, imix], direction: {direction}, rate: {rate} }}")
    };
    let planned = |direction: &str, rate: &str| {
        let trial = load(direction, rate);
        let text = format!("campaign: c\nduts: [direct, cipherbench]\ntrials: [{trial}]\n");
        let campaign = from_text("c.yaml", &text).unwrap();
        campaign
            .plan(&lab, &HOST)
            .map_err(|error| error.to_string())
    };
    let plan = planned("decrypt", "100 k frames/s").unwrap();
    let rates: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| plan.lab.line_rate(cell).unwrap())
        .collect();
    // 46 B of IP packet are 108 B in ESP in UDP: 20 + 8 + 8 + 8 of headers and IV, 46 + 2 padded to
    // 48, 16 of ICV; with 18 + 20 B around them 146 B. Calibration and `direct` send them in clear.
    assert_eq!(rates[..3], [1_488_095, 1_488_095, 1_000_000_000 / 8 / 146]);
    assert!(rates[5] < 327_367, "{rates:?}");
    assert!(planned("both", "1 Gbit/s L1").is_ok());
    let error = planned("decrypt", "1 Gbit/s L1").unwrap_err();
    assert!(error.contains("--> c.yaml:3:"), "{error}");
    assert!(error.contains("as ESP (aes-256-gcm)"), "{error}");
}

#[test]
fn a_lab_is_built_in_by_its_name() {
    let memory = LabFile::built_in_named("memory").unwrap();
    assert_eq!(memory.plan().name, "memory");
    assert_eq!(
        LabFile::built_in_named("namespaces"),
        Some(LabFile::built_in())
    );
    assert_eq!(LabFile::built_in_named("labs/memory.yaml"), None);
}

#[test]
fn the_campaign_of_the_lab_in_memory_takes_less_than_two_minutes_on_one_core() {
    let lab = LabFile::built_in_named("memory").unwrap();
    let plan = Campaign::built_in_named("memory")
        .unwrap()
        .plan(&lab, &HostFacts { cores: 1 })
        .unwrap();
    let estimate = Duration::from_nanos(plan.estimate_ns());
    assert!(estimate < Duration::from_secs(120), "{estimate:?}");
    // `straight` is listed, so nothing is measured twice.
    assert!(plan.cells.iter().all(|cell| !cell.calibration));
}

/// A valid campaign of frame tests with lists out of these values.
fn campaign_text() -> impl Strategy<Value = String> {
    let list = |values: &'static [&'static str]| {
        subsequence(values, 1..=values.len()).prop_map(|values| values.join(", "))
    };
    let frame = list(&[
        "84 B",
        "9216 B",
        "imix2",
        "{ 90 B: 7, 594 B: 4 }",
        "{ 90 B: 50 %, 91 B: 50 % }",
    ]);
    // The smallest frames above have room for IPv6, in mixes too.
    let ip = list(&["4", "6"]);
    // Not fewer than the most tunnels below.
    let flows = list(&["auto", "1000", "2000"]);
    let tunnels = list(&["1", "10", "1000"]);
    // No sockets: with several tunnels or IPv6 they are refused.
    let ports = list(&["auto", "packet", "{ send: packet, receive: auto }"]);
    let rate = list(&["max", "100 k frames/s", "1 Gbit/s L1"]);
    let duplex = list(&["on", "off"]);
    (frame, ip, flows, tunnels, ports, rate, duplex).prop_map(
        |(frame, ip, flows, tunnels, ports, rate, duplex)| {
            format!(
                "campaign: random\nrepeats: 2\nduts: [direct, router: {{ nat: [off, on] }}]\n\
                 trials:\n  - throughput: {{ frame: [{frame}], ip: [{ip}], flows: [{flows}],\n      \
                 tunnels: [{tunnels}], ports: [{ports}], duplex: [{duplex}] }}\n  \
                 - load: {{ frame: [{frame}], rate: [{rate}], duplex: [{duplex}] }}\n  \
                 - latency: {{ frame: [{frame}], profile: rfc2544 }}\n  \
                 - latency: {{ frame: [{frame}], goals: [{{ name: a, loss: 1 % }}] }}\n"
            )
        },
    )
}

proptest! {
    #[test]
    fn ids_are_unique_and_cells_of_a_group_differ_by_dut_only(text in campaign_text()) {
        let campaign = from_text("c.yaml", &text).unwrap();
        let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
        let unique: HashSet<&str> = ids(&plan).into_iter().collect();
        prop_assert_eq!(unique.len(), plan.cells.len());
        for group in plan.cells.chunk_by(|a, b| a.group == b.group) {
            // Calibration, direct, and the router in two ways.
            prop_assert_eq!(group.len(), 4);
            prop_assert!(group[0].calibration);
            for cell in group {
                prop_assert_eq!(&cell.measurement, &group[0].measurement);
                prop_assert_eq!(cell.id.matches('/').count(), group[0].id.matches('/').count());
                prop_assert!(!cell.id.contains(' '));
            }
        }
        let json = serde_json::to_string(&plan).unwrap();
        prop_assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }

    #[test]
    fn a_mutated_campaign_never_panics(
        text in campaign_text(),
        edits in vec((any::<Index>(), 0..3_u8, any::<char>()), 1..8),
    ) {
        let mut chars: Vec<char> = text.chars().collect();
        for (index, kind, c) in edits {
            let at = index.index(chars.len());
            match kind {
                0 => chars[at] = c,
                1 => chars.insert(at, c),
                _ => drop(chars.remove(at)),
            }
        }
        let text: String = chars.into_iter().collect();
        match from_text("c.yaml", &text) {
            Ok(campaign) => {
                for lab in ["namespaces", "memory"] {
                    drop(campaign.plan(&LabFile::built_in_named(lab).unwrap(), &HOST));
                }
            }
            Err(mistakes) => prop_assert!(mistakes.count() > 0 && !mistakes.to_string().is_empty()),
        }
    }
}

#[test]
fn random_contents_are_an_axis_and_need_whole_frames_that_can_be_recognised() {
    let plan = plan("direct", "load: { frame: 64 B, contents: [fixed, random] }");
    let contents = tests(&plan)
        .into_iter()
        .map(|test| test.traffic.frames.contents);
    let contents: Vec<Contents> = contents.collect();
    assert!(contents.contains(&Contents::Fixed) && contents.contains(&Contents::Random));
    assert!(ids(&plan).iter().any(|id| id.contains("contents=random")));

    // Frames of 128 B, which are long enough for IPv6.
    let refused = |dut: &str, keys: &str| {
        let trial = format!("load: {{ frame: 128 B, contents: random, {keys} }}");
        let text = format!("campaign: c\nduts: [{dut}]\ntrials: [{trial}]\n");
        let plan = from_text("c.yaml", &text)
            .and_then(|campaign| campaign.plan(&LabFile::built_in(), &HOST));
        plan.map_or_else(|mistakes| mistakes.to_string(), |_| String::new())
    };
    let no_marker = "no bytes in common";
    assert!(refused("direct", "tunnels: 4").contains(no_marker));
    assert_eq!(refused("direct", "tunnels: 4, ip: 6"), "");
    let many = "cipherbench: { tunnels: 4 }";
    assert!(refused(many, "flows: auto").contains(no_marker));
    assert_eq!(refused(many, "ip: 6"), "");
    assert!(refused("direct", "ports: socket").contains("plain sockets listen at one port"));
}

#[test]
fn a_maximum_receive_rate_and_the_trials_of_a_latency_are_in_the_plan() {
    let plan = plan(
        "direct",
        "mrr: { frame: 64 B, max_load: 672 Mbit/s L1, trials: 5 }",
    );
    let Procedure::Mrr(mrr) = &tests(&plan)[0].procedure else {
        panic!("not an mrr")
    };
    // 84 bytes on the line.
    assert_eq!(
        (mrr.max_load, mrr.trials, mrr.trial_ns),
        (Some(1_000_000), 5, S)
    );
    let plan = self::plan("direct", "latency: { frame: 64 B, trials: 20 }");
    let Procedure::Latency(latency) = &tests(&plan)[0].procedure else {
        panic!("not a latency test")
    };
    assert_eq!((latency.trials, latency.path), (20, LatencyPath::OneWay));
}

#[test]
fn latencies_one_way_and_round_trips_are_cells_of_their_own() {
    let plan = plan(
        "direct",
        "latency: { frame: 64 B, path: [one-way, round-trip] }",
    );
    let paths = tests(&plan).into_iter();
    let paths: Vec<_> = paths
        .filter_map(|test| Some(test.procedure.latency()?.path))
        .collect();
    let ids = ids(&plan);
    for (path, id) in paths.iter().zip(&ids) {
        assert!(id.contains(&format!("path={}", path.name())), "{id}");
    }
    assert!(LatencyPath::ALL.iter().all(|path| paths.contains(path)));
    // One that is asked for alone does not name what is usual.
    let one = self::plan("direct", "latency: { frame: 64 B }");
    assert!(
        !self::ids(&one)[0].contains("path="),
        "{:?}",
        self::ids(&one)
    );
}

#[test]
fn boxes_that_others_made_get_random_ports_and_payloads() {
    let contents = |duts: &str, trial: &str| -> Vec<Contents> {
        let lab = "lab: l\nkind: namespaces\nexternal: { station_a: eth1, station_b: eth2 }\n";
        let plan = plan_in(&lab_from_text("l.yaml", lab).unwrap(), duts, trial);
        let tests = tests(&plan).into_iter();
        tests.map(|test| test.traffic.frames.contents).collect()
    };
    // One box among the DUTs is enough: all of a group get the same contents.
    let external = "direct, { external: { boxes: [{ via: sh }, { via: sh }], form: esp } }";
    let all = |found: Vec<Contents>, wanted| found.into_iter().all(|it| it == wanted);
    assert!(all(
        contents(external, "throughput: { frame: 64 B }"),
        Contents::Random
    ));
    assert!(all(
        contents("direct, cipherbench", "throughput: { frame: 64 B }"),
        Contents::Fixed
    ));
    for fixed in ["contents: fixed", "ports: socket"] {
        let trial = format!("throughput: {{ frame: 64 B, {fixed} }}");
        assert!(all(contents(external, &trial), Contents::Fixed), "{fixed}");
    }
    let random = "throughput: { frame: 64 B, contents: random }";
    assert!(all(contents("cipherbench", random), Contents::Random));
}
