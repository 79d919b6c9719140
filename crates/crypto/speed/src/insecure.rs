//! Marks of suites and engines that must not protect data.

use wire::Suite;

/// Why the engine `null` must not protect data.
const NULL: &str = "the engine `null` neither encrypts nor authenticates";

/// Returns why the suite on that engine must not protect data; `None` if it may.
pub(crate) fn reason(suite: Suite, engine: &str) -> Option<&'static str> {
    match engine {
        engine::NULL => Some(NULL),
        _ => suite.insecure(),
    }
}

/// A suite's name: `aes-256-gcm`, `des-cbc-hmac-sha1 (insecure)`.
pub(crate) fn suite_name(suite: Suite) -> String {
    marked(suite.name(), suite.insecure().is_some())
}

/// An engine's name: `ipsec-mb`, `null (insecure)`.
pub(crate) fn engine_name(engine: &str) -> String {
    marked(engine, engine == engine::NULL)
}

fn marked(name: &str, is_insecure: bool) -> String {
    if is_insecure {
        format!("{name} (insecure)")
    } else {
        name.to_owned()
    }
}

/// The lines below the tables: each reason once, with its suite or engine.
pub(crate) fn notes<'a>(measured: impl IntoIterator<Item = (Suite, &'a str)>) -> String {
    let mut notes: Vec<String> = Vec::new();
    for (suite, engine) in measured {
        let of_suite = suite
            .insecure()
            .map(|why| format!("insecure: {suite}: {why}\n"));
        let of_engine = (engine == engine::NULL).then(|| format!("insecure: {NULL}\n"));
        // The suite first: it is so on every engine.
        for note in of_suite.into_iter().chain(of_engine) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insecure_suites_and_engines_are_marked_with_the_reason() {
        let des = Suite::from_name("des-cbc-hmac-sha1").expect("a suite");
        let gcm = Suite::Aes256Gcm;
        assert_eq!(suite_name(des), "des-cbc-hmac-sha1 (insecure)");
        assert_eq!(suite_name(gcm), "aes-256-gcm");
        assert_eq!(engine_name("null"), "null (insecure)");
        assert_eq!(reason(gcm, "aws-lc"), None);
        assert_eq!(reason(gcm, engine::NULL), Some(NULL));
        assert_eq!(reason(des, "rustcrypto"), des.insecure());
        assert_eq!(notes([(gcm, "aws-lc")]), "");
        assert_eq!(
            notes([(des, "rustcrypto"), (des, "null"), (gcm, "null")]),
            "insecure: des-cbc-hmac-sha1: DES keys of 56 bits are found by trying\n\
             insecure: the engine `null` neither encrypts nor authenticates\n"
        );
    }
}
