//! Output of the program without a lab.

use crate::support::{Sandbox, end};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Compares a text with a file in `golden/`, or updates the file.
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).expect("golden/ can be written to");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == expected,
        "{name} differs; UPDATE_GOLDEN=1 rewrites it\n--- expected\n{expected}\n--- found\n{text}"
    );
}

pub(crate) fn help_is_as_recorded() {
    let sandbox = Sandbox::new();
    let commands = [
        "",
        "run",
        "examples",
        "init",
        "init campaign",
        "init lab",
        "init gateway",
        "check",
        "schema",
        "plan",
        "runs",
        "runs open",
        "runs prune",
        "resume",
        "report",
        "export",
        "compare",
        "bisect",
        "lint",
        "doctor",
        "tunnel-check",
        "ike-peers",
        "encrypt",
        "keys",
        "keys static",
        "kme",
        "keys authority",
        "keys certificate",
        "keys ppk",
        "speed",
        "kat",
        "fatigue",
        "generate",
        "generate man",
        "generate completions",
        "station",
    ];
    for command in commands {
        let mut words: Vec<&str> = command.split_whitespace().collect();
        words.push("--help");
        let ended = end(&mut sandbox.program(&words)).exits(0);
        let name = format!("help {command}").trim().replace(' ', "-");
        assert_golden(&format!("{name}.txt"), &ended.stdout);
    }
}

pub(crate) fn version_shows_revision_and_engines() {
    let sandbox = Sandbox::new();
    let version = end(&mut sandbox.program(&["--version"])).exits(0).stdout;
    assert!(
        version.starts_with(&format!("cipherbench {}", env!("CARGO_PKG_VERSION"))),
        "{version}"
    );
    assert!(version.contains("engine aws-lc: "), "{version}");
    assert!(version.contains("engine ipsec-mb: "), "{version}");
}

pub(crate) fn a_wrong_command_line_exits_2() {
    let sandbox = Sandbox::new();
    let wrong: [&[&str]; 11] = [
        &[],
        &["rum"],
        &["run", "--repeats", "0"],
        &["station", "--node", "c"],
        &["doctor", "--apply", "--revert"],
        &["speed", "--sizes", "19"],
        &["speed", "--duration", "100"],
        &["speed", "--direction", "up"],
        &["speed", "--curves", "--threads", "2"],
        &["lint"],
        &["lint", "--json", "--sarif", "t.csv"],
    ];
    for words in wrong {
        let ended = end(&mut sandbox.program(words)).exits(2);
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    }
    let ended = end(&mut sandbox.program(&["run", "nowhere.yaml"])).exits(2);
    assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
    assert!(!sandbox.path("runs").exists());
}

pub(crate) fn lint_ends_with_1_on_an_error_and_with_2_on_a_file_that_it_cannot_read() {
    let sandbox = Sandbox::new();
    let table = |rate: &str| {
        format!(
            "# unit = \"Mbit/s\"\n# layer = \"L2\"\n# link = \"1 Gbit/s\"\n# columns = \"frame\"\n\
             device,64,1518\nA,49.2,{rate}\n"
        )
    };
    sandbox.write("good.csv", &table("987"));
    sandbox.write("fast.csv", &table("991"));
    sandbox.write("merged.csv", &table("987,988"));
    let ended = end(&mut sandbox.program(&["lint", "good.csv"])).exits(0);
    assert_eq!(
        ended.stdout,
        "good.csv: 1 table, 2 figures, 0 findings\n0 errors, 0 warnings, 0 notes\n"
    );
    let ended = end(&mut sandbox.program(&["lint", "good.csv", "fast.csv"])).exits(1);
    assert!(
        ended
            .stdout
            .starts_with("error: exceeds-link: table 1, row A, 1518 B\n  --> fast.csv:6:8\n"),
        "{}",
        ended.stdout
    );
    // The findings of the other files are printed too.
    let ended = end(&mut sandbox.program(&["lint", "--json", "merged.csv", "fast.csv"])).exits(2);
    assert!(
        ended.stderr.contains("--> merged.csv:6:1"),
        "{}",
        ended.stderr
    );
    let found: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(found["counts"]["exceeds-link"], 1);
    let unread = &found["unreadable"][0];
    assert_eq!(
        (&unread["file"], &unread["line"]),
        (&"merged.csv".into(), &6.into())
    );
    let ended = end(&mut sandbox.program(&["lint", "merged.csv", "good.csv"])).exits(2);
    assert!(
        ended.stdout.ends_with(
            "not checked: 1 of 2 files, for 1 place that cannot be read; no finding in the others\n"
        ),
        "{}",
        ended.stdout
    );
    let ended = end(&mut sandbox.program(&["lint", "--sarif", "fast.csv"])).exits(1);
    let log: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "exceeds-link");
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!(
        (&region["startLine"], &region["startColumn"]),
        (&6.into(), &8.into())
    );
}

