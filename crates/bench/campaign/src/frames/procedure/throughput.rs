//! The keys of `throughput`: those of a search.

use super::ProcedureConfig;
use crate::frames::rate::Rate;
use crate::frames::search::Search;
use plan::{Coordinate, Procedure};
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Search>, Reported> {
    Ok(vec![Search::read(map)?])
}

impl ProcedureConfig for Search {
    fn resolve(&self, mix: &FrameMix) -> Procedure {
        Procedure::Throughput(self.resolve(mix))
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        self.loads()
    }

    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        self.check(node, mixes);
    }

    fn coordinates(&self) -> Vec<Coordinate> {
        self.coordinates()
    }
}
