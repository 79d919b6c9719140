//! The page of labs and jobs.

use crate::status::idle;
use crate::text::labels;
use fleet::{Figure, Headline, Job, LabStatus, Progress, Row, Snapshot, State, UnreadableEntry};
use maud::{Markup, html};
use page::lists::{List, ListRow, ROOM, chars, lists};
use page::parts::{SHORT, date, encoded, shortened, start};
use stats::Quantity;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;
use units::human::counted;

/// Entries that cannot be read and are listed.
const UNREADABLE: usize = 20;
/// Figures of an ended job.
const FIGURES: usize = 2;
/// Pixels of the section with unreadable entries, at 400 px of width.
const TROUBLE: u32 = 250;
/// Most bytes of a cell's name next to a figure.
const NAME_BYTES: usize = 50;

/// Running and waiting jobs come first.
pub(super) fn all(seen: &Snapshot) -> Markup {
    let rows = &seen.listing.rows;
    let (open, ended): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| !row.state.is_final());
    let (running, queued): (Vec<&Row>, Vec<&Row>) = open
        .into_iter()
        .partition(|row| matches!(row.state, State::Running(_)));
    let all = [
        under_way(&running, seen),
        queue(&queued),
        ends(&ended, &seen.headlines, seen.listing.left_out),
        labs(&seen.labs),
        repeated(&seen.repeats),
    ];
    // The section of unreadable entries takes its room from the lists.
    let room = if seen.unreadable.is_empty() {
        ROOM
    } else {
        ROOM - TROUBLE
    };
    html! {
        (unreadable(&seen.unreadable))
        (lists(&all, room))
    }
}

/// Entries that are left out, because they cannot be read.
fn unreadable(entries: &[UnreadableEntry]) -> Markup {
    let Some((first, others)) = entries.split_first() else {
        return Markup::default();
    };
    html! {
        section.trouble {
            h2 { "Entries that cannot be read: " (entries.len()) }
            div { (shortened("unreadable-first", &first.to_string())) }
            @if !others.is_empty() {
                details #unreadable-others {
                    summary { (others.len()) " more" }
                    @for entry in others.iter().take(UNREADABLE) { p { (entry) } }
                }
            }
        }
    }
}

/// `Queue: 300 jobs`.
fn counting(title: &str, count: usize, noun: &str) -> String {
    match count {
        0 => title.to_owned(),
        count => format!("{title}: {}", counted(count as u64, noun)),
    }
}

fn labs(labs: &[LabStatus]) -> List {
    let row = |seen: &LabStatus| {
        let offer = &seen.offer;
        let labels = labels(&offer.labels);
        let labels = labels.trim_start();
        let cells = html! {
            th { (offer.lab) }
            td {
                @match (&offer.job, seen.is_alive) {
                    (Some(job), true) => { "runs " code { (job) } },
                    (None, true) if offer.waits => { (idle(offer)) },
                    (None, true) => { span.free { "free" } },
                    (Some(job), false) => { span.gone { "silent, with " code { (job) } } },
                    (None, false) => { span.gone { "silent" } },
                }
            }
            td data-is="Agent" { (offer.agent) }
            td.when data-is="Last seen" { @if seen.is_alive { "now" } @else { (date(seen.renewed_at)) } }
            td.own data-is="Labels" { (shortened(&format!("labels-{}", offer.lab), labels)) }
        };
        let state = offer.job.as_deref().map_or(0, chars);
        let state = chars("silent, with ") + state.max(chars(idle(offer)));
        let heights = [
            chars(&offer.lab) + state,
            chars("Agent: Last seen: 2026-11-20 11:30:00") + chars(&offer.agent),
            // Longer texts are folded.
            (chars("Labels: ") + chars(labels)).min(SHORT),
        ];
        ListRow::new(cells, &heights)
    };
    // A lab that is silent must not be folded.
    let mut ordered: Vec<&LabStatus> = labs.iter().collect();
    // `false` comes first: silent labs, then labs with a job.
    ordered.sort_by_key(|seen| (seen.is_alive, seen.offer.job.is_none()));
    List {
        id: "labs",
        title: counting("Labs", labs.len(), "lab"),
        noun: "lab",
        none: Some("No lab is on offer: `cipherbench fleet agent LAB` offers one."),
        heads: &["Lab", "State", "Agent", "Last seen (UTC)", "Labels"],
        rows: ordered.into_iter().map(row).collect(),
        note: None,
    }
}

