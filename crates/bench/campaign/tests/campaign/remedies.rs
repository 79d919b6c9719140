//! Remedies of failed checks and of warnings name keys that a campaign or a lab has.

use campaign::{CAMPAIGN_KEYS, LAB_KEYS};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the texts, from the crate's own.
const FOLDERS: [&str; 3] = [
    "../trial/src/evidence",
    "../trial/src/frames/evidence",
    "../../results/stats/src/warning",
];
/// Names in back-ticks that are of the system and no keys.
const OTHERS: [&str; 1] = ["performance"];

fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = FOLDERS
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .filter(|path| path.file_name().is_some_and(|name| name != "tests.rs"))
        .collect()
}

/// The names in back-ticks in a source's texts, without those of comments and tests.
fn named(source: &str) -> Vec<&str> {
    let (code, _) = source.split_once("#[cfg(test)]").unwrap_or((source, ""));
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let parts = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_name = |part: &&str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    parts.filter(is_name).collect()
}

#[test]
fn every_key_that_a_remedy_names_is_declared() {
    let keys = [
        yaml::schema("campaign", CAMPAIGN_KEYS),
        yaml::schema("lab", LAB_KEYS),
    ];
    let declared = keys.map(|schema| schema.to_string()).concat();
    let mut count = 0;
    for path in sources() {
        let source = fs::read_to_string(&path).unwrap();
        for name in named(&source) {
            count += 1;
            assert!(
                OTHERS.contains(&name) || declared.contains(&format!("\"{name}\"")),
                "{}: `{name}` is no key of a campaign or a lab",
                path.display()
            );
        }
    }
    // Otherwise the texts have moved, and nothing is checked.
    assert!(count > 20, "{count}");
}
