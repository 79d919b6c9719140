//! CPU time by role, and cycles per packet.

use super::Section;
use crate::layout::{Protocol, Run, Set};
use crate::{chart, format, tables};

pub(super) const SECTION: Section = Section {
    id: "cpu",
    name: "CPU",
    title: "CPU",
    chapter: "CPU",
    answers: false,
    // The CPU time of crypto devices is in the section on their speed.
    blocks: |run, out| {
        for (index, set) in run.sets().iter().enumerate() {
            let title = format!(
                "{}, {}",
                format::capitalized(set.protocol.name()),
                set.common
            );
            out.chart(title, reading(run, set), || {
                chart::cpu::draw(run, set, &format!("cpu-{index}"))
            });
            out.table(tables::cpu(run, set));
            out.tables(tables::cycles(run, set));
        }
        for set in run.frame_sets() {
            out.table(tables::frames::cpu(run, &set));
            out.tables(tables::frames::cycles(run, &set));
        }
    },
};

fn reading(run: &Run<'_>, set: &Set<'_>) -> String {
    let cores = run.cpus().map_or_else(String::new, |cpus| {
        format!(" The machine has {}.", format::counted(cpus, "core"))
    });
    match set.protocol {
        Protocol::Ping => format!("Cores kept busy, by role.{cores}"),
        _ => format!(
            "Left: cores kept busy, by role.{cores} Right: payload received per CPU-second of the \
             whole machine."
        ),
    }
}
