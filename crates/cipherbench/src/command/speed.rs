//! `cipherbench speed`: measures the crypto engines by themselves.

mod chart;
mod curves;
mod insecure;
mod page;
mod plot;
mod rates;
mod table;

use crate::cli::Speed;
use crate::command::devices;
use crate::exit::{Exit, Failure};
use crate::output;
use curves::SuiteCurves;
use dispatch::{CpuChoice, Direction, Dispatch};
use engine::{EngineError, Selection};
use rates::Figure;
use serde::Serialize;
use std::fs;
use std::iter;
use std::path::Path;
use wire::Suite;

/// An IPv4 header.
const PACKET_BYTES_MIN: u16 = 20;

/// Packet lengths measured by default.
const SIZES_DEFAULT: [u16; 8] = [64, 128, 256, 512, 1024, 1408, 1500, 8192];

/// The measurements, in the form of `speed.json` and `--json`.
#[derive(Serialize)]
struct Measured {
    /// Version of this program.
    version: &'static str,
    /// The command that measured it.
    command: String,
    /// Name of the CPU.
    cpu: String,
    /// Repeats of each figure.
    repeats: usize,
    /// Packets in a batch.
    batch: u16,
    /// Rates; empty with `--curves`.
    figures: Vec<Figure>,
    /// Curves and the fastest engines; empty without `--curves`.
    curves: Vec<SuiteCurves>,
}

