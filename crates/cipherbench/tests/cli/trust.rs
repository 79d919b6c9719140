//! `resume` of journals that this user began, and of others.

use crate::support::{PROGRAM, Sandbox, end};
use nix::sys::stat::{Mode, stat};
use plan::{Host, Hosts, LabKind};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// One trial without a lab, whose plan names a part of OpenSSL to load.
const KAT: [&str; 4] = [
    "kat",
    "--device",
    "openssl: { provider: default }",
    "sha-256",
];

/// One trial in memory, whose plan runs no command.
const IN_MEMORY: &str = "\
campaign: small
repeats: 1
duts: [cipherbench]
trials:
  - load: { frame: 64 B, rate: 1 k frames/s, duration: 200 ms, direction: both }
";

/// The journal of the only run.
fn journal(sandbox: &Sandbox) -> PathBuf {
    sandbox
        .path("")
        .join(sandbox.only_run())
        .join("journal.jsonl")
}

/// Leaves only the journal's header, as a run that was killed at once.
fn forget_trials(sandbox: &Sandbox) {
    let path = journal(sandbox);
    let whole = fs::read_to_string(&path).expect("a journal");
    let header = whole.split_inclusive('\n').next().expect("a header");
    fs::write(&path, header).expect("written");
}

/// The name of the only run's folder.
fn run(sandbox: &Sandbox) -> String {
    let run = sandbox.only_run();
    run.to_str().expect("a plain name").to_owned()
}

pub(crate) fn an_own_journal_is_resumed_without_a_question() {
    let sandbox = Sandbox::new();
    end(&mut sandbox.program(&KAT)).exits(0);
    let state = sandbox.path("state/cipherbench/begun");
    let mode = stat(&state).expect("the run is registered").st_mode;
    assert_eq!(
        Mode::from_bits_truncate(mode),
        Mode::S_IRUSR | Mode::S_IWUSR
    );
    forget_trials(&sandbox);
    let resume = ["resume", &run(&sandbox)];
    end(&mut sandbox.program(&resume)).exits(0);
    assert_eq!(sandbox.trial_records().len(), 1);

    // What others could have written proves nothing.
    forget_trials(&sandbox);
    for (mode, code) in [(0o620, 2), (0o604, 2), (0o600, 0)] {
        fs::set_permissions(&state, Permissions::from_mode(mode)).expect("our own file");
        end(&mut sandbox.program(&resume)).exits(code);
    }
}

pub(crate) fn a_journal_from_elsewhere_needs_trust_or_an_agreement() {
    let sandbox = Sandbox::new();
    end(&mut sandbox.program(&KAT)).exits(0);
    forget_trials(&sandbox);
    let name = run(&sandbox);
    let elsewhere = |arguments: &[&str]| {
        let mut command = sandbox.program(arguments);
        command.env("XDG_STATE_HOME", sandbox.path("elsewhere"));
        command
    };
    end(&mut elsewhere(&["resume", &name]))
        .exits(2)
        .says("was not begun by this user on this machine")
        .says("  DUT `openssl default`, provider: default\n")
        .says("resume it with `--trust`; nothing was run");
    assert!(sandbox.trial_records().is_empty());

    // `script` gives the program a terminal.
    let answered = |answer: &str| {
        let words = format!(
            "echo {answer} | script --quiet --return --command '{PROGRAM} resume {name}' /dev/null"
        );
        let mut command = sandbox.command("sh");
        command
            .args(["-c", &words])
            .env("XDG_STATE_HOME", sandbox.path("elsewhere"));
        end(&mut command)
    };
    let refused = answered("n").exits(2);
    assert!(
        refused.stdout.contains("Go on? [y/N]"),
        "{}",
        refused.stdout
    );
    assert!(sandbox.trial_records().is_empty());
    answered("y").exits(0);
    assert_eq!(sandbox.trial_records().len(), 1);

    forget_trials(&sandbox);
    end(&mut elsewhere(&["resume", &name, "--trust"])).exits(0);
    assert_eq!(sandbox.trial_records().len(), 1);
}

pub(crate) fn a_changed_journal_runs_none_of_its_commands() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", IN_MEMORY);
    let run_in_memory = ["run", "campaign.yaml", "--lab", "memory"];
    // Whatever its trial is worth: only the header is used.
    end(&mut sandbox.program(&run_in_memory));
    let name = run(&sandbox);
    let header = journal::read(&sandbox.path(&name))
        .expect("a journal")
        .header;

    // Hosts that are reached by a script, which leaves a mark.
    sandbox.write("reach.sh", "echo reached >> mark\nexit 1\n");
    let script = sandbox.path("reach.sh");
    let host = |word: &str| Host {
        reach: ["sh", script.to_str().expect("a plain name"), word]
            .map(str::to_owned)
            .into(),
        interface: Some("cable9".to_owned()),
        cpus: Vec::new(),
        program: None,
    };
    let mut forged = header.clone();
    forged.plan.lab.kind = LabKind::Hosts;
    forged.plan.lab.hosts = Some(Hosts {
        a: host("left"),
        b: host("right"),
        reconnect_ns: 0,
    });
    fs::write(journal(&sandbox), journal::to_bytes(&forged, &[])).expect("written");
    end(&mut sandbox.program(&["resume", &name]))
        .exits(2)
        .says("host `a`, reach: sh ")
        .says("host `b`, reach: sh ");
    assert!(!sandbox.path("mark").exists(), "a command was run");
    // With trust it is run, so the mark would have been there.
    end(&mut sandbox.program(&["resume", &name, "--trust"])).exits(3);
    assert!(sandbox.path("mark").exists());

    // What no file could say is refused even then.
    let mut impossible = header;
    impossible.plan.lab.name = "../../etc".to_owned();
    fs::write(journal(&sandbox), journal::to_bytes(&impossible, &[])).expect("written");
    end(&mut sandbox.program(&["resume", &name, "--trust"]))
        .exits(2)
        .says("the plan has what no campaign or lab file can have: the lab's name `../../etc`");
}
