use super::*;
use crate::Privilege;
use crate::host::Discipline;
use crate::host::findings::render;
use crate::host::probes::TunSuperPackets;
use crate::host::tuning::Change;
use journal::record::Environment;
use std::path::Path;
use testbed::protocol::{BusyProgram, Load};

fn good_facts() -> Facts {
    let works = Ok(());
    Facts {
        privilege: Ok(Privilege::Root),
        load: Load::default(),
        machine: Environment {
            cpus: 16,
            cpu_features: vec!["aes".to_owned()],
            memory_bytes: 64 * GIB,
            ..Environment::default()
        },
        clock_source: "tsc".to_owned(),
        discipline: Discipline::default(),
        threads_share_cores: None,
        cards: Vec::new(),
        tools: KNOWN
            .iter()
            .map(|known| {
                let installed = Installed {
                    version: Some("1.0".to_owned()),
                    path: Path::new("/usr/bin").join(known.name),
                    unfit: None,
                    limit: None,
                };
                (known.name.to_owned(), installed)
            })
            .collect(),
        counters: Ok(()),
        probes: Ok(Some(Probes {
            tun: Ok(TunSuperPackets {
                tcp: true,
                udp: true,
            }),
            udp_segment: works.clone(),
            udp_gro: works.clone(),
            packet_socket: works.clone(),
            xdp_socket: works.clone(),
            shaper: works.clone(),
            nat: works.clone(),
            bridge: works.clone(),
            kernel_esp: works.clone(),
            kernel_wireguard: works.clone(),
            kernel_l2tp: works,
        })),
        tuning: WANTED
            .iter()
            .map(|wanted| Change {
                name: wanted.name.clone().into_owned(),
                before: Some(wanted.at_least.to_string()),
                after: Some(wanted.at_least.to_string()),
                reason: wanted.reason.to_owned(),
                refused: None,
            })
            .collect(),
    }
}

fn find<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    findings
        .iter()
        .find(|finding| finding.name == name)
        .unwrap()
}

#[test]
fn a_machine_that_has_everything_is_good_throughout() {
    let findings = judge(&good_facts());
    let bad: Vec<_> = findings
        .iter()
        .filter(|f| f.status != Status::Good)
        .collect();
    assert!(bad.is_empty(), "{bad:?}");
    let text = render(&findings);
    assert_eq!(text.lines().count(), findings.len());
    assert!(text.starts_with("good     privilege"));
}

#[test]
fn what_is_missing_comes_with_why_and_what_to_do() {
    let mut facts = good_facts();
    facts.tools.remove("iperf3");
    facts.tools.remove("openvpn");
    if let Ok(Some(probes)) = &mut facts.probes {
        probes.tun = Ok(TunSuperPackets {
            tcp: true,
            udp: false,
        });
        probes.kernel_esp = Err("Protocol not supported".to_owned());
    }
    facts.tuning[1].after = Some("4096".to_owned());
    facts.machine.governor = "powersave".to_owned();
    let findings = judge(&facts);
    let iperf3 = find(&findings, "iperf3");
    assert_eq!((iperf3.status, iperf3.needed), (Status::Missing, true));
    assert!(iperf3.advice.contains("apt install iperf3"));
    assert!(!find(&findings, "openvpn").needed);
    assert_eq!(find(&findings, "wg").found, "1.0, /usr/bin/wg");
    assert_eq!(find(&findings, "TUN device").status, Status::Warning);
    assert_eq!(
        find(&findings, "kernel ESP").found,
        "Protocol not supported"
    );
    let buffer = find(&findings, "net.core.rmem_max");
    assert_eq!(buffer.status, Status::Warning);
    assert!(buffer.advice.contains("67108864") && buffer.advice.contains("doctor --apply"));
    assert_eq!(find(&findings, "CPU governor").status, Status::Warning);
    assert!(
        render(&findings)
            .contains("help: install it, on Debian and Ubuntu: sudo apt install iperf3")
    );
}

