//! Procedures: the keys of each kind of frame trial.
//!
//! A procedure is one file here, and its arm in [`read`].

mod back_to_back;
mod disturbed;
mod latency;
mod load;
mod loss_curve;
mod mrr;
mod recovery;
mod service;
mod soak;
mod throughput;

use crate::frames::rate::Rate;
use plan::{Coordinate, Procedure, ProcedureKind};
use std::fmt::Debug;
use wire::mix::FrameMix;
use yaml::{Map, Node, Place, Reported, Spanned};

/// A procedure as configured: loads may still be bit rates.
pub(super) trait ProcedureConfig: Debug {
    /// The procedure for frames of this mix.
    fn resolve(&self, mix: &FrameMix) -> Procedure;

    /// Loads that were given, which may be above a lab's line rate.
    fn loads(&self) -> Vec<&Spanned<Rate>>;

    /// Reports loads and times that do not go together for some mix.
    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]);

    /// Its coordinates, in the order of ids.
    fn coordinates(&self) -> Vec<Coordinate>;

    /// The place of a feature that some DUTs do not support; `None` if every DUT does.
    fn event_place(&self) -> Option<&Place> {
        None
    }

    /// The place that asks for round trips.
    fn round_trips(&self) -> Option<&Place> {
        None
    }
}

/// One procedure, or one for each value of its axes.
pub(super) type Procedures = Vec<Box<dyn ProcedureConfig>>;

/// Reads the keys of a kind.
pub(super) fn read(kind: ProcedureKind, map: &Map<'_>) -> Result<Procedures, Reported> {
    match kind {
        ProcedureKind::Load => boxed(load::read(map)),
        ProcedureKind::Throughput => boxed(throughput::read(map)),
        ProcedureKind::Mrr => boxed(mrr::read(map)),
        ProcedureKind::Service => boxed(service::read(map)),
        ProcedureKind::LossCurve => boxed(loss_curve::read(map)),
        ProcedureKind::BackToBack => boxed(back_to_back::read(map)),
        ProcedureKind::Latency => boxed(latency::read(map)),
        ProcedureKind::Recovery => boxed(recovery::read(map)),
        ProcedureKind::Rekey => boxed(disturbed::rekey(map)),
        ProcedureKind::Failover => boxed(disturbed::failover(map)),
        ProcedureKind::Reset => boxed(disturbed::reset(map)),
        ProcedureKind::Setup => boxed(disturbed::setup(map)),
        ProcedureKind::Desync => boxed(disturbed::desync(map)),
        ProcedureKind::Hostile => boxed(disturbed::hostile(map)),
        ProcedureKind::Soak => boxed(soak::read(map)),
    }
}

fn boxed<C: ProcedureConfig + 'static>(
    configs: Result<Vec<C>, Reported>,
) -> Result<Procedures, Reported> {
    let boxed = |config: C| -> Box<dyn ProcedureConfig> { Box::new(config) };
    Ok(configs?.into_iter().map(boxed).collect())
}
