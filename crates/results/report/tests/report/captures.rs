//! Captures: linked, with their protocols and lengths, and warned of.

use crate::fixture;
use journal::Journal;
use journal::record::{CaptureContents, Captured, LengthCount, Outcome, ProtocolCount};
use plan::CapturePoint;
use scraper::{Html, Selector};
use stats::WarningKind;

fn captured(number: usize) -> Captured {
    let protocol = |path: &str, frames| ProtocolCount {
        path: path.to_owned(),
        frames,
        bytes: 100 * frames,
    };
    let length = |upto_bytes, frames| LengthCount { upto_bytes, frames };
    Captured {
        at: CapturePoint::Cipher,
        interface: "gw1/w0".to_owned(),
        file: Some(format!(
            "captures/tcp,mtu=1500,dut~{number},1,cipher.pcapng"
        )),
        secrets: (number == 0).then(|| "captures/x.esp_sa".to_owned()),
        problem: None,
        contents: CaptureContents {
            frames: 200,
            bytes: 20_000,
            selected: 207,
            dropped: if number == 1 { 7 } else { 0 },
            one_in: 1,
            protocols: vec![
                protocol("eth", 200),
                protocol("eth:ip", 200),
                protocol("eth:ip:icmp", 20),
                protocol("eth:ip:tcp", 180),
            ],
            lengths: vec![length(79, 150), length(65_535, 50)],
            commonest: vec![length(66, 150)],
            ..CaptureContents::default()
        },
    }
}

/// A run whose measured trials have a capture each.
fn with_captures() -> Journal {
    let mut journal = fixture::quick();
    let mut number = 0;
    for trial in &mut journal.trials {
        if let Outcome::Measured(measured) = &mut trial.outcome {
            measured.captures = vec![captured(number)];
            number += 1;
        }
    }
    assert!(number > 2, "{number} measured trials");
    journal
}

#[test]
fn captures_are_linked_counted_and_warned_of() {
    let journal = with_captures();
    let documents = report::build(&journal);
    for words in [
        "Protocols at cipher",
        "Frame lengths at cipher",
        "· · tcp",
        "65535 B",
    ] {
        assert!(documents.markdown.contains(words), "{words}");
        assert!(documents.html.contains(words), "{words}");
    }
    // Two repeats or more of one cell are summed; the shares stay.
    assert!(documents.markdown.contains("(90.0 %)") && documents.markdown.contains("(25.0 %)"));
    let page = Html::parse_document(&documents.html);
    let links = Selector::parse("a[href^='captures/']").unwrap();
    let captures = stats::Results::of(&journal).captures;
    // Each capture's file, and one table of keys.
    assert_eq!(page.select(&links).count(), captures.len() + 1);
    let json: serde_json::Value = serde_json::from_str(&documents.json).unwrap();
    let first = &json["captures"][0]["capture"];
    assert_eq!(first["contents"]["protocols"][3]["path"], "eth:ip:tcp");
    let mut rows = documents.csv.lines();
    let columns = rows.next().unwrap().split(',');
    assert!(columns.clone().any(|column| column == "capture_files"));
    assert!(
        rows.any(|row| row.contains("cipher.pcapng\",200,7")),
        "{}",
        documents.csv
    );
}

#[test]
fn a_warning_names_what_a_capture_costs_lacks_and_reveals() {
    let warnings = stats::Results::of(&with_captures()).warnings;
    let of = |kind| warnings.iter().find(|warning| warning.kind == kind);
    assert!(of(WarningKind::Captured).is_some());
    let incomplete = of(WarningKind::CaptureIncomplete).unwrap();
    assert!(
        incomplete.text.contains("7 of 207 frames were dropped"),
        "{incomplete:?}"
    );
    assert_eq!(of(WarningKind::SecretsKept).unwrap().cells.len(), 1);
    let none = stats::Results::of(&fixture::quick());
    assert!(none.captures.is_empty());
    assert!(
        !none
            .warnings
            .iter()
            .any(|it| it.kind == WarningKind::Captured)
    );
}
