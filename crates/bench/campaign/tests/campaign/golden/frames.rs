//! Frame tests: every refusal, and plans as they print.

use crate::golden::{HOST, compare};
use campaign::{Campaign, HostFacts, LabFile, from_text, lab_from_text};
use plan::{Measurement, Plan, to_text};

fn mistakes(text: &str) -> String {
    format!(
        "{}\n",
        from_text("campaigns/frames.yaml", text).unwrap_err()
    )
}

fn plan_text(campaign: &str, lab: &LabFile) -> String {
    let campaign = from_text("c.yaml", campaign).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    to_text(&campaign.plan(lab, &HOST).unwrap(), |_| Vec::new())
}

#[test]
fn every_mistake_of_a_frame_trial_is_reported_at_once() {
    let text = "\
campaign: frames
duts:
  - straight
  - router: { nat: maybe }
  - bridge: { nat: on }
  - cipherbench: { engine: null }
  - direct: { name: straight }
trials:
  - throughput: { frame: [40 B, 64, 9217 B, imx1, 64 B, 64 B], ip: 5, direction: up, flows: 65536 }
  - throughput: { tunnels: 0, cores: 0, duplex: maybe, ports: af_xdp, offloads: none, profil: fast }
  - throughput: { frame: 64 B, ports: { send: xdp, recieve: raw }, profile: quick, timeout: 10 }
  - throughput: { frame: 64 B, max_load: 1 Gbit/s, min_load: 5, drain: 2 min, goals: [] }
  - throughput: { frame: 64 B, max_load: 10 kbit/s L2, min_load: 2 G frames/s, profile: fast }
  - load: { frame: 64 B, rate: [full, 100 k frames/s, 0.5 frames/s], duration: [1 ms, 1 s] }
  - loss-curve: { frame: 64 B, step: [10 %], duration: 1 s, max_load: fast }
  - loss-curve: { frame: 64 B, step: 0.5 % }
  - loss-curve: { frame: 64 B, step: 60 % }
  - back-to-back: { frame: 64 B, burst: 2 min, bursts: 0, drain: none }
  - latency: { frame: 64 B, loads: [0 %, 10, 101 %, 33.3 %, 0 %], duration: 1 ms }
  - recovery: { frame: 64 B, overload: 100 %, relief: 100 %, overload_time: 60, relief_time: 0 s }
  - jitter: { frame: 64 B }
";
    compare("frames-mistakes.txt", &mistakes(text));
}

#[test]
fn round_trips_need_a_whole_device_one_load_and_frames_and_links() {
    let text = "\
campaign: frames
duts: [direct]
trials:
  - latency: { frame: 64 B, path: both }
  - latency: { frame: 64 B, path: [one-way, round-trip], duplex: on }
  - latency: { frame: 64 B, path: round-trip, direction: [both, encrypt] }
  - latency: { frame: 64 B, path: round-trip, ports: { receive: socket } }
";
    let campaign =
        "campaign: c\nduts: [direct]\ntrials: [latency: { frame: 64 B, path: round-trip }]\n";
    let campaign = from_text("campaigns/frames.yaml", campaign).unwrap();
    // The trials above are wrong in the file; this one is right there, and only the lab in memory
    // cannot have it.
    let memory = LabFile::built_in_named("memory").unwrap();
    let in_memory = campaign.plan(&memory, &HOST).unwrap_err();
    let all = format!("{}{in_memory}\n", mistakes(text));
    compare("round-trips-mistakes.txt", &all);
}

#[test]
fn a_procedure_is_a_trial_and_a_load_in_bits_has_a_layer() {
    let of = |trial: &str| {
        let text = format!("campaign: c\nduts: [direct]\ntrials:\n  - {trial}\n");
        from_text("c.yaml", &text).unwrap_err().to_string()
    };
    for trial in [
        "kind: mrr\n    frame: 64 B",
        "frames: { procedure: mrr, frame: 64 B }",
    ] {
        let found = of(trial);
        assert!(found.contains("write `mrr: { … }`"), "{found}");
    }
    for load in ["1 Gbit", "1 Gbps", "1Gb/s"] {
        let found = of(&format!("mrr: {{ frame: 64 B, max_load: {load} }}"));
        assert!(found.contains("write `1 Gbit/s L2`"), "{found}");
    }
}

