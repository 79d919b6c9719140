//! Tunnels set up under a load.

use super::events::without;
use super::{
    EventTopic, OVER_TIME, Words, between, blocks, caption, endless, fill, interval, longest,
    mean_time, median, time_figure,
};
use crate::kit::format::{Scale, counted, time_ns};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::topic::frames::head;
use plan::ProcedureKind;
use stats::SetupResult;

pub(crate) const SECTION: Section = Section::result(EVENT.id, EVENT.kind.title(), |run, out| {
    blocks(run, out, &EVENT)
});

const EVENT: EventTopic = EventTopic {
    id: "setup",
    kind: ProcedureKind::Setup,
    outages: "A mark for each set-up: from the order until all tunnels carried. Outlined: until the first frame came \
              through. Lines: the median. The axis is logarithmic.",
    timeline: OVER_TIME,
    tables: |run, set| vec![setups(run, set)],
};

/// The time until tunnels carry traffic.
fn setups(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; all times from the order to set all tunnels up; first frame: intended time of the \
        first received; all carry: nothing is lost from then on; tunnels/s: by that time, or by the \
         device's report if later; reported: when the device reported them up, mean; over the set-ups of all repeats",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figures(["Tunnels", "Set-ups", "First frame", "All carry, median"])
        .figures(["Longest", "95 % interval", "Tunnels/s", "Reported"])
        .figure("Without recovery");
    fill(table, run, set, |found| Some(cells(found.setup()?)))
}

fn cells(found: &SetupResult) -> [Cell; 9] {
    let rate = found.tunnels_per_s.as_ref();
    [
        Cell::plain(found.tunnels.to_string()),
        Cell::plain(found.set_ups.to_string()),
        median(&found.first_frame_ns),
        median(&found.all_carry_ns),
        longest(&found.all_carry_ns),
        interval(&found.all_carry_ns),
        Cell::or_missing(rate.map(|rate| Scale::plain().number(rate.mean))),
        mean_time(found.ready_ns.as_ref()),
        without(&found.all_carry_ns),
    ]
}

pub(super) fn fact(found: &SetupResult) -> Option<Words> {
    (found.all_carry_ns.events > 0).then_some(())?;
    let (figure, unit) = time_figure(&found.all_carry_ns);
    let range = between(&found.all_carry_ns);
    let mut detail = format!(
        "until {}, median of {}",
        match found.tunnels {
            1 => "the tunnel carries".to_owned(),
            tunnels => format!("all {tunnels} tunnels carry"),
        },
        counted(found.set_ups, "set-up")
    );
    if let Some(first) = found.first_frame_ns.median_ns {
        detail.push_str(&format!("; first frame after {}", time_ns(first)));
    }
    // The rate of one tunnel would only be the inverse of its time.
    if let Some(rate) = found.tunnels_per_s.as_ref().filter(|_| found.tunnels > 1) {
        let rate = Scale::plain().number(rate.mean);
        detail.push_str(&format!("; {rate} tunnels/s"));
    }
    detail.push_str(&endless(&found.all_carry_ns));
    Some((figure, unit, range, detail))
}
