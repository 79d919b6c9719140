//! Rankings and suites in each document.

use crate::fixture;
use crate::html::{parse, select, text};
use crate::machine::{json, rows};
use journal::Journal;
use plan::Adapter;
use std::collections::BTreeSet;

const LINE: Option<u64> = Some(10_000_000_000);

/// The rows of `results.csv`, by column.
fn csv(journal: &Journal) -> Vec<Vec<(String, String)>> {
    let mut rows = rows(&report::build(journal).csv).into_iter();
    let keys = rows.next().unwrap();
    rows.map(|fields| keys.iter().cloned().zip(fields).collect())
        .collect()
}

fn field<'r>(row: &'r [(String, String)], key: &str) -> &'r str {
    &row.iter().find(|(known, _)| known == key).unwrap().1
}

#[test]
fn a_ranking_has_a_chart_with_a_figure_for_each_device_and_reference() {
    let (_, page) = parse(&fixture::peers(5));
    let [tcp, ping] = &select(&page, "#ranking svg")[..] else {
        panic!("a chart for each group")
    };
    // Five devices with a figure, the baseline and the control; TCP has CPU time beside it.
    let count = |chart: &scraper::ElementRef<'_>, shape| {
        let shapes = scraper::Selector::parse(shape).unwrap();
        chart.select(&shapes).count()
    };
    // Throughputs span decades: marks instead of bars.
    let counts = |chart| [count(chart, "path"), count(chart, "rect")];
    assert_eq!((counts(tcp), counts(ping)), ([14, 0], [0, 7]));
    let contents = select(&page, "nav a").into_iter().map(text);
    assert_eq!(contents.take(2).collect::<Vec<_>>(), ["Ranking", "Suites"]);
}

