//! Commands of the tools, word by word.

use super::*;
use plan::{Adapter, Dut, Tool, TransferDirection};

const TARGET: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
const S: u64 = 1_000_000_000;
/// The time that `ping` puts before its pattern.
const PING_TIMESTAMP_BYTES: usize = 16;

fn cell(cores: u16, measurement: Measurement) -> Cell {
    Cell {
        id: "cell".to_owned(),
        group: "group".to_owned(),
        coordinates: Vec::new(),
        dut: Dut::new("direct", Adapter::Direct),
        stations: Some(Stations {
            mtu: 1500,
            cores,
            offloads: true,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement,
        tune: false,
        estimate_ns: 0,
        impair: None,
        calibration: false,
    }
}

fn tcp(streams: u16) -> Measurement {
    Measurement::Tcp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        congestion: None,
        streams,
        window_bytes: None,
        duration_ns: 2 * S,
        warmup_ns: S / 2,
    }
}

fn udp(datagram_bytes: Option<u32>, rate_bps: Option<u64>, streams: u16) -> Measurement {
    Measurement::Udp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        datagram_bytes,
        rate_bps,
        streams,
        duration_ns: S,
        warmup_ns: 0,
    }
}

fn lines(cell: &Cell) -> (Vec<String>, Vec<String>) {
    let made = commands(cell, &parameters(cell), TARGET, 4).unwrap();
    let join = |programs: &[Program]| programs.iter().map(|p| p.argv.join(" ")).collect();
    (join(&made.servers), join(&made.clients))
}

#[test]
fn a_version_replaces_the_tool_at_both_stations() {
    let mut cell = cell(1, tcp(1));
    let program = plan::StationProgram {
        program: "/opt/3.18/iperf3".to_owned(),
        found: None,
    };
    cell.dut.software.settings = Some(plan::VersionSettings {
        programs: [("iperf3".to_owned(), program)].into(),
        ..plan::VersionSettings::default()
    });
    let (servers, clients) = lines(&cell);
    for line in servers.iter().chain(&clients) {
        assert!(line.starts_with("/opt/3.18/iperf3 -"), "{line}");
    }
    let made = commands(&cell, &parameters(&cell), TARGET, 4).unwrap();
    assert_eq!(made.baseline.unwrap().argv[0], "ping");
}

#[test]
fn the_class_of_service_is_an_option_of_each_tool() {
    let of = |measurement: Measurement| {
        let mut cell = cell(1, measurement);
        cell.stations.as_mut().unwrap().dscp = Some(Dscp::Ef);
        let found = commands(&cell, &parameters(&cell), TARGET, 4).unwrap();
        found.clients[0].argv.join(" ")
    };
    let ping = Measurement::Ping {
        count: 100,
        interval_ns: S / 500,
        payload_bytes: 56,
        loaded: true,
        route: false,
        load_dscp: Vec::new(),
    };
    assert!(of(ping).ends_with(" -W 1 -Q 184 10.2.0.2"));
    assert!(of(tcp(1)).contains(" -S 184 --connect-timeout"));
    let Measurement::Tcp {
        direction,
        congestion,
        streams,
        window_bytes,
        duration_ns,
        warmup_ns,
        ..
    } = tcp(1)
    else {
        unreachable!()
    };
    let by_iperf2 = Measurement::Tcp {
        tool: Tool::Iperf2,
        direction,
        congestion,
        streams,
        window_bytes,
        duration_ns,
        warmup_ns,
    };
    assert!(of(by_iperf2).contains(" -S 184 "));
}

#[test]
fn a_tcp_cell_of_one_core_is_one_process_on_each_side() {
    let (servers, clients) = lines(&cell(1, tcp(4)));
    assert_eq!(servers, ["iperf3 -s -1 -J -i 0.1 -p 5201"]);
    assert_eq!(
        clients,
        [
            "iperf3 -c 10.2.0.2 -p 5201 -J -i 0.1 -t 3 -P 4 --connect-timeout 3000 --repeating-payload"
        ]
    );
}

