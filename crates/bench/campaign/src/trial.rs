//! Trials as configured.

use crate::device::{self, DeviceTrial};
use crate::frames::{self, FrameTrial};
use crate::tools::{self, ToolTrial};
use plan::ProcedureKind;
use strum::VariantArray;
use yaml::{Key, Node, Place, Reported, Spanned};

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

#[derive(Clone, Copy)]
enum Reader {
    Tool(tools::Reader),
    Frames(ProcedureKind),
    Device(device::Reader),
}

/// A kind of trial: its name, its reader and its keys.
type Known = (&'static str, (Reader, &'static [Key]));

/// One list, so that the message about an unknown trial names all kinds.
fn of_duts() -> Vec<Known> {
    let tools = tools::TOOLS.map(|(name, reader, keys)| (name, (Reader::Tool(reader), keys)));
    let frames = ProcedureKind::VARIANTS.iter().map(|kind| {
        let keys = frames::keys_of(*kind);
        (kind.name(), (Reader::Frames(*kind), keys))
    });
    tools.into_iter().chain(frames).collect()
}

fn of_devices() -> Vec<Known> {
    let of = |(name, reader, keys)| (name, (Reader::Device(reader), keys));
    device::TRIALS.map(of).into()
}

/// The kinds of all trials, and their keys.
pub(crate) fn kinds() -> Vec<(&'static str, &'static [Key])> {
    // Trials of devices stand in the same list; whether they fit `duts` or `devices` is a rule
    // between keys.
    let all = of_duts().into_iter().chain(of_devices());
    all.map(|(name, (_, keys))| (name, keys)).collect()
}

/// Reads one entry of `trials`.
pub(crate) fn read(node: Node<'_>) -> Result<Trial, Reported> {
    read_known(node, "trial", &of_duts())
}

/// Reads one entry of the `trials` of crypto devices.
pub(crate) fn read_of_devices(node: Node<'_>) -> Result<Trial, Reported> {
    read_known(node, "device trial", &of_devices())
}

fn read_known(node: Node<'_>, noun: &str, known: &[Known]) -> Result<Trial, Reported> {
    let ((reader, keys), body) = node.variant(noun, known)?;
    body.keys(keys, |map| {
        let names = |key| map.optional(key).map(names).transpose();
        let kind = match reader {
            Reader::Frames(kind) => frames::read(map, kind).map(Kind::Frames),
            Reader::Tool(reader) => tools::read(map, reader).map(Kind::Tool),
            Reader::Device(reader) => reader(map).map(Kind::Device),
        };
        let (duts, impair) = match reader {
            Reader::Device(_) => (names("devices"), Ok(None)),
            _ => (names("duts"), names("impair")),
        };
        Ok(Trial {
            place: body.place(),
            duts: duts?,
            impair: impair?.unwrap_or_default(),
            kind: kind?,
        })
    })
}

/// Names of DUTs or profiles; whether they exist is known when the whole file is read.
fn names(node: Node<'_>) -> Result<Vec<Spanned<String>>, Reported> {
    node.one_or_many(|item| Ok(item.spanned(item.text()?.to_owned())))
}
