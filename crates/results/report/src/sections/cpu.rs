//! CPU time by role, and cycles per packet.

use super::Section;
use super::search::joined;
use crate::layout::{Protocol, Run, Set};
use crate::{chart, format, tables};

pub(super) const SECTION: Section = Section {
    id: "cpu",
    name: "CPU",
    title: "CPU",
    chapter: "CPU",
    answers: false,
    brief: false,
    // The CPU time of crypto devices is in the section about their speed.
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
        }
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Ping] {
            let sets = run.sets_of(protocol);
            out.tables(tables::cpu(run, &sets));
            for set in &sets {
                out.tables(tables::cycles(run, set));
            }
        }
        let sets = run.frame_sets();
        out.tables(joined("CPU by role", &sets, |set| {
            Some(tables::frames::cpu(run, set))
        }));
        out.tables(joined("Cycles per packet", &sets, |set| {
            tables::frames::cycles(run, set)
        }));
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
