//! The built-in references, and files of published figures.

use super::*;
use crate::HostFacts;
use crate::file::from_text;
use plan::Plan;
use std::collections::BTreeSet;

fn planned(name: &str, is_quick: bool) -> Plan {
    let path = format!(
        "{}/../../../campaigns/{name}.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    let host = HostFacts { cores: 2 };
    let campaign = crate::load(Path::new(&path), &host).unwrap_or_else(|it| panic!("{it}"));
    let campaign = if is_quick {
        campaign.shortened().expect("it has a short form")
    } else {
        campaign
    };
    campaign
        .plan(&campaign.usual_lab(), &host)
        .unwrap_or_else(|it| panic!("{it}"))
}

/// Figures of a report that some cell of a plan measures, by the table's id.
fn compared(plan: &Plan) -> BTreeSet<(&str, &str, &str)> {
    let at = plan
        .published
        .iter()
        .filter_map(|figure| figure.at.as_ref());
    at.map(|at| (at.table.as_str(), at.row.as_str(), at.column.as_str()))
        .collect()
}

#[test]
fn each_reference_has_a_campaign_whose_short_form_takes_less_than_ten_minutes() {
    for (name, ..) in NAMES {
        let (full, quick) = (planned(name, false), planned(name, true));
        // On a noisy machine, as most are.
        let minutes = plan::estimate::noisy_ns(&quick) as f64 / 60e9;
        assert!(minutes < 10.0, "{name}: {minutes:.1} min");
        assert!(quick.estimate_ns() < full.estimate_ns(), "{name}");
        assert!(
            !compared(&full).is_empty() && !compared(&quick).is_empty(),
            "{name}"
        );
        assert!(full.reports[0].differs.is_some(), "{name}");
    }
}

fn in_lab(name: &str, lab: &str) -> Plan {
    let root = format!("{}/../../..", env!("CARGO_MANIFEST_DIR"));
    let host = HostFacts { cores: 2 };
    let path = format!("{root}/campaigns/{name}.yaml");
    let campaign = crate::load(Path::new(&path), &host).unwrap_or_else(|it| panic!("{it}"));
    let lab = format!("{root}/labs/{lab}.yaml");
    let lab = crate::load_lab(Path::new(&lab)).unwrap_or_else(|it| panic!("{it}"));
    campaign
        .plan(&lab, &host)
        .unwrap_or_else(|it| panic!("{it}"))
}

#[test]
fn tables_stand_beside_cells_with_the_same_elements_in_the_path() {
    let names = |plan: &Plan| {
        let all = compared(plan).into_iter();
        all.map(|(table, ..)| table.to_owned())
            .collect::<BTreeSet<_>>()
    };
    let reason = |plan: &Plan, id: &str| {
        let table = plan.reports[0].tables.iter().find(|it| it.id == id);
        let table = table.unwrap();
        let first = &table.rows[0];
        let stated = first.absent.as_ref().or(table.absent.as_ref());
        stated.cloned().unwrap_or_default()
    };
    let plain = planned("vut-fekt-100g", false);
    let switched = in_lab("vut-fekt-100g", "switch");
    for (plain_table, switch_table) in [("2.5", "2.12"), ("2.6", "2.13")] {
        assert!(names(&plain).contains(plain_table) && !names(&plain).contains(switch_table));
        assert_eq!(reason(&plain, plain_table), "");
        let why = reason(&plain, switch_table);
        assert!(why.contains("--lab labs/switch.yaml"), "{why}");
        assert!(names(&switched).contains(switch_table));
        assert_eq!(reason(&switched, switch_table), "");
        assert_eq!(
            reason(&switched, plain_table),
            "published is a path with nothing between the encryptors, and this lab has a path with a bridge"
        );
    }
    assert_eq!(
        names(&switched),
        BTreeSet::from(["2.12".to_owned(), "2.13".to_owned()])
    );
}

#[test]
fn figures_of_a_card_are_beside_cards_and_those_of_the_cpu_beside_the_cpu() {
    let plan = planned("crypto-card", true);
    let beside = |table: &str| {
        let of_table = plan.published.iter().filter(|figure| {
            let at = figure.at.as_ref();
            at.is_some_and(|at| at.table == table)
        });
        let cells = of_table.flat_map(|figure| &figure.cells);
        let names = cells.map(|id| id.rsplit('/').next().unwrap_or_default());
        names.collect::<BTreeSet<_>>()
    };
    // A comparison of a card with the CPU would state a speed-up that nobody has measured.
    assert_eq!(beside("host one, card"), BTreeSet::from(["card"]));
    assert_eq!(beside("host one, CPU"), BTreeSet::from(["cpu", "openssl"]));
}

/// A published cell that no campaign measures has its reason in the reference file, so that nothing
/// is left out silently.
#[test]
fn every_table_without_a_measured_figure_says_why() {
    for (name, ..) in NAMES {
        let plan = planned(name, false);
        let compared = compared(&plan);
        for table in &plan.reports[0].tables {
            for row in &table.rows {
                let has_figure = compared
                    .iter()
                    .any(|at| at.0 == table.id && at.1 == row.name);
                let says = table.absent.is_some() || row.absent.is_some();
                assert!(
                    has_figure != says,
                    "{name}, table {}, row {}",
                    table.id,
                    row.name
                );
                // So has each column of a row that is measured.
                for (column, cell) in table.columns.iter().zip(&row.cells) {
                    let at = (table.id.as_str(), row.name.as_str(), column.as_str());
                    let elsewhere = table.elsewhere.iter().any(|(known, _)| known == column);
                    let measured = compared.contains(&at);
                    assert!(
                        cell.is_none() || says || measured != elsewhere,
                        "{name}: {at:?}"
                    );
                }
            }
        }
    }
}

const OWN: &str = r#"
source = "a data sheet"

[[table]]
id = "1"
title = "a gateway"
unit = "Gbit/s"
layer = "payload"
mtu = [1400, 1500]
cells = { trial = "tcp", suite = "aes-256-gcm", rows = "cores", counts = { kind = "goodput", direction = "one-way" } }
[table.figures]
1 = ["~2.5", "3.0 ± 0.1"]
2 = ["5.0", ""]
"#;

/// Reads a campaign with published figures in a file next to it.
fn beside_it(figures: &str) -> Result<Plan, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("own.toml"), figures).unwrap();
    let campaign = "campaign: c\nduts: [direct, cipherbench]\ntrials:\n  - tcp: { mtu: 1500 B, cores: [1, 2] }\n\
                    published: own.toml\n";
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, campaign).unwrap();
    let host = HostFacts { cores: 2 };
    let campaign = crate::load(&path, &host).map_err(|mistakes| mistakes.to_string())?;
    Ok(campaign.plan(&campaign.usual_lab(), &host).unwrap())
}

