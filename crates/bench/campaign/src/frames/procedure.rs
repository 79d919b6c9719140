//! Procedures: the keys of each kind of frame trial.
//!
//! A procedure is one file here, and its arm in [`known`].

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
use yaml::{Key, Map, Node, Place, Reported, Spanned};

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
    known(kind).0(map)
}

/// The keys of a kind.
pub(crate) fn keys_of(kind: ProcedureKind) -> &'static [Key] {
    known(kind).1
}

type Reader = fn(&Map<'_>) -> Result<Procedures, Reported>;

fn known(kind: ProcedureKind) -> (Reader, &'static [Key]) {
    match kind {
        ProcedureKind::Load => (|map| boxed(load::read(map)), load::KEYS),
        ProcedureKind::Throughput => (|map| boxed(throughput::read(map)), throughput::KEYS),
        ProcedureKind::Mrr => (|map| boxed(mrr::read(map)), mrr::KEYS),
        ProcedureKind::Service => (|map| boxed(service::read(map)), service::KEYS),
        ProcedureKind::LossCurve => (|map| boxed(loss_curve::read(map)), loss_curve::KEYS),
        ProcedureKind::BackToBack => (|map| boxed(back_to_back::read(map)), back_to_back::KEYS),
        ProcedureKind::Latency => (|map| boxed(latency::read(map)), latency::KEYS),
        ProcedureKind::Recovery => (|map| boxed(recovery::read(map)), recovery::KEYS),
        ProcedureKind::Rekey => (|map| boxed(disturbed::rekey(map)), disturbed::REKEY),
        ProcedureKind::Failover => (|map| boxed(disturbed::failover(map)), disturbed::FAILOVER),
        ProcedureKind::Reset => (|map| boxed(disturbed::reset(map)), disturbed::RESET),
        ProcedureKind::Setup => (|map| boxed(disturbed::setup(map)), disturbed::SETUP),
        ProcedureKind::Desync => (|map| boxed(disturbed::desync(map)), disturbed::DESYNC),
        ProcedureKind::Hostile => (|map| boxed(disturbed::hostile(map)), disturbed::HOSTILE),
        ProcedureKind::Soak => (|map| boxed(soak::read(map)), soak::KEYS),
    }
}

fn boxed<C: ProcedureConfig + 'static>(
    configs: Result<Vec<C>, Reported>,
) -> Result<Procedures, Reported> {
    let boxed = |config: C| -> Box<dyn ProcedureConfig> { Box::new(config) };
    Ok(configs?.into_iter().map(boxed).collect())
}
