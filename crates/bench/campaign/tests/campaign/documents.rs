//! The documents and the shipped files say what the code does.

use campaign::{
    CAMPAIGN_KEYS, HostFacts, LAB_KEYS, LabFile, from_text, lab_from_text, load, load_lab,
};
use plan::{LabPlan, Measurement, Procedure, estimate::noisy_ns};
use std::fs;
use std::path::{Path, PathBuf};
use units::human::estimate_ns;
use wire::mix::FrameMix;

const HOST: HostFacts = HostFacts { cores: 8 };

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// The blocks of a document that are fenced as YAML.
fn yaml_blocks(document: &str) -> Vec<&str> {
    let fenced = document.split("```yaml\n").skip(1);
    fenced
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect()
}

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    assert!(!files.is_empty());
    files
}

#[test]
fn every_yaml_block_of_the_documents_is_right() {
    let blocks = [
        document("campaign.md"),
        document("lab.md"),
        document("devices.md"),
    ];
    let blocks: Vec<_> = blocks
        .iter()
        .flat_map(|document| yaml_blocks(document))
        .collect();
    // A block with another fence would be skipped silently.
    assert_eq!(blocks.len(), 20);
    for block in blocks {
        if block.starts_with("lab:") {
            lab_from_text("docs", block).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            continue;
        }
        let campaign = from_text("docs", block).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        campaign
            .plan(&campaign.usual_lab(), &HOST)
            .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    }
}

#[test]
fn every_shipped_campaign_and_lab_is_right() {
    for path in yaml_files("campaigns") {
        let campaign = load(&path, &HOST).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(
            Some(campaign.name()),
            path.file_stem().and_then(|stem| stem.to_str())
        );
        // These need interfaces of boxes, or an impaired path, that no built-in lab has.
        let lab = match campaign.name() {
            "external-gateway" => load_lab(&root().join("labs/gateway.yaml")).unwrap(),
            name if name.starts_with("external-") => {
                load_lab(&root().join("labs/external.yaml")).unwrap()
            }
            "weather" => load_lab(&root().join("labs/weather.yaml")).unwrap(),
            _ => campaign.usual_lab(),
        };
        let plan = campaign
            .plan(&lab, &HOST)
            .unwrap_or_else(|mistakes| panic!("{mistakes}"));
        // The check of plans from journals must accept each plan that a file gives.
        assert_eq!(plan.mistake(), None, "{}", path.display());
        let is_external = campaign.name().starts_with("external-");
        let builds = campaign.name() == "versions";
        let tests_devices = campaign.tests_devices();
        assert!(!(is_external || builds) || !plan.demands().is_empty());
        assert!(is_external || builds || tests_devices || plan.demands().is_empty());
    }
    for path in yaml_files("labs") {
        let lab = load_lab(&path).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(
            Some(lab.plan().name.as_str()),
            path.file_stem().and_then(|stem| stem.to_str())
        );
    }
}

#[test]
fn the_suites_campaign_fits_an_ethernet_link() {
    let campaign = load(&root().join("campaigns/suites.yaml"), &HOST).unwrap();
    let lab = load_lab(&root().join("labs/ethernet-1500.yaml")).unwrap();
    assert!(campaign.plan(&lab, &HOST).is_ok());
}

#[test]
fn the_defaults_of_a_lab_are_those_of_the_built_in_one() {
    let lab = lab_from_text("l.yaml", "lab: namespaces\n").unwrap();
    assert_eq!(lab.plan(), LabFile::built_in().plan());
    assert_eq!(*lab.plan(), LabPlan::named("namespaces"));
}

/// The keys that the code asks for, as its own message about an unknown key lists them.
fn known_keys(mistakes: &yaml::Mistakes, path: &str) -> Vec<String> {
    let mistake = mistakes.iter().find(|mistake| mistake.place.path == path);
    let help = &mistake
        .unwrap_or_else(|| panic!("nothing at {path}: {mistakes}"))
        .help;
    let list = help
        .split_once("known keys are ")
        .or(help.split_once("known key is "))
        .unwrap()
        .1;
    list.split(", ").map(str::to_owned).collect()
}

/// The rows of the table below a heading, by their first column.
fn documented_keys(document: &str, heading: &str) -> Vec<String> {
    let (_, section) = document.split_once(&format!("{heading}\n")).unwrap();
    let table = section
        .lines()
        .skip_while(|line| !line.starts_with("| Key"));
    let rows = table.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect()
}

