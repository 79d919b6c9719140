//! UDP throughput and loss.

use super::tcp::{bars, matrix, timeline};
use super::{RESULTS, Section};
use crate::layout::Protocol;
use crate::{chart, tables};

pub(super) const SECTION: Section = Section {
    id: "udp",
    name: "UDP",
    title: "UDP throughput and loss",
    chapter: RESULTS,
    answers: true,
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
            out.table(tables::datagrams(run, set));
            // A matrix of a single point repeats the table above.
            if set.mtus().len() * set.cores().len() > 1 {
                for (index, payload) in set.payloads().into_iter().enumerate() {
                    bars(run, out, set, payload, &format!("{id}-{index}"));
                }
                out.tables(tables::throughput(run, set));
            }
            timeline(run, out, set, &id);
        }
    },
};
