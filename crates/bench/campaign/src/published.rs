//! Published reports: the built-in references and the files that a campaign names, and the cells
//! that their figures are printed next to. The comparison decides whether both count the same.

mod cells;

use self::cells::Cells;
use crate::expand::Draft;
use lint::beside::Single;
use lint::document::{Axis, Column, Row, Table};
use lint::figure::Figure;
use lint::unit::{Quantity, Unit};
use lint::{Document, RESULTS_BYTES_MAX};
use plan::{
    Element, Published, PublishedAt, PublishedCell, PublishedChart, PublishedReport, PublishedRow,
    PublishedTable,
};
use std::path::Path;
use yaml::{Mistakes, Node, Reported};

/// The built-in references: name, file and text.
const NAMES: [(&str, &str, &str); 5] = [
    (
        "vut-fekt-100g",
        "reference/vut-fekt-100g.toml",
        include_str!("../../../../reference/vut-fekt-100g.toml"),
    ),
    (
        "baikal-gost",
        "reference/baikal-gost.toml",
        include_str!("../../../../reference/baikal-gost.toml"),
    ),
    (
        "vipnet-scaling",
        "reference/vipnet-scaling.toml",
        include_str!("../../../../reference/vipnet-scaling.toml"),
    ),
    (
        "crypto-card",
        "reference/crypto-card.toml",
        include_str!("../../../../reference/crypto-card.toml"),
    ),
    (
        "lancom-lcos",
        "reference/lancom-lcos.toml",
        include_str!("../../../../reference/lancom-lcos.toml"),
    ),
];
/// Ends of the names of files with published tables.
const FILES: [&str; 3] = ["toml", "csv", "md"];
/// Id and column of the table of figures outside tables.
const FIGURES: &str = "figures";
const VALUE: &str = "value";
/// Unit of mean frame rates, which reports print without one.
const MEAN_UNIT: &str = "frames/s";
const BITS_PER_BYTE: f64 = 8.0;

/// A report, and for each of its tables and figures the cells that measure the same.
#[derive(Debug)]
pub(crate) struct Reference {
    document: Document,
    tables: Vec<Option<Cells>>,
    figures: Vec<Option<Cells>>,
}

/// A published figure, and the path between the gateways in its measurement.
#[derive(Debug, Clone)]
pub(crate) struct OnPath {
    pub(crate) figure: Published,
    path: Vec<Element>,
}

/// Reads one or several references: names of built-in ones, or files with paths relative to the
/// campaign's folder.
pub(crate) fn read(node: Node<'_>) -> Result<Vec<Reference>, Reported> {
    node.one_or_many(read_one)
}

fn read_one(node: Node<'_>) -> Result<Reference, Reported> {
    let text = node.text()?;
    let extension = Path::new(text).extension().and_then(|end| end.to_str());
    let document = if extension.is_some_and(|end| FILES.contains(&end)) {
        // Relative to the campaign's file, not to the folder that the command is run in.
        let campaign = node.place().file;
        let folder = Path::new(campaign.as_ref()).parent();
        let path = folder.unwrap_or(Path::new("")).join(text);
        yaml::load_text(&path, RESULTS_BYTES_MAX)
            .and_then(|text| lint::read(&path.to_string_lossy(), &text))
    } else {
        let named = NAMES.iter().find(|(name, ..)| *name == text);
        let (_, file, text) = named.ok_or_else(|| {
            let what = format!("reference `{text}` is not known");
            let names = NAMES.map(|(name, ..)| name).join(", ");
            let help = format!("name one of {names}, or a file that ends in .toml, .csv or .md");
            node.mistake(what, help)
        })?;
        lint::read(file, text)
    };
    // Mistakes have their places in the other file; the campaign's reader collects all.
    let document = document.map_err(|mistakes| pass_on(node, &mistakes))?;
    let tables = document.tables.iter();
    let tables: Vec<_> = tables.map(|table| Cells::of_table(node, table)).collect();
    let figures = document.figures.iter();
    let figures: Vec<_> = figures
        .map(|figure| Cells::of_figure(node, figure))
        .collect();
    Ok(Reference {
        tables: tables.into_iter().collect::<Result<_, _>>()?,
        figures: figures.into_iter().collect::<Result<_, _>>()?,
        document,
    })
}

/// Reports the mistakes of a file of published figures among the campaign's mistakes.
fn pass_on(node: Node<'_>, mistakes: &Mistakes) -> Reported {
    let all = mistakes.iter();
    let reported = all.map(|one| node.mistake_at(&one.place, &one.what, &one.help));
    // Collected, since the iterator reports each mistake only when it is advanced.
    let mut reported: Vec<_> = reported.collect();
    reported.pop().expect("there is at least one mistake")
}