#[test]
fn every_key_is_documented_and_no_other() {
    // The key `x` is unknown everywhere: the message about it lists the known ones.
    let text = "x: 1\nduts: [direct: { x: 1 }, straight: { x: 1 }, router: { x: 1 },\n  \
                bridge: { x: 1 }, cipherbench: { x: 1 }, wireguard: { x: 1 },\n  \
                wireguard-go: { x: 1 }, boringtun: { x: 1 }, gotatun: { x: 1 },\n  \
                strongswan: { x: 1 }, openvpn: { x: 1 },\n  \
                external: { x: 1, boxes: [{ x: 1, snmp: { x: 1 }, monitor: { x: 1, gauges: { g: { x: 1 } } } }] }]\n\
                trials: [tcp: { x: 1 }, udp: { x: 1 }, ping: { x: 1 }, load: { x: 1 },\n  \
                throughput: { x: 1, goals: [{ x: 1 }] }, loss-curve: { x: 1 },\n  \
                back-to-back: { x: 1 }, latency: { x: 1 }, recovery: { x: 1 },\n  \
                rekey: { x: 1, load: 50 % }, failover: { x: 1, load: 9 kpps }, setup: { x: 1, load: 9 kpps },\n  \
                hostile: { x: 1, load: 9 kpps }, desync: { x: 1, load: 9 kpps }, soak: { x: 1, load: 9 kpps },\n  \
                mrr: { x: 1 },\n  \
                service: { x: 1, cir: 9 kpps }, reset: { x: 1, load: 9 kpps }]\n\
                claims: [{ x: 1 }]\n";
    let mistakes = from_text("c.yaml", text).unwrap_err();
    let campaign = document("campaign.md");
    let (all, frames) = ("## Trials", "## Frame tests");
    let wireguard = "### `wireguard`, `wireguard-go`, `boringtun`, `gotatun`";
    let (programs, settings) = ("### Programs and versions", "### Settings");
    let search = "A search has these keys, and up to eight goals:";
    for (path, headings) in [
        ("x", &["## The file"][..]),
        ("claims[0].x", &["## Claims"]),
        ("duts[0].direct.x", &["### `direct`", settings]),
        ("duts[1].straight.x", &["### `straight`"]),
        ("duts[2].router.x", &["### `router`", settings]),
        ("duts[3].bridge.x", &["### `bridge`", settings]),
        (
            "duts[4].cipherbench.x",
            &["### `cipherbench`", programs, settings],
        ),
        ("duts[5].wireguard.x", &[wireguard, settings]),
        ("duts[6].wireguard-go.x", &[wireguard, programs, settings]),
        ("duts[7].boringtun.x", &[wireguard, programs, settings]),
        ("duts[8].gotatun.x", &[wireguard, programs, settings]),
        (
            "duts[9].strongswan.x",
            &["### `strongswan`", programs, settings],
        ),
        ("duts[10].openvpn.x", &["### `openvpn`", programs, settings]),
        ("duts[11].external.x", &["### `external`", settings]),
        ("duts[11].external.boxes[0].x", &["A box has these keys:"]),
        (
            "duts[11].external.boxes[0].snmp.x",
            &["`snmp` is version 2c with `community`, version 3 with `user`:"],
        ),
        (
            "duts[11].external.boxes[0].monitor.x",
            &["`monitor` has at least one reading:"],
        ),
        (
            "duts[11].external.boxes[0].monitor.gauges.g.x",
            &["A reading is a command (the first number that it prints is the value), or a map:"],
        ),
        ("trials[0].tcp.x", &[all, "### `tcp`"]),
        ("trials[1].udp.x", &[all, "### `udp`"]),
        ("trials[2].ping.x", &[all, "### `ping`"]),
        ("trials[3].load.x", &[all, frames, "### `load`"]),
        ("trials[4].throughput.x", &[all, frames, search]),
        (
            "trials[4].throughput.goals[0].x",
            &[
                "        - { name: one, loss: 1 %, exceed: 0 %, initial: 1 s, final: 10 s, sum: 10 s, width: 1 % }",
            ],
        ),
        ("trials[5].loss-curve.x", &[all, frames, "### `loss-curve`"]),
        (
            "trials[6].back-to-back.x",
            &[all, frames, "### `back-to-back`"],
        ),
        (
            "trials[7].latency.x",
            &[all, frames, search, "### `latency`"],
        ),
        (
            "trials[8].recovery.x",
            &[all, frames, search, "### `recovery`"],
        ),
        (
            "trials[9].rekey.x",
            &[all, frames, search, "The load of each:", "### `rekey`"],
        ),
        (
            "trials[10].failover.x",
            &[all, frames, search, "The load of each:", "### `failover`"],
        ),
        (
            "trials[11].setup.x",
            &[all, frames, search, "The load of each:", "### `setup`"],
        ),
        (
            "trials[12].hostile.x",
            &[all, frames, search, "The load of each:", "### `hostile`"],
        ),
        (
            "trials[13].desync.x",
            &[all, frames, search, "The load of each:", "### `desync`"],
        ),
        ("trials[14].soak.x", &[all, frames, search, "### `soak`"]),
        ("trials[15].mrr.x", &[all, frames, "### `mrr`"]),
        ("trials[16].service.x", &[all, frames, "### `service`"]),
        (
            "trials[17].reset.x",
            &[all, frames, search, "The load of each:", "### `reset`"],
        ),
    ] {
        let mut known = known_keys(&mistakes, path);
        let mut documented: Vec<_> = headings
            .iter()
            .flat_map(|heading| documented_keys(&campaign, heading))
            .collect();
        known.sort();
        documented.sort();
        assert_eq!(known, documented, "{headings:?}");
    }

    let text = "x: 1\naddresses: { x: 1 }\nexternal: { x: 1 }\nhosts: { x: 1, a: { x: 1 } }\n";
    let mistakes = lab_from_text("l.yaml", text).unwrap_err();
    let mut known = known_keys(&mistakes, "x");
    for map in ["addresses", "external", "hosts", "hosts.a"] {
        let keys = known_keys(&mistakes, &format!("{map}.x"));
        known.extend(keys.iter().map(|key| format!("{map}.{key}")));
    }
    // A map's keys stand below it in the document.
    let mut documented = documented_keys(&document("lab.md"), "## Keys");
    known.sort();
    documented.sort();
    assert_eq!(known, documented);
}

