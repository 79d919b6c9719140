//! Set-ups per second and core of our initiators and of our responder, each on a core, and the
//! memory of peers that are up.
//!
//! ```text
//! make bench-ike
//! make bench-ike ARGS="--peers 2000 --idle 100000"
//! ```
//!
//! Both are processes of this program. Requests go over loopback; set-ups are offered faster than
//! either side completes them, so that CPU time is the bottleneck. CPU time per set-up of each side
//! gives its rate per core.

use ike_peers::gateway::{Counts, Settled};
use ike_peers::{
    Authentication, Behaviour, Hidden, Load, Pem, Report, Selectors, Sources, Spec, Triggers, run,
};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use pki::{Authority, Texts, days_from_now};
use port::Stop;
use serde::{Deserialize, Serialize};
use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread;

const CLASSIC: &str = "aes256gcm16-prfsha384-x25519";
const HYBRID: &str = "aes256gcm16-prfsha384-x25519-ke1_mlkem768";
/// Set-ups are offered at this rate: more than one core completes.
const FLOOD_PER_S: u32 = 100_000;
const SECOND_NS: u64 = 1_000_000_000;

type Failed = Box<dyn Error>;

/// The gateway's part, on the standard input of its process.
#[derive(Serialize, Deserialize)]
struct Part {
    spec: Spec,
    certificate: Option<Pem>,
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|it| it == "gateway") {
        return serve();
    }
    let number = |name: &str, usual: u32| {
        let at = arguments.iter().position(|it| it == name);
        let text = at.and_then(|at| arguments.get(at + 1));
        text.map_or(Ok(usual), |it| it.parse())
    };
    let (peers, idle) = (number("--peers", 5000)?, number("--idle", 10_000)?);
    pin(0)?;
    // First: the allocator keeps memory that later ones use again.
    standing(idle)?;
    storm(idle)?;
    let authority = Authority::generate()?;
    let own = authority.issue("gateway.example", days_from_now(1))?;
    println!("\n{peers} set-ups over loopback, initiators and responder on a core each:\n");
    println!("| Suite | Completed | Set-ups/s | Initiator: set-ups/s of a core | Responder |");
    println!("| --- | --: | --: | --: | --: |");
    for (name, proposal, certificates) in [
        ("X25519, shared key", CLASSIC, None),
        ("X25519 + ML-KEM-768, shared key", HYBRID, None),
        (
            "X25519, ECDSA certificates",
            CLASSIC,
            Some((&authority, &own)),
        ),
    ] {
        let load = Load::Setup { per_s: FLOOD_PER_S };
        let part = part(peers, proposal, load, certificates)?;
        let (report, counts) = played(&part)?;
        let setups = &report.setups;
        let per_s = |ns: u64| setups.completed as f64 * 1e9 / ns.max(1) as f64;
        println!(
            "| {name} | {} | {:.0} | {:.0} | {:.0} |",
            setups.completed,
            per_s(setups.elapsed_ns),
            per_s(setups.cpu_ns),
            per_s(counts.cpu_ns)
        );
        for (reason, failure) in &setups.failed {
            println!("{} × {reason}: {}", failure.count, failure.example);
        }
    }
    Ok(())
}

/// Peers that are set up in 10 s and then stay up, with a check every 30 s.
fn standing(peers: u32) -> Result<(), Failed> {
    let per_s = (peers / 10).max(1);
    let load = Load::Concurrent {
        per_s,
        hold_ns: 30 * SECOND_NS,
    };
    let mut part = part(peers, CLASSIC, load, None)?;
    part.spec.behaviour = Behaviour::default();
    let (report, counts) = played(&part)?;
    let setups = &report.setups;
    let at = |part: f64| {
        let time = setups.latency.quantile(part, setups.intended);
        time.map_or_else(
            || "none".to_owned(),
            |ns| format!("{:.2} ms", ns as f64 / 1e6),
        )
    };
    println!(
        "{peers} peers at {per_s}/s, X25519 and a shared key: {} up after {:.2} s, latency p50 {}, p99 {}, \
         {} retransmissions",
        setups.completed,
        setups.elapsed_ns as f64 / 1e9,
        at(0.5),
        at(0.99),
        setups.retransmissions
    );
    if let Some(memory) = report.memory {
        let responder = counts.memory_bytes.unwrap_or(0) / u64::from(peers.max(1));
        println!(
            "memory per peer that is up: {} bytes at the initiators, {responder} bytes at the responder with all \
             that its process has",
            memory.bytes_per_peer
        );
    }
    if let Some(standing) = &report.standing {
        println!(
            "{} of {} stayed up for {:.0} s with a check every 30 s: {:.1} % of a core at the initiators",
            standing.left,
            standing.up,
            standing.hold_ns as f64 / 1e9,
            standing.cpu_ns as f64 * 100.0 / standing.hold_ns.max(1) as f64
        );
    }
    Ok(())
}

