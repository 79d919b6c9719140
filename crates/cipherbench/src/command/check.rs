//! `cipherbench check FILE…`: all mistakes of campaign and lab files.

use crate::cli::Check;
use crate::exit::{Exit, Failure};
use crate::{output, planning, programs};
use campaign::plan::LabKind;
use campaign::{Campaign, HostFacts, Input, LabFile, Plan};
use lab::programs::Missing;
use units::human::{self, counted};
use yaml::Mistakes;

/// Prints a line for each file without a mistake, with a warning if this host lacks programs that
/// it needs, and all mistakes of the others.
///
/// Campaigns are checked as this host would run them, in every lab given by `--lab` or by a file
/// among the others; without one, in the lab that `run` would use.
pub(crate) fn check(arguments: &Check) -> Result<Exit, Failure> {
    let given = arguments.lab.as_deref().map(planning::load_lab);
    let files: Vec<_> = arguments
        .files
        .iter()
        .map(|file| campaign::load_input(file))
        .collect();
    let mut labs: Vec<LabFile> = given.transpose()?.into_iter().collect();
    labs.extend(files.iter().flatten().filter_map(|input| match input {
        Input::Lab(lab) => Some(lab.clone()),
        Input::Campaign(_) => None,
    }));
    let host = planning::host_facts();
    let mut exit = Exit::Done;
    for (path, file) in arguments.files.iter().zip(files) {
        let checked = match file {
            Ok(Input::Lab(lab)) => Ok(Checked::plain(format!("lab {}", lab.plan().name))),
            Ok(Input::Campaign(campaign)) => in_labs(&campaign, &fitting(&campaign, &labs), &host),
            Err(mistakes) => Err(mistakes.to_string()),
        };
        match checked {
            Ok(Checked {
                summary,
                missing,
                cells,
            }) => {
                output::stdout(&format!("ok  {}  {summary}\n", path.display()))?;
                programs::warn(&format!("{}: ", path.display()), &missing, cells);
            }
            Err(mistakes) => {
                output::stderr(&format!("{mistakes}\n"));
                exit = Exit::Usage;
            }
        }
    }
    Ok(exit)
}

/// A file without mistakes.
struct Checked {
    summary: String,
    /// The programs that a campaign needs in any of its labs, and that this host lacks.
    missing: Vec<Missing>,
    /// The number of its cells.
    cells: usize,
}

impl Checked {
    const fn plain(summary: String) -> Self {
        Self {
            summary,
            missing: Vec::new(),
            cells: 0,
        }
    }
}

/// Selects the labs for a campaign: those of crypto devices for a campaign of such devices,
/// otherwise the others; without one, the lab that `run` would use.
fn fitting(campaign: &Campaign, labs: &[LabFile]) -> Vec<LabFile> {
    let of_devices = |lab: &&LabFile| lab.plan().kind == LabKind::Device;
    let fits = labs
        .iter()
        .filter(|lab| of_devices(lab) == campaign.tests_devices());
    let fitting: Vec<_> = fits.cloned().collect();
    match fitting.is_empty() {
        true => vec![campaign.usual_lab()],
        false => fitting,
    }
}

/// Returns the campaign's summary if all labs fit it; otherwise the mistakes, with the names of
/// the labs that cannot.
fn in_labs(campaign: &Campaign, labs: &[LabFile], host: &HostFacts) -> Result<Checked, String> {
    let mut refused: Vec<(Mistakes, Vec<&str>)> = Vec::new();
    let mut plan = None;
    let mut missing: Vec<Missing> = Vec::new();
    for lab in labs {
        match campaign.plan(lab, host) {
            Ok(made) => {
                for it in programs::missing_for(&made) {
                    if missing.iter().all(|known| known.program != it.program) {
                        missing.push(it);
                    }
                }
                plan = Some(made);
            }
            // Mistakes about the host are the same in every lab, and are reported once.
            Err(mistakes) => match refused.iter_mut().find(|(known, _)| *known == mistakes) {
                Some((_, names)) => names.push(&lab.plan().name),
                None => refused.push((mistakes, vec![&lab.plan().name])),
            },
        }
    }
    match plan.filter(|_| refused.is_empty()) {
        Some(plan) => Ok(Checked {
            summary: format!("{}, in {}", summary(&plan), lab_names(&names_of(labs))),
            missing,
            cells: plan.cells.len(),
        }),
        None => {
            let refusals = refused
                .iter()
                .map(|(mistakes, names)| format!("{mistakes}, checked in {}", lab_names(names)));
            Err(refusals.collect::<Vec<_>>().join("\n\n"))
        }
    }
}

fn summary(plan: &Plan) -> String {
    format!(
        "campaign {}: {}, {}, {}",
        plan.name,
        counted(plan.cells.len() as u64, "cell"),
        counted(plan.trial_count() as u64, "trial"),
        human::duration_ns(plan.estimate_ns() as f64)
    )
}

fn names_of(labs: &[LabFile]) -> Vec<&str> {
    labs.iter().map(|lab| lab.plan().name.as_str()).collect()
}

/// `lab namespaces`, `labs a, b`.
fn lab_names(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "lab" } else { "labs" };
    format!("{noun} {}", names.join(", "))
}
