//! Faults of a host, a disk or a device: each gives one clear error and the right exit code, and
//! nothing is left behind.

use crate::support::{PINGS, Sandbox, end, finish, kill, namespaces, start, wait_for};
use nix::sys::signal::{SIGKILL, SIGTERM};
use std::fs;

pub(crate) fn an_unwritable_folder_is_refused_before_measuring() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "");
    let ended = end(sandbox.run(PINGS).args(["--out", "file"]))
        .exits(2)
        .says("error: cannot create file");
    assert!(
        !ended.stderr.contains("left)"),
        "a trial was run:\n{}",
        ended.stderr
    );
    // The kernel's file systems refuse root too.
    end(sandbox.run(PINGS).args(["--out", "/proc/cipherbench"]))
        .exits(2)
        .says("help: ");
}

pub(crate) fn a_full_disk_ends_the_run_and_it_can_be_resumed() {
    // The small file system exists only for the script.
    const SCRIPT: &str = "
        mkdir disk && mount -t tmpfs -o size=4m none disk || exit 99
        \"$0\" run campaign.yaml --lab lab.yaml --out disk & run=$!
        until grep -q '\"record\":\"trial\"' disk/*/journal.jsonl 2>/dev/null || ! kill -0 $run
        do sleep 0.01; done
        cat /dev/zero >disk/ballast 2>/dev/null
        wait $run; echo \"run $?\"
        \"$0\" report disk/*-long; echo \"report $?\"
        \"$0\" report disk/*-long --out elsewhere; echo \"report $?\"
        rm disk/ballast
        \"$0\" resume disk/*-long --quiet; echo \"resume $?\"
        grep -c '\"record\":\"trial\"' disk/*/journal.jsonl
        mkdir runs && cp -r disk/*-long runs
        umount disk
    ";
    let sandbox = Sandbox::new();
    let campaign = PINGS
        .replace("pings", "long")
        .replace("repeats: 2", "repeats: 5");
    sandbox.write("campaign.yaml", &campaign);
    let ended = end(&mut sandbox.script(&namespaces("--mount"), SCRIPT)).exits(0);
    let ended = ended
        .says("No space left on device")
        .says("cipherbench resume")
        .says("or write elsewhere with `--out DIR`");
    assert!(sandbox.path("elsewhere/report.html").exists());
    // The journal stays where it is.
    assert!(
        !ended.stdout.contains("elsewhere/journal.jsonl"),
        "{}",
        ended.stdout
    );
    let codes: Vec<_> = ended.stdout.lines().filter(|line| is_code(line)).collect();
    let expected = ["run 4", "report 2", "report 5", "resume 0", "10"];
    if codes != expected {
        sandbox.repeat_if_busy(|outcome| outcome["kind"] == "measured");
    }
    assert_eq!(codes, expected, "{}\n{}", ended.stdout, ended.stderr);
}

pub(crate) fn a_disk_that_is_full_from_the_start_is_reported_before_anything_is_measured() {
    const SCRIPT: &str = "
        mkdir disk && mount -t tmpfs -o size=16k none disk || exit 99
        \"$0\" run campaign.yaml --lab lab.yaml --out disk; echo \"run $?\"
        ls disk
        umount disk
    ";
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", PINGS);
    let ended = end(&mut sandbox.script(&namespaces("--mount"), SCRIPT)).exits(0);
    let ended = ended.says("nothing was measured yet, and the run's folder is removed");
    assert_eq!(ended.stdout.trim(), "run 2", "{}", ended.stdout);
}

fn is_code(line: &str) -> bool {
    let last = line.rsplit(' ').next().unwrap_or_default();
    ["run ", "report ", "resume "]
        .iter()
        .any(|word| line == format!("{word}{last}"))
        || line == "10"
}

pub(crate) fn a_lab_name_in_use_is_refused() {
    let sandbox = Sandbox::new();
    let long = PINGS.replace("repeats: 2", "repeats: 500");
    let first = start(&mut sandbox.run(&long));
    wait_for("a recorded trial", || {
        (sandbox.trials_recorded() > 0).then_some(())
    });
    let words = format!(
        "lab `{}` is in use by process {}",
        sandbox.lab(),
        first.id()
    );
    end(&mut sandbox.run(PINGS))
        .exits(3)
        .says(&words)
        .says("help: ");
    assert_eq!(
        fs::read_dir(sandbox.path("runs")).expect("runs").count(),
        1,
        "nothing was begun"
    );
    let folder = sandbox.only_run();
    let resume = ["resume", folder.to_str().expect("a plain name")];
    end(&mut sandbox.program(&resume))
        .exits(2)
        .says("is being written by another process");
    let recorded = sandbox.trials_recorded();
    wait_for("the first run to continue", || {
        (sandbox.trials_recorded() > recorded).then_some(())
    });
    kill(i32::try_from(first.id()).expect("a process id"), SIGTERM);
    finish(first).exits(4);
}

pub(crate) fn a_missing_privilege_is_reported_with_the_responsible_setting() {
    // A process without capabilities, in a user namespace that must not create further ones.
    const SCRIPT: &str = "
        echo 0 >/proc/sys/user/max_user_namespaces || exit 99
        exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \
            \"$0\" run campaign.yaml --lab lab.yaml
    ";
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", PINGS);
    let wrapper = ["unshare", "--user", "--map-root-user"];
    let ended = end(&mut sandbox.script(&wrapper, SCRIPT)).exits(3);
    ended
        .says("error: ")
        .says("sudo sysctl -w user.max_user_namespaces=");
    assert!(!sandbox.path("runs").exists(), "nothing was begun");
}

pub(crate) fn an_unreadable_journal_is_reported_with_its_line() {
    let sandbox = Sandbox::new();
    sandbox.records(sandbox.run(PINGS).args(["--quiet", "--repeats", "1"]));
    let run = sandbox.only_run();
    let path = sandbox.path("").join(&run).join("journal.jsonl");
    let run = run.to_str().expect("a plain name").to_owned();
    let whole = fs::read_to_string(&path).expect("a journal");
    let assert_refused = |words: &str| {
        for command in ["report", "resume"] {
            end(&mut sandbox.program(&[command, &run]))
                .exits(2)
                .says(words)
                .says("help: ");
        }
    };
    fs::write(
        &path,
        whole.replacen(r#"{"record":"trial""#, r#"{"record":"trail""#, 1),
    )
    .expect("written");
    assert_refused("journal.jsonl:2: ");
    // A digit edited by hand, in a record that is as good JSON as before.
    fs::write(
        &path,
        whole.replacen(r#""received":60,"#, r#""received":59,"#, 1),
    )
    .expect("written");
    assert_refused("the checksum does not fit");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    fs::write(&path, [lines[0], lines[2], lines[1], lines[3]].concat()).expect("written");
    assert_refused("journal.jsonl:2: the line belongs after line 3");
    let format = format!(r#""format":{}"#, journal::record::FORMAT_VERSION);
    assert!(whole.contains(&format), "{format}");
    fs::write(&path, whole.replacen(&format, r#""format":99"#, 1)).expect("written");
    assert_refused("format 99");
    fs::write(&path, "").expect("written");
    assert_refused("no header");
    fs::remove_file(&path).expect("it is there");
    assert_refused("no journal in");
    fs::create_dir(&path).expect("a new folder");
    assert_refused("error: ");
    end(&mut sandbox.program(&["report", "runs/nowhere"]))
        .exits(2)
        .says("runs/nowhere");
}

pub(crate) fn a_device_that_dies_during_a_trial_fails_its_cell_with_the_reason() {
    let sandbox = Sandbox::new();
    let tcp = "campaign: dying\nrepeats: 2\norder: file\nduts: [direct, cipherbench]\ntrials:\n  \
               - tcp: { mtu: 1500 B, duration: 2 s, warmup: 0 s }\n";
    let run = start(&mut sandbox.run(tcp));
    wait_for("the trial of direct", || {
        (sandbox.trials_recorded() == 1).then_some(())
    });
    let device = sandbox.process("encrypt --config");
    sandbox.process("iperf3 -c");
    kill(device, SIGKILL);
    let ended = finish(run).exits(1);
    sandbox.repeat_if_busy(|_| true);
    let failed: Vec<_> = ended
        .stderr
        .lines()
        .filter(|line| line.contains("failed: "))
        .collect();
    assert_eq!(failed.len(), 1, "{}", ended.stderr);
    assert!(
        failed[0].contains("cipherbench #1") && failed[0].contains("SIGKILL"),
        "{}",
        failed[0]
    );
    let journal = String::from_utf8(sandbox.run_file("journal.jsonl")).expect("UTF-8");
    let measured = journal.matches(r#""kind":"measured""#).count();
    assert_eq!(measured, 3, "the other trials are run:\n{}", ended.stderr);
    // Only failed trials are repeated.
    let folder = sandbox.only_run();
    let folder = folder.to_str().expect("a plain name");
    sandbox.measures(&mut sandbox.program(&["resume", folder]));
    assert_eq!(sandbox.trials_recorded(), 5);
}

pub(crate) fn doctor_applies_settings_and_reverts_them_exactly() {
    // Files replace the parameters of the machine, for the script only.
    const SCRIPT: &str = "
        mount -t tmpfs none /proc/sys/net/core && mount -t tmpfs none /var/lib || exit 99
        cd /proc/sys/net/core
        echo 1000 >netdev_max_backlog; echo 212992 >rmem_max; echo 999999999 >wmem_max
        \"$0\" doctor --apply; echo \"apply $?\"; head *
        \"$0\" doctor --apply >/dev/null; \"$0\" doctor --revert; echo \"revert $?\"; head *
        \"$0\" doctor --revert; echo \"revert $?\"
    ";
    let sandbox = Sandbox::new();
    let ended = end(&mut sandbox.script(&namespaces("--mount"), SCRIPT)).exits(0);
    let (applied, reverted) = ended
        .stdout
        .split_once("apply 0")
        .expect("it can be applied");
    assert!(
        applied.contains("net.core.rmem_max  67108864, was 212992"),
        "{applied}"
    );
    assert!(
        applied.contains("net.core.wmem_max  999999999, as it was"),
        "{applied}"
    );
    let (while_applied, reverted) = reverted
        .split_once("net.core")
        .expect("changes are reported");
    assert!(while_applied.contains("67108864"), "{while_applied}");
    let (_, after) = reverted.split_once("revert 0").expect("it can be reverted");
    for value in ["1000\n", "212992\n", "999999999\n"] {
        assert!(after.contains(value), "{value} is not back:\n{after}");
    }
    assert!(after.contains("nothing to restore"), "{after}");
}
