//! The path A – gw1 – gw2 – B itself.
//!
//! ```text
//! A a0 ---- a1 gw1 w0 ---- w1 gw2 b1 ---- b0 B
//! ```

use crate::support::{
    MARKER_IN_HEX, PATIENCE, TestLab, end_watch, ping, shell, start, this_program, watch,
};
use journal::record::InterfaceCounters;
use std::collections::BTreeMap;
use std::time::Duration;
use testbed::protocol::{Program, Ready, Request, Response, Sample};
use testbed::{Bench, Links, Node, NodeId};

fn counters(node: &dyn Node) -> BTreeMap<String, InterfaceCounters> {
    match node.call(Request::InterfaceCounters).unwrap() {
        Response::InterfaceCounters(counters) => counters,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn a_ping_crosses_the_path_and_every_counter_moves_by_just_that() {
    const PINGS: u64 = 20;
    // Ethernet, IPv4, ICMP and the payload.
    const PING_BYTES: u64 = 14 + 20 + 8 + 56;
    const ARP_BYTES: u64 = 42;
    let lab = TestLab::direct().lab;
    let all = || NodeId::ALL.map(|id| counters(lab.node(id)));
    let before = all();
    let ended = ping(&lab, &["-c", "20", "-i", "0.05", "-s", "56"]);
    assert!(
        ended.stdout.contains("20 packets transmitted, 20 received"),
        "{ended:?}"
    );
    let after = all();
    let mut interfaces = 0;
    for (before, after) in before.iter().zip(&after) {
        for (name, now) in after {
            let was = &before[name];
            if name.starts_with('c') {
                assert_eq!(now, was, "past the gateways");
                continue;
            }
            for (packets, bytes) in [
                (now.rx_packets - was.rx_packets, now.rx_bytes - was.rx_bytes),
                (now.tx_packets - was.tx_packets, now.tx_bytes - was.tx_bytes),
            ] {
                // The kernel may have resolved a neighbour again meanwhile.
                let arps = packets.checked_sub(PINGS).unwrap();
                assert!(arps <= 4, "{name}: {packets} packets");
                assert_eq!(bytes, PINGS * PING_BYTES + arps * ARP_BYTES, "{name}");
            }
            assert_eq!(
                (now.rx_dropped, now.tx_dropped, now.rx_errors, now.tx_errors),
                (0, 0, 0, 0)
            );
            interfaces += 1;
        }
    }
    assert_eq!(interfaces, 6);
}

pub(crate) fn mtu_and_offloads_are_as_configured() {
    let mut lab = TestLab::direct().lab;
    for links in [
        Links {
            mtu: 9000,
            cipher_mtu: 65_535,
            offloads: false,
            rate_bps: None,
        },
        Links {
            mtu: 1500,
            cipher_mtu: 1500,
            offloads: true,
            rate_bps: None,
        },
        // The path MTU that was learnt before is forgotten.
        Links {
            mtu: 9000,
            cipher_mtu: 9000,
            offloads: true,
            rate_bps: None,
        },
    ] {
        lab.configure(links).unwrap();
        // As large as fits, then one byte more.
        let payload = |extra: u16| (links.mtu - 28 + extra).to_string();
        let fits = ping(&lab, &["-c", "1", "-w", "5", "-M", "do", "-s", &payload(0)]);
        assert_eq!(fits.code, Some(0), "{links:?}: {fits:?}");
        let too_long = ping(&lab, &["-c", "1", "-w", "1", "-M", "do", "-s", &payload(1)]);
        assert_ne!(too_long.code, Some(0), "{links:?}");
        for id in NodeId::ALL {
            let Response::Offloads(offloads) = lab.node(id).call(Request::Offloads).unwrap() else {
                panic!()
            };
            assert!(!offloads.is_empty());
            for (interface, features) in offloads {
                let expected = if links.offloads { "on" } else { "off" };
                for feature in [
                    "tcp-segmentation-offload",
                    "generic-segmentation-offload",
                    "tx-udp-segmentation",
                ] {
                    assert_eq!(features[feature], expected, "{interface} {feature}");
                }
                assert_eq!(features["generic-receive-offload"], "off");
            }
        }
    }
}

pub(crate) fn a_sample_of_the_cipher_link_shows_the_marker_in_clear() {
    let lab = TestLab::direct().lab;
    let node = lab.node(NodeId::Gw1);
    let sample = |marker: &[u8]| {
        let request = Request::Sample {
            interface: lab.cipher_interfaces().0.to_owned(),
            frames: 20,
            packets: 0,
            contents: false,
            received_only: false,
            limit_ms: 30_000,
            markers: vec![marker.to_owned()],
            sealed_ports: Vec::new(),
            control_ports: Vec::new(),
        };
        match node.call(request).unwrap() {
            Response::Sample(Sample { link, .. }) => link,
            other => panic!("{other:?}"),
        }
    };
    let target = lab.target().to_string();
    let argv = [
        "ping",
        "-n",
        "-q",
        "-i",
        "0.005",
        "-p",
        MARKER_IN_HEX,
        &target,
    ];
    let (process, _) = start(lab.node(NodeId::A), Program::new(argv));
    let link = sample(b"Cipherbench");
    assert_eq!((link.frames, link.esp_frames), (20, 0));
    assert!(
        link.marker_frames >= 16 && link.marker_frames == link.other_frames,
        "{link:?}"
    );
    let link = sample(b"something else");
    assert_eq!((link.frames, link.marker_frames), (20, 0));
    lab.node(NodeId::A).stop(process, PATIENCE).unwrap();
    let error = node.call(Request::Sample {
        interface: "nothing0".to_owned(),
        frames: 1,
        packets: 0,
        contents: false,
        received_only: false,
        limit_ms: 1,
        markers: Vec::new(),
        sealed_ports: Vec::new(),
        control_ports: Vec::new(),
    });
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("cannot watch the interface `nothing0`")
    );
}

pub(crate) fn a_watch_counts_every_frame_in_clear_and_looks_at_the_first_only() {
    const PINGS: u64 = 1000;
    let lab = TestLab::direct().lab;
    let gw2 = lab.node(NodeId::Gw2);
    let watching = watch(gw2, &[]);
    let pings = [
        "-q",
        "-c",
        "1000",
        "-i",
        "0",
        "-p",
        MARKER_IN_HEX,
        "-s",
        "1000",
    ];
    assert_eq!(ping(&lab, &pings).code, Some(0));
    let seen = end_watch(gw2, watching);
    assert_eq!(seen.foreign_frames, 2 * PINGS);
    assert!((10..500).contains(&seen.marker_frames), "{seen:?}");
    assert_eq!(
        seen.foreign_bytes,
        seen.marker_frames * (14 + 20 + 8 + 1000)
    );
    assert_eq!(seen.examples.len(), 2);
    let again = gw2.call(Request::WatchEnd { watch: watching }).unwrap_err();
    assert!(again.to_string().contains("is unknown here"));
    let nowhere = Request::Watch {
        interface: "nothing0".to_owned(),
        received_only: false,
        sealed_ports: Vec::new(),
        control_ports: Vec::new(),
        markers: Vec::new(),
        inside: false,
    };
    let error = gw2.call(nowhere).unwrap_err().to_string();
    assert!(
        error.contains("cannot watch the interface `nothing0`"),
        "{error}"
    );
}

pub(crate) fn a_station_reports_buffer_limits_and_datagrams_that_found_no_room() {
    let lab = TestLab::direct().lab;
    let node = lab.node(NodeId::B);
    let Response::Hello {
        rmem_max_bytes,
        wmem_max_bytes,
        ..
    } = node
        .call(Request::Hello {
            protocol: testbed::protocol::PROTOCOL_VERSION,
        })
        .unwrap()
    else {
        panic!()
    };
    for (name, reported) in [("rmem_max", rmem_max_bytes), ("wmem_max", wmem_max_bytes)] {
        let machine = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap();
        assert_eq!(reported, Some(machine.trim().parse().unwrap()), "{name}");
    }
    let lost = || match node.call(Request::UdpErrors).unwrap() {
        Response::UdpErrors {
            receive_buffer_errors,
            in_errors,
        } => (receive_buffer_errors, in_errors),
        other => panic!("{other:?}"),
    };
    assert_eq!(lost(), (0, 0));
    let fill = this_program().display().to_string();
    let ended = node
        .run(Program::new([fill.as_str(), "fill-a-socket"]), PATIENCE)
        .unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (full, all) = lost();
    assert!((10..2000).contains(&full) && all == full, "{full} of {all}");
}

pub(crate) fn a_program_is_ready_when_its_port_listens() {
    let lab = TestLab::direct().lab;
    let (a, b) = (lab.node(NodeId::A), lab.node(NodeId::B));
    let server = Program {
        ready: Ready::Listening(5201),
        ..Program::new(["iperf3", "-s", "-1", "-p", "5201"])
    };
    let server = b.start(server, PATIENCE).unwrap();
    let target = lab.target().to_string();
    let client = Program::new(["iperf3", "-c", &target, "-p", "5201", "-n", "1M", "-J"]);
    let ended = a.run(client, PATIENCE).unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(b.wait(server, PATIENCE).unwrap().code, Some(0));

    let server = || Program {
        ready: Ready::Listening(5203),
        ..Program::new(["iperf3", "-s", "-p", "5203"])
    };
    let first = b.start(server(), PATIENCE).unwrap();
    let error = b.start(server(), PATIENCE).unwrap_err().to_string();
    assert!(
        error.contains("TCP port 5203, on which `iperf3` is to listen, is taken"),
        "{error}"
    );
    b.stop(first, PATIENCE).unwrap();

    let deaf = Program {
        ready: Ready::Listening(5202),
        ..shell("echo deaf >&2; exit 1")
    };
    let error = b.start(deaf, PATIENCE).unwrap_err().to_string();
    assert!(error.contains("before it was ready; waited for it to listen on TCP port 5202: deaf"));
}

pub(crate) fn a_program_is_ready_when_its_port_is_bound() {
    let lab = TestLab::direct().lab;
    let (a, b) = (lab.node(NodeId::A), lab.node(NodeId::B));
    let server = || Program {
        ready: Ready::Bound(5201),
        ..Program::new(["iperf", "-s", "-u", "-P", "1", "-p", "5201"])
    };
    // A datagram that comes too early gets no answer: the client would report it and fail.
    let first = b.start(server(), PATIENCE).unwrap();
    let error = b.start(server(), PATIENCE).unwrap_err().to_string();
    assert!(
        error.contains("UDP port 5201, on which `iperf` is to listen, is taken"),
        "{error}"
    );
    let target = lab.target().to_string();
    let client = [
        "iperf", "-c", &target, "-u", "-p", "5201", "-n", "100K", "-b", "10M",
    ];
    let ended = a.run(Program::new(client), PATIENCE).unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("did not receive ack"), "{ended:?}");
    assert_eq!(b.wait(first, PATIENCE).unwrap().code, Some(0));

    let deaf = Program {
        ready: Ready::Bound(5202),
        ..shell("echo deaf >&2; exit 1")
    };
    let error = b.start(deaf, PATIENCE).unwrap_err().to_string();
    assert!(error.contains("before it was ready; waited for it to bind UDP port 5202: deaf"));
    // One that listens on TCP has bound no UDP port.
    let other = Program {
        ready: Ready::Bound(5202),
        ..Program::new(["iperf3", "-s", "-p", "5202"])
    };
    let error = b.start(other, Duration::from_millis(300)).unwrap_err();
    assert!(
        error.to_string().contains("to bind UDP port 5202"),
        "{error}"
    );
}

