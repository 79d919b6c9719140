//! Interrupted and resumed runs.

use crate::support::{Sandbox, end, finish, kill, start, wait_for};
use nix::sys::signal::{SIGCONT, SIGINT, SIGKILL, SIGSTOP, killpg};
use nix::unistd::Pid;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Child;

/// Four trials, each of at least half a second.
const LONG: &str = "\
campaign: long
repeats: 2
duts: [direct, cipherbench]
trials:
  - ping: { mtu: 1500 B, count: 60, interval: 10 ms }
";

/// The number of them.
const TRIALS: usize = 4;

/// Starts the long run and waits until this many trials are recorded.
fn start_long(sandbox: &Sandbox, trials: usize) -> Child {
    start_with(sandbox, LONG, &[], trials)
}

/// The same with another campaign and more words.
fn start_with(sandbox: &Sandbox, campaign: &str, more: &[&str], trials: usize) -> Child {
    sandbox.write("campaign.yaml", campaign);
    let words = [&["run", "campaign.yaml", "--lab", "lab.yaml"], more].concat();
    let mut run = sandbox.interruptible(&words);
    let run = start(run.process_group(0));
    wait_for("a recorded trial", || {
        (sandbox.trials_recorded() >= trials).then_some(())
    });
    run
}

fn process_id(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("a process id")
}

/// Asserts that the journal has every trial of the long run exactly once.
fn assert_each_trial_is_recorded_once(sandbox: &Sandbox) {
    let trials = sandbox.trial_records();
    let mut found: Vec<_> = trials
        .iter()
        .map(|trial| (trial["cell"].to_string(), trial["repeat"].as_u64()))
        .collect();
    found.sort();
    let all = found.len();
    found.dedup();
    assert_eq!((found.len(), all), (TRIALS, TRIALS), "{found:?}");
}

pub(crate) fn a_run_that_was_killed_is_resumed_without_losing_a_trial() {
    let sandbox = Sandbox::new();
    let mut run = start_long(&sandbox, 2);
    kill(process_id(&run), SIGKILL);
    run.wait().expect("a child can be waited for");
    wait_for("the end of all stations", || {
        sandbox.processes().is_empty().then_some(())
    });
    let before = sandbox.run_file("journal.jsonl");
    let recorded = sandbox.trials_recorded();

    let folder = sandbox.only_run();
    let folder = folder.to_str().expect("a plain name");
    // An incomplete run can be reported at any time; the exit code shows that trials are missing.
    let report = end(&mut sandbox.program(&["report", folder]));
    sandbox.recorded_with(report, 5);
    let resumed = sandbox.records(&mut sandbox.program(&["resume", folder]));
    let made = resumed
        .stderr
        .lines()
        .filter(|line| line.contains(" left)"))
        .count();
    assert_eq!(made, TRIALS - recorded, "{}", resumed.stderr);
    let after = sandbox.run_file("journal.jsonl");
    let finished = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .expect("a finished line")
        + 1;
    assert!(
        after.starts_with(&before[..finished]),
        "what was recorded has changed"
    );
    assert_each_trial_is_recorded_once(&sandbox);
    sandbox.records(&mut sandbox.program(&["report", folder]));
}

pub(crate) fn ctrl_c_takes_the_lab_down_and_exits_4_even_when_pressed_again() {
    let sandbox = Sandbox::new();
    let limited = format!("{LONG}expect:\n  - ping p50 <= 100 s\n");
    let run = start_with(&sandbox, &limited, &["--junit", "limits.xml"], 1);
    // As from a terminal: to the whole process group, and repeatedly.
    let group = Pid::from_raw(process_id(&run));
    for _ in 0..3 {
        killpg(group, SIGINT).expect("the run is there");
    }
    let ended = finish(run).exits(4);
    // They have ended already: the program waits for them before it exits.
    assert_eq!(sandbox.processes(), []);
    let folder = sandbox.only_run();
    let folder = folder.to_str().expect("a plain name");
    let ended = ended
        .says("interrupted after")
        .says(&format!("cipherbench resume {folder}"))
        .says(&format!("cipherbench report {folder}"));
    assert_eq!(ended.stdout, "");
    // A pipeline that reads the limits finds them undecided.
    let junit = fs::read_to_string(sandbox.path("limits.xml")).expect("JUnit");
    assert!(junit.contains("<error"), "{junit}");
    let report = String::from_utf8(sandbox.run_file("report.md")).expect("UTF-8");
    assert!(
        report.contains("long"),
        "documents of the incomplete run are written"
    );
    sandbox.records(&mut sandbox.program(&["resume", folder, "--quiet"]));
    assert_each_trial_is_recorded_once(&sandbox);
}