pub(crate) fn speed(arguments: &Speed) -> Result<Exit, Failure> {
    if !arguments.of_devices.devices.is_empty() {
        let Speed {
            sizes,
            duration,
            out,
            output,
            of_devices,
            ..
        } = arguments;
        return devices::speed(of_devices, sizes, *duration, out.as_deref(), output);
    }
    let sizes = match &*arguments.sizes {
        [] => &SIZES_DEFAULT[..],
        given => given,
    };
    if let Some(short) = sizes.iter().find(|bytes| **bytes < PACKET_BYTES_MIN) {
        let text = format!(
            "{short} B is too short for a packet\nhelp: use {PACKET_BYTES_MIN} B or more; shorter inputs are for `--device`"
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    let suites = suites(&arguments.suite)?;
    let choice = match arguments.engine.as_str() {
        "all" => CpuChoice::Auto,
        name => name.parse().map_err(EngineError::from).map_err(refused)?,
    };
    let cores = rates::cores(arguments.threads)?;
    // Checked before measuring.
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).map_err(|error| not_written(folder, &error))?;
    }
    let mut measured = Measured {
        version: crate::version::short(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        cpu: cpu_name(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        repeats: rates::REPEATS,
        batch: arguments.batch,
        figures: Vec::new(),
        curves: Vec::new(),
    };
    for suite in suites.iter().copied() {
        let engines = match engines(&choice, suite) {
            Ok(engines) => engines,
            // With `all` suites, suites that the engine lacks are skipped.
            Err(EngineError::NotServed { .. } | EngineError::None { .. }) if suites.len() > 1 => {
                continue;
            }
            Err(error) => return Err(refused(error)),
        };
        if arguments.curves {
            let prepared = rates::pinned(cores[0], || Dispatch::measure(&choice, suite))?;
            measured
                .curves
                .push(SuiteCurves::of(&prepared.map_err(refused)?));
        } else {
            let figures =
                rates::measure(arguments, sizes, &directions(arguments), &engines, &cores)?;
            measured.figures.extend(figures);
        }
    }
    if measured.figures.is_empty() && measured.curves.is_empty() {
        let what = format!("no suite can be measured with engine {choice}");
        return Err(Failure::new(Exit::Usage, what));
    }
    output::warn(rates::warning(&measured.figures).as_slice());
    conclude(arguments, &measured)?;
    Ok(Exit::Done)
}

/// Writes and prints the measurements.
fn conclude(arguments: &Speed, measured: &Measured) -> Result<(), Failure> {
    // Plain data with string keys always has a JSON form.
    let json = serde_json::to_string_pretty(measured).expect("figures can be written as JSON");
    let json = json + "\n";
    if let Some(folder) = &arguments.out {
        let files = [
            ("speed.json", json.clone()),
            ("speed.html", page::write(measured)),
        ];
        for (name, content) in files {
            let path = folder.join(name);
            fs::write(&path, content).map_err(|error| not_written(&path, &error))?;
        }
    }
    output::stdout(&if arguments.output.form.json {
        json
    } else {
        text(measured)
    })?;
    if let Some(folder) = arguments
        .out
        .as_ref()
        .filter(|_| !arguments.output.form.json)
    {
        output::stdout(&format!(
            "\nwrote {}\n",
            folder.join("speed.html").display()
        ))?;
    }
    Ok(())
}

/// The output on a terminal: the tables, and curves as charts of characters.
fn text(measured: &Measured) -> String {
    let plots = measured.curves.iter().flat_map(SuiteCurves::charts);
    iter::once(tables(measured))
        .chain(plots.map(|chart| plot::draw(&chart)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// All figures, followed by notes on insecure ones.
fn tables(measured: &Measured) -> String {
    let rates = rates::tables(&measured.figures, measured.batch);
    let curves = measured.curves.iter().map(SuiteCurves::text);
    let rated = measured.figures.iter();
    let rated = rated.map(|figure| (figure.suite, figure.engine.as_str()));
    let curved = measured.curves.iter().flat_map(SuiteCurves::measured);
    let notes = insecure::notes(rated.chain(curved));
    rates
        .into_iter()
        .chain(curves)
        .chain((!notes.is_empty()).then_some(notes))
        .collect::<Vec<_>>()
        .join("\n")
}

fn suites(name: &str) -> Result<Vec<Suite>, Failure> {
    if name == "all" {
        return Ok(Suite::ALL.to_vec());
    }
    Suite::from_name(name)
        .map(|suite| vec![suite])
        .ok_or_else(|| {
            let known: Vec<_> = Suite::ALL.iter().map(|suite| suite.name()).collect();
            let help = format!("known suites are all, {}", known.join(", "));
            let text = format!("the suite `{name}` is not known\nhelp: {help}");
            Failure::new(Exit::Usage, text)
        })
}

fn directions(arguments: &Speed) -> Vec<Direction> {
    let named = |direction: &Direction| {
        arguments.direction == "all" || arguments.direction == direction.name()
    };
    Direction::ALL.into_iter().filter(named).collect()
}

/// The named engine, or all that have the suite. Warns of engines that cannot be used.
fn engines(choice: &CpuChoice, suite: Suite) -> Result<Vec<Selection>, EngineError> {
    let CpuChoice::Auto = choice else {
        return Ok(vec![engine::select(choice, suite)?]);
    };
    let (mut engines, mut reasons) = (Vec::new(), Vec::new());
    for info in engine::engines() {
        match engine::select(&CpuChoice::Named(info.name.to_owned()), suite) {
            Ok(selection) => engines.push(selection),
            Err(reason) => reasons.push(reason),
        }
    }
    if engines.is_empty() {
        let reasons: Vec<_> = reasons.iter().map(EngineError::in_short).collect();
        let reasons = reasons.join("; ");
        return Err(EngineError::None { suite, reasons });
    }
    reasons.retain(|reason| !matches!(reason, EngineError::NotServed { .. }));
    output::warn(&reasons);
    Ok(engines)
}

fn refused(error: EngineError) -> Failure {
    let exit = match error {
        EngineError::Unknown(_) | EngineError::NotServed { .. } => Exit::Usage,
        EngineError::Refused { .. } => Exit::CriterionFailed,
        EngineError::Unavailable { .. } | EngineError::None { .. } => Exit::CannotBuild,
    };
    Failure::new(exit, error)
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    let help = "give a folder that can be written to with `--out`";
    let text = format!("cannot write {path}: {error}\nhelp: {help}");
    Failure::new(Exit::Usage, text)
}

/// Out of `/proc/cpuinfo`.
fn cpu_name(cpuinfo: &str) -> String {
    let name = cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    name.unwrap_or_else(|| "a CPU without a name".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_name_is_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n";
        assert_eq!(cpu_name(cpuinfo), "A CPU @ 2 GHz");
        assert_eq!(cpu_name(""), "a CPU without a name");
    }
}
