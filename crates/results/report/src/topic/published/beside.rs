//! Published reports in their original form: each table with the printed figures, the measured
//! ones, and the ratio of both or the reason for its absence.

use super::is_share;
use crate::kit::format::{capitalized, ratio_number};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::order::unique;
use journal::record::in_brief;
use plan::{Axis, PublishedCell, PublishedReport, PublishedRow, PublishedTable};
use stats::{CellResult, PublishedResult, Status};
use std::collections::BTreeSet;

const NO_CELL: &str = "no cell of this campaign measures it";
const NOT_IN_SHORT: &str = "no cell of the short form measures it; the whole campaign may";
const NONE: &str = "–";

/// One row per published table: how many of its figures have a ratio here, and why others do not.
/// `None` if the campaign names no report.
pub(super) fn overview(run: &Run<'_>) -> Option<Table> {
    let sources = unique(
        run.plan()
            .reports
            .iter()
            .map(|report| report.source.as_str()),
    );
    let differs = unique(
        run.plan()
            .reports
            .iter()
            .filter_map(|it| it.differs.as_deref()),
    );
    let note = format!(
        "{}; figures: as printed there; with a ratio: measured here in the same unit, layer and \
         directions; ratio: measured by published, lowest to highest. Nothing is judged by them. Why they differ: {}",
        sources.join("; "),
        differs.join("; ")
    );
    let mut table = Table::new("Tables of the published report", note)
        .labels(["Table", "What"])
        .figures(["Figures", "With a ratio", "Ratio"])
        .texts(["Remarks"]);
    for (report, published) in all(run) {
        let shaped = Shaped::of(run, report, published);
        let remarks = unique(
            published
                .differs
                .iter()
                .chain(&published.absent)
                .chain(published.rows.iter().filter_map(|row| row.absent.as_ref()))
                .chain(published.elsewhere.iter().map(|(_, reason)| reason))
                .map(String::as_str),
        );
        table.push(vec![
            Cell::label(&published.id),
            Cell::label(&published.title),
            Cell::plain(figures(published).to_string()),
            Cell::plain(shaped.with_ratio().to_string()),
            Cell::derived_or_missing(ratios(&shaped.results)),
            Cell::or_missing((!remarks.is_empty()).then(|| remarks.join("; "))),
        ]);
    }
    table.with_rows()
}

/// Summarises all tables in one sentence; `None` if the campaign names no report.
pub(crate) fn summary(run: &Run<'_>) -> Option<String> {
    let (mut printed, mut with_ratio) = (0, 0);
    let mut results = Vec::new();
    for (report, published) in all(run) {
        let shaped = Shaped::of(run, report, published);
        printed += figures(published);
        with_ratio += shaped.with_ratio();
        results.extend(shaped.results);
    }
    let found = ratios(&results).map_or_else(String::new, |found| {
        format!(", {found} times as high here as published")
    });
    let have = if with_ratio == 1 { "has" } else { "have" };
    let sentence = format!("Of {printed} published figures {with_ratio} {have} a ratio{found}.");
    (printed > 0).then_some(sentence)
}

/// Number of figures that a table prints.
fn figures(published: &PublishedTable) -> usize {
    let cells = published.rows.iter().flat_map(|row| &row.cells);
    cells.flatten().count()
}

/// The lowest and the highest ratio; `None` without any.
fn ratios(results: &[&PublishedResult]) -> Option<String> {
    let all = || results.iter().filter_map(|one| one.ratio);
    let (lowest, highest) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let [lowest, highest] = [lowest, highest].map(ratio_number);
    Some(if lowest == highest {
        lowest
    } else {
        format!("{lowest}–{highest}")
    })
}

/// Returns every published table in its original form, in the order of its report.
pub(super) fn beside(run: &Run<'_>) -> Vec<Table> {
    let shaped = all(run).map(|(report, table)| Shaped::of(run, report, table).table());
    shaped.collect()
}

