//! What documents say of frame tests.

use crate::fixture;
use crate::html::{parse, select, text};
use crate::machine::{json, rows};
use journal::Journal;
use journal::record::{CipherWatch, Figures, FrameTrial, LinkTraffic, Outcome, TrialReadings};
use std::collections::BTreeSet;

/// The rows of the first table whose caption begins so, each cell's text.
pub(crate) fn table(page: &scraper::Html, caption: &str) -> Vec<Vec<String>> {
    let all = select(page, "table");
    let found = all.iter().find(|table| {
        let title = scraper::Selector::parse("caption .title").unwrap();
        let title = table.select(&title).next().map(text).unwrap_or_default();
        title.starts_with(caption)
    });
    let found = found.unwrap_or_else(|| panic!("no table {caption}"));
    let row = scraper::Selector::parse("tr").unwrap();
    let cell = scraper::Selector::parse("th, td").unwrap();
    let cells = |row: scraper::ElementRef<'_>| row.select(&cell).map(text).collect();
    found.select(&row).map(cells).collect()
}

fn row<'t>(table: &'t [Vec<String>], label: &str) -> &'t [String] {
    let found = table.iter().find(|row| row[0].starts_with(label));
    found.unwrap_or_else(|| panic!("no row {label} in {table:?}"))
}

#[test]
fn the_evidence_shows_the_loss_of_each_direction_where_both_are_loaded() {
    let mut journal = fixture::frame_tests();
    let caption = "Loss by direction";
    let (_, page) = parse(&journal);
    let tables = select(&page, "table caption .title");
    assert!(!tables.iter().any(|title| text(*title).starts_with(caption)));
    let cell = journal.trials[0].cell.clone();
    let records = journal.trials.iter_mut();
    for record in records.filter(|record| record.cell == cell) {
        let Outcome::Measured(measured) = &mut record.outcome else {
            panic!("{record:?}")
        };
        let Figures::Frames(found) = &mut measured.figures else {
            panic!("{:?}", measured.figures)
        };
        for trial in &mut found.trials {
            let own = |received| FrameTrial {
                sent: 1000,
                intended: 1000,
                received,
                ..FrameTrial::default()
            };
            trial.directions = vec![own(980), own(1000)];
        }
    }
    let (_, page) = parse(&journal);
    let found = table(&page, caption);
    assert_eq!(found.len(), 2, "{found:?}");
    let lost = [2, 4].map(|column| found[1][column].as_str());
    assert_eq!(lost, ["2.0 %", "0"], "{found:?}");
}

#[test]
fn the_evidence_names_how_many_frame_trials_it_covers() {
    let mut journal = fixture::frame_tests();
    let (_, page) = parse(&journal);
    let tables = select(&page, "table caption .title");
    let caption = "Frame trials with evidence";
    assert!(!tables.iter().any(|title| text(*title).starts_with(caption)));
    // All but the first trial of the first repeat, which the filter did not see.
    let cell = journal.trials[0].cell.clone();
    let (mut trials, mut frames, mut unseen) = (0, 0, None);
    for record in journal
        .trials
        .iter_mut()
        .filter(|record| record.cell == cell)
    {
        let Outcome::Measured(measured) = &mut record.outcome else {
            panic!("{record:?}")
        };
        let Figures::Frames(found) = &mut measured.figures else {
            panic!("{:?}", measured.figures)
        };
        for trial in &mut found.trials {
            let is_seen = unseen.is_some();
            unseen = unseen.or(Some(trial.sent));
            trials += 1;
            frames += trial.sent;
            trial.readings = Some(Box::new(TrialReadings {
                cipher: Some(LinkTraffic::default()),
                watch: is_seen.then(CipherWatch::default),
                ..TrialReadings::default()
            }));
        }
    }
    let (_, page) = parse(&journal);
    let found = table(&page, caption);
    assert_eq!(found.len(), 2, "{found:?}");
    let covered = frames - unseen.unwrap();
    assert_eq!(
        found[1][1..4],
        [
            format!("{trials} of {trials}"),
            format!("{} of {trials}", trials - 1),
            format!("{covered} of {frames}")
        ]
    );
}