#[test]
fn streams_are_spread_over_one_process_per_core_each_held_on_its_own() {
    let cell = cell(3, tcp(8));
    let made = commands(&cell, &parameters(&cell), TARGET, 4).unwrap();
    // The word behind `-P`.
    let streams: Vec<&str> = made.clients.iter().map(|p| p.argv[11].as_str()).collect();
    assert_eq!(streams, ["3", "3", "2"]);
    let cores =
        |programs: &[Program]| -> Vec<_> { programs.iter().map(|p| p.cores.clone()).collect() };
    assert_eq!(cores(&made.clients), [[0], [1], [2]]);
    assert_eq!(cores(&made.servers), [[3], [2], [1]]);
    assert_eq!(made.servers[2].ready, Ready::Listening(5203));
}

#[test]
fn fewer_streams_than_cores_run_fewer_processes() {
    let (servers, clients) = lines(&cell(2, tcp(1)));
    assert_eq!((servers.len(), clients.len()), (1, 1));
}

#[test]
fn a_udp_rate_is_split_over_the_streams_and_none_means_as_fast_as_it_goes() {
    let (_, clients) = lines(&cell(1, udp(Some(64), Some(90_000_000), 3)));
    assert!(
        clients[0].contains("-P 3 -w 4194304 -u -l 64 -b 30000000 "),
        "{}",
        clients[0]
    );
    let (_, clients) = lines(&cell(1, udp(None, None, 1)));
    assert!(clients[0].contains("-u -l 1472 -b 0 "), "{}", clients[0]);
}

#[test]
fn a_ping_carries_the_marker_and_keeps_its_interval() {
    let ping = Measurement::Ping {
        count: 100,
        interval_ns: 2_000_000,
        payload_bytes: 56,
        loaded: false,
        route: false,
        load_dscp: Vec::new(),
    };
    let (servers, clients) = lines(&cell(1, ping));
    assert!(servers.is_empty());
    assert_eq!(
        clients,
        ["ping -n -i 0.002 -c 100 -s 56 -p 30313233343536373839 -W 1 10.2.0.2"]
    );
}

#[test]
fn stations_share_cores_only_when_there_are_too_few() {
    let apart = Cores::assign(1, 2).unwrap();
    assert_eq!(
        (apart.a.as_slice(), apart.b.as_slice()),
        (&[0][..], &[1][..])
    );
    assert!(apart.shared().is_empty());
    assert_eq!(Cores::assign(2, 2).unwrap().shared(), [0, 1]);
    assert_eq!(Cores::assign(2, 3).unwrap().shared(), [1]);
    assert_eq!(
        Cores::assign(3, 2),
        Err(CommandError::TooFewCores {
            whose: "this machine",
            wanted: 3,
            present: 2
        })
    );
}

#[test]
fn the_marker_is_what_the_tools_were_seen_to_send() {
    // Captured from iperf3 3.12 and iputils 20221126: behind their headers both go on in the
    // pattern.
    assert_eq!(marker(IPERF3_UDP_HEADER_BYTES, 1472), b"2345678901");
    assert_eq!(marker(IPERF3_UDP_HEADER_BYTES, 18), b"234567");
    assert_eq!(marker(IPERF3_UDP_HEADER_BYTES, 15), b"");
    assert_eq!(marker(PING_TIMESTAMP_BYTES, 56), b"6789012345");
}