#[test]
fn cores_of_a_lab_in_memory_are_one_whatever_the_host_has() {
    let text = "campaign: c\nduts: [straight]\ntrials: [mrr: { frame: 64 B, cores: 4 }]\n";
    let memory = LabFile::built_in_named("memory").unwrap();
    let campaign = from_text("c.yaml", text).unwrap();
    let found = campaign.plan(&memory, &HOST).unwrap_err().to_string();
    assert!(found.contains("more than the one in memory"), "{found}");
    assert!(!found.contains("of this host"), "{found}");
}

#[test]
fn every_mistake_of_a_mix_or_a_goal_is_reported() {
    let mixes = [
        "{ 64 B: 7, 594: 4, 9300 B: 1 }",
        "{ 60 B: 1, 64 B: 0, 128 B: many }",
        "{ 64 B: 7, 64B: 4 }",
        "{ 64 B: 58 %, 594 B: 33 %, 1518 B: 8 % }",
        "{ 64 B: 58 %, 594 B: 33 %, 1518 B: 1 }",
        "{ 64 B: 0 %, 594 B: 100 % }",
        "{ 64 B: 9999, 128 B: 9998 }",
        "{}",
    ];
    let goals = [
        "{ name: ndr }",
        "{ name: N DR, loss: 1, exceed: 100 %, width: 0 % }",
        "{ name: ndr, loss: 0 %, initial: 1 s }",
        "{ name: ndr, loss: 0 %, initial: 2 s, final: 1 s, sum: 500 ms }",
        "{ name: ndr, loss: 0 %, final: 1 s, sum: 500 ms }",
        "{ name: ndr, loss: 0 %, final: 1 ms, sum: 48 h }, { name: ndr, loss: 0.5 % }",
        "{ name: ndr, loss: 0 % }, { name: ndr, loss: 0.5 % }",
    ];
    let mut text = "campaign: mixes\nduts: [direct]\ntrials:\n".to_owned();
    for mix in mixes {
        text.push_str(&format!("  - load: {{ frame: {mix} }}\n"));
    }
    for goals in goals {
        text.push_str(&format!(
            "  - throughput: {{ frame: 64 B, goals: [{goals}] }}\n"
        ));
    }
    compare("mix-mistakes.txt", &mistakes(&text));
}

#[test]
fn incompatible_axes_are_reported() {
    let text = "\
campaign: axes
duts: [direct]
trials:
  - load: { frame: [64 B, 83 B, 84 B, imix1, { 90 B: 1, 70 B: 1 }], ip: [4, 6] }
  - load: { frame: 64 B, flows: [1, 8, 100], tunnels: [1, 100], cores: 8 }
  - load: { frame: 64 B, flows: [1, 8, 40000], cores: [1, 16] }
  - load: { frame: 64 B, duplex: [off, on], direction: [both, encrypt] }
  - load: { frame: 64 B, tunnels: 10, ports: [auto, socket, { send: xdp, receive: socket }] }
  - load: { frame: 84 B, ip: 6, ports: [socket, { send: socket, receive: packet }] }
  - load: { frame: 84 B, ip: [4, 6], ports: [auto, { send: packet, receive: socket }] }
  - throughput: { frame: 64 B, max_load: 10 k frames/s, min_load: 10 k frames/s }
  - throughput: { frame: [64 B, 1518 B], max_load: 1 Mbit/s L1 }
  - throughput: { frame: 64 B, profile: fast, goals: [{ name: ndr, loss: 0 % }], drain: 1 s }
  - throughput: { frame: 64 B, min_load: 9 frames/s }
  - throughput: { frame: 64 B, min_load: 9 frames/s, goals: [{ name: a, loss: 0 %, sum: 2 s }] }
  - latency: { frame: [64 B, 9216 B], min_load: 500 kbit/s L1, profile: fast }
  - recovery: { frame: 64 B, profile: rfc2544, timeout: 59 s }
  - load: { frame: 64 B, rate: [9 frames/s, 10 frames/s], duration: 100 ms }
  - load: { frame: 65 B, rate: 1 Gbit/s L3 }
  - loss-curve: { frame: 64 B, max_load: 99 frames/s, duration: 100 ms }
  - loss-curve: { frame: 64 B, max_load: 100 frames/s, step: 30 %, duration: 100 ms }
  - latency: { frame: 64 B, min_load: 10 frames/s, duration: 90 ms }
  - latency: { frame: 64 B, min_load: 10 frames/s, duration: 90 ms, loads: 50 % }
";
    compare("frame-axes-mistakes.txt", &mistakes(text));
}

