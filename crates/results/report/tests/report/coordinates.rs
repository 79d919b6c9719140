//! A table prints every coordinate that varies in it: no two of its columns have the same heading,
//! and no two of its rows the same labels.

use crate::fixture;
use campaign::HostFacts;
use journal::Journal;
use std::collections::BTreeSet;

/// A table of a Markdown document.
struct Table {
    caption: String,
    heads: Vec<String>,
    labels: usize,
    rows: Vec<Vec<String>>,
}

fn tables(markdown: &str) -> Vec<Table> {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim_start_matches('|').trim_end_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let mut found = Vec::new();
    let mut caption = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("**") {
            caption = line.to_owned();
        }
        let Some(rule) = lines.peek().filter(|rule| rule.starts_with("| --")) else {
            continue;
        };
        let labels = cells(rule).iter().take_while(|cell| *cell == "---").count();
        let mut table = Table {
            caption: caption.clone(),
            heads: cells(line),
            labels,
            rows: Vec::new(),
        };
        lines.next();
        while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
            let mut row = cells(line);
            // An empty label is that of the row above.
            for (at, above) in table
                .rows
                .last()
                .into_iter()
                .flatten()
                .enumerate()
                .take(labels)
            {
                if row[at].is_empty() {
                    row[at] = above.clone();
                }
            }
            table.rows.push(row);
        }
        found.push(table);
    }
    found
}

/// The tables of figures by setting.
const CAPTIONS: [&str; 8] = [
    "**TCP payload throughput",
    "**Payload throughput",
    "**UDP by datagram size",
    "**Round-trip time by ping",
    "**Throughput by frame size",
    "**Load",
    "**Maximum receive rate",
    "**Back-to-back frames",
];

fn faults(name: &str, journal: &Journal) -> Vec<String> {
    let mut faults = Vec::new();
    let markdown = report::build(journal).markdown;
    let tables = tables(&markdown);
    let is_checked = |table: &&Table| CAPTIONS.iter().any(|one| table.caption.starts_with(one));
    for table in tables.iter().filter(is_checked) {
        let heads: BTreeSet<&String> = table.heads.iter().collect();
        if heads.len() != table.heads.len() {
            faults.push(format!("{name}: {}: {:?}", table.caption, table.heads));
        }
        let mut keys = BTreeSet::new();
        for row in &table.rows {
            if !keys.insert(&row[..table.labels]) {
                faults.push(format!("{name}: {}: two rows {row:?}", table.caption));
                break;
            }
        }
    }
    faults
}

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    /// Some of these values, as a list of YAML.
    fn some(&mut self, values: &[&str]) -> String {
        let from = self.below(values.len());
        let count = 1 + self.below(values.len());
        let mut chosen: Vec<&str> = values
            .iter()
            .copied()
            .cycle()
            .skip(from)
            .take(count)
            .collect();
        chosen.sort_unstable();
        chosen.dedup();
        format!("[{}]", chosen.join(", "))
    }
}

/// A campaign with any axes in any combination.
fn campaign_text(seed: u64) -> String {
    let mut dice = Dice(seed);
    let mtus = ["1300 B", "1500 B", "9000 B"];
    let mut trials = Vec::new();
    // Searched or given, or both in one campaign.
    let tunes = [&["true"][..], &["false"], &["true", "false"]][dice.below(3)];
    for tune in tunes {
        let streams = match *tune {
            "false" if dice.below(2) == 0 => format!(", streams: {}", dice.some(&["4", "8"])),
            _ => String::new(),
        };
        trials.push(format!(
            "tcp: {{ mtu: {}, cores: {}, offloads: {}, tune: {tune}, direction: {}{streams} }}",
            dice.some(&mtus),
            dice.some(&["1", "2", "4"]),
            dice.some(&["on", "off"]),
            dice.some(&["a-to-b", "b-to-a"]),
        ));
        trials.push(format!(
            "udp: {{ mtu: {}, cores: {}, offloads: {}, tune: {tune}, datagram: {} }}",
            dice.some(&mtus),
            dice.some(&["1", "2"]),
            dice.some(&["on", "off"]),
            dice.some(&["64 B", "512 B", "1200 B"]),
        ));
    }
    trials.push(format!(
        "ping: {{ mtu: {}, payload: {}, offloads: {} }}",
        dice.some(&mtus),
        dice.some(&["56 B", "1000 B"]),
        dice.some(&["on", "off"]),
    ));
    trials.push(format!(
        "load: {{ frame: {}, rate: {}, duration: {} }}",
        dice.some(&["64 B", "512 B", "1518 B"]),
        dice.some(&["10 k frames/s", "100 k frames/s"]),
        dice.some(&["1 s", "2 s"]),
    ));
    trials.push(format!(
        "mrr: {{ frame: {}, flows: {}, cores: {} }}",
        dice.some(&["64 B", "512 B"]),
        dice.some(&["4", "64"]),
        dice.some(&["1", "2"]),
    ));
    format!(
        "campaign: random\nrepeats: 1\nduts: [direct, cipherbench: {{ workers: {} }}]\ntrials:\n  - {}\n",
        dice.some(&["1", "2"]),
        trials.join("\n  - ")
    )
}

