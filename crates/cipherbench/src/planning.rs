//! From the command line to a plan for this host.

use crate::exit::Failure;
use campaign::plan::LabKind;
use campaign::{Campaign, HostFacts, LabFile, Plan};
use std::path::Path;
use std::thread::available_parallelism;

/// Makes the plan of a campaign in a lab on this host; the built-in ones where no file is given.
pub(crate) fn plan(
    campaign: Option<&Path>,
    lab: Option<&Path>,
    repeats: Option<u32>,
) -> Result<Plan, Failure> {
    let host = host_facts();
    let lab = match lab {
        Some(path) => load_lab(path)?,
        None => LabFile::built_in(),
    };
    let campaign = match (campaign, lab.plan().kind) {
        (Some(path), _) => campaign::load(path)?,
        (None, LabKind::Memory) => Campaign::memory(),
        (None, _) => Campaign::quick().within_cores(host.cores),
    };
    let campaign = match repeats {
        Some(repeats) => campaign.with_repeats(repeats),
        None => campaign,
    };
    Ok(campaign.plan(&lab, &host)?)
}

/// Reads a lab file; a built-in lab when there is no file of that name.
pub(crate) fn load_lab(path: &Path) -> Result<LabFile, Failure> {
    let built_in = path.to_str().and_then(LabFile::built_in_named);
    match built_in {
        Some(lab) if !path.exists() => Ok(lab),
        _ => Ok(campaign::load_lab(path)?),
    }
}

/// What a plan must know of this host. Cores are those that this process may use.
pub(crate) fn host_facts() -> HostFacts {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    HostFacts {
        cores: u16::try_from(cores).unwrap_or(u16::MAX),
    }
}
