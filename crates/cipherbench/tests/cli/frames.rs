//! Frame tests: in memory without privileges, on stations in every direction, and of the tester
//! alone.

use crate::support::{Sandbox, end, kill, start, wait_for};
use nix::sys::signal::SIGINT;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// A load that any machine can handle beside other tests, through every kind of device in memory.
const IN_MEMORY: &str = "\
campaign: in-memory
repeats: 1
calibrate: true
duts:
  - direct
  - cipherbench: { engine: [auto, \"null\"] }
trials:
  - load: { frame: [64 B, imix], rate: 5 k frames/s, duration: 200 ms, direction: both }
";

/// Each device by itself: the station seals and opens.
const DIRECTIONS: &str = "\
campaign: directions
repeats: 1
calibrate: true
duts: [cipherbench]
trials:
  - load:
      frame: 128 B
      rate: 2 k frames/s
      duration: 300 ms
      direction: [encrypt, decrypt, both]
";

/// Resets of gw2 under a load that any machine carries, both ways.
const RESETS: &str = "\
campaign: resets
repeats: 1
duts: [cipherbench]
trials:
  - reset: { frame: 128 B, duplex: true, kind: [process, orderly], load: 2 k frames/s, times: 2, watch: 1500 ms }
";

/// A run's result of a cell.
fn cell<'a>(results: &'a Value, id: &str) -> &'a Value {
    let cells = results["cells"].as_array().expect("cells");
    let found = cells.iter().find(|cell| cell["id"] == id);
    found.unwrap_or_else(|| {
        let ids: Vec<_> = cells.iter().map(|cell| &cell["id"]).collect();
        panic!("no cell {id} in {ids:?}")
    })
}

fn results(sandbox: &Sandbox) -> Value {
    serde_json::from_slice(&sandbox.run_file("results.json")).expect("JSON")
}

/// Asserts that every frame of the evidence trial arrived once and intact.
fn assert_every_frame_came(sandbox: &Sandbox, cell: &str, outcome: &Value) {
    assert_eq!(outcome["kind"], "measured", "{cell}: {outcome}");
    let frames = &outcome["frames"];
    let trials = frames["trials"].as_array().expect("frame trials");
    let last = trials.last().expect("a frame trial");
    assert!(last["sent"].as_u64() > Some(100), "{cell}: {last}");
    let busy = sandbox.busy_warnings();
    let all_came = last["sent"] == last["intended"] && last["received"] == last["sent"];
    if !all_came && !busy.is_empty() {
        testing::busy::too_busy(format!("{cell}: {}", busy.join(", ")));
    }
    assert_eq!(last["sent"], last["intended"], "{cell}");
    assert_eq!(last["sent"], last["received"], "{cell}");
    for none in ["duplicated", "reordered", "corrupted"] {
        assert_eq!(last[none], 0, "{cell}: {none}");
    }
}

pub(crate) fn the_lab_in_memory_measures_without_any_privilege() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", IN_MEMORY);
    let mut run = sandbox.program(&["run", "campaign.yaml", "--lab", "memory"]);
    if nix::unistd::geteuid().is_root() {
        let mode = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(sandbox.path(""), mode).expect("the folder is ours");
        // The user `nobody` has no capabilities, and the program needs none.
        run.uid(65534).gid(65534).env("TMPDIR", sandbox.path(""));
    }
    sandbox.measures(&mut run);
    let trials = sandbox.trials();
    assert_eq!(
        trials.len(),
        2 * 4,
        "two mixes, three devices and the tester alone"
    );
    for ((cell, _), outcome) in &trials {
        assert_every_frame_came(&sandbox, cell, outcome);
    }
    let results = results(&sandbox);
    let straight = cell(&results, "load/frame=64/direction=both/straight");
    assert_eq!(straight["calibration"], true, "{straight}");
}

pub(crate) fn each_direction_is_measured_separately_on_stations() {
    let sandbox = Sandbox::new();
    sandbox.measures(&mut sandbox.run(DIRECTIONS));
    let trials = sandbox.trials();
    assert_eq!(
        trials.len(),
        3 * 2,
        "three directions, one device and the tester alone"
    );
    for ((cell, _), outcome) in &trials {
        assert_every_frame_came(&sandbox, cell, outcome);
        let gateways: Vec<bool> = ["gw1/", "gw2/"]
            .map(|gateway| {
                let counters = outcome["evidence"]["dut_counters"]
                    .as_object()
                    .expect("a map");
                counters.keys().any(|name| name.starts_with(gateway))
            })
            .to_vec();
        let expected = match cell.as_str() {
            cell if cell.ends_with("/straight") => [false, false],
            cell if cell.contains("=encrypt/") => [true, false],
            cell if cell.contains("=decrypt/") => [false, true],
            _ => [true, true],
        };
        assert_eq!(gateways, expected, "{cell}: which gateways were there");
    }
}