#[test]
fn what_cannot_run_is_refused_with_the_setting_to_change() {
    let error = |cell: &Cell| {
        commands(cell, &parameters(cell), TARGET, 4)
            .unwrap_err()
            .to_string()
    };
    assert!(error(&cell(9, tcp(1))).contains("9 cores per station, this machine has 4"));
    assert!(error(&cell(0, tcp(1))).contains("cores per station is 0"));
    assert!(error(&cell(1, tcp(0))).contains("streams is 0"));
    let ping = |count, interval_ns, payload_bytes| {
        cell(
            1,
            Measurement::Ping {
                count,
                interval_ns,
                payload_bytes,
                loaded: false,
                route: false,
                load_dscp: Vec::new(),
            },
        )
    };
    assert!(error(&ping(0, 1_000_000, 56)).contains("echo requests is 0"));
    assert!(error(&ping(1, 500_000, 56)).contains("multiple of 1 ms"));
    assert!(error(&ping(1, 1_000_000, 8)).contains("timestamp"));
    let mut tiny = cell(1, udp(None, None, 1));
    tiny.stations.as_mut().unwrap().mtu = 28;
    assert!(error(&tiny).contains("MTU of 28 B"));
}

fn by_iperf2(mut measurement: Measurement) -> Measurement {
    if let Measurement::Tcp { tool, .. } | Measurement::Udp { tool, .. } = &mut measurement {
        *tool = Tool::Iperf2;
    }
    measurement
}

#[test]
fn iperf2_is_asked_for_the_same_in_its_own_words() {
    let (servers, clients) = lines(&cell(2, by_iperf2(tcp(3))));
    assert_eq!(
        servers,
        [
            "iperf -s -p 5201 -y C -i 0.1 -P 2",
            "iperf -s -p 5202 -y C -i 0.1 -P 1"
        ]
    );
    assert_eq!(
        clients[0],
        "iperf -c 10.2.0.2 -p 5201 -y C -i 0.1 -P 2 -l 131072 -t 3"
    );
    let udp = |rate| cell(1, by_iperf2(udp(Some(512), rate, 2)));
    let made = commands(&udp(Some(90)), &parameters(&udp(Some(90))), TARGET, 4).unwrap();
    // A UDP server does not listen: it is ready when its port is bound.
    assert_eq!(made.servers[0].ready, Ready::Bound(5201));
    let (servers, clients) = lines(&udp(Some(90_000_000)));
    let common = "-p 5201 -y C -i 0.1 -P 2 -w 4194304 -u -l 512";
    assert_eq!(servers, [format!("iperf -s {common}")]);
    assert_eq!(
        clients,
        [format!("iperf -c 10.2.0.2 {common} -b 45000000 -t 1")]
    );
    // `-b 0` is refused, and without `-b` it would be 1 Mbit/s.
    let (_, clients) = lines(&udp(None));
    assert!(clients[0].contains("-b 1000000000000 "), "{}", clients[0]);
}

/// Seen of iperf 2.1.8: digits from byte 160 on, whatever the length.
#[test]
fn iperf2_shows_the_marker_where_its_header_leaves_room() {
    for bytes in [192, 512, 1400] {
        let digits = pattern(0, bytes - 160);
        let marker = iperf2::marker(bytes);
        assert_eq!(marker.len(), MARKER_BYTES);
        assert!(digits.windows(marker.len()).any(|window| window == marker));
    }
    assert_eq!(iperf2::marker(178), Vec::<u8>::new());
}

#[test]
fn tools_in_an_overlay_use_its_address_and_its_mtu() {
    let mut cell = cell(1, udp(None, None, 1));
    for overlay in [plan::Overlay::Vxlan, plan::Overlay::Geneve] {
        cell.stations.as_mut().unwrap().overlay = overlay;
        let (_, clients) = lines(&cell);
        assert!(
            clients[0].starts_with("iperf3 -c 169.254.1.2 -p 5201 "),
            "{clients:?}"
        );
        // 1500 B less 50 B of the overlay, and 28 B of IPv4 and UDP.
        assert!(clients[0].contains(" -u -l 1422 "), "{clients:?}");
    }
    cell.measurement = tcp(1);
    let made = commands(&cell, &parameters(&cell), TARGET, 4).unwrap();
    let baseline = made.baseline.unwrap().argv;
    assert_eq!(baseline.last().unwrap(), "169.254.1.2");
}