#[test]
fn traffic_that_a_dut_cannot_carry_is_reported() {
    let text = "\
campaign: duts
duts: [direct, router: { nat: [off, on] }, bridge, cipherbench: { workers: [1, 2] }]
trials:
  - load: { frame: 64 B, direction: [both, encrypt, decrypt] }
  - load: { frame: 65 B, tunnels: [1, 10, 100] }
  - load: { frame: 66 B, offloads: [off, on], direction: [encrypt, both], duts: [direct, cipherbench] }
  - load: { frame: 67 B, ports: socket, direction: [encrypt, both], duts: [direct, cipherbench w1] }
  - load: { frame: 68 B, ports: socket, direction: [decrypt, both], duts: [direct, cipherbench w1] }
  - load: { frame: 69 B, ports: { send: socket }, direction: [both, encrypt], duts: cipherbench w1 }
  - load: { frame: 70 B, ports: { receive: socket }, direction: [both, decrypt], duts: cipherbench w1 }
  - load: { frame: 71 B, ports: { receive: socket }, direction: encrypt, duts: direct }
";
    let mut all = mistakes(text);
    for text in [
        "campaign: d\nduts: [direct]\ntrials: [load: { frame: 64 B, duts: [direct, router] }]\n",
        "campaign: d\nduts: [bridge]\ntrials: [load: { frame: 64 B, direction: encrypt }]\n",
        "campaign: d\nduts: [direct, straight, router]\ntrials: [tcp: { mtu: 1500 B }]\n",
        "campaign: d\nduts: [bridge]\ntrials: [ping: { mtu: 1500 B }]\n",
        "campaign: d\ncalibrate: on\nduts: [direct]\ntrials: [ping: { mtu: 1500 B }]\n",
        "campaign: d\nduts: [direct]\ntrials:\n  - load: { frame: { 64 B: 1, 65 B: 1 } }\n  \
         - load: { frame: { 64 B: 50 %, 65 B: 50 % } }\n",
    ] {
        all.push_str(&format!("\n{}", mistakes(text)));
    }
    compare("dut-mistakes.txt", &all);
}

