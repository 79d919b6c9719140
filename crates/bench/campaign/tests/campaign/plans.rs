//! Guarantees of plans to their executor.

use campaign::{Campaign, HostFacts, Input, LabFile, from_text, lab_from_text, load_input};
use plan::{
    Adapter, Cell, Desync, Direction, Encryptor, KeySource, LabKind, Measurement, Plan, Tool,
    TransferDirection, estimate::BRING_UP,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use std::collections::HashSet;
use std::time::Duration;

const HOST: HostFacts = HostFacts { cores: 128 };
const S: u64 = 1_000_000_000;

fn plan(text: &str) -> Plan {
    from_text("c.yaml", text)
        .unwrap()
        .plan(&LabFile::built_in(), &HOST)
        .unwrap()
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.cells.iter().map(|cell| cell.id.as_str()).collect()
}

#[test]
fn the_quick_campaign_takes_less_than_ninety_seconds() {
    let plan = Campaign::quick()
        .plan(&LabFile::built_in(), &HostFacts { cores: 2 })
        .unwrap();
    // `tcp`, `udp` and `ping`, in this order of the file.
    assert_eq!(plan.trials().count(), 24 + 12 + 6);
    let estimate = Duration::from_nanos(plan.estimate_ns());
    assert!(estimate < Duration::from_secs(90), "{estimate:?}");
    // The share of a search that each trial carries must add up to the time of the plan.
    let sum: u64 = plan.trials().map(|trial| trial.cell.estimate_ns).sum();
    assert_eq!(sum, plan.estimate_ns());
}

#[test]
fn the_quick_campaign_fits_a_host_of_one_core() {
    let host = HostFacts { cores: 1 };
    // `--quick` of a machine with one core must measure something: cells beyond it are left out,
    // not refused.
    let plan = Campaign::quick()
        .within_cores(1)
        .plan(&LabFile::built_in(), &host)
        .unwrap();
    assert!(
        plan.cells
            .iter()
            .all(|cell| cell.stations.unwrap().cores == 1)
    );
    assert_eq!(plan.cells.len(), 10);
}

#[test]
fn cells_come_in_the_order_of_the_file_with_the_dut_varying_fastest() {
    let plan = plan(
        "campaign: c\nduts: [direct, cipherbench]\ntrials:\n  \
         - ping: { mtu: 9000 B }\n  - tcp: { mtu: [9000 B, 1500 B], cores: [2, 1] }\n",
    );
    let expected = [
        "ping/mtu=9000/direct",
        "ping/mtu=9000/cipherbench",
        "tcp/mtu=9000/cores=2/direct",
        "tcp/mtu=9000/cores=2/cipherbench",
        "tcp/mtu=9000/cores=1/direct",
        "tcp/mtu=9000/cores=1/cipherbench",
        "tcp/mtu=1500/cores=2/direct",
        "tcp/mtu=1500/cores=2/cipherbench",
        "tcp/mtu=1500/cores=1/direct",
        "tcp/mtu=1500/cores=1/cipherbench",
    ];
    assert_eq!(ids(&plan), expected);
    for cell in &plan.cells {
        assert_eq!(format!("{}/{}", cell.group, cell.dut.name), cell.id);
    }
}

#[test]
fn an_axis_is_part_of_the_id_when_it_varies_among_trials_of_its_kind() {
    let plan = plan(
        "campaign: c\nduts: [direct]\ntrials:\n  - tcp: { mtu: 1500 B, streams: 4 }\n  \
         - tcp: { mtu: 1500 B, streams: 8, offloads: [on, off] }\n  \
         - udp: { mtu: 1500 B, rate: [max, 1.5 Gbit/s], datagram: 64 B }\n",
    );
    let expected = [
        "tcp/mtu=1500/cores=1/streams=4/offloads=on/direct",
        "tcp/mtu=1500/cores=1/streams=8/offloads=on/direct",
        "tcp/mtu=1500/cores=1/streams=8/offloads=off/direct",
        "udp/mtu=1500/cores=1/datagram=64/rate=max/direct",
        "udp/mtu=1500/cores=1/datagram=64/rate=1.5Gbps/direct",
    ];
    // `offloads` varies in one trial of `tcp`, so all ids of `tcp` have it, and none of `udp`.
    assert_eq!(ids(&plan), expected);
}

#[test]
fn every_default_is_explicit_in_the_plan() {
    let text = "campaign: c\nduts: [cipherbench]\ntrials: [tcp: { mtu: 1500 B, cores: 2 }, \
                udp: { mtu: 1500 B }, ping: { mtu: 1500 B }]\n";
    let plan = plan(text);
    assert_eq!(
        (plan.name.as_str(), plan.title.as_str(), plan.repeats),
        ("c", "", 3)
    );
    assert_eq!(
        (plan.lab.name.as_str(), plan.lab.kind),
        ("namespaces", LabKind::Namespaces)
    );
    assert_eq!(plan.lab.cipher_mtu, None);
    let [tcp, udp, ping] = &plan.cells[..] else {
        panic!("{:?}", ids(&plan))
    };
    let suite = wire::Suite::Aes256Gcm;
    let adapter = Adapter::Cipherbench(Encryptor::new(suite));
    assert_eq!(
        (&tcp.dut.adapter, tcp.stations.unwrap().offloads, tcp.tune),
        (&adapter, true, false)
    );
    // One stream per core.
    let expected = Measurement::Tcp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        congestion: None,
        streams: 2,
        window_bytes: None,
        duration_ns: 10 * S,
        warmup_ns: S,
    };
    assert_eq!(tcp.measurement, expected);
    let expected = Measurement::Udp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        datagram_bytes: None,
        rate_bps: None,
        streams: 1,
        duration_ns: 10 * S,
        warmup_ns: S,
    };
    assert_eq!(udp.measurement, expected);
    let expected = Measurement::Ping {
        count: 1000,
        interval_ns: S / 100,
        payload_bytes: 56,
        loaded: false,
        route: false,
        load_dscp: Vec::new(),
    };
    assert_eq!(ping.measurement, expected);
}

