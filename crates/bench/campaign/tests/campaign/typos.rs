//! A slip of the pen is reported with the right key, and not also as that key's absence.

use campaign::{CAMPAIGNS, LABS, from_text, lab_from_text};
use std::collections::BTreeSet;
use yaml::Mistakes;

/// Keys that decide how the rest of a file is read: without them the rest is not understood either.
const DECISIVE: [&str; 2] = ["devices", "quick"];

/// The places of keys of at least four letters in a text, each key once: byte offsets and names.
fn keys(text: &str) -> Vec<(usize, &str)> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split(" #").next().unwrap_or_default();
        if !code.trim_start().starts_with('#') {
            for (colon, _) in code.match_indices(": ").chain(code.match_indices(":\n")) {
                let name = code[..colon]
                    .rsplit(|c: char| !(c.is_ascii_lowercase() || c == '_'))
                    .next()
                    .unwrap_or_default();
                if name.len() >= 4 && !DECISIVE.contains(&name) && seen.insert(name) {
                    found.push((start + colon - name.len(), name));
                }
            }
        }
        start += line.len();
    }
    found
}

fn check(
    file: &str,
    text: &str,
    read: impl Fn(&str) -> Option<Mistakes>,
    faults: &mut Vec<String>,
) {
    assert!(read(text).is_none(), "{file}");
    for (at, name) in keys(text) {
        // Two letters in the wrong order.
        let mut typo: Vec<char> = name.chars().collect();
        typo.swap(1, 2);
        let typo: String = typo.into_iter().collect();
        if typo == name {
            continue;
        }
        let slip = format!("{}{typo}{}", &text[..at], &text[at + name.len()..]);
        let Some(mistakes) = read(&slip) else {
            // A free name, or a part of a text.
            continue;
        };
        // A reader that goes on without the key may find more, such as a name that nothing has
        // then.
        let helps = mistakes
            .iter()
            .any(|one| one.help.contains(&format!("did you mean `{name}`?")));
        let missing = mistakes
            .iter()
            .any(|one| one.what.contains(&format!("`{name}` is missing")));
        // Otherwise it is a name that the campaign chooses, or the kind of a trial.
        let is_key = mistakes
            .iter()
            .any(|one| one.what == format!("the key `{typo}` is not known here"));
        if is_key && !helps || missing {
            let all: Vec<&str> = mistakes.iter().map(|one| one.what.as_str()).collect();
            faults.push(format!("{file}, `{typo}`: {all:?}"));
        }
    }
}

#[test]
fn a_mistyped_key_of_a_shipped_file_is_reported_with_the_right_one() {
    let mut faults = Vec::new();
    for shipped in CAMPAIGNS {
        let read = |text: &str| from_text(shipped.file, text).err();
        check(shipped.file, shipped.text, read, &mut faults);
    }
    for shipped in LABS {
        let read = |text: &str| lab_from_text(shipped.file, text).err();
        check(shipped.file, shipped.text, read, &mut faults);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
