//! Rules of the project that the compiler does not check.

mod action;
mod circles;
mod documents;
mod english;
mod vectors;
mod warnings;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that may contain `unsafe`: foreign engines, SIMD, libcrypto, I/O system calls, namespace
/// system calls.
const UNSAFE_CRATES: [&str; 5] = ["engine", "gost", "device", "port", "lab"];
const FILE_LINES_MAX: usize = 600;
const COMMENT_COLUMNS_MAX: usize = 100;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("two folders deep")
        .to_owned()
}

/// Files of the tree as git lists them; outside a git tree (a release archive), all source files.
fn files() -> Vec<PathBuf> {
    listed_by_git(&["--cached", "--others", "--exclude-standard"]).unwrap_or_else(files_without_git)
}

fn listed_by_git(which: &[&str]) -> Option<Vec<PathBuf>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .args(which)
        .current_dir(root())
        .output();
    let output = listed.ok().filter(|output| output.status.success())?;
    let paths = String::from_utf8(output.stdout).expect("paths are UTF-8");
    let paths = paths.split_terminator('\0').map(PathBuf::from);
    Some(paths.filter(|path| root().join(path).exists()).collect())
}

/// Folders with sources, without the files beside them.
const FOLDERS: [&str; 14] = [
    ".ci",
    ".github",
    "bench",
    "campaigns",
    "crates",
    "deploy",
    "docs",
    "fuzz",
    "labs",
    "packaging",
    "python",
    "reference",
    "scripts",
    "vectors",
];

fn files_without_git() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        walk(&root().join(folder), &mut found);
    }
    for entry in std::fs::read_dir(root()).expect("the root") {
        let entry = entry.expect("a readable entry");
        if entry.path().is_file() {
            found.push(PathBuf::from(entry.file_name()));
        }
    }
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the tree") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(
                path.strip_prefix(root())
                    .expect("below the root")
                    .to_owned(),
            );
        }
    }
}

