//! Hosts that are not as a lab needs them, or say more than they are asked.

use super::{Hosts, PING, check, measured};
use crate::support::{Ended, PROGRAM, Sandbox, end};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// Writes a file that can be executed.
fn executable(sandbox: &Sandbox, name: &str, content: &[u8]) -> String {
    let path = sandbox.path(name);
    fs::write(&path, content).expect("the folder can be written to");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a file");
    path.display().to_string()
}

/// Asserts that a run in this lab is refused with these words, and that both hosts are free.
#[track_caller]
pub(super) fn refused(sandbox: &Sandbox, hosts: &Hosts, lab: &str, words: &[&str]) {
    sandbox.write("lab.yaml", lab);
    let mut ended = end(&mut hosts.run(sandbox, PING)).exits(3);
    for words in words {
        ended = ended.says(words);
    }
    only_refused(ended);
    assert!(!sandbox.path("runs").exists());
    hosts.assert_free(sandbox);
}

/// Asserts that a program reported one error.
#[track_caller]
pub(super) fn only_refused(ended: Ended) {
    let errors = ended.stderr.lines();
    let errors = errors.filter(|line| line.starts_with("error: "));
    assert_eq!(errors.count(), 1, "{}", ended.stderr);
}

pub(crate) fn a_host_of_another_kind_or_version_is_refused_in_words() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let good = hosts.lab(&sandbox, &format!(", program: {PROGRAM}"));
    let with = |program: &str| good.replacen(PROGRAM, program, 1);

    // The header of a program for an unknown processor: `e_machine` is 0xfeed.
    let mut program = fs::read(PROGRAM).expect("the program");
    program.truncate(4096);
    program[18..20].copy_from_slice(&[0xed, 0xfe]);
    let foreign = executable(&sandbox, "foreign", &program);
    refused(
        &sandbox,
        &hosts,
        &with(&foreign),
        &[
            "host `a`",
            &format!("{foreign} cannot be executed there:"),
            &format!(
                "install cipherbench for Linux on {}",
                std::env::consts::ARCH
            ),
        ],
    );

    // The real program, with other numbers on the way.
    let wrapped = |name: &str, change_input: &str, change_output: &str| {
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = station ] || exec {PROGRAM} \"$@\"\n\
             sed -u '{change_input}' | {PROGRAM} \"$@\" | sed -u '{change_output}'\n"
        );
        executable(&sandbox, name, script.as_bytes())
    };
    let older = wrapped("older", "s/\"protocol\":[0-9]*/\"protocol\":1/", "");
    refused(
        &sandbox,
        &hosts,
        &with(&older),
        &[
            "host `a`",
            "its caller 1",
            "use the same version of cipherbench on both sides",
        ],
    );
    let newer = wrapped(
        "newer",
        "",
        "s/\"program\":\"[^\"]*\"/\"program\":\"99.0.1\"/",
    );
    refused(
        &sandbox,
        &hosts,
        &with(&newer),
        &[
            "host `a`",
            "its program is cipherbench 99.0.1",
            "use the same version of cipherbench on both sides",
        ],
    );
}

/// As sudo says it without a terminal.
pub(crate) fn a_sudo_that_asks_is_refused_in_words() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let good = hosts.lab(&sandbox, "");
    for (says, help) in [
        (
            "sudo: a terminal is required to read the password; either use the -S option to read from standard input or \
             configure an askpass helper\nsudo: a password is required",
            "no `requiretty`",
        ),
        (
            "sudo: sorry, you must have a tty to run sudo",
            "no `requiretty`",
        ),
        ("sudo: a password is required", "`sudo -n` in `reach`"),
    ] {
        let script = format!("#!/bin/sh\ncat >&2 <<END\n{says}\nEND\nexit 1\n");
        let sudo = executable(&sandbox, "sudo", script.as_bytes());
        let lab = good.replacen(" left", &format!(" left {sudo} -n"), 1);
        let last = says.lines().last().expect("a line");
        refused(
            &sandbox,
            &hosts,
            &lab,
            &["host `a`", last, "NOPASSWD", help],
        );
    }
}

