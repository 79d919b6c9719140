//! What the pages show.

use super::super::history::{LAST, NOTHING_ELSE, Series, archived, change, ratio, series};
use super::super::labels;
use super::super::pooled::Pooled;
use super::super::status::how_far;
use fleet::{Fleet, FleetError, Job, LabSeen, Overview, Row, Seen, State};
use journal::time::utc;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use report::{Course, CourseChange, CoursePoint};
use std::time::Duration;
use units::human::counted;

/// Ended jobs that are listed.
const ENDED: usize = 20;
/// Runs of a course that are drawn.
const DRAWN: usize = 500;

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// Labs and jobs.
    Overview,
    /// All cells.
    Cells,
    /// The course of a cell, by its id.
    Cell(String),
}

/// What is around a page's content and does not change.
pub(super) struct Shell {
    title: String,
    provenance: String,
    is_live: bool,
}

impl Page {
    pub(super) fn shell(&self, url: &str) -> Shell {
        Shell {
            title: match self {
                Self::Overview => "Labs and jobs".to_owned(),
                Self::Cells => "Cells".to_owned(),
                Self::Cell(id) => id.clone(),
            },
            provenance: provenance(url),
            is_live: true,
        }
    }

    /// What changes.
    pub(super) async fn content(&self, fleet: &Fleet, overview: &Overview) -> Markup {
        if let Some(reason) = overview.away() {
            return trouble(&reason);
        }
        let content = match self {
            Self::Overview => overview.see(fleet, ENDED).await.map(|seen| all(&seen)),
            Self::Cells => fleet.cells().await.map(|cells| of_cells(&cells)),
            Self::Cell(id) => course_of(fleet, id).await,
        };
        content.unwrap_or_else(|error| trouble(&error.to_string()))
    }
}

/// Of a run that is not in the archive.
pub(super) fn missing(url: &str, job: &str) -> Shell {
    Shell {
        title: format!("No report of {job}"),
        provenance: provenance(url),
        is_live: false,
    }
}

/// Without the user's name and password.
fn provenance(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    let host = rest.rsplit('@').next().unwrap_or(rest);
    format!("The fleet at {scheme}://{host}")
}

impl Shell {
    /// The whole page around rendered content.
    pub(super) fn around(&self, content: &str) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    @if self.is_live { noscript { meta http-equiv="refresh" content="10"; } }
                    title { (self.title) " – cipherbench" }
                    link rel="stylesheet" href="/page.css";
                    @if self.is_live { script src="/page.js" defer {} }
                }
                body {
                    header {
                        p.kind { "Fleet" }
                        h1 { (self.title) }
                        p.provenance {
                            (self.provenance)
                            span #link hidden { ". This page has lost its own server: what it shows is old" }
                        }
                        nav aria-label="Pages" {
                            a href="/" { "Labs and jobs" } " "
                            a href="/cells" { "Cells" }
                        }
                    }
                    main { (PreEscaped(content)) }
                }
            }
        };
        page.into_string()
    }
}

pub(super) fn sentence(text: &str) -> Markup {
    html! { section { pre { (text) } } }
}

/// The server does not answer.
fn trouble(reason: &str) -> Markup {
    html! {
        section.trouble {
            h2 { "The fleet's server does not answer" }
            p { (reason) }
            p.advice { "Runs go on meanwhile. This page goes on when the server is back." }
        }
    }
}

fn all(seen: &Seen) -> Markup {
    let rows = &seen.listing.rows;
    let (open, ended): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| !row.state.is_final());
    let (running, queued): (Vec<&Row>, Vec<&Row>) = open
        .into_iter()
        .partition(|row| matches!(row.state, State::Running(_)));
    html! {
        (labs(&seen.labs))
        (under_way(&running, &seen.labs))
        (queue(&queued))
        (repeated(&seen.repeats))
        (ends(&ended, seen.listing.left_out))
    }
}

