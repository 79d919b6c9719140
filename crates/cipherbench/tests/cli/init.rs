//! First files: from flags, and from answers on a terminal.

use crate::support::{PROGRAM, Sandbox, end, finish};
use crate::texts::assert_golden;
use nix::sys::signal::SIGINT;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdin, Stdio};

/// Flags of every kind of campaign, and the name of its golden file.
const CAMPAIGNS: [(&str, &[&str]); 9] = [
    ("encryptor", &["--what", "encryptor"]),
    (
        "programs",
        &[
            "--what",
            "programs",
            "--programs",
            "openvpn,ours,wireguard-go,strongswan",
        ],
    ),
    ("device", &["--what", "device"]),
    (
        "pkcs11",
        &[
            "--what",
            "device",
            "--pkcs11",
            "/opt/my card/p11.so",
            "--token",
            "ключ 1",
        ],
    ),
    ("provider", &["--what", "device", "--provider", "fips"]),
    (
        "engine",
        &[
            "--what",
            "device",
            "--engine",
            "card",
            "--module",
            "/opt/card.so",
        ],
    ),
    (
        "router",
        &["--what", "box", "--box", "router", "--ports", "eth1,eth2"],
    ),
    ("box", &["--what", "box", "--ports", "eth1,eth2"]),
    (
        "gateway",
        &["--what", "box", "--box", "gateway", "--ports", "eth1,eth2"],
    ),
];

fn init<'a>(what: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    [&["init", what][..], flags].concat()
}

/// A sandbox whose folder is empty.
fn empty() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::remove_file(sandbox.path("lab.yaml")).expect("the sandbox's lab");
    sandbox
}

fn files(sandbox: &Sandbox) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path("")).expect("the test's folder");
    let names = entries.map(|it| it.expect("an entry").file_name().into_string());
    let mut names: Vec<_> = names.map(|name| name.expect("UTF-8")).collect();
    names.sort();
    names
}

pub(crate) fn campaigns_of_every_kind_pass_check_and_are_as_recorded() {
    for (name, flags) in CAMPAIGNS {
        for length in [&["--quick"][..], &[]] {
            let sandbox = Sandbox::new();
            let file = "my кампания.yaml";
            let flags = [flags, length, &["--output", file]].concat();
            let ended = end(&mut sandbox.program(&init("campaign", &flags))).exits(0);
            let lab = "my кампания-lab.yaml";
            let with_lab = sandbox.path(lab).exists();
            assert_eq!(with_lab, flags.contains(&"box"), "{flags:?}");
            let check = if with_lab {
                vec!["check", file, lab]
            } else {
                vec!["check", file]
            };
            let checked = end(&mut sandbox.program(&check)).exits(0);
            assert!(
                checked.stdout.contains("ok  my кампания.yaml"),
                "{}",
                checked.stdout
            );
            // The command that is proposed, word by word.
            let next = ended
                .stdout
                .lines()
                .find_map(|it| it.trim().strip_prefix("cipherbench plan "));
            let next = next.expect("a next command");
            end(&mut sandbox.script(&["env"], &format!("exec \"$0\" plan {next}"))).exits(0);
            if !length.is_empty() {
                let text = fs::read_to_string(sandbox.path(file)).expect("a campaign");
                assert_golden(&format!("init-{name}.yaml"), &text);
            }
        }
    }
}

pub(crate) fn labs_of_every_kind_pass_check() {
    let labs: [&[&str]; 3] = [
        &["--ports", "eth1,eth2"],
        &["--hosts", "root@left,root@right", "--ports", "eth1,enp2s0"],
        &[
            "--hosts",
            "here,ssh -p 2222 lab@right sudo -n",
            "--ports",
            "eth1,eth1",
        ],
    ];
    for flags in labs {
        let sandbox = Sandbox::new();
        let flags = [flags, &["--output", "ё lab.yaml"]].concat();
        end(&mut sandbox.program(&init("lab", &flags))).exits(0);
        end(&mut sandbox.program(&["check", "ё lab.yaml"])).exits(0);
    }
    let sandbox = Sandbox::new();
    let impossible = ["--ports", "eth1,eth1", "--output", "same.yaml"];
    end(&mut sandbox.program(&init("lab", &impossible))).exits(2);
    let absent = ["--ports", "nowhere0,nowhere1", "--output", "absent.yaml"];
    end(&mut sandbox.program(&init("lab", &absent)))
        .exits(0)
        .says("warning: `nowhere0` may be refused by `run`: this machine has no such interface");
    assert_eq!(files(&sandbox), ["absent.yaml", "lab.yaml"]);
}