fn rust_files() -> Vec<PathBuf> {
    let found: Vec<_> = files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .collect();
    assert!(
        found.len() > 20,
        "the list of sources is implausibly short: {found:?}"
    );
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn a_release_archive_is_checked_like_a_git_tree() {
    let found: BTreeSet<_> = files_without_git().into_iter().collect();
    let missed: Vec<_> = listed_by_git(&["--cached"])
        .unwrap_or_default()
        .into_iter()
        .filter(|path| !found.contains(path))
        .collect();
    assert!(missed.is_empty(), "in no folder of {FOLDERS:?}: {missed:?}");
}

#[test]
fn no_source_file_is_too_long_to_read() {
    let too_long: Vec<_> = rust_files()
        .into_iter()
        .map(|path| (read(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .collect();
    assert!(
        too_long.is_empty(),
        "more than {FILE_LINES_MAX} lines, split by topic: {too_long:?}"
    );
}

/// Tables and code blocks in comments may be wider, since they cannot be wrapped.
#[test]
fn comments_wrap_at_100_columns() {
    let mut wide = Vec::new();
    for path in rust_files() {
        let mut is_code = false;
        for (number, line) in (1..).zip(read(&path).lines()) {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                is_code = false;
                continue;
            };
            let comment = comment.trim_start_matches(['/', '!']).trim_start();
            is_code ^= comment.starts_with("```");
            let is_table = comment.starts_with('|');
            if line.chars().count() > COMMENT_COLUMNS_MAX && !is_code && !is_table {
                wide.push(format!("{}:{number}", path.display()));
            }
        }
    }
    assert!(
        wide.is_empty(),
        "more than {COMMENT_COLUMNS_MAX} columns: {wide:#?}"
    );
}

/// Most crates have no example in their documentation, and rustdoc, which takes time for each, does
/// not look for any.
#[test]
fn every_example_in_documentation_is_run() {
    let is_passed_over = |folder: &Path| {
        let manifest = read(&folder.join("Cargo.toml"));
        manifest.contains("\ndoctest = false\n")
    };
    let folders = crates().into_iter().map(|(_, _, folder)| folder);
    let passed_over: Vec<_> = folders.filter(|folder| is_passed_over(folder)).collect();
    assert!(passed_over.len() > 20, "{passed_over:?}");
    let mut left_out = Vec::new();
    for path in rust_files() {
        let place = root().join(&path);
        if !passed_over.iter().any(|folder| place.starts_with(folder)) {
            continue;
        }
        let mut is_inside = false;
        for (number, line) in (1..).zip(read(&path).lines()) {
            let line = line.trim_start();
            let documentation = ["///", "//!"]
                .iter()
                .find_map(|mark| line.strip_prefix(mark));
            let Some(documentation) = documentation else {
                is_inside = false;
                continue;
            };
            let Some(language) = documentation.trim_start().strip_prefix("```") else {
                continue;
            };
            is_inside = !is_inside;
            // Without a language it is Rust.
            if is_inside && !["text", "sh", "console"].contains(&language) {
                left_out.push(format!("{}:{number}", path.display()));
            }
        }
    }
    assert!(
        left_out.is_empty(),
        "give these a language, or remove `doctest = false` from the manifest: {left_out:#?}"
    );
}

/// Wings of `crates/`, lowest first: a crate imports from its own wing and from those before it.
const WINGS: [&str; 8] = [
    "base", "crypto", "tunnel", "model", "station", "results", "bench", "fleet",
];

/// Every crate with its wing, name and folder. The binary and the fuzz targets are outside the
/// wings, and may import everything.
fn crates() -> Vec<(String, String, PathBuf)> {
    let below = |folder: PathBuf| {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder:?}: {e}"));
        let mut paths: Vec<_> = entries
            .map(|entry| entry.expect("a readable entry").path())
            .filter(|path| path.is_dir())
            .collect();
        paths.sort();
        paths
    };
    let name = |path: &Path| {
        let name = path.file_name().expect("a name");
        name.to_string_lossy().into_owned()
    };
    let mut found = Vec::new();
    for folder in below(root().join("crates")) {
        let wing = name(&folder);
        if folder.join("Cargo.toml").exists() {
            found.push((String::new(), wing, folder));
        } else {
            let crates = below(folder);
            found.extend(
                crates
                    .into_iter()
                    .map(|path| (wing.clone(), name(&path), path)),
            );
        }
    }
    assert!(
        found.len() > 20,
        "the list of crates is too short: {found:?}"
    );
    found
}

/// The keys of the tables of a manifest that are named in `tables`.
fn dependencies(manifest: &Path, tables: &[&str]) -> Vec<String> {
    let text = read(manifest);
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            inside = tables.contains(&line);
        } else if inside && let Some((key, _)) = line.split_once(['.', ' ', '=']) {
            found.push(key.to_owned());
        }
    }
    found
}

#[test]
fn no_wing_imports_from_a_wing_above_it() {
    let crates = crates();
    let floor = |wing: &str| WINGS.iter().position(|known| *known == wing);
    for (wing, name, folder) in &crates {
        let Some(own) = floor(wing) else {
            assert!(
                wing.is_empty(),
                "`crates/{wing}` is no wing: {WINGS:?}, see ARCHITECTURE.md"
            );
            continue;
        };
        // Tests may import from higher wings: a device of the lab is tested with the encryptor that
        // it runs.
        for import in dependencies(&folder.join("Cargo.toml"), &["[dependencies]"]) {
            let Some((above, _, _)) = crates.iter().find(|(_, known, _)| *known == import) else {
                continue;
            };
            assert!(
                floor(above).is_some_and(|floor| floor <= own),
                "`{wing}/{name}` imports `{above}/{import}`, which is above it in {WINGS:?}"
            );
        }
    }
}

/// Crates that a laptop builds to read reports: no C compiler, no access to the host's hardware.
const PURE: [&str; 5] = ["plan", "campaign", "journal", "stats", "report"];