pub(crate) fn a_station_left_by_a_killed_run_is_removed_by_the_next() {
    let sandbox = Sandbox::new();
    let mut run = start_long(&sandbox, 1);
    // A stopped process does not notice that its run has ended.
    let station = sandbox.process("station --node gw1");
    kill(station, SIGSTOP);
    kill(process_id(&run), SIGKILL);
    run.wait().expect("a child can be waited for");
    wait_for("the end of the other stations", || {
        let left = sandbox.processes();
        left.iter()
            .all(|(_, line)| !line.contains("station") || line.contains("gw1"))
            .then_some(())
    });
    // A process of the same kind that is not left over must not be killed.
    let mut bystander = start(sandbox.command("sleep").arg("1000"));
    let folder = sandbox.only_run();
    let resume = sandbox
        .program(&["resume", folder.to_str().expect("a plain name")])
        .output();
    kill(station, SIGCONT);
    assert!(
        bystander
            .try_wait()
            .expect("a child can be asked")
            .is_none(),
        "a bystander was killed"
    );
    bystander.kill().expect("it is there");
    bystander.wait().expect("a child can be waited for");
    let resumed = crate::support::Ended::from(resume.expect("the program can be started"));
    sandbox
        .recorded_with(resumed, 0)
        .says("removed station gw1");
    assert_each_trial_is_recorded_once(&sandbox);
}

pub(crate) fn a_station_that_dies_ends_the_run_and_it_can_be_resumed() {
    let sandbox = Sandbox::new();
    let run = start_long(&sandbox, 1);
    kill(sandbox.process("station --node gw2"), SIGKILL);
    let ended = finish(run).exits(4).says("gw2");
    assert_eq!(sandbox.processes(), []);
    let folder = sandbox.only_run();
    let folder = folder.to_str().expect("a plain name");
    ended.says(&format!("cipherbench resume {folder}"));
    sandbox.records(&mut sandbox.program(&["resume", folder, "--quiet"]));
    let report = sandbox.records(&mut sandbox.program(&["report", folder]));
    let all = format!("All {TRIALS} trials were measured");
    let is_whole = report.code == Some(1) || report.stdout.contains(&all);
    assert!(is_whole, "{}", report.stdout);
    assert_each_trial_is_recorded_once(&sandbox);
}

pub(crate) fn a_truncated_last_line_is_dropped_with_a_warning() {
    let sandbox = Sandbox::new();
    let mut run = start_long(&sandbox, 2);
    kill(process_id(&run), SIGKILL);
    run.wait().expect("a child can be waited for");
    wait_for("the end of all stations", || {
        sandbox.processes().is_empty().then_some(())
    });
    let folder = sandbox.only_run();
    let journal = sandbox.path("").join(&folder).join("journal.jsonl");
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(journal)
        .expect("a journal");
    file.write_all(br#"{"record":"trial","cell":"ping/mtu=15"#)
        .expect("it can be written");
    let folder = folder.to_str().expect("a plain name");
    sandbox
        .recorded_with(end(&mut sandbox.program(&["report", folder])), 5)
        .says("warning: ")
        .says("unfinished");
    sandbox
        .records(&mut sandbox.program(&["resume", folder]))
        .says("warning: ");
    assert_each_trial_is_recorded_once(&sandbox);
    let ended = sandbox.records(&mut sandbox.program(&["report", folder]));
    assert_eq!(ended.stderr, "", "the line stays removed");
}