/// A table whose rows are paragraphs on a narrow screen.
fn list(id: &str, title: &str, none: &str, heads: &[&str], rows: &[Markup]) -> Markup {
    html! {
        section id=(id) {
            h2 { (title) }
            @if rows.is_empty() {
                p.note { (none) }
            } @else {
                div."table list" {
                    table {
                        thead { tr { @for head in heads { th { (head) } } } }
                        tbody { @for row in rows { tr { (row) } } }
                    }
                }
            }
        }
    }
}

fn labs(labs: &[LabSeen]) -> Markup {
    let row = |seen: &LabSeen| {
        let offer = &seen.offer;
        html! {
            th { (offer.lab) }
            td {
                @match (&offer.job, seen.is_alive) {
                    (Some(job), true) => { "runs " code { (job) } },
                    (None, true) => { span.free { "free" } },
                    (Some(job), false) => { span.gone { "silent, with " code { (job) } } },
                    (None, false) => { span.gone { "silent" } },
                }
            }
            td data-is="Agent" { (offer.agent) }
            td data-is="Labels" { (labels(&offer.labels).trim_start()) }
            td data-is="Last seen" { @if seen.is_alive { "now" } @else { (date(seen.renewed_at)) } }
        }
    };
    let rows: Vec<Markup> = labs.iter().map(row).collect();
    let none = "No lab is on offer: `cipherbench fleet agent LAB` offers one.";
    let heads = ["Lab", "State", "Agent", "Labels", "Last seen"];
    list("labs", "Labs", none, &heads, &rows)
}

fn under_way(running: &[&Row], labs: &[LabSeen]) -> Markup {
    let row = |row: &&Row| {
        let (job, held) = match &row.state {
            State::Running(held) => (&row.job, Some(held)),
            _ => (&row.job, None),
        };
        let offer = labs
            .iter()
            .find(|seen| seen.offer.job.as_ref() == Some(&job.id));
        let progress = offer.and_then(|seen| seen.offer.progress.as_ref());
        html! {
            th { code { (job.id) } }
            td { (job.name) }
            td data-is="Lab" { @if let Some(held) = held { (held.lab) @if held.attempt > 1 { ", attempt " (held.attempt) } } }
            td data-is="Progress" {
                @match progress {
                    Some(progress) => {
                        progress max=(progress.planned) value=(progress.done) {}
                        (how_far(progress))
                    },
                    None => { "begins" },
                }
            }
        }
    };
    let rows: Vec<Markup> = running.iter().map(row).collect();
    let heads = ["Job", "Campaign", "Lab", "Progress"];
    list("running", "Under way", "No job runs.", &heads, &rows)
}

fn queue(queued: &[&Row]) -> Markup {
    let row = |row: &&Row| {
        html! {
            th { code { (row.job.id) } }
            td { (row.job.name) }
            td data-is="By" { (row.job.by) }
            td data-is="Priority" { (row.job.priority) }
            td {
                @if row.misfits.is_empty() {
                    "waits for a lab"
                } @else {
                    ul.reasons { @for (lab, reason) in &row.misfits { li { "not in " (lab) ": " (reason) } } }
                }
            }
        }
    };
    let mut ordered: Vec<&&Row> = queued.iter().collect();
    // As agents take them.
    ordered.sort_by(|one, other| {
        (other.job.priority, &one.job.id).cmp(&(one.job.priority, &other.job.id))
    });
    let rows: Vec<Markup> = ordered.into_iter().map(row).collect();
    let heads = ["Job", "Campaign", "By", "Priority", "Why it waits"];
    list("queue", "Queue", "No job waits.", &heads, &rows)
}

fn repeated(jobs: &[Job]) -> Markup {
    if jobs.is_empty() {
        return Markup::default();
    }
    let row = |job: &Job| {
        let period = Duration::from_secs(job.every.unwrap_or_default());
        html! {
            th { code { (job.id) } }
            td { (job.name) }
            td data-is="By" { (job.by) }
            td data-is="Every" { (units::time::print(period)) }
        }
    };
    let rows: Vec<Markup> = jobs.iter().map(row).collect();
    list(
        "repeated",
        "Repeated",
        "",
        &["Job", "Campaign", "By", "Every"],
        &rows,
    )
}