fn under_way(running: &[&Row], seen: &Snapshot) -> List {
    let row = |row: &&Row| {
        let (job, held) = match &row.state {
            State::Running(held) => (&row.job, Some(held)),
            _ => (&row.job, None),
        };
        let offer = seen
            .labs
            .iter()
            .find(|seen| seen.offer.job.as_ref() == Some(&job.id));
        let progress = offer.and_then(|seen| seen.offer.progress.as_ref());
        let far = progress.map(|progress| how_far(progress, &seen.names));
        let cells = html! {
            th { code { (job.id) } }
            td { (job.name) }
            td data-is="Lab" { @if let Some(held) = held { (held.lab) @if held.attempt > 1 { ", attempt " (held.attempt) } } }
            td.when data-is="Since" { (date(row.since)) }
            td.own data-is="Progress" {
                @if let (Some(progress), Some(far)) = (progress, &far) {
                    progress max=(progress.planned) value=(progress.done) {}
                    (far)
                } @else { "begins" }
            }
        };
        let lab = held.map_or(0, |held| chars(&held.lab));
        let heights = [
            chars(&job.id) + chars(&job.name),
            chars("Lab: , attempt 2 Since: 2026-11-20 11:30:00") + lab,
            chars("Progress: ================ ") + far.as_deref().map_or(0, chars),
        ];
        ListRow::new(cells, &heights)
    };
    List {
        id: "running",
        title: counting("Under way", running.len(), "job"),
        noun: "job",
        none: Some("No job runs."),
        heads: &["Job", "Campaign", "Lab", "Since (UTC)", "Progress"],
        rows: running.iter().map(row).collect(),
        note: None,
    }
}

/// Describes the progress. The last trial's cell has its name if an earlier run is in the archive.
fn how_far(progress: &Progress, names: &BTreeMap<String, String>) -> String {
    let last = progress.last.as_ref().map_or_else(String::new, |last| {
        let name = names.get(&last.cell).map(|name| beginning(name));
        let name = name.map_or_else(String::new, |name| format!("{name}, "));
        format!("; last: {name}repeat {}, {}", last.repeat, last.outcome)
    });
    format!("{} of {} trials{last}", progress.done, progress.planned)
}

fn queue(queued: &[&Row]) -> List {
    let row = |row: &&Row| {
        let why = why_it_waits(row);
        let cells = html! {
            th { code { (row.job.id) } }
            td { (row.job.name) }
            td data-is="By" { (row.job.by) }
            td.when data-is="Submitted" { (date(row.submitted_at)) }
            td data-is="Priority" { @if row.job.priority != 0 { (row.job.priority) } }
            td.own { (shortened(&format!("why-{}", row.job.id), &why)) }
        };
        let priority = match row.job.priority {
            0 => 0,
            _ => chars("Priority: 100"),
        };
        let heights = [
            chars(&row.job.id) + chars(&row.job.name),
            chars("By: Submitted: 2026-11-20 11:30:00") + chars(&row.job.by) + priority,
            chars(&why).min(SHORT),
        ];
        ListRow::new(cells, &heights)
    };
    let mut ordered: Vec<&&Row> = queued.iter().collect();
    // As agents take them.
    ordered.sort_by(|one, other| {
        (other.job.priority, &one.job.id).cmp(&(one.job.priority, &other.job.id))
    });
    List {
        id: "queue",
        title: counting("Queue", queued.len(), "job"),
        noun: "job",
        none: Some("No job waits."),
        heads: &[
            "Job",
            "Campaign",
            "By",
            "Submitted (UTC)",
            "Priority",
            "Why it waits",
        ],
        rows: ordered.into_iter().map(row).collect(),
        note: None,
    }
}

/// Why a job does not fit labs: each reason once, on a line.
fn why_it_waits(row: &Row) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (lab, reason) in &row.misfits {
        by_reason.entry(reason).or_default().push(lab);
    }
    let in_words: Vec<String> = by_reason
        .iter()
        .map(|(reason, labs)| format!("not in {}: {reason}", labs.join(", ")))
        .collect();
    if in_words.is_empty() {
        "waits for a lab".to_owned()
    } else {
        in_words.join("\n")
    }
}

fn repeated(jobs: &[Job]) -> List {
    let row = |job: &Job| {
        let period = Duration::from_secs(job.every.unwrap_or_default());
        let period = units::time::print(period);
        let cells = html! {
            th { code { (job.id) } }
            td { (job.name) }
            td data-is="By" { (job.by) }
            td data-is="Every" { (period) }
        };
        let heights = [
            chars(&job.id) + chars(&job.name),
            chars("By: Every: ") + chars(&job.by) + chars(&period),
        ];
        ListRow::new(cells, &heights)
    };
    List {
        id: "repeated",
        title: counting("Repeated", jobs.len(), "job"),
        noun: "job",
        none: None,
        heads: &["Job", "Campaign", "By", "Every"],
        rows: jobs.iter().map(row).collect(),
        note: None,
    }
}

