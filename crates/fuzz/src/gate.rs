//! Gates of comparisons.

use compare::Gate;

/// Any text is a gate, which is the same when it is read again, or a mistake that shows its place.
pub(crate) fn body(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match text.parse::<Gate>() {
        Ok(gate) => {
            let again: Gate = gate.text.parse().expect("the text of a gate is a gate");
            assert_eq!(again, gate);
        }
        Err(error) => {
            let shown = error.to_string();
            let lines: Vec<&str> = shown.lines().collect();
            // The mistake, the text, the marks below it, and help.
            assert_eq!(lines.len(), 4, "{shown}");
            assert!(lines[2].trim_start().starts_with('^'), "{shown}");
            assert!(lines[3].starts_with("help: "), "{shown}");
            let (text, marks) = (lines[1].chars().count(), lines[2].chars().count());
            assert!(marks <= text + 1, "{shown}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_seeds_are_gates() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/gate");
        for entry in fs::read_dir(folder).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            if let Err(error) = text.parse::<Gate>() {
                panic!("{error}");
            }
        }
    }
}
