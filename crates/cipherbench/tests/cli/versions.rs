//! Programs that a campaign names: built, measured side by side, recorded, and refused if they are
//! not what the run began with.

use crate::support::{Ended, PROGRAM, Sandbox, end, finish, kill, read_line, start, wait_for};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Writes a program that is this one under another name.
fn wrapper(sandbox: &Sandbox, name: &str) {
    script(sandbox, name, &format!("exec {PROGRAM} \"$@\""));
}

fn script(sandbox: &Sandbox, name: &str, line: &str) {
    sandbox.write(name, &format!("#!/bin/sh\n{line}\n"));
    let path = sandbox.path(name);
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("our own file");
}

/// A campaign of one ping through a DUT with these keys.
fn campaign(keys: &str, repeats: u32) -> String {
    format!(
        "campaign: versions\nrepeats: {repeats}\nduts:\n  - cipherbench:\n{keys}\
         trials:\n  - ping: {{ mtu: 1400 B, count: 60, interval: 10 ms }}\n"
    )
}

fn run(sandbox: &Sandbox, campaign: &str) -> Command {
    let mut command = sandbox.run(campaign);
    command.env("XDG_CACHE_HOME", sandbox.path("cache"));
    command
}

/// The cells of the only run's plan.
fn cells(sandbox: &Sandbox) -> Vec<Value> {
    let journal = String::from_utf8(sandbox.run_file("journal.jsonl")).expect("UTF-8");
    let header: Value = serde_json::from_str(journal.lines().next().expect("a header")).unwrap();
    header["plan"]["cells"].as_array().expect("cells").clone()
}

pub(crate) fn versions_are_built_once_and_measured_side_by_side() {
    let sandbox = Sandbox::new();
    sandbox.write("source", PROGRAM);
    // Both are left at one path, one after the other.
    let keys = r#"      program: { old: ./out, new: ./out }
      build:
        command: |
          echo $CIPHERBENCH_VERSION >> builds
          cat > $CIPHERBENCH_PROGRAM <<END
          #!/bin/sh
          # $CIPHERBENCH_VERSION
          echo \$NOTE >> $PWD/seen
          exec $(cat source) "\$@"
          END
          chmod +x $CIPHERBENCH_PROGRAM
        sources: source
      environment: { NOTE: passed on }
"#;
    let ended = sandbox.measures(&mut run(&sandbox, &campaign(keys, 2)));
    ended
        .says("version old: building")
        .says("version new: building");
    let cells = cells(&sandbox);
    let digests: Vec<&str> = cells
        .iter()
        .map(|cell| {
            let found = &cell["dut"]["software"]["found"];
            assert!(
                found["version"]
                    .as_str()
                    .unwrap()
                    .starts_with("cipherbench "),
                "{found}"
            );
            let path = found["path"].as_str().unwrap();
            assert!(path.contains("/cache/cipherbench/programs/"), "{path}");
            found["sha256"].as_str().unwrap()
        })
        .collect();
    assert!(
        digests.len() == 2 && digests[0] != digests[1],
        "{digests:?}"
    );
    let seen = fs::read_to_string(sandbox.path("seen")).unwrap();
    assert!(seen.lines().any(|line| line == "passed on"), "{seen}");
    let results: Value = serde_json::from_slice(&sandbox.run_file("results.json")).expect("JSON");
    let contrasts = results["contrasts"].as_array().expect("a contrast");
    let first = &contrasts[0];
    assert_eq!(first["contrast"], "versions");
    assert_eq!(first["dut"], "cipherbench new");
    assert_eq!(first["twin"], "cipherbench old");
    let report = String::from_utf8(sandbox.run_file("report.md")).expect("UTF-8");
    assert!(
        report.contains("Versions compared with the first one"),
        "{report}"
    );
    // The two are compared as two runs are, without naming them.
    let folder = sandbox.only_run();
    let words = ["compare", folder.to_str().unwrap()];
    let compared = end(&mut sandbox.program(&words)).exits(0);
    assert!(compared.stdout.contains("new"), "{}", compared.stdout);
    // Unchanged sources need no build; a changed one builds each version again.
    let builds = || fs::read_to_string(sandbox.path("builds")).unwrap();
    assert_eq!(builds(), "old\nnew\n");
    let again = |text: &str| {
        fs::remove_dir_all(sandbox.path("runs")).unwrap();
        sandbox
            .records(&mut run(&sandbox, &campaign(keys, 1)))
            .says(text)
    };
    again("version old: as built before");
    assert_eq!(builds(), "old\nnew\n");
    sandbox.write("source", &format!("{PROGRAM}\n"));
    again("version old: building");
    assert_eq!(builds(), "old\nnew\nold\nnew\n");
}

