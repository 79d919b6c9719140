//! The sections of the report: one list for navigation, HTML, Markdown and terminal.
//!
//! To add a section, write a file in `sections/` with its [`Section`], and list it in [`SECTIONS`].

mod captures;
mod claims;
mod closing;
mod cpu;
mod devices;
mod disturbed;
mod evidence;
mod fatigue;
mod flows;
mod frames;
mod functional;
mod http;
mod hybrids;
mod keys;
mod latency;
mod monitored;
mod published;
mod ranking;
mod scaling;
mod search;
mod soak;
mod speed;
mod spread;
mod suites;
mod tcp;
mod tester;
mod tools;
mod trouble;
mod udp;
mod video;
mod weather;

pub(crate) use scaling::is_curve;

use crate::layout::Run;
use crate::prose::Paragraph;
use crate::table::Table;
use maud::{Markup, html};

/// All sections, in the order of every document.
const SECTIONS: &[Section] = &[
    trouble::SECTION,
    keys::SECTION,
    hybrids::SECTION,
    ranking::SECTION,
    weather::SECTION,
    suites::SECTION,
    scaling::SECTION,
    claims::SECTION,
    functional::SECTION,
    speed::SECTION,
    fatigue::SECTION,
    devices::SECTION,
    tcp::SECTION,
    udp::SECTION,
    latency::SECTION,
    http::SECTION,
    flows::SECTION,
    video::SECTION,
    frames::THROUGHPUT,
    frames::MRR,
    frames::SERVICE,
    frames::LOSS,
    frames::LATENCY,
    search::BURSTS,
    search::RECOVERY,
    disturbed::REKEYS,
    disturbed::FAILOVER,
    disturbed::RESET,
    disturbed::SETUP,
    disturbed::DESYNC,
    disturbed::HOSTILE,
    soak::SECTION,
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
];

/// A part of the report with a title.
pub(crate) struct Section {
    /// Anchor in the HTML document.
    pub(crate) id: &'static str,
    /// Name in the navigation; empty if not listed there.
    pub(crate) name: &'static str,
    /// Heading in the HTML document.
    pub(crate) title: &'static str,
    /// Heading in Markdown. Adjacent sections with the same chapter share one heading.
    pub(crate) chapter: &'static str,
    /// Whether it answers the campaign's question. Other sections explain how the figures came
    /// about, and the page folds them.
    pub(crate) answers: bool,
    /// Whether the short form contains its first table.
    pub(crate) brief: bool,
    /// Appends the content. A section without content is left out.
    blocks: fn(&Run<'_>, &mut Blocks),
}

impl Section {
    /// A section with measured figures and its title as its name in the navigation.
    const fn result(
        id: &'static str,
        title: &'static str,
        blocks: fn(&Run<'_>, &mut Blocks),
    ) -> Self {
        Self {
            id,
            name: title,
            title,
            chapter: RESULTS,
            answers: true,
            brief: true,
            blocks,
        }
    }

    /// The same section, as an explanation of how figures came about.
    const fn beside(self) -> Self {
        Self {
            answers: false,
            brief: false,
            ..self
        }
    }

    /// The same section, left out of the short form.
    const fn not_brief(self) -> Self {
        Self {
            brief: false,
            ..self
        }
    }
}

/// Chapter of the sections with measured figures.
const RESULTS: &str = "Results";

/// A part of a section.
pub(crate) enum Block {
    Table(Table),
    /// A drawn chart; only in HTML.
    Chart {
        drawing: Markup,
        title: String,
        how_to_read: String,
        /// Whether the page folds it, because its tables have the same content in fewer lines.
        folded: bool,
    },
    /// Folded tables; plain tables in text.
    Details {
        title: &'static str,
        tables: Vec<Table>,
    },
    /// A sentence or other markup that only HTML shows.
    Html(Markup),
    /// The warnings of the run.
    Warnings,
    /// Every cell with commands and evidence; Markdown has only the commands.
    Cells,
    /// Named paragraphs.
    Prose(Vec<Paragraph>),
}

/// The document for which blocks are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Document {
    Html,
    Markdown,
    /// The text for a terminal, without commands and prose.
    Terminal,
}

/// Collects the blocks of a section.
pub(crate) struct Blocks {
    document: Document,
    found: Vec<Block>,
}

impl Blocks {
    /// Whether the document omits the details that support the figures.
    fn is_short(&self) -> bool {
        self.document == Document::Terminal
    }

    fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn table(&mut self, table: Table) {
        self.found.push(Block::Table(table.condensed()));
    }

    fn tables(&mut self, tables: impl IntoIterator<Item = Table>) {
        let tables = tables.into_iter().map(Table::condensed);
        self.found.extend(tables.map(Block::Table));
    }

    /// Appends a chart, if the document has charts and there is something to draw.
    fn chart(
        &mut self,
        title: impl Into<String>,
        how_to_read: impl Into<String>,
        draw: impl FnOnce() -> Option<Markup>,
    ) {
        self.drawn(title.into(), how_to_read.into(), false, draw);
    }

    /// Appends a chart that the page folds.
    fn folded_chart(
        &mut self,
        title: impl Into<String>,
        how_to_read: impl Into<String>,
        draw: impl FnOnce() -> Option<Markup>,
    ) {
        self.drawn(title.into(), how_to_read.into(), true, draw);
    }

    fn drawn(
        &mut self,
        title: String,
        how_to_read: String,
        folded: bool,
        draw: impl FnOnce() -> Option<Markup>,
    ) {
        if self.document == Document::Html
            && let Some(drawing) = draw()
        {
            self.found.push(Block::Chart {
                drawing,
                title,
                how_to_read,
                folded,
            });
        }
    }

    /// Appends folded tables, if any.
    fn details(&mut self, title: &'static str, tables: impl IntoIterator<Item = Table>) {
        let tables: Vec<Table> = tables.into_iter().map(Table::condensed).collect();
        if !tables.is_empty() {
            self.found.push(Block::Details { title, tables });
        }
    }

    /// Appends markup that only HTML shows.
    fn html(&mut self, markup: Markup) {
        if self.document == Document::Html {
            self.found.push(Block::Html(markup));
        }
    }

    /// Appends a note that only HTML shows.
    fn note(&mut self, text: &str) {
        self.html(html! { p.note { (text) } });
    }
}

/// Returns the sections of a run with content, and their blocks.
pub(crate) fn of(run: &Run<'_>, document: Document) -> Vec<(&'static Section, Vec<Block>)> {
    let built = SECTIONS.iter().map(|section| {
        let mut blocks = Blocks {
            document,
            found: Vec::new(),
        };
        (section.blocks)(run, &mut blocks);
        (section, blocks.found)
    });
    built.filter(|(_, blocks)| !blocks.is_empty()).collect()
}

/// Returns the title of a section; `None` if it has no content in the run.
fn has_section(run: &Run<'_>, id: &str) -> Option<&'static str> {
    let is_it = |section: &&Section| section.id == id && section.id != published::SECTION.id;
    let section = SECTIONS.iter().find(is_it)?;
    let mut blocks = Blocks {
        document: Document::Markdown,
        found: Vec::new(),
    };
    (section.blocks)(run, &mut blocks);
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
        let ids: BTreeSet<&str> = SECTIONS.iter().map(|section| section.id).collect();
        assert_eq!(ids.len(), SECTIONS.len());
        let named = SECTIONS.iter().filter(|section| !section.name.is_empty());
        let names: BTreeSet<&str> = named.clone().map(|section| section.name).collect();
        assert_eq!(names.len(), named.count());
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
                let known = SECTIONS.iter().any(|known| known.id == section);
                assert!(known, "{name}: {section}");
            }
        }
    }
}
