//! A generator and a gateway in one process.

use ike::session::IkeSuite;
use ike_peers::gateway::{Counts, Settled};
use ike_peers::{
    Authentication, Behaviour, Hidden, Load, Progress, Report, Selectors, Sources, Spec, Triggers,
    run,
};
use pki::Texts;
use port::Stop;
use std::net::UdpSocket;
use std::thread;

pub(crate) const CLASSIC: &str = "aes256gcm16-prfsha384-x25519";
pub(crate) const HYBRID: &str = "aes256gcm16-prfsha384-x25519-ke1_mlkem768";

/// Peers on addresses of loopback, with a shared key.
pub(crate) fn spec(peers: u32) -> Spec {
    // Those of one gateway; each test has its own.
    let [port, nat_port] = [free_ports(1), free_ports(1)];
    Spec {
        gateway: "127.0.0.1".parse().unwrap(),
        port,
        nat_port,
        peers,
        sources: Sources::Addresses {
            first: "127.1.0.1".parse().unwrap(),
            count: peers,
            port: 0,
            nat_port: 0,
        },
        identity: "peer-{n}.example".to_owned(),
        gateway_identity: Some("gateway.example".to_owned()),
        authentication: Authentication::SharedKey(Hidden("a secret of tests".to_owned())),
        proposal: CLASSIC.to_owned(),
        ppk: None,
        selectors: Selectors {
            local: "10.2.0.0".parse().unwrap(),
            remote_first: "10.1.0.0".parse().unwrap(),
            remote_last: "10.1.255.255".parse().unwrap(),
        },
        behaviour: Behaviour::default(),
        load: Load::Setup { per_s: 100 },
        delete_per_s: None,
    }
}

pub(crate) fn classic(proposal: &str) -> IkeSuite {
    proposal.parse().unwrap()
}

/// The first of so many free ports.
pub(crate) fn free_ports(count: u16) -> u16 {
    loop {
        let first = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = first.local_addr().unwrap().port();
        let Some(last) = port.checked_add(count) else {
            continue;
        };
        let rest: Result<Vec<_>, _> = (port + 1..last)
            .map(|it| UdpSocket::bind(("0.0.0.0", it)))
            .collect();
        if rest.is_ok() {
            return port;
        }
    }
}

pub(crate) fn gateway(spec: &Spec, texts: Option<&Texts>) -> Settled {
    Settled::new(spec, texts).unwrap()
}

pub(crate) fn play(spec: &Spec) -> (Report, Counts) {
    play_against(spec, gateway(spec, None))
}

/// A storm begins once all peers are up.
pub(crate) fn play_against(spec: &Spec, settled: Settled) -> (Report, Counts) {
    let [stop, storm, end] = [(); 3].map(|()| Stop::new().unwrap());
    let gateway = settled.open().unwrap();
    thread::scope(|scope| {
        let serving = scope.spawn(|| gateway.serve(&stop));
        let triggers = Triggers {
            stop: &end,
            storm: &storm,
        };
        let report = run(spec, triggers, &mut |progress| {
            if matches!(progress, Progress::Up(_)) {
                storm.raise();
            }
        });
        stop.raise();
        (report.unwrap(), serving.join().unwrap().unwrap())
    })
}

/// The gateway disappears once all peers are up.
pub(crate) fn play_until_up(spec: &Spec, settled: Settled) -> Report {
    let [stop, end] = [(); 2].map(|()| Stop::new().unwrap());
    let gateway = settled.open().unwrap();
    thread::scope(|scope| {
        let mut serving = Some(scope.spawn(|| gateway.serve(&stop)));
        let triggers = Triggers {
            stop: &end,
            storm: &end,
        };
        let report = run(spec, triggers, &mut |progress| {
            if matches!(progress, Progress::Up(_)) {
                stop.raise();
                if let Some(serving) = serving.take() {
                    serving.join().unwrap().unwrap();
                }
            }
        });
        stop.raise();
        report.unwrap()
    })
}

pub(crate) fn error_of(spec: &Spec) -> String {
    let stop = Stop::new().unwrap();
    let triggers = Triggers {
        stop: &stop,
        storm: &stop,
    };
    run(spec, triggers, &mut |_| {}).unwrap_err().to_string()
}
