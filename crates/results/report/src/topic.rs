//! The topics of the report, each with its section, tables, charts, facts and columns.
//!
//! To add a topic, write a file in `topic/` with its [`Section`], and list it in [`SECTIONS`]; a
//! topic with facts about a device is also in [`FACTS`], one with columns in [`columns`].

pub(crate) mod captures;
pub(crate) mod claims;
mod classes;
mod closing;
pub(crate) mod contrasts;
pub(crate) mod cpu;
pub(crate) mod device;
pub(crate) mod evidence;
pub(crate) mod expect;
pub(crate) mod frames;
pub(crate) mod http;
pub(crate) mod ike;
pub(crate) mod latency;
pub(crate) mod monitored;
pub(crate) mod published;
pub(crate) mod ranking;
pub(crate) mod scaling;
mod spread;
pub(crate) mod suites;
mod tester;
pub(crate) mod tools;
pub(crate) mod transfer;
mod trial;
pub(crate) mod trouble;
pub(crate) mod video;
mod weather;

use crate::kit::column::{Column, Declared};
use crate::kit::fact::{Fact, Subject};
use crate::kit::section::{Block, Blocks, Document, Section};
use crate::layout::Run;
use device::{fatigue, functional, speed};
use frames::{disturbed, soak};
use plan::Axis;

/// All sections, in the order of every document.
const SECTIONS: &[&[Section]] = &[
    &[trouble::SECTION, expect::SECTION],
    contrasts::SECTIONS,
    &[
        ranking::SECTION,
        weather::SECTION,
        suites::SECTION,
        scaling::SECTION,
        claims::SECTION,
        functional::SECTION,
        speed::SECTION,
        fatigue::SECTION,
        device::SECTION,
        transfer::TCP,
        transfer::UDP,
        latency::SECTION,
        classes::SECTION,
        http::HTTP,
        http::FLOWS,
        video::SECTION,
        ike::SECTION,
    ],
    frames::SECTIONS,
    &[
        monitored::SECTION,
        captures::SECTION,
        tools::SECTION,
        published::SECTION,
        tester::SECTION,
        scaling::OF_TWO,
        spread::SECTION,
        cpu::SECTION,
        evidence::SECTION,
        closing::WARNINGS,
        closing::ENVIRONMENT,
        closing::CELLS,
        closing::METHOD,
        closing::LIMITS,
    ],
];

/// The facts about a device, the most important first.
const FACTS: &[fn(&Subject<'_>) -> Vec<Fact>] = &[
    transfer::facts,
    latency::facts,
    cpu::facts,
    http::facts,
    video::facts,
    ike::facts,
    frames::facts,
    device::facts,
];

/// Axes of all traffic; the other axes belong to frame tests.
const STATIONS: [Axis; 3] = [Axis::Mtu, Axis::Cores, Axis::Offloads];

/// Returns the columns of `results.csv`, in the file's order.
pub(crate) fn columns() -> Vec<Column> {
    let declared = |list: &'static [Declared]| list.iter().copied().map(Column::Declared);
    let axes = |of_stations: bool| {
        let chosen = move |axis: &Axis| STATIONS.contains(axis) == of_stations;
        let axes = Axis::all().filter(chosen);
        axes.filter_map(|axis| Some(Column::Axis(axis, axis.column()?)))
    };
    let tools = [
        trial::TRIAL,
        transfer::columns::COLUMNS,
        latency::columns::COLUMNS,
        cpu::columns::COLUMNS,
        evidence::COLUMNS,
        latency::columns::LOADED,
        classes::COLUMNS,
        http::columns::COLUMNS,
        video::columns::COLUMNS,
        ike::columns::COLUMNS,
        frames::columns::TRAFFIC,
    ];
    let frames_and_devices = [
        frames::columns::COLUMNS,
        disturbed::columns::COLUMNS,
        soak::columns::COLUMNS,
        monitored::columns::COLUMNS,
        device::columns::COLUMNS,
        ranking::columns::COLUMNS,
        claims::columns::COLUMNS,
        captures::columns::COLUMNS,
    ];
    // The columns of traffic in general come first, then the ones of frame tests and crypto
    // devices.
    declared(trial::CELL)
        .chain(axes(true))
        .chain(tools.into_iter().flat_map(declared))
        .chain(axes(false))
        .chain(frames_and_devices.into_iter().flat_map(declared))
        .collect()
}

/// Returns the facts about a device, the most important first.
pub(crate) fn facts(subject: &Subject<'_>) -> Vec<Fact> {
    FACTS.iter().flat_map(|facts| facts(subject)).collect()
}

fn all() -> impl Iterator<Item = &'static Section> {
    SECTIONS.iter().copied().flatten()
}

/// Returns the sections of a run with content, and their blocks.
pub(crate) fn sections(run: &Run<'_>, document: Document) -> Vec<(&'static Section, Vec<Block>)> {
    let shown = all().filter(|section| document != Document::Brief || section.brief);
    let built = shown.map(|section| (section, Blocks::of(section, run, document)));
    built.filter(|(_, blocks)| !blocks.is_empty()).collect()
}

/// Returns the title of a section; `None` if it has no content in the run.
fn has_section(run: &Run<'_>, id: &str) -> Option<&'static str> {
    // The section of published figures calls this function while it is built, so building it here
    // would not end.
    let is_it = |section: &&Section| section.id == id && section.id != published::SECTION.id;
    // A report names sections by their ids, and a later version may lack one.
    let section = all().find(is_it)?;
    // Charts need not be drawn to know whether there is content.
    let blocks = Blocks::of(section, run, Document::Markdown);
    (!blocks.is_empty()).then_some(section.title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign::HostFacts;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn ids_and_names_are_unique() {
        let ids: BTreeSet<&str> = all().map(|section| section.id).collect();
        assert_eq!(ids.len(), all().count());
        let named = || all().filter(|section| !section.name.is_empty());
        let names: BTreeSet<&str> = named().map(|section| section.name).collect();
        assert_eq!(names.len(), named().count());
    }
    #[test]
    fn drawings_of_published_reports_name_sections_that_exist() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../campaigns");
        let host = HostFacts { cores: 8 };
        for name in [
            "vut-fekt-100g",
            "baikal-gost",
            "vipnet-scaling",
            "crypto-card",
            "lancom-lcos",
        ] {
            let campaign = campaign::load(&folder.join(format!("{name}.yaml")), &host).unwrap();
            let plan = campaign.plan(&campaign.usual_lab(), &host).unwrap();
            let charts = plan.reports.iter().flat_map(|report| &report.charts);
            for section in charts.filter_map(|chart| chart.section.as_deref()) {
                let known = all().any(|known| known.id == section);
                assert!(known, "{name}: {section}");
            }
        }
    }
}
