//! The test of a service, step by step (ITU-T Y.1564).

use super::loads::{LOST, lying, of_cells, of_offered};
use super::{caption, fill, head, joined, label, mean_rate, share};
use crate::kit::chart::bars::{self, Bar};
use crate::kit::fact::Fact;
use crate::kit::format::{Scale, time};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::order::unique;
use maud::Markup;
use plan::ProcedureKind;
use stats::{CellResult, ServiceResult, ServiceStepResult};

pub(super) const SECTION: Section = Section::result("service", "Service test", |run, out| {
    let sets = run.frame_sets_of(ProcedureKind::Service);
    for (index, set) in sets.iter().enumerate() {
        out.chart(
            format!("Each step: {}", set.common),
            of_offered(run),
            || chart(run, set, &format!("service-{index}")),
        );
    }
    out.tables(joined(ProcedureKind::Service.title(), &sets, |set| {
        Some(service(run, set))
    }));
});

/// Each step, compared with the service's limits.
pub(super) fn service(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; frames/s of one direction; up to the CIR, loss, mean delay and delay variation (99.9th \
         percentile less the smallest delay) are limited; above it, at least the CIR must arrive, and under \
         policing at most CIR and EIR and 1 %; a step passes if it does in every repeat (ITU-T Y.1564)",
        set.common
    );
    let table = head(set, Table::new(caption(set, set.kind.title()), note))
        .labels(["Step"])
        .figures([
            "Offered",
            "Received",
            "Lost",
            "Mean delay",
            "Delay variation",
        ])
        .texts(["Result"]);
    fill(table, run, set, |cell| {
        let rows = steps(cell).iter();
        rows.map(|step| [Cell::label(&step.step)].into_iter().chain(figures(step)))
    })
}

/// The steps of a cell; none without a figure.
fn steps(cell: &CellResult) -> &[ServiceStepResult] {
    let found = cell.frames().and_then(|found| found.service());
    found.map_or(&[], |found| &found.steps)
}

/// `passed`, or the first step that failed.
pub(super) fn figure(found: &ServiceResult) -> String {
    match found.first_failed() {
        None => "passed".to_owned(),
        Some(step) => format!("failed: {}", step.step),
    }
}

fn figures(step: &ServiceStepResult) -> [Cell; 6] {
    let load = &step.load;
    let time = |found: Option<&stats::Estimate>| Cell::or_missing(found.map(time));
    [
        Cell::plain(mean_rate(&load.offered.frames_per_s)),
        Cell::plain(mean_rate(&load.forwarded.frames_per_s)),
        Cell::plain(share(load.account.lost, load.lost_ppm.mean)),
        time(step.delay_ns.as_ref()),
        // A step of fewer than 1000 frames has no 99.9th percentile.
        time(step.variation_ns.as_ref()),
        match step.failures.first() {
            None => Cell::plain("passed"),
            Some(why) => Cell::reason(format!("failed. {why}")),
        },
    ]
}

pub(super) fn fact(set: &FrameSet<'_>, cell: &CellResult, size: &str) -> Option<Fact> {
    let found = cell.frames()?.service()?;
    let failed = found.steps.iter().filter(|step| !step.failures.is_empty());
    let failed: Vec<_> = failed.collect();
    let detail = match failed.first() {
        None => String::new(),
        // Steps in this list have at least one failure.
        Some(step) => format!("{}: {}", step.step, step.failures[0].trim_end_matches('.')),
    };
    Some(Fact {
        label: label(set, "Service", size),
        figure: if failed.is_empty() {
            "passed".to_owned()
        } else {
            "failed".to_owned()
        },
        unit: match failed.len() {
            0 => format!("all {} steps", found.steps.len()),
            some => format!("{some} of {} steps", found.steps.len()),
        },
        range: String::new(),
        detail,
        brief: String::new(),
    })
}

/// The frames received in each step of a service test; `None` without a figure.
fn chart(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    // A device may lack steps of the others.
    let all = set.rows().flat_map(|(_, cell)| steps(cell));
    let names = unique(all.map(|step| step.step.as_str()));
    let bars = names.iter().flat_map(|step| {
        let own = of_cells(run, set, |cell| {
            let found = steps(cell).iter().find(|one| one.step == *step)?;
            let mut lying = lying(&found.load);
            let result = if found.failures.is_empty() {
                "passed"
            } else {
                "failed"
            };
            // The bar shows loss; whether the step passed also depends on delay.
            lying.text = format!("{}, {result}", lying.text);
            Some(lying)
        });
        own.into_iter().map(move |bar| Bar {
            setting: [step, bar.setting.as_str()]
                .join(", ")
                .trim_end_matches(", ")
                .to_owned(),
            ..bar
        })
    });
    let bars: Vec<Bar<'_>> = bars.collect();
    let title = "Service test: share of the offered frames received";
    let scale = |most| Scale::si(most, "pps");
    bars::draw(run, id, (title, "frames", LOST), &bars, scale)
}
