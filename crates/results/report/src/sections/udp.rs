//! UDP throughput and loss.

use super::tcp::{bars, matrix, timeline};
use super::{RESULTS, Section};
use crate::layout::{Protocol, Set};
use crate::{chart, tables};

pub(super) const SECTION: Section = Section {
    id: "udp",
    name: "UDP",
    title: "UDP throughput and loss",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| {
        let sets = run.sets_of(Protocol::Udp);
        matrix(run, out, &sets, "udp");
        for (index, set) in sets.iter().enumerate() {
            let id = format!("udp-{index}");
            out.chart(
                format!("Offered, received and lost: {}", set.common),
                "Solid: received. Striped: offered, but lost on the way. \
                 Whiskers: the farthest repeat's distance.",
                || chart::datagrams::draw(run, set, &format!("{id}-datagrams")),
            );
        }
        out.tables(tables::datagrams(run, &sets));
        out.tables(tables::each_way(run, "udp"));
        // A matrix of a single point repeats the table above.
        let is_matrix = |set: &Set<'_>| set.mtus().len() * set.cores().len() > 1;
        for (at, set) in sets.iter().enumerate().filter(|(_, set)| is_matrix(set)) {
            for (index, payload) in set.payloads().into_iter().enumerate() {
                bars(run, out, set, payload, &format!("udp-{at}-{index}"));
            }
        }
        if sets.iter().any(is_matrix) {
            out.tables(tables::throughput(run, &sets));
        }
        for (index, set) in sets.iter().enumerate() {
            timeline(run, out, set, &format!("udp-{index}"));
        }
    },
};