pub(crate) fn a_program_on_a_gateway_keeps_to_its_cores_and_its_output_is_returned_at_its_stop() {
    let lab = TestLab::direct().lab;
    let node = lab.node(NodeId::Gw2);
    let script = "grep Cpus_allowed_list /proc/self/status; read line; echo got $line; \
                  trap 'echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let program = Program {
        cores: vec![0],
        stdin: "input\n".to_owned(),
        ready: Ready::Line("ready".to_owned()),
        ..shell(script)
    };
    let process = node.start(program, PATIENCE).unwrap();
    let ended = node.stop(process, PATIENCE).unwrap();
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(lines[1..], ["got input", "ready", "stopped"], "{ended:?}");
    let cores = lines[0].split_whitespace().nth(1).unwrap();
    assert!(cores.parse::<u16>().is_ok(), "one core: {cores}");
    assert_eq!(ended.code, Some(0));
}

pub(crate) fn the_namespace_is_closed_off_from_the_machine() {
    let lab = TestLab::direct().lab;
    let node = lab.node(NodeId::Gw1);
    let script = "ls /sys/class/net; echo --; ls -A /run | grep -v ^cipherbench-; echo --; \
         ip -o -6 addr | grep -v ': lo '";
    let ended = node.run(shell(script), PATIENCE).unwrap();
    assert_eq!(ended.stdout, "a1\nlo\nw0\n--\n--\n");
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    let mut seen = vec![own];
    for id in NodeId::ALL {
        let namespace = format!("/proc/{}/ns/net", lab.station_pid(id));
        let namespace = std::fs::read_link(namespace).unwrap();
        assert!(!seen.contains(&namespace));
        seen.push(namespace);
    }
}