#[test]
fn the_reference_of_labs_has_the_declared_keys() {
    testing::keys::tables("lab.md", LAB_KEYS);
}

#[test]
fn the_reference_of_campaigns_has_the_declared_keys() {
    testing::keys::tables("campaign.md", CAMPAIGN_KEYS);
    testing::keys::tables("devices.md", CAMPAIGN_KEYS);
}

#[test]
fn the_declared_schema_accepts_the_shipped_campaigns_and_refuses_mistakes() {
    let schema = testing::keys::Schema::of(CAMPAIGN_KEYS);
    for path in yaml_files("campaigns") {
        schema.accepts(&fs::read_to_string(path).unwrap());
    }
    for document in ["campaign.md", "devices.md"] {
        assert!(schema.accepts_examples(document, "campaign:") > 0);
    }
    let with =
        |duts: &str, trial: &str| format!("campaign: c\nduts: [{duts}]\ntrials: [{trial}]\n");
    let direct = |trial: &str| with("direct", trial);
    schema.accepts(&with(
        "{ external: { boxes: [{ up: on }], tunnels: [1, 2] } }",
        "kat",
    ));
    schema.accepts(&direct(
        "tcp: { mtu: [1500 B, 9000 B], streams: auto, window: [auto, 1 MiB] }",
    ));
    schema.accepts(&direct(
        "latency: { frame: { 64 B: 1, 1 KiB: 2 }, ip: 6, loads: 1 % }",
    ));
    for wrong in [
        "duts: [direct]\ntrials: [kat]\n".to_owned(),
        direct("tcp"),
        direct("tcp: { mtu: 1500 }"),
        direct("tcp: { mtu: [] }"),
        direct("tcp: { mtu: 1500 B, cores: 129 }"),
        direct("tcp: { mtu: 1500 B, frame: 64 B }"),
        direct("{ tcp: { mtu: 1500 B }, udp: { mtu: 1500 B } }"),
        direct("load: { frame: imix9 }"),
        direct("rekey: { frame: 64 B, every: 1 }"),
        direct("rekey: { frame: 64 B, profile: fast, goals: [] }"),
        with("wiregard", "kat"),
        with("direct: { suite: aes-256-gcm }", "kat"),
        with("xfrm: { suite: kuznyechik-mgm }", "kat"),
        with(
            "external: { boxes: [{ version: { oid: 1.3, unit: x } }] }",
            "kat",
        ),
        direct("kat") + "devices: [engine]\n",
        direct("kat") + "devices: [model: { latency: 1 ms }]\n",
        direct("kat") + "impairments: { bad: { delay: 1 ms, a-to-b: { loss: 1 % } } }\n",
        direct("kat") + "capture: { keep: ring }\n",
        direct("kat") + "claims: [{ dut: direct, trial: tcp }]\n",
        direct("kat") + "quick: { title: short }\n",
    ] {
        schema.refuses(&wrong);
    }
}

