//! Readers and rules of `lint`.

/// The formats that it reads.
const ENDS: [&str; 4] = ["toml", "csv", "md", "json"];

/// Any text is a file with findings that can be printed in each form, or a list of mistakes with
/// their file. The first byte selects the format.
pub(crate) fn body(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let file = format!("fuzz.{}", ENDS[usize::from(*first) % ENDS.len()]);
    match lint::lint(&file, text) {
        Ok(checked) => {
            for finding in &checked.findings {
                assert_eq!(*finding.place.file, *file);
                assert!(!finding.arithmetic.is_empty());
            }
            let printed = lint::text(std::slice::from_ref(&checked), &[]);
            let places = printed.lines().filter(|line| line.starts_with("  --> "));
            // A finding may refer to other places too.
            assert!(places.count() >= checked.findings.len());
            let files = [checked];
            is_json(&lint::json(&files, &[]));
            is_json(&lint::sarif(&files, &[], "0"));
        }
        Err(mistakes) => {
            let shown = mistakes.to_string();
            assert!(shown.contains(&file), "a mistake without a place: {shown}");
            let unreadable = [mistakes];
            // A file that was not checked must not look clean.
            assert!(!lint::text(&[], &unreadable).contains("0 errors"));
            is_json(&lint::json(&[], &unreadable));
            is_json(&lint::sarif(&[], &unreadable, "0"));
        }
    }
}

fn is_json(text: &str) {
    assert!(text.starts_with('{') && text.ends_with("}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_seeds_are_tables_with_findings() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/lint");
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let seed = fs::read_to_string(&path).unwrap();
            let (first, text) = seed.split_at(1);
            let end = ENDS[usize::from(first.as_bytes()[0]) % ENDS.len()];
            match lint::lint(&format!("seed.{end}"), text) {
                Ok(checked) => assert!(!checked.findings.is_empty(), "{}", path.display()),
                Err(mistakes) => panic!("{}: {mistakes}", path.display()),
            }
        }
    }
}