/// Returns the figures that some cell measures, with these cells, and the reports as they are
/// printed.
pub(crate) fn resolve(
    references: &[Reference],
    drafts: &[Draft],
) -> (Vec<OnPath>, Vec<PublishedReport>) {
    let figures = references
        .iter()
        .flat_map(|reference| reference.figures_beside(drafts));
    let reports = references.iter().map(Reference::as_printed);
    (figures.collect(), reports.collect())
}

/// Returns the figures that were measured with the elements of a lab's path, and the reports, with
/// a reason for each row that was measured only with other elements.
pub(crate) fn on_path(
    figures: &[OnPath],
    reports: &[PublishedReport],
    path: &[Element],
) -> (Vec<Published>, Vec<PublishedReport>) {
    // The path is a condition of the measurement: a router between the gateways limits the rate,
    // and figures with and without one must not be compared.
    let (kept, others): (Vec<_>, Vec<_>) = figures.iter().partition(|one| one.path == path);
    let at = |of: &[&OnPath], source: &str, table: &str, row: &str| {
        let here = |one: &&OnPath| {
            let at = one.figure.at.as_ref();
            one.figure.source == source && at.is_some_and(|at| at.table == table && at.row == row)
        };
        of.iter().copied().find(here).cloned()
    };
    let mut reports = reports.to_vec();
    for report in &mut reports {
        for table in &mut report.tables {
            for row in &mut table.rows {
                // Figures of one row share their path, so the first one decides for the row.
                let find = |of: &[&OnPath]| at(of, &report.source, &table.id, &row.name);
                match (find(&kept), find(&others)) {
                    (Some(_), _) => table.absent = None,
                    (None, Some(other)) if table.absent.is_none() => {
                        row.absent = Some(format!(
                            "published is {}, and this lab has {}",
                            in_words(&other.path),
                            in_words(path)
                        ));
                    }
                    (None, _) => {}
                }
            }
        }
    }
    let kept = kept.into_iter().map(|one| one.figure.clone());
    (kept.collect(), reports)
}

fn in_words(path: &[Element]) -> String {
    let names = path.iter().map(|element| match element {
        Element::Bridge => "a bridge",
        Element::Router => "a router",
        Element::Nat => "a NAT",
        Element::Impair => "an impaired link",
    });
    if path.is_empty() {
        "a path with nothing between the encryptors".to_owned()
    } else {
        format!("a path with {}", names.collect::<Vec<_>>().join(" and "))
    }
}

impl Reference {
    fn figures_beside(&self, drafts: &[Draft]) -> Vec<OnPath> {
        let mut found = Vec::new();
        for (table, cells) in self.document.tables.iter().zip(&self.tables) {
            // A table without the key `cells` is printed, and compared with nothing.
            let Some(cells) = cells else { continue };
            found.extend(table.cells().filter_map(|cell| {
                let at = PublishedAt {
                    table: table.id.clone(),
                    row: cell.row.name.clone(),
                    column: table.column_name(cell.column),
                };
                let ids = cells.of(drafts, &cell.row.name, Some(cell.column));
                let what = format!("{}, {}", at.row, at.column);
                self.figure(
                    (&*table.title, what),
                    cell.figure,
                    cell.unit(),
                    cells,
                    (at, ids),
                )
            }));
        }
        for (single, cells) in self.document.figures.iter().zip(&self.figures) {
            let Some(cells) = cells else { continue };
            let at = PublishedAt {
                table: FIGURES.to_owned(),
                row: named(single),
                column: VALUE.to_owned(),
            };
            // A single figure has neither row nor column to select by.
            let ids = cells.of(drafts, "", None);
            let names = (single.system.as_str(), single.what.clone());
            found.extend(self.figure(
                names,
                &single.figure,
                single.unit.as_ref(),
                cells,
                (at, ids),
            ));
        }
        found
    }

    /// Returns a figure with the cells that it is printed next to; `None` if no cell matches, or
    /// its unit cannot be compared with theirs.
    fn figure(
        &self,
        (system, what): (&str, String),
        figure: &Figure,
        unit: Option<&Unit>,
        cells: &Cells,
        (at, ids): (PublishedAt, Vec<String>),
    ) -> Option<OnPath> {
        // A figure without a unit, or with one of another quantity, is printed in its table only.
        let unit = unit?;
        let quantity = cells.unit_of(unit)?;
        let figure = Published {
            source: self.document.source.clone(),
            system: system.to_owned(),
            what,
            // Published figures have few digits, so an f64 holds each exactly enough to be
            // rounded.
            value: (figure.value * scale(unit) as f64).round() as u64,
            unit: quantity,
            counts: cells.counts,
            at: Some(at),
            cells: ids,
        };
        let path = cells.path.clone();
        // A figure without a cell stays in its table, with the reason that the file states.
        (!figure.cells.is_empty()).then_some(OnPath { figure, path })
    }

