//! A section of the report and the blocks in it.

use super::table::Table;
use crate::layout::Run;
use maud::{Markup, html};

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
    pub(crate) const fn result(
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

    /// A section with a chapter of its own, about how figures came about.
    pub(crate) const fn annex(
        id: &'static str,
        title: &'static str,
        blocks: fn(&Run<'_>, &mut Blocks),
    ) -> Self {
        Self::result(id, title, blocks).in_chapter(title).beside()
    }

    /// The same section, with another name in the navigation.
    pub(crate) const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same section, in another chapter.
    pub(crate) const fn in_chapter(self, chapter: &'static str) -> Self {
        Self { chapter, ..self }
    }

    /// The same section, as an explanation of how figures came about.
    pub(crate) const fn beside(self) -> Self {
        Self {
            answers: false,
            brief: false,
            ..self
        }
    }

    /// The same section, left out of the short form.
    pub(crate) const fn not_brief(self) -> Self {
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
    /// The first screen on a terminal; only brief sections.
    Brief,
}

/// Collects the blocks of a section.
pub(crate) struct Blocks {
    /// Id of the section.
    section: &'static str,
    document: Document,
    found: Vec<Block>,
}

impl Blocks {
    /// Builds the blocks of a section.
    pub(crate) fn of(section: &Section, run: &Run<'_>, document: Document) -> Vec<Block> {
        let mut blocks = Self {
            section: section.id,
            document,
            found: Vec::new(),
        };
        // A section decides itself what the document shows, so one function serves all documents.
        (section.blocks)(run, &mut blocks);
        blocks.found
    }

    /// Returns the id of the section, for one function that builds several sections.
    pub(crate) const fn section(&self) -> &'static str {
        self.section
    }

    /// Whether the document omits the details that support the figures.
    pub(crate) fn is_short(&self) -> bool {
        self.document == Document::Brief
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn push(&mut self, block: Block) {
        self.found.push(block);
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.found.push(Block::Table(table.condensed()));
    }

    pub(crate) fn tables(&mut self, tables: impl IntoIterator<Item = Table>) {
        let tables = tables.into_iter().map(Table::condensed);
        self.found.extend(tables.map(Block::Table));
    }

    /// Appends a chart, if the document has charts and there is something to draw.
    pub(crate) fn chart(
        &mut self,
        title: impl Into<String>,
        how_to_read: impl Into<String>,
        draw: impl FnOnce() -> Option<Markup>,
    ) {
        self.folded_chart(false, title, how_to_read, draw);
    }

    /// The same for a chart that the page may fold.
    pub(crate) fn folded_chart(
        &mut self,
        folded: bool,
        title: impl Into<String>,
        how_to_read: impl Into<String>,
        draw: impl FnOnce() -> Option<Markup>,
    ) {
        // `draw` is not called for documents without charts.
        if self.document == Document::Html
            && let Some(drawing) = draw()
        {
            self.found.push(Block::Chart {
                drawing,
                title: title.into(),
                how_to_read: how_to_read.into(),
                folded,
            });
        }
    }

    /// Appends folded tables, if any.
    pub(crate) fn details(&mut self, title: &'static str, tables: impl IntoIterator<Item = Table>) {
        let tables: Vec<Table> = tables.into_iter().map(Table::condensed).collect();
        // An empty fold would count as content, and its section would get a heading.
        if !tables.is_empty() {
            self.found.push(Block::Details { title, tables });
        }
    }

    /// Appends markup that only HTML shows.
    pub(crate) fn html(&mut self, markup: Markup) {
        if self.document == Document::Html {
            self.found.push(Block::Html(markup));
        }
    }

    /// Appends a note that only HTML shows.
    pub(crate) fn note(&mut self, text: &str) {
        self.html(html! { p.note { (text) } });
    }
}

/// A name and its text.
pub(crate) type Paragraph = (&'static str, &'static str);
