use super::*;
use std::os::unix::fs::PermissionsExt;

/// A folder in place of `/proc/sys`.
struct Machine {
    folder: tempfile::TempDir,
    tuning: Tuning,
}

impl Machine {
    fn new(values: &[(&str, &str)]) -> Self {
        let folder = testing::folder().unwrap();
        let tuning = Tuning {
            root: folder.path().join("sys"),
            record: folder.path().join("lib/cipherbench/tuning.json"),
            wanted: vec![
                Wanted {
                    name: "net.core.a".into(),
                    at_least: 100,
                    reason: "because",
                },
                Wanted {
                    name: "net.core.b".into(),
                    at_least: 100,
                    reason: "because",
                },
            ],
            ethtool: folder.path().join("ethtool"),
            boot_id: "this boot".to_owned(),
        };
        fs::create_dir_all(tuning.root.join("net/core")).unwrap();
        for (name, value) in values {
            fs::write(tuning.path(name), format!("{value}\n")).unwrap();
        }
        Self { folder, tuning }
    }

    fn value(&self, name: &str) -> String {
        self.tuning.read(name).unwrap()
    }
}

#[test]
fn raises_what_is_too_small_and_puts_it_back() {
    let machine = Machine::new(&[("net.core.a", "7"), ("net.core.b", "500")]);
    let changes = machine.tuning.apply().unwrap();
    assert_eq!(
        (machine.value("net.core.a"), machine.value("net.core.b")),
        ("100".into(), "500".into())
    );
    assert_eq!(changes[0].before.as_deref(), Some("7"));
    assert_eq!(changes[0].after.as_deref(), Some("100"));
    assert_eq!(changes[1].before, changes[1].after);
    let changes = machine.tuning.revert().unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(
        (machine.value("net.core.a"), machine.value("net.core.b")),
        ("7".into(), "500".into())
    );
    assert!(!machine.tuning.record.exists());
    assert!(machine.tuning.revert().unwrap().is_empty());
}

#[test]
fn applied_twice_the_first_values_are_put_back() {
    let mut machine = Machine::new(&[("net.core.a", "7"), ("net.core.b", "8")]);
    machine.tuning.apply().unwrap();
    machine.tuning.wanted[0].at_least = 200;
    machine.tuning.apply().unwrap();
    assert_eq!(machine.value("net.core.a"), "200");
    machine.tuning.revert().unwrap();
    assert_eq!(
        (machine.value("net.core.a"), machine.value("net.core.b")),
        ("7".into(), "8".into())
    );
}

#[test]
fn a_value_set_by_another_program_is_left_alone_and_reported() {
    let machine = Machine::new(&[("net.core.a", "7"), ("net.core.b", "8")]);
    machine.tuning.apply().unwrap();
    fs::write(machine.tuning.path("net.core.a"), "50\n").unwrap();
    let changes = machine.tuning.revert().unwrap();
    assert_eq!(
        (machine.value("net.core.a"), machine.value("net.core.b")),
        ("50".into(), "8".into())
    );
    let refused = changes[0].refused.as_deref();
    assert_eq!(
        refused,
        Some("it is no longer the 100 that was set; it was 7 before that")
    );
    assert_eq!(changes[0].after.as_deref(), Some("50"));
    assert_eq!(changes[1].refused, None);
    assert!(!machine.tuning.record.exists());
}

#[test]
fn what_somebody_else_set_and_was_raised_again_is_what_is_put_back() {
    let machine = Machine::new(&[("net.core.a", "7"), ("net.core.b", "8")]);
    machine.tuning.apply().unwrap();
    fs::write(machine.tuning.path("net.core.a"), "50\n").unwrap();
    machine.tuning.apply().unwrap();
    assert_eq!(machine.value("net.core.a"), "100");
    machine.tuning.revert().unwrap();
    assert_eq!(machine.value("net.core.a"), "50");
}