#[test]
fn the_vendors_table_has_a_column_per_size_and_marks_what_is_not_the_devices_limit() {
    let (_, page) = parse(&fixture::frame_tests());
    let found = table(&page, "Throughput by frame size in kpps, both");
    let head = [
        "Device",
        "64 B",
        "256 B",
        "512 B",
        "1024 B",
        "1518 B",
        "imix",
        "Mean frame rate",
        "Mean frame rate, all sizes",
    ];
    assert_eq!(found[0], head);
    let ours = row(&found, "cipherbench");
    assert_eq!(ours[1], "402 ± 1");
    assert_eq!(
        (ours[3].as_str(), ours[6].as_str()),
        ("395 ± 2 [4 of 5]", "< 1.00 *")
    );
    assert!(ours[4].ends_with(" L"), "{ours:?}");
    // The mean of 64, 256 and 512 B: the note lists the other sizes.
    assert_eq!(ours[7], "399 kpps");
    assert!(ours[8].ends_with(" kpps"), "{ours:?}");
    assert!(row(&found, "router")[1].ends_with(" T"), "{found:?}");
    let null = row(&found, "null");
    assert_eq!(null[0], "null (insecure; control: no encryption)");
    assert!(
        null[3].ends_with(" ?"),
        "two bands are inconclusive: {null:?}"
    );
    assert_eq!(row(&found, "straight")[0], "straight (tester alone)");
}

#[test]
fn every_verdict_has_its_sentence_and_every_figure_a_verdict() {
    let journal = fixture::frame_tests();
    let result = json(&journal);
    let mut limits = BTreeSet::new();
    for cell in result["cells"].as_array().unwrap() {
        assert_eq!(
            cell["frames"].is_null(),
            cell["verdict"].is_null(),
            "{}",
            cell["id"]
        );
        if let Some(reason) = cell["verdict"]["reason"].as_str() {
            assert!(reason.len() > 30 && reason.ends_with('.'), "{reason}");
            limits.insert(cell["verdict"]["limit"].as_str().unwrap().to_owned());
        }
    }
    let all = [
        "dut-limited",
        "inconclusive",
        "link-limited",
        "tester-limited",
    ];
    assert_eq!(limits, all.map(str::to_owned).into());
    let (_, page) = parse(&journal);
    let rows = table(&page, "What limits each figure");
    assert_eq!(
        rows.len() - 1,
        journal.header.plan.cells.len(),
        "the one with an invalid repeat too"
    );
}

#[test]
fn calibration_ports_goals_and_mixes_are_shown() {
    let (_, page) = parse(&fixture::frame_tests());
    let groups: BTreeSet<String> = table(&page, "Calibration")
        .into_iter()
        .skip(1)
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(groups.len(), 12);
    let ports = table(&page, "Ports of the tester");
    let receiver = row(&ports, "receiver");
    assert_eq!(receiver[1], "AF_PACKET");
    let why = receiver.last().unwrap();
    assert!(why.starts_with("AF_XDP needs"), "{receiver:?}");
    assert_eq!(row(&table(&page, "Search goals"), "pdr")[1], "0.5 %");
    let imix = table(&page, "Mixes of frame sizes");
    assert_eq!(imix[1][1..], ["7×64, 4×594, 1×1518", "361.8 B"]);
}

#[test]
fn a_single_repeat_is_said_where_its_interval_would_be() {
    let bound_of = |repeats: u32| {
        let mut journal = fixture::frame_tests();
        journal.header.plan.repeats = repeats;
        journal.trials.retain(|trial| trial.repeat <= repeats);
        let (_, page) = parse(&journal);
        table(&page, "Relevant bounds, both")[1][5].clone()
    };
    assert_eq!(bound_of(1), "n = 1: no interval");
    assert!(bound_of(2).ends_with(" kpps"), "{}", bound_of(2));
}

