//! The shipped campaigns and labs, and the recorded runs.

use crate::support::{Ended, PROGRAM, Sandbox, end};
use crate::texts::assert_golden;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A journal of format 1, whose lines have no checksums: TCP and ping, two devices, one repeat.
fn journal(started_unix_ns: u64) -> String {
    let path = "../model/journal/tests/fixture/format-1.jsonl";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    let text = text.expect("the journal");
    let started = "\"started_unix_ns\":1795177579585560497";
    text.replacen(
        started,
        &format!("\"started_unix_ns\":{started_unix_ns}"),
        1,
    )
}

/// 2026-11-20T11:30:00Z, and the days before it.
const fn days_before(days: u64) -> u64 {
    (1_795_174_200 - days * 86_400) * 1_000_000_000
}

/// Makes a run, whose journal was changed an hour ago.
fn place(sandbox: &Sandbox, name: &str, journal: &str) {
    fs::create_dir_all(sandbox.path(name)).expect("a folder");
    let file = format!("{name}/journal.jsonl");
    sandbox.write(&file, journal);
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    let file = File::options().append(true).open(sandbox.path(&file));
    file.and_then(|file| file.set_modified(hour_ago))
        .expect("our own file");
}

/// A run in each state, a folder that is no run, and a link to a run elsewhere. The returned lock
/// is that of the running one.
fn runs(sandbox: &Sandbox) -> File {
    let whole = |days| journal(days_before(days));
    let lines =
        |days, count: usize| -> String { whole(days).split_inclusive('\n').take(count).collect() };
    place(sandbox, "runs/20261120T113000Z-quick", &whole(0));
    sandbox.write(
        "runs/20261120T113000Z-quick/report.md",
        "# Quick\n\n2026\n\nAll 4 trials were measured.\n\ncipherbench carries 42.3 % (mtu=9000, cores=2) to \
         49.2 % (mtu=1500, cores=1) of the TCP payload of direct (the same path without an encryptor). Limit: the \
         device. Certainty: one repeat. Fit to print: no.\n",
    );
    // Killed within a line: of four trials three are recorded.
    let cut = lines(1, 5);
    place(
        sandbox,
        "runs/20261119T113000Z-quick",
        &cut[..cut.len() - 9],
    );
    place(sandbox, "runs/20261118T113000Z-quick", &lines(2, 2));
    place(
        sandbox,
        "runs/20261117T113000Z-a-campaign-of-a-long-name",
        &whole(3),
    );
    place(sandbox, "runs/20261116T113000Z-quick", "{}\n");
    fs::create_dir(sandbox.path("runs/notes")).expect("a folder");
    sandbox.write("runs/notes/report.md", "mine");
    place(sandbox, "elsewhere", &whole(9));
    symlink(
        sandbox.path("elsewhere"),
        sandbox.path("runs/20261111T113000Z-link"),
    )
    .expect("a link");
    let running = sandbox.path("runs/20261118T113000Z-quick/journal.jsonl");
    let running = File::open(running).expect("the journal");
    running.lock().expect("nobody else has it");
    running
}

/// The output on a terminal of so many columns.
fn on_terminal(sandbox: &Sandbox, columns: usize, words: &str) -> String {
    let words = format!("stty rows 24 cols {columns}; {PROGRAM} {words}");
    let arguments = ["--quiet", "--return", "--command", &words, "/dev/null"];
    let ended = end(sandbox.command("script").args(arguments)).exits(0);
    ended.stdout.replace('\r', "")
}

fn cipherbench(sandbox: &Sandbox, words: &[&str]) -> Ended {
    end(&mut sandbox.program(words))
}