fn ends(ended: &[&Row], headlines: &BTreeMap<String, Vec<Headline>>, left_out: usize) -> List {
    let row = |row: &&Row| {
        let id = &row.job.id;
        // A run without figures has no headline, but its report says why.
        let figures = headlines.get(id).map_or(&[][..], Vec::as_slice);
        let (figures, others) = figures.split_at(figures.len().min(FIGURES));
        let labels = labels(&row.job.labels);
        let parked = |reason: &str| format!("parked: {reason}");
        let cells = html! {
            th { code { (id) } }
            td { (row.job.name) (start(&labels)) }
            @match &row.state {
                State::Done { held, exit } => {
                    td data-is="Lab" { (held.lab) }
                    td.when data-is="Ended" { (date(row.since)) }
                    td.own { "done, " (how_it_ended(*exit)) }
                    td.own {
                        @for one in figures { (headline(one)) }
                        @if !others.is_empty() { (others.len()) " more in the " }
                        a href={ "/run/" (id) } { "report" }
                    }
                },
                State::Parked { reason } => {
                    td {}
                    td.when data-is="Ended" { (date(row.since)) }
                    td."own gone" { (shortened(&format!("parked-{id}"), &parked(reason))) }
                    td {}
                },
                _ => { td {} td.when data-is="Ended" { (date(row.since)) } td.own { (row.state.word()) } td {} },
            }
        };
        let mut heights = vec![
            chars(id) + chars(&row.job.name) + chars(&start(&labels)),
            chars("Ended: 2026-11-20 11:30:00"),
        ];
        match &row.state {
            State::Done { held, .. } => {
                heights[1] += chars("Lab: ") + chars(&held.lab);
                heights.extend([1, 1]);
                heights.extend(figures.iter().map(|one| {
                    chars("1.234 Gbit/s (1.234 Gbit/s to 1.234 Gbit/s) ")
                        + chars(&beginning(&one.name))
                }));
            }
            State::Parked { reason } => heights.push(chars(&parked(reason)).min(SHORT)),
            _ => heights.push(1),
        }
        ListRow::new(cells, &heights)
    };
    let mut ordered: Vec<&&Row> = ended.iter().collect();
    // The job that ended last is the first row.
    ordered.sort_by_key(|row| Reverse(row.since));
    let left_out =
        (left_out > 0).then(|| format!("{} ended before these.", counted(left_out as u64, "job")));
    List {
        id: "ended",
        title: "Last ended".to_owned(),
        noun: "job",
        none: Some("No job has ended."),
        heads: &[
            "Job",
            "Campaign",
            "Lab",
            "Ended (UTC)",
            "End",
            "First figures",
        ],
        rows: ordered.into_iter().map(row).collect(),
        note: left_out,
    }
}

/// A headline figure of a run, with a link to its course.
fn headline(one: &Headline) -> Markup {
    let Figure {
        key, value, spread, ..
    } = &one.figure;
    let Some(quantity) = Quantity::ALL.into_iter().find(|known| known.key() == key) else {
        // Of a later version.
        return Markup::default();
    };
    html! {
        div.figure {
            b { (quantity.print(*value)) }
            @if let Some((low, high)) = spread.filter(|(low, high)| low < high) {
                " (" (quantity.print(low)) " to " (quantity.print(high)) ")"
            }
            " " a href={ "/cell/" (encoded(&one.cell)) } title=(one.name) { (beginning(&one.name)) }
        }
    }
}

/// The first parts of a cell's name, which can have a dozen.
fn beginning(name: &str) -> Cow<'_, str> {
    // A comma is ASCII, so a cut before it is never within a character.
    let commas = name.match_indices(", ").map(|(at, _)| at);
    match commas.take_while(|at| *at <= NAME_BYTES).last() {
        Some(end) if name.len() > NAME_BYTES => Cow::from(format!("{}, …", &name[..end])),
        _ => Cow::from(name),
    }
}

/// Describes the exit code of a run with figures.
fn how_it_ended(exit: i32) -> &'static str {
    match exit {
        0 => "every trial measured",
        1 => "some trials without a figure",
        _ => "too few trials",
    }
}

#[cfg(test)]
mod tests;