#[test]
fn times_count_the_tool_what_is_around_it_and_a_share_of_the_search() {
    let time = |trial: &str, repeats| {
        let text = format!("campaign: c\nduts: [direct]\ntrials: [{trial}]\n");
        let campaign = from_text("c.yaml", &text).unwrap().with_repeats(repeats);
        let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
        Duration::from_nanos(plan.cells[0].estimate_ns)
    };
    // Tool runs of one second, and what is around each.
    let runs = |count| (Duration::from_secs(1) + BRING_UP) * count;
    let second = Duration::from_secs(1);
    assert_eq!(
        time("tcp: { mtu: 1500 B, duration: 1.5 s, warmup: 500 ms }", 3),
        runs(1) + second
    );
    assert_eq!(
        time("ping: { mtu: 1500 B, count: 500, interval: 2 ms }", 3),
        runs(1)
    );
    // Eleven attempts for TCP, once.
    assert_eq!(
        time(
            "tcp: { mtu: 1500 B, duration: 1 s, warmup: 0 s, tune: on }",
            1
        ),
        runs(1 + 11)
    );
    assert_eq!(
        time(
            "tcp: { mtu: 1500 B, duration: 1 s, warmup: 0 s, tune: on }",
            11
        ),
        runs(2)
    );
    // The rate alone: 1 + 6 + 2 attempts.
    let udp = "udp: { mtu: 1500 B, datagram: 64 B, duration: 1 s, warmup: 0 s, tune: on }";
    assert_eq!(time(udp, 1), runs(1 + 9));
}

