//! What the first screen says of runs that went wrong, and what it keeps if there is much of it;
//! and that the full form lacks no table.

use crate::fixture;
use crate::html::{parse, select, text};
use journal::Journal;
use journal::record::{Check, Explanation, Figures, Outcome};

fn unbroken(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The quick campaign beside other programs, which made every trial invalid.
fn all_invalid() -> Journal {
    let mut journal = fixture::quick();
    for (index, trial) in journal.trials.iter_mut().enumerate() {
        let Outcome::Measured(measured) = &trial.outcome else {
            continue;
        };
        let mut measured = measured.clone();
        let detail = format!("{index} ms of {} ms", 2 * index);
        measured.evidence.checks.push(Check {
            name: "machine-was-ours".into(),
            passed: false,
            detail: detail.clone(),
            explanation: Some(Explanation::new(
                format!("others took {index} ms"),
                "other programs ran on this machine",
                "end them",
            )),
        });
        trial.outcome = Outcome::Invalid {
            reasons: vec![format!("machine-was-ours: {detail}")],
            measured,
        };
    }
    journal
}

#[test]
fn a_run_without_any_figure_says_what_kept_it_from_measuring() {
    let journal = all_invalid();
    let trials = journal.trials.len();
    let answer = format!(
        "Nothing could be measured: in {trials} of {trials} trials other programs ran on this \
         machine (`machine-was-ours`), for example others took "
    );
    let brief = unbroken(&crate::brief(&journal, None, 80, false));
    assert!(brief.contains(&answer), "{brief}");
    assert!(
        !brief.contains("more reason"),
        "one check is one reason: {brief}"
    );
    assert!(
        brief.contains("Likely cause: other programs ran on this machine."),
        "`them` has something to stand for: {brief}"
    );
    let (_, page) = parse(&journal);
    assert_eq!(select(&page, "#trouble tbody tr").len(), 1);
}

#[test]
fn a_repetition_is_not_offered_where_the_settings_are_wrong() {
    let offer = "--invalid repeats them";
    let says = |journal: &Journal, words: &str| {
        let brief = unbroken(&crate::brief(journal, None, 200, false));
        assert!(brief.contains(words), "{words}: {brief}");
        brief
    };
    let mut journal = all_invalid();
    says(&journal, offer);
    for trial in &mut journal.trials {
        if let Outcome::Invalid { measured, .. } = &mut trial.outcome {
            for check in &mut measured.evidence.checks {
                if let Some(explanation) = &mut check.explanation {
                    explanation.advice = "raise `duration` in a new run".into();
                }
            }
        }
    }
    let brief = says(&journal, "repeated, they would fail again");
    assert!(!brief.contains(offer), "{brief}");
}

#[test]
fn warnings_and_remedies_are_cut_before_devices() {
    let mut journal = all_invalid();
    // One cell keeps its figures, so that its table has rows to lose.
    let intact = fixture::quick();
    for (trial, intact) in journal.trials.iter_mut().zip(&intact.trials) {
        if trial.cell.starts_with("tcp/") {
            trial.outcome = intact.outcome.clone();
        }
    }
    let brief = crate::brief(&journal, None, 80, false);
    assert!(!brief.contains("rows more"), "{brief}");
}

#[test]
fn passed_checks_that_could_not_judge_the_machine_say_so() {
    let mut journal = fixture::quick();
    for trial in &mut journal.trials {
        if let Outcome::Measured(measured) = &mut trial.outcome {
            measured.cpu.foreign_ns = measured.cpu.wall_ns / 2;
            let checks = &mut measured.evidence.checks;
            checks.retain(|check| check.name != "machine-was-ours");
        }
    }
    let brief = unbroken(&crate::brief(&journal, None, 80, false));
    let trials = journal.trials.len();
    let words = format!("In {trials} trials no check judged whether other programs disturbed them");
    assert!(brief.contains(&words), "{brief}");
}

#[test]
fn the_full_form_has_every_table_of_the_markdown() {
    for (name, journal) in [
        ("quick", fixture::quick()),
        ("frames", fixture::frame_tests()),
        ("scaling", fixture::scaling()),
        ("peers", fixture::peers(5)),
        ("suites", fixture::suites(None)),
        ("soak", fixture::soak()),
        ("device", fixture::cards()),
    ] {
        let whole = crate::terminal(&journal, None, 100, false);
        let markdown = report::build(&journal).markdown;
        let captions = markdown.lines().filter_map(|line| {
            let (caption, _) = line.strip_prefix("**")?.split_once("**")?;
            Some(caption.replace('\\', ""))
        });
        for caption in captions {
            assert!(
                whole.lines().any(|line| line == caption),
                "{name}: {caption}"
            );
        }
    }
    let whole = crate::terminal(&fixture::scaling(), None, 200, false);
    let (_, claims) = whole.split_once("Claims and measured figures").unwrap();
    assert!(claims.contains("Measured  ") && claims.contains("Ratio"));
}

#[test]
fn the_sentence_names_frames_and_direction() {
    let (_, page) = parse(&fixture::maximum_receive_rates());
    let answer = text(select(&page, "#summary > .answer")[0]);
    assert!(answer.contains(" frames, both gateways: "), "{answer}");
}

/// One repeat proved a bound: it is in the table, with the number of such repeats.
#[test]
fn bounds_of_some_repeats_are_shown() {
    let cell = "throughput/frame=64/direction=both/cipherbench";
    let mut journal = fixture::frame_tests();
    for trial in journal.trials.iter_mut().filter(|trial| trial.cell == cell) {
        let Outcome::Measured(measured) = &mut trial.outcome else {
            continue;
        };
        let Figures::Frames(frames) = &mut measured.figures else {
            continue;
        };
        let first = &mut frames.throughput.as_mut().unwrap().goals[0];
        match trial.repeat {
            1 => first.upper = None,
            _ => first.lower = None,
        }
    }
    let brief = crate::terminal(&journal, None, 140, false);
    let (_, table) = brief
        .split_once("Throughput by frame size in kpps")
        .unwrap();
    let is_row = |line: &str| line.starts_with("cipherbench ") && line.contains(" [1 of 5] ? *");
    assert!(table.lines().any(is_row), "{table}");
    let (_, bounds) = brief.split_once("Relevant bounds, both").unwrap();
    assert!(
        bounds.contains(" [1 of 5]") && bounds.contains(" [4 of 5]"),
        "{bounds}"
    );
}
