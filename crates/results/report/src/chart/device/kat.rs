//! The functional trial: the number of passed algorithms per device.

use crate::chart::bars::{Bar, Bars, Lying};
use crate::format::Scale;
use crate::layout::Run;
use crate::layout::device::{DeviceKind, figures};
use maud::Markup;

/// The chart of all functional trials; `None` without a figure.
pub(crate) fn draw(run: &Run<'_>, id: &str) -> Option<Markup> {
    let bars = run.device_cells(DeviceKind::Kat).map(|(cell, _)| {
        let found = figures(cell).and_then(|found| found.kat());
        let figure = found.map(|found| {
            let all = found.passed + found.failed + found.not_offered;
            Lying {
                value: found.passed as f64,
                reach: 0.0,
                offered: Some(all as f64),
                text: format!("{} of {all} pass", found.passed),
            }
        });
        Bar {
            setting: String::new(),
            name: run.label(&cell.dut),
            cell,
            figure,
        }
    });
    let bars = Bars {
        title: "Algorithms that pass the functional trial".to_owned(),
        quantity: "algorithms",
        lost: "failed or not offered",
        bars: bars.collect(),
    };
    bars.draw(run, id, |_| Scale::plain())
}
