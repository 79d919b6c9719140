//! Journals of others: no text of theirs is more than text in a document.

use crate::{fixture, machine};
use journal::Journal;
use journal::record::{CaptureContents, Captured, Outcome};
use scraper::{Html, Selector};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use testing::attack;

/// What a terminal would obey, or what hides or reorders other text.
const EVIL: &str = "\x1b[2J\x1b[8m\u{9b}1m\x1b]0;pwned\x07\r\t\u{202e}\u{200b}";

/// The strings of a value by their place, in which numbers of lists are left out: `duts.*.name`.
fn strings<'v>(
    value: &'v mut Value,
    place: &str,
    found: &mut BTreeMap<String, Vec<&'v mut String>>,
) {
    match value {
        Value::String(text) => found.entry(place.to_owned()).or_default().push(text),
        Value::Array(values) => {
            let place = format!("{place}.*");
            values
                .iter_mut()
                .for_each(|value| strings(value, &place, found));
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                strings(value, &format!("{place}.{key}"), found);
            }
        }
        _ => {}
    }
}

/// Which strings of a kind of record may be any text, by their place.
#[derive(Default)]
struct Places {
    free: BTreeSet<String>,
    /// Others are one of a few words, or have a form of their own.
    others: BTreeSet<String>,
}

impl Places {
    /// Appends [`EVIL`] to every string of a record that may be any text.
    fn spoil<T: Serialize + DeserializeOwned>(&mut self, record: &mut T) {
        let mut value = serde_json::to_value(&*record).unwrap();
        let mut all = BTreeMap::new();
        strings(&mut value, "", &mut all);
        let mut unknown = Vec::new();
        for (place, texts) in all {
            if self.free.contains(&place) {
                texts.into_iter().for_each(|text| text.push_str(EVIL));
            } else if !self.others.contains(&place) {
                unknown.push(place);
            }
        }
        for place in unknown {
            let mut changed = value.clone();
            let mut all = BTreeMap::new();
            strings(&mut changed, "", &mut all);
            let texts = all.remove(&place).unwrap();
            texts.into_iter().for_each(|text| text.push_str(EVIL));
            if serde_json::from_value::<T>(changed.clone()).is_ok() {
                value = changed;
                self.free.insert(place);
            } else {
                self.others.insert(place);
            }
        }
        *record = serde_json::from_value(value).unwrap();
    }
}