/// All peers at the same time, with the usual repetitions.
fn storm(peers: u32) -> Result<(), Failed> {
    let mut part = part(peers, CLASSIC, Load::Storm { after_per_s: None }, None)?;
    part.spec.behaviour = Behaviour::default();
    let (report, _) = played(&part)?;
    let setups = &report.setups;
    println!(
        "storm of {peers} peers: {} up, {} retransmissions",
        setups.completed, setups.retransmissions
    );
    for back in report.storm.iter().flat_map(|it| &it.back) {
        let after = back.after_ns.map(|ns| format!("{:.2} s", ns as f64 / 1e9));
        println!(
            "  {} % after {}",
            back.percent,
            after.unwrap_or_else(|| "never".to_owned())
        );
    }
    Ok(())
}

fn part(
    peers: u32,
    proposal: &str,
    load: Load,
    certificates: Option<(&Authority, &Texts)>,
) -> Result<Part, Failed> {
    let [port, nat_port] = [free_port()?, free_port()?];
    let authentication = match certificates {
        None => Authentication::SharedKey(Hidden("a secret of benchmarks".to_owned())),
        Some((authority, _)) => Authentication::Certificates {
            authority: pem(&authority.texts()),
            trusted: authority.certificate().to_owned(),
        },
    };
    let spec = Spec {
        gateway: "127.0.0.1".parse()?,
        port,
        nat_port,
        peers,
        sources: Sources::Addresses {
            first: "127.16.0.0".parse()?,
            count: peers,
            port: 0,
            nat_port: 0,
        },
        identity: "peer-{n}.example".to_owned(),
        gateway_identity: Some("gateway.example".to_owned()),
        authentication,
        proposal: proposal.to_owned(),
        ppk: None,
        selectors: Selectors {
            local: "10.2.0.0".parse()?,
            remote_first: "10.1.0.0".parse()?,
            remote_last: "10.1.255.255".parse()?,
        },
        behaviour: Behaviour {
            // Requests wait for the responder's core, and are not repeated meanwhile.
            repeat_first_ns: 60 * SECOND_NS,
            repeat_longest_ns: 60 * SECOND_NS,
            ..Behaviour::default()
        },
        load,
        delete_per_s: None,
    };
    let certificate = certificates.map(|(_, own)| pem(own));
    Ok(Part { spec, certificate })
}

fn pem(texts: &Texts) -> Pem {
    Pem {
        certificate: texts.certificate.clone(),
        key: Hidden(texts.key.to_string()),
    }
}

fn free_port() -> Result<u16, Failed> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// This thread, and those that it starts, run on this core.
fn pin(core: usize) -> Result<(), Failed> {
    let mut cores = CpuSet::new();
    cores.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &cores)?)
}

/// The initiators here, against a gateway in another process.
fn played(part: &Part) -> Result<(Report, Counts), Failed> {
    let mut gateway = Command::new(env::current_exe()?)
        .arg("gateway")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let played = beside(&mut gateway, part);
    if played.is_err() {
        gateway.kill()?;
    }
    gateway.wait()?;
    played
}

fn beside(gateway: &mut Child, part: &Part) -> Result<(Report, Counts), Failed> {
    let mut input = gateway.stdin.take().ok_or("no pipe")?;
    let mut output = BufReader::new(gateway.stdout.take().ok_or("no pipe")?);
    writeln!(input, "{}", serde_json::to_string(part)?)?;
    let mut line = String::new();
    output.read_line(&mut line)?;
    if line.trim() != "ready" {
        return Err("the gateway did not start".into());
    }
    let stop = Stop::new()?;
    let triggers = Triggers {
        stop: &stop,
        storm: &stop,
    };
    let report = run(&part.spec, triggers, &mut |_| {})?;
    // The end of its input stops the gateway.
    drop(input);
    line.clear();
    output.read_to_string(&mut line)?;
    Ok((report, serde_json::from_str(&line)?))
}

/// The gateway's process.
fn serve() -> Result<(), Failed> {
    pin(1)?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let part: Part = serde_json::from_str(&line)?;
    let texts = part.certificate.map(|it| Texts {
        certificate: it.certificate,
        key: it.key.0.into(),
    });
    let gateway = Settled::new(&part.spec, texts.as_ref())?.open()?;
    let stop = Stop::new()?;
    let raised = stop.clone();
    thread::spawn(move || {
        // Nothing comes but the end.
        let _ = std::io::stdin().read_line(&mut String::new());
        raised.raise();
    });
    println!("ready");
    let counts = gateway.serve(&stop)?;
    println!("{}", serde_json::to_string(&counts)?);
    Ok(())
}