#[test]
fn the_schema_accepts_the_shipped_labs_and_refuses_mistakes() {
    let schema = testing::keys::Schema::of(LAB_KEYS);
    for path in yaml_files("labs") {
        schema.accepts(&fs::read_to_string(path).unwrap());
    }
    assert!(schema.accepts_examples("lab.md", "lab:") > 0);
    for wrong in [
        "kind: memory\n",
        "lab: Mine\n",
        "lab: mine\nkind: cloud\n",
        "lab: mine\ncipher_mtu: 1500\n",
        "lab: mine\npath: bridge\n",
        "lab: mine\npath: [hub]\n",
        "lab: mine\naddresses: { station_c: 10.3.0.0/24 }\n",
        "lab: mine\nhosts: { a: {}, b: { cpus: [1024] } }\n",
        "lab: mine\nhosts: { a: {} }\n",
    ] {
        schema.refuses(wrong);
    }
}

#[test]
fn every_key_of_devices_is_documented_and_no_other() {
    let text = "campaign: c\n\
                devices: [engine: { x: 1 }, openssl: { x: 1 }, pkcs11: { x: 1 }, model: { x: 1 },\n  \
                several: { x: 1 }]\n\
                trials: [kat: { x: 1 }, speed: { x: 1 }, fatigue: { x: 1 }]\n";
    let mistakes = from_text("c.yaml", text).unwrap_err();
    let devices = document("devices.md");
    let (of_all, trials) = ("## Devices", "## Trials");
    for (path, headings) in [
        ("devices[0].engine.x", [of_all, "### `engine`"]),
        ("devices[1].openssl.x", [of_all, "### `openssl`"]),
        ("devices[2].pkcs11.x", [of_all, "### `pkcs11`"]),
        ("devices[3].model.x", [of_all, "### `model`"]),
        ("devices[4].several.x", [of_all, "### `several`"]),
        ("trials[0].kat.x", [trials, "### `kat`"]),
        ("trials[1].speed.x", [trials, "### `speed`"]),
        ("trials[2].fatigue.x", [trials, "### `fatigue`"]),
    ] {
        let mut known = known_keys(&mistakes, path);
        let mut documented: Vec<_> = headings
            .iter()
            .flat_map(|heading| documented_keys(&devices, heading))
            .collect();
        // Documented for all devices, with the exception of these two.
        if path.contains("pkcs11") || path.contains("several") {
            documented.retain(|key| key != "count");
        }
        known.sort();
        documented.sort();
        assert_eq!(known, documented, "{headings:?}");
    }
}

/// What a table's rows have in a column, by their first one.
fn column<'d>(document: &'d str, heading: &str, column: usize) -> Vec<(&'d str, &'d str)> {
    let (_, section) = document.split_once(heading).unwrap();
    let table = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = table.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        (cells[1].trim_matches('`'), cells[column])
    })
    .collect()
}

#[test]
fn the_documented_mixes_are_those_that_have_a_name() {
    let campaign = document("campaign.md");
    let genomes = column(&campaign, "### Mixes", 2);
    let means = column(&campaign, "### Mixes", 3);
    assert_eq!(genomes.len(), 5);
    for ((name, genome), (_, mean)) in genomes.into_iter().zip(means) {
        let mix = FrameMix::named(name).unwrap();
        assert!(genome.starts_with(&mix.to_string()), "{name}: {mix}");
        assert_eq!(format!("{:.1} B", mix.mean_bytes()), mean, "{name}");
    }
}

