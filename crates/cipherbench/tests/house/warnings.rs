//! The reference of warnings, which follows from the JSON Schema and the weights in the code.

use crate::{read, root};
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "docs/warnings.md";
const PREFACE: &str = "\
# Warnings

Which doubts does a report raise, and may its figure be printed elsewhere? In short: a warning that *spoils* means no, one
that *qualifies* means together with the condition, and one that *informs* changes nothing. Every warning ends in advice.
`warnings` of `results.json` has the kinds below.
";

/// The kinds in the schema, with their descriptions.
fn described() -> Vec<(String, String)> {
    let schema = read(Path::new("docs/schema/result-1.json"));
    let (_, kinds) = schema.split_once("\"WarningKind\": {").expect("the kinds");
    let (kinds, _) = kinds.split_once("\n      ]").expect("their end");
    let value = |part: &str, key: &str| {
        let (_, rest) = part.split_once(&format!("\"{key}\": \""))?;
        Some(rest.split("\"\n").next()?.split("\",").next()?.to_owned())
    };
    let parts = kinds.split("\n        {").skip(1);
    parts
        .map(|part| {
            let description = value(part, "description").expect("a description");
            (value(part, "const").expect("a name"), description)
        })
        .collect()
}

/// `FewRepeats` as `few-repeats`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// The weights in the code: of each kind, as the schema names it, the weight and the words.
fn weights() -> Vec<(String, String, String)> {
    let kinds = read(Path::new("crates/results/stats/src/warning.rs"));
    let renamed = |name: &str| {
        let (before, _) = kinds.split_once(&format!("\n    {name},"))?;
        let line = before.lines().last()?.trim();
        let name = line
            .strip_prefix("#[serde(rename = \"")?
            .strip_suffix("\")]")?;
        Some(name.to_owned())
    };
    let code = read(Path::new("crates/results/stats/src/warning/weight.rs"));
    let code: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    code.split("Self::")
        .filter_map(|arm| {
            let (name, rest) = arm.split_once(" => ")?;
            let (weight, rest) = rest
                .trim_start_matches(['(', '{', ' '])
                .split_once(", \"")?;
            let (words, _) = rest.split_once('"')?;
            let name = renamed(name).unwrap_or_else(|| kebab(name));
            Some((name, weight.to_lowercase(), words.to_owned()))
        })
        .collect()
}

#[test]
fn every_warning_is_in_its_reference() {
    let weights = weights();
    let mut page = PREFACE.to_owned();
    let mut count = 0;
    for weight in ["spoils", "qualifies", "informs"] {
        let title = weight[..1].to_uppercase() + &weight[1..];
        let _ = write!(
            page,
            "\n## {title}\n\n| Kind | In short | When |\n| --- | --- | --- |\n"
        );
        for (name, description) in described() {
            let found = weights.iter().find(|(kind, ..)| *kind == name);
            let (_, found, words) = found.unwrap_or_else(|| panic!("`{name}` has no weight"));
            if found == weight {
                count += 1;
                let _ = writeln!(page, "| `{name}` | {words} | {description} |");
            }
        }
    }
    assert_eq!(count, described().len());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(root().join(PAGE), &page).expect("our own folder");
    }
    assert!(
        std::fs::read_to_string(root().join(PAGE)).is_ok_and(|text| text == page),
        "{PAGE} is not current; UPDATE_GOLDEN=1 rewrites it"
    );
}