/// The drawings without numbers, and the section of this report with the same content.
/// `has_section` returns the heading of a section by its id; `None` if the run has no such section.
pub(super) fn drawings(
    run: &Run<'_>,
    mut has_section: impl FnMut(&str) -> Option<&'static str>,
) -> Option<Table> {
    let note = "drawings and statements of the report without a table of rates; nothing is compared, the named section \
                shows the same here";
    let mut table = Table::new("Drawings and statements of the published report", note)
        .labels(["In the report", "What"])
        .texts(["Here"]);
    for chart in run.plan().reports.iter().flat_map(|report| &report.charts) {
        let title = chart.section.as_deref().and_then(&mut has_section);
        let here = match (title, &chart.absent) {
            (Some(title), _) => Cell::plain(format!("section \"{title}\"")),
            (None, Some(why)) => Cell::plain(why.clone()),
            (None, None) => Cell::plain(NO_CELL),
        };
        table.push(vec![
            Cell::label(&chart.id),
            Cell::label(&chart.title),
            here,
        ]);
    }
    table.with_rows()
}

fn all<'r>(run: &'r Run<'_>) -> impl Iterator<Item = (&'r PublishedReport, &'r PublishedTable)> {
    let reports = run.plan().reports.iter();
    reports.flat_map(|report| report.tables.iter().map(move |table| (report, table)))
}

/// A published table, joined with the results for its figures.
struct Shaped<'r> {
    run: &'r Run<'r>,
    report: &'r PublishedReport,
    published: &'r PublishedTable,
    results: Vec<&'r PublishedResult>,
    /// Axes in which cells of the same DUT and figure differ.
    varying: BTreeSet<Axis>,
    /// Reasons for missing ratios; a mark is the index plus one.
    reasons: Vec<String>,
}

impl<'r> Shaped<'r> {
    /// Number of the table's figures with a ratio.
    fn with_ratio(&self) -> usize {
        let compared = self.results.iter().filter(|one| one.ratio.is_some());
        // Several devices may have a ratio in one place: each place counts once.
        let places = compared.filter_map(|one| one.at.as_ref().map(|at| (&at.row, &at.column)));
        places.collect::<BTreeSet<_>>().len()
    }

    fn of(run: &'r Run<'r>, report: &'r PublishedReport, published: &'r PublishedTable) -> Self {
        let of_table = |one: &&PublishedResult| {
            let table = one.at.as_ref().map(|at| &at.table);
            one.source == report.source && table == Some(&published.id)
        };
        let results: Vec<_> = run.results.published.iter().filter(of_table).collect();
        let mut varying = BTreeSet::new();
        // Cells of one device for one figure are named by the coordinates in which they differ.
        for (at, first) in results.iter().enumerate() {
            let same = |other: &&&PublishedResult| other.at == first.at && other.dut == first.dut;
            for other in results[at + 1..].iter().filter(same) {
                varying.extend(differences(run, first, other));
            }
        }
        Self {
            run,
            report,
            published,
            results,
            varying,
            reasons: Vec::new(),
        }
    }