#[test]
fn the_documented_profiles_are_those_of_plans() {
    let campaign = document("campaign.md");
    for (profile, at) in [("fast", 2), ("rfc2544", 3), ("tst009", 4)] {
        let text = format!(
            "campaign: c\nduts: [straight]\ntrials:\n  \
             - latency: {{ frame: 64 B, profile: {profile} }}\n  \
             - recovery: {{ frame: 64 B, profile: {profile} }}\n"
        );
        let plan = from_text("c.yaml", &text)
            .unwrap()
            .plan(&LabFile::built_in(), &HOST)
            .unwrap();
        let procedure = |cell: usize| match &plan.cells[cell].measurement {
            Measurement::Frames(test) => test.procedure.clone(),
            other => panic!("{other:?}"),
        };
        let (Procedure::Latency(latency), Procedure::Recovery(recovery)) =
            (procedure(0), procedure(1))
        else {
            panic!("other procedures");
        };
        let time = |ns| units::time::print(std::time::Duration::from_nanos(ns));
        let ratio = |ppm: u32| units::Ratio::from_ppm(ppm.into()).to_string();
        let goals = latency.search.goals.iter();
        let goals: Vec<_> = goals
            .map(|goal| {
                format!(
                    "`{}`: loss {}",
                    goal.name,
                    ratio(goal.criteria.loss_ratio_ppm)
                )
            })
            .collect();
        let goal = &latency.search.goals[0];
        assert_eq!(recovery.overload_ns, recovery.relief_ns);
        let expected = [
            goals.join(", "),
            ratio(goal.criteria.exceed_ratio_ppm),
            time(goal.criteria.initial_trial_ns),
            time(goal.criteria.final_trial_ns),
            time(goal.criteria.duration_sum_ns),
            ratio(goal.criteria.width_ppm),
            time(latency.search.drain_ns),
            time(latency.search.timeout_ns),
            time(latency.trial_ns),
            time(recovery.overload_ns),
        ];
        let documented = column(&campaign, "A profile is a set of goals with its times:", at);
        let documented: Vec<_> = documented.iter().map(|(_, value)| *value).collect();
        // Times are documented as people say them.
        let minutes = |text: &str| text.replace("1 min", "60 s").replace("2 min", "120 s");
        let expected: Vec<_> = expected.iter().map(|text| minutes(text)).collect();
        let documented: Vec<_> = documented.iter().map(|text| minutes(text)).collect();
        assert_eq!(documented[..expected.len()], expected, "{profile}");
    }
}

/// A time as the documents print it: `53 min`, `24 to 43 min`, `46 min to 2 h`.
fn in_words(usual_ns: u64, noisy_ns: u64) -> String {
    let [usual, noisy] = [usual_ns, noisy_ns].map(|ns| estimate_ns(ns as f64));
    // Compared as printed: two times that round to the same text are one.
    if usual == noisy {
        return usual;
    }
    // One unit for both, if both have only that.
    match (usual.split_once(' '), noisy.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other && !unit.contains(' ') => {
            format!("{number} to {noisy}")
        }
        _ => format!("{usual} to {noisy}"),
    }
}

/// The times of all shipped campaigns on two cores, which the documents print.
#[test]
fn the_documents_say_how_long_each_shipped_campaign_takes() {
    let host = HostFacts { cores: 2 };
    let table = document("campaign.md");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut wrong = Vec::new();
    for path in yaml_files("campaigns") {
        let campaign = load(&path, &host).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let name = campaign.name().to_owned();
        let lab = |file: &str| load_lab(&root().join("labs").join(file)).unwrap();
        // The usual lab lacks the cables of boxes and the impaired link.
        let lab = match &*name {
            "external-gateway" => lab("gateway.yaml"),
            name if name.starts_with("external-") => lab("external.yaml"),
            "weather" => lab("weather.yaml"),
            _ => campaign.usual_lab(),
        };
        let plan = campaign.plan(&lab, &host).unwrap();
        let time = in_words(plan.estimate_ns(), noisy_ns(&plan));
        let link = format!("](../campaigns/{name}.yaml) |");
        let row = table.lines().find(|line| line.contains(&link));
        let is_right = row.is_some_and(|row| row.ends_with(&format!("| {time} |")));
        if !is_right {
            wrong.push(format!("docs/campaign.md, {name}: {time}"));
        }
        let command = format!("cipherbench run campaigns/{name}.yaml");
        for line in readme.lines().filter(|line| line.contains(&command)) {
            if !line.ends_with(&format!(": about {time}")) {
                wrong.push(format!("README.md, {name}: about {time}"));
            }
        }
    }
    assert!(wrong.is_empty(), "these times are other ones: {wrong:#?}");
}
