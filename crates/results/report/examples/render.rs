//! Writes the documents of a run, and prints what a run ends with:
//!
//! ```text
//! cargo run -p cipherbench-report --example render -- RUN [OUT]
//! cargo run -p cipherbench-report --example render -- sample:NAME OUT
//! ```
//!
//! `RUN` is the folder of a run. The samples are the made-up runs that the tests use (`quick`,
//! `frames`, `disturbed`, `soak`, `troubled`, `in-progress`, `empty`, `large`, `hostile`,
//! `hostile-frames`, `only-baseline`, `no-baseline`, `dozen`, `random-1` …), and with `shipped-`
//! before its name any campaign of the repository on one machine (`shipped-ipsec`): to see what a
//! change of the report looks like without measuring anything. The journal of a sample is written
//! too; `many-1`, `many-2` … have ten thousand trials and are not rendered.

#[path = "../tests/report/fixture.rs"]
mod fixture;

use journal::{FILE_NAME, Journal, Record};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(run), out) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: render RUN [OUT] | render sample:NAME OUT");
        return ExitCode::from(2);
    };
    let out = match out {
        Some(out) => PathBuf::from(out),
        None if run.starts_with("sample:") => {
            eprintln!("error: a sample needs a folder to write to");
            return ExitCode::from(2);
        }
        None => PathBuf::from(&run),
    };
    let made = open(&run).and_then(|journal| match run.strip_prefix("sample:") {
        None => render(&journal, &out),
        Some(name) => {
            write_journal(&journal, &out)?;
            if name.starts_with("many-") {
                Ok(())
            } else {
                render(&journal, &out)
            }
        }
    });
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn open(run: &str) -> Result<Journal, String> {
    match run.strip_prefix("sample:") {
        None => journal::read(run.as_ref()).map_err(|error| error.to_string()),
        Some("insecure") => Ok(fixture::insecure()),
        Some("limits") => Ok(fixture::limits()),
        Some("quick") => Ok(fixture::quick()),
        Some("http") => Ok(fixture::http()),
        Some("ike") => Ok(fixture::ike()),
        Some("troubled") => Ok(fixture::troubled()),
        Some("in-progress") => Ok(fixture::in_progress()),
        Some("empty") => Ok(fixture::empty()),
        Some("large") => Ok(fixture::large()),
        Some("only-baseline") => Ok(fixture::only(true)),
        Some("no-baseline") => Ok(fixture::only(false)),
        Some("frames") => Ok(fixture::frame_tests()),
        Some("round-trips") => Ok(fixture::round_trips()),
        Some("mrr") => Ok(fixture::maximum_receive_rates()),
        Some("service") => Ok(fixture::services()),
        Some("disturbed") => Ok(fixture::disturbed()),
        Some("soak") => Ok(fixture::soak()),
        Some("monitored") => Ok(fixture::monitored()),
        Some("monitored-frames") => Ok(fixture::monitored_frames()),
        Some("device") => Ok(fixture::cards()),
        Some("hostile-frames") => Ok(fixture::hostile_frames()),
        Some("hostile") => Ok(fixture::hostile()),
        Some("peers") => Ok(fixture::peers(5)),
        Some("scaling") => Ok(fixture::scaling()),
        Some("dozen") => Ok(fixture::dozen()),
        Some(random) if random.starts_with("random-") => {
            let seed = random["random-".len()..].parse();
            Ok(fixture::random(seed.map_err(|_| "a seed is a number")?))
        }
        Some(many) if many.starts_with("many-") => {
            let seed = many["many-".len()..].parse();
            Ok(fixture::many(seed.map_err(|_| "a seed is a number")?))
        }
        Some("suites") => Ok(fixture::suites(None)),
        Some("suites-line") => Ok(fixture::suites(Some(10_000_000_000))),
        Some("weather") => Ok(fixture::weather()),
        Some("tunnels") => Ok(fixture::tunnels(&[
            "direct",
            "strongswan",
            "wireguard-go",
            "openvpn",
        ])),
        Some(shipped) if shipped.starts_with("shipped-") => {
            Ok(fixture::shipped(&shipped["shipped-".len()..]))
        }
        Some(other) => Err(format!("no sample `{other}`")),
    }
}

/// The trials of a complete run; samples with other records are rendered only.
fn write_journal(run: &Journal, out: &Path) -> Result<(), String> {
    let trials = run.trials.iter().cloned().map(Box::new).map(Record::Trial);
    let records: Vec<Record> = trials.chain(run.end.clone().map(Record::End)).collect();
    fs::create_dir_all(out)
        .and_then(|()| {
            fs::write(
                out.join(FILE_NAME),
                journal::to_bytes(&run.header, &records),
            )
        })
        .map_err(|error| format!("cannot write into {}: {error}", out.display()))
}

fn render(journal: &Journal, out: &Path) -> Result<(), String> {
    fs::create_dir_all(out).map_err(|error| format!("cannot create {}: {error}", out.display()))?;
    report::Report::of(journal)
        .write_all(out)
        .map_err(|error| error.to_string())?;
    let width = std::env::var("COLUMNS")
        .ok()
        .and_then(|width| width.parse().ok())
        .unwrap_or(100);
    let folders = report::Folders {
        run: out,
        documents: out,
    };
    print!(
        "{}",
        report::Report::of(journal)
            .for_people()
            .terminal(Some(folders), width, false)
    );
    Ok(())
}
