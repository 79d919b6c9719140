//! Parser of `swanctl --pretty`: sections, values and lists of a message, one per line.

use std::collections::BTreeMap;

/// Values by path, starting below the message's section: `t/child-sas/c0-1/encr-alg`. A list's
/// items are joined by spaces.
pub(super) type Answer = BTreeMap<String, String>;

/// Parses all messages of an answer and ignores other lines.
pub(super) fn parse(text: &str) -> Answer {
    let mut answer = Answer::new();
    let mut sections: Vec<&str> = Vec::new();
    let mut list: Option<(String, Vec<&str>)> = None;
    for line in text.lines().map(str::trim) {
        if let Some((path, items)) = &mut list {
            // Lists hold values only, so that the first closing bracket ends them.
            if line == "]" {
                answer.insert(std::mem::take(path), items.join(" "));
                list = None;
            } else {
                items.push(line);
            }
            continue;
        }
        let path = |key: &str| {
            // The first section is the message, which is not part of a path.
            let inside = sections.iter().skip(1).copied();
            inside.chain([key]).collect::<Vec<_>>().join("/")
        };
        match line.split_once(" = ") {
            Some((key, "[")) => list = Some((path(key), Vec::new())),
            Some((key, value)) => {
                answer.insert(path(key), value.to_owned());
            }
            None if line == "}" => {
                sections.pop();
            }
            None => sections.extend(line.strip_suffix(" {")),
        }
    }
    answer
}

/// Returns the names of the direct subsections of a section.
pub(super) fn sections(answer: &Answer, section: &str) -> Vec<String> {
    let below = format!("{section}/");
    let mut names: Vec<String> = answer
        .keys()
        .filter_map(|path| path.strip_prefix(&below)?.split_once('/'))
        .map(|(name, _)| name.to_owned())
        .collect();
    // The keys are sorted, so equal names are neighbours.
    names.dedup();
    names
}

/// Returns the major and minor number of a version such as `5.9.8` or `6.0beta2`.
pub(super) fn numbers(version: &str) -> (u32, u32) {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|digits| digits.parse().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_path_and_lists_have_blanks() {
        let text = "list-sa event {\n  t {\n    local-id = CN=gw1, O=a b\n    remote-id = \n    child-sas {\n      \
                    c0-1 {\n        encr-alg = AES_GCM_16\n        local-ts = [\n          \
                    10.1.0.0/24\n          10.3.0.0/24\n        ]\n      }\n      c1-2 {\n        \
                    encr-alg = NULL\n      }\n    }\n  }\n}\nlist-sas reply {\n}\n";
        let answer = parse(text);
        let expected = [
            ("t/child-sas/c0-1/encr-alg", "AES_GCM_16"),
            ("t/child-sas/c0-1/local-ts", "10.1.0.0/24 10.3.0.0/24"),
            ("t/child-sas/c1-2/encr-alg", "NULL"),
            ("t/local-id", "CN=gw1, O=a b"),
        ];
        let found = answer.iter().map(|(path, value)| (&**path, &**value));
        assert!(found.eq(expected), "{answer:?}");
        assert_eq!(sections(&answer, "t/child-sas"), ["c0-1", "c1-2"]);
        assert!(parse("").is_empty());
    }

    #[test]
    fn a_version_has_two_numbers_that_count() {
        assert_eq!(numbers("5.9.8"), (5, 9));
        assert_eq!(numbers("6.0beta2"), (6, 0));
        assert_eq!(numbers("6"), (6, 0));
        assert_eq!(numbers("unknown"), (0, 0));
    }
}