/// A version that refuses to run while a peer has another one.
fn unsociable(sandbox: &Sandbox, version: &str) {
    let peers = sandbox.path("peers");
    let peers = peers.display();
    let line = format!(
        r#"# {version}
if [ "$1" = encrypt ]; then
  for peer in {peers}/*; do
    # An ended process that nobody waited for has no command line.
    if grep -qs encrypt "/proc/${{peer##*/}}/cmdline" && [ "$(cat "$peer")" != {version} ]; then
      echo "protocol {version}, but the peer has $(cat "$peer")" >&2
      exit 1
    fi
  done
  echo {version} > {peers}/$$
fi
exec {PROGRAM} "$@""#
    );
    script(sandbox, version, &line);
}

pub(crate) fn versions_that_do_not_interoperate_are_measured_with_themselves() {
    let sandbox = Sandbox::new();
    sandbox.make_folder("peers");
    unsociable(&sandbox, "one");
    unsociable(&sandbox, "two");
    // A live process of the other version.
    let script = "echo one > peers/$$ && echo up && read -r _; rm peers/$$";
    let mut other = sandbox.command("sh");
    let mut other = start(other.args(["-c", script, "encrypt"]).stdin(Stdio::piped()));
    assert_eq!(read_line(&mut other), "up");
    let refused = end(sandbox.command("sh").args(["two", "encrypt"])).exits(1);
    refused.says("protocol two, but the peer has one");
    drop(other.stdin.take());
    finish(other).exits(0);
    let keys = "      program: { one: ./one, two: ./two }\n";
    let ended = sandbox.measures(&mut run(&sandbox, &campaign(keys, 1)));
    let words = "versions one, two of cipherbench: each is measured with itself at both ends";
    ended.says(words);
    // Both gateways start it, and both run it again to open the networks.
    let ran = fs::read_dir(sandbox.path("peers")).expect("our own folder");
    let ran = ran.map(|entry| fs::read_to_string(entry.expect("an entry").path()));
    let ran: Vec<String> = ran.collect::<Result<_, _>>().expect("UTF-8");
    let starts = ["one\n", "two\n"].map(|version| ran.iter().filter(|it| *it == version).count());
    assert_eq!(starts, [4, 4]);
}

pub(crate) fn a_program_that_changes_ends_the_run_it_belongs_to() {
    let sandbox = Sandbox::new();
    wrapper(&sandbox, "one");
    wrapper(&sandbox, "two");
    let keys = "      program: { one: ./one, two: ./two }\n";
    let ended = sandbox.records(&mut run(&sandbox, &campaign(keys, 1)));
    ended.says("versions `one` and `two` of cipherbench are the same program");
    // Without its end and its last trial the run is one to be resumed.
    let folder = sandbox.only_run();
    let path = sandbox.path("").join(&folder).join("journal.jsonl");
    let journal = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = journal.split_inclusive('\n').collect();
    fs::write(&path, lines[..lines.len() - 2].concat()).unwrap();
    let resume = || end(&mut sandbox.program(&["resume", folder.to_str().unwrap()]));
    script(&sandbox, "two", "exit 1");
    resume()
        .exits(3)
        .says("two has changed since the run began");
    fs::remove_file(sandbox.path("two")).unwrap();
    resume().exits(3).says("two cannot be read any more");
    wrapper(&sandbox, "two");
    sandbox.recorded_with(resume(), 0);
}