pub(crate) fn check_reports_all_mistakes_of_a_file() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "bad.yaml",
        "campaign: bad\nrepeats: 0\nduts: [direkt]\ntrials:\n  - tcp: { mtu: 1500, duratoin: 10 s }\n",
    );
    sandbox.write(
        "good.yaml",
        "campaign: good\nduts: [direct]\ntrials:\n  - tcp: { mtu: 1500 B }\n",
    );
    let ended = end(&mut sandbox.program(&["check", "bad.yaml", "good.yaml"])).exits(2);
    for words in [
        "--> bad.yaml:2:10",
        "--> bad.yaml:3:8",
        "--> bad.yaml:5:17",
        "--> bad.yaml:5:23",
    ] {
        assert!(
            ended.stderr.contains(words),
            "{words} is not in:\n{}",
            ended.stderr
        );
    }
    assert!(
        ended.stderr.ends_with("4 mistakes in bad.yaml\n"),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stdout
            .starts_with("ok  good.yaml  campaign good: 1 cell"),
        "{}",
        ended.stdout
    );
    // `run` and `plan` report the same mistakes as `check`.
    for command in ["run", "plan"] {
        let refused = end(&mut sandbox.program(&[command, "bad.yaml"])).exits(2);
        assert_eq!(refused.stderr, ended.stderr);
    }
}

pub(crate) fn check_says_ok_for_the_shipped_files_on_hosts_that_have_their_cores() {
    let sandbox = Sandbox::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("two folders deep");
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    for folder in ["campaigns", "labs"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder of the tree") {
            let path = entry.expect("a readable entry").path();
            let mut command = sandbox.program(&["check"]);
            command.arg(&path);
            let name = path.file_name().and_then(|name| name.to_str());
            if folder == "campaigns" && name.is_some_and(|name| name.starts_with("external-")) {
                // Boxes need cables to them.
                command.arg(root.join("labs/external.yaml"));
            }
            if path.ends_with("campaigns/weather.yaml") {
                // It needs an element that impairs the path.
                command.arg(root.join("labs/weather.yaml"));
            }
            // These campaigns have cells that need two cores.
            let large = ["quick.yaml", "matrix.yaml"]
                .iter()
                .any(|name| path.ends_with(name));
            if large && cores < 2 {
                let refused = end(&mut command).exits(2);
                refused.says("2 cores per station are more than the 1 core of this host");
                continue;
            }
            let ended = end(&mut command).exits(0);
            assert!(ended.stdout.starts_with("ok  "), "{}", ended.stdout);
        }
    }
}

pub(crate) fn check_shows_one_mistake_in_many_places_and_labs_once() {
    let sandbox = Sandbox::new();
    let losses: Vec<String> = (1..=8)
        .map(|n| format!("l{n}: {{ loss: {n} % }}"))
        .collect();
    let names: Vec<String> = (1..=8).map(|n| format!("l{n}")).collect();
    let text = format!(
        "campaign: c\nimpairments:\n  {}\nduts: [direct]\ntrials:\n  - tcp: {{ mtu: 1400 B, impair: [{}] }}\n",
        losses.join("\n  "),
        names.join(", ")
    );
    sandbox.write("weather.yaml", &text);
    sandbox.write("one.yaml", "lab: one\nlink_rate: 1 Gbit/s\n");
    sandbox.write("two.yaml", "lab: two\nlink_rate: 2 Gbit/s\n");
    let refused =
        end(&mut sandbox.program(&["check", "weather.yaml", "one.yaml", "two.yaml"])).exits(2);
    let refused = refused
        .says("the lab has no element that impairs its path")
        .says("also: weather.yaml:")
        .says("in labs one, two")
        .says("1 mistake in weather.yaml, checked in 2 labs");
    assert_eq!(
        refused.stderr.matches("error: ").count(),
        1,
        "{}",
        refused.stderr
    );
}