pub(crate) fn both_ends_of_a_tunnel_pass_check_and_their_keys_are_not_printed() {
    let sandbox = Sandbox::new();
    let flags = [
        ["--peer", "2001:db8::2"],
        ["--local", "2001:db8::1"],
        ["--network", "10.1.0.0/24"],
        ["--peer-network", "10.2.0.0/24"],
        ["--folder", "my ends/ключи"],
    ];
    let ended = end(&mut sandbox.program(&init("gateway", &flags.concat()))).exits(0);
    assert!(!(ended.stdout + &ended.stderr).contains("PRIVATE KEY"));
    let configs = [1, 2].map(|end| format!("my ends/ключи/gw{end}/gw{end}.yaml"));
    let check = ["check", &configs[0], &configs[1]];
    end(&mut sandbox.program(&check)).exits(0);
    end(&mut sandbox.program(&["keys", "authority", "ca"])).exits(0);
    let mode = |path: &str| fs::metadata(sandbox.path(path)).expect("a file").mode();
    for name in ["ca.pem", "ca.key"] {
        let made = format!("my ends/ключи/authority/{name}");
        assert_eq!(mode(&made), mode(&format!("ca/{name}")), "{name}");
    }
    assert_eq!(mode("my ends/ключи/gw2/gw2.key") & 0o777, 0o600);
}

pub(crate) fn existing_files_are_refused_before_anything_is_written() {
    let sandbox = Sandbox::new();
    // The second of two files: the first one must not appear.
    sandbox.write("campaign-lab.yaml", "somebody's");
    let boxes = init("campaign", &["--what", "box", "--ports", "eth1,eth2"]);
    end(&mut sandbox.program(&boxes))
        .exits(2)
        .says("campaign-lab.yaml exists already")
        .says("`--force` overwrites");
    assert_eq!(files(&sandbox), ["campaign-lab.yaml", "lab.yaml"]);
    end(&mut sandbox.program(&[&boxes[..], &["--force"]].concat())).exits(0);
    end(&mut sandbox.program(&["check", "campaign.yaml", "campaign-lab.yaml"])).exits(0);
    sandbox.make_folder("gateways");
    sandbox.make_folder("gateways/gw1");
    sandbox.write("gateways/gw1/gw1.key", "somebody's");
    let gateway = init("gateway", &["--peer", "192.0.2.2", "--local", "192.0.2.1"]);
    end(&mut sandbox.program(&gateway))
        .exits(2)
        .says("gateways/gw1/gw1.key exists already");
    assert!(!sandbox.path("gateways/authority").exists());
    // A folder that nobody can write to, root neither.
    let unwritable = ["--what", "encryptor", "--output", "/sys/campaign.yaml"];
    let ended = end(&mut sandbox.program(&init("campaign", &unwritable))).exits(2);
    assert_eq!(
        ended.stderr.matches("error: ").count(),
        1,
        "{}",
        ended.stderr
    );
    ended
        .says("cannot write /sys/campaign.yaml")
        .says("`--output`");
    let nowhere = ["--what", "encryptor", "--output", "nowhere/campaign.yaml"];
    end(&mut sandbox.program(&init("campaign", &nowhere)))
        .exits(2)
        .says("create its folder");
}

pub(crate) fn without_a_terminal_the_flags_are_named() {
    let sandbox = empty();
    let wanting: [(&[&str], &str); 5] = [
        (&["campaign"], "--what box|programs|encryptor|device"),
        (&["campaign", "--what", "box"], "--ports A,B"),
        (&["lab"], "--hosts A,B --ports A,B"),
        (&["lab", "--hosts", "left,right"], "--ports A,B"),
        (&["gateway"], "--peer ADDRESS"),
    ];
    for (words, flag) in wanting {
        let ended = end(&mut sandbox.program(&[&["init"][..], words].concat())).exits(2);
        assert_eq!(
            ended.stderr.matches("error: ").count(),
            1,
            "{}",
            ended.stderr
        );
        ended.says("there is no terminal").says(flag);
    }
    let misplaced = ["--what", "encryptor", "--programs", "ours,openvpn"];
    end(&mut sandbox.program(&init("campaign", &misplaced)))
        .exits(2)
        .says("`--what programs`");
    let alone = init("campaign", &["--what", "programs", "--programs", "ours"]);
    end(&mut sandbox.program(&alone))
        .exits(2)
        .says("name two or more");
    assert!(files(&sandbox).is_empty());
}