#[test]
fn each_chart_of_frames_has_a_table_beside_it() {
    let (_, page) = parse(&fixture::frame_tests());
    for (section, charts) in [("frames", 2), ("frame-loss", 1), ("frame-latency", 2)] {
        let found = select(&page, &format!("#{section} figure svg"));
        assert_eq!(found.len(), charts, "{section}");
        assert!(!select(&page, &format!("#{section} table")).is_empty());
    }
}

#[test]
fn csv_has_a_row_per_goal_load_and_figure() {
    let journal = fixture::frame_tests();
    let rows = rows(&report::build(&journal).csv);
    let column = |key: &str| rows[0].iter().position(|found| found == key).unwrap();
    let (cell, repeat, figure) = (column("cell"), column("repeat"), column("figure"));
    let of = |id: &str| -> Vec<&Vec<String>> {
        let own = |row: &&Vec<String>| row[cell] == id && row[repeat] == "3";
        rows.iter().filter(own).collect()
    };
    let kinds = |id: &str| -> Vec<&str> { of(id).iter().map(|row| row[figure].as_str()).collect() };
    let throughput = "throughput/frame=64/direction=both/cipherbench";
    assert_eq!(kinds(throughput), ["goal", "goal"]);
    let (lower, upper) = (column("lower_frames_per_s"), column("upper_frames_per_s"));
    let number = |row: &[String], at: usize| row[at].parse::<u64>().unwrap();
    for row in of(throughput) {
        assert!(number(row, lower) < number(row, upper));
        assert_eq!(row[column("verdict")], "dut-limited");
    }
    let latency = kinds("latency/frame=64/direction=both/null");
    assert_eq!(
        latency,
        ["goal", "goal", "latency", "latency", "latency", "latency"]
    );
    assert_eq!(
        kinds("back-to-back/frame=64/direction=both/null"),
        ["burst"]
    );
    assert_eq!(
        kinds("recovery/frame=64/direction=both/null"),
        ["goal", "goal", "recovery"]
    );
    let loads = of("loss-curve/frame=64/direction=both/null");
    assert_eq!(loads.len(), 8);
    for row in loads {
        let [sent, received, lost] =
            ["frames_sent", "frames_received", "frames_lost"].map(|key| number(row, column(key)));
        assert_eq!(sent, received + lost);
    }
    // The invalid trial has its row and no figure.
    assert_eq!(
        kinds("throughput/frame=512/direction=both/cipherbench"),
        [""]
    );
    // An irregular goal leaves its bound empty.
    let irregular = of("throughput/frame=imix/direction=both/cipherbench");
    assert_eq!(
        (irregular[0][lower].as_str(), irregular[1][lower].is_empty()),
        ("", false)
    );
}

/// The made-up run of a campaign, in a lab whose links have a rate.
fn run_of(text: &str) -> Journal {
    let campaign = campaign::from_text("c.yaml", text).unwrap();
    let lab = campaign::lab_from_text("l.yaml", "lab: l\nlink_rate: 2.5 Gbit/s\n").unwrap();
    let plan = campaign.plan(&lab, &campaign::HostFacts { cores: 8 });
    fixture::Maker::new(plan.unwrap()).finish()
}

/// Rows of all Markdown tables whose title begins so.
fn markdown_rows(markdown: &str, title: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.trim_start_matches(['#', '*', ' ']).starts_with(title) {
            continue;
        }
        let table = lines
            .by_ref()
            .skip_while(|line| !line.starts_with('|'))
            .take_while(|line| line.starts_with('|'));
        let cells = |line: &str| -> Vec<String> {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        };
        // The head, and the line under it.
        found.extend(table.skip(2).map(cells));
    }
    found
}