#[test]
fn a_plan_reads_back_from_json_as_it_was_written() {
    let plan = Campaign::quick().plan(&LabFile::built_in(), &HOST).unwrap();
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn the_keys_of_a_file_identify_a_campaign_or_a_lab() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let campaign = load_input(&root.join("campaigns/quick.yaml"), &HOST).unwrap();
    assert!(matches!(campaign, Input::Campaign(campaign) if campaign.name() == "quick"));
    let lab = load_input(&root.join("labs/ethernet-1500.yaml"), &HOST).unwrap();
    assert!(matches!(lab, Input::Lab(lab) if lab.plan().cipher_mtu == Some(1500)));
    assert!(
        load_input(&root.join("labs"), &HOST)
            .unwrap_err()
            .to_string()
            .contains("cannot be read")
    );
}

/// A valid campaign with lists out of these values.
fn campaign_text() -> impl Strategy<Value = String> {
    let list = |values: &'static [&'static str]| {
        subsequence(values, 1..=values.len()).prop_map(|values| values.join(", "))
    };
    // The smallest MTU still carries the longest of the datagrams below: 548 B and 28 B of
    // headers.
    let mtu = list(&["576 B", "1500 B", "9000 B"]);
    let cores = list(&["1", "2", "3"]);
    // Not fewer than the most cores: those campaigns are refused, and are not the subject here.
    let streams = list(&["auto", "4", "8"]);
    let datagram = list(&["auto", "16 B", "64 B", "548 B"]);
    let rate = list(&["max", "10 Mbit/s", "1.5 Gbit/s"]);
    let offloads = list(&["on", "off"]);
    let suite = list(&["aes-256-gcm", "aes-128-gcm", "chacha20-poly1305"]);
    let workers = list(&["1", "2", "16"]);
    (
        mtu, cores, streams, datagram, rate, offloads, suite, workers,
    )
        .prop_map(
            |(mtu, cores, streams, datagram, rate, offloads, suite, workers)| {
                format!(
                    "campaign: random\nrepeats: 2\nduts:\n  - direct\n  \
                 - cipherbench: {{ suite: [{suite}], workers: [{workers}] }}\ntrials:\n  \
                 - tcp: {{ mtu: [{mtu}], cores: [{cores}], streams: [{streams}],\n      \
                 offloads: [{offloads}] }}\n  \
                 - udp: {{ mtu: [{mtu}], datagram: [{datagram}], rate: [{rate}],\n      \
                 offloads: [{offloads}] }}\n  \
                 - ping: {{ mtu: [{mtu}], offloads: [{offloads}] }}\n"
                )
            },
        )
}

proptest! {
    #[test]
    fn ids_are_unique_and_cells_of_a_group_differ_by_dut_only(text in campaign_text()) {
        let plan = plan(&text);
        let unique: HashSet<&str> = ids(&plan).into_iter().collect();
        prop_assert_eq!(unique.len(), plan.cells.len());
        for group in plan.cells.chunk_by(|a, b| a.group == b.group) {
            // Each group has the same DUTs, and its cells are neighbours: a group that occurs
            // twice would break the product.
            prop_assert_eq!(group.len() * unique_groups(&plan), plan.cells.len());
            let settings = |cell: &Cell| {
                (cell.stations, cell.measurement.clone())
            };
            prop_assert!(group.iter().all(|cell| settings(cell) == settings(&group[0])));
        }
    }

    #[test]
    fn a_mutated_campaign_never_panics(
        text in campaign_text(),
        edits in vec((any::<Index>(), 0..3_u8, any::<char>()), 1..8),
    ) {
        let mut chars: Vec<char> = text.chars().collect();
        for (index, kind, c) in edits {
            // Few edits leave most of the text valid, so that they reach the checks behind the
            // parser.
            let at = index.index(chars.len());
            match kind {
                0 => chars[at] = c,
                1 => chars.insert(at, c),
                _ => drop(chars.remove(at)),
            }
        }
        let text: String = chars.into_iter().collect();
        match from_text("c.yaml", &text) {
            Ok(campaign) => drop(campaign.plan(&LabFile::built_in(), &HOST)),
            Err(mistakes) => prop_assert!(mistakes.count() > 0 && !mistakes.to_string().is_empty()),
        }
        let _ = lab_from_text("l.yaml", &text);
    }
}