fn ends(ended: &[&Row], left_out: usize) -> Markup {
    let row = |row: &&Row| {
        let labels = labels(&row.job.labels);
        html! {
            th { code { (row.job.id) } }
            td { (row.job.name) (labels) }
            @match &row.state {
                State::Done { held, exit } => {
                    td data-is="Lab" { (held.lab) }
                    td { "done, " (how_it_ended(*exit)) }
                    td { a href={ "/run/" (row.job.id) } { "report" } }
                },
                State::Parked { reason } => { td {} td { span.gone { "parked: " } (reason) } td {} },
                _ => { td {} td { (row.state.word()) } td {} },
            }
        }
    };
    let rows: Vec<Markup> = ended.iter().rev().map(row).collect();
    let heads = ["Job", "Campaign", "Lab", "End", ""];
    html! {
        (list("ended", "Last ended", "No job has ended.", &heads, &rows))
        @if left_out > 0 { p.note { (counted(left_out as u64, "job")) " ended before these." } }
    }
}

/// What the exit code of a run with figures says.
fn how_it_ended(exit: i32) -> &'static str {
    match exit {
        0 => "every trial measured",
        1 => "some trials without a figure",
        _ => "too few trials",
    }
}

fn date(unix_s: u64) -> String {
    utc(unix_s.saturating_mul(1_000_000_000))
}

fn of_cells(cells: &[String]) -> Markup {
    html! {
        section {
            h2 { "Their course over all runs of the archive" }
            @if cells.is_empty() { p.note { "The archive has no run with a figure." } }
            ul.plain { @for cell in cells { li { a href={ "/cell/" (encoded(cell)) } { (cell) } } } }
        }
    }
}

/// A text as a part of a path.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

async fn course_of(fleet: &Fleet, cell: &str) -> Result<Markup, FleetError> {
    let points = fleet.history(cell).await?;
    let all = series(fleet, &points).await?;
    let mut pooled = Vec::new();
    for series in &all {
        pooled.push(series.pooled(fleet, cell).await?);
    }
    Ok(html! {
        @if all.is_empty() { (sentence("No run of the archive has this cell.")) }
        @for (at, (series, pooled)) in all.iter().zip(&pooled).enumerate() {
            (of_series(at, series, pooled))
        }
    })
}

