//! The sections of crypto devices.

use super::parts::{details, section, table};
use super::results::figure;
use crate::chart::device as chart;
use crate::layout::Run;
use crate::layout::device::DeviceKind;
use crate::tables::device as tables;
use maud::{Markup, html};
use stats::DeviceAxis;

/// Id, title and whether it is shown of each section.
pub(super) fn contents(run: &Run<'_>) -> [(&'static str, &'static str, bool); 4] {
    let has = |kind| run.device_cells(kind).next().is_some();
    [
        ("functional", "Functional trial", has(DeviceKind::Kat)),
        ("device-speed", "Speed", has(DeviceKind::Speed)),
        ("fatigue", "Fatigue", has(DeviceKind::Fatigue)),
        ("devices", "Devices", tables::facts(run).is_some()),
    ]
}

/// All sections of crypto devices; nothing when there are none.
pub(super) fn sections(run: &Run<'_>) -> Markup {
    let [kat, speeds, tired, known] = contents(run);
    html! {
        @if kat.2 { (section(kat.0, kat.1, functional(run))) }
        @if speeds.2 { (section(speeds.0, "Speed of devices", speed(run))) }
        @if tired.2 { (section(tired.0, "Fatigue trial", fatigue(run))) }
        @if let Some(found) = tables::facts(run) { (section(known.0, known.1, table(&found))) }
    }
}

fn functional(run: &Run<'_>) -> Markup {
    html! {
        @for one in tables::kat(run, true) { (table(&one)) }
        (details("What was tried of each algorithm", &tables::kat_cases(run)))
    }
}

const DOTS: &str = "Dots: mean of the repeats; whiskers: the farthest repeat's distance.";

fn speed(run: &Run<'_>) -> Markup {
    let charts = run.results.device_series.iter().enumerate();
    let of =
        |axis: fn(DeviceAxis) -> bool| charts.clone().filter(move |(_, series)| axis(series.axis));
    html! {
        @if let Some(found) = tables::findings(run) { (table(&found)) }
        @for (index, series) in of(|axis| axis == DeviceAxis::Bytes) {
            @if let Some(chart) = chart::speed::draw(run, series, &format!("device-speed-{index}")) {
                (figure(&chart, &tables::series_name(series), DOTS))
            }
        }
        @for one in tables::sizes(run) { (table(&one)) }
        @for (index, series) in of(|axis| axis != DeviceAxis::Bytes) {
            @if let Some(chart) = chart::speed::draw(run, series, &format!("device-speed-{index}")) {
                @let how = format!("{DOTS} Dashed: where a device meets the CPU, and where more at once bring it no more.");
                (figure(&chart, &tables::series_name(series), &how))
            }
            (table(&tables::curves(run, series)))
        }
        @if let Some(found) = tables::cells(run) { (table(&found)) }
    }
}

fn fatigue(run: &Run<'_>) -> Markup {
    html! {
        @if let Some(chart) = chart::survival::draw(run, "fatigue-survival") {
            (figure(&chart, "Survival: share of devices that work for longer", "Line: Kaplan and Meier's estimate, until the first \
                     failure of each device. Shaded: its 95 % interval. Ticks: devices without a failure when the trial was over."))
        }
        @for (index, batch) in run.results.fatigue_batches.iter().enumerate() {
            @if let Some(chart) = chart::batch::draw(run, batch, &format!("fatigue-batch-{index}")) {
                @let title = format!("Time without failure over the batch: {}", tables::batch_name(run, batch));
                (figure(&chart, &title, "Devices by their time under load until the first failure, or until the end of the trial."))
            }
        }
        @for one in tables::fatigue(run, false) { (table(&one)) }
    }
}
