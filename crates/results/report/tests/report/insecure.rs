//! No document prints the name of an insecure device without saying that it is insecure.

use crate::fixture;
use journal::Journal;
use plan::Adapter;
use scraper::Html;
use wire::Suite;

/// A name that no other text contains.
const NAME: &str = "frailbox";

/// The run with every encryptor of our own renamed and given an insecure suite; each keeps a
/// number that distinguishes it from the others.
fn weakened(mut journal: Journal) -> Journal {
    let mut known: Vec<String> = Vec::new();
    for cell in &mut journal.header.plan.cells {
        let Adapter::Cipherbench(encryptor) = &mut cell.dut.adapter else {
            continue;
        };
        encryptor.suite = Suite::from_name("3des-cbc-hmac-sha1").unwrap();
        let number = match known.iter().position(|name| *name == cell.dut.name) {
            Some(number) => number,
            None => {
                known.push(cell.dut.name.clone());
                known.len() - 1
            }
        };
        cell.dut.name = format!("{NAME}{number}");
    }
    assert!(!known.is_empty(), "the run has no encryptor");
    journal
}

/// Every occurrence of the name has the mark behind it; names that `code` quotes are exempt: the
/// warnings and reasons of the statistics, and ids.
fn assert_marked(what: &str, document: &str) {
    let document = document.replace(['\n', '\u{a0}'], " ");
    let words = document.split_whitespace().collect::<Vec<_>>().join(" ");
    for (at, _) in words.match_indices(NAME) {
        let is_quoted = words[..at].ends_with('`') || words[..at].ends_with('=');
        let rest = words[at + NAME.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        assert!(
            is_quoted || rest.starts_with(" (insecure") || rest.starts_with("… (insecure"),
            "{what}: a name without its mark: {:?}",
            words[at.saturating_sub(80)..]
                .chars()
                .take(200)
                .collect::<String>()
        );
    }
}

#[test]
fn insecure_devices_are_marked_wherever_they_are_named() {
    let runs = [
        ("insecure", fixture::insecure()),
        ("quick", fixture::quick()),
        ("troubled", fixture::troubled()),
        ("frames", fixture::frame_tests()),
        ("disturbed", fixture::disturbed()),
        ("hostile", fixture::hostile_frames()),
        ("soak", fixture::soak()),
        ("peers", fixture::peers(5)),
        ("scaling", fixture::scaling()),
        ("suites", fixture::suites(None)),
        ("http", fixture::http()),
        ("monitored", fixture::monitored()),
    ];
    for (name, journal) in runs {
        let journal = weakened(journal);
        // One build for all documents: the statistics take most of the time.
        let documents = report::build(&journal);
        let page = Html::parse_document(&documents.html);
        assert_eq!(page.errors, Vec::<String>::new(), "{name}");
        assert!(documents.html.contains(NAME), "{name}");
        let visible = documents.html.replace("<code>", "`");
        let visible = visible.replace("&quot;", "\"");
        assert_marked(
            &format!("{name}, HTML"),
            &visible.replace('<', " <").replace('>', "> "),
        );
        assert_marked(&format!("{name}, Markdown"), &documents.markdown);
        let terminal = crate::terminal(&journal, None, 400, false);
        assert_marked(&format!("{name}, terminal"), &terminal);
    }
}