/// Folders of 16 KB: a script fits, the program does not. One folder is passed over, and where all
/// are too small, the host is refused.
pub(crate) fn a_host_whose_disk_is_full_is_refused_and_keeps_nothing() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let left = &hosts.hosts[0];
    let small = |folder: &str| format!("mount -t tmpfs -o size=16k,mode=1777 none {folder}\n");
    left.run(&small("/mnt"));
    let lab = hosts.lab(&sandbox, "");
    let lab = lab.replacen(" left", " left env TMPDIR=/mnt", 1);
    sandbox.write("lab.yaml", &lab);
    let ended = end(&mut hosts.run(&sandbox, PING));
    sandbox.measured(ended);
    hosts.assert_free(&sandbox);
    fs::remove_dir_all(sandbox.path("runs")).expect("runs");

    // The sandbox stays visible.
    let own = sandbox.path("");
    let own = own.display();
    let folders = ["/tmp", "/var/tmp", "/dev/shm"].map(small).concat();
    left.run(&format!(
        "mkdir /run/kept && mount --bind {own} /run/kept\n{folders}\
         mkdir -p {own} && mount --bind /run/kept {own}"
    ));
    refused(
        &sandbox,
        &hosts,
        &lab,
        &[
            "host `a`",
            "no folder there can hold a program: $TMPDIR, /tmp, /var/tmp and /dev/shm are full",
            "`program: /usr/local/bin/cipherbench`",
        ],
    );
    for folder in ["/mnt", "/var/tmp", "/dev/shm"] {
        assert_eq!(left.run(&format!("ls -A {folder}")), "", "{folder}");
    }
}

/// One byte is another, at the end: the program could run, and does not.
pub(crate) fn a_program_that_arrives_damaged_is_refused_and_keeps_nothing() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    sandbox.make_folder("bin");
    let script =
        "#!/bin/sh\n/usr/bin/head -c $(($2 - 1))\nprintf x\n/usr/bin/head -c 1 >/dev/null\n";
    executable(&sandbox, "bin/head", script.as_bytes());
    let lab = hosts.lab(&sandbox, "");
    let path = sandbox.path("bin");
    let damages = format!(
        " left env PATH={}:/usr/sbin:/usr/bin:/sbin:/bin",
        path.display()
    );
    let lab = lab.replacen(" left", &damages, 1);
    refused(
        &sandbox,
        &hosts,
        &lab,
        &[
            "host `a`",
            "this program did not arrive whole: its file has another SHA-256",
        ],
    );
}

/// A banner before the answer of the shell and of the program, and a line that it does not finish.
pub(crate) fn what_a_login_shell_prints_is_ignored() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let script = "#!/bin/sh\necho 'Welcome to left! {\"id\":1}'\necho 'Last login: never' >&2\n\
                  printf 'You have mail. '\nexec \"$@\"\n";
    let greeting = executable(&sandbox, "greeting", script.as_bytes());
    let lab = hosts.lab(&sandbox, "");
    sandbox.write(
        "lab.yaml",
        &lab.replacen(" left", &format!(" left {greeting}"), 1),
    );
    let ended = end(&mut hosts.run(&sandbox, PING));
    sandbox.measured(ended);
    hosts.assert_free(&sandbox);
}

pub(crate) fn cpus_of_a_host_are_used_recorded_and_checked() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let good = hosts.lab(&sandbox, &format!(", program: {PROGRAM}"));
    let with = |a: &str, b: &str| {
        let lab = good.replacen("cable0", &format!("cable0, cpus: {a}"), 1);
        lab.replacen("cable0, program", &format!("cable0, cpus: {b}, program"), 1)
    };
    refused(
        &sandbox,
        &hosts,
        &with("[0]", "[0, 1023]"),
        &[
            "host `b`",
            "the lab's `cpus` has CPU 1023, which a run cannot use there",
            "write some of 0",
        ],
    );
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    if cores < 2 {
        println!("SKIPPED: this machine has one core");
        return;
    }
    sandbox.write("lab.yaml", &with("[1]", "[0]"));
    let campaign = "\
campaign: hosts
repeats: 1
duts: [direct]
trials:
  - tcp: { mtu: 1400 B, streams: 1, duration: 1 s, warmup: 0 s }
  - load: { frame: 512 B, rate: 500 frames/s, duration: 1 s }
";
    end(&mut hosts.run(&sandbox, campaign));
    let trials = sandbox.trials();
    assert_eq!(trials.len(), 2);
    for (cell, measured) in measured(&sandbox) {
        let check = check(&measured, "cores-of-stations").expect("a check");
        let detail = check["detail"].as_str().expect("words");
        for words in ["core 1 of host a", "core 0 of host b"] {
            assert!(detail.contains(words), "{cell:?}: {detail}");
        }
    }
    hosts.assert_free(&sandbox);
}

pub(crate) fn more_cores_than_a_host_has_fail_the_cell_with_its_name() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let lab = hosts.lab(&sandbox, &format!(", cpus: 0, program: {PROGRAM}"));
    sandbox.write("lab.yaml", &lab);
    let campaign = PING.replace(
        "ping: { mtu: 1400 B, count: 20, interval: 10 ms }",
        "tcp: { mtu: 1400 B, cores: 2 }",
    );
    assert_ne!(campaign, PING);
    end(&mut hosts.run(&sandbox, &campaign)).exits(1);
    let trials = sandbox.trials();
    let reason = trials.values().next().expect("a trial")["reason"].as_str();
    let reason = reason.expect("a reason");
    assert!(reason.contains("2 cores per station"), "{reason}");
    hosts.assert_free(&sandbox);
}