#[test]
fn no_cell_of_a_plan_is_left_out_of_the_tables() {
    let campaign = "\
campaign: all
repeats: 2
duts: [direct, cipherbench: { workers: [1, 2] }]
trials:
  - load: { frame: [64 B, 1518 B], rate: [max, 10 k frames/s, 20 k frames/s, 100 Mbit/s L1], duration: [1 s, 2 s] }
  - throughput: { frame: [64 B, 512 B, 1518 B] }
  - throughput: { frame: [64 B, 512 B], max_load: 200 k frames/s }
  - throughput: { frame: [64 B, 512 B], max_load: 1 Gbit/s L1 }
  - throughput: { frame: [64 B, 512 B], max_load: 1 Gbit/s L1, min_load: 2 k frames/s }
  - throughput: { frame: 512 B, ports: packet }
  - throughput: { frame: [imix, { 64 B: 7, 594 B: 4, 1518 B: 1 }], direction: [encrypt, both], duts: cipherbench }
  - throughput: { frame: 64 B, goals: [{ name: one, loss: 1 % }], max_load: 200 k frames/s }
  - loss-curve: { frame: [64 B, 512 B], step: 50 %, max_load: 100 k frames/s }
  - loss-curve: { frame: 64 B, step: 50 %, max_load: 200 k frames/s, duration: 2 s }
  - back-to-back: { frame: 64 B, bursts: 10 }
  - back-to-back: { frame: 64 B, bursts: 20 }
  - latency: { frame: [64 B, 512 B], max_load: 100 k frames/s, loads: 50 % }
  - latency: { frame: 64 B, max_load: 200 k frames/s, loads: 50 % }
  - recovery: { frame: 64 B, max_load: 100 k frames/s }
  - recovery: { frame: 64 B, max_load: 200 k frames/s, cores: 2 }
";
    let journal = run_of(campaign);
    let report = report::build(&journal);
    let markdown = &report.markdown;
    let cells = &journal.header.plan.cells;
    let of = |kind: &'static str| {
        cells
            .iter()
            .filter(move |cell| cell.measurement.name() == kind)
    };
    for (kind, title) in [
        ("load", "Load, both"),
        ("throughput", "Rates by layer"),
        ("back-to-back", "Back-to-back frames, both"),
        ("latency", "Latency under load, both"),
        ("recovery", "Recovery, both"),
    ] {
        let rows = markdown_rows(markdown, title);
        // Two sets with few columns stand side by side.
        let sets = of(kind).count() / rows.len().max(1);
        assert!(sets == 1 || sets == 2, "{kind}: {rows:#?}");
        assert_eq!(rows.len() * sets, of(kind).count(), "{kind}: {rows:#?}");
    }
    assert_eq!(markdown_rows(markdown, "CPU by role").len(), cells.len());
    let curves = markdown_rows(markdown, "Frame loss, both");
    let first = curves
        .iter()
        .filter(|row| row.contains(&"100 %".to_owned()));
    assert_eq!(first.count(), of("loss-curve").count());
    // Each table with its distinguishing text.
    for words in ["at 10 kpps", "at 20 kpps", "up to 200 kpps", "load=2kpps"] {
        assert!(markdown.contains(words), "{words}");
    }
    let page = scraper::Html::parse_document(&report.html);
    let mut captions: Vec<String> = select(&page, "caption").into_iter().map(text).collect();
    captions.retain(|caption| caption.contains("direction "));
    captions.sort_unstable();
    let repeated: Vec<_> = captions
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .collect();
    assert!(repeated.is_empty(), "{repeated:#?}");
}

#[test]
fn a_load_says_what_left_too_late_beside_what_never_left() {
    let campaign = "campaign: late\nrepeats: 1\nduts: [direct]\ncalibrate: off\n\
                    trials: [load: { frame: 64 B, rate: 100 k frames/s, duration: 1 s }]\n";
    let mut journal = run_of(campaign);
    let Outcome::Measured(measured) = &mut journal.trials[0].outcome else {
        panic!("{:?}", journal.trials[0].outcome);
    };
    let Figures::Frames(frames) = &mut measured.figures else {
        panic!("{measured:?}")
    };
    let trial = &mut frames.trials[0];
    // Twice the time that it should have taken: half of the frames were late.
    trial.elapsed_ns = 2 * trial.duration_ns;
    (trial.sent, trial.received) = (90_000, 90_000);
    let found = markdown_rows(&report::build(&journal).markdown, "Load, frames");
    let late = found[0].iter().position(|cell| cell == "45000");
    assert_eq!(
        late,
        found[0]
            .iter()
            .position(|cell| cell == "10000")
            .map(|place| place + 1)
    );
    assert!(late.is_some(), "{found:?}");
}