fn of_series(at: usize, series: &Series<'_>, pooled: &[Pooled]) -> Markup {
    let count = series.points.len();
    let left_out = count.saturating_sub(DRAWN);
    let points = series.points.iter().skip(left_out);
    let changes = series
        .shifts
        .iter()
        .filter(|(shift, _)| shift.at > left_out);
    let drawn = Course {
        id: format!("course-{at}"),
        title: series.title(),
        quantity: series.quantity,
        points: points
            .map(|(point, value)| CoursePoint {
                value: *value,
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
    let row = |(point, value): &(&fleet::Point, f64)| {
        html! {
            th { (archived(point)) }
            td { a href={ "/run/" (point.job) } { code { (point.job) } } }
            td data-is="Lab" { (point.lab) (labels(&point.labels)) }
            td.right { (series.quantity.print(*value)) }
        }
    };
    let rows: Vec<Markup> = series.points.iter().rev().take(LAST).map(row).collect();
    let runs = counted(count as u64, "run");
    html! {
        section {
            h2 { (series.title()) }
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
                (report::course(&drawn))
            }
            @for part in pooled { p.note { "From run " (part.from + 1) " on, " (part.in_words()) "." } }
            @for (shift, differences) in &series.shifts {
                h4 { "At " (archived(series.points[shift.at].0)) ": " (change(series.quantity, shift)) }
                ul.what {
                    @for one in differences { li { (one.what) ": " (one.base) " → " (one.other) } }
                    @if differences.is_empty() { li { (NOTHING_ELSE) } }
                }
            }
        }
        (list(&format!("runs-{at}"), "Last runs", "", &["Archived", "Job", "Lab", "Figure"], &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::{Held, LabOffer, LastTrial, Listing, Point, Progress, Selector};
    use stats::Quantity;
    use std::collections::BTreeMap;

    fn row(id: &str, state: State, misfits: &[(&str, &str)]) -> Row {
        let text = |(lab, reason): &(&str, &str)| ((*lab).to_owned(), (*reason).to_owned());
        Row {
            job: Job {
                id: id.to_owned(),
                name: "<b>campaign</b>.yaml".to_owned(),
                campaign: String::new(),
                quick: false,
                selector: Selector::default(),
                priority: if id == "urgent" { 5 } else { 0 },
                labels: BTreeMap::new(),
                by: "somebody".to_owned(),
                every: None,
                period: None,
                signature: None,
            },
            state,
            misfits: misfits.iter().map(text).collect(),
        }
    }

    fn lab(name: &str, job: Option<&str>, is_alive: bool) -> LabSeen {
        LabSeen {
            offer: LabOffer {
                lab: name.to_owned(),
                agent: "host-1".to_owned(),
                incarnation: String::new(),
                labels: BTreeMap::from([("firmware".to_owned(), "2.1".to_owned())]),
                job: job.map(str::to_owned),
                progress: job.map(|_| Progress {
                    done: 3,
                    planned: 20,
                    last: Some(LastTrial {
                        cell: "tcp-1500".to_owned(),
                        repeat: 2,
                        outcome: "measured".to_owned(),
                    }),
                }),
                beats: 1,
            },
            renewed_at: 1_000_000_000,
            is_alive,
        }
    }

    #[test]
    fn what_there_is_to_see_is_on_the_page() {
        let held = Held {
            lab: "one".to_owned(),
            agent: "host-1".to_owned(),
            attempt: 2,
        };
        let queued = State::Queued {
            attempts: 0,
            priority: 0,
        };
        let done = State::Done {
            held: held.clone(),
            exit: 1,
        };
        let parked = State::Parked {
            reason: "a wrong campaign".to_owned(),
        };
        let seen = Seen {
            labs: vec![
                lab("one", Some("5"), true),
                lab("two", None, true),
                lab("three", None, false),
            ],
            repeats: Vec::new(),
            listing: Listing {
                rows: vec![
                    row("1", done, &[]),
                    row("2", parked, &[]),
                    row("3", queued.clone(), &[("one", "it has 2 cores")]),
                    row("urgent", queued, &[]),
                    row("5", State::Running(held), &[]),
                ],
                left_out: 7,
            },
        };
        let text = all(&seen).into_string();
        for part in [
            "runs <code>5</code>",
            "<span class=\"free\">free</span>",
            "<span class=\"gone\">silent</span>",
            "2001-09-09",
            "one, attempt 2",
            "<progress max=\"20\" value=\"3\"></progress>3 of 20 trials, last tcp-1500 #2: measured",
            "not in one: it has 2 cores",
            "waits for a lab",
            "done, some trials without a figure",
            "<a href=\"/run/1\">report</a>",
            "parked: </span>a wrong campaign",
            "7 jobs ended before these.",
            "&lt;b&gt;campaign&lt;/b&gt;.yaml",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("<b>campaign"), "{text}");
        let place = |part: &str| text.find(part).unwrap();
        assert!(place("<code>urgent</code>") < place("<code>3</code>"));
    }

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
        let series = Series {
            quantity: Quantity::PayloadThroughput,
            load_percent: None,
            points: points.iter().zip(values).collect(),
            shifts: compare::shifts(&values)
                .into_iter()
                .map(|shift| (shift, Vec::new()))
                .collect(),
        };
        let text = of_series(0, &series, &[]).into_string();
        for part in [
            "6 runs, 1 change",
            "<svg",
            "0.500 times",
            NOTHING_ELSE,
            "/run/job-5",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_cell_is_one_part_of_a_path_and_a_password_is_not_shown() {
        assert_eq!(encoded("tcp-1500 a/b?ü"), "tcp-1500%20a%2Fb%3F%C3%BC");
        assert_eq!(
            provenance("nats://me:secret@host:4222"),
            "The fleet at nats://host:4222"
        );
    }
}