fn unique_groups(plan: &Plan) -> usize {
    plan.cells
        .iter()
        .map(|cell| cell.group.as_str())
        .collect::<HashSet<_>>()
        .len()
}

#[test]
fn a_journals_engine_is_a_name_or_a_map_as_it_always_was() {
    for engine in [
        "auto",
        "aws-lc",
        "null",
        "{ below: 128 B, use: rustcrypto, else: ipsec-mb }",
    ] {
        let encryptor = Encryptor {
            engine: engine.parse().unwrap(),
            ..Encryptor::new(wire::Suite::Aes256Gcm)
        };
        let written = serde_json::to_value(&encryptor).unwrap();
        // Journals of older versions have these texts, so a change of the form would make them
        // unreadable.
        assert_eq!(written["engine"], engine);
        assert_eq!(
            serde_json::from_value::<Encryptor>(written).unwrap(),
            encryptor
        );
    }
}

#[test]
fn keys_are_static_unless_said_and_agreed_on_for_an_hour() {
    let of = |settings: &str| {
        let text = format!(
            "campaign: c\nduts: [cipherbench: {{ {settings} }}]\ntrials: [ping: {{ mtu: 1500 B }}]\n"
        );
        let duts = plan(&text).cells.into_iter().map(|cell| cell.dut);
        let described = duts.map(|dut| {
            let encryptor = dut.adapter.encryptor().unwrap();
            let seconds = encryptor.rekey_every_ns.map(|every| every / S);
            (dut.name, encryptor.keys, seconds)
        });
        described.collect::<Vec<_>>()
    };
    let named = |name: &str, keys, seconds| (name.to_owned(), keys, seconds);
    let ours = "cipherbench";
    assert_eq!(of("workers: 1"), [named(ours, KeySource::Static, None)]);
    assert_eq!(of("keys: ppk"), [named(ours, KeySource::Ppk, Some(3600))]);
    assert_eq!(
        of("keys: qkd, rekey_every: 1 s"),
        [named(ours, KeySource::Qkd, Some(1))]
    );
    // Static ones have no time that could vary.
    assert_eq!(
        of("keys: [static, both], rekey_every: [1 s, 1 min]"),
        [
            named("cipherbench static", KeySource::Static, None),
            named("cipherbench both every 1s", KeySource::Both, Some(1)),
            named("cipherbench both every 1min", KeySource::Both, Some(60)),
        ]
    );
}

#[test]
fn a_journal_from_before_keys_could_be_agreed_on_had_static_ones() {
    let ours = Encryptor::new(wire::Suite::Aes256Gcm);
    let mut written = serde_json::to_value(&ours).unwrap();
    assert_eq!(
        written.as_object_mut().unwrap().remove("keys").unwrap(),
        "static"
    );
    assert!(written.get("rekey_every_ns").is_none());
    assert_eq!(serde_json::from_value::<Encryptor>(written).unwrap(), ours);
    for keys in KeySource::ALL {
        let ours = ours.clone().with_keys(keys);
        let written = serde_json::to_value(&ours).unwrap();
        assert_eq!(written["keys"], keys.name());
        assert_eq!(serde_json::from_value::<Encryptor>(written).unwrap(), ours);
    }
}

#[test]
fn only_cells_that_put_keys_out_of_step_have_a_fault_prepared() {
    let plan = plan(
        "campaign: c\nduts: [cipherbench: { keys: pqc }]\ntrials:\n  \
         - desync: { frame: 64 B, load: 1 kpps, cause: [wrong-keys, missed-rollover] }\n  \
         - load: { frame: 64 B }\n",
    );
    let ours = plan
        .cells
        .iter()
        .filter_map(|cell| cell.dut.adapter.encryptor());
    // The same DUT is in three cells, and has a fault in two of them.
    let faults: Vec<_> = ours.map(|encryptor| encryptor.fault).collect();
    let [wrong, missed] = Desync::ALL.map(Some);
    assert_eq!(faults, [wrong, missed, None]);
}

