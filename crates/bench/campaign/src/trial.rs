//! Trials as configured.

use crate::device::{self, DeviceTrial};
use crate::frames::{self, FrameTrial};
use crate::impairment;
use crate::tools::{self, ToolTrial};
use plan::ProcedureKind;
use strum::VariantArray;
use yaml::{Node, Place, Reported, Spanned};

/// One entry of `trials`.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) place: Place,
    /// Names of the DUTs that it measures; `None`: all.
    pub(crate) duts: Option<Vec<Spanned<String>>>,
    /// Names of the impairment profiles that it measures with; empty if it names none.
    pub(crate) impair: Vec<Spanned<String>>,
    pub(crate) kind: Kind,
}

/// The measuring program.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A real program on each station.
    Tool(ToolTrial),
    /// The project's generator and analyser.
    Frames(FrameTrial),
    /// Operations of crypto devices.
    Device(DeviceTrial),
}

#[derive(Debug, Clone, Copy)]
enum Reader {
    Tool(tools::Reader),
    Frames(ProcedureKind),
}

/// Reads one entry of `trials`.
pub(crate) fn read(node: Node<'_>) -> Result<Trial, Reported> {
    let tools = tools::TOOLS.map(|(name, reader)| (name, Reader::Tool(reader)));
    let frames = ProcedureKind::VARIANTS.iter();
    let frames = frames.map(|kind| (kind.name(), Reader::Frames(*kind)));
    // One list, so that the message about an unknown trial names all kinds.
    let kinds: Vec<_> = tools.into_iter().chain(frames).collect();
    let (reader, body) = node.variant("trial", &kinds)?;
    body.map(|map| {
        let kind = match reader {
            Reader::Frames(kind) => frames::read(map, kind).map(Kind::Frames),
            Reader::Tool(reader) => tools::read(map, reader).map(Kind::Tool),
        };
        let duts = map.optional("duts").map(dut_names).transpose();
        let impair = map.optional("impair").map(impairment::names).transpose();
        Ok(Trial {
            place: body.place(),
            duts: duts?,
            impair: impair?.unwrap_or_default(),
            kind: kind?,
        })
    })
}

/// Reads one entry of the `trials` of crypto devices.
pub(crate) fn read_of_devices(node: Node<'_>) -> Result<Trial, Reported> {
    let (reader, body) = node.variant("device trial", &device::TRIALS)?;
    body.map(|map| {
        let kind = reader(map).map(Kind::Device);
        let devices = map.optional("devices").map(dut_names).transpose();
        Ok(Trial {
            place: body.place(),
            duts: devices?,
            impair: Vec::new(),
            kind: kind?,
        })
    })
}

/// Names of DUTs; whether they exist is known when the whole file is read.
fn dut_names(node: Node<'_>) -> Result<Vec<Spanned<String>>, Reported> {
    node.one_or_many(|item| Ok(item.spanned(item.text()?.to_owned())))
}
