//! Trials on a real lab of namespaces with the real tools; skipped, with the reason, where none can
//! be built.
//!
//! ```text
//!  A ---- gw1 ==== gw2 ---- B      the gateways forward in clear, or the encryptor runs on them
//! ```
//!
//! This executable is also the programs that the lab starts: `station`; `encrypt`, which is the
//! real encryptor; `kme`, the real simulator of KMEs; `frames`, the real generator and
//! analyser; `http` and `video`, the real parts of applications; `ike-peers`,
//! the real peers of IKEv2; `impair`, the real bridge of an
//! impaired path; and `capture`. `null-esp` and `noise-esp` send packets for the tests of sabotage.

mod attacks;
mod captures;
mod classes;
mod directions;
mod disturbed;
mod encryptors;
mod energy;
mod external;
mod floods;
mod frames;
mod hidden;
mod http;
mod ike;
mod impaired;
mod known;
mod nat;
mod one_gateway;
mod overlays;
mod past;
mod pings;
mod round_trips;
mod sabotage;
mod shaped;
mod trials;
mod video;

use encryptor::Config;
use lab::{privilege, station};
use libtest_mimic::{Arguments, Completion, Trial};
use port::Stop;
use signal_hook::consts::{SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use testbed::NodeId;
use testing::busy;

fn main() -> ExitCode {
    // The lab starts the running executable for every role, which in a test is this one.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["station", "--node", name] => return serve(NodeId::from_name(name)),
        ["encrypt", "--config", file] => return encrypt(Path::new(file)),
        ["encrypt", "--remove", "--config", file] => {
            let config = Config::load(Path::new(file)).unwrap();
            encryptor::barrier::remove(&config).unwrap();
            return ExitCode::SUCCESS;
        }
        ["kme", "--config", file] => return kme(Path::new(file)),
        ["frames"] => return frame_trial(),
        ["http"] => return http::play(),
        ["video"] => return video::play(),
        ["ike-peers", "--station"] => return ike::play(&stop_at_sigterm()),
        ["impair"] => return impaired_path(),
        ["capture"] => return capture(),
        ["null-esp"] => {
            sabotage::send_null_esp();
            return ExitCode::SUCCESS;
        }
        ["noise-esp"] => {
            sabotage::send_noise();
            return ExitCode::SUCCESS;
        }
        // A host's station has no node: requests name the station that they are for.
        ["station"] => return serve(None),
        ["outside", scenario] => return external::play(scenario),
        ["hold-outside", folder, plan] => return external::hold(folder, plan),
        _ => {}
    }
    // First of all: the process has one thread still.
    let privilege = privilege::acquire();
    if let Err(error) = &privilege {
        eprintln!("SKIPPED: no lab can be built here: {error}");
    }
    let skipped = Arc::new(privilege.err().map(|error| error.to_string()));
    let modules = [
        ("captures", &captures::ALL[..]),
        ("trials", &trials::ALL[..]),
        ("directions", &directions::ALL[..]),
        ("frames", &frames::ALL[..]),
        ("http", &http::ALL[..]),
        ("video", &video::ALL[..]),
        ("ike", &ike::ALL[..]),
        ("encryptors", &encryptors::ALL[..]),
        ("energy", &energy::ALL[..]),
        ("attacks", &attacks::ALL[..]),
        ("disturbed", &disturbed::ALL[..]),
        ("past", &past::ALL[..]),
        ("pings", &pings::ALL[..]),
        ("external", &external::ALL[..]),
        ("sabotage", &sabotage::ALL[..]),
        ("hidden", &hidden::ALL[..]),
        ("floods", &floods::ALL[..]),
        ("known", &known::ALL[..]),
        ("shaped", &shaped::ALL[..]),
        ("nat", &nat::ALL[..]),
        ("round_trips", &round_trips::ALL[..]),
        ("impaired", &impaired::ALL[..]),
        ("one_gateway", &one_gateway::ALL[..]),
        ("overlays", &overlays::ALL[..]),
        ("classes", &classes::ALL[..]),
    ];
    let all = modules.into_iter().flat_map(|(module, tests)| {
        let named = move |(name, test): &(&str, fn())| (format!("{module}::{name}"), *test);
        tests.iter().map(named)
    });
    let tests = all.map(|(name, test)| {
        let skipped = Arc::clone(&skipped);
        Trial::ignorable_test(name, move || {
            if let Some(reason) = &*skipped {
                return Ok(Completion::ignored_with(reason));
            }
            // Their trials are repeated one by one.
            Ok(match busy::skipped_in_lab(0, test) {
                Some(_) => Completion::ignored_with("the machine is too busy"),
                None => Completion::Completed,
            })
        })
    });
    let mut arguments = Arguments::from_args();
    // They wait for traffic far more than they compute; what they assert holds on a busy machine.
    arguments.test_threads = arguments.test_threads.or(Some(3));
    libtest_mimic::run(&arguments, tests.collect()).exit_code()
}