#[test]
fn where_keys_are_agreed_on_both_gateways_are_in_the_path() {
    for keys in KeySource::ALL {
        let adapter = Adapter::Cipherbench(Encryptor::new(wire::Suite::Aes256Gcm).with_keys(keys));
        // The station in a gateway's place has no key exchange.
        let both_only = adapter.profile().directions == [Direction::Both];
        assert_eq!(both_only, keys.is_agreed(), "{}", keys.name());
    }
}

#[test]
fn directions_and_congestion_control_are_axes_that_ids_name_if_they_vary() {
    let text = "campaign: c\nduts: [direct]\ntrials:\n  \
                - tcp: { mtu: 1500 B, direction: [a-to-b, duplex], congestion: [auto, bbr] }\n  \
                - udp: { mtu: 1500 B, datagram: 64 B, direction: b-to-a }\n";
    let plan = plan(text);
    let expected = [
        "tcp/mtu=1500/cores=1/congestion=auto/direction=a-to-b/direct",
        "tcp/mtu=1500/cores=1/congestion=auto/direction=duplex/direct",
        "tcp/mtu=1500/cores=1/congestion=bbr/direction=a-to-b/direct",
        "tcp/mtu=1500/cores=1/congestion=bbr/direction=duplex/direct",
        "udp/mtu=1500/cores=1/datagram=64/direct",
    ];
    assert_eq!(ids(&plan), expected);
    let Measurement::Udp { direction, .. } = &plan.cells[4].measurement else {
        panic!("{:?}", plan.cells[4])
    };
    assert_eq!(*direction, TransferDirection::BToA);
}

#[test]
fn directions_and_names_that_no_tool_has_are_refused_with_the_known_ones() {
    let text = "campaign: c\nduts: [direct]\ntrials:\n  \
                - tcp: { mtu: 1500 B, direction: encrypt, congestion: CUBIC! }\n  \
                - ping: { mtu: 1500 B, direction: duplex, loaded: 3 }\n";
    let mistakes = from_text("c.yaml", text).unwrap_err().to_string();
    for expected in [
        "`CUBIC!` is not the name of a congestion control",
        "tcp_allowed_congestion_control",
        "`encrypt`",
        "directions are a-to-b, b-to-a, duplex",
        "`direction`",
    ] {
        assert!(mistakes.contains(expected), "{expected}: {mistakes}");
    }
}

#[test]
fn cells_with_more_cores_than_the_host_has_are_refused_or_kept_to_fail() {
    let text = |key: &str| {
        format!(
            "campaign: c\n{key}duts: [direct]\ntrials:\n  - tcp: {{ mtu: 1500 B, cores: [1, 10] }}\n"
        )
    };
    let host = HostFacts { cores: 2 };
    let planned = |key: &str| {
        from_text("c.yaml", &text(key))
            .unwrap()
            .plan(&LabFile::built_in(), &host)
    };
    let refused = planned("").unwrap_err().to_string();
    assert!(
        refused.contains("10 cores per station are more than the 2 cores"),
        "{refused}"
    );
    assert_eq!(
        planned("missing_cores: refuse\n")
            .unwrap_err()
            .to_string()
            .lines()
            .next(),
        refused.lines().next()
    );
    // The cell stays in the plan, and its trials fail with the reason: a report shows that it was
    // asked for.
    assert_eq!(planned("missing_cores: skip\n").unwrap().cells.len(), 2);
}