    fn table(mut self) -> Table {
        let unit = self.common_unit();
        let has_means = self
            .published
            .rows
            .iter()
            .any(|row| row.mean_frame_rate.is_some());
        let mut columns: Vec<&str> = self.published.columns.iter().map(String::as_str).collect();
        if has_means {
            columns.push("Mean frame rate, all sizes");
        }
        let rows = self.published.rows_by.map_or("row", Axis::key);
        let rows = capitalized(rows);
        let mut table = Table::new(String::new(), String::new())
            .labels([rows.as_str(), "Measured here"])
            .figures(columns);
        for row in &self.published.rows {
            // Several devices may have figures for one printed row.
            for device in self.devices(row) {
                let mut cells = vec![Cell::label(&row.name), Cell::label(&device)];
                let figures = self.published.columns.iter().zip(&row.cells);
                for (column, printed) in figures {
                    cells.push(match printed {
                        Some(printed) => self.cell(row, column, &device, printed, unit.is_some()),
                        None => Cell::missing(),
                    });
                }
                if has_means {
                    cells.push(self.mean(row, &device));
                }
                table.push(cells);
            }
        }
        let (id, title) = (&self.published.id, &self.published.title);
        // A title that only repeats the id is left out.
        table.caption = if title.is_empty() || title == id {
            id.clone()
        } else {
            format!("{id}: {title}")
        };
        let in_unit = unit.map_or_else(String::new, |unit| format!(", {unit}"));
        table.note = format!(
            "published / measured mean / ratio{in_unit}; {}",
            self.report.source
        );
        if let Some(differs) = &self.published.differs {
            table.note += &format!("; {differs}");
        }
        for (at, reason) in self.reasons.iter().enumerate() {
            table.note += &format!("; [{}] {reason}", at + 1);
        }
        table
    }

    /// The common unit of all figures; `None` if units differ or a figure's text includes its unit.
    fn common_unit(&self) -> Option<String> {
        let all = self
            .published
            .rows
            .iter()
            .flat_map(|row| row.cells.iter().flatten());
        let units = unique(all.clone().map(|cell| cell.unit.as_str()));
        match units[..] {
            [unit] if !all.clone().any(|cell| cell.text.ends_with(unit)) => Some(unit.to_owned()),
            _ => None,
        }
    }

    /// The devices with a figure in a row, with the coordinates that distinguish their cells.
    fn devices(&self, row: &PublishedRow) -> Vec<String> {
        let own = self.results.iter().filter(|one| is_in(one, &row.name));
        let found = own.map(|one| self.device(one)).collect::<Vec<_>>();
        let found: Vec<String> = unique(found.iter().map(String::as_str))
            .into_iter()
            .map(str::to_owned)
            .collect();
        // Without a result, the row shows the printed figures alone.
        if found.is_empty() {
            vec![NONE.to_owned()]
        } else {
            found
        }
    }

    fn device(&self, one: &PublishedResult) -> String {
        let mut name = one.dut.clone();
        let planned = self
            .run
            .cell(&one.cell)
            .and_then(|cell| self.run.planned(cell));
        for at in planned.iter().flat_map(|cell| &cell.coordinates) {
            if self.varying.contains(&at.axis) {
                name += &format!(", {at}");
            }
        }
        name
    }

