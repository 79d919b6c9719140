//! A plan for this host, from names or files.

use crate::error::SessionError;
use crate::nearest;
use campaign::{CAMPAIGNS, Campaign, HostFacts, LABS, LabFile};
use plan::{LabKind, Plan, estimate};
use std::path::Path;
use std::thread::available_parallelism;
use units::human::counted;

/// Makes the plan of a campaign in a lab on this host, of its short form if `quick`; without files,
/// of the built-in ones.
///
/// # Errors
/// All mistakes of the files, and an unknown name.
pub fn plan(
    campaign: Option<&Path>,
    lab: Option<&Path>,
    quick: bool,
    repeats: Option<u32>,
) -> Result<Plan, SessionError> {
    let host = host_facts();
    let lab = lab.map(load_lab).transpose()?;
    // Without a campaign the lab decides: the quick campaign needs a network, which the labs in
    // memory and of devices do not have.
    let campaign = match (campaign, lab.as_ref().map(|lab| lab.plan().kind)) {
        (Some(path), _) => load_campaign(path, &host)?,
        (None, kind) => {
            let name = match kind {
                Some(LabKind::Memory) => "memory",
                Some(LabKind::Device) => "devices",
                _ => "quick",
            };
            Campaign::built_in_named(name).expect("it is built in")
        }
    };
    let campaign = if quick {
        campaign.shortened().ok_or(SessionError::NoShortForm)?
    } else {
        campaign
    };
    // The campaign that runs without any file adapts to the host. Another one names its cells, and
    // is refused if the host has too few cores for them.
    let campaign = match campaign.name() {
        "quick" => campaign.within_cores(host.cores),
        _ => campaign,
    };
    let lab = lab.unwrap_or_else(|| campaign.usual_lab());
    let campaign = match repeats {
        Some(repeats) => campaign.with_repeats(repeats),
        None => campaign,
    };
    Ok(campaign.plan(&lab, &host)?)
}

/// Returns a plan in a line, with its estimated time.
#[must_use]
pub fn summary(plan: &Plan) -> String {
    format!(
        "campaign {}: {}, {}, {}",
        plan.name,
        counted(plan.cells.len() as u64, "cell"),
        counted(plan.trial_count() as u64, "trial"),
        estimate::in_words(plan)
    )
}

/// Reads a campaign file, or returns the shipped campaign if there is no file of that name.
fn load_campaign(path: &Path, host: &HostFacts) -> Result<Campaign, SessionError> {
    if path.exists() {
        return Ok(campaign::load(path, host)?);
    }
    match path.to_str().and_then(Campaign::built_in_named) {
        Some(campaign) => Ok(campaign),
        None => {
            refuse_missing("campaign", path)?;
            Ok(campaign::load(path, host)?)
        }
    }
}

/// Reads a lab file, or returns the shipped lab if there is no file of that name.
///
/// # Errors
/// All mistakes of the file, and an unknown name.
pub fn load_lab(path: &Path) -> Result<LabFile, SessionError> {
    if path.exists() {
        return Ok(campaign::load_lab(path)?);
    }
    match path.to_str().and_then(LabFile::built_in_named) {
        Some(lab) => Ok(lab),
        None => {
            refuse_missing("lab", path)?;
            Ok(campaign::load_lab(path)?)
        }
    }
}

/// Refuses a path that leads to no file, if it is rather a name, or if there is one that was most
/// likely meant. In other cases the reader of the file describes the problem.
pub(crate) fn refuse_missing(kind: &'static str, path: &Path) -> Result<(), SessionError> {
    let (folder, shipped, example) = match kind {
        "lab" => ("labs", &[LABS][..], "labs/external.yaml"),
        "campaign" => ("campaigns", &[CAMPAIGNS][..], "campaigns/suites.yaml"),
        _ => ("campaigns", &[CAMPAIGNS, LABS][..], "campaigns/suites.yaml"),
    };
    let nearest = nearest::file(path, folder, shipped);
    if path.components().count() == 1 && path.extension().is_none() {
        return Err(SessionError::UnknownName {
            kind,
            name: path.display().to_string(),
            nearest,
            example,
        });
    }
    match nearest {
        Some(nearest) => Err(SessionError::NoFile {
            path: path.to_owned(),
            nearest,
        }),
        None => Ok(()),
    }
}

/// Returns this host's properties that a plan depends on. Only cores that this process may use
/// count.
#[must_use]
pub fn host_facts() -> HostFacts {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    HostFacts {
        cores: u16::try_from(cores).unwrap_or(u16::MAX),
    }
}
