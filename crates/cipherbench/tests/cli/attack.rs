//! Files and folders of others, given to every command: none waits for ever, fills the memory, lets
//! a terminal obey, or runs a program of another user.

use crate::support::{PINGS, PROGRAM, Sandbox, end};
use journal::record::{Outcome, Record};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, chown, geteuid, mkfifo};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use testing::attack;

/// What a terminal would obey: clear the screen, hide text, set its title, go back in the line.
const EVIL: &str = "\x1b[2J\x1b[8m\u{9b}1m\x1b]0;pwned\x07\rover\u{202e}";

/// One trial without a lab.
const KAT: [&str; 4] = ["kat", "--device", "engine", "sha-256"];

/// The characters of an output that a terminal would obey, or that hide or reorder others.
fn obeyed(output: &str) -> usize {
    let obeyed = |c: &char| (c.is_control() && *c != '\n' && *c != '\t') || *c == '\u{202e}';
    output.replace("\r\n", "\n").chars().filter(obeyed).count()
}

/// What commands print about hostile text, added up.
#[derive(Default)]
struct Orders {
    obeyed: usize,
    /// Characters that were replaced, which shows that there were any.
    replaced: usize,
}

impl Orders {
    /// Runs a command to its end.
    fn count(&mut self, sandbox: &Sandbox, words: &[&str]) {
        let ended = end(&mut sandbox.program(words));
        for output in [&ended.stdout, &ended.stderr] {
            assert_eq!(obeyed(output), 0, "{words:?}: {output:?}");
            self.obeyed += obeyed(output);
            self.replaced += output.matches('\u{fffd}').count();
        }
    }

    fn attack(&self, what: &str) {
        assert!(self.replaced > 50, "{} were replaced", self.replaced);
        attack(what, self.obeyed, 0);
    }
}

/// Makes a folder with an entry that has no end.
fn endless(sandbox: &Sandbox, folder: &str, name: &str, kind: &str) {
    sandbox.make_folder(folder);
    let path = sandbox.path(folder).join(name);
    if kind == "a FIFO" {
        mkfifo(&path, Mode::S_IRWXU).expect("a FIFO can be made");
    } else {
        symlink("/dev/zero", &path).expect("a link can be made");
    }
}

pub(crate) fn inputs_without_an_end_are_refused_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", PINGS);
    let mut waited = 0;
    for (number, kind) in ["a FIFO", "a device"].into_iter().enumerate() {
        let (file, run) = (format!("file{number}"), format!("run{number}"));
        endless(&sandbox, &file, "x.yaml", kind);
        endless(&sandbox, &run, "journal.jsonl", kind);
        let file = format!("{file}/x.yaml");
        for words in [
            &["check", &file][..],
            &["plan", &file],
            &["run", &file],
            &["lint", &file],
            &["doctor", "--lab", &file],
            &["encrypt", "--config", &file],
            &["kme", "--config", &file],
            &["check", "campaign.yaml", "--allow", &file],
            &["report", &run],
            &["export", &run, "--format", "csv"],
            &["compare", &run, &run],
            &["resume", &run],
        ] {
            let mut command = sandbox.command("timeout");
            let ended = end(command.args(["60", PROGRAM]).args(words));
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert_eq!(ended.code, Some(2), "{words:?}: {said}");
            waited += usize::from(!said.contains(kind));
            assert!(said.contains(kind), "{words:?}: {said}");
        }
    }
    attack("commands that wait for an input without an end", waited, 0);
}

pub(crate) fn a_journal_of_others_gives_a_terminal_no_orders() {
    let sandbox = Sandbox::new();
    end(&mut sandbox.program(&KAT)).exits(0);
    let run = sandbox.only_run();
    let found = journal::read(&sandbox.path("").join(&run)).expect("a journal");
    let mut header = found.header.clone();
    header.plan.title = EVIL.to_owned();
    header.plan.name.push_str(EVIL);
    header.command.push(EVIL.to_owned());
    header.program.push_str(EVIL);
    header.environment.cpu_model = EVIL.to_owned();
    header
        .environment
        .tools
        .insert(EVIL.to_owned(), EVIL.to_owned());
    for cell in &mut header.plan.cells {
        cell.id.push_str(EVIL);
        cell.group.push_str(EVIL);
        cell.dut.name.push_str(EVIL);
    }
    let records = found.trials.iter().cloned().map(|mut trial| {
        trial.cell.push_str(EVIL);
        trial.commands.push(vec![EVIL.to_owned()]);
        trial.outcome = Outcome::Failed {
            reason: EVIL.to_owned(),
        };
        Record::Trial(Box::new(trial))
    });
    let bytes = journal::to_bytes(&header, &records.collect::<Vec<_>>());
    let write = |name: &str, bytes: &[u8]| {
        sandbox.make_folder(name);
        fs::write(sandbox.path(name).join("journal.jsonl"), bytes).expect("written");
    };
    write("evil", &bytes);
    // What the reader quotes when it refuses a line.
    let text = String::from_utf8(bytes).expect("JSON");
    let unknown = text.replacen("\"record\":\"header\"", "\"record\":\"\\u001b[2J\"", 1);
    assert_ne!(text, unknown);
    write("unknown", unknown.as_bytes());
    let named = EVIL.replace('\u{9b}', "");
    write(&named, text.as_bytes());
    let mut orders = Orders::default();
    for words in [
        &["report", "evil"][..],
        &["report", "evil", "--full"],
        &["report", "evil", "--json"],
        &["report", "unknown"],
        &["report", &named],
        &["report", &format!("not there {named}")],
        &["export", "evil", "--format", "csv"],
        &["export", "evil", "--format", "openmetrics"],
        &["export", "evil", "--format", "influx"],
        &["compare", "evil", "evil"],
        &["compare", "evil", &named, "--json"],
        &["compare", "evil", "unknown"],
        &["resume", "evil"],
        &["resume", "unknown"],
    ] {
        orders.count(&sandbox, words);
    }
    orders.attack("characters of a journal that a terminal obeys");
}

