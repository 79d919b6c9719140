//! Hardware counters of nodes: every program counts the same, and the machine some more.

use std::collections::BTreeMap;
use testbed::NodeId;
use testbed::protocol::{Counted, Counts, Request, Response};

/// Nodes that count, with the number of programs and whether they count the machine.
#[derive(Debug, Default)]
pub(crate) struct Counters(BTreeMap<NodeId, (usize, bool)>);

impl Counters {
    pub(crate) fn answer(&mut self, id: NodeId, request: &Request) -> Response {
        match request {
            Request::CountersStart { processes, machine } => {
                self.0.insert(id, (processes.len(), *machine));
                Response::Counting(true)
            }
            _ => {
                let (programs, machine) = self.0.remove(&id).unwrap();
                let counts = |cycles| Counts {
                    cycles,
                    instructions: 2 * cycles,
                };
                Response::Counted(Some(Counted {
                    processes: vec![counts(1000); programs],
                    machine: machine.then_some(counts(9000)),
                }))
            }
        }
    }
}
