//! The pages of cells: a list of names, and the course of one cell over all runs.

use crate::course::{LAST, NOTHING_ELSE, Series, archived, change, ratio, series};
use crate::text::labels;
use fleet::{Figure, Fleet, FleetError};
use maud::{Markup, html};
use page::parts::{date, encoded, heading, list, sentence};
use report::{Course, CourseChange, CoursePoint};
use units::human::counted;

/// Runs of a course that are drawn.
const DRAWN: usize = 500;

/// Cells with their names; one of an earlier version has its id for a name.
pub(super) async fn named_cells(fleet: &Fleet) -> Result<Vec<(String, String)>, FleetError> {
    let cells = fleet.cells().await?;
    let mut names = fleet.cell_names(&cells).await?;
    let named = cells.into_iter().map(|cell| {
        let name = names.remove(&cell).unwrap_or_else(|| cell.clone());
        (cell, name)
    });
    Ok(named.collect())
}

pub(super) fn of_cells(cells: &[(String, String)]) -> Markup {
    html! {
        section {
            h2 { "Their course over all runs of the archive" }
            @if cells.is_empty() { p.note { "The archive has no run with a figure." } }
            ul.plain {
                @for (cell, name) in cells {
                    li {
                        a href={ "/cell/" (encoded(cell)) } { (name) }
                        @if name != cell { " " code { (cell) } }
                    }
                }
            }
        }
    }
}

pub(super) async fn course_of(fleet: &Fleet, cell: &str) -> Result<Markup, FleetError> {
    let points = fleet.history(cell).await?;
    let all = series(fleet, cell, &points).await?;
    let name = fleet.cell_names(&[cell.to_owned()]).await?.remove(cell);
    Ok(html! {
        section #cell {
            @if let Some(name) = name { p.answer { (name) } }
            p.note { "In commands: " code { (cell) } }
        }
        @if all.is_empty() { (sentence("No run of the archive has this cell.")) }
        @for (at, series) in all.iter().enumerate() { (of_series(at, series)) }
    })
}

fn of_series(at: usize, series: &Series<'_>) -> Markup {
    let count = series.points.len();
    let left_out = count.saturating_sub(DRAWN);
    let drawn = series.points.iter().skip(left_out);
    let changes = series
        .shifts
        .iter()
        // A change at the first drawn run has no run before it in the chart.
        .filter(|(shift, _)| shift.at > left_out);
    let drawn = Course {
        id: format!("course-{at}"),
        title: series.title(),
        quantity: series.quantity,
        points: drawn
            .map(|(point, figure)| CoursePoint {
                value: figure.value,
                spread: figure.spread,
                // The date without the time of day.
                date: archived(point).chars().take(10).collect(),
                hover: format!("{} in {}{}", point.job, point.lab, labels(&point.labels)),
            })
            .collect(),
        changes: changes
            .map(|(shift, _)| CourseChange {
                at: shift.at - left_out,
                before: shift.before,
                after: shift.after,
                label: format!("{} times", ratio(shift.ratio)),
            })
            .collect(),
    };
    let row = |(point, figure): &(&fleet::Point, &Figure)| {
        html! {
            th { (date(point.archived_at)) }
            td { a href={ "/run/" (point.job) } { code { (point.job) } } }
            td data-is="Lab" { (point.lab) (labels(&point.labels)) }
            td.right data-is="Figure" { (series.quantity.print(figure.value)) }
            td.right data-is="Repeats" {
                (figure.repeats)
                @if let Some((low, high)) = figure.spread.filter(|(low, high)| low < high) {
                    ", " (series.quantity.print(low)) " to " (series.quantity.print(high))
                }
            }
        }
    };
    // The latest run is the first row.
    let rows: Vec<Markup> = series.points.iter().rev().take(LAST).map(row).collect();
    let runs = counted(count as u64, "run");
    html! {
        section {
            h2 { (heading(&series.title())) }
            figure {
                figcaption {
                    span.title {
                        @match series.shifts.len() {
                            0 => { (runs) ", no change found" },
                            changes => { (runs) ", " (counted(changes as u64, "change")) },
                        }
                    }
                    span.note {
                        "A mark is the geometric mean of a run's repeats."
                        @if left_out > 0 { " The last " (DRAWN) " are drawn." }
                    }
                }
                div.chart { (report::course(&drawn)) }
            }
            @for part in &series.pooled { p.note { "From run " (part.from + 1) " on, " (part.in_words()) "." } }
            @for (shift, differences) in &series.shifts {
                h4 { "At " (date(series.points[shift.at].0.archived_at)) ": " (change(series.quantity, shift)) }
                ul.what {
                    @for one in differences { li { (one.what) ": " (one.base) " → " (one.other) } }
                    @if differences.is_empty() { li { (NOTHING_ELSE) } }
                }
            }
        }
        (list(&format!("runs-{at}"), "Last runs", &["Archived (UTC)", "Job", "Lab", "Figure", "Repeats"], &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::Point;
    use stats::Quantity;
    use std::collections::BTreeMap;

    #[test]
    fn a_course_has_its_chart_and_says_what_changed() {
        let points: Vec<Point> = (0..6)
            .map(|nth| Point {
                job: format!("job-{nth}"),
                lab: "one".to_owned(),
                labels: BTreeMap::new(),
                figures: Vec::new(),
                archived_at: 1_000_000_000 + nth,
            })
            .collect();
        let values = [2e9, 2.01e9, 1.99e9, 1e9, 1.01e9, 0.99e9];
        let figures = values.map(|value| Figure {
            key: "payload_throughput_bps".to_owned(),
            load_percent: None,
            value,
            repeats: 3,
            spread: Some((0.9 * value, 1.1 * value)),
        });
        let series = Series {
            quantity: Quantity::PayloadThroughput,
            load_percent: None,
            points: points.iter().zip(&figures).collect(),
            shifts: compare::shifts(&values)
                .into_iter()
                .map(|shift| (shift, Vec::new()))
                .collect(),
            pooled: Vec::new(),
        };
        let text = of_series(0, &series).into_string();
        for part in [
            "<h2>Throughput</h2>",
            "6 runs, 1 change",
            "<svg",
            "0.500 times",
            NOTHING_ELSE,
            "/run/job-5",
            "repeats from 1.8 Gbit/s to 2.2 Gbit/s",
            "<td class=\"right\" data-is=\"Repeats\">3, 891 Mbit/s to 1.089 Gbit/s</td>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_cell_has_its_name_for_people_and_its_id_for_commands() {
        let named = |id: &str, name: &str| (id.to_owned(), name.to_owned());
        let text = of_cells(&[named("tcp/a b", "a: TCP"), named("old", "old")]).into_string();
        let link = "<a href=\"/cell/tcp%2Fa%20b\">a: TCP</a> <code>tcp/a b</code>";
        assert!(text.contains(link), "{text}");
        assert!(
            text.contains("<li><a href=\"/cell/old\">old</a></li>"),
            "{text}"
        );
    }
}