#[test]
fn a_table_prints_every_coordinate_that_varies_in_it() {
    let host = HostFacts { cores: 32 };
    let mut planned = 0;
    let mut refused = Vec::new();
    let mut found = Vec::new();
    for seed in 0..24 {
        let text = campaign_text(seed);
        // Two trials of one campaign may collide: such a campaign is refused.
        let campaign = match campaign::from_text("random.yaml", &text) {
            Ok(campaign) => campaign,
            Err(error) => {
                refused.push(error.to_string());
                continue;
            }
        };
        let plan = match campaign.plan(&campaign.usual_lab(), &host) {
            Ok(plan) => plan,
            Err(error) => {
                refused.push(error.to_string());
                continue;
            }
        };
        planned += 1;
        let journal = fixture::Maker::new(plan).finish();
        found.extend(faults(&format!("seed {seed}\n{text}"), &journal));
    }
    assert!(
        planned >= 12,
        "{planned} campaigns: refused: {}",
        refused.join("\n")
    );
    assert!(
        found.is_empty(),
        "{} faults, the first: {}",
        found.len(),
        found[0]
    );
}

#[test]
fn the_shipped_campaigns_print_every_coordinate_that_varies() {
    for name in ["matrix", "cores", "tcp-users", "vut-fekt-100g"] {
        let found = faults(name, &fixture::shipped(name));
        assert!(found.is_empty(), "{}", found[0]);
    }
}

/// Cores of each station are a setting of the table, also where the tool's streams follow them and
/// are searched anyway.
#[test]
fn cores_are_in_the_table_of_a_campaign_whose_parameters_are_searched() {
    let markdown = report::build(&fixture::shipped("matrix")).markdown;
    let tables = tables(&markdown);
    let tcp = tables
        .iter()
        .find(|table| table.caption.starts_with("**TCP payload throughput"));
    let tcp = tcp.expect("there is a table of TCP");
    let words = tcp.heads.join(" ") + &tcp.caption;
    assert!(words.contains("Cores") || words.contains("core"), "{words}");
    let distinct: BTreeSet<&String> = tcp.heads.iter().collect();
    assert_eq!(distinct.len(), tcp.heads.len(), "{:?}", tcp.heads);
}

/// A label that is cut to a letter or two says nothing.
#[test]
fn labels_of_charts_are_readable_or_not_there() {
    let runs = [
        ("matrix", fixture::shipped("matrix")),
        ("vut-fekt-100g", fixture::shipped("vut-fekt-100g")),
        ("large", fixture::large()),
        ("dozen", fixture::dozen()),
        ("random 3", fixture::random(3)),
        ("random 5", fixture::random(5)),
    ];
    for (name, journal) in runs {
        let html = report::build(&journal).html;
        let page = scraper::Html::parse_document(&html);
        for label in crate::html::select(&page, "figure svg text") {
            let label = crate::html::text(label);
            let is_stump = label.ends_with('…') && label.chars().count() < 8;
            assert!(!is_stump, "{name}: {label}");
        }
    }
}