pub(crate) fn a_file_of_others_gives_a_terminal_no_orders() {
    let sandbox = Sandbox::new();
    let quoted = r"\e[2J\e[8m\x9b1m\e]0;pwned\a\rover\u202e";
    let campaign = |title: &str, name: &str| {
        format!(
            "campaign: small\ntitle: \"{title}\"\nrepeats: 1\nduts: [direct, {{ cipherbench: {{ name: \"{name}\" }} }}]\n\
             trials:\n  - ping: {{ mtu: 1500 B, count: 3, interval: 10 ms }}\n"
        )
    };
    let files = [
        ("title.yaml", campaign(quoted, "a")),
        ("name.yaml", campaign("a", quoted)),
        ("key.yaml", format!("campaign: small\n\"{quoted}\": 1\n")),
        (
            "value.yaml",
            format!("campaign: small\nrepeats: \"{quoted}\"\n"),
        ),
        ("raw.yaml", format!("campaign: small\nrepeats: {EVIL}\n")),
        ("lab.yaml", format!("lab: \"{quoted}\"\nkind: namespaces\n")),
        ("unknown.yaml", format!("lab: a\nkind: \"{quoted}\"\n")),
        (
            "table.csv",
            format!("# title: {EVIL}\nframe {EVIL},rate\n{EVIL},1 Gbit/s\n"),
        ),
    ];
    let mut orders = Orders::default();
    for (name, text) in files {
        sandbox.write(name, &text);
        for words in [
            &["check", name][..],
            &["plan", name],
            &["plan", name, "--json"],
            &["lint", name],
            &["run", name, "--lab", "memory"],
            &["doctor", "--lab", name],
            &["encrypt", "--config", name],
            &["kme", "--config", name],
            &["kat", "--device", EVIL],
            &["speed", "--engine", EVIL],
            &["compare", EVIL, EVIL],
        ] {
            orders.count(&sandbox, words);
        }
    }
    orders.attack("characters of a user's file that a terminal obeys");
}

/// A folder of another user with programs that leave a mark; `None` where this user cannot make it.
fn programs_of_another(sandbox: &Sandbox, folder: &str) -> Option<PathBuf> {
    const OTHER: u32 = 65_533;
    let mark = sandbox.path("mark");
    let script = format!("#!/bin/sh\necho \"$0\" >>{}\n", mark.display());
    let folder = sandbox.path(folder);
    fs::create_dir_all(&folder).expect("a new folder");
    for name in ["gotatun", "ip", "ethtool", "iperf3"] {
        let path = folder.join(name);
        fs::write(&path, &script).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("our own file");
    }
    let (user, group) = (Uid::from_raw(OTHER), Gid::from_raw(OTHER));
    let is_given = geteuid().is_root() && chown(&folder, Some(user), Some(group)).is_ok();
    is_given.then_some(folder)
}

pub(crate) fn root_runs_no_program_of_another_user() {
    const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
    let sandbox = Sandbox::new();
    let in_path = programs_of_another(&sandbox, "bin");
    let of_caller = programs_of_another(&sandbox, "home/.cache/cipherbench-peers/bin");
    let (Some(in_path), Some(of_caller)) = (in_path, of_caller) else {
        eprintln!("SKIPPED: only root can give a folder to another user");
        return;
    };
    let doctor = |path: &str, home: &str| {
        let mut doctor = sandbox.program(&["doctor"]);
        doctor.env("PATH", path).env("HOME", sandbox.path(home));
        for variable in ["PEERS", "GOTATUN", "SUDO_USER"] {
            doctor.env_remove(variable);
        }
        doctor
    };
    let path = format!("{}:{PATH}", in_path.display());
    let mut run = 0;
    for (path, home, folder) in [
        (path.as_str(), "none", &in_path),
        (PATH, "home", &of_caller),
    ] {
        let ended = end(&mut doctor(path, home));
        let program = folder.join("gotatun");
        let refused = format!("{} is not run as root", program.display());
        assert!(ended.stdout.contains(&refused), "{}", ended.stdout);
        assert!(ended.stdout.contains("sudo make peers"), "{}", ended.stdout);
        let mark = fs::read_to_string(sandbox.path("mark")).unwrap_or_default();
        run += mark.lines().count();
    }
    attack("programs of another user that root runs", run, 0);

    // Root may choose one by its variable.
    let ended = end(doctor(PATH, "home").env("GOTATUN", of_caller.join("gotatun")));
    assert!(
        !ended.stdout.contains("is not run as root"),
        "{}",
        ended.stdout
    );
    assert!(
        sandbox.path("mark").exists(),
        "it was asked for its version"
    );
}
