//! What documents say of crypto devices.

use crate::fixture;
use crate::golden::assert_golden;
use crate::html::{parse, select, text};
use crate::machine::{json, rows};
use journal::record::{DeviceRecord, Figures};
use serde_json::Value;

#[test]
fn the_text_documents_are_as_they_were() {
    let journal = fixture::cards();
    let path = |name: &str| format!("crates/results/report/tests/golden/{name}");
    assert_golden(&path("device.md"), &report::build(&journal).markdown);
    let terminal = crate::terminal(&journal, None, 100, false);
    assert_golden(&path("device.txt"), &terminal);
}

#[test]
fn a_run_of_devices_speaks_of_nothing_else() {
    let (page_text, page) = parse(&fixture::cards());
    for section in ["functional", "device-speed", "fatigue", "published"] {
        assert_eq!(select(&page, &format!("nav a[href='#{section}']")).len(), 1);
        assert_eq!(select(&page, &format!("section#{section}")).len(), 1);
    }
    for absent in ["#tcp", "#udp", "#cpu", "#spread"] {
        assert!(select(&page, absent).is_empty(), "{absent}");
    }
    for word in ["MTU", "gateway 1", "round trip", "Encryptor"] {
        assert!(!page_text.contains(word), "{word}");
    }
}

#[test]
fn the_functional_table_is_as_people_make_it_by_hand() {
    let (_, page) = parse(&fixture::cards());
    let section = text(select(&page, "#functional")[0]);
    for words in [
        "pass",
        "wrong at byte 4096",
        "error",
        "not offered",
        "wanted 5b1f…, came 0000…",
        "Post-quantum",
        "the device said: busy",
    ] {
        assert!(section.contains(words), "{words}: {section}");
    }
}

#[test]
fn charts_name_the_crossover_the_saturation_and_the_second_card() {
    let (_, page) = parse(&fixture::cards());
    let charts = select(&page, "#device-speed figure svg");
    // Two operations by size, one by many at once.
    assert_eq!(charts.len(), 3);
    let by_many = text(charts[2]);
    for words in [
        "card meets cpu at about 30",
        "cards: stops scaling at 250",
        "at once",
    ] {
        assert!(by_many.contains(words), "{words}: {by_many}");
    }
    let section = text(select(&page, "#device-speed")[0]);
    for words in [
        "faster than cpu from about 30 in parallel on: slower at 20, faster at 40 and more",
        "2 devices beside 1: 2.00 times the peak of card",
        "equals cpu at every size measured, as if the CPU did the work",
        "card equals CPU",
        "published: host one, CPU",
    ] {
        assert!(section.contains(words), "{words}: {section}");
    }
    let fatigue = select(&page, "#fatigue figure svg");
    assert_eq!(fatigue.len(), 2);
    assert!(text(fatigue[0]).contains("2 of 12 failed") || text(fatigue[0]).contains("6 of 36"));
    assert!(text(fatigue[1]).contains("400 h and more"));
    let section = text(select(&page, "#fatigue")[0]);
    for words in ["Published: 200 cards", "57.0 %", "signal 11 (SIGSEGV)"] {
        assert!(section.contains(words), "{words}: {section}");
    }
}

#[test]
fn the_summary_has_what_each_device_came_to() {
    let (_, page) = parse(&fixture::cards());
    let summary = text(select(&page, "#summary")[0]);
    for words in [
        "5 of 9",
        "algorithms pass",
        "4.40 kop/s, modelled",
        "1.00 × cpu, no difference shown",
        "without a failure",
    ] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    // The times of a model are no measured side of a ratio.
    assert!(!summary.contains("× cpu at best"), "{summary}");
}

#[test]
fn machines_read_the_curves_the_survival_and_the_published_figures() {
    let result = json(&fixture::cards());
    let series = result["device_series"].as_array().unwrap();
    let by =
        |axis: &str| -> Vec<&Value> { series.iter().filter(|one| one["axis"] == axis).collect() };
    assert_eq!((by("bytes").len(), by("at-once").len()), (2, 1));
    let crossover = &by("at-once")[0]["comparisons"][0]["crossover"];
    assert_eq!(crossover["course"], "faster-from");
    assert_eq!(crossover["faster_from"], 40);
    let batch = &result["fatigue_batches"][0];
    assert_eq!(batch["survival"]["lives"], 36);
    assert!(batch["survival"]["steps"].as_array().unwrap().len() >= 2);
    assert_eq!(result["published"].as_array().unwrap().len(), 18);
    let schema: Value = serde_json::from_str(&report::json_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&result));
}

#[test]
fn csv_has_a_row_for_each_case_device_and_start() {
    let rows = rows(&report::build(&fixture::cards()).csv);
    let column = |key: &str| rows[0].iter().position(|found| found == key).unwrap();
    let of = |figure: &str| -> Vec<&Vec<String>> {
        let own = |row: &&Vec<String>| row[column("figure")] == figure;
        rows.iter().filter(own).collect()
    };
    let wrong = |row: &&&Vec<String>| row[column("known_answer_verdict")] == "wrong";
    let found = of("known-answer");
    let found: Vec<_> = found.iter().filter(wrong).collect();
    assert_eq!(found.len(), 3);
    assert_eq!(found[0][column("known_answer_first_wrong_byte")], "4096");
    // Sizes by three devices, many at once by one, one and two, and the one operation that the CPU
    // alone has.
    assert_eq!(of("speed").len(), 3 * (2 * 5 * 3 + 12 * 4 + 1));
    let fatigue = of("fatigue");
    assert_eq!(fatigue.len(), 36);
    let failed = |row: &&&Vec<String>| !row[column("first_failure_ns")].is_empty();
    assert_eq!(fatigue.iter().filter(failed).count(), 6);
    for row in of("speed") {
        let rate: f64 = row[column("operations_per_s")].parse().unwrap();
        assert!(rate > 0.0);
        let has_bytes = !row[column("input_bytes")].is_empty();
        assert_eq!(has_bytes, !row[column("input_bytes_per_s")].is_empty());
    }
}

#[test]
fn names_and_words_of_devices_are_text() {
    let evil = "</text><script>|`\"&\u{1b}[2J";
    let mut journal = fixture::cards();
    for trial in &mut journal.trials {
        let journal::record::Outcome::Measured(measured) = &mut trial.outcome else {
            continue;
        };
        let Figures::Device(device) = &mut measured.figures else {
            continue;
        };
        match &mut device.found {
            DeviceRecord::Kat(rows) => {
                for row in rows {
                    row.case.push_str(evil);
                    row.outcome = journal::record::KatOutcome::Error(evil.into());
                }
            }
            DeviceRecord::Fatigue(segments) => {
                for one in segments.iter_mut().flat_map(|segment| &mut segment.devices) {
                    one.reasons = vec![evil.into()];
                }
            }
            _ => {}
        }
    }
    let documents = report::build(&journal);
    // The page's own.
    assert_eq!(documents.html.matches("<script").count(), 1);
    assert!(!documents.markdown.contains("<script"));
    assert!(!crate::terminal(&journal, None, 100, false).contains('\u{1b}'));
    parse(&journal);
}