#[test]
fn without_privilege_no_feature_is_tried_and_the_command_that_gives_it_is_shown() {
    let mut facts = good_facts();
    facts.privilege = Err(LabError::CannotBuild {
        what: "user 1000 may not build a lab".to_owned(),
        help: "sudo sysctl -w user.max_user_namespaces=15000".to_owned(),
    });
    facts.probes = Ok(None);
    let findings = judge(&facts);
    assert_eq!(
        (findings[0].status, findings[0].needed),
        (Status::Missing, true)
    );
    assert!(findings[0].advice.contains("max_user_namespaces=15000"));
    assert!(findings.iter().all(|finding| finding.name != "TUN device"));
}

#[test]
fn missing_counters_are_one_line_with_the_reason_and_no_obstacle() {
    let mut facts = good_facts();
    for (errno, reason, advice) in [
        (libc::ENOENT, "does not see", "virtual PMU"),
        (libc::EACCES, "not permitted", "perf_event_paranoid=0"),
        (libc::ENOSYS, "no perf events", "CONFIG_PERF_EVENTS"),
    ] {
        facts.counters = Err(io::Error::from_raw_os_error(errno));
        let findings = judge(&facts);
        let found = find(&findings, "hardware counters");
        assert_eq!((found.status, found.needed), (Status::Missing, false));
        assert!(
            found.found.contains(reason) && found.advice.contains(advice),
            "{found:?}"
        );
    }
}

#[test]
fn a_cards_ring_and_interrupts_are_judged() {
    let card = Card {
        interface: "eth2".to_owned(),
        exists: true,
        driver: "ixgbe".to_owned(),
        speed_mbps: Some(10_000),
        receive_ring: Some([512, 4096]),
        queues: 2,
        numa_node: Some(1),
        stamped_by: Some(3),
        interrupts: ["0", "1"].map(str::to_owned).into(),
    };
    let judged = |card: Card| {
        let mut facts = good_facts();
        facts.cards.push(card);
        find(&judge(&facts), "interface eth2").clone()
    };
    let short = judged(card.clone());
    assert_eq!((short.status, short.needed), (Status::Warning, true));
    assert_eq!(
        short.found,
        "ixgbe, 10000 Mbit/s, receive ring 512 of 4096, 2 queues, NUMA node 1, can stamp frames by its clock ptp3, interrupts on CPUs 0, 1"
    );
    assert_eq!(short.advice, "sudo ethtool -G eth2 rx 4096");
    let long = Card {
        receive_ring: Some([4096; 2]),
        ..card
    };
    assert_eq!(judged(long.clone()).status, Status::Good);
    let on_one = Card {
        interrupts: ["3".to_owned()].into(),
        ..long.clone()
    };
    assert_eq!(judged(on_one).status, Status::Warning);
    let gone = Card {
        exists: false,
        ..long
    };
    assert_eq!(judged(gone).status, Status::Missing);
}

#[test]
fn a_program_without_a_readable_version_is_not_called_good() {
    let mut facts = good_facts();
    facts.tools.get_mut("openvpn").unwrap().version = None;
    let findings = judge(&facts);
    let finding = findings.iter().find(|its| its.name == "openvpn").unwrap();
    assert_eq!(finding.status, Status::Warning);
    assert_eq!(finding.found, "version not readable, /usr/bin/openvpn");
    assert!(
        finding
            .why
            .contains("`openvpn --version` prints no version"),
        "{}",
        finding.why
    );
}

#[test]
fn a_busy_machine_is_warned_of_with_who_uses_it() {
    let mut facts = good_facts();
    facts.load = Load {
        cpus: 16,
        used_percent: 180,
        stolen_percent: 0,
        programs: vec![BusyProgram {
            name: "rustc".to_owned(),
            pid: 4711,
            percent: 99,
        }],
    };
    let findings = judge(&facts);
    let finding = findings.iter().find(|its| its.name == "load").unwrap();
    assert_eq!((finding.status, finding.needed), (Status::Warning, false));
    let expected = "1.8 of 16 CPUs are in use: rustc 99 % (process 4711)";
    assert_eq!(finding.found, expected);
    assert!(finding.advice.contains("stop"), "{}", finding.advice);
}
