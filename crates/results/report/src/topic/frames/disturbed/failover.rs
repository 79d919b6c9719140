//! Failures of an encryptor or its link.

use super::events::without;
use super::{
    EventTopic, OF_FAILURES, OVER_TIME, Words, between, blocks, caption, endless, fill, interval,
    longest, mean_count, median, most, time_figure,
};
use crate::kit::format::{counted, time_ns};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::topic::frames::head;
use plan::{Failure, ProcedureKind};
use stats::FailoverResult;

pub(crate) const SECTION: Section = Section::result(EVENT.id, EVENT.kind.title(), |run, out| {
    blocks(run, out, &EVENT)
});

const EVENT: EventTopic = EventTopic {
    id: "failover",
    kind: ProcedureKind::Failover,
    outages: OF_FAILURES,
    timeline: OVER_TIME,
    tables: |run, set| {
        // With a way past the device, the table shows whether clear text took it.
        let opens_bypass = set
            .disturbance()
            .is_some_and(|test| test.event.opens_bypass());
        let table = if opens_bypass { bypasses } else { outages };
        vec![table(run, set)]
    },
};

/// The duration of frame loss.
fn outages(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; outage: from the failure to the last loss, the time down included; first frame, last loss: from \
        the start of the recovery on; lost: frames per failure; over the failures of all repeats; medians count \
         those without recovery as longest, the interval leaves them out",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figures(["Failures", "Outage, median", "Longest", "95 % interval"])
        .figures(["First frame", "Last loss", "Lost, mean", "Lost, max"])
        .figure("Without recovery");
    fill(table, run, set, |found| {
        Some(outage_cells(found.failover()?))
    })
}

fn outage_cells(found: &FailoverResult) -> [Cell; 9] {
    [
        Cell::plain(found.failures.to_string()),
        median(&found.outage_ns),
        longest(&found.outage_ns),
        interval(&found.outage_ns),
        median(&found.first_frame_ns),
        median(&found.after_mending_ns),
        mean_count(found.lost_frames.as_ref()),
        most(found.lost_frames.as_ref()),
        without(&found.outage_ns),
    ]
}

/// Whether packets pass in clear while an encryptor is dead.
fn bypasses(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; a default route of gw1 leads past the encryptor, over the link between the gateways, to a router that \
         does not exist; in clear: frames of the stations on that link, by the filter that sees every frame; over \
         the failures of all repeats",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .text("Fails closed")
        .figures(["In clear", "Failures", "Outage, median", "Longest"]);
    fill(table, run, set, |found| {
        Some(bypass_cells(found.failover()?))
    })
}

fn bypass_cells(found: &FailoverResult) -> [Cell; 5] {
    let closed = found.fails_closed();
    // In capitals, as a device that fails open leaks in use.
    let word = closed.map(|closed| if closed { "yes" } else { "NO" }.to_owned());
    [
        Cell::or_missing(word),
        Cell::or_missing(found.clear_frames.map(|frames| frames.to_string())),
        Cell::plain(found.failures.to_string()),
        median(&found.outage_ns),
        longest(&found.outage_ns),
    ]
}

pub(super) fn fact(failure: Failure, found: &FailoverResult) -> Option<Words> {
    (found.outage_ns.events > 0).then_some(())?;
    let (figure, unit) = time_figure(&found.outage_ns);
    let range = between(&found.outage_ns);
    let longest = found.outage_ns.max_ns.map_or("no end".into(), time_ns);
    let mended = match failure {
        Failure::Crash | Failure::Bypass => "started again",
        Failure::Link => "joined again",
    };
    let mut detail = format!(
        "median outage of {}, longest {longest}",
        counted(found.failures, "failure")
    );
    if let Some(down) = &found.down_ns {
        detail.push_str(&format!("; {mended} after {}", time_ns(down.mean)));
    }
    if let Some(first) = found.first_frame_ns.median_ns {
        detail.push_str(&format!("; first frame {} later", time_ns(first)));
    }
    detail.push_str(&endless(&found.outage_ns));
    Some((figure, unit, range, detail))
}

/// Whether the device fails closed, with the count that shows it.
pub(super) fn bypass(found: &FailoverResult) -> Option<Words> {
    let figure = if found.fails_closed()? {
        "fails closed"
    } else {
        "FAILS OPEN"
    };
    let detail = format!(
        "{} of the stations in clear between the gateways in {}, each with a default route past the \
         encryptor",
        counted(found.clear_frames?, "frame"),
        counted(found.failures, "failure")
    );
    Some((figure.into(), String::new(), String::new(), detail))
}
