//! `results.json` and `results.csv`.

use crate::fixture;
use journal::Journal;
use plan::{Host, Hosts, LabKind};
use serde_json::Value;

pub(crate) fn json(journal: &Journal) -> Value {
    serde_json::from_str(&report::build(journal).json).unwrap()
}

#[test]
fn every_result_of_an_insecure_device_says_so_and_why() {
    let journal = fixture::insecure();
    let documents = report::build(&journal);
    let result: Value = serde_json::from_str(&documents.json).unwrap();
    let cells = result["cells"].as_array().unwrap();
    for cell in cells {
        let why = match cell["dut"].as_str().unwrap() {
            "3des" => "blocks of 64 bits give plaintext away (CVE-2016-2183)",
            "open" => "it does not encrypt",
            "wire" => "L2TPv3 without ESP does not encrypt",
            "plain" => "the engine neither encrypts nor authenticates",
            secure => {
                assert!(["direct", "many"].contains(&secure), "{secure}");
                assert_eq!(cell["insecure"], Value::Null);
                continue;
            }
        };
        assert_eq!(cell["insecure"], why);
        for text in [&documents.html, &documents.markdown, &documents.csv] {
            assert!(text.contains(why), "{why}");
        }
    }
    let shown = crate::terminal(&journal, None, 200, false);
    for text in [&documents.html, &documents.markdown, &shown] {
        for name in ["3des", "open", "wire", "plain"] {
            assert!(text.contains(&format!("{name} (insecure)")), "{name}");
        }
        assert!(text.contains("plain (insecure; control: no encryption)"));
        assert!(!text.contains("plain (control"));
        assert!(!text.contains("many (insecure)"));
    }
    assert!(
        documents
            .html
            .contains("100 tunnels, engine auto, aggregated, polling")
    );
}

#[test]
fn lint_finds_nothing_in_our_results_and_one_changed_rate() {
    let mut figures = 0;
    for journal in [
        fixture::quick(),
        fixture::peers(3),
        fixture::scaling(),
        fixture::frame_tests(),
        fixture::hostile_frames(),
    ] {
        let json = report::build(&journal).json;
        let checked = lint::lint("results.json", &json).unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(checked.findings, []);
        figures += checked.figures;
    }
    assert!(figures > 50, "only {figures} figures were checked");

    let mut result = json(&fixture::frame_tests());
    let cells = result["cells"].as_array_mut().unwrap();
    let (at, cell) = (0..)
        .zip(cells)
        .find(|(_, cell)| cell["frames"]["throughput"]["goals"][0]["lower"].is_object())
        .expect("a throughput");
    let rate = &mut cell["frames"]["throughput"]["goals"][0]["lower"]["l2_bps"]["mean"];
    *rate = (rate.as_f64().unwrap() * 1.01).into();
    let findings = lint::lint("results.json", &result.to_string())
        .unwrap_or_else(|it| panic!("{it}"))
        .findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule.id(), "layers-disagree");
    assert_eq!(
        findings[0].place.path,
        format!("cells[{at}].frames.throughput.goals[0].lower.l2_bps")
    );
}

