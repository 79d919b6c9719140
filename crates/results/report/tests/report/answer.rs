//! The first screen: one sentence that says what was measured, how much of the baseline a device
//! carries, what limits it and how sure that is.

use crate::fixture;
use crate::html::{parse, select, text};
use journal::Journal;

fn runs() -> Vec<(&'static str, Journal)> {
    vec![
        ("quick", fixture::quick()),
        ("troubled", fixture::troubled()),
        ("in progress", fixture::in_progress()),
        ("peers", fixture::peers(5)),
        ("suites", fixture::suites(None)),
        ("scaling", fixture::scaling()),
        ("frames", fixture::frame_tests()),
        ("mrr", fixture::maximum_receive_rates()),
        ("service", fixture::services()),
        ("http", fixture::http()),
        ("disturbed", fixture::disturbed()),
        ("soak", fixture::soak()),
        ("device", fixture::cards()),
        ("only baseline", fixture::only(true)),
        ("no baseline", fixture::only(false)),
    ]
}

/// The text without the line breaks that a terminal needs.
fn unbroken(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn every_first_screen_has_one_sentence_with_finding_limit_and_certainty() {
    for (name, journal) in runs() {
        let (_, page) = parse(&journal);
        let found = select(&page, "#summary > .answer");
        assert_eq!(found.len(), 1, "{name}");
        let answer = unbroken(&text(found[0]));
        for part in [". Limit: ", ". Certainty: "] {
            assert!(answer.contains(part), "{name}: {answer}");
        }
        for width in [60, 100] {
            let brief = unbroken(&crate::brief(&journal, None, width, false));
            assert!(brief.contains(&answer), "{name}: {answer}\n{brief}");
        }
        let whole = unbroken(&crate::terminal(&journal, None, 100, false));
        assert!(whole.contains(&answer), "{name}: {answer}");
        let device = answer.split([' ', ',']).next().unwrap();
        let markdown = report::build(&journal).markdown;
        let sentence = |line: &&str| line.contains(". Limit: ") && line.contains(device);
        assert_eq!(markdown.lines().filter(sentence).count(), 1, "{name}");
        // A list of runs has the finding alone.
        let opening = report::opening(&markdown).expect("it is a report");
        let finding = opening.answer.expect("it has an answer");
        let finding = finding.trim_end_matches('.');
        assert!(
            answer.starts_with(&format!("{finding}. Limit: ")),
            "{name}: {finding}"
        );
        assert!(whole.contains(&unbroken(&opening.soundness)), "{name}");
    }
}

#[test]
fn the_answer_explains_the_baseline_and_leaves_out_what_protects_nothing() {
    let (_, page) = parse(&fixture::peers(5));
    let answer = text(select(&page, "#summary > .answer")[0]);
    assert!(
        answer.starts_with("cipherbench carries ") && answer.contains("the most of 4 devices"),
        "{answer}"
    );
    let explained = "direct (the same path without an encryptor)";
    assert!(answer.contains(explained), "{answer}");
}

#[test]
fn a_fixed_load_is_no_share_of_the_baseline() {
    let answer = |trials: &str| {
        let campaign = format!(
            "campaign: c\nrepeats: 3\nduts: [direct, cipherbench]\ncalibrate: off\ntrials:\n{trials}"
        );
        let campaign = campaign::from_text("c.yaml", &campaign).unwrap();
        let lab = campaign::lab_from_text("l.yaml", "lab: l\nlink_rate: 2.5 Gbit/s\n").unwrap();
        let plan = campaign
            .plan(&lab, &campaign::HostFacts { cores: 8 })
            .unwrap();
        let (_, page) = parse(&fixture::Maker::new(plan).finish());
        text(select(&page, "#summary > .answer")[0])
    };
    let load = "  - load: { frame: 1518 B, rate: 20 k frames/s }\n";
    let both = answer(&format!("  - mrr: {{ frame: 64 B }}\n{load}"));
    // One share, of 64 B: neither a range nor the load.
    assert!(both.contains(" kpps of 64 B frames"), "{both}");
    assert!(both.contains("this ratio surely"), "{both}");
    let load = answer(load);
    assert!(!load.contains(" carries "), "{load}");
}

#[test]
fn the_terminal_has_the_findings_and_every_row_of_the_ranking() {
    let brief = crate::brief(&fixture::peers(5), None, 80, false);
    assert!(brief.contains("cipherbench is best"), "{brief}");
    let (_, ranking) = brief.split_once("Ranking: ").unwrap();
    let (ranking, _) = ranking.split_once("\n\n").unwrap();
    for device in ["cipherbench", "openvpn", "triple des", "gotatun", "direct"] {
        assert!(ranking.contains(device), "{device}: {ranking}");
    }
    assert!(!ranking.contains("rows more"), "{ranking}");
}

#[test]
fn what_makes_figures_doubtful_is_in_all_documents() {
    let journal = fixture::troubled();
    let report = report::build(&journal);
    let doubt = "Doubtful: no figure in ";
    for (name, document) in [
        ("HTML", report.html),
        ("Markdown", report.markdown),
        ("terminal", crate::terminal(&journal, None, 100, false)),
        (
            "short form",
            unbroken(&crate::brief(&journal, None, 80, false)),
        ),
    ] {
        assert!(document.contains(doubt), "{name}");
    }
}

#[test]
fn the_loss_of_datagrams_stands_beside_their_ratio() {
    let (_, page) = parse(&fixture::quick());
    let figures: Vec<String> = select(&page, "#summary strong")
        .into_iter()
        .map(text)
        .collect();
    let udp = figures.iter().find(|figure| figure.contains("lost"));
    assert!(
        udp.is_some_and(|figure| figure.contains("× direct, 42.1–42.9 % lost")),
        "{figures:?}"
    );
}

/// `missing_cores: skip`: one line, no box of failures, no table or chart of what was left out.
#[test]
fn what_the_machine_cannot_do_is_one_line() {
    let source = "campaign: skip\nrepeats: 3\nmissing_cores: skip\nduts: [direct, cipherbench]\ncalibrate: off\n\
                trials: [tcp: { mtu: 1500 B, cores: [1, 128] }, mrr: { frame: 64 B, cores: [1, 128] }]\n";
    let host = campaign::HostFacts { cores: 8 };
    let campaign = campaign::from_text("skip.yaml", source).unwrap();
    let plan = campaign.plan(&campaign.usual_lab(), &host).unwrap();
    let mut journal = fixture::Maker::new(plan).finish();
    journal.header.environment.cpus = 8;
    let wants_more = |cell: &str| cell.contains("cores=128");
    for trial in journal
        .trials
        .iter_mut()
        .filter(|trial| wants_more(&trial.cell))
    {
        trial.outcome = journal::record::Outcome::Failed {
            reason: "the cell asks for 128 cores per station, this machine has 8; set `cores` to 8 or less".into(),
        };
    }
    let (html, page) = parse(&journal);
    let line = "needs up to 128 cores; this machine has 8";
    let summary: String = select(&page, "#summary").into_iter().map(text).collect();
    assert!(summary.contains(line), "{summary}");
    assert!(summary.contains("All 12 trials were measured"), "{summary}");
    assert!(select(&page, "#trouble").is_empty(), "{html}");
    for place in ["#tcp table", "#tcp svg", "#mrr table", "#mrr svg"] {
        let found: String = select(&page, place).into_iter().map(text).collect();
        assert!(
            !found.is_empty() && !found.contains("128") && !found.contains("failed"),
            "{place}: {found}"
        );
    }
    let brief = unbroken(&crate::brief(&journal, None, 80, false));
    assert!(
        brief.contains(line) && !brief.contains("Doubtful"),
        "{brief}"
    );
}