pub(crate) fn a_length_may_have_its_unit() {
    let sandbox = Sandbox::new();
    let speed = |size: &str| {
        let words = [
            "speed",
            "--engine",
            "aws-lc",
            "--direction",
            "seal",
            "--duration",
            "1 ms",
            "--sizes",
            size,
        ];
        end(&mut sandbox.program(&words))
    };
    speed("64B").exits(0);
    speed("64 B,128").exits(0);
    speed("1 KiB").exits(0);
    speed("0.5 KiB,1kB").exits(0);
    speed("64 KiB").exits(2).says("take from 1 B to 65535 B");
    speed("64 x")
        .exits(2)
        .says("write whole bytes with or without a unit, as `64`, `64B` or `1 KiB`");
}

pub(crate) fn check_refuses_what_this_host_or_a_named_lab_lacks() {
    let sandbox = Sandbox::new();
    let campaign = |name: &str, trial: &str| {
        let text = format!("campaign: c\nduts: [direct]\ntrials:\n  - {trial}\n");
        sandbox.write(name, &text);
    };
    sandbox.write("gigabit.yaml", "lab: gigabit\nlink_rate: 1 Gbit/s\n");
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let trial = format!("load: {{ frame: 64 B, cores: {} }}", cores + 1);
    campaign("cores.yaml", &trial);
    campaign("load.yaml", "load: { frame: 64 B, rate: 1488096 frames/s }");
    campaign("memory.yaml", "load: { frame: 64 B, ports: memory }");
    let check = |words: &[&str]| {
        let mut all = vec!["check"];
        all.extend(words);
        end(&mut sandbox.program(&all))
    };
    let refused = check(&["cores.yaml", "gigabit.yaml", "lab.yaml"]).exits(2);
    let refused = refused.says("--> cores.yaml:4:");
    // More cores are refused in every lab.
    if cores < 128 {
        refused
            .says("cores per station are more than")
            .says("1 mistake in cores.yaml, checked in labs gigabit, ");
    }
    check(&["load.yaml"]).exits(0);
    for words in [
        &["load.yaml", "gigabit.yaml"] as &[_],
        &["gigabit.yaml", "load.yaml"],
        &["load.yaml", "--lab", "gigabit.yaml"],
        &["load.yaml", "lab.yaml", "--lab", "gigabit.yaml"],
    ] {
        let refused = check(words).exits(2);
        refused
            .says("above the line rate")
            .says("--> load.yaml:4:")
            .says("1 mistake in load.yaml, checked in lab gigabit");
    }
    check(&["memory.yaml"])
        .exits(2)
        .says("use the lab in memory: `--lab memory`");
    let ended = check(&["memory.yaml", "--lab", "memory"]).exits(0);
    assert!(
        ended.stdout.ends_with(", in lab memory\n"),
        "{}",
        ended.stdout
    );
    check(&["memory.yaml", "--lab", "nowhere.yaml"]).exits(2);
}

pub(crate) fn check_recognises_configurations_and_says_what_it_took_a_file_for() {
    let sandbox = Sandbox::new();
    let gateway = "local: 192.0.2.1\nremote: 192.0.2.2\nkeys: { static: gw1.key }\n\
                   tunnel: { routes: [10.2.0.0/24] }\n";
    let kmes = "kmes:\n  - { name: kme-a, listen: 127.0.0.1:8443, certificate: a.pem, key: a.key, \
                ca: ca.pem, saes: [gw1] }\n";
    sandbox.write("gw1.yaml", gateway);
    sandbox.write("kme.yaml", kmes);
    let ended = end(&mut sandbox.program(&["check", "gw1.yaml", "kme.yaml"])).exits(0);
    assert_eq!(
        ended.stdout,
        "ok  gw1.yaml  configuration of an encryptor: aes-256-gcm, 1 peer, 1 worker\n\
         ok  kme.yaml  configuration of KMEs: kme-a\n"
    );
    assert_eq!(ended.stderr, "");
    sandbox.write("gw2.yaml", &gateway.replace("remote", "remotte"));
    sandbox.write("kme2.yaml", &kmes.replace("8443", "84430"));
    sandbox.write("lab2.yaml", "lab: lab2\nlink_rate: 1\n");
    sandbox.write("other.yaml", "trails: []\n");
    let files = ["check", "gw2.yaml", "kme2.yaml", "lab2.yaml", "other.yaml"];
    let ended = end(&mut sandbox.program(&files)).exits(2);
    assert_eq!(ended.stdout, "");
    assert_golden("check-kinds.txt", &ended.stderr);
}

