//! Sets the revision that the program was built from, where git can report it.

use std::process::Command;

fn main() {
    // The revision changes with a commit, the `-dirty` mark with any source.
    println!("cargo::rerun-if-changed=..");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    println!(
        "cargo::rustc-env=CIPHERBENCH_REVISION={}",
        revision().unwrap_or_default()
    );
}

/// `a1b2c3d4`, or `a1b2c3d4-dirty` when sources differ from it; `None` outside a git tree.
fn revision() -> Option<String> {
    let commit = git(&["rev-parse", "--short=8", "HEAD"])?;
    let changes = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        "..",
        "../../Cargo.lock",
    ])?;
    Some(if changes.is_empty() {
        commit
    } else {
        format!("{commit}-dirty")
    })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
