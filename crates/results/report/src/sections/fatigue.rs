//! The fatigue trial of crypto devices.

use super::{RESULTS, Section};
use crate::chart::device as chart;
use crate::tables::device as tables;

pub(super) const SECTION: Section = Section {
    id: "fatigue",
    name: "Fatigue",
    title: "Fatigue trial",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| {
        out.chart(
            "Survival: share of devices that work for longer",
            "Line: Kaplan-Meier estimate, until the first failure of each device. Shaded: its 95 % interval. \
             Ticks: devices without a failure when the trial was over.",
            || chart::survival::draw(run, "fatigue-survival"),
        );
        for (index, batch) in run.results.fatigue_batches.iter().enumerate() {
            out.chart(
                format!(
                    "Time without failure over the batch: {}",
                    tables::batch_name(run, batch)
                ),
                "Devices by their time under load until the first failure, or until the end of the trial.",
                || chart::batch::draw(run, batch, &format!("fatigue-batch-{index}")),
            );
        }
        out.tables(tables::fatigue(run, out.is_short()));
    },
};