#[test]
fn the_summary_comes_first_and_is_a_table_of_many_devices() {
    let first_sections = |journal: &Journal| -> Vec<String> {
        let (_, page) = parse(journal);
        let found = select(&page, "main > section[id]");
        let ids = found.iter().filter_map(|section| section.attr("id"));
        ids.filter(|id| ["ranking", "summary"].contains(id))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(first_sections(&fixture::peers(5)), ["summary", "ranking"]);
    assert_eq!(first_sections(&fixture::quick()), ["summary"]);
    let (_, page) = parse(&fixture::peers(5));
    assert_eq!(select(&page, "#summary .soundness").len(), 1);
    // A row for each device with a figure, and the reason of the one without.
    assert_eq!(select(&page, "#summary .grid tbody tr").len(), 6);
    assert_eq!(select(&page, "#summary .grid td strong").len(), 18);
    let summary = text(select(&page, "#summary")[0]);
    assert!(summary.contains("gotatun: No figure: "), "{summary}");
    let findings = select(&page, "#summary .findings li");
    assert!(
        text(findings[0])
            .starts_with("Payload throughput, TCP, MTU 1400 B, 1 core: cipherbench is best, "),
        "{}",
        text(findings[0])
    );
}

#[test]
fn where_nothing_is_to_be_compared_there_is_no_section() {
    let (_, page) = parse(&fixture::quick());
    assert!(select(&page, "#ranking, #suites").is_empty());
    let result = json(&fixture::quick());
    assert_eq!(result["rankings"], serde_json::json!([]));
    assert_eq!(result["suites"], serde_json::json!([]));
}

#[test]
fn each_number_of_repeats_says_what_its_intervals_are() {
    for (repeats, words) in [
        (1, "one repeat: no interval, and no order is sure"),
        (3, "intervals: 95 %, Student's t on logarithms"),
        (5, "intervals: 95 %, Student's t on logarithms"),
    ] {
        let documents = report::build(&fixture::peers(repeats));
        assert!(documents.markdown.contains(words), "{words}");
        assert!(
            documents.html.replace('\u{a0}', " ").contains(words),
            "{words}"
        );
    }
}

/// Without scatter no order is shown, and a reader must see why, and the figures.
#[test]
fn one_repeat_decides_no_order_and_shows_both_ends() {
    let text = crate::terminal(&fixture::peers(1), None, 400, false);
    let line = text
        .lines()
        .find(|line| line.starts_with("- Payload throughput"));
    let line = line.expect(&text);
    assert!(
        line.contains(": the repeats do not decide the order of "),
        "{line}"
    );
    assert!(
        line.contains("; highest mean cipherbench, 2.70 Gbit/s; lowest "),
        "{line}"
    );
    assert!(line.ends_with(" shows no scatter."), "{line}");
    assert!(!line.contains(" is best"), "{line}");
    let answer = "the highest mean of 4 devices, whose order these repeats do not decide";
    assert!(text.contains(answer), "{text}");
    // The brief form has the figure of a ratio, and the baseline of a round trip.
    let brief = crate::brief(&fixture::peers(1), None, 400, false);
    let line = brief.lines().find(|line| line.starts_with("cipherbench: "));
    let line = line.expect(&brief);
    assert!(line.contains(" × direct, 2.70 Gbit/s; "), "{line}");
    assert!(line.contains(" µs more than direct"), "{line}");
}

#[test]
fn a_device_that_failed_says_so_in_the_ranking_and_why_once_before() {
    let text = crate::terminal(&fixture::peers(3), None, 200, false);
    let ranking = text.split("Ranking: payload throughput").nth(1).unwrap();
    let row = ranking
        .lines()
        .find(|line| line.contains("gotatun"))
        .unwrap();
    assert!(row.contains("failed"), "{row}");
    assert_eq!(text.matches("`gotatun` is not here").count(), 2, "{text}");
}

#[test]
fn rows_of_a_cell_have_its_rank_and_its_overhead() {
    let journal = fixture::peers(5);
    for row in csv(&journal) {
        let cell = field(&row, "cell");
        let tcp = cell.starts_with("tcp/");
        let found = (field(&row, "rank"), field(&row, "rank_last"));
        let wanted = match cell.rsplit_once('/').unwrap().1 {
            "cipherbench" if tcp => ("1", "1"),
            "wireguard-go" | "boringtun" if tcp => ("2", "3"),
            "direct" | "null" | "gotatun" => ("", ""),
            _ => continue,
        };
        assert_eq!(found, wanted, "{cell}");
        let has_overhead = tcp && !cell.ends_with("/direct");
        assert_eq!(
            !field(&row, "overhead_bytes").is_empty(),
            has_overhead,
            "{cell}"
        );
    }
}

#[test]
fn a_ceiling_is_of_the_line_where_it_has_a_rate_and_else_of_the_baseline() {
    for (link_bps, basis, words) in [
        (
            LINE,
            "line-rate",
            "ceiling: rate of such packets on a link of 10 Gbit/s",
        ),
        (
            None,
            "baseline",
            "ceiling: the links have no rate, so it is the figure of direct",
        ),
    ] {
        let journal = fixture::suites(link_bps);
        let result = json(&journal);
        let ceilings = result["cells"].as_array().unwrap().iter();
        for cell in ceilings.filter(|cell| cell["dut"] != "direct") {
            assert_eq!(cell["ceiling"]["basis"], basis);
        }
        assert!(report::build(&journal).markdown.contains(words), "{words}");
    }
}

#[test]
fn the_suites_of_two_devices_are_summed_up_by_device() {
    let mut journal = fixture::suites(LINE);
    for cell in &mut journal.header.plan.cells {
        if let Adapter::Cipherbench(encryptor) = &mut cell.dut.adapter {
            encryptor.tunnels = 1 + u16::from(cell.dut.name.starts_with("aes-128"));
        }
    }
    let page = report::build(&journal).markdown;
    let facts = page.lines().filter_map(|line| line.split_once(": fastest"));
    let named: BTreeSet<&str> = facts.clone().map(|(name, _)| name).collect();
    assert_eq!((named.len(), facts.count()), (4, 4), "{named:?}");
}

#[test]
fn the_chart_of_suites_goes_from_the_oldest_to_the_strongest_and_marks_the_insecure() {
    let (_, page) = parse(&fixture::suites(LINE));
    let charts = select(&page, "#suites svg");
    assert_eq!(charts.len(), 2);
    let labels = scraper::Selector::parse("text.label[text-anchor=end]").unwrap();
    let names: Vec<String> = charts[0]
        .select(&labels)
        .map(text)
        .filter(|text| !text.starts_with('+') && !text.ends_with('%'))
        .collect();
    assert_eq!(
        names,
        [
            "none, SHA-256 (insecure)",
            "DES-CBC, MD5 (insecure)",
            "3DES-CBC, SHA-1 (insecure)",
            "AES-128-CBC, MD5 (insecure)",
            "AES-128-CBC, SHA-1",
            "AES-128-CBC, SHA-256",
            "AES-256-CBC, SHA-512",
            "ChaCha20-Poly1305",
            "AES-128-GCM",
            "AES-256-GCM",
        ]
    );
}

#[test]
fn impairments_are_rows_with_the_ratio_of_each_device_to_the_figure_without_one() {
    let (_, page) = parse(&fixture::weather());
    let cells = |selector: &str| -> Vec<String> {
        let found = select(&page, selector).into_iter();
        found.map(|cell| text(cell).trim().to_owned()).collect()
    };
    let head = cells("#weather thead th");
    assert_eq!(head[0], "Impairment");
    assert_eq!(head.len(), 4);
    assert_eq!(cells("#weather tbody th"), ["none", "lossy"]);
    let figures = cells("#weather tbody td");
    assert_eq!(figures.len(), 6);
    let (without, under) = figures.split_at(3);
    assert!(
        without.iter().all(|cell| cell.ends_with("(1.00)")),
        "{figures:?}"
    );
    assert!(
        under.iter().all(|cell| cell.contains("bit/s (")),
        "{figures:?}"
    );
    // The tables of TCP tell the settings apart.
    let settings = text(select(&page, "#tcp")[0]);
    assert!(settings.contains("impairment lossy"), "{settings}");
    let rows = csv(&fixture::weather());
    let profiles = rows.iter().map(|row| field(row, "impair"));
    // Three repeats of three devices.
    assert_eq!(profiles.filter(|name| *name == "lossy").count(), 9);
}

#[test]
fn each_row_of_a_ranking_has_its_rank_and_the_interval_of_its_ratio_to_the_best() {
    let text = crate::terminal(&fixture::peers(5), None, 200, false);
    let table = text.split("Ranking: median round trip").nth(1).unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with("Rank"));
    let rows: Vec<&str> = rows.skip(2).take(5).collect();
    for row in &rows {
        assert!(row.starts_with("1–5 "), "a shared rank is not blank: {row}");
    }
    // Each but the best has the interval of its ratio, which contains 1.
    let intervals = rows.iter().filter_map(|row| {
        // The ratio to the yardstick follows, without an interval.
        let (_, ends) = row.rsplit_once(')')?.0.rsplit_once('(')?;
        let (low, high) = ends.split_once('–')?;
        Some((low.parse::<f64>().ok()?, high.parse::<f64>().ok()?))
    });
    let intervals: Vec<(f64, f64)> = intervals.collect();
    assert_eq!(intervals.len(), 4, "{rows:?}");
    assert!(
        intervals
            .iter()
            .all(|(low, high)| *low < 1.0 && *high > 1.0)
    );
}