#[test]
fn a_plan_that_no_file_could_give_is_noticed() {
    const BOXES: &str = "campaign: c\nduts:\n  - external:\n      boxes:\n        - up: \"true {mtu}\"\n\
        trials:\n  - tcp: { mtu: 1400 B, congestion: cubic }\n";
    const LAB: &str = "lab: l\nexternal: { station_a: eth8, station_b: eth9 }\n";
    let lab = lab_from_text("lab.yaml", LAB).unwrap();
    let plan = from_text("c.yaml", BOXES)
        .unwrap()
        .plan(&lab, &HOST)
        .unwrap();
    assert_eq!(plan.mistake(), None);
    let json = serde_json::to_string(&plan).unwrap();
    let changes = [
        (r#""name":"l""#, r#""name":"../l""#, "the lab's name `../l`"),
        (
            "eth8",
            r"eth8\nlink del eth0",
            "the interface `eth8\\nlink del eth0`",
        ),
        ("eth9", "eth9 up", "the interface `eth9 up`"),
        ("10.1.0.0", "8.8.8.0", "the network 8.8.8.0/24"),
        (r#""cubic""#, r#""-x""#, "the congestion control `-x`"),
        ("true {mtu}", "true {rate}", "the command `true {rate}`"),
        (
            r#""kind":"namespaces""#,
            r#""kind":"hosts""#,
            "hosts in a lab",
        ),
        (
            r#""kind":"namespaces""#,
            r#""kind":"device""#,
            "in a lab of another kind the cell",
        ),
        (
            r#""dut":{"name":""#,
            r#""dut":{"name":"\u001b[2J"#,
            "the text `\\u{1b}[2J",
        ),
    ];
    for (part, by, words) in changes {
        // Otherwise the replacement would change nothing, and the test would look for a mistake
        // that is not there.
        assert!(json.contains(part), "{part} in {json}");
        let changed: Plan = serde_json::from_str(&json.replacen(part, by, 1)).unwrap();
        let mistake = changed.mistake();
        let found = mistake
            .as_ref()
            .is_some_and(|mistake| mistake.contains(words));
        assert!(found, "{part} by {by}: {mistake:?}");
    }
}

#[test]
fn all_that_a_plan_runs_is_listed() {
    const BOXES: &str = "\
campaign: c
duts:
  - external:
      suite_words: { aes-256-gcm: strong }
      boxes:
        - via: ssh admin@192.0.2.9
          up: up-1
          down: down-1
          version: version-1
          suite_told: suite-1
          counters: { drops: drops-1 }
          reset: reset-1
          started: started-1
          snmp: { agent: 192.0.2.9, community: { secret_env: COMMUNITY } }
          monitor:
            interval: 1 s
            cpu: { command: cpu-1 }
            temperature: { oid: 1.3.6.1.4.1.1.0 }
trials:
  - ping: { mtu: 1400 B }
";
    const LAB: &str = "lab: l\nkind: hosts\nexternal: { station_a: eth8, station_b: eth9 }\n\
        hosts: { a: { reach: ssh root@left, program: /opt/cb }, b: { reach: ssh root@right } }\n";
    let lab = lab_from_text("lab.yaml", LAB).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let campaign = from_text("c.yaml", BOXES).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let plan = campaign.plan(&lab, &HOST).unwrap();
    let listed: Vec<_> = plan.demands().iter().map(ToString::to_string).collect();
    assert_eq!(
        listed,
        [
            "host `a`, reach: ssh root@left",
            "host `a`, program: /opt/cb",
            "host `b`, reach: ssh root@right",
            "DUT `external`, box 1, via: ssh admin@192.0.2.9",
            "DUT `external`, box 1, up: up-1",
            "DUT `external`, box 1, down: down-1",
            "DUT `external`, box 1, version: version-1",
            "DUT `external`, box 1, suite_told: suite-1",
            "DUT `external`, box 1, reset: reset-1",
            "DUT `external`, box 1, started: started-1",
            "DUT `external`, box 1, counters: drops-1",
            "DUT `external`, box 1, monitor: cpu-1",
            "DUT `external`, box 1, monitor: SNMP to 192.0.2.9:161, with the secret in the variable COMMUNITY",
            "DUT `external`, {suite_word}: strong",
        ]
    );
}
