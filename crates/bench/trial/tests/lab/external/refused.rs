//! Gateways that do not agree with the station: the reason says why first, then what to do, and
//! last what the daemon said.

use super::gateway::{LEAVE, Tunnel, secret, strongswan};
use super::rack::{Rack, adapter, shipped};
use crate::frames::{frames, load, short};
use crate::one_gateway::is_missing;
use crate::trials::TestLab;
use journal::record::Outcome;
use plan::{Direction, External, GatewayPeer, IkePeer, IkeSecrets};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use wire::Suite;

pub(super) fn gateway() {
    let rack = Rack::with_one_box();
    if is_missing(adapter(strongswan(&rack, Tunnel::default()))) {
        return;
    }
    let mut lab = TestLab::on(&shipped("gateway.yaml"));
    let reason = |lab: &mut TestLab, mut device: External| {
        // None of these devices comes up, and each is awaited for this long.
        device.ready_ns = 3_000_000_000;
        let cell = frames(adapter(device), short(Direction::Encrypt), load(200));
        match lab.record(&cell).outcome {
            Outcome::Failed { reason } => reason,
            other => panic!("{other:#?}"),
        }
    };
    let ike = |device: &mut External, change: &dyn Fn(&mut IkePeer)| {
        let Some(GatewayPeer::Ike(peer)) = device.gateway.as_deref_mut() else {
            unreachable!("it speaks IKE");
        };
        change(peer);
    };
    let mut other_key = strongswan(&rack, Tunnel::default());
    ike(&mut other_key, &|peer| {
        peer.auth = IkeSecrets::Psk(secret(&rack, "other", "another secret\n"));
    });
    let expect = |said: &str, what: &str, help: &str| {
        // The cause first, then what to do, then the log.
        let [at, then, log] = [what, help, "\nthe daemon said: "].map(|it| said.find(it));
        assert!(at.is_some() && at < then && then < log, "{said}");
    };
    let said = reason(&mut lab, other_key);
    expect(
        &said,
        "`dut` refuses the station's authentication (AUTHENTICATION_FAILED)",
        "\nhelp: compare in both the secret",
    );
    let mut other_identity = strongswan(&rack, Tunnel::default());
    ike(&mut other_identity, &|peer| {
        peer.box_id = Some("another.example".to_owned());
    });
    let said = reason(&mut lab, other_identity);
    expect(&said, "(AUTHENTICATION_FAILED)", "`box_id`");
    let mut other_proposal = strongswan(&rack, Tunnel::default());
    ike(&mut other_proposal, &|peer| {
        peer.proposal = Some("aes128-sha256-modp3072".to_owned());
    });
    let said = reason(&mut lab, other_proposal);
    expect(
        &said,
        "`dut` refuses the proposal for IKE (NO_PROPOSAL_CHOSEN)",
        "\nhelp: write what the device accepts as `ike`",
    );
    let mut other_networks = strongswan(&rack, Tunnel::default());
    for command in &mut other_networks.boxes[0].up {
        *command = command.replace("remote_ts = 198.19.0.0/16", "remote_ts = 10.99.0.0/16");
    }
    let said = reason(&mut lab, other_networks);
    expect(
        &said,
        "`dut` refuses the traffic selectors (TS_UNACCEPTABLE)",
        "\nhelp: give the device 198.18.0.0/16 on its own side",
    );
    let mut other_authority = strongswan(
        &rack,
        Tunnel {
            certificates: true,
            ..Tunnel::default()
        },
    );
    ike(&mut other_authority, &|peer| {
        let IkeSecrets::Certificates { authority, .. } = &mut peer.auth else {
            unreachable!("it has certificates");
        };
        // It signed nothing but itself.
        authority.clone_from(&rack.path("x509/bench.pem"));
    });
    let said = reason(&mut lab, other_authority);
    expect(
        &said,
        "`dut` shows a certificate of an authority",
        "`ca_file`",
    );
    let mut deaf = strongswan(&rack, Tunnel::default());
    let folder = rack.folder.path().display().to_string();
    deaf.boxes[0]
        .up
        .push(format!("kill -9 $(cat {folder}/box.pid)"));
    deaf.boxes[0].down.clear();
    deaf.boxes[0].down.push(LEAVE.to_owned());
    let said = reason(&mut lab, deaf);
    expect(
        &said,
        "`dut` does not answer IKE",
        "\nhelp: see whether it runs",
    );
    let mut other_suite = strongswan(&rack, Tunnel::default());
    other_suite.carrier.as_mut().unwrap().suite = Suite::ChaCha20Poly1305;
    let said = reason(&mut lab, other_suite);
    expect(
        &said,
        "`dut` refuses the suite for ESP (NO_PROPOSAL_CHOSEN)",
        "\nhelp: give the device the suite",
    );
    let mut bare = strongswan(&rack, Tunnel::default());
    bare.carrier.as_mut().unwrap().udp = false;
    let said = reason(&mut lab, bare);
    let lacks_esp = said.contains("needs ESP in the kernel, which b does not have");
    // Where the station's kernel has it, they agree on ESP in UDP, as the box wants.
    let differs = said.contains("with encapsulation in UDP `yes` and not ``");
    assert!(
        lacks_esp && said.contains("or write `udp: on` for the gateway") || differs,
        "{said}"
    );
    let mut readable = strongswan(&rack, Tunnel::default());
    ike(&mut readable, &|peer| {
        let path = secret(&rack, "readable", "x\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        peer.auth = IkeSecrets::Psk(path);
    });
    let said = reason(&mut lab, readable);
    assert!(
        said.contains("chmod 600") && !said.contains("'x'"),
        "{said}"
    );
    let mut absent = strongswan(&rack, Tunnel::default());
    ike(&mut absent, &|peer| {
        peer.auth = IkeSecrets::Psk("/nowhere/psk".into());
    });
    let said = reason(&mut lab, absent);
    assert!(
        said.contains("/nowhere/psk cannot be read: No such file"),
        "{said}"
    );
    for exchange in ["mlkem768", "mlkem1024"] {
        let mut hybrid = strongswan(&rack, Tunnel::default());
        ike(&mut hybrid, &|peer| {
            peer.proposal = Some(format!("aes256-sha256-x25519-ke1_{exchange}"));
        });
        let said = reason(&mut lab, hybrid);
        // Where the station's daemon has it, the box wants another exchange.
        let refused = said.contains("cannot add ML-KEM") && said.contains("install strongSwan 6");
        assert!(refused || said.contains("NO_PROPOSAL_CHOSEN"), "{said}");
    }
    drop(lab);
    assert!(rack.has_all_back());
}