    fn as_printed(&self) -> PublishedReport {
        let tables = self.document.tables.iter().zip(&self.tables);
        let mut tables: Vec<_> = tables
            .map(|(table, cells)| table_as_printed(table, cells.as_ref()))
            .collect();
        // After the report's tables, since these figures are in none of them.
        tables.extend(self.figures_as_printed());
        let charts = self.document.charts.iter().map(|chart| PublishedChart {
            id: chart.id.clone(),
            title: chart.title.clone(),
            section: chart.section.clone(),
            absent: chart.absent.clone(),
        });
        PublishedReport {
            source: self.document.source.clone(),
            differs: self.document.differs.clone(),
            short: false,
            charts: charts.collect(),
            tables,
        }
    }

    /// The figures outside tables, as one table with a row for each.
    fn figures_as_printed(&self) -> Option<PublishedTable> {
        let figures = &self.document.figures;
        let row = |single: &Single| PublishedRow {
            name: named(single),
            cells: vec![Some(printed(&single.figure, single.unit.as_ref()))],
            mean_frame_rate: None,
            absent: single.beside.absent.clone(),
        };
        // Each sentence once: figures of one source often differ for the same reason.
        let mut differs: Vec<&str> = Vec::new();
        for sentence in figures.iter().filter_map(|it| it.beside.differs.as_deref()) {
            if !differs.contains(&sentence) {
                differs.push(sentence);
            }
        }
        (!figures.is_empty()).then(|| PublishedTable {
            id: FIGURES.to_owned(),
            title: "figures outside tables".to_owned(),
            differs: (!differs.is_empty()).then(|| differs.join("; ")),
            absent: None,
            rows_by: None,
            elsewhere: Vec::new(),
            columns: vec![VALUE.to_owned()],
            rows: figures.iter().map(row).collect(),
        })
    }
}

/// The name of a figure's row.
fn named(single: &Single) -> String {
    format!("{}: {}", single.system, single.what)
}

fn table_as_printed(table: &Table, cells: Option<&Cells>) -> PublishedTable {
    let row = |row: &Row| {
        let cells = table.columns.iter().zip(&row.cells);
        let unit = |figure: &Figure, column: &Column| {
            // The nearest one counts: of the figure, its column, its table.
            let own = figure.unit.clone().or_else(|| column.unit.clone());
            own.or_else(|| table.unit.clone())
        };
        PublishedRow {
            name: row.name.clone(),
            cells: cells
                .map(|(column, figure)| {
                    let figure = figure.as_ref()?;
                    Some(printed(figure, unit(figure, column).as_ref()))
                })
                .collect(),
            mean_frame_rate: row.mean_frame_rate.as_ref().map(|mean| PublishedCell {
                text: mean.text.clone(),
                unit: MEAN_UNIT.to_owned(),
                scale: 1,
            }),
            absent: None,
        }
    };
    PublishedTable {
        id: table.id.clone(),
        title: table.title.clone(),
        differs: table.beside.differs.clone(),
        absent: table.beside.absent.clone(),
        rows_by: cells.and_then(Cells::rows_by),
        elsewhere: table.beside.elsewhere.clone(),
        columns: table
            .columns
            .iter()
            .map(|it| table.column_name(it))
            .collect(),
        rows: table.rows.iter().map(row).collect(),
    }
}

fn printed(figure: &Figure, unit: Option<&Unit>) -> PublishedCell {
    PublishedCell {
        text: figure.text.clone(),
        unit: unit.map_or_else(String::new, |unit| unit.text.clone()),
        scale: unit.map_or(1, scale),
    }
}

/// Whether the unit counts bytes: eight bits by a power of ten.
fn counts_bytes(unit: &Unit) -> bool {
    // `MB/s` is read as 8 × 10⁶ bit/s. No power of ten is eight times another one, so the factor
    // shows which of the two the report has.
    let power = (unit.scale / BITS_PER_BYTE).log10();
    unit.quantity == Quantity::BitRate && (power - power.round()).abs() < 1e-9
}

/// Returns a unit's scale in the unit of [`Published::value`].
fn scale(unit: &Unit) -> u64 {
    let divisor = if counts_bytes(unit) {
        BITS_PER_BYTE
    } else {
        1.0
    };
    (unit.scale / divisor).round() as u64
}

/// The axis of the campaign that the columns of a table are values of; `None` for other columns.
const fn columns_axis(table: &Table) -> Option<plan::Axis> {
    match table.axis {
        Axis::Frame | Axis::Mix => Some(plan::Axis::Frame),
        Axis::Mtu => Some(plan::Axis::Mtu),
        Axis::Bytes => Some(plan::Axis::Bytes),
        Axis::Rates | Axis::Devices | Axis::Names => None,
    }
}

#[cfg(test)]
mod tests;
