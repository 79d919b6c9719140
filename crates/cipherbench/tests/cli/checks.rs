//! `check` of many files, and plans with cells that this host skips.

use crate::support::{Sandbox, end};
use std::fs;
use std::path::Path;

/// All shipped campaigns in all shipped labs: a line for each file, and each warning once.
pub(crate) fn many_files_have_a_line_each_and_share_their_warnings() {
    let sandbox = Sandbox::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = sandbox.program(&["check"]);
    let mut files = 0;
    for folder in ["campaigns", "labs"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder of the tree") {
            command.arg(entry.expect("a readable entry").path());
            files += 1;
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let ended = end(&mut command).exits(if cores < 2 { 2 } else { 0 });
    let good = ended.stdout.lines().count();
    assert!(
        good == files || cores < 2 && good > files - 5,
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.lines().all(|line| line.starts_with("ok  ")));
    // Programs and kernel features that this host lacks, and notes: one or two lines each.
    let lines = ended.stderr.lines().count();
    assert!(
        lines <= 60,
        "{lines} lines for {files} files:\n{}",
        ended.stderr
    );
    assert!(
        ended.stdout.contains(" of 1"),
        "labs that fit: {}",
        ended.stdout
    );
    ended.says("files: programs, cores and interfaces of a lab's hosts are not looked at");
}

pub(crate) fn many_files_with_mistakes_show_the_first_of_each() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..30).map(|at| format!("c{at}.yaml")).collect();
    for name in &names {
        let trial = "tcp: { mtu: 1500, duratoin: 10 s }";
        let text = format!("campaign: c\nrepeats: 0\nduts: [direkt]\ntrials:\n  - {trial}\n");
        sandbox.write(name, &text);
    }
    let words: Vec<&str> = std::iter::once("check")
        .chain(names.iter().map(String::as_str))
        .collect();
    let refused = end(&mut sandbox.program(&words)).exits(2);
    let lines = refused.stderr.lines().count();
    assert!(
        lines <= 9 * names.len(),
        "{lines} lines:\n{}",
        refused.stderr
    );
    refused
        .says("and 3 other mistakes in c29.yaml")
        .says("30 files: 0 without mistakes, 30 with mistakes")
        .says("`cipherbench check FILE` shows all mistakes of a file");
}

pub(crate) fn a_plan_names_the_cells_that_this_host_skips_and_gives_them_no_time() {
    let sandbox = Sandbox::new();
    let campaign = |cores: &str| {
        let text = format!(
            "campaign: c\nmissing_cores: skip\nduts: [direct]\ntrials:\n  - tcp: {{ mtu: 1500 B, cores: {cores} }}\n"
        );
        sandbox.write("c.yaml", &text);
        end(&mut sandbox.program(&["plan", "c.yaml"]))
            .exits(0)
            .stdout
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    if cores >= 128 {
        return;
    }
    let needs = format!("128 cores per station, this machine has {cores}");
    let some = campaign("[1, 128]");
    let (head, cell) = (
        format!("\nskipped: 1 cell needs {needs}\n"),
        format!("  skipped: needs {needs}  direct"),
    );
    assert!(some.contains(&head) && some.contains(&cell), "{some}");
    let all = campaign("128");
    assert!(all.contains("3 trials, nothing to measure\n"), "{all}");
    assert!(
        !some.contains(" 0 ns") && !all.contains(" 0 ns"),
        "{some}{all}"
    );
}
