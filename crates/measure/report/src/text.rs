//! Documents in plain text.

pub(crate) mod markdown;
pub(crate) mod terminal;

use crate::format::{command_line, counted};
use crate::layout::frames::{FrameKind, FrameSet};
use crate::layout::{Protocol, Run};
use crate::table::Table;
use crate::tables;
use crate::tables::frames::{self, Quantity};

/// The tables with figures, in the order of the documents; `short`: for the end of a run.
pub(crate) fn result_tables(run: &Run<'_>, short: bool) -> Vec<Table> {
    let mut found = tables::ranking::rankings(run, short);
    found.extend(tables::suites::suites(run, short));
    found.extend(tables::claims(run, short));
    found.extend(tables::device::device(run, short));
    for set in run.sets_of(Protocol::Tcp) {
        found.extend(tables::throughput(run, &set));
    }
    for set in run.sets_of(Protocol::Udp) {
        // A single point says nothing more in a matrix.
        if set.mtus().len() * set.cores().len() > 1 {
            found.extend(tables::throughput(run, &set));
        }
        found.push(tables::datagrams(run, &set));
    }
    for set in run.sets_of(Protocol::Ping) {
        found.push(tables::latency(run, &set));
    }
    for set in run.frame_sets() {
        found.extend(frame_tables(run, &set, short));
    }
    if !short {
        found.extend(tables::published(run));
    }
    found.extend(tables::keys(run));
    found.extend(tables::hybrids(run));
    found.extend(tables::tools(run));
    found.extend(tables::scaling::scaling(run, short));
    let rig_only = run
        .results
        .cells
        .iter()
        .all(stats::CellResult::measures_rig);
    if rig_only || !short {
        found.extend(frames::calibration(run));
    }
    if !short {
        let tester = [
            frames::verdicts(run),
            frames::mixes(run),
            frames::ports(run),
        ];
        found.extend(tester.into_iter().flatten());
    }
    found
}

/// The tables of a set of frame tests; `short`: without what stands behind the figures.
fn frame_tables(run: &Run<'_>, set: &FrameSet<'_>, short: bool) -> Vec<Table> {
    let mut found = match set.kind {
        FrameKind::Throughput if short => vec![frames::vendor(run, set, Quantity::Frames)],
        FrameKind::Throughput => vec![
            frames::vendor(run, set, Quantity::Frames),
            frames::vendor(run, set, Quantity::L2),
            frames::layers(run, set),
        ],
        FrameKind::LossCurve | FrameKind::Load => vec![frames::loads(run, set)],
        FrameKind::Latency => vec![frames::latency(run, set)],
        FrameKind::BackToBack => vec![frames::back_to_back(run, set)],
        FrameKind::Recovery => vec![frames::recovery(run, set)],
        FrameKind::Rekey
        | FrameKind::Failover
        | FrameKind::Setup
        | FrameKind::Desync
        | FrameKind::Hostile => frames::disturbed(run, set, short),
        FrameKind::Soak => frames::soak(run, set, short),
    };
    if let (false, Some(goals)) = (short, frames::goals(set)) {
        found.extend([goals, frames::bounds(run, set)]);
    }
    found
}

/// The tables of CPU time, in the same order.
pub(crate) fn cpu_tables(run: &Run<'_>) -> Vec<Table> {
    let bulk = run.sets().into_iter().map(|set| tables::cpu(run, &set));
    let frames = run
        .frame_sets()
        .into_iter()
        .map(|set| frames::cpu(run, &set));
    bulk.chain(frames).collect()
}

/// When and where: `2026-11-20T11:30:00Z, Intel Xeon, 2 cores, Linux 6.18.44, cipherbench 0.1.0`.
pub(crate) fn provenance(run: &Run<'_>) -> String {
    let header = &run.journal.header;
    let mut parts = vec![journal::time::utc(header.started_unix_ns)];
    if !header.environment.cpu_model.is_empty() {
        parts.push(header.environment.cpu_model.clone());
    }
    if let Some(cpus) = run.cpus() {
        parts.push(counted(cpus.into(), "core"));
    }
    if !header.environment.kernel.is_empty() {
        parts.push(header.environment.kernel.clone());
    }
    parts.push(format!("cipherbench {}", header.program));
    parts.join(", ")
}

/// The command that made the run.
pub(crate) fn command(run: &Run<'_>) -> String {
    command_line(&run.journal.header.command)
}
