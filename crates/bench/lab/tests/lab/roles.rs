//! What this executable is when it is not the tests.

use crate::support;
use lab::{NamespaceLab, privilege, station};
use plan::{Direction, Element};
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{Bench, NodeId};

/// Plays the role that the command line asks for, if any.
pub(crate) fn play(words: &[&str]) -> Option<ExitCode> {
    let result = match words {
        ["station", "--node", name] => serve(NodeId::from_name(name)),
        ["station", "--here"] => serve(None),
        ["encrypt", "--config", file] => return Some(encrypt(Path::new(file))),
        ["encrypt", "--remove", "--config", file] => {
            // The configuration of a stand-in is none; it has installed nothing.
            if let Ok(config) = encryptor::Config::load(Path::new(file)) {
                encryptor::barrier::remove(&config).unwrap();
            }
            Ok(())
        }
        ["kme", "--config", file] => return Some(kme(Path::new(file))),
        ["hold", folder] => hold(Path::new(folder)),
        ["ordinary-user", folder] => ordinary_user(Path::new(folder)),
        ["bridged", folder] => bridged(Path::new(folder)),
        ["replaced", folder] => replaced(Path::new(folder)),
        ["fill-a-socket"] => {
            fill_a_socket();
            Ok(())
        }
        _ => return None,
    };
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    })
}

fn serve(node: Option<NodeId>) -> Result<(), testbed::LabError> {
    station::serve(node, &[], std::io::stdin(), std::io::stdout())
}

/// The encryptor with the engine `auto` or `null`; a stand-in with any other, to show what the lab
/// does with one that fails: it makes an interface of that name, but forwards in clear. Its
/// engine's name says how it behaves.
fn encrypt(file: &Path) -> ExitCode {
    let text = std::fs::read_to_string(file).unwrap();
    let value = |key: &str| {
        let (_, rest) = text.split_once(key).unwrap();
        rest.trim_start_matches([' ', '"'])
            .split([',', '\n', '"', ' ', ']', '}'])
            .next()
            .unwrap()
            .to_owned()
    };
    if ["auto", engine::NULL].contains(&value("engine: ").as_str()) {
        return encrypt_for_real(file);
    }
    let (remote, engine, route) = (value("remote: "), value("engine: "), value("routes: ["));
    // Both must be where the configuration says, and readable by the owner only.
    assert!(std::fs::exists(value("static: \"")).unwrap());
    assert!(std::fs::exists(format!("{}.epoch", value("static: \""))).unwrap());
    if engine == "refuses" {
        eprintln!("no such engine");
        return ExitCode::from(2);
    }
    let ip = |arguments: &str| {
        let status = std::process::Command::new("ip")
            .args(arguments.split(' '))
            .status();
        assert!(status.unwrap().success());
    };
    ip("tuntap add dev cb0 mode tun");
    ip(&format!("link set cb0 mtu {} up", value("mtu: ")));
    if engine == "deaf" {
        ip(&format!("route add {route} dev cb0"));
    } else {
        ip(&format!("route add {route} via {remote}"));
    }
    let listener = std::net::TcpListener::bind(value("metrics: ")).unwrap();
    println!("ready version=0 engine={engine} mtu={}", value("mtu: "));
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop)).unwrap();
    serve_metrics(&listener, &engine, &stop);
    ip("link del cb0");
    if engine != "deaf" {
        ip(&format!("route del {route} via {remote}"));
    }
    ExitCode::SUCCESS
}

fn encrypt_for_real(file: &Path) -> ExitCode {
    let config = encryptor::Config::load(file).unwrap();
    let stop = port::Stop::new().unwrap();
    let (end, rekey) = (signal_hook::consts::SIGTERM, signal_hook::consts::SIGUSR1);
    let spoil = signal_hook::consts::SIGUSR2;
    let mut signals = signal_hook::iterator::Signals::new([end, rekey, spoil]).unwrap();
    let (raised, fault) = (stop.clone(), config.fault);
    encryptor::run(
        &config,
        encryptor::Program {
            version: "test",
            holder: None,
        },
        &stop,
        |facts, rekeyer| {
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    match (signal, fault) {
                        (signal, _) if signal == end => return raised.raise(),
                        (signal, Some(fault)) if signal == spoil => rekeyer.inject(fault),
                        _ => rekeyer.ask(),
                    }
                }
            });
            let facts: Vec<_> = facts
                .iter()
                .map(|(key, value)| format!(" {key}={value}"))
                .collect();
            println!("ready{}", facts.concat());
        },
    )
    .unwrap();
    ExitCode::SUCCESS
}

