//! The speed of crypto devices.

use super::{Blocks, RESULTS, Section};
use crate::chart::device::speed::draw;
use crate::layout::Run;
use crate::layout::device::DeviceKind;
use crate::tables::device as tables;
use stats::{DeviceAxis, DeviceSeries};

pub(super) const SECTION: Section = Section {
    id: "device-speed",
    name: "Speed",
    title: "Speed of devices",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| {
        out.tables(tables::findings(run));
        for (index, series) in series(run, true) {
            chart(run, out, index, series, DOTS);
        }
        out.tables(tables::sizes(run));
        out.tables(tables::not_offered(run, DeviceKind::Speed));
        if out.is_short() {
            out.tables(tables::cells_outside_series(run));
            return;
        }
        let how = format!("{DOTS} Dashed: a device overtakes the CPU, or its scaling stops.");
        for (index, series) in series(run, false) {
            chart(run, out, index, series, &how);
            out.table(tables::curves(run, series));
        }
        out.tables(tables::cells(run));
    },
};

const DOTS: &str = "Dots: mean of the repeats; whiskers: the farthest repeat's distance.";

/// The series by size of input, or the others, with their indices among all.
fn series<'r>(run: &'r Run<'_>, by_size: bool) -> impl Iterator<Item = (usize, &'r DeviceSeries)> {
    let all = run.results.device_series.iter().enumerate();
    all.filter(move |(_, series)| (series.axis == DeviceAxis::Bytes) == by_size)
}

fn chart(run: &Run<'_>, out: &mut Blocks, index: usize, series: &DeviceSeries, how: &str) {
    out.chart(tables::series_name(series), how, || {
        draw(run, series, &format!("device-speed-{index}"))
    });
}
