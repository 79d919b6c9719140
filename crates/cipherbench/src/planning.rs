//! Makes a plan for this host from the command line.

use crate::exit::Failure;
use campaign::plan::LabKind;
use campaign::{Campaign, HostFacts, LabFile, Plan};
use std::path::Path;
use std::thread::available_parallelism;

/// Makes the plan of a campaign in a lab on this host; without files, of the built-in ones.
pub(crate) fn plan(
    campaign: Option<&Path>,
    lab: Option<&Path>,
    repeats: Option<u32>,
) -> Result<Plan, Failure> {
    let host = host_facts();
    let lab = lab.map(load_lab).transpose()?;
    let campaign = match (campaign, lab.as_ref().map(|lab| lab.plan().kind)) {
        (Some(path), _) => campaign::load(path)?,
        (None, Some(LabKind::Memory)) => Campaign::memory(),
        (None, Some(LabKind::Device)) => Campaign::devices(),
        (None, _) => Campaign::quick().within_cores(host.cores),
    };
    let lab = lab.unwrap_or_else(|| usual_lab(&campaign));
    let campaign = match repeats {
        Some(repeats) => campaign.with_repeats(repeats),
        None => campaign,
    };
    Ok(campaign.plan(&lab, &host)?)
}

/// The built-in lab for a campaign if none is named.
pub(crate) fn usual_lab(campaign: &Campaign) -> LabFile {
    let of_devices = campaign.tests_devices();
    let device = LabFile::built_in_named("device").filter(|_| of_devices);
    device.unwrap_or_else(LabFile::built_in)
}

/// Reads a lab file, or returns the built-in lab if there is no file of that name.
pub(crate) fn load_lab(path: &Path) -> Result<LabFile, Failure> {
    let built_in = path.to_str().and_then(LabFile::built_in_named);
    match built_in {
        Some(lab) if !path.exists() => Ok(lab),
        _ => Ok(campaign::load_lab(path)?),
    }
}

/// This host's properties that a plan depends on. Cores are those that this process may use.
pub(crate) fn host_facts() -> HostFacts {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    HostFacts {
        cores: u16::try_from(cores).unwrap_or(u16::MAX),
    }
}
