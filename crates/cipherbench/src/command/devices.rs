//! `cipherbench kat`, `fatigue` and `speed --device`: trials of crypto devices without a campaign
//! file.
//!
//! The command line becomes the text of a campaign, which is read, checked, run, recorded and
//! reported like any other, so that devices are named and mistakes reported as in campaigns.

use crate::cli::{DeviceSpeed, Fatigue, Junit, Kat, Output, Watching};
use crate::command::run::carry_out;
use crate::exit::{Exit, Failure};
use campaign::LabFile;
use plan::Plan;
use session::host_facts;
use session::programs::OnMissing;
use std::path::Path;
use std::time::Duration;

/// The file name in messages about that text.
const FILE: &str = "command line";

pub(crate) fn kat(arguments: &Kat) -> Result<Exit, Failure> {
    // The key is omitted, not empty: a campaign takes an empty list for a mistake.
    let algorithms = match &*arguments.algorithms {
        [] => String::new(),
        some => format!("algorithms: {}", list(some)),
    };
    let trial = format!("kat: {{ {algorithms} }}");
    run(
        "kat",
        1,
        &arguments.devices.devices,
        &trial,
        &arguments.out,
        (&arguments.output, &arguments.watching),
    )
}

pub(crate) fn fatigue(arguments: &Fatigue) -> Result<Exit, Failure> {
    let Fatigue {
        devices,
        operations,
        threads,
        loops,
        duration,
        invalid_every,
        no_restart,
        out,
        output,
        watching,
    } = arguments;
    let mut keys = vec![
        format!("threads: {threads}"),
        format!("invalid_every: {invalid_every}"),
        format!("restart: {}", !no_restart),
    ];
    if !operations.is_empty() {
        keys.push(format!("operations: {}", list(operations)));
    }
    keys.extend(loops.map(|loops| format!("loops: {loops}")));
    keys.extend(duration.map(|duration| format!("duration: {}", time(duration))));
    let trial = format!("fatigue: {{ {} }}", keys.join(", "));
    run(
        "fatigue",
        1,
        &devices.devices,
        &trial,
        out,
        (output, watching),
    )
}

/// The arguments of `speed`, which share the time per figure with the other speeds. Without sizes,
/// the campaigns' defaults apply.
pub(crate) fn speed(
    arguments: &DeviceSpeed,
    sizes: &[u16],
    duration: Duration,
    out: Option<&Path>,
    output: &Output,
) -> Result<Exit, Failure> {
    let trial = speed_trial(arguments, sizes, duration);
    let out = out.unwrap_or(Path::new("runs"));
    run(
        "speed",
        arguments.repeats,
        &arguments.devices,
        &trial,
        out,
        (output, &Watching::default()),
    )
}

fn speed_trial(arguments: &DeviceSpeed, sizes: &[u16], duration: Duration) -> String {
    let workers = if arguments.processes {
        "processes"
    } else {
        "threads"
    };
    // Bare numbers need no quotes: clap has parsed them.
    let at_once: Vec<_> = arguments.concurrency.iter().map(u32::to_string).collect();
    let mut keys = vec![
        format!("operation: {}", list(&arguments.operations)),
        format!("concurrency: [{}]", at_once.join(", ")),
        format!("workers: {workers}"),
        format!("depth: {}", arguments.depth),
        format!("duration: {}", time(duration)),
    ];
    if !sizes.is_empty() {
        let sizes: Vec<_> = sizes.iter().map(|bytes| format!("{bytes} B")).collect();
        keys.push(format!("size: [{}]", sizes.join(", ")));
    }
    format!("speed: {{ {} }}", keys.join(", "))
}

fn run(
    name: &str,
    repeats: u32,
    devices: &[String],
    trial: &str,
    out: &Path,
    output: (&Output, &Watching),
) -> Result<Exit, Failure> {
    let plan = plan(name, repeats, devices, trial)?;
    carry_out(out, output, &Junit::default(), plan, OnMissing::Refuse)
}

fn plan(name: &str, repeats: u32, devices: &[String], trial: &str) -> Result<Plan, Failure> {
    // A line break would end the item, and the rest of the name would become keys of the campaign.
    if let Some(broken) = devices.iter().find(|device| device.contains('\n')) {
        let text = format!("a device is named in one line, but {broken:?} has more");
        return Err(Failure::new(Exit::Usage, text));
    }
    let mut text = format!("campaign: {name}\nrepeats: {repeats}\ndevices:\n");
    for device in devices {
        // Not quoted: a device may be a mapping with options, as in campaigns.
        text.push_str(&format!("  - {device}\n"));
    }
    text.push_str(&format!("trials:\n  - {trial}\n"));
    let campaign = campaign::from_text(FILE, &text)?;
    // Devices are measured on this host; no network is built.
    let lab = LabFile::built_in_named("device").expect("it is built in");
    Ok(campaign.plan(&lab, &host_facts())?)
}

/// A list in YAML, each item quoted.
fn list(items: &[String]) -> String {
    // A doubled quote is the only escape in single quotes (YAML 1.2.2 §7.3.2): no item can end the
    // list or begin another key.
    let quoted: Vec<_> = items
        .iter()
        .map(|item| format!("'{}'", item.trim().replace('\'', "''")))
        .collect();
    format!("[{}]", quoted.join(", "))
}

fn time(duration: Duration) -> String {
    units::time::print(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_a_campaign() {
        let devices = [
            "engine".to_owned(),
            "openssl: { provider: legacy }".to_owned(),
        ];
        let trial = format!("kat: {{ algorithms: {} }}", list(&["sha-256".to_owned()]));
        let plan = plan("kat", 1, &devices, &trial).unwrap();
        let names: Vec<_> = plan.cells.iter().map(|cell| &*cell.id).collect();
        assert_eq!(names, ["kat/engine", "kat/openssl-legacy"]);
    }

    #[test]
    fn without_sizes_each_operation_has_its_supported_ones() {
        let cells = |operation: &str, sizes: &[u16]| {
            let arguments = DeviceSpeed {
                devices: vec!["engine".to_owned()],
                operations: vec![operation.to_owned()],
                concurrency: vec![1],
                processes: false,
                depth: 1,
                repeats: 1,
            };
            let trial = speed_trial(&arguments, sizes, Duration::from_secs(1));
            plan("speed", 1, &arguments.devices, &trial).map(|plan| plan.cells.len())
        };
        assert_eq!(cells("aes-128-cbc encrypt", &[]).unwrap(), 5);
        assert_eq!(cells("aes-128-cbc encrypt", &[16, 64]).unwrap(), 2);
        assert_eq!(cells("rsa-2048-pss", &[]).unwrap(), 2, "sign and verify");
        let error = cells("aes-128-cbc encrypt", &[1500]).unwrap_err();
        assert!(error.to_string().contains("no whole blocks"), "{error}");
    }

    #[test]
    fn a_mistake_is_reported_as_in_a_campaign() {
        let error = plan("kat", 1, &["enigma".to_owned()], "kat").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`enigma` is not known"), "{text}");
        assert!(text.contains("softhsm"), "{text}");
    }
}