pub(crate) fn cores_that_this_host_lacks_are_reported_with_the_other_mistakes() {
    let sandbox = Sandbox::new();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let text = format!(
        "campaign: c\nduts: [direct]\ntrials:\n  - tcp: {{ mtu: 1500 B, window: 1 B, cores: {} }}\n",
        cores + 1
    );
    sandbox.write("c.yaml", &text);
    let mut reports = ["check", "run", "plan"].map(|command| {
        let ended = end(&mut sandbox.program(&[command, "c.yaml"])).exits(2);
        ended
            .says("(trials[0].tcp.window)")
            .says("(trials[0].tcp.cores)")
            .stderr
    });
    assert!(
        reports[0].ends_with("\n2 mistakes in c.yaml\n"),
        "{}",
        reports[0]
    );
    reports.sort();
    assert_eq!(reports[0], reports[2]);
}

pub(crate) fn plan_shows_every_cell_with_its_commands() {
    let sandbox = Sandbox::new();
    let campaign = "campaign: two\nrepeats: 2\nduts: [direct, cipherbench]\ntrials:\n  \
                    - tcp: { mtu: 1500 B, duration: 1 s }\n  - ping: { mtu: 1500 B }\n";
    sandbox.write("two.yaml", campaign);
    let ended = end(&mut sandbox.program(&["plan", "two.yaml"])).exits(0);
    for words in [
        "4 cells, each 2 times: 8 trials",
        "    iperf3 -c 10.2.0.2 ",
        "    ping -n ",
        "  direct ",
        "s  cipherbench ",
    ] {
        assert!(
            ended.stdout.contains(words),
            "{words} is not in:\n{}",
            ended.stdout
        );
    }
    assert!(ended.stderr.is_empty(), "{}", ended.stderr);
}

pub(crate) fn unwritable_output_is_an_error_but_a_closed_reader_is_not() {
    let sandbox = Sandbox::new();
    let full = end(&mut sandbox.script(&["env"], "\"$0\" plan >/dev/full")).exits(2);
    full.says("error: cannot print the result").says("help: ");
    let gone = end(&mut sandbox.script(&["env"], "{ \"$0\" plan; echo $? >&2; } | true")).exits(0);
    assert_eq!(gone.stderr, "0\n");
}

pub(crate) fn plan_as_json_is_one_document() {
    let sandbox = Sandbox::new();
    let ended = end(&mut sandbox.program(&["plan", "--json"])).exits(0);
    let planned: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let cells = planned["plan"]["cells"].as_array().expect("cells").len();
    let commands = planned["commands"].as_array().expect("commands");
    assert!(cells >= 8, "{cells} cells");
    assert_eq!(commands.len(), cells);
    for cell in commands {
        let program = &cell["commands"][0][0];
        assert!(program == "iperf3" || program == "ping", "{cell}");
    }
    assert!(planned["estimate_ns"].as_u64().expect("an integer") > 0);
}

pub(crate) fn keys_are_created_once_and_never_overwritten() {
    let sandbox = Sandbox::new();
    end(&mut sandbox.program(&["keys", "static", "a.key", "b.key"])).exits(0);
    let before = fs::read(sandbox.path("a.key")).expect("a key file");
    end(&mut sandbox.program(&["keys", "static", "a.key", "c.key"]))
        .exits(2)
        .says("a.key");
    assert_eq!(fs::read(sandbox.path("a.key")).expect("a key file"), before);
    assert!(!sandbox.path("c.key").exists());
}