/// The program on a terminal, and its keyboard.
fn on_terminal(sandbox: &Sandbox, words: &str) -> (Child, ChildStdin) {
    // `script` gives the program a terminal, which merges standard error and standard output, and
    // passes its input on as typed keys.
    let line = format!("env --default-signal=INT {PROGRAM} {words}");
    let mut command = sandbox.command("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("`script` can be started");
    let input = child.stdin.take().expect("it is piped");
    (child, input)
}

/// Reads a child's output until it contains these words.
fn read_until(child: &mut Child, words: &str) {
    let output = child.stdout.as_mut().expect("standard output is piped");
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(words.as_bytes()) {
        let read = output.read(&mut byte).expect("a pipe can be read");
        assert_eq!(read, 1, "{}", String::from_utf8_lossy(&seen));
        seen.extend(byte);
    }
}

/// The output of the program on a terminal with these keys typed.
fn typed(sandbox: &Sandbox, words: &str, keys: &str) -> (Option<i32>, String) {
    let (child, mut input) = on_terminal(sandbox, words);
    input.write_all(keys.as_bytes()).expect("`script` reads");
    drop(input);
    let ended = finish(child);
    (ended.code, ended.stdout)
}

pub(crate) fn a_dialogue_on_a_terminal_asks_until_the_answer_is_one() {
    let sandbox = Sandbox::new();
    let (code, seen) = typed(&sandbox, "init campaign --quick", "seven\n9\n3\n");
    assert_eq!(code, Some(0), "{seen}");
    assert!(
        seen.contains("what do you want to measure [encryptor]:"),
        "{seen}"
    );
    assert!(seen.contains("`seven` is not in the list"), "{seen}");
    assert!(seen.contains("wrote campaign.yaml"), "{seen}");
    end(&mut sandbox.program(&["check", "campaign.yaml"])).exits(0);
    let programs = "init campaign --what programs --output programs.yaml";
    let (code, seen) = typed(&sandbox, programs, "1\n");
    assert_eq!(code, Some(2), "{seen}");
    let (code, seen) = typed(&sandbox, programs, "1,openvpn\n");
    assert_eq!(code, Some(0), "{seen}");
    let text = fs::read_to_string(sandbox.path("programs.yaml")).expect("a campaign");
    assert!(
        text.contains("  - openvpn") && !text.contains("- strongswan:"),
        "{text}"
    );
    let device = "init campaign --what device --output device.yaml";
    let (code, seen) = typed(&sandbox, device, "pkcs11\n/opt/two words.so\n\n");
    assert_eq!(code, Some(0), "{seen}");
    end(&mut sandbox.program(&["check", "device.yaml"])).exits(0);
    let (code, seen) = typed(
        &sandbox,
        "init gateway --local 192.0.2.1",
        "gw2\n192.0.2.2\n",
    );
    assert_eq!(code, Some(0), "{seen}");
    assert!(sandbox.path("gateways/gw2/gw2.yaml").exists(), "{seen}");
}

pub(crate) fn an_interrupted_dialogue_leaves_nothing() {
    let sandbox = empty();
    for (words, first, question) in [
        ("init campaign", "", "measure [encryptor]: "),
        ("init campaign", "box\n", "ports [pair]: "),
        ("init lab", "hosts\nleft\n", "second host"),
        ("init gateway", "", "address of the peer: "),
    ] {
        // Ctrl-C, once the question is seen: a terminal drops what was typed before it.
        let (mut child, mut input) = on_terminal(&sandbox, words);
        input.write_all(first.as_bytes()).expect("`script` reads");
        read_until(&mut child, question);
        input.write_all(b"\x03").expect("`script` reads");
        let ended = finish(child);
        assert_eq!(ended.code, Some(128 + SIGINT as i32), "{}", ended.stdout);
        drop(input);
        // Ctrl-D.
        let (code, seen) = typed(&sandbox, words, &format!("{first}\x04"));
        assert_eq!(code, Some(2), "{seen}");
        assert!(seen.contains("there was no answer"), "{seen}");
        assert!(files(&sandbox).is_empty(), "{seen}");
    }
}