    fn result(&self, row: &str, column: &str, device: &str) -> Option<&'r PublishedResult> {
        let fits = |one: &&&PublishedResult| {
            let at = one
                .at
                .as_ref()
                .is_some_and(|at| at.row == row && at.column == column);
            at && self.device(one) == device
        };
        self.results.iter().find(fits).copied()
    }

    fn cell(
        &mut self,
        row: &PublishedRow,
        column: &str,
        device: &str,
        printed: &PublishedCell,
        unit_is_common: bool,
    ) -> Cell {
        // A common unit is in the note, and some printed texts contain theirs.
        let text = if unit_is_common || printed.text.ends_with(&printed.unit) {
            printed.text.clone()
        } else {
            format!("{} {}", printed.text, printed.unit)
        };
        let result = self.result(&row.name, column, device);
        if let Some((measured, ratio)) =
            result.and_then(|one| Some((one.measured.as_ref()?, one.ratio?)))
        {
            // The printed text is in units of this scale.
            let measured = ratio_number(measured.mean / printed.scale as f64);
            return Cell::plain(format!("{text} / {measured} / {}", ratio_number(ratio)));
        }
        let reason = match result {
            Some(one) => without_ratio(one, self.run.cell(&one.cell)),
            None => self.without_result(row, column),
        };
        let otherwise = result.and_then(|one| one.measured_otherwise.as_ref());
        let otherwise = otherwise.map(|found| ratio_number(found.mean / printed.scale as f64));
        self.marked(&text, otherwise.as_deref().unwrap_or(NONE), reason)
    }

    fn marked(&mut self, text: &str, measured: &str, reason: String) -> Cell {
        // Equal reasons share one mark.
        let known = self.reasons.iter().position(|known| *known == reason);
        let at = known.unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        Cell::plain(format!("{text} / {measured} / {NONE} [{}]", at + 1))
    }

    fn without_result(&self, row: &PublishedRow, column: &str) -> String {
        // The most specific reason counts: of the column, of the row, of the table.
        let mut elsewhere = self.published.elsewhere.iter();
        let of_column = elsewhere.find(|(known, _)| known == column);
        let stated = of_column.map(|(_, reason)| reason);
        let stated = stated.or(row.absent.as_ref());
        let stated = stated.or(self.published.absent.as_ref());
        let unsaid = if self.report.short {
            NOT_IN_SHORT
        } else {
            NO_CELL
        };
        stated.map_or_else(|| unsaid.to_owned(), Clone::clone)
    }

    /// The mean of the frame rates at all sizes of the row. It includes link-limited rates, as in
    /// the published report.
    fn mean(&mut self, row: &PublishedRow, device: &str) -> Cell {
        let Some(printed) = &row.mean_frame_rate else {
            return Cell::missing();
        };
        let rate = |column: &String| {
            let one = self.result(&row.name, column, device)?;
            Some(self.run.cell(&one.cell)?.frame_rate()?.mean)
        };
        // The published mean includes all sizes, so one without a rate makes both incomparable.
        let rates: Option<Vec<f64>> = self.published.columns.iter().map(rate).collect();
        let text = format!("{} {}", printed.text, printed.unit);
        // A printed mean with a remark is no number.
        let published: Option<f64> = printed.text.parse().ok();
        match (rates, published) {
            (Some(rates), Some(published)) if published > 0.0 => {
                let mean = rates.iter().sum::<f64>() / rates.len() as f64;
                let ratio = ratio_number(mean / published);
                Cell::derived(format!("{text} / {mean:.0} / {ratio}"))
            }
            _ => self.marked(
                &text,
                NONE,
                "not every size has a frame rate here".to_owned(),
            ),
        }
    }
}

fn is_in(one: &PublishedResult, row: &str) -> bool {
    one.at.as_ref().is_some_and(|at| at.row == row)
}

/// The axes in which the cells of two results differ.
fn differences(run: &Run<'_>, a: &PublishedResult, b: &PublishedResult) -> Vec<Axis> {
    let planned = |one: &PublishedResult| run.cell(&one.cell).and_then(|cell| run.planned(cell));
    let (Some(a), Some(b)) = (planned(a), planned(b)) else {
        return Vec::new();
    };
    let differing = a
        .coordinates
        .iter()
        .filter(|at| !b.coordinates.contains(at));
    differing.map(|at| at.axis).collect()
}

/// Why a figure with a cell has no ratio.
fn without_ratio(one: &PublishedResult, cell: Option<&CellResult>) -> String {
    if let Some(why) = &one.refused {
        return format!("not comparable: {why}");
    }
    if is_share(one) {
        return "shares of the devices are in the table of the batch, section \"Fatigue\"".into();
    }
    let Some(cell) = cell else {
        return NO_CELL.to_owned();
    };
    if cell.is_skipped() {
        return "this machine has too few cores".to_owned();
    }
    let reason = cell.reasons.first().map(|reason| in_brief(&reason.text));
    match (cell.status, reason) {
        (Status::Invalid, Some(reason)) => format!("invalid: {reason}"),
        (Status::Failed, Some(reason)) => format!("failed: {reason}"),
        (Status::NotRun, _) => "not run".to_owned(),
        _ => "the cell has no such figure".to_owned(),
    }
}