#[test]
fn commands_on_a_terminal_name_the_run() {
    let folder = std::path::Path::new("runs/20261120T113000Z-quick");
    let folders = report::Folders {
        run: folder,
        documents: folder,
    };
    for journal in [
        fixture::troubled(),
        fixture::peers(5),
        fixture::in_progress(),
    ] {
        for text in [
            crate::terminal(&journal, Some(folders), 500, false),
            crate::brief(&journal, Some(folders), 500, false),
        ] {
            assert!(!text.contains(" RUN"), "{text}");
            let commands = ["resume", "report"].iter();
            let mut commands =
                commands.map(|name| format!("cipherbench {name} {}", folder.display()));
            assert!(commands.any(|command| text.contains(&command)), "{text}");
        }
    }
}

#[test]
fn commands_in_documents_name_the_run_or_explain_its_placeholder() {
    for mut journal in [
        fixture::troubled(),
        fixture::peers(5),
        fixture::in_progress(),
    ] {
        let documents = report::build(&journal);
        for text in [&documents.html, &documents.markdown] {
            assert!(!text.contains(" RUN"), "{text}");
            let folder = "runs/20261120T113000Z-";
            let commands = ["resume", "report", "compare", "verify"];
            let mut commands = commands
                .map(|name| format!("cipherbench {name} {folder}"))
                .into_iter();
            assert!(commands.any(|command| text.contains(&command)), "{text}");
        }
        // A folder that a shell would need quoted is not printed.
        journal.header.command = ["cipherbench", "run", "--out", "my runs"]
            .map(String::from)
            .into();
        let documents = report::build(&journal);
        for text in [&documents.html, &documents.markdown] {
            assert!(
                text.contains("RUN in a command is the folder of this run"),
                "{text}"
            );
        }
    }
}

#[test]
fn sentences_of_the_short_form_are_not_cut() {
    for width in [60, 80, 120] {
        for journal in [
            fixture::troubled(),
            fixture::peers(5),
            fixture::frame_tests(),
        ] {
            let text = crate::brief(&journal, None, width, false);
            let cut = text.lines().find(|line| line.trim_end().ends_with('…'));
            assert_eq!(cut, None, "{text}");
        }
    }
}