#[test]
fn a_headline_from_fewer_than_three_repeats_says_so() {
    let campaign = |repeats: u32| {
        let text = format!(
            "campaign: few\nrepeats: {repeats}\nduts: [cipherbench]\n\
             trials: [throughput: {{ frame: 64 B }}, latency: {{ frame: 64 B }}]\n"
        );
        report::build(&run_of(&text)).markdown
    };
    for (repeats, words) in [
        (1, "; one repeat; "),
        (2, "; two repeats "),
        (3, "; repeats "),
    ] {
        let markdown = campaign(repeats);
        for figure in ["- Throughput", "- Latency"] {
            let is_figure = |line: &str| line.starts_with(figure) && line.contains(words);
            assert!(markdown.lines().any(is_figure), "{markdown}");
        }
    }
}

#[test]
fn the_maximum_receive_rate_stands_beside_what_was_offered_and_lost() {
    let (_, page) = parse(&fixture::maximum_receive_rates());
    let found = table(&page, "Maximum receive rate");
    assert_eq!(
        found[0][1..5],
        ["Received", "Lost", "Offered", "Trial deviation"]
    );
    let ours = row(&found, "cipherbench");
    // Five repeats of ten trials: the generator's rate, and what the device made of it.
    assert_eq!((ours[8].as_str(), ours[3].as_str()), ("50", "1.52 Mpps"));
    assert!(
        ours[1].ends_with(')') && ours[1].contains(" kpps"),
        "{ours:?}"
    );
    assert!(ours[2].ends_with(" %"), "{ours:?}");
    // On a machine of two cores.
    assert_eq!(ours[9], "machine-limited");
    assert!(found.iter().all(|row| row.len() == 10), "{found:?}");
}

#[test]
fn each_step_of_a_service_passes_or_says_what_failed() {
    let (_, page) = parse(&fixture::services());
    let found = table(&page, "Service test");
    assert_eq!(found[0][1..4], ["Step", "Offered", "Received"]);
    let of = |device: &str| {
        let from = found
            .iter()
            .position(|row| row[0].starts_with(device))
            .unwrap();
        &found[from..from + 5]
    };
    // It carries 402 kpps: the committed rate, and less than the excess, which may be lost. The
    // device's name spans its rows.
    let ours = of("cipherbench");
    let back = |row: &[String], place: usize| row[row.len() - place].clone();
    let from_end = |title: &str| {
        let place = found[0].iter().position(|known| known == title).unwrap();
        found[0].len() - place
    };
    let steps_from_end = from_end("Step");
    let steps: Vec<String> = ours.iter().map(|row| back(row, steps_from_end)).collect();
    let expected = [
        "25 % of CIR",
        "50 % of CIR",
        "75 % of CIR",
        "100 % of CIR",
        "CIR + EIR",
    ];
    assert_eq!(steps, expected);
    assert!(
        ours[..4].iter().all(|row| back(row, 1) == "passed"),
        "{ours:?}"
    );
    assert!(back(&ours[4], from_end("Lost")).ends_with(" %"), "{ours:?}");
}