#[test]
fn values_of_an_earlier_boot_are_not_put_back() {
    let mut machine = Machine::new(&[("net.core.a", "7"), ("net.core.b", "8")]);
    machine.tuning.apply().unwrap();
    machine.tuning.boot_id = "the next boot".to_owned();
    // As the distribution now sets them, by chance one as it was raised.
    fs::write(machine.tuning.path("net.core.b"), "9\n").unwrap();
    assert!(machine.tuning.revert().unwrap().is_empty());
    assert_eq!(
        (machine.value("net.core.a"), machine.value("net.core.b")),
        ("100".into(), "9".into())
    );
    assert!(!machine.tuning.record.exists());
}

#[test]
fn nothing_is_changed_when_the_old_values_cannot_be_kept() {
    let machine = Machine::new(&[("net.core.a", "7"), ("net.core.b", "8")]);
    // A file where the record's folder should be.
    fs::write(machine.folder.path().join("lib"), "").unwrap();
    let error = machine.tuning.apply().unwrap_err();
    assert!(error.to_string().contains("cannot keep the old values in"));
    assert_eq!(
        (machine.value("net.core.a"), machine.value("net.core.b")),
        ("7".into(), "8".into())
    );
}

#[test]
fn a_damaged_record_stops_both_ways() {
    let machine = Machine::new(&[("net.core.a", "7"), ("net.core.b", "8")]);
    machine.tuning.apply().unwrap();
    fs::write(&machine.tuning.record, "{").unwrap();
    assert!(machine.tuning.apply().is_err());
    assert!(machine.tuning.revert().is_err());
    assert_eq!(machine.value("net.core.a"), "100");
}

#[test]
fn a_parameter_that_is_missing_or_refused_is_reported_and_not_recorded() {
    let mut machine = Machine::new(&[]);
    // A value that not even root can write.
    let read_only = "/proc/sys/kernel/ngroups_max";
    std::os::unix::fs::symlink(read_only, machine.tuning.path("net.core.b")).unwrap();
    machine.tuning.wanted[1].at_least = u64::MAX;
    let changes = machine.tuning.apply().unwrap();
    assert_eq!((&changes[0].before, &changes[0].refused), (&None, &None));
    assert!(changes[1].refused.is_some());
    assert!(changes[1].before.is_some() && changes[1].before == changes[1].after);
    assert!(!machine.tuning.record.exists());
}

/// Drivers of virtual links have no rings, so a script stands for `ethtool` and a card.
const ETHTOOL: &str = "#!/bin/sh
card=${0%/*}/$2
[ -e $card ] || { echo 'netlink error: Operation not supported' >&2; exit 75; }
case $1 in
-g) printf 'Pre-set maximums:\\nRX:\\t\\t4096\\nCurrent hardware settings:\\nRX:\\t\\t%s\\n' $(cat $card);;
-G) [ $3 = rx ] && [ ! -e $card.fixed ] || { echo 'rx unmodified' >&2; exit 80; }; echo $4 > $card;;
esac
";

#[test]
fn rings_are_lengthened_where_the_driver_allows_and_put_back() {
    let mut machine = Machine::new(&[]);
    let (folder, ethtool) = (machine.folder.path(), &machine.tuning.ethtool);
    fs::write(ethtool, ETHTOOL).unwrap();
    fs::set_permissions(ethtool, fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["eth1", "eth2", "eth2.fixed"] {
        fs::write(folder.join(name), "512\n").unwrap();
    }
    machine.tuning.wanted = ["eth1", "eth2", "veth0"]
        .map(|name| ring::wanted(ethtool, name))
        .into();
    let changes = machine.tuning.apply().unwrap();
    let found = |change: &Change| (change.before.clone(), change.after.clone());
    let some = |length: &str| Some(length.to_owned());
    assert_eq!(changes[0].name, "receive ring of eth1");
    assert_eq!(found(&changes[0]), (some("512"), some("4096")));
    assert_eq!(changes[1].refused.as_deref(), Some("rx unmodified"));
    assert_eq!(found(&changes[2]), (None, None));
    assert_eq!(changes[2].refused, None);

    let changes = machine.tuning.revert().unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(found(&changes[0]), (some("4096"), some("512")));
    assert_eq!(
        fs::read_to_string(machine.folder.path().join("eth1")).unwrap(),
        "512\n"
    );
    assert!(!machine.tuning.record.exists());
}