pub(crate) fn certificates_are_created_once_and_for_valid_names_only() {
    let sandbox = Sandbox::new();
    end(&mut sandbox.program(&["keys", "authority", "ca"])).exits(0);
    let mode = fs::metadata(sandbox.path("ca")).expect("a folder").mode();
    assert_eq!(mode & 0o777, 0o700, "the authority's folder");
    end(&mut sandbox.program(&["keys", "certificate", "--authority", "ca", "gw1"])).exits(0);
    let [certificate, key] = ["gw1.pem", "gw1.key"].map(|name| sandbox.path(name));
    let identity = control::Identity::load(&certificate, &key, &sandbox.path("ca/ca.pem"));
    assert_eq!(identity.expect("a good certificate").name(), "gw1");
    for file in ["gw1.key", "ca/ca.key"] {
        let mode = fs::metadata(sandbox.path(file)).expect("a file").mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let before = fs::read(&key).expect("a key");
    end(&mut sandbox.program(&["keys", "certificate", "--authority", "ca", "gw1"]))
        .exits(2)
        .says("never overwritten");
    end(&mut sandbox.program(&["keys", "authority", "ca"]))
        .exits(2)
        .says("ca.key");
    assert_eq!(fs::read(&key).expect("a key"), before);
    let wrong = [
        ("gw1", "nowhere", "keys authority DIR"),
        ("GW 2", "ca", "small letters"),
        ("../gw2", "ca", "small letters"),
    ];
    for (name, authority, says) in wrong {
        end(&mut sandbox.program(&["keys", "certificate", "--authority", authority, name]))
            .exits(2)
            .says(says);
    }
    end(&mut sandbox.program(&[
        "keys",
        "certificate",
        "--authority",
        "ca",
        "--days",
        "0",
        "gw2",
    ]))
    .exits(2);
    assert!(!sandbox.path("gw2.pem").exists());
}

pub(crate) fn a_ppk_is_the_same_in_both_files() {
    let sandbox = Sandbox::new();
    end(&mut sandbox.program(&["keys", "ppk", "a.ppk", "b.ppk"])).exits(0);
    let [a, b] = ["a.ppk", "b.ppk"].map(|name| fs::read(sandbox.path(name)).expect("a PPK"));
    assert_eq!(a, b);
    end(&mut sandbox.program(&["keys", "ppk", "c.ppk"])).exits(0);
    assert_ne!(a, fs::read(sandbox.path("c.ppk")).expect("a PPK"));
    end(&mut sandbox.program(&["keys", "ppk", "d.ppk", "a.ppk"]))
        .exits(2)
        .says("a.ppk");
    assert!(
        !sandbox.path("d.ppk").exists(),
        "an incomplete pair is removed"
    );
}

pub(crate) fn doctor_reports_what_this_host_can_measure() {
    let sandbox = Sandbox::new();
    // Exit code 3 where no lab can be built; the output must then give the reason.
    let ended = end(&mut sandbox.program(&["doctor"]));
    assert!(
        matches!(ended.code, Some(0 | 3)),
        "{:?}\n{}",
        ended.code,
        ended.stderr
    );
    for name in ["iperf3", "engine aws-lc", "libcrypto", "net.core.rmem_max"] {
        assert!(
            ended.stdout.contains(name),
            "{name} is not in:\n{}",
            ended.stdout
        );
    }
    let ended = end(&mut sandbox.program(&["doctor", "--json"]));
    let found: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let findings = found["findings"].as_array().expect("findings");
    assert!(findings.len() > 10, "{found}");
    for finding in findings {
        let good = finding["status"] == "good";
        assert!(
            good || finding["why"] != "",
            "a bad finding says why it matters: {finding}"
        );
    }
    // Of hosts, what is wrong with each is an error, once.
    let lab = "lab: gone\nkind: hosts\nhosts:\n  a: { reach: /bin/false a, interface: eth1 }\n  \
               b: { reach: /bin/false b, interface: eth1 }\n";
    sandbox.write("gone.yaml", lab);
    let ended = end(&mut sandbox.program(&["doctor", "--lab", "gone.yaml"])).exits(3);
    let errors = ended.stdout.matches("error: ").count();
    assert_eq!(errors, 2, "{}", ended.stdout);
    let words = ["doctor", "--lab", "gone.yaml", "--json"];
    let ended = end(&mut sandbox.program(&words)).exits(3);
    assert!(!ended.stdout.contains("error: "), "{}", ended.stdout);
}