#[test]
fn the_result_keeps_to_the_published_schema() {
    let schema: Value = serde_json::from_str(&report::json_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for journal in [
        fixture::quick(),
        fixture::troubled(),
        fixture::in_progress(),
        fixture::empty(),
        fixture::peers(3),
        fixture::suites(None),
        fixture::large(),
        fixture::scaling(),
        fixture::hostile(),
        fixture::frame_tests(),
        fixture::hostile_frames(),
    ] {
        let result = json(&journal);
        let problems: Vec<String> = validator
            .iter_errors(&result)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{problems:#?}");
    }
    // The schema is able to refuse.
    let mut wrong = json(&fixture::quick());
    wrong["schema"] = "cipherbench-result/2".into();
    assert!(!validator.is_valid(&wrong));
    let mut wrong = json(&fixture::quick());
    wrong["cells"][0]["bulk"]["payload_throughput_bps"]["mean"] = "fast".into();
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn the_result_says_what_was_run_and_what_came_of_it() {
    let result = json(&fixture::quick());
    assert_eq!(result["schema"], "cipherbench-result/1");
    assert_eq!(result["run"]["started_utc"], "2026-11-20T11:30:00Z");
    assert_eq!(result["progress"]["trials_measured"], 42);
    assert_eq!(result["cells"].as_array().unwrap().len(), 14);
    assert_eq!(result["trials"].as_array().unwrap().len(), 42);
    let ours = &result["cells"][1];
    assert_eq!(
        (&ours["dut"], &ours["status"]),
        (&"cipherbench".into(), &"measured".into())
    );
    let interval = |cell: &Value| cell["bulk"]["payload_throughput_bps"]["interval_95"].clone();
    assert_eq!(interval(ours)["kind"], "student-t");
    assert!(interval(ours)["low"].as_f64() < interval(ours)["high"].as_f64());
    let single = json(&fixture::peers(1));
    assert_eq!(interval(&single["cells"][1])["kind"], "too-few-repeats");
}

#[test]
fn a_cell_without_a_figure_has_null_in_its_place() {
    let result = json(&fixture::troubled());
    let cells = result["cells"].as_array().unwrap();
    let without: Vec<&Value> = cells
        .iter()
        .filter(|cell| cell["status"] == "invalid" || cell["status"] == "failed")
        .collect();
    assert_eq!(without.len(), 1);
    for cell in without {
        assert!(cell["bulk"].is_null() && cell["cpu"].is_null());
        assert!(!cell["reasons"].as_array().unwrap().is_empty());
    }
}

/// Reads CSV as RFC 4180 has it, independently of how it is written.
pub(crate) fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![];
    let (mut row, mut field, mut quoted) = (vec![], String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, quoted) {
            ('"', true) if characters.peek() == Some(&'"') => field.extend(characters.next()),
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(std::mem::take(&mut field)),
            ('\r', false) => {}
            ('\n', false) => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            (c, _) => field.push(c),
        }
    }
    assert!(
        !quoted && row.is_empty() && field.is_empty(),
        "the last line has no end"
    );
    rows
}

#[test]
fn csv_has_a_row_per_trial_and_a_value_per_column() {
    for journal in [
        fixture::quick(),
        fixture::troubled(),
        fixture::empty(),
        fixture::hostile(),
    ] {
        let rows = rows(&report::build(&journal).csv);
        assert_eq!(rows.len(), journal.trials.len() + 1);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    }
}

#[test]
fn csv_gives_no_figure_for_a_trial_that_is_invalid_or_failed() {
    let rows = rows(&report::build(&fixture::troubled()).csv);
    let column = |key: &str| rows[0].iter().position(|found| found == key).unwrap();
    let (outcome, figure, reasons) = (
        column("outcome"),
        column("payload_throughput_bps"),
        column("reasons"),
    );
    let protocol = column("protocol");
    for row in &rows[1..] {
        let measured = row[outcome] == "measured";
        assert_eq!(
            row[figure].is_empty(),
            !measured || row[protocol] == "ping",
            "{row:?}"
        );
        assert_eq!(row[reasons].is_empty(), measured, "{row:?}");
    }
}

#[test]
fn csv_keeps_failed_trials_that_were_made_again() {
    let mut journal = fixture::troubled();
    let again = journal
        .trials
        .iter()
        .find(|trial| trial.cell.contains("9000/cores=1") && trial.cell.ends_with("bench"));
    let mut again = again.unwrap().clone();
    again.started_unix_ns += 1;
    journal.trials.push(again);
    let rows = rows(&report::build(&journal).csv);
    let counts = rows[0].iter().position(|found| found == "counts").unwrap();
    assert_eq!(rows.iter().filter(|row| row[counts] == "false").count(), 1);
}

#[test]
fn busy_cores_of_two_hosts_are_none_of_the_machine_of_the_run() {
    let mut run = fixture::quick();
    let said = "cores kept busy of 2 cores";
    assert!(report::build(&run).markdown.contains(said));
    let host = Host {
        reach: vec!["ssh".into()],
        interface: Some("eth1".into()),
        cpus: Vec::new(),
        program: None,
    };
    run.header.plan.lab.kind = LabKind::Hosts;
    run.header.plan.lab.hosts = Some(Hosts {
        a: host.clone(),
        b: host,
        reconnect_ns: 0,
    });
    let markdown = report::build(&run).markdown;
    assert!(markdown.contains("cores kept busy") && !markdown.contains(said));
}