fn serve(node: Option<NodeId>) -> ExitCode {
    match station::serve(node, &[], std::io::stdin(), std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Runs the real encryptor until SIGTERM.
fn encrypt(file: &Path) -> ExitCode {
    let config = match Config::load(file) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    let stop = stop_at_sigterm();
    let fault = config.fault;
    let mut asks = Signals::new([SIGUSR1, SIGUSR2]).unwrap();
    let ended = encryptor::run(
        &config,
        encryptor::Program {
            version: "test",
            holder: None,
        },
        &stop,
        |facts, rekeyer| {
            std::thread::spawn(move || {
                // SIGUSR1 asks for new keys, and SIGUSR2 for the configured fault, as with the real
                // service.
                asks.forever().for_each(|signal| match fault {
                    Some(fault) if signal == SIGUSR2 => rekeyer.inject(fault),
                    _ => rekeyer.ask(),
                });
            });
            let facts: Vec<String> = facts
                .iter()
                .map(|(key, value)| format!(" {key}={value}"))
                .collect();
            println!("ready{}", facts.concat());
        },
    );
    match ended {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Runs the KME simulators until SIGTERM.
fn kme(file: &Path) -> ExitCode {
    let config = match qkd::kme::Config::load(file) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    let stop = stop_at_sigterm();
    let simulator = match qkd::kme::start(&config) {
        Ok(simulator) => simulator,
        Err(error) => return fail(&error),
    };
    println!("ready");
    while !stop.is_raised() {
        port::wait_readable(&[stop.as_fd()], None).unwrap();
    }
    drop(simulator);
    ExitCode::SUCCESS
}

/// The real generator or analyser, as its standard input says.
fn frame_trial() -> ExitCode {
    let stop = stop_at_sigterm();
    let spec = std::io::read_to_string(std::io::stdin()).unwrap();
    match traffic::serve(&spec, std::io::stdout(), &stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// The real bridge of an impaired path, as its standard input says.
fn impaired_path() -> ExitCode {
    let stop = stop_at_sigterm();
    let spec = std::io::read_to_string(std::io::stdin()).unwrap();
    match traffic::serve_bridge(&spec, std::io::stdout(), &stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// The real capture, as its standard input says.
fn capture() -> ExitCode {
    let stop = stop_at_sigterm();
    let spec = std::io::read_to_string(std::io::stdin()).unwrap();
    match capture::serve(&spec, traffic_spec::READY, std::io::stdout(), &stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Returns a stop that SIGTERM raises.
fn stop_at_sigterm() -> Stop {
    let stop = Stop::new().unwrap();
    let raised = stop.clone();
    let mut signals = Signals::new([SIGTERM]).unwrap();
    std::thread::spawn(move || {
        signals.forever().next();
        raised.raise();
    });
    stop
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(3)
}