pub(crate) fn runs_are_listed_in_every_width() {
    let sandbox = Sandbox::new();
    let ended = cipherbench(&sandbox, &["runs"]).exits(0);
    assert_eq!(ended.stdout, "no runs in runs\n");
    let _running = runs(&sandbox);
    for columns in [40, 60, 80, 120] {
        let text = on_terminal(&sandbox, columns, "runs");
        assert_golden(&format!("runs-{columns}.txt"), &text);
        for line in text.lines() {
            let is_name = line.starts_with("20261117");
            assert!(line.chars().count() <= columns || is_name, "{line}");
        }
    }
    let ended = cipherbench(&sandbox, &["runs", "--json"]).exits(0);
    let found: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let runs = found["runs"].as_array().expect("a list");
    let states: Vec<_> = runs.iter().map(|run| run["state"].as_str()).collect();
    let expected = ["finished", "interrupted", "running", "finished", "damaged"];
    assert_eq!(states, expected.map(Some));
    assert_eq!(
        (&runs[1]["trials"], &runs[1]["planned"]),
        (&3.into(), &4.into())
    );
    assert_eq!(runs[0]["started_utc"], "2026-11-20T11:30:00Z");
    assert_eq!(runs[0]["path"], "runs/20261120T113000Z-quick");
    assert_eq!(runs[4]["started_utc"], serde_json::Value::Null);
    cipherbench(&sandbox, &["runs", "prun"])
        .exits(2)
        .says("did you mean `cipherbench runs prune`?");
    cipherbench(&sandbox, &["runs", "nowhere"])
        .exits(2)
        .says("cannot read the folder of runs");
}

pub(crate) fn old_runs_are_deleted_and_nothing_else() {
    let sandbox = Sandbox::new();
    let running = runs(&sandbox);
    // Links out of the folder, within a run that is deleted.
    let oldest = "runs/20261117T113000Z-a-campaign-of-a-long-name";
    fs::create_dir(sandbox.path(&format!("{oldest}/captures"))).expect("a folder");
    for name in ["captures/link", "link"] {
        let link = sandbox.path(&format!("{oldest}/{name}"));
        symlink(sandbox.path("elsewhere"), link).expect("a link");
    }
    let names = || {
        let entries = fs::read_dir(sandbox.path("runs")).expect("runs");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.into_string().expect("a plain name"))
            .collect();
        names.sort();
        names
    };
    let before = names();
    cipherbench(&sandbox, &["runs", "prune"])
        .exits(2)
        .says("--older-than");
    let ended = cipherbench(&sandbox, &["runs", "prune", "--keep", "1"]).exits(2);
    assert!(
        ended.stdout.contains("20261119T113000Z-quick"),
        "{}",
        ended.stdout
    );
    ended.says("`--yes` deletes the listed runs");
    let asked = |answer: &str| {
        let words = format!(
            "echo {answer} | script --quiet --return --command '{PROGRAM} runs prune --keep 1' /dev/null"
        );
        end(sandbox.command("sh").args(["-c", &words]))
            .exits(0)
            .stdout
    };
    let refused = asked("n");
    assert!(
        refused.contains("2 runs, ") && refused.contains("[y/N]"),
        "{refused}"
    );
    assert_eq!(names(), before);
    // These runs are from 2026, and the machine's clock may be earlier: they have no age then.
    let words = ["runs", "prune", "--older-than", "500000d", "--yes"];
    let ended = cipherbench(&sandbox, &words).exits(0);
    assert_eq!(ended.stdout, "no run in runs is to be deleted\n");
    // What has just ended is still being written.
    let file = File::options()
        .append(true)
        .open(sandbox.path(&format!("{oldest}/journal.jsonl")));
    let file = file.expect("the journal");
    file.set_modified(SystemTime::now()).expect("our own file");
    asked("y");
    file.set_modified(SystemTime::now() - Duration::from_secs(3600))
        .expect("our own file");
    let left: Vec<String> = before
        .iter()
        .filter(|name| !name.starts_with("20261119"))
        .cloned()
        .collect();
    assert_eq!(names(), left);
    cipherbench(&sandbox, &["runs", "prune", "--keep", "0", "--yes"]).exits(0);
    let left = [
        "20261111T113000Z-link",
        "20261116T113000Z-quick",
        "20261118T113000Z-quick",
        "notes",
    ];
    assert_eq!(names(), left);
    assert!(sandbox.path("elsewhere/journal.jsonl").exists());
    assert!(sandbox.path("runs/notes/report.md").exists());
    drop(running);
    cipherbench(&sandbox, &["runs", "prune", "runs", "--keep", "0", "-y"]).exits(0);
    assert!(!sandbox.path("runs/20261118T113000Z-quick").exists());
}