pub(crate) fn calibrate_measures_the_tester_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", IN_MEMORY);
    sandbox.measures(&mut sandbox.program(&["calibrate", "campaign.yaml", "--lab", "memory"]));
    let trials = sandbox.trials();
    assert_eq!(trials.len(), 2);
    assert!(trials.keys().all(|(cell, _)| cell.ends_with("/straight")));

    sandbox.write("tools.yaml", crate::support::PINGS);
    end(&mut sandbox.program(&["calibrate", "tools.yaml"]))
        .exits(2)
        .says("nothing to calibrate");
}

pub(crate) fn ctrl_c_ends_a_long_frame_trial_within_a_second() {
    let sandbox = Sandbox::new();
    let long = IN_MEMORY
        .replace("200 ms", "600 s")
        .replace("[64 B, imix]", "64 B");
    sandbox.write("campaign.yaml", &long);
    let child = start(&mut sandbox.interruptible(&["run", "campaign.yaml", "--lab", "memory"]));
    let pid = i32::try_from(child.id()).expect("a process id");
    wait_for("the run's journal", || {
        let runs = std::fs::read_dir(sandbox.path("runs")).ok()?;
        let mut journals = runs.flatten().map(|run| run.path().join("journal.jsonl"));
        journals.any(|journal| journal.exists()).then_some(())
    });
    kill(pid, SIGINT);
    crate::support::finish(child).exits(4).says("resume");
    assert_eq!(sandbox.trials_recorded(), 0);
}

pub(crate) fn an_invalid_spec_is_an_error() {
    let sandbox = Sandbox::new();
    end(&mut sandbox.program(&["frames"]))
        .exits(3)
        .says("error:");
}

pub(crate) fn a_reset_is_timed_by_both_methods_and_proven() {
    let sandbox = Sandbox::new();
    sandbox.measures(&mut sandbox.run(RESETS));
    let trials = sandbox.trials();
    assert_eq!(trials.len(), 2, "two kinds");
    for ((cell, _), outcome) in &trials {
        let found = &outcome["frames"]["disturbances"][0];
        let events = found["events"].as_array().expect("events");
        assert_eq!(events.len(), 2, "{cell}: {found}");
        for event in events {
            let reset = &event["reset"];
            assert!(
                reset["before"][0]
                    .as_str()
                    .is_some_and(|id| id.starts_with("pid ")),
                "{cell}: {event}"
            );
            assert_ne!(reset["before"], reset["after"], "{cell}");
        }
        let checks = outcome["evidence"]["checks"].as_array().expect("checks");
        for name in [
            "device-restarted",
            "carries-afterwards",
            "trials-watched",
            "no-foreign-frames",
        ] {
            let check = checks.iter().find(|check| check["name"] == name);
            let check = check.unwrap_or_else(|| panic!("{cell}: no check {name}"));
            assert_eq!(check["passed"], true, "{cell}: {check}");
        }
    }
    let results = results(&sandbox);
    for kind in ["process", "orderly"] {
        let ids = results["cells"].as_array().expect("cells").iter();
        let found = ids.map(|cell| &cell["frames"]["disturbance"]["reset"]);
        let found: Vec<&Value> = found.filter(|reset| reset["kind"] == kind).collect();
        let [found] = found[..] else {
            panic!("{kind}: {results}")
        };
        assert_eq!(found["resets"], 2, "{kind}");
        for method in ["frame_loss_ns", "timestamp_ns"] {
            let median = found[method]["median_ns"].as_f64();
            assert!(
                median.is_some_and(|median| median > 1e6 && median < 1.5e9),
                "{kind}, {method}: {found}"
            );
        }
    }
    let report = String::from_utf8(sandbox.run_file("report.md")).expect("UTF-8");
    for setting in [
        "| Reset, process killed |",
        "| Reset, process stopped in order |",
    ] {
        assert!(report.contains(setting), "{setting} is not in {report}");
    }
}
