//! This machine: its environment and findings, and its parameters raised and restored.

use lab::host::tuning::{Tuning, Wanted};
use lab::host::{self, Status};
use nix::sched::{CloneFlags, unshare};

pub(crate) fn the_environment_of_a_journal_is_filled() {
    let environment = host::environment(lab::privilege::current());
    assert!(environment.cpus > 0 && !environment.kernel.is_empty());
    assert!(
        environment.tools.contains_key("ip"),
        "{:?}",
        environment.tools
    );
    assert!(
        environment.tools.values().all(|version| version != "?"),
        "{:?}",
        environment.tools
    );
    assert!(environment.privilege.starts_with("root"));
    assert!(environment.sysctls.contains_key("net.ipv4.tcp_rmem"));
}

pub(crate) fn the_doctor_tries_what_a_lab_needs() {
    let privilege = lab::privilege::current().unwrap();
    let before = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let findings = host::doctor(Ok(privilege), &[]);
    for name in [
        "privilege",
        "ip",
        "ping",
        "TUN device",
        "AF_PACKET",
        "AF_XDP",
        "tc",
        "nft",
        "bridge",
        "shaper",
        "NAT",
        "Linux bridge",
        "net.core.rmem_max",
    ] {
        assert!(
            findings.iter().any(|finding| finding.name == name),
            "{name}"
        );
    }
    // These tests run, so what a lab needs is there.
    for finding in findings.iter().filter(|finding| finding.needed) {
        assert_ne!(finding.status, Status::Missing, "{finding:?}");
    }
    // It tried that elsewhere.
    assert_eq!(
        std::fs::read_link("/proc/thread-self/ns/net").unwrap(),
        before
    );
    assert!(!std::fs::exists("/sys/class/net/cb-probe0").unwrap());
}

/// `net.core.somaxconn` belongs to a network namespace: here to one of this thread's own.
pub(crate) fn a_real_parameter_is_raised_and_put_back() {
    const NAME: &str = "net.core.somaxconn";
    const PATH: &str = "/proc/sys/net/core/somaxconn";
    let folder = testing::folder().unwrap();
    let outside = std::fs::read_to_string(PATH).unwrap();
    let record = folder.path().join("state/tuning.json");
    let inside = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let value = || std::fs::read_to_string(PATH).unwrap().trim().to_owned();
        let before = value();
        let wanted = vec![Wanted {
            name: NAME.into(),
            at_least: 60_000,
            reason: "for this test",
        }];
        let tuning = Tuning {
            root: "/proc/sys".into(),
            record: record.clone(),
            wanted,
            ethtool: "ethtool".into(),
            boot_id: "this one".to_owned(),
        };
        let changes = tuning.apply().unwrap();
        assert_eq!(changes[0].refused, None);
        assert_eq!(value(), "60000");
        assert!(std::fs::exists(&record).unwrap());
        tuning.revert().unwrap();
        assert_eq!(value(), before);
        assert!(!std::fs::exists(&record).unwrap());
    });
    inside.join().unwrap();
    assert_eq!(std::fs::read_to_string(PATH).unwrap(), outside);
}
