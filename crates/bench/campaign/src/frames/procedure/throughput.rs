//! The keys of `throughput`: those of a search.

use super::ProcedureConfig;
use crate::frames::keys::{SEARCHED, TRAFFIC};
use crate::frames::rate::Rate;
use crate::frames::search::Search;
use crate::keys::OF_ALL;
use plan::{Coordinate, Procedure};
use wire::mix::FrameMix;
use yaml::{Key, Map, Node, Reported, Spanned};

pub(super) const KEYS: &[Key] = &[OF_ALL, TRAFFIC, SEARCHED];

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
