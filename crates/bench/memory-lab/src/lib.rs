//! The lab in memory: generator, gateways and analyser in this process, connected by rings.
//!
//! It needs no privilege and no kernel networking: it measures the encryptor itself, or with
//! `straight` the generator and the analyser. Each cell's gateways are separate threads, so that
//! their CPU time is known.
//!
//! Not supported: other tools, links with a rate, more than one core per station.

#![forbid(unsafe_code)]

mod ends;
mod gateways;
mod rig;
mod threads;

use gateways::{Gateways, test_addresses};
use journal::record::{Evidence, Figures, Measured, Outcome, TrialRecord};
use plan::{FrameTest, Measurement};
use rig::{MemoryRig, Sampled};
use testbed::{FrameEnd, FramePath, Interrupt, LabError, NodeId};
use trial::evidence::{dut_as_asked, gateways_balance};
use trial::frames::{
    FrameObserved, FrameStream, ProcedureResult, carry_out, frame_checks, take_evidence,
};
use trial::{CommandError, EventSink, Measurer, Trial, TrialError, judge, record};

/// Measures within this process.
#[derive(Debug, Default)]
pub struct InMemory;

impl Measurer for InMemory {
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        events: EventSink<'_>,
        interrupt: &Interrupt,
    ) -> Result<TrialRecord, LabError> {
        record(trial, |_| match &trial.cell.measurement {
            Measurement::Frames(test) => attempt(trial, test, events, interrupt),
            other => Err(TrialError::frames(format!(
                "`{}` needs a kernel: measure it with `--lab namespaces`",
                other.name()
            ))),
        })
    }
}

fn attempt(
    trial: &Trial<'_>,
    test: &FrameTest,
    events: EventSink<'_>,
    interrupt: &Interrupt,
) -> Result<Outcome, TrialError> {
    let (cell, traffic) = (trial.cell, &test.traffic);
    let stations = cell.stations.ok_or(CommandError::NoStations)?;
    if stations.cores > 1 || traffic.duplex {
        return Err(TrialError::frames(
            "in memory each station has one core, and one direction is loaded: write `cores: 1` \
             and leave `duplex` off",
        ));
    }
    let gateways = Gateways::start(&cell.dut, traffic.direction, stations.mtu)?;
    let way = FrameStream {
        cell,
        traffic,
        path: path(&gateways),
    };
    let mut rig = MemoryRig::new(gateways, way);
    let measured = carry_out(trial, test, &mut rig, events, interrupt)
        .and_then(|found| with_evidence(test, found, &mut rig, interrupt));
    // The gateways are stopped in any case. A failed measurement is reported before a failed
    // thread: the procedure has more to say.
    let stopped = rig.gateways.stop(&cell.dut);
    let (measured, objection) = measured?;
    stopped?;
    Ok(judge(measured, None, objection))
}

/// Makes the trial with the evidence.
fn with_evidence(
    test: &FrameTest,
    mut found: ProcedureResult,
    rig: &mut MemoryRig<'_>,
    interrupt: &Interrupt,
) -> Result<(Measured, Option<String>), TrialError> {
    take_evidence(&mut found, test, rig, interrupt)?;
    let sampled = rig.sampled.take();
    let Sampled {
        cpu,
        dut_counters,
        trial,
    } = sampled.expect("the trial with the evidence is sampled");
    // No link can be watched and no settings can change here, so the checks are of the frames, of
    // the gateways' counters, and of the facts that they report.
    let mut checks = frame_checks(&FrameObserved {
        test,
        result: &found.result,
        strays: &found.strays,
        seen: None,
    });
    checks.extend(gateways_balance(&dut_counters));
    checks.extend(dut_as_asked(
        rig.way.cell,
        &rig.gateways.facts,
        &dut_counters,
        Some(&trial),
    ));
    let measured = Measured {
        figures: Figures::Frames(Box::new(found.result)),
        cpu,
        evidence: Evidence {
            checks,
            dut_counters,
            dut_facts: rig.gateways.facts.clone(),
            ..Evidence::default()
        },
        ..Measured::default()
    };
    Ok((measured, found.objection))
}

/// Returns the path with the addresses in frames, which no interface has.
fn path(gateways: &Gateways) -> FramePath {
    let end = |node, side: usize, peer| {
        let (test_address, test_address_v6) = test_addresses(side);
        let number = side as u8 + 1;
        FrameEnd {
            node,
            interface: "memory".to_owned(),
            mac: [0x02, 0, 0, 0, 0, number],
            // The other end's number: 1 and 2 are exchanged.
            next_hop_mac: [0x02, 0, 0, 0, 0, number ^ 3],
            address: test_address,
            test_address,
            test_address_v6,
            peer,
        }
    };
    FramePath {
        source: end(NodeId::A, 0, gateways.source_peer.clone()),
        sink: end(NodeId::B, 1, gateways.sink_peer.clone()),
    }
}