fn kme(file: &Path) -> ExitCode {
    let config = qkd::kme::Config::load(file).unwrap();
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM]).unwrap();
    let simulator = qkd::kme::start(&config).unwrap();
    println!("ready");
    signals.wait();
    drop(simulator);
    ExitCode::SUCCESS
}

fn serve_metrics(listener: &std::net::TcpListener, engine: &str, stop: &AtomicBool) {
    const METRICS: &str = "cipherbench_clear_rx_packets_total{lane=\"0\"} 5\n\
                           cipherbench_clear_rx_packets_total{lane=\"1\"} 7\n\
                           cipherbench_dropped_packets_total{lane=\"0\",reason=\"replayed\"} 2\n";
    listener.set_nonblocking(true).unwrap();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(2));
        let Ok((mut stream, _)) = listener.accept() else {
            continue;
        };
        if engine == "dies-when-asked" {
            eprintln!("out of luck");
            std::process::exit(7);
        }
        let mut request = [0; 1024];
        let _ = stream.read(&mut request);
        let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\n{METRICS}");
    }
}

/// Sends more than an unread socket has room for.
fn fill_a_socket() {
    let [source, target] = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = target.local_addr().unwrap();
    for _ in 0..2000 {
        source.send_to(&[0; 1000], address).unwrap();
    }
}

/// What a run that can be killed has between its gateways.
const HELD_PATH: [Element; 2] = [Element::Bridge, Element::Router];

/// Builds a lab with a daemon on it, prints all process ids, and stays until it is killed.
fn hold(folder: &Path) -> Result<(), testbed::LabError> {
    privilege::acquire()?;
    let plan = support::plan_with_path("held", &HELD_PATH);
    let lab = NamespaceLab::build(&plan, &support::setup(folder))?;
    let node = lab.node(NodeId::Gw1);
    let daemon = "setsid sh -c 'echo $$; exec sleep 1000' </dev/null 2>/dev/null & wait $!";
    let ready = testbed::protocol::Ready::Line(String::new());
    let program = Program {
        ready,
        ..support::shell(daemon)
    };
    let request = testbed::protocol::Request::Start {
        program,
        limit_ms: 30_000,
    };
    let testbed::protocol::Response::Started { stdout, .. } = node.call(request)? else {
        return Err(testbed::LabError::Interrupted);
    };
    let stations = NodeId::ALL.into_iter().chain(lab.elements());
    let stations: Vec<_> = stations.map(|id| lab.station_pid(id).to_string()).collect();
    println!("{} {}", stations.join(" "), stdout.trim());
    // Until it is killed, or its parent is gone.
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

/// Builds a lab with an encryptor when another program stands already where this one was.
fn replaced(folder: &Path) -> Result<(), testbed::LabError> {
    let path = support::this_program();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "not a program").unwrap();
    privilege::acquire()?;
    let mut lab = NamespaceLab::build(&support::plan("replaced"), &support::setup(folder))?;
    lab.configure(support::LINKS)?;
    let dut = lab.start_dut(
        &crate::devices::encryptor("well"),
        support::LINKS,
        Direction::Both,
    )?;
    lab.stop_dut(dut)
}

/// Builds a lab with a bridge in its path.
fn bridged(folder: &Path) -> Result<(), testbed::LabError> {
    privilege::acquire()?;
    let plan = support::plan_with_path("bridged", &[Element::Bridge]);
    NamespaceLab::build(&plan, &support::setup(folder)).map(drop)
}

/// Builds a lab as an ordinary user, reports what an earlier one left, and reaches B from A.
fn ordinary_user(folder: &Path) -> Result<(), testbed::LabError> {
    let privilege = privilege::acquire()?;
    let plan = support::plan_with_path("held", &HELD_PATH);
    let mut lab = NamespaceLab::build(&plan, &support::setup(folder))?;
    lab.configure(support::LINKS)?;
    lab.start_dut(&support::direct(), support::LINKS, Direction::Both)?;
    let target = lab.target().to_string();
    let ping = Program::new(["ping", "-n", "-c", "3", "-i", "0.01", &target]);
    let ended = lab.node(NodeId::A).run(ping, Duration::from_secs(20))?;
    println!("{privilege:?} {}\n{}", ended.how(), lab.swept().join("\n"));
    Ok(())
}
