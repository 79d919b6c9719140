//! Programs that a campaign names, and versions of them.

use crate::golden::{HOST, compare};
use campaign::{LabFile, from_text, lab_from_text};
use plan::{Plan, Software, to_text};

fn plan(text: &str) -> Plan {
    let campaign =
        from_text("campaigns/v.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    campaign.plan(&LabFile::built_in(), &HOST).unwrap()
}

/// The DUTs of a campaign that has those.
fn software(duts: &str) -> Vec<(String, Software)> {
    let text = format!("campaign: v\nduts: [{duts}]\ntrials: [ping: {{ mtu: 1400 B }}]\n");
    let cells = plan(&text).cells.into_iter();
    cells
        .map(|cell| (cell.dut.name, cell.dut.software))
        .collect()
}

const EVERY_KEY: &str = "\
campaign: v
duts:
  - cipherbench:
      name: ours
      suite: [aes-256-gcm, aes-128-gcm]
      program: { old: out/old/cipherbench, new: /srv/new/cipherbench }
      build:
        command: scripts/build.sh
        limit: 5 min
        sources: [../src, ../Makefile]
      environment: { RUST_BACKTRACE: 1, GOGC: \"off\" }
  - wireguard-go: { program: ./wireguard-go, build: make wireguard-go }
  - boringtun: { program: boringtun-cli }
  - gotatun: { environment: { A: \"1\" } }
  - strongswan: { program: { 5.9: /opt/5.9/libexec/ipsec/charon, 6.0: /opt/6.0/libexec/ipsec/charon } }
  - openvpn: { program: { one: ./openvpn } }
trials:
  - load: { frame: 64 B }
";

#[test]
fn a_plan_of_versions_reads_well_and_names_what_it_runs() {
    let plan = plan(EVERY_KEY);
    assert_eq!(plan.mistake(), None);
    let demands: String = plan.demands().iter().map(|it| format!("{it}\n")).collect();
    let text = to_text(&plan, |_| Vec::new());
    compare(
        "versions-plan.txt",
        &format!("{text}\nruns or uses\n{demands}"),
    );
}

#[test]
fn mistakes_of_programs_are_reported() {
    let text = "\
campaign: v
duts:
  - cipherbench: { name: a, program: [./a, ./b] }
  - cipherbench: { name: b, program: { old: ./a, old: ./b } }
  - cipherbench: { name: c, program: { old: ./a, \"n e w\": ./b, \"\": ./c } }
  - cipherbench: { name: d, program: {} }
  - cipherbench: { name: e, program: \"\" }
  - cipherbench: { name: f, program: ./folder/ }
  - cipherbench: { name: g, build: make }
  - cipherbench: { name: h, program: cipherbench, build: make }
  - cipherbench: { name: i, program: ./a, build: \"\" }
  - cipherbench: { name: j, program: ./a, build: { limit: 0 s } }
  - cipherbench: { name: k, program: ./a, build: { command: make, sources: [], jobs: 2 } }
  - cipherbench: { name: l, environment: { PATH: /bin, 1A: x, \"A B\": y, LC_ALL: C, OK: [1] } }
  - wireguard: { program: ./wg }
  - xfrm: { program: ./ip }
  - direct: { environment: { A: b } }
trials:
  - ping: { mtu: 1400 B }
";
    let mistakes = from_text("campaigns/v.yaml", text).unwrap_err();
    let mut all = format!("{mistakes}\n");
    let named = "cipherbench: { name: ours, program: ./a }";
    for (lab, dut) in [
        ("lab: m\nkind: memory\n", named),
        (
            "lab: m\nkind: memory\n",
            "cipherbench: { environment: { A: b } }",
        ),
        (HOSTS, named),
        (HOSTS, "cipherbench: { program: /opt/a, build: make }"),
    ] {
        let text = format!("campaign: v\nduts: [{dut}]\ntrials: [load: {{ frame: 64 B }}]\n");
        let lab = lab_from_text("labs/l.yaml", lab).unwrap();
        let campaign = from_text("campaigns/v.yaml", &text).unwrap();
        let mistakes = campaign.plan(&lab, &HOST).unwrap_err();
        all.push_str(&format!("\n{mistakes}\n"));
    }
    compare("versions-mistakes.txt", &all);
}

const HOSTS: &str = "lab: h\nkind: hosts\nhosts: { a: { interface: eth1 }, \
                     b: { reach: ssh b, interface: eth1 } }\n";

#[test]
fn hosts_start_a_program_at_its_whole_path() {
    let lab = lab_from_text("labs/l.yaml", HOSTS).unwrap();
    for program in ["/opt/a", "wireguard-go"] {
        let text = format!(
            "campaign: v\nduts: [wireguard-go: {{ program: {program} }}]\ntrials: [load: {{ frame: 64 B }}]\n"
        );
        let campaign = from_text("campaigns/v.yaml", &text).unwrap();
        campaign.plan(&lab, &HOST).unwrap();
    }
}

#[test]
fn paths_are_relative_to_the_campaign_and_words_are_names() {
    let program = |path: &str| {
        let dut = format!("wireguard-go: {{ program: {path} }}");
        software(&dut)[0].1.program.clone().unwrap()
    };
    assert_eq!(program("./a"), "campaigns/./a");
    assert_eq!(program("out/a"), "campaigns/out/a");
    assert_eq!(program("/opt/a"), "/opt/a");
    assert_eq!(program("a"), "a");
}

#[test]
fn one_version_has_a_name_that_no_device_shows_and_several_are_devices() {
    let names = |duts: &str| -> Vec<String> {
        let found = software(duts).into_iter();
        found.map(|(name, _)| name).collect()
    };
    let one = "wireguard-go: { program: { old: ./a } }";
    assert_eq!(names(one), ["wireguard-go"]);
    assert_eq!(software(one)[0].1.version.as_deref(), Some("old"));
    // A null run: two names for one program.
    let two = "cipherbench: { workers: [1, 2], program: { a: ./p, b: ./p } }";
    let expected = ["w1 a", "w1 b", "w2 a", "w2 b"].map(|it| format!("cipherbench {it}"));
    assert_eq!(names(two), expected);
}

const SETTINGS: &str = "\
campaign: s
duts:
  - direct:
      settings:
        usual: {}
        half:
          stations: { sysctls: { net.ipv4.tcp_rmem: 4096 65536 131072 }, ethtool: { gro: on, tx-udp-segmentation: off } }
          gateways: { sysctls: { net.core.somaxconn: 128 } }
  - cipherbench:
      workers: [1, 2]
      program: ./a
      environment: { A: b }
      settings: { one: {}, two: { gateways: { ethtool: { tcp-segmentation-offload: off } } } }
  - direct: { settings: { installed: {}, new: { programs: { iperf3: ../tools/iperf3 } } } }
  - xfrm: { settings: { only: { stations: { sysctls: { net.ipv4.tcp_congestion_control: reno } } } } }
trials:
  - tcp: { mtu: 1400 B }
";

#[test]
fn a_plan_of_settings_reads_well() {
    let plan = plan(SETTINGS);
    assert_eq!(plan.mistake(), None);
    compare("settings-plan.txt", &to_text(&plan, |_| Vec::new()));
    // DUTs of two sets differ in nothing else.
    let others = |cell: &plan::Cell| {
        let apart = cell.dut.apart(plan::Setting::Version);
        apart.map(|(version, others)| (version.plain(), others))
    };
    let found: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| others(cell).unwrap())
        .collect();
    assert_eq!((&*found[0].0, &*found[1].0), ("usual", "half"));
    assert_eq!(found[0].1, found[1].1);
    assert_ne!(found[2].1, found[0].1);
    assert_eq!(
        found[2].1.software.program.as_deref(),
        Some("campaigns/./a")
    );
    let tools: Vec<_> = plan
        .cells
        .iter()
        .map(|it| it.dut.software.station_program("iperf3"))
        .collect();
    assert!(
        tools.contains(&Some("campaigns/../tools/iperf3")),
        "{tools:?}"
    );
}

#[test]
fn mistakes_of_settings_are_reported() {
    let text = "\
campaign: s
duts:
  - direct: { name: a, settings: {} }
  - direct: { name: b, settings: { x: {}, x: {} } }
  - direct: { name: c, settings: { \"n o\": {}, y: { station: {} } } }
  - direct: { name: d, settings: { x: { stations: { sysctls: { kernel.panic: 1, tcp_cubic.hystart: 0, net.ipv4: 2, net.ipv4.tcp_rmem: \"\", net..x.y: 1 } } } } }
  - direct: { name: e, settings: { x: { stations: { ethtool: { gor: on, gro: perhaps, tso: on, tcp-segmentation-offload: off } } } } }
  - direct: { name: f, settings: { x: { command: reboot } } }
  - direct: { name: h, settings: { x: { gateways: { ethtool: { gso: on, generic-segmentation-offload: on } } } } }
  - cipherbench: { name: g, program: { old: ./a, new: ./b }, settings: { x: {}, y: {} } }
  - straight: { settings: { x: {} } }
  - direct: { name: i, settings: { x: { programs: { ping: ./ping, iperf3: ./ } } } }
trials:
  - tcp: { mtu: 1400 B }
";
    let mistakes = from_text("campaigns/s.yaml", text).unwrap_err();
    let mut all = format!("{mistakes}\n");
    let boxes = "campaign: s\nduts:\n  - external:\n      plain: on\n      settings: { v1: { undo: back }, v2: { \
                 command: \"\", limit: 0 s }, v3: { gateways: {} } }\n      boxes: [{}]\ntrials:\n  - tcp: { mtu: \
                 1400 B }\n";
    let mistakes = from_text("campaigns/s.yaml", boxes).unwrap_err();
    all.push_str(&format!("\n{mistakes}\n"));
    let text = "campaign: s\nduts: [cipherbench: { settings: { x: {} } }]\ntrials: [load: { frame: 64 B }]\n";
    let lab = lab_from_text("labs/l.yaml", "lab: m\nkind: memory\n").unwrap();
    let mistakes = from_text("campaigns/s.yaml", text)
        .unwrap()
        .plan(&lab, &HOST)
        .unwrap_err();
    all.push_str(&format!("\n{mistakes}\n"));
    compare("settings-mistakes.txt", &all);
}
