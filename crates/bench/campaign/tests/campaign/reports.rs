//! `docs/reports.md` maps every table, figure and drawing of the published reports to its campaign,
//! the section of our report, and its state. `UPDATE_GOLDEN=1` rewrites its tables.

use campaign::{HostFacts, load};
use plan::Plan;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn plan(name: &str) -> Plan {
    let host = HostFacts { cores: 8 };
    let path = root().join(format!("campaigns/{name}.yaml"));
    let campaign = load(&path, &host).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let plan = campaign.plan(&campaign.usual_lab(), &host);
    plan.unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The table of one report.
fn mapped(name: &str) -> String {
    let plan = plan(name);
    let mut text = "| In the report | What | Section here | Figures | Compared | Remarks |\n| --- | --- | --- | --: | --: | --- |\n".to_owned();
    let [report] = &plan.reports[..] else {
        panic!("{name} names one report");
    };
    for table in &report.tables {
        let figures = table.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let places = plan.published.iter().filter_map(|one| one.at.as_ref());
        let beside: BTreeSet<_> = places
            .filter(|at| at.table == table.id)
            .map(|at| (&at.row, &at.column))
            .collect();
        let absent = table.rows.iter().filter_map(|row| row.absent.as_ref());
        let remarks: BTreeSet<_> = table
            .differs
            .iter()
            .chain(&table.absent)
            .chain(absent)
            .chain(table.elsewhere.iter().map(|(_, reason)| reason))
            .collect();
        let remarks: Vec<_> = remarks.into_iter().map(String::as_str).collect();
        text += &format!(
            "| {} | {} | `published` | {} | {} | {} |\n",
            table.id,
            table.title,
            figures.count(),
            beside.len(),
            remarks.join("; ")
        );
    }
    for chart in &report.charts {
        let section = chart.section.as_ref().map(|section| format!("`{section}`"));
        text += &format!(
            "| {} | {} | {} | | | {} |\n",
            chart.id,
            chart.title,
            section.unwrap_or_default(),
            chart.absent.as_deref().unwrap_or_default()
        );
    }
    text
}

#[test]
fn every_table_and_drawing_of_the_reports_is_mapped() {
    let path = root().join("docs/reports.md");
    let page = fs::read_to_string(&path).unwrap();
    let written = |text: &str| fs::write(&path, text).unwrap();
    let (preface, sections) = page.split_once("\n## ").unwrap();
    let mut now = preface.to_owned();
    let mut names = Vec::new();
    for section in sections.split("\n## ") {
        // The words above a table are written by hand and kept; only the table is made anew.
        let (words, _) = section.split_once("\n| ").unwrap_or((section, ""));
        let name = words.lines().next().unwrap();
        now += &format!("\n## {}\n\n{}", words.trim_end(), mapped(name));
        names.push(name.to_owned());
    }
    let files = fs::read_dir(root().join("reference")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let known: BTreeSet<String> = files
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    // A report without a section would be missed by the comparison of sections.
    assert_eq!(names.iter().cloned().collect::<BTreeSet<_>>(), known);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return written(&now);
    }
    assert!(
        page == now,
        "docs/reports.md differs; UPDATE_GOLDEN=1 rewrites it\n{now}"
    );
}