#[test]
fn a_file_beside_the_campaign_is_read_and_compared_cell_by_cell() {
    let plan = beside_it(OWN).unwrap();
    let [figure] = &plan.published[..] else {
        panic!("{:?}", plan.published);
    };
    assert_eq!((figure.value, figure.cells.len()), (3_000_000_000, 1));
    assert!(
        figure.cells[0].ends_with("/cores=1/cipherbench"),
        "{figure:?}"
    );
    let counts = figure.counts.unwrap().to_string();
    assert_eq!(counts, "goodput of payload, one direction");
    let table = &plan.reports[0].tables[0];
    assert_eq!(table.columns, ["MTU 1400", "MTU 1500"]);
    let printed = table.rows[0].cells[1].as_ref().unwrap();
    assert_eq!(
        (printed.text.as_str(), printed.unit.as_str()),
        ("3.0 ± 0.1", "Gbit/s")
    );
    assert!(table.rows[1].cells[1].is_none());
}

#[test]
fn mistakes_of_a_file_are_reported_at_their_places() {
    for (right, wrong, says) in [
        ("\"~2.5\"", "\"2,5\"", "`2,5` is no figure"),
        (
            "rows = \"cores\"",
            "rows = \"cors\"",
            "`cors` is no axis of a campaign",
        ),
        ("suite =", "siute =", "`siute` is no axis of a campaign"),
        (
            "\"tcp\"",
            "\"ping\"",
            "figures of `ping` cannot be compared with others",
        ),
        (
            "kind = \"goodput\", ",
            "",
            "a rate of traffic needs `counts.kind`",
        ),
        (
            "\"goodput\"",
            "\"good\"",
            "`good` is not known as `counts.kind`",
        ),
        (
            "layer = \"payload\"\n",
            "",
            "a rate of traffic needs `counts.layer`",
        ),
        ("trial = \"tcp\", ", "", "`cells` states no trial"),
        ("id = \"1\"", "name = \"1\"", "unknown key `name`"),
        (
            "rows = \"cores\"",
            "rows = \"cores\", path = [\"bridge\", \"brigde\"]",
            "`brigde` is no element of a path",
        ),
    ] {
        // Otherwise the replacement would change nothing.
        assert!(OWN.contains(right), "{right}");
        let mistakes = beside_it(&OWN.replace(right, wrong)).unwrap_err();
        assert!(mistakes.contains(says), "{says}: {mistakes}");
        assert!(mistakes.contains("own.toml:"), "{mistakes}");
    }
    let campaign =
        "campaign: c\nduts: [direct]\ntrials: [tcp: { mtu: 1500 B }]\npublished: none.toml\n";
    let mistakes = from_text("c.yaml", campaign).unwrap_err().to_string();
    assert!(
        mistakes.contains("none.toml") && mistakes.contains("cannot be read"),
        "{mistakes}"
    );
}

#[test]
fn figures_in_another_unit_than_the_trial_have_no_cell() {
    let plan = beside_it(&OWN.replace("\"Gbit/s\"", "\"frames/s\"")).unwrap();
    assert!(plan.published.is_empty());
    assert_eq!(plan.reports[0].tables.len(), 1);
}