pub(crate) fn a_report_is_opened_or_its_address_printed() {
    let sandbox = Sandbox::new();
    let _running = runs(&sandbox);
    let name = "20261120T113000Z-quick";
    let without_desktop = |words: &[&str]| {
        let mut command = sandbox.program(words);
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        end(&mut command)
    };
    without_desktop(&["runs", "open", name])
        .exits(2)
        .says("cipherbench report runs/20261120T113000Z-quick");
    sandbox.write(&format!("runs/{name}/report.html"), "<!doctype html>");
    let ended = without_desktop(&["runs", "open", name]).exits(0);
    let path = sandbox.path(&format!("runs/{name}/report.html"));
    let path = path.canonicalize().expect("it is there");
    assert_eq!(ended.stdout, format!("file://{}\n", path.display()));
    without_desktop(&["runs", "open", "20261120T113000Z-quik"])
        .exits(2)
        .says("did you mean `runs/20261120T113000Z-quick`?");

    sandbox.make_folder("bin");
    sandbox.write(
        "bin/xdg-open",
        "#!/bin/sh\necho \"$@\" > opened.part\nmv opened.part opened\n",
    );
    let program = sandbox.path("bin/xdg-open");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("our own file");
    let mut command = sandbox.program(&["runs", "open", &format!("runs/{name}")]);
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", sandbox.path("bin").display());
    let opened = end(command.env("PATH", path).env("DISPLAY", ":0")).exits(0);
    let found = crate::support::wait_for("the browser", || {
        fs::read_to_string(sandbox.path("opened")).ok()
    });
    assert_eq!(found, opened.stdout);
}

pub(crate) fn five_hundred_runs_are_listed_within_seconds() {
    let sandbox = Sandbox::new();
    let text = journal(days_before(0));
    for number in 0..500 {
        let name = format!("runs/20261120T113000Z-quick-{number}");
        fs::create_dir_all(sandbox.path(&name)).expect("a folder");
        fs::write(sandbox.path(&name).join("journal.jsonl"), &text).expect("written");
    }
    let began = std::time::Instant::now();
    let ended = cipherbench(&sandbox, &["runs"]).exits(0);
    // It takes some tens of milliseconds; other tests may keep the machine busy.
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(ended.stdout.matches("finished").count(), 500);
}

pub(crate) fn examples_are_listed_printed_and_written() {
    let sandbox = Sandbox::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shipped = |file: &str| fs::read_to_string(root.join(file)).expect("a shipped file");
    // Times change with the estimates; names and sentences do not.
    let list = cipherbench(&sandbox, &["examples"]).exits(0).stdout;
    for folder in ["campaigns", "labs"] {
        for entry in fs::read_dir(root.join(folder)).expect("shipped files") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let start = format!("{} ", name.expect("a plain name"));
            assert!(
                list.lines().any(|line| line.starts_with(&start)),
                "{start}\n{list}"
            );
        }
    }
    let unbroken: Vec<&str> = list.split_whitespace().collect();
    assert!(unbroken.join(" ").contains("`--lab weather`"), "{list}");
    let ended = cipherbench(&sandbox, &["examples", "weather"]).exits(0);
    assert_eq!(ended.stdout, shipped("campaigns/weather.yaml"));
    ended.says("the lab of that name is `labs/weather`");
    let ended = cipherbench(&sandbox, &["examples", "labs/weather"]).exits(0);
    assert_eq!(ended.stdout, shipped("labs/weather.yaml"));
    cipherbench(&sandbox, &["examples", "wether"])
        .exits(2)
        .says("did you mean `weather`? `cipherbench examples` lists them");

    let write = ["examples", "suites", "--write"];
    let ended = cipherbench(&sandbox, &write).exits(0);
    assert!(
        ended.stdout.contains("cipherbench plan suites.yaml"),
        "{}",
        ended.stdout
    );
    let written = || fs::read_to_string(sandbox.path("suites.yaml")).expect("written");
    assert_eq!(written(), shipped("campaigns/suites.yaml"));
    sandbox.write("suites.yaml", "mine");
    cipherbench(&sandbox, &write)
        .exits(2)
        .says("suites.yaml exists already\nhelp: ");
    assert_eq!(written(), "mine");
    cipherbench(&sandbox, &[&write[..], &["--force"]].concat()).exits(0);
    assert_eq!(written(), shipped("campaigns/suites.yaml"));
    cipherbench(&sandbox, &["examples", "switch", "--write", "mine.yaml"]).exits(0);
    let written = fs::read_to_string(sandbox.path("mine.yaml"));
    assert_eq!(written.expect("written"), shipped("labs/switch.yaml"));
}

