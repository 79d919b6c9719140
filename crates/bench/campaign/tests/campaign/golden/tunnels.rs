//! Other people's tunnels as devices under test.

use crate::golden::{HOST, compare};
use campaign::{LabFile, from_text, lab_from_text};
use plan::{
    Adapter, DataPath, Form, IkeAuth, L2tpEncapsulation, L2tpv3, OpenVpn, Plan, StrongSwan,
    WireGuard, WireGuardProgram, Xfrm, to_text,
};
use wire::Suite;

fn mistakes(text: &str) -> String {
    format!("{}\n", from_text("campaigns/peers.yaml", text).unwrap_err())
}

fn plan(text: &str) -> Plan {
    let campaign = from_text("c.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    campaign.plan(&LabFile::built_in(), &HOST).unwrap()
}

/// The DUTs of a campaign that has those.
fn adapters(duts: &str) -> Vec<(String, Adapter)> {
    let text = format!("campaign: c\nduts: [{duts}]\ntrials: [ping: {{ mtu: 1400 B }}]\n");
    let cells = plan(&text).cells.into_iter();
    cells
        .map(|cell| (cell.dut.name, cell.dut.adapter))
        .collect()
}

#[test]
fn invalid_settings_of_a_tunnel_are_reported() {
    let text = "\
campaign: peers
duts:
  - strongswan: { name: old, suite: [aes-256-gcm, 3des-cbc-hmac-sha1, null-hmac-sha256, aes-512] }
  - strongswan: { name: open, suite: [null-hmac-sha256, null-hmac-md5], legacy: true }
  - strongswan: { name: odd, data_path: vpp, auth: [psk, eap], ppk: 1, ml_kem: [on, on], insecure: [off] }
  - strongswan: { name: more, workers: 2, tunnels: [1000, 1001, 0] }
  - openvpn: { name: cbc, suite: [aes-256-gcm, aes-256-cbc-hmac-sha256, null-hmac-sha1, blowfish, []] }
  - openvpn: { name: older, legacy: true }
  - xfrm: { name: bad, suite: [aes-256-gcm, des-cbc-hmac-md5, null-hmac-sha1, aes], workers: 2 }
  - xfrm: { name: worse, legacy: 1, encapsulation: udp }
  - l2tpv3: { name: lan, encapsulation: [udp, gre, udp], suite: aes-256-gcm }
  - l2tpv3: { name: cookies, cookie: 8 B }
  - wireguard: { suite: chacha20-poly1305 }
  - wireguard-go: { name: \"wg/go\", threads: 2 }
  - boringtun: [1]
  - gotatum
trials:
  - ping: { mtu: 1400 B }
";
    let mut all = mistakes(text);
    for (duts, trial) in [
        // Every combination counts, and one more than the maximum is enough to report.
        (
            "strongswan: { suite: [aes-256-gcm, aes-128-gcm, chacha20-poly1305, aes-256-cbc-hmac-sha512, \
             aes-256-cbc-hmac-sha256, aes-128-cbc-hmac-sha256, aes-128-cbc-hmac-sha1], \
             data_path: [libipsec, kernel], auth: [psk, certificates], ppk: [off, on], ml_kem: [off, on] }",
            "ping: { mtu: 1400 B }",
        ),
        ("wireguard-go, wireguard-go", "ping: { mtu: 1400 B }"),
        // The station does not know their key exchange.
        (
            "cipherbench, wireguard-go, strongswan, openvpn, xfrm, l2tpv3",
            "load: { frame: 64 B, direction: [both, encrypt] }",
        ),
    ] {
        let text = format!("campaign: c\nduts: [{duts}]\ntrials: [{trial}]\n");
        all.push_str(&format!("\n{}", mistakes(&text)));
    }
    compare("tunnel-mistakes.txt", &all);
}

#[test]
fn tunnels_without_room_or_a_kernel_in_the_lab_are_reported() {
    let duts = "direct, wireguard-go, strongswan, openvpn, xfrm, l2tpv3";
    let text = format!(
        "campaign: c\nduts: [{duts}]\ntrials:\n  - ping: {{ mtu: [1400 B, 1448 B, 1500 B] }}\n  \
         - load: {{ frame: 1518 B }}\n"
    );
    let mut all = String::new();
    // 1448 B just fit OpenVPN's encapsulation, and no other one.
    let ethernet = "lab: ethernet\ncipher_mtu: 1500 B\n";
    for lab in [ethernet, "lab: memory\nkind: memory\n"] {
        let lab = lab_from_text("labs/l.yaml", lab).unwrap();
        let campaign = from_text("c.yaml", &text).unwrap();
        all.push_str(&format!("{}\n\n", campaign.plan(&lab, &HOST).unwrap_err()));
    }
    // The same by the kernel's own limits, in links that are as long as need be.
    let text = "campaign: c\nduts: [strongswan, strongswan: { name: xfrm, data_path: kernel }]\n\
                trials:\n  - ping: { mtu: [1400 B, 1401 B] }\n  - load: { frame: [1418 B, 1518 B] }\n";
    let campaign = from_text("c.yaml", text).unwrap();
    all.push_str(
        &campaign
            .plan(&LabFile::built_in(), &HOST)
            .unwrap_err()
            .to_string(),
    );
    compare("tunnels-in-lab-mistakes.txt", &all);
}

#[test]
fn a_plan_of_tunnels_reads_well() {
    let text = "\
campaign: peers
duts:
  - wireguard
  - wireguard-go
  - boringtun
  - gotatun: { name: gotatun 0.9 }
  - strongswan
  - strongswan:
      name: swan
      data_path: [libipsec, kernel]
      auth: [psk, certificates]
      ppk: [off, on]
  - strongswan:
      name: old
      suite: [aes-256-cbc-hmac-sha256, 3des-cbc-hmac-sha1, null-hmac-sha256]
      legacy: true
      insecure: true
      ml_kem: [off, on]
  - openvpn: { suite: [aes-256-gcm, chacha20-poly1305] }
  - xfrm
  - xfrm: { name: kernel, suite: [aes-128-cbc-hmac-sha256, null-hmac-sha1], insecure: true }
  - l2tpv3: { encapsulation: [udp, ip] }
trials:
  - load: { frame: 64 B }
";
    compare("tunnels-plan.txt", &to_text(&plan(text), |_| Vec::new()));
}

#[test]
fn the_programs_that_speak_wireguard_are_kinds_of_their_own() {
    let names = WireGuardProgram::ALL.map(WireGuardProgram::name);
    assert_eq!(names, ["wireguard", "wireguard-go", "boringtun", "gotatun"]);
    let expected = WireGuardProgram::ALL.map(|program| {
        let adapter = Adapter::WireGuard(WireGuard { program });
        (program.name().to_owned(), adapter)
    });
    assert_eq!(adapters(&names.join(", ")), expected);
}

#[test]
fn the_defaults_of_tunnels_are_those_that_are_documented() {
    let strongswan = StrongSwan {
        data_path: DataPath::Libipsec,
        suite: Suite::Aes256Gcm,
        auth: IkeAuth::Psk,
        ppk: false,
        ml_kem: false,
        tunnels: 1,
    };
    let openvpn = OpenVpn {
        suite: Suite::Aes256Gcm,
    };
    let xfrm = Xfrm {
        suite: Suite::Aes256Gcm,
    };
    let l2tpv3 = L2tpv3 {
        encapsulation: L2tpEncapsulation::Udp,
    };
    let expected = [
        ("strongswan".to_owned(), Adapter::StrongSwan(strongswan)),
        ("openvpn".to_owned(), Adapter::OpenVpn(openvpn)),
        ("xfrm".to_owned(), Adapter::Xfrm(xfrm)),
        ("l2tpv3".to_owned(), Adapter::L2tpv3(l2tpv3)),
    ];
    assert_eq!(adapters("strongswan, openvpn, xfrm, l2tpv3"), expected);
}

#[test]
fn settings_that_vary_are_in_the_name_and_no_other() {
    let name = |(name, _): (String, Adapter)| name;
    let names = |duts: &str| -> Vec<String> { adapters(duts).into_iter().map(name).collect() };
    assert_eq!(
        names(
            // Each setting has one value, so the name has none of them.
            "strongswan: { suite: aes-128-gcm, auth: certificates, ppk: on, ml_kem: on, \
             data_path: kernel, tunnels: 10 }"
        ),
        ["strongswan"]
    );
    assert_eq!(
        names("strongswan: { tunnels: [1, 1000], ppk: [off, on] }"),
        [
            "strongswan t1",
            "strongswan t1000",
            "strongswan ppk t1",
            "strongswan ppk t1000"
        ]
    );
    assert_eq!(
        names(
            "strongswan: { data_path: [kernel, libipsec], suite: [aes-128-gcm, aes-256-gcm], ppk: on, \
             ml_kem: [on, off] }"
        ),
        [
            "strongswan kernel aes-128-gcm ml-kem",
            "strongswan kernel aes-128-gcm",
            "strongswan kernel aes-256-gcm ml-kem",
            "strongswan kernel aes-256-gcm",
            "strongswan libipsec aes-128-gcm ml-kem",
            "strongswan libipsec aes-128-gcm",
            "strongswan libipsec aes-256-gcm ml-kem",
            "strongswan libipsec aes-256-gcm",
        ]
    );
    assert_eq!(
        names("strongswan: { auth: [psk, certificates], ppk: [off, on] }"),
        [
            "strongswan psk",
            "strongswan psk ppk",
            "strongswan certificates",
            "strongswan certificates ppk"
        ]
    );
    assert_eq!(
        names("openvpn: { name: vpn, suite: [aes-128-gcm, chacha20-poly1305] }"),
        ["vpn aes-128-gcm", "vpn chacha20-poly1305"]
    );
}

#[test]
fn a_tunnel_reports_its_carrier_and_whether_it_protects() {
    let duts = "wireguard, openvpn, strongswan: { suite: [aes-256-gcm, des-cbc-hmac-md5, \
                null-hmac-sha256], legacy: true, insecure: true }";
    let expected = [
        (Form::WireGuard, Suite::ChaCha20Poly1305, None),
        (Form::OpenVpn, Suite::Aes256Gcm, None),
        (Form::Esp, Suite::Aes256Gcm, None),
    ];
    let adapters = adapters(duts);
    for ((_, adapter), (form, suite, insecure)) in adapters.iter().zip(expected) {
        let carrier = adapter.carrier().unwrap();
        assert_eq!((carrier.form, carrier.suite), (form, suite));
        assert_eq!(adapter.insecure(), insecure);
    }
    assert_eq!(adapters.len(), 5);
    // The last two suites need the flags `legacy` and `insecure`, and their reasons are the
    // suites'.
    for (name, adapter) in &adapters[3..] {
        let suite = adapter.carrier().unwrap().suite;
        assert!(adapter.insecure().is_some(), "{name}");
        assert_eq!(adapter.insecure(), suite.insecure(), "{name}");
    }
}

#[test]
fn what_a_suite_does_not_encrypt_can_be_read() {
    let expected = [
        ("aes-256-gcm", false),
        ("null-hmac-sha256", true),
        ("kuznyechik-mgm", false),
        ("kuznyechik-mgm-mac", true),
        ("magma-mgm-mac", true),
        ("magma-ecb", false),
    ];
    for (suite, is_readable) in expected {
        let dut = format!("cipherbench: {{ suite: {suite}, insecure: true }}");
        let (_, adapter) = &adapters(&dut)[0];
        assert_eq!(adapter.profile().is_readable, is_readable, "{suite}");
        assert!(!is_readable || adapter.insecure().is_some(), "{suite}");
    }
}

#[test]
fn a_plan_with_tunnels_reads_back_from_json_as_it_was_written() {
    let text = "campaign: c\nduts: [wireguard, wireguard-go, boringtun, gotatun, openvpn, \
                strongswan: { data_path: [libipsec, kernel], auth: [psk, certificates] }, xfrm, \
                l2tpv3]\n\
                trials: [ping: { mtu: 1400 B }]\n";
    let plan = plan(text);
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    // What `docs/journal.md` says of them.
    let adapters: Vec<_> = plan.cells.iter().map(|cell| &cell.dut.adapter).collect();
    let written = |index: usize| serde_json::to_string(adapters[index]).unwrap();
    assert_eq!(written(0), r#"{"kind":"wireguard","program":"kernel"}"#);
    assert_eq!(written(1), r#"{"kind":"wireguard","program":"go"}"#);
    assert_eq!(written(4), r#"{"kind":"openvpn","suite":"aes-256-gcm"}"#);
    assert_eq!(written(9), r#"{"kind":"xfrm","suite":"aes-256-gcm"}"#);
    assert_eq!(written(10), r#"{"kind":"l2tpv3","encapsulation":"udp"}"#);
    assert_eq!(
        written(5),
        r#"{"kind":"strongswan","data_path":"libipsec","suite":"aes-256-gcm","auth":"psk","ppk":false,"ml_kem":false,"tunnels":1}"#
    );
    // A journal from before `strongswan` had several tunnels.
    let before = written(5).replace(r#","tunnels":1"#, "");
    let read: Adapter = serde_json::from_str(&before).unwrap();
    assert_eq!(&read, adapters[5]);
    assert_eq!(read.profile().tunnels, 1);
}

#[test]
fn a_published_sum_of_both_directions_says_that_it_is_one() {
    let plan = plan(
        "\
campaign: a
duts:
  - cipherbench: { name: box, suite: magma-ecb, insecure: true, legacy: true }
trials:
  - tcp: { mtu: 1500 B, direction: [a-to-b, duplex] }
  - throughput: { frame: [1518 B, baikal], duplex: on }
published: baikal-gost
",
    );
    let found: Vec<_> = plan
        .published
        .iter()
        .map(|figure| {
            let [cell] = &figure.cells[..] else {
                panic!("{figure:?}")
            };
            let protocol = cell.split('/').next().unwrap_or_default();
            let mix = cell.contains("baikal");
            let counts = figure.counts.map(|counts| counts.to_string());
            (figure.value / 1_000_000, protocol, mix, counts.unwrap())
        })
        .collect();
    let wanted = [
        (282, "tcp", false, "goodput of payload, one direction"),
        (
            419,
            "tcp",
            false,
            "goodput of payload, sum of both directions",
        ),
        (
            218,
            "throughput",
            true,
            "a rate of a kind that is not stated at a layer that is not stated, sum of both directions",
        ),
    ];
    assert_eq!(found.len(), wanted.len(), "{found:?}");
    for ((value, protocol, mix, counts), wanted) in found.iter().zip(wanted) {
        assert_eq!((*value, *protocol, *mix, counts.as_str()), wanted);
    }
}