#[test]
fn invalid_settings_of_an_encryptor_are_reported() {
    let text = "\
campaign: encryptors
duts:
  - cipherbench: { name: old, suite: [aes-128-gcm, 3des-cbc-hmac-sha1, null-hmac-md5, des-cbc-hmac-sha256] }
  - cipherbench: { name: open, suite: [null-hmac-sha256, null-hmac-md5], legacy: true }
  - cipherbench: { name: lots, tunnels: [0, 10, 128, 1000, 1001], workers: [4, 32] }
  - cipherbench: { name: wire, mode: [l3, l2, l1], tunnels: [1, 2], aggregate: [off, on] }
  - cipherbench: { name: odd, engine: [{ below: 128 B, use: openssl, else: aws-lc }, { below: 64 B, use: \"null\", else: aws-lc }] }
  - cipherbench: { name: lacking, suite: [aes-256-gcm, 3des-cbc-hmac-sha1], legacy: true, engine: [auto, aws-lc, { below: 128 B, use: rustcrypto, else: aws-lc }] }
  - cipherbench: { name: both, mode: l2tpv3-clear, insecure: maybe, legacy: [off, on], busy_poll: 1 }
  - cipherbench: { name: keyless, mode: [l2, l2tpv3-clear], keys: [static, pqc] }
  - cipherbench: { name: slow, keys: [qdk, pqc, pqc], rekey_every: [1 s, 10 ms, 25 h] }
  - cipherbench: { name: still, rekey_every: 1 min }
  - cipherbench: { name: by ike, keys: [static, ike], workers: [1, 2], tunnels: [1, 2], mode: [l3, l2], aggregate: on }
  - cipherbench: { name: bare, keys: ike-ppk, suite: [aes-256-gcm, null-hmac-sha256], insecure: on }
trials:
  - load: { frame: 64 B }
";
    let mut all = mistakes(text);
    for trial in [
        "load: { frame: 64 B, direction: [encrypt, both], duts: [wire, packed] }",
        "load: { frame: 64 B, flows: [5, 10], tunnels: [auto, 10, 20], duts: many }",
        "load: { frame: 64 B, ports: socket, duts: many }",
        "load: { frame: 64 B, direction: decrypt, duts: agreed }",
    ] {
        let text = format!(
            "campaign: e\nduts:\n  - direct\n  - cipherbench: {{ name: many, tunnels: [1, 10] }}\n  \
             - cipherbench: {{ name: packed, aggregate: true }}\n  \
             - cipherbench: {{ name: wire, mode: [l2, l2tpv3] }}\n  \
             - cipherbench: {{ name: agreed, keys: [static, pqc, both] }}\ntrials:\n  - {trial}\n"
        );
        all.push_str(&format!("\n{}", mistakes(&text)));
    }
    compare("encryptor-mistakes.txt", &all);
}

#[test]
fn a_plan_of_many_encryptors_reads_well() {
    let text = "\
campaign: encryptors
duts:
  - cipherbench:
      name: old
      suite: [aes-256-cbc-hmac-sha256, 3des-cbc-hmac-sha1, null-hmac-sha256]
      legacy: true
      insecure: true
  - cipherbench: { name: many, tunnels: [1, 100], workers: 2, aggregate: [off, on], busy_poll: on }
  - cipherbench: { name: wire, mode: [l2, l2tpv3, l2tpv3-clear] }
  - cipherbench:
      name: mixed
      engine:
        - auto
        - { below: 128 B, use: rustcrypto, else: ipsec-mb }
        - { model: { latency: 50 µs, rate: 10 Gbit/s }, else: aws-lc }
  - cipherbench: { name: keyed, keys: [static, pqc, ppk, qkd, both] }
  - cipherbench: { name: fast, keys: [static, pqc], rekey_every: [1 s, 250 ms] }
  - cipherbench: { name: one, keys: both, tunnels: 10 }
trials:
  - load: { frame: 64 B }
  - ping: { mtu: 1400 B }
";
    let campaign = from_text("encryptors.yaml", text).unwrap();
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    let traffic = |name: &str| {
        let mut cells = plan.cells.iter();
        let cell = cells.find(|cell| cell.dut.name == name).unwrap();
        match &cell.measurement {
            Measurement::Frames(test) => (test.traffic.frames.tunnels, test.traffic.frames.flows),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(traffic("many t1"), (1, 64));
    // Not 64 flows as for one tunnel: each tunnel needs one, and all have equally many.
    assert_eq!(traffic("many t100 aggregate"), (100, 100));
    assert_eq!(traffic("straight"), (1, 64));
    compare("encryptors-plan.txt", &to_text(&plan, |_| Vec::new()));
}

#[test]
fn traffic_that_a_lab_cannot_carry_is_reported_at_its_place_in_the_campaign() {
    let text = "\
campaign: lab
duts: [direct, cipherbench]
trials:
  - throughput:
      frame: [64 B, 1456 B, 1457 B, 1518 B, 9216 B, imix, imix1]
      max_load: 1.5 M frames/s
      cores: [1, 4]
  - load: { frame: [64 B, imix1], rate: [1488095 frames/s, 1488096 frames/s, 1 Gbit/s L2] }
  - load: { frame: 128 B, ports: [auto, memory, { receive: memory }] }
";
    let campaign = from_text("c.yaml", text).unwrap();
    // 1488095 frames/s are the line rate with 64 B: one load above is on it, the next one beyond.
    let lab = "lab: e\ncipher_mtu: 1500 B\nlink_rate: 1 Gbit/s\n";
    let lab = lab_from_text("labs/e.yaml", lab).unwrap();
    let mistakes = campaign.plan(&lab, &HOST).unwrap_err();
    compare("frames-in-lab-mistakes.txt", &format!("{mistakes}\n"));
}

#[test]
fn features_that_virtual_links_lack_are_reported_at_their_place_in_the_campaign() {
    let text = "\
campaign: lab
duts: [direct, cipherbench]
trials:
  - load: { frame: 64 B, ports: [xdp, { send: xdp }, { receive: xdp }, packet], cores: [1, 2] }
  - load: { frame: [3844 B, 3845 B], ports: { receive: xdp } }
  - load: { frame: [4100 B, 4101 B], ports: { send: xdp } }
  - load: { frame: 4090 B, ports: { send: xdp }, direction: decrypt }
  - load: { frame: 1518 B, ports: { receive: xdp }, direction: [both, encrypt] }
  - load: { frame: 84 B, ip: [4, 6] }
  - throughput: { frame: 9216 B }
";
    let campaign = from_text("c.yaml", text).unwrap();
    let in_lab = |lab: &str| {
        let lab = lab_from_text("labs/e.yaml", lab).unwrap();
        format!("{}\n", campaign.plan(&lab, &HOST).unwrap_err())
    };
    // The second lab has a link below the least MTU of IPv6.
    let mut all = in_lab("lab: e\n");
    all.push_str(&in_lab(
        "lab: e\ncipher_mtu: 1279 B\nlink_rate: 10 Mbit/s\n",
    ));
    compare("virtual-links-mistakes.txt", &all);
}

#[test]
fn trials_that_need_a_kernel_are_reported_in_the_lab_in_memory() {
    let text = "\
campaign: memory
duts: [straight, direct, router, bridge, cipherbench: { mode: [l3, l2] }, cipherbench: { name: agreed, keys: pqc }]
trials:
  - tcp: { mtu: 1500 B, duts: [direct, cipherbench l3] }
  - ping: { mtu: 1500 B, duts: direct }
  - load: { frame: 64 B, ports: [auto, memory, xdp, { send: memory, receive: packet }] }
  - load: { frame: 65 B, cores: [1, 2], duplex: [off, on] }
";
    let campaign = from_text("c.yaml", text).unwrap();
    let lab = LabFile::built_in_named("memory").unwrap();
    let mistakes = campaign.plan(&lab, &HOST).unwrap_err();
    compare("memory-mistakes.txt", &format!("{mistakes}\n"));
}

#[test]
fn the_plan_of_the_lab_in_memory_reads_well() {
    let lab = LabFile::built_in_named("memory").unwrap();
    let plan: Plan = Campaign::built_in_named("memory")
        .unwrap()
        .plan(&lab, &HostFacts { cores: 2 })
        .unwrap();
    compare("memory-plan.txt", &to_text(&plan, |_| Vec::new()));
}

#[test]
fn a_plan_of_every_procedure_reads_well() {
    let text = "\
campaign: procedures
repeats: 1
duts:
  - direct
  - router: { nat: [off, on] }
  - bridge
  - cipherbench: { engine: [auto, \"null\"] }
trials:
  - load:
      frame: [64 B, { 64 B: 58.33 %, 594 B: 33.33 %, 1518 B: 8.34 % }]
      rate: [max, 100 k frames/s, 10 Mbit/s L1]
      duration: 2 s
      duts: [direct, cipherbench]
      direction: [encrypt, both]
  - throughput: { frame: imix0, duplex: on, max_load: 1 Gbit/s L1, cores: 2, flows: 1000 }
  - throughput: { frame: 84 B, ip: 6, profile: rfc2544, ports: { send: xdp, receive: packet } }
  - throughput:
      frame: 9216 B
      min_load: 10 frames/s
      goals: [{ name: ndr, loss: 0 % }, { name: one, loss: 1 %, exceed: 0 %, width: 1 % }]
  - loss-curve: { frame: 512 B, step: 5 % }
  - back-to-back: { frame: 64 B }
  - latency: { frame: 64 B, profile: tst009, duts: direct, tunnels: 1000 }
  - recovery: { frame: 64 B }
";
    let lab = lab_from_text("l.yaml", "lab: wire\nlink_rate: 1 Gbit/s\n").unwrap();
    compare("procedures-plan.txt", &plan_text(text, &lab));
}
