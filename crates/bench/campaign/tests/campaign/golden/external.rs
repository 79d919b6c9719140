//! Boxes outside: their commands, the cables to them, and the plan.

use crate::golden::{HOST, commands, compare};
use campaign::{LabFile, from_text, lab_from_text};
use plan::to_text;

const RACK: &str = "lab: rack\nexternal: { station_a: eth1, station_b: eth2, tap: [eth3, eth4] }\n";
const UNTAPPED: &str =
    "lab: untapped\nexternal: { station_a: eth1, station_b: eth2, gateway_b: 10.2.0.254 }\n";

#[test]
fn every_mistake_of_external_boxes_is_reported_at_once() {
    let text = "\
campaign: c
duts:
  - external
  - external: { name: a, form: ipsec, boxes: [{ upp: x }] }
  - external: { name: b, suite: des-cbc-hmac-md5, boxes: [] }
  - external: { name: c, form: wireguard, suite: aes-256-gcm, boxes: [{}, {}, {}] }
  - external: { name: d, suite_words: { aes: x, aes-256-gcm: \"\" }, ports: [], boxes: [{}] }
  - external: { name: e, ports: [0], limit: 1 h, ready: 1 ms, boxes: [{}] }
  - external:
      name: f
      boxes:
        - via: \"\"
          up: \"set mtu {mut}\"
          counters: { \"a/b\": show, ok: \"\" }
        - { via: sshpass -p secret ssh box, version: \"{x}\" }
  - external: { name: g, boxes: [{}, { reset: reboot }] }
  - external: { name: h, plain: on, suite: aes-256-gcm, ports: [500], boxes: [{}] }
  - external: { name: i, gateway: { psk_file: /k, ca_file: /c }, boxes: [{}] }
  - external: { name: j, gateway: { psk_file: /k, ppk_file: /p }, boxes: [{}, {}] }
  - external: { name: k, gateway: { psk_file: /k, selectors: any }, tunnels: [1, 2], boxes: [{}] }
  - external: { name: l, gateway: { psk_file: /k, ike: 'a\"b', ml_kem: on }, boxes: [{}] }
  - external: { name: m, gateway: { psk_file: /k, ike: aes256-sha256, ml_kem: on }, boxes: [{}] }
  - external: { name: m2, gateway: { psk_file: /k, ike: 'aes256-sha256-x25519,aes128-sha1-modp1024' }, boxes: [{}] }
  - external: { name: n, form: openvpn, gateway: { psk_file: /k }, boxes: [{}] }
  - external: { name: o, form: wireguard, gateway: { key_file: /k, box_public_key: x }, boxes: [{}] }
  - external:
      name: r
      form: wireguard
      gateway: { key_file: /k, box_public_key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= }
      tunnels: 2
      boxes: [{}]
  - external: { name: p, gateway: { psk_file: /k }, boxes: [{}, {}] }
  - external: { name: q, plain: on, gateway: { psk_file: /k }, tunnels: 2, boxes: [{}] }
trials: [ping: { mtu: 1400 B }]
";
    let mistakes = from_text("campaigns/external.yaml", text).unwrap_err();
    compare("external-mistakes.txt", &format!("{mistakes}\n"));
}

/// A journal with one would not be resumed.
#[test]
fn control_characters_are_refused() {
    for entry in [
        r#"external: { suite_words: { aes-256-gcm: "a\tb" }, boxes: [{}] }"#,
        r#"external: { gateway: { psk_file: "/k\x07" }, boxes: [{}] }"#,
        r#"external: { gateway: { ca_file: /c, certificate_file: "/c\n", key_file: /k }, boxes: [{}] }"#,
        r#"external: { gateway: { psk_file: /k, ppk_file: "/p\e", ppk_id: p }, boxes: [{}] }"#,
        r#"external: { form: wireguard, gateway: { key_file: "/k\t", box_public_key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= }, boxes: [{}] }"#,
        r#"external: { boxes: [{ via: "ssh box\x07" }] }"#,
    ] {
        let text = |entry: &str| {
            format!("campaign: c\nduts: [{entry}]\ntrials: [ping: {{ mtu: 1400 B }}]\n")
        };
        let mistakes = from_text("c.yaml", &text(entry)).unwrap_err();
        assert_eq!(mistakes.iter().count(), 1, "{mistakes}");
        let without = entry.replace("\\t", "").replace("\\x07", "");
        let without = without.replace("\\n", "").replace("\\e", "");
        from_text("c.yaml", &text(&without)).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    }
    for entry in [
        r#"pkcs11: { module: "/m\t", pin_file: /p }"#,
        r#"openssl: { engine: "e\x07" }"#,
    ] {
        let text = format!("campaign: c\ndevices: [{entry}]\ntrials: [kat]\n");
        let mistakes = from_text("c.yaml", &text).unwrap_err();
        assert_eq!(mistakes.iter().count(), 1, "{mistakes}");
    }
}

#[test]
fn every_mistake_of_cables_is_reported() {
    let mut all = String::new();
    for external in [
        "{}",
        "{ station_a: eth1, station_b: eth1 }",
        "{ station_a: eth1, station_b: eth2, tap: [eth3] }",
        "{ station_a: eth1, station_b: eth2, tap: [eth2, eth3] }",
        "{ station_a: a0, station_b: an-interface-of-mine }",
        "{ station_a: \"eth 1\", station_b: eth2, taps: [eth3, eth4] }",
        "{ station_a: eth1, station_b: eth2, gateway_a: 10.1.0.2, gateway_b: 10.9.0.1 }",
    ] {
        let text = format!("lab: rack\nexternal: {external}\n");
        let mistakes = lab_from_text("labs/rack.yaml", &text).unwrap_err();
        all.push_str(&format!("{mistakes}\n\n"));
    }
    let memory = "lab: m\nkind: memory\nexternal: { station_a: eth1, station_b: eth2 }\n";
    let mistakes = lab_from_text("labs/m.yaml", memory).unwrap_err();
    all.push_str(&format!("{mistakes}\n"));
    compare("cables-mistakes.txt", &all);
}

#[test]
fn missing_lab_features_for_boxes_are_reported() {
    let text = "\
campaign: c
calibrate: off
duts: [external: { name: rack, boxes: [{}] }]
trials:
  - ping: { mtu: 1400 B }
  - load: { frame: 512 B, ip: 6 }
  - failover: { frame: 512 B, failure: link, load: 1 k frames/s }
";
    let campaign = from_text("campaigns/external.yaml", text).unwrap();
    let mut all = String::new();
    let gateway = "\
campaign: c
duts: [external: { name: edge, gateway: { psk_file: /k }, boxes: [{}] }]
trials: [ping: { mtu: 1400 B }]
";
    let gateway = from_text("campaigns/gateway.yaml", gateway).unwrap();
    let rack = lab_from_text("labs/rack.yaml", RACK).unwrap();
    let mistakes = gateway.plan(&rack, &HOST).unwrap_err();
    all.push_str(&format!("{mistakes}\n\n"));
    for lab in [
        LabFile::built_in(),
        LabFile::built_in_named("memory").unwrap(),
        lab_from_text("labs/untapped.yaml", UNTAPPED).unwrap(),
        lab_from_text("labs/rack.yaml", RACK).unwrap(),
    ] {
        let mistakes = campaign.plan(&lab, &HOST).unwrap_err();
        all.push_str(&format!("{mistakes}\n\n"));
    }
    compare("external-in-lab-mistakes.txt", &all);
}

#[test]
fn a_plan_shows_cables_and_boxes() {
    let text = "\
campaign: c
calibrate: off
repeats: 1
duts:
  - direct
  - external:
      name: rack
      suite: [aes-256-gcm, aes-128-gcm]
      boxes:
        - via: ssh admin@198.51.100.1
          up: [\"set suite {suite}\", \"set mtu {mtu}\"]
          down: reset
          counters: { packets: show }
        - via: ssh admin@198.51.100.2
trials: [ping: { mtu: 1400 B, count: 100 }]
";
    let campaign = from_text("campaigns/external.yaml", text).unwrap();
    let mut all = String::new();
    for (file, lab) in [("labs/rack.yaml", RACK), ("labs/untapped.yaml", UNTAPPED)] {
        let plan = campaign
            .plan(&lab_from_text(file, lab).unwrap(), &HOST)
            .unwrap();
        all.push_str(&to_text(&plan, commands));
        all.push('\n');
        // A journal needs no other file.
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<plan::Plan>(&json).unwrap(), plan);
    }
    compare("external-plan.txt", &all);
}

/// Keys of suites, ports and formats where the form has none.
#[test]
fn every_mistake_of_forms_without_a_suite_is_reported_at_once() {
    let text = "\
campaign: c
duts:
  - external: { name: a, form: gre, suite: aes-256-gcm, ports: [500], tunnels: 2, boxes: [{}] }
  - external: { name: b, form: l2tpv3, suite_words: { aes-256-gcm: x }, cipher: AES, boxes: [{}] }
  - external: { name: c, form: opaque, suite: aes-256-gcm, boxes: [{}] }
  - external: { name: d, form: opaque, expands: 3 kB, aggregate: maybe, boxes: [{}] }
  - external: { name: e, form: opaque, cipher: \"AES\\n256\", ports: [1], boxes: [{}] }
  - external: { name: f, form: opaque, cipher: AES, gateway: { psk_file: /k }, boxes: [{}] }
  - external: { name: g, expands: 64 B, boxes: [{}] }
  - external: { name: h, plain: on, cipher: AES, boxes: [{}] }
trials: [ping: { mtu: 1400 B }]
";
    let mistakes = from_text("campaigns/external.yaml", text).unwrap_err();
    compare("external-forms-mistakes.txt", &format!("{mistakes}\n"));
}

/// Forms without a suite: what encrypts by the maker's word, and what does not at all.
#[test]
fn a_plan_shows_tunnels_in_clear_and_claims() {
    let text = "\
campaign: c
calibrate: off
repeats: 1
duts:
  - external: { name: gre, form: gre, boxes: [{}, {}] }
  - external: { name: l2tpv3, form: l2tpv3, bump: on, boxes: [{}, {}] }
  - external: { name: own, form: opaque, cipher: \"AES-256, own mode\", expands: 40 B, bump: on, boxes: [{}] }
trials: [ping: { mtu: 1400 B, count: 100 }]
";
    let campaign = from_text("campaigns/external.yaml", text).unwrap();
    let lab = lab_from_text("labs/rack.yaml", RACK).unwrap();
    let plan = campaign.plan(&lab, &HOST).unwrap();
    compare("external-forms-plan.txt", &to_text(&plan, commands));
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<plan::Plan>(&json).unwrap(), plan);
    let properties = |cell: &plan::Cell| {
        let profile = cell.dut.adapter.profile();
        let lengths = [
            profile.cipher_packet_bytes(1400),
            profile.added_bytes_least(None),
        ];
        (profile.encrypts(), profile.insecure.is_some(), lengths)
    };
    let forms: Vec<_> = plan.cells.iter().map(properties).collect();
    // 20 of IPv4, 16 of GRE or 32 of UDP and L2TPv3, 18 of Ethernet with a tag.
    let expected = [
        (false, true, [1454, 4]),
        (false, true, [1466, 4]),
        (true, false, [1440, 0]),
    ];
    assert_eq!(forms, expected);
}

#[test]
fn a_gateway_is_measured_with_esp_in_udp_or_bare() {
    let carried = |more: &str| {
        let text = format!(
            "campaign: c\ncalibrate: off\nduts: [external: {{ gateway: {{ psk_file: /k{more} }}, boxes: [{{}}] }}]\n\
             trials: [load: {{ frame: 512 B, direction: encrypt, rate: 1 k frames/s }}]\n"
        );
        let campaign = from_text("campaigns/external.yaml", &text).unwrap();
        let lab = lab_from_text("labs/rack.yaml", RACK).unwrap();
        let plan = campaign.plan(&lab, &HOST).unwrap();
        let profile = plan.cells[0].dut.adapter.profile();
        (profile.carrier.unwrap().udp, profile.settings)
    };
    let (udp, settings) = carried("");
    assert!(udp && settings.starts_with("ESP "), "{settings}");
    let (udp, settings) = carried(", udp: off");
    assert!(!udp && settings.starts_with("bare ESP "), "{settings}");
}

/// Only the box at B's side is reset, so that only its commands count.
#[test]
fn a_reset_by_command_needs_the_commands_of_the_box_at_b() {
    let of = |boxes: &str| {
        let text = format!(
            "campaign: c\nduts: [external: {{ name: rack, boxes: {boxes} }}]\n\
             trials: [reset: {{ frame: 512 B, kind: command, load: 1 k frames/s, watch: 2 min }}]\n"
        );
        from_text("campaigns/external.yaml", &text)
    };
    // With a tap the lab could cut the link, so the commands of the boxes are the only limit.
    let lab = lab_from_text("labs/rack.yaml", RACK).unwrap();
    let resets = "{ reset: reload, started: show uptime }";
    // A box alone is managed for both ends, so its commands count.
    for boxes in [format!("[{{}}, {resets}]"), format!("[{resets}]")] {
        let plan = of(&boxes).unwrap().plan(&lab, &HOST).unwrap();
        let text = to_text(&plan, |_| Vec::new());
        assert!(
            text.contains("the box at B's side restarts by its own command 5 times"),
            "{text}"
        );
    }
    for boxes in [
        format!("[{resets}, {{}}]"),
        "[{ started: show uptime }]".to_owned(),
    ] {
        let error = of(&boxes).unwrap_err().to_string();
        let what = "`reset` with `kind: command` cannot be measured of `rack`";
        assert!(
            error.contains(what) && error.contains("has `reset` and `started`"),
            "{error}"
        );
    }
}

/// What a box may be monitored by.
#[test]
fn every_mistake_of_what_is_monitored_is_reported_at_once() {
    let text = "\
campaign: c
duts:
  - external:
      name: a
      boxes:
        - version: { oid: 1.3.6.1.2.1.1.1.0 }
          counters: { a: { metric: x_total }, b: {} }
          monitor: {}
        - snmp: { agent: box, community: public }
          prometheus: https://box/metrics
  - external:
      name: b
      boxes:
        - snmp: { agent: a/b, user: u, community: { secret_file: relative } }
        - snmp: { agent: box, user: u, privacy: aes-512, authentication: sha }
  - external:
      name: c
      boxes:
        - snmp: { agent: box, user: u, password: { secret_env: A-B }, privacy: aes-128 }
        - snmp: { agent: box, user: u, password: { secret_env: A, secret_file: /a } }
  - external:
      name: d
      boxes:
        - snmp: { agent: box, community: { secret_env: COMMUNITY } }
          prometheus: http://box:9100/metrics
          version: { metric: build_info }
          monitor:
            interval: 1 ms
            cpu: { oid: 1.3.6, metric: x }
            temperature: { oid: 4.1, scale: 0.0000001 }
            power: { command: x, oid: 1.3.6 }
            gauges: { cpu: { command: x, unit: u }, \"a b\": { command: x, unit: u }, c: { command: x } }
            counters: { cpu: { metric: \"x{a=1}\", unit: u }, d: show }
            fans: 5
        - snmp: { agent: box, community: { secret_env: COMMUNITY } }
          monitor: { cpu: { oid: 1.3.6, scale: 0.1 }, gauges: { cpu: { oid: 1.3.7, unit: x } } }
trials: [ping: { mtu: 1400 B }]
";
    let mistakes = from_text("campaigns/external.yaml", text).unwrap_err();
    compare("external-monitor-mistakes.txt", &format!("{mistakes}\n"));
}

#[test]
fn what_is_monitored_is_in_the_plan_without_secrets() {
    let text = "\
campaign: c
calibrate: off
duts:
  - external:
      name: a
      boxes:
        - via: ssh box
          snmp: { agent: \"2001:db8::1\", user: bench, password: { secret_file: /s/a }, privacy: aes-256-cisco,
                  privacy_password: { secret_env: PRIVACY } }
          prometheus: http://box:9100/metrics
          version: { oid: .1.3.6.1.2.1.1.1.0 }
          counters:
            out: { oid: 1.3.6.1.2.1.31.1.1.1.10.2 }
            in: show in
          monitor:
            interval: 500 ms
            cpu: show cpu {mtu}
            temperature: { metric: \"temp{chip=\\\"cpu\\\", core=\\\"0\\\"}\" }
            power: { oid: 1.3.6.1.4.1.318.1.1.26.6.3.1.7.1, scale: 0.1, snmp: { agent: \"pdu:1161\", community: { secret_env: PDU } } }
            counters: { octets: { oid: 1.3.6.1.2.1.31.1.1.1.6.2, scale: 8, unit: bit } }
trials: [ping: { mtu: 1400 B }]
";
    let campaign = from_text("campaigns/external.yaml", text).unwrap();
    let lab = lab_from_text("labs/rack.yaml", RACK).unwrap();
    let plan = campaign.plan(&lab, &HOST).unwrap();
    let external = plan.cells[0].dut.adapter.external().unwrap();
    let printed = serde_json::to_string_pretty(&external.boxes[0]).unwrap();
    compare("external-monitor.json", &format!("{printed}\n"));
    // `resume` reads the box from the journal, and needs nothing from the campaign's file.
    let again: plan::ExternalBox = serde_json::from_str(&printed).unwrap();
    assert_eq!(again, external.boxes[0]);
}