fn runs() -> [(&'static str, Journal); 6] {
    [
        ("troubled", fixture::troubled()),
        ("frames", fixture::frame_tests()),
        ("disturbed", fixture::disturbed()),
        ("device", fixture::cards()),
        ("monitored", fixture::monitored()),
        ("http", fixture::http()),
    ]
}

/// The characters of a document that a terminal obeys, or that hide or reorder others.
fn obeyed(document: &str) -> usize {
    let shown = guard::visible_lines(document);
    let pairs = shown.chars().zip(document.chars());
    pairs.filter(|(shown, found)| shown != found).count()
}

#[test]
fn no_text_of_a_journal_gives_a_terminal_orders() {
    let mut count = 0;
    for (name, mut journal) in runs() {
        let (mut header, mut trial, mut tuned) = <(Places, Places, Places)>::default();
        header.spoil(&mut journal.header);
        journal
            .trials
            .iter_mut()
            .for_each(|record| trial.spoil(record));
        journal
            .tuned
            .iter_mut()
            .for_each(|record| tuned.spoil(record));
        for wanted in [".plan.title", ".plan.cells.*.id", ".plan.cells.*.dut.name"] {
            assert!(header.free.contains(wanted), "{name}: {:?}", header.free);
        }
        assert!(trial.free.contains(".cell"), "{name}: {:?}", trial.free);
        let documents = report::build(&journal);
        for (kind, document) in [
            ("html", documents.html),
            ("md", documents.markdown),
            ("csv", documents.csv.replace("\r\n", "\n")),
            ("text", crate::terminal(&journal, None, 100, false)),
            ("brief", crate::brief(&journal, None, 80, false)),
        ] {
            let found = obeyed(&document);
            assert_eq!(found, 0, "{name}.{kind}");
            count += found;
        }
        // With colours there is nothing but colours.
        for text in [
            crate::terminal(&journal, None, 100, true),
            crate::brief(&journal, None, 80, true),
        ] {
            assert_eq!(guard::visible_styled(&text), text, "{name}");
            assert!(
                !text.contains("\x1b[2J") && !text.contains("\x1b[8m"),
                "{name}"
            );
        }
    }
    attack("characters of journals that a terminal obeys", count, 0);
}

/// A run whose trials have a capture with these files.
fn with_files(file: &str) -> Journal {
    let mut journal = fixture::quick();
    let captured = Captured {
        at: plan::CapturePoint::Cipher,
        interface: "gw1/w0".to_owned(),
        file: Some(file.to_owned()),
        secrets: Some(file.to_owned()),
        problem: None,
        contents: CaptureContents::default(),
    };
    for trial in &mut journal.trials {
        if let Outcome::Measured(measured) = &mut trial.outcome {
            measured.captures = vec![captured.clone()];
        }
    }
    journal
}

#[test]
fn only_files_below_the_run_become_links() {
    let anchors = Selector::parse("a[href]").unwrap();
    let mut count = 0;
    for file in [
        "javascript:alert(1)",
        "javascript&colon;alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "../../etc/passwd",
        "/etc/passwd",
        "//example.org/x",
        "https://example.org/x",
        "captures/../../x",
        "x) [y](https://example.org",
        "\tjavascript:alert(1)",
        "captures/a.pcapng?x#y",
    ] {
        let documents = report::build(&with_files(file));
        let page = Html::parse_document(&documents.html);
        let links = page.select(&anchors).map(|link| link.attr("href").unwrap());
        let outside = links.filter(|link| {
            !link.starts_with('#')
                && (link.contains([':', '?', '#', ')'])
                    || link.contains("..")
                    || link.starts_with('/'))
        });
        let found = outside.count();
        assert_eq!(found, 0, "{file}");
        // Brackets of texts are escaped.
        let markdown = documents.markdown.replace("\\]", "");
        for link in markdown.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            let is_outside =
                link.contains([':', '?', '#']) || link.contains("..") || link.starts_with('/');
            assert!(!is_outside, "{file}: {link}");
        }
        count += found;
    }
    attack("links of a journal that lead out of its folder", count, 0);

    let documents = report::build(&with_files("captures/tcp,mtu=1500,dut~1,1,cipher.pcapng"));
    let link = "captures/tcp,mtu=1500,dut~1,1,cipher.pcapng";
    assert!(documents.html.contains(&format!("href=\"{link}\"")));
    assert!(documents.markdown.contains(&format!("]({link})")));
}

#[test]
fn no_text_of_a_journal_is_a_formula_of_a_spreadsheet() {
    let mut count = 0;
    for begin in [
        "=cmd|' /C calc'!A0",
        "+1+cmd",
        "-1+cmd",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "＝1",
    ] {
        let mut journal = fixture::troubled();
        for cell in &mut journal.header.plan.cells {
            cell.id = format!("{begin}{}", cell.id);
            cell.group = format!("{begin}{}", cell.group);
            cell.dut.name = format!("{begin}{}", cell.dut.name);
        }
        for trial in &mut journal.trials {
            trial.cell = format!("{begin}{}", trial.cell);
            match &mut trial.outcome {
                Outcome::Failed { reason } => *reason = begin.to_owned(),
                Outcome::Invalid { reasons, .. } => *reasons = vec![begin.to_owned()],
                Outcome::Measured(_) => {}
            }
        }
        let rows = machine::rows(&report::build(&journal).csv);
        assert!(rows.len() > 3, "trials of spoilt cells are there");
        let cells = rows.iter().flatten();
        let formulas = cells.filter(|cell| {
            let is_number = cell.parse::<f64>().is_ok();
            cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝']) && !is_number
        });
        let found = formulas.count();
        assert_eq!(found, 0, "{begin:?}");
        count += found;
        // Control characters are shown as what they are not; the rest of the text stays.
        let kept = rows
            .iter()
            .flatten()
            .any(|cell| cell.contains(begin.trim_start()));
        assert!(kept, "{begin:?}");
    }
    attack("cells of a journal that a spreadsheet computes", count, 0);
}