/// A curve may lose frames at its lowest load alone; the fact counts that load.
#[test]
fn a_chart_claims_no_loss_up_to_a_load_only_if_none_below_it_lost() {
    let mut journal = fixture::frame_tests();
    let curve = "loss-curve/frame=64/direction=both/null";
    for record in journal.trials.iter_mut().filter(|it| it.cell == curve) {
        let Outcome::Measured(measured) = &mut record.outcome else {
            continue;
        };
        if let Figures::Frames(found) = &mut measured.figures {
            let lowest = found.trials.last_mut().unwrap();
            let bytes = lowest.received_bytes / lowest.received;
            lowest.received -= 1000;
            lowest.received_bytes -= 1000 * bytes;
        }
    }
    let words = |journal: &Journal| {
        let (_, page) = parse(journal);
        let described: String = select(&page, "#frame-loss svg desc")
            .into_iter()
            .map(text)
            .collect();
        let null = described.find("null").unwrap();
        described[null..].split("; ").next().unwrap().to_owned()
    };
    assert!(words(&fixture::frame_tests()).contains(": no loss up to "));
    assert!(words(&journal).contains(": loss at the lowest load, "));
}

/// Devices whose own highest loads differ are compared at one load.
#[test]
fn a_loss_curve_states_the_rate_of_100_per_cent_and_the_loss_at_one_load() {
    let rows = |journal: &Journal| table(&parse(journal).1, "Frames lost by load");
    let equal = rows(&fixture::frame_tests());
    assert_eq!(row(&equal, "null")[1], "1.00 Mpps");
    assert!(
        !equal
            .concat()
            .contains(&"Lost at the load of all".to_owned())
    );
    let mut journal = fixture::frame_tests();
    for cell in &mut journal.header.plan.cells {
        if let plan::Measurement::Frames(test) = &mut cell.measurement
            && let plan::Procedure::LossCurve(curve) = &mut test.procedure
        {
            curve.max_load = None;
        }
    }
    let curve = "loss-curve/frame=64/direction=both/null";
    for record in journal.trials.iter_mut().filter(|it| it.cell == curve) {
        let Outcome::Measured(measured) = &mut record.outcome else {
            continue;
        };
        if let Figures::Frames(found) = &mut measured.figures {
            for trial in &mut found.trials {
                trial.load /= 2;
                trial.elapsed_ns *= 2;
                trial.duration_ns *= 2;
            }
        }
    }
    let apart = rows(&journal);
    assert!(
        apart[0].contains(&"Lost at the load of all".to_owned()),
        "{apart:?}"
    );
    // The loss at its 100 % is in the last column.
    let at_highest = row(&equal, "null").last().unwrap().clone();
    assert_eq!(row(&apart, "null")[1..3], ["500 kpps", &*at_highest]);
    // Half of its 100 % is 500 kpps; the columns begin at 30 %.
    let ours = row(&apart, "cipherbench");
    assert_eq!(ours[1], "1.00 Mpps");
    assert_eq!(ours[2], ours[5], "{ours:?}");
    assert_eq!(row(&apart, "router")[2], "0 at 900 kpps");
}

/// Without a given highest load each repeat finds its own: a mean over them is not of one load.
#[test]
fn a_loss_curve_whose_repeats_have_other_loads_says_so() {
    let mut journal = fixture::frame_tests();
    for cell in &mut journal.header.plan.cells {
        if let plan::Measurement::Frames(test) = &mut cell.measurement
            && let plan::Procedure::LossCurve(curve) = &mut test.procedure
        {
            curve.max_load = None;
        }
    }
    let note = "In brackets: 100";
    let (before, page) = parse(&journal);
    assert!(
        !before.contains(note),
        "{:?}",
        table(&page, "Frames lost by load")
    );
    let curve = "loss-curve/frame=64/direction=both/null";
    for record in journal.trials.iter_mut() {
        let Outcome::Measured(measured) = &mut record.outcome else {
            continue;
        };
        if record.cell == curve
            && record.repeat == 1
            && let Figures::Frames(found) = &mut measured.figures
        {
            for trial in &mut found.trials {
                trial.load /= 2;
                trial.elapsed_ns *= 2;
                trial.duration_ns *= 2;
            }
        }
    }
    let (after, page) = parse(&journal);
    assert!(after.contains(note));
    let rows = table(&page, "Frames lost by load");
    let highest = &row(&rows, "null")[1];
    assert!(highest.ends_with(" (500 kpps to 1.00 Mpps)"), "{highest}");
}
