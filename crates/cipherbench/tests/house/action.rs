//! The GitHub action: its script, run with a program that only plays Cipherbench, and its inputs.

use crate::{read, root};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Plays `run`, `resume` and `compare`: notes its arguments in `calls`, and ends with the exit
/// codes in the files `run`, `resume`, `compare` and `control`, or with 0.
const STUB: &str = r#"#!/bin/sh
here=$(dirname "$0")
code() { cat "$here/$1" 2>/dev/null || echo 0; }
echo "$*" >>"$here/calls"
case $1 in
run)
    mkdir -p "$4/the-run"
    echo {} >"$4/the-run/journal.jsonl"
    exit "$(code run)"
    ;;
resume) exit "$(code resume)" ;;
compare)
    for last; do
        case ${previous:-} in --markdown) echo '# Compared' >"$last" ;; esac
        previous=$last
    done
    case $3 in */control/*) exit "$(code control)" ;; esac
    exit "$(code compare)"
    ;;
esac
"#;

struct Outcome {
    code: Option<i32>,
    /// The command lines with which the program was called, without `--version`.
    calls: Vec<String>,
    outputs: String,
    summary: String,
}

/// Runs the script with settings; `codes` are exit codes of the stub.
fn action(settings: &[(&str, &str)], codes: &[(&str, i32)]) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("stub"), STUB).expect("written");
    fs::set_permissions(at("stub"), fs::Permissions::from_mode(0o755)).expect("executable");
    for (name, code) in codes {
        fs::write(at(name), code.to_string()).expect("written");
    }
    let output = Command::new(root().join("scripts/action.sh"))
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("PROGRAM", at("stub"))
        .env("GITHUB_OUTPUT", at("outputs"))
        .env("GITHUB_STEP_SUMMARY", at("summary"))
        .envs(settings.iter().copied())
        .output()
        .expect("the script runs");
    let text = |name: &str| fs::read_to_string(at(name)).unwrap_or_default();
    let calls = text("calls");
    let calls = calls.lines().filter(|call| *call != "--version");
    Outcome {
        code: output.status.code(),
        calls: calls.map(str::to_owned).collect(),
        outputs: text("outputs"),
        summary: text("summary"),
    }
}

#[test]
fn both_builds_are_measured_and_every_gate_is_passed_on() {
    let settings = [
        ("CAMPAIGN", "a file.yaml"),
        ("LAB", "memory"),
        ("REPEATS", "3"),
        (
            "GATES",
            "tcp throughput drops > 5 %\n\n  mrr p99 rises > 10 %\n",
        ),
        ("RUNS", "out"),
    ];
    let passed = action(&settings, &[]);
    assert_eq!(passed.code, Some(0));
    assert_eq!(
        passed.calls,
        [
            "run a file.yaml --out out/base --quiet --lab memory --repeats 3",
            "run a file.yaml --out out/head --quiet --lab memory --repeats 3",
            "compare out/base/the-run out/head/the-run --markdown out/comparison.md \
             --junit out/gates.xml --gate tcp throughput drops > 5 % --gate mrr p99 rises > 10 %",
        ]
    );
    assert!(passed.outputs.contains("outcome=passed\n"));
    assert!(passed.summary.contains("# Compared"));
}

#[test]
fn the_exit_code_is_the_result_of_the_gates() {
    let of = |settings: &[(&str, &str)], codes: &[(&str, i32)]| {
        let outcome = action(settings, codes);
        let outputs = outcome.outputs.lines();
        let mut words = outputs.filter_map(|line| line.strip_prefix("outcome="));
        (outcome.code, words.next().unwrap_or_default().to_owned())
    };
    let undecided_passes = [("UNDECIDED", "pass")];
    assert_eq!(of(&[], &[("compare", 1)]), (Some(1), "violated".into()));
    assert_eq!(of(&[], &[("compare", 5)]), (Some(5), "undecided".into()));
    assert_eq!(
        of(&undecided_passes, &[("compare", 5)]),
        (Some(0), "undecided".into())
    );
    assert_eq!(
        of(&undecided_passes, &[("compare", 1)]),
        (Some(1), "violated".into())
    );
    // A lab that cannot be built is no result, however undecided gates are treated.
    assert_eq!(
        of(&undecided_passes, &[("run", 3)]),
        (Some(3), "failed".into())
    );
    // What the gates say does not count if they do not pass between two runs of the base.
    let controlled = [("CONTROL", "true")];
    for compare in [0, 1] {
        let codes = [("compare", compare), ("control", 1)];
        assert_eq!(of(&controlled, &codes), (Some(5), "undecided".into()));
    }
    assert_eq!(of(&controlled, &[]), (Some(0), "passed".into()));
}

#[test]
fn invalid_trials_are_repeated_as_often_as_asked() {
    let resumed = |retries: &str| {
        let outcome = action(&[("RETRIES", retries)], &[("run", 1), ("resume", 1)]);
        assert_eq!(outcome.code, Some(0), "the gates decide");
        let resumes = outcome.calls.iter();
        resumes
            .filter(|call| call.starts_with("resume cipherbench-runs/base/the-run --invalid"))
            .count()
    };
    assert_eq!([resumed("0"), resumed("1"), resumed("3")], [0, 1, 3]);
}

#[test]
fn commands_put_each_build_in_place() {
    let setup = "echo setup $CIPHERBENCH_SIDE >>calls";
    let settings = [("BASE_SETUP", setup), ("HEAD_SETUP", setup)];
    let calls = action(&settings, &[]).calls;
    let first = |call: &String| call.split(" --").next().expect("a part").to_owned();
    assert_eq!(
        calls.iter().take(4).map(first).collect::<Vec<_>>(),
        ["setup base", "run gate", "setup head", "run gate"]
    );
    let failed = action(&[("HEAD_SETUP", "exit 7")], &[]);
    assert_eq!((failed.code, failed.calls.len()), (Some(2), 1));
}

#[test]
fn runs_of_another_comparison_are_never_reused() {
    let outcome = action(&[("RUNS", ".")], &[]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.calls.is_empty());
}

/// The names in the table of inputs are those of the action, and all reach the script.
#[test]
fn the_actions_inputs_are_documented_and_passed_to_the_script() {
    let action = read(Path::new("action.yml"));
    let script = read(Path::new("scripts/action.sh"));
    let guide = read(Path::new("docs/how-to/gate-in-ci.md"));
    let block = |from: &str, to: &str| {
        let rest = action.split_once(from).expect(from).1;
        rest.split_once(to).expect(to).0.to_owned()
    };
    let inputs: BTreeSet<_> = block("\ninputs:\n", "\noutputs:\n")
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'))
        .filter(|name| !name.starts_with(' '))
        .map(str::to_owned)
        .collect();
    assert!(inputs.len() > 10, "{inputs:?}");
    for name in &inputs {
        let variable = name.replace('-', "_").to_uppercase();
        assert!(
            action.contains(&format!("{variable}: ${{{{ inputs.{name}")),
            "{name} does not reach the script"
        );
        assert!(
            script.contains(&format!("\n#   {variable} ")),
            "{variable} is not described"
        );
        assert!(
            guide.contains(&format!("`{name}`")),
            "{name} is not documented"
        );
    }
}
