//! `cipherbench speed`: measures the crypto engines by themselves.

use crate::cli::Speed;
use crate::command::devices;
use crate::exit::{Exit, Failure};
use crate::output;
use ::speed::{Event, Measured, Request, cores};
use dispatch::{CpuChoice, Direction};
use engine::EngineError;
use std::fs;
use std::iter;
use std::path::Path;
use wire::Suite;

/// An IPv4 header.
const PACKET_BYTES_MIN: u16 = 20;

/// Packet lengths measured by default.
const SIZES_DEFAULT: [u16; 8] = [64, 128, 256, 512, 1024, 1408, 1500, 8192];

pub(crate) fn speed(arguments: &Speed) -> Result<Exit, Failure> {
    // Devices are measured as a run with trials; only the options are shared.
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
        name => name.parse().map_err(EngineError::from)?,
    };
    // Too few cores are an error before the first figure, which may take minutes.
    let cores = cores(arguments.threads)?;
    // Checked before measuring.
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).map_err(|error| not_written(folder, &error))?;
    }
    let request = Request {
        suites: &suites,
        engines: &choice,
        sizes,
        directions: &directions(arguments),
        batch: arguments.batch,
        duration: arguments.duration,
        cores: &cores,
        curves: arguments.curves,
        version: crate::version::short(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
    };
    let measured = Measured::of(&request, |event| match event {
        Event::Unusable(reason) => output::warn(&[reason]),
        Event::Figure(line) if !arguments.output.quiet => output::stderr(&format!("{line}\n")),
        Event::Figure(_) => {}
    })?;
    output::warn(measured.warning().as_slice());
    conclude(arguments, &measured)?;
    Ok(Exit::Done)
}

/// Writes and prints the measurements.
fn conclude(arguments: &Speed, measured: &Measured) -> Result<(), Failure> {
    // One text for the file and the screen, so that they agree.
    let json = measured.json();
    if let Some(folder) = &arguments.out {
        let files = [
            ("speed.json", json.clone()),
            ("speed.html", measured.page()),
        ];
        for (name, content) in files {
            let path = folder.join(name);
            fs::write(&path, content).map_err(|error| not_written(&path, &error))?;
        }
    }
    output::stdout(&if arguments.output.form.json {
        json
    } else {
        measured.text(output::width())
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

fn suites(name: &str) -> Result<Vec<Suite>, Failure> {
    if name == "all" {
        return Ok(Suite::ALL.to_vec());
    }
    Suite::from_name(name)
        .map(|suite| vec![suite])
        .ok_or_else(|| {
            let known = Suite::ALL.iter().map(|suite| suite.name());
            let known: Vec<&str> = iter::once("all").chain(known).collect();
            let help = yaml::names::help(name, "suite", &known);
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

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    let help = "give a folder that can be written to with `--out`";
    let text = format!("cannot write {path}: {error}\nhelp: {help}");
    Failure::new(Exit::Usage, text)
}