#[test]
fn the_pure_crates_build_without_a_c_compiler() {
    let foreign = |name: &str| {
        let builds_c = ["cc", "cmake", "bindgen", "aws-lc-rs", "nix", "libc"].contains(&name);
        let probes = [
            "engine",
            "gost",
            "dispatch",
            "device",
            "port",
            "lab",
            "encryptor",
        ]
        .into_iter()
        .any(|ours| name.strip_prefix("cipherbench-") == Some(ours));
        builds_c || probes || name.ends_with("-sys")
    };
    for name in PURE {
        let wrong: Vec<_> = needed_by(name)
            .into_iter()
            .filter(|it| foreign(it))
            .collect();
        assert!(wrong.is_empty(), "{name} needs {wrong:?}");
    }
}

/// Trials measure through crate `testbed`, so that tests need no lab, and a change of a lab or of
/// the encryptor does not rebuild them.
#[test]
fn trials_build_without_labs_encryptors_and_devices() {
    let needed = needed_by("trial");
    for name in [
        "lab",
        "memory-lab",
        "encryptor",
        "esp",
        "engine",
        "device",
        "yaml",
    ] {
        assert!(
            !needed.contains(&format!("cipherbench-{name}")),
            "trial needs {name}"
        );
    }
}

/// OpenSSL is loaded at run time: a program that links it does not start on a system without it.
#[test]
fn the_program_links_no_openssl() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("there is one");
    assert!(!lock.contains("name = \"openssl-sys\""));
}

/// The packages that a crate of ours needs to build, without its tests.
fn needed_by(name: &str) -> BTreeSet<String> {
    let package = format!("cipherbench-{name}");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p}", "--package", &package])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains(&package),
        "cargo tree: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn modules_with_children_are_files_beside_their_folder() {
    let wrong: Vec<_> = rust_files()
        .into_iter()
        .filter(|path| path.ends_with("mod.rs") && path.iter().any(|part| part == "src"))
        .collect();
    assert!(
        wrong.is_empty(),
        "write `name.rs` beside `name/` instead of `name/mod.rs`: {wrong:?}"
    );
}

#[test]
fn only_a_few_crates_may_hold_unsafe_code() {
    for (_, name, folder) in crates() {
        let source = folder.join("src");
        let entry = ["lib.rs", "main.rs"]
            .into_iter()
            .map(|file| source.join(file))
            .find(|path| path.exists())
            .unwrap_or_else(|| panic!("crate {name} has no lib.rs or main.rs"));
        let forbids = read(&entry)
            .lines()
            .any(|line| line == "#![forbid(unsafe_code)]");
        assert_eq!(
            forbids,
            !UNSAFE_CRATES.contains(&name.as_str()),
            "{}: `#![forbid(unsafe_code)]` is required in every crate except {UNSAFE_CRATES:?}",
            entry.display()
        );
    }
}

#[test]
fn no_build_output_capture_or_run_is_committed() {
    for path in files() {
        let text = path.to_string_lossy();
        let first = text.split('/').next().unwrap_or_default();
        assert!(
            !["target", "runs"].contains(&first),
            "{text} is output, not source"
        );
        for end in [
            ".o", ".a", ".so", ".rlib", ".pcap", ".profraw", ".orig", ".rej", ".swp",
        ] {
            assert!(!text.ends_with(end), "{text} is output, not source");
        }
    }
}

#[test]
fn no_document_has_a_dead_link() {
    let mut dead = Vec::new();
    for path in files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
    {
        let text = read(&path);
        let folder = root().join(path.parent().expect("a file is in a folder"));
        let links = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#', ' ']).next());
        let local = links.filter(|link| !link.is_empty() && !link.contains("://"));
        dead.extend(
            local
                .filter(|link| !folder.join(link).exists())
                .map(|link| (path.clone(), link.to_owned())),
        );
    }
    assert!(dead.is_empty(), "dead links: {dead:?}");
}