pub(crate) fn a_build_that_makes_no_program_is_one_clear_error() {
    for (build, words) in [
        (
            "\"echo no rule; exit 7\"",
            &["its build failed (exit status: 7)", "\n  no rule\n"][..],
        ),
        (
            "{ command: \"echo begun; sleep 600\", limit: 1 s }",
            &["its build did not end within 1 s (`limit`)", "\n  begun\n"],
        ),
        ("\"true\"", &["its build left no program at "]),
        (
            "touch out",
            &["its build left a file at ", "that cannot be executed"],
        ),
        ("mkdir out", &["its build left no file at "]),
        (
            "{ command: make, sources: [src] }",
            &["cannot read the source src", "leave `sources` out"],
        ),
    ] {
        let sandbox = Sandbox::new();
        let keys = format!("      program: {{ v1: ./out }}\n      build: {build}\n");
        let ended = end(&mut run(&sandbox, &campaign(&keys, 1))).exits(3);
        for words in words {
            assert!(ended.stderr.contains(words), "{build}: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        assert!(!sandbox.path("runs").exists(), "nothing was begun");
    }
}

pub(crate) fn an_interrupted_build_ends_with_all_that_it_started() {
    let sandbox = Sandbox::new();
    let keys = "      program: ./out\n      build: \"sleep 600 & echo $! > pid; wait\"\n";
    sandbox.write("campaign.yaml", &campaign(keys, 1));
    let mut command = sandbox.interruptible(&["run", "campaign.yaml", "--lab", "lab.yaml"]);
    command.env("XDG_CACHE_HOME", sandbox.path("cache"));
    let child = start(&mut command);
    wait_for("the build's process", || {
        let pid = fs::read_to_string(sandbox.path("pid")).ok()?;
        pid.trim().parse::<i32>().ok()
    });
    kill(child.id().cast_signed(), Signal::SIGINT);
    finish(child).exits(4);
    // The sandbox finds whatever is left of it.
}

pub(crate) fn a_missing_program_is_named_by_check_plan_and_run() {
    let sandbox = Sandbox::new();
    wrapper(&sandbox, "old");
    let text = campaign("      program: { old: ./old, new: ./new }\n", 1);
    sandbox.write("campaign.yaml", &text);
    let line = "./new  for DUT cipherbench new: 1 of 2 cells";
    let names = |ended: Ended| {
        assert!(ended.stderr.contains(line), "{}", ended.stderr);
        assert!(!ended.stderr.contains("./old"), "{}", ended.stderr);
    };
    names(end(&mut sandbox.program(&["check", "campaign.yaml"])).exits(0));
    names(end(&mut sandbox.program(&["plan", "campaign.yaml"])).exits(0));
    names(end(&mut run(&sandbox, &text)).exits(3));
    // One that is to be built is not missing.
    let built = campaign("      program: ./new\n      build: make\n", 1);
    sandbox.write("campaign.yaml", &built);
    let checked = end(&mut sandbox.program(&["check", "campaign.yaml"])).exits(0);
    assert!(!checked.stderr.contains("./new"), "{}", checked.stderr);
}

/// Revisions of wireguard-go by the years of `campaigns/versions.yaml`.
const OF_WIREGUARD_GO: [(&str, &str); 2] = [
    ("2023", "v0.0.0-20231211153847-12269c276173"),
    ("2026", "v0.0.0-20260522210424-ecfc5a8d5446"),
];

/// As `campaigns/versions.yaml` does it: Go builds both from their module.
pub(crate) fn two_versions_of_wireguard_go_are_built_from_their_module_and_compared() {
    let test = "two_versions_of_wireguard_go";
    for (program, argument, package) in [
        ("go", "version", "golang-go"),
        ("wg", "--version", "wireguard-tools"),
    ] {
        let found = Command::new(program).arg(argument).output();
        if found.is_err() {
            return testing::lacks(test, program, format!("apt install {package}"));
        }
    }
    let sandbox = Sandbox::new();
    // Fetched apart from the run, so that a machine without a way to the module is no failure.
    for (year, revision) in OF_WIREGUARD_GO {
        let module = format!("golang.zx2c4.com/wireguard@{revision}");
        let mut go = Command::new("go");
        go.env("GOBIN", sandbox.path(&format!("fetched/{year}")));
        let ended = go.args(["install", &module]).output().expect("go starts");
        if !ended.status.success() {
            let why = String::from_utf8_lossy(&ended.stderr);
            println!("SKIPPED: {test}: go cannot build {module}: {why}");
            return;
        }
    }
    let [(old, old_revision), (new, new_revision)] = OF_WIREGUARD_GO;
    let campaign = format!(
        r#"campaign: versions
repeats: 2
duts:
  - wireguard-go:
      program: {{ {old}: built/{old}/wireguard, {new}: built/{new}/wireguard }}
      build: |
        case $CIPHERBENCH_VERSION in
          {old}) revision={old_revision} ;;
          {new}) revision={new_revision} ;;
        esac
        GOBIN=$(dirname "$CIPHERBENCH_PROGRAM") go install golang.zx2c4.com/wireguard@$revision
trials:
  - ping: {{ mtu: 1400 B, count: 60, interval: 10 ms }}
"#
    );
    let ended = sandbox.measures(&mut run(&sandbox, &campaign));
    ended
        .says(&format!("version {old}: building"))
        .says(&format!("version {new}: building"));
    let results: Value = serde_json::from_slice(&sandbox.run_file("results.json")).expect("JSON");
    let first = &results["contrasts"].as_array().expect("a contrast")[0];
    assert_eq!(first["contrast"], "versions");
    assert_eq!(first["dut"], format!("wireguard-go {new}"));
    assert_eq!(first["twin"], format!("wireguard-go {old}"));
    let cells = cells(&sandbox);
    let digest = |at: usize| cells[at]["dut"]["software"]["found"]["sha256"].to_string();
    assert_ne!(digest(0), digest(1));
}