pub(crate) fn shipped_names_are_files_everywhere() {
    let sandbox = Sandbox::new();
    let ended = cipherbench(&sandbox, &["plan", "soak"]).exits(0);
    assert!(ended.stdout.contains("soak"), "{}", ended.stdout);
    cipherbench(&sandbox, &["plan", "soak", "--lab", "switch"]).exits(0);
    let ended = cipherbench(&sandbox, &["check", "gate"]).exits(0);
    assert!(
        ended.stdout.starts_with("ok  gate  campaign gate: "),
        "{}",
        ended.stdout
    );
    let ended = cipherbench(&sandbox, &["check", "bump"]).exits(0);
    assert!(
        ended.stdout.starts_with("ok  bump  lab bump"),
        "{}",
        ended.stdout
    );
    // A file of the name has precedence.
    sandbox.write(
        "soak",
        "campaign: mine\nduts: [direct]\ntrials: [ping: { mtu: 1500 B }]\n",
    );
    let ended = cipherbench(&sandbox, &["check", "soak"]).exits(0);
    assert!(ended.stdout.contains("campaign mine"), "{}", ended.stdout);
}

pub(crate) fn a_mistyped_word_suggests_the_nearest() {
    let sandbox = Sandbox::new();
    let _running = runs(&sandbox);
    sandbox.make_folder("campaigns");
    sandbox.write("campaigns/night.yaml", "campaign: night\n");
    sandbox.write("day.yml", "campaign: day\n");
    let run = "runs/20261120T113000Z-quick";
    let other = "runs/20261117T113000Z-a-campaign-of-a-long-name";
    for (words, said) in [
        (&["exampels"][..], "'examples'"),
        (&["run", "--quik"], "'--quick'"),
        (&["runs", "--jsno"], "'--json'"),
        (&["schema", "campain"], "'campaign'"),
        (
            &["run", "soka"],
            "did you mean `soak`? `cipherbench examples` lists",
        ),
        (&["check", "swich"], "did you mean `switch`?"),
        (
            &["run", "soka.yaml"],
            "there is no file soka.yaml\nhelp: did you mean `soak`?",
        ),
        (&["plan", "nihgt"], "did you mean `campaigns/night.yaml`?"),
        (
            &["plan", "nihgt.yaml"],
            "did you mean `campaigns/night.yaml`?",
        ),
        (
            &["check", "campaigns/nigth.yaml"],
            "did you mean `campaigns/night.yaml`?",
        ),
        (&["check", "dya.yml"], "did you mean `day.yml`?"),
        (&["plan", "day"], "did you mean `day.yml`?"),
        (&["plan", "--lab", "swich"], "did you mean `switch`?"),
        (
            &["report", "20261120T113000Z-quikc"],
            "did you mean `runs/20261120T113000Z-quick`?",
        ),
        (
            &["resume", "runs/20261117T113000Z"],
            "did you mean `runs/20261117T113000Z-a-campaign",
        ),
        (
            &["export", "quick", "--format", "csv"],
            "did you mean `runs/20261120T113000Z-quick`?",
        ),
        (&["speed", "--engine", "aws-cl"], "did you mean `aws-lc`?"),
        (
            &["speed", "--suite", "aes-256-gmc"],
            "did you mean `aes-256-gcm`?",
        ),
        (
            &["compare", run, other, "--match", "direct=cipherbenhc"],
            "did you mean `cipherbench`?",
        ),
    ] {
        cipherbench(&sandbox, words).exits(2).says(said);
    }
    let gate = "dut=cipherbenc throughput drops > 50 %";
    let ended = cipherbench(&sandbox, &["compare", run, other, "--gate", gate]).exits(5);
    assert!(
        ended
            .stdout
            .contains("try `dut=cipherbench throughput drops > 50 %`"),
        "{}",
        ended.stdout
    );
}
