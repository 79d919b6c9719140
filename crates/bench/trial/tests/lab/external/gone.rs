//! A gateway that ends what it agreed on, to agree on it anew, and one that goes away in mid-trial.

use super::gateway::{LEAVE, Tunnel, cell, kill, nearly_measured, strongswan};
use super::rack::{Rack, adapter, shipped};
use crate::one_gateway::is_missing;
use crate::trials::{TestLab, child};
use journal::record::Outcome;
use plan::{Direction, External};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use testbed::NodeId;

/// The station's own daemon changes its routes each time, which is no change of the path.
pub(super) fn renewing() {
    let rack = Rack::with_one_box();
    if is_missing(adapter(strongswan(&rack, Tunnel::default()))) {
        return;
    }
    let mut lab = TestLab::on(&shipped("gateway.yaml"));
    for (tunnels, makes_before_break) in [(1, false), (3, false), (3, true)] {
        let device = anew(&rack, tunnels, tunnels, makes_before_break);
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            // What is lost while there is no SA is the device's.
            nearly_measured(&mut lab, &device, direction, 2500);
            assert_renewed(&rack, makes_before_break);
        }
    }
    drop(lab);
    assert!(rack.has_all_back());
}

/// It has one selector for all tunnels that the station asked for one by one. It asks for that
/// instead when it authenticates itself anew, and gets the first tunnel for it.
pub(super) fn merging() {
    let rack = Rack::with_one_box();
    if is_missing(adapter(strongswan(&rack, Tunnel::default()))) {
        return;
    }
    let mut lab = TestLab::on(&shipped("gateway.yaml"));
    for makes_before_break in [false, true] {
        let device = anew(&rack, 3, 0, makes_before_break);
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let outcome = lab.record(&cell(&device, direction, 2500)).outcome;
            assert_renewed(&rack, makes_before_break);
            let said = match outcome {
                Outcome::Invalid { measured, .. } => {
                    let mut checks = measured.evidence.checks.into_iter();
                    let found = checks.find(|it| it.name == "path-unchanged" && !it.passed);
                    let found = found.expect("a tunnel that is lost is a change");
                    let explained = found.explanation.unwrap();
                    format!("{}\n{}", found.detail, explained.advice)
                }
                // The next sender finds no SA for its tunnel.
                Outcome::Failed { reason } => reason,
                other @ Outcome::Measured(_) => panic!("{other:#?}"),
            };
            for part in [
                "for 198.19.0.2/32 === 198.18.0.2/32",
                "a pair of traffic selectors for each tunnel",
            ] {
                assert!(said.contains(part), "{direction:?}: {said}");
            }
            assert!(!said.contains("is not there any more"), "{said}");
        }
    }
    drop(lab);
    assert!(rack.has_all_back());
}

/// A box that authenticates itself anew every second.
fn anew(rack: &Rack, tunnels: u16, apart: u16, makes_before_break: bool) -> External {
    let tunnel = Tunnel {
        authenticates_anew: true,
        makes_before_break,
        // It sets up all tunnels itself then, and the station cannot choose their selectors.
        apart: match apart {
            1 => 0,
            apart => apart as u8,
        },
        ..Tunnel::default()
    };
    External {
        tunnels,
        ..strongswan(rack, tunnel)
    }
}

/// The box did so since it is up. In a single trial it need not.
fn assert_renewed(rack: &Rack, makes_before_break: bool) {
    let log = fs::read_to_string(rack.path("box.log")).unwrap();
    let begun = log.matches("reauthenticating IKE_SA").count();
    // The daemon numbers its SAs, so the second one is the first renewal.
    let first = log.find("IKE_SA edge[2] established");
    let ended = log.find("deleting IKE_SA edge[1]");
    assert!(begun > 0 && first.is_some() && ended.is_some(), "{log}");
    assert_eq!(first < ended, makes_before_break, "{log}");
}

/// Each is gone in another way, and is said to be so by another sign.
pub(super) fn gone() {
    let rack = Rack::with_one_box();
    if is_missing(adapter(strongswan(&rack, Tunnel::default()))) {
        return;
    }
    let mut lab = TestLab::on(&shipped("gateway.yaml"));
    let folder = rack.folder.path().display().to_string();
    let killed = format!("kill -9 $(cat {folder}/box.pid)");
    let ended = kill(&format!("{folder}/box.pid"));
    for (direction, how, sign) in [
        (Direction::Encrypt, &*killed, "it does not answer IKE"),
        (Direction::Decrypt, &*killed, "it does not answer IKE"),
        (
            Direction::Decrypt,
            &*ended,
            "the station has had no SA with it",
        ),
        (
            Direction::Encrypt,
            "ip link set wan down",
            "station b's cable `eth2` has no link",
        ),
        (
            Direction::Decrypt,
            "ip address flush dev wan",
            "192.0.2.1 at station b's cable `eth2` does not answer ARP",
        ),
    ] {
        let reason = went_away(&mut lab, &rack, direction, how);
        assert!(reason.contains("is not there any more"), "{how}: {reason}");
        assert!(reason.contains(sign), "{how}: {reason}");
    }
    drop(lab);
    assert!(rack.has_all_back());
}

/// Why a trial failed in whose first frames a command ran on the box.
fn went_away(lab: &mut TestLab, rack: &Rack, direction: Direction, how: &str) -> String {
    let device = outliving(rack);
    let sender = match direction {
        Direction::Decrypt => NodeId::B,
        _ => NodeId::A,
    };
    let sender = lab.lab.station_pid(sender);
    let via = rack.via(1);
    let is_over = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            // The generator runs only once the SAs are up and checked.
            while child(sender, "frames").is_none() {
                if is_over.load(Relaxed) {
                    return;
                }
                thread::sleep(Duration::from_millis(2));
            }
            let mut command = Command::new(&via[0]);
            let status = command.args(&via[1..]).arg(how).status().unwrap();
            assert!(status.success(), "{how}");
        });
        let record = lab.record(&cell(&device, direction, 500));
        is_over.store(true, Relaxed);
        record.outcome
    });
    match outcome {
        Outcome::Failed { reason } => reason,
        other => panic!("{how}: {other:#?}"),
    }
}

/// A box whose commands do not mind that it went away.
fn outliving(rack: &Rack) -> External {
    let mut device = strongswan(rack, Tunnel::default());
    let folder = rack.folder.path().display();
    device.boxes[0].down = vec![
        format!(
            "pid=$(cat {folder}/box.pid); kill -9 $pid 2>&- && while kill -0 $pid 2>&-; do sleep 0.01; done; true"
        ),
        LEAVE.to_owned(),
    ];
    device
}
