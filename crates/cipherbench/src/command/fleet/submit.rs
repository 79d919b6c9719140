//! `cipherbench fleet submit`.

use crate::cli::Submit;
use crate::exit::{Exit, Failure};
use crate::output;
use campaign::HostFacts;
use fleet::{Access, Fleet, FleetError, Identity, Job, LabOffer, Selector, Terms, new_id};
use guard::visible;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use view::labels;

/// The largest campaign that `check` reads.
const CAMPAIGN_BYTES_MAX: usize = 1 << 20;

pub(super) fn submit(access: &Access, arguments: &Submit) -> Result<Exit, Failure> {
    let Submit {
        campaign,
        quick,
        lab,
        select,
        priority,
        matrix,
        every,
        valid,
    } = arguments;
    let (text, named) = read(campaign)?;
    let job = Job {
        id: String::new(),
        name: campaign.display().to_string(),
        campaign: text,
        quick: *quick,
        selector: Selector {
            lab: lab.clone().or_else(|| named.map(str::to_owned)),
            labels: select.iter().cloned().collect(),
        },
        priority: *priority,
        labels: BTreeMap::new(),
        // For people only: agents trust the signature, and anybody can set this name.
        by: std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned()),
        every: *every,
        period: None,
        signature: None,
    };
    // A repetition is signed once for all of its jobs, so that it has to be valid for longer.
    let days = if every.is_some() { 365 } else { 30 };
    let valid = Duration::from_secs(valid.unwrap_or(days * 24 * 60 * 60));
    queue(access, &job, matrix.as_ref(), valid)
}

/// A campaign's text, without mistakes as far as they do not depend on a lab, and the lab that it
/// names.
fn read(path: &Path) -> Result<(String, Option<&'static str>), Failure> {
    // Each lab's agent checks it for that lab's machine.
    let host = HostFacts { cores: u16::MAX };
    let named = campaign::load(path, &host)?.named_lab();
    let text = guard::read_text(path, CAMPAIGN_BYTES_MAX).map_err(|error| {
        let text = format!(
            "cannot read {}: {error}\nhelp: check the path",
            path.display()
        );
        Failure::new(Exit::Usage, text)
    });
    Ok((text?, named))
}

fn queue(
    access: &Access,
    job: &Job,
    matrix: Option<&(String, String)>,
    valid: Duration,
) -> Result<Exit, Failure> {
    let mut jobs: Vec<Job> = match matrix {
        None => vec![Job {
            id: new_id(),
            ..job.clone()
        }],
        // Each job selects the labs with one value, and also carries it as a label: the views show
        // it.
        Some((key, values)) => {
            let of_value = |value: &str| {
                let mut job = Job {
                    id: new_id(),
                    ..job.clone()
                };
                job.selector.labels.insert(key.clone(), value.to_owned());
                job.labels.insert(key.clone(), value.to_owned());
                job
            };
            values.split(',').map(of_value).collect()
        }
    };
    let offers = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        if let Some(path) = &access.key {
            let identity = Identity::read(path)?;
            // Signed after the connection: a signature names the fleet, so that no other accepts
            // the job.
            for job in &mut jobs {
                job.sign(&identity, Terms::now(fleet.id(), valid, job.every));
            }
        }
        for job in &jobs {
            match job.every {
                Some(_) => fleet.repeat(job).await?,
                None => fleet::submit(&fleet, job).await?,
            }
        }
        Ok::<_, FleetError>(fleet.offers().await)
    })?;
    let ids: String = jobs.iter().map(|job| format!("{}\n", job.id)).collect();
    // The ids first: scripts read them, and a warning must not delay or lose them.
    output::stdout(&ids)?;
    match offers {
        Ok(offers) => {
            let waits = jobs.iter().filter_map(|job| without_a_lab(job, &offers));
            output::warn(&waits.collect::<Vec<_>>());
        }
        // They are queued.
        Err(error) => output::warn(&[format!("whether a lab on offer fits is not known: {error}")]),
    }
    Ok(Exit::Done)
}

/// A warning for a job that fits no lab on offer; `None` if it fits one.
fn without_a_lab(job: &Job, offers: &[LabOffer]) -> Option<String> {
    if offers
        .iter()
        .any(|offer| job.selector.misfit(offer).is_none())
    {
        return None;
    }
    let lab = match &job.selector.lab {
        Some(lab) => format!("the lab {}", visible(lab)),
        None => "a lab".to_owned(),
    };
    let labels = labels(&job.selector.labels);
    let with = if labels.is_empty() {
        String::new()
    } else {
        format!(" with{labels}")
    };
    let there = if offers.is_empty() {
        "no lab is on offer: `cipherbench fleet agent LAB` offers one".to_owned()
    } else {
        let labs = offers
            .iter()
            .map(|offer| format!("{}{}", visible(&offer.lab), self::labels(&offer.labels)));
        let wanted = job.selector.lab.as_deref();
        let names = || offers.iter().map(|offer| offer.lab.as_str());
        // A known name whose labels do not fit is no mistyped one.
        let wanted = wanted.filter(|wanted| !names().any(|known| known == *wanted));
        let nearest = wanted.and_then(|wanted| yaml::names::nearest(wanted, names()));
        // Names of labs come from their agents.
        let nearest = nearest.map(|nearest| visible(nearest).into_owned());
        let hint = yaml::names::question(nearest.as_deref());
        format!("{hint}on offer: {}", labs.collect::<Vec<_>>().join(", "))
    };
    Some(format!(
        "job {} waits: no agent offers {lab}{with}\nhelp: {there}; `cipherbench fleet cancel {}` withdraws the job",
        job.id, job.id
    ))
}
