//! Manual pages and completions, as the program generates them, in the programs that read them.

use crate::support::{PROGRAM, Sandbox, end, finish, kill, read_line, start};
use nix::sys::signal::SIGTERM;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Whether a program is here; if not, the test's part with it is reported as skipped.
fn has(test: &str, program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        testing::lacks(test, program, format_args!("apt install {program}"));
    }
    found
}

/// Makes the manual pages in a folder, and returns their texts by name.
fn pages(sandbox: &Sandbox, folder: &str) -> BTreeMap<String, String> {
    let words = ["generate", "man", "--output", folder];
    end(sandbox
        .program(&words)
        .env("SOURCE_DATE_EPOCH", "1796083200"))
    .exits(0);
    let files = fs::read_dir(sandbox.path(folder)).expect("a folder");
    let paths = files.map(|file| file.expect("a file").path());
    let page = |path: &Path| fs::read_to_string(path).expect("a page");
    paths
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into_owned(), page(&path))
        })
        .collect()
}

pub(crate) fn every_command_has_a_manual_page_without_mistakes() {
    let sandbox = Sandbox::new();
    let made = pages(&sandbox, "man");
    assert_eq!(made, pages(&sandbox, "new/man"), "each time the same");
    for name in ["cipherbench", "cipherbench-run", "cipherbench-fleet-agent"] {
        assert!(made.contains_key(&format!("{name}.1")), "{:?}", made.keys());
    }
    assert!(!made.contains_key("cipherbench-station.1"), "it is hidden");
    let program = &made["cipherbench.1"];
    assert!(program.contains("2026-12-01"), "{program}");
    assert!(program.contains(".SH \"EXIT STATUS\""), "{program}");
    let readers = [
        ("mandoc", vec!["-Tlint", "-Wwarning"]),
        ("man", vec!["--warnings", "--local-file"]),
    ];
    for (program, words) in readers {
        if !has("the manual pages", program) {
            continue;
        }
        for name in made.keys() {
            let path = sandbox.path("man").join(name);
            let mut reader = sandbox.command(program);
            // `man` looks at its input only with a terminal or this.
            let ended = end(reader.args(&words).arg(path).env("MAN_KEEP_STDERR", "1"));
            let said = format!(
                "{}{}",
                ended.stderr,
                if program == "mandoc" {
                    &ended.stdout
                } else {
                    ""
                }
            );
            assert!(said.is_empty(), "{program}: {name}: {said}");
        }
    }
}

pub(crate) fn a_manual_page_that_cannot_be_written_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "");
    let words = ["generate", "man", "--output", "file/man"];
    let ended = end(&mut sandbox.program(&words)).exits(2);
    assert!(
        ended.stderr.contains("cannot write file/man"),
        "{}",
        ended.stderr
    );
    let mut undated = sandbox.program(&["generate", "man", "--output", "man"]);
    let ended = end(undated.env("SOURCE_DATE_EPOCH", "yesterday")).exits(2);
    assert!(
        ended.stderr.contains("SOURCE_DATE_EPOCH is `yesterday`"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("help: "), "{}", ended.stderr);
}

/// A folder with what a user may have in it: two runs, one with a name that a terminal must not
/// get, a lab with a space in its name.
fn with_runs() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.make_folder("runs");
    for name in [
        "20261101T080000Z-old",
        "20261102T080000Z-new",
        "20261103T080000Z-\u{1b}[31m",
    ] {
        sandbox.make_folder(&format!("runs/{name}"));
        sandbox.write(
            &format!("runs/{name}/journal.jsonl"),
            "{\"plan\":{\"cells\":[{\"dut\":{\"name\":\"ours\"}},{\"dut\":{\"name\":\"theirs\"}}]}}\n",
        );
    }
    sandbox.write("my lab.yaml", "");
    sandbox.write("notes.txt", "");
    sandbox
}

/// A command with the program in its PATH.
fn shell(sandbox: &Sandbox, program: &str) -> Command {
    let folder = Path::new(PROGRAM).parent().expect("a folder").to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = sandbox.command(program);
    command.env("PATH", format!("{}:{path}", folder.display()));
    command
}

/// The candidates of bash for these words, as bash divides the line; the last is completed.
fn bash(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    const COMPLETE: &str = r#"
        source <(cipherbench generate completions bash) || exit 9
        # Only readline may call it.
        compopt() { :; }
        COMP_WORDS=(cipherbench "$@")
        COMP_CWORD=$#
        current=${!#}
        # bash passes nothing as the word after a separator.
        [[ $current != [=:] ]] || current=
        _cipherbench cipherbench "$current" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut bash = shell(sandbox, "bash");
    let ended = end(bash.args(["-c", COMPLETE, "bash"]).args(words)).exits(0);
    let lines = ended.stdout.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

pub(crate) fn bash_completes_commands_campaigns_labs_devices_and_runs() {
    let sandbox = with_runs();
    let (old, new) = ("runs/20261101T080000Z-old", "runs/20261102T080000Z-new");
    let cases: [(&[&str], &[&str]); 15] = [
        (&["calib"], &["calibrate"]),
        (&["run", "qui"], &["quick"]),
        (&["run", "--qui"], &["--quick", "--quiet"]),
        (&["run", "--lab", "nam"], &["namespaces"]),
        (&["plan", "--lab", "=", "nam"], &["namespaces"]),
        (&["check", "my"], &[r"my\ lab.yaml"]),
        (&["check", "notes"], &[]),
        (&["report", "runs/2"], &[new, old]),
        (&["report", "ru"], &[new, old]),
        (&["runs", "open", "runs/20261101"], &[old]),
        (&["compare", old, "--match", "o"], &["ours="]),
        (
            &["compare", old, "--match", "ours", "="],
            &["ours", "theirs"],
        ),
        (&["compare", old, "--gate", "dut", "=", "t"], &["theirs"]),
        (&["examples", "labs/swi"], &["labs/switch"]),
        (&["schema", "enc"], &["encryptor"]),
    ];
    for (words, expected) in cases {
        assert_eq!(bash(&sandbox, words), expected, "{words:?}");
    }
    let commands = bash(&sandbox, &[""]);
    assert!(commands.iter().any(|it| it == "generate"), "{commands:?}");
    assert!(!commands.iter().any(|it| it == "station"), "{commands:?}");
    assert!(!sandbox.path("runs/new").exists());
}

pub(crate) fn zsh_and_fish_complete_too() {
    let sandbox = with_runs();
    if has("completions of zsh", "zsh") {
        // Prints what zsh would offer: the widget itself exists only while a line is edited.
        const COMPLETE: &str = r#"
            compdef() { :; }
            _describe() { local list=$3; print -rl -- "${(@P)list}"; }
            source <(cipherbench generate completions zsh) || exit 9
            words=(cipherbench "$@"); CURRENT=$#words
            _clap_dynamic_completer_cipherbench
        "#;
        let mut zsh = shell(&sandbox, "zsh");
        let said = end(zsh.args(["-fc", COMPLETE, "zsh", "run", "qui"]))
            .exits(0)
            .stdout;
        assert!(said.starts_with("quick:"), "{said}");
        // As a file in `fpath`, zsh runs it for the first completion.
        let script = end(&mut sandbox.program(&["generate", "completions", "zsh"]))
            .exits(0)
            .stdout;
        assert!(script.starts_with("#compdef cipherbench\n"), "{script}");
        sandbox.write("_cipherbench", &script);
        const LOADED: &str = r#"
            compdef() { :; }
            _describe() { local list=$3; print -rl -- "${(@P)list}"; }
            fpath=(. $fpath); autoload -Uz _cipherbench
            words=(cipherbench report runs/20261101); CURRENT=3
            _cipherbench
        "#;
        let said = end(shell(&sandbox, "zsh").args(["-fc", LOADED]))
            .exits(0)
            .stdout;
        assert_eq!(said.trim_end(), "runs/20261101T080000Z-old");
    }
    if has("completions of fish", "fish") {
        const COMPLETE: &str = "cipherbench generate completions fish | source; \
                                complete --do-complete 'cipherbench run --lab nam'";
        let mut fish = shell(&sandbox, "fish");
        fish.args(["--no-config", "--command", COMPLETE])
            .env("HOME", sandbox.path("."));
        let said = end(&mut fish).exits(0).stdout;
        assert!(said.starts_with("namespaces\t"), "{said}");
    }
}

pub(crate) fn a_service_without_its_files_says_what_is_missing_and_how_to_make_it() {
    let sandbox = Sandbox::new();
    let encrypt = ["encrypt", "--config", "gw1.yaml"];
    for more in [&[][..], &["--protect"]] {
        let ended = end(sandbox.program(&encrypt).args(more)).exits(2);
        let said = ended.stderr;
        assert!(
            said.starts_with("error: there is no configuration gw1.yaml"),
            "{said}"
        );
        assert!(said.contains("help: `cipherbench init gateway"), "{said}");
    }
    let ended = end(&mut sandbox.program(&["kme", "--config", "kme.yaml"])).exits(2);
    assert!(
        ended.stderr.contains("there is no configuration kme.yaml"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("help: docs/kme.md"),
        "{}",
        ended.stderr
    );
    // With a configuration, but without its key.
    let words = [
        "init",
        "gateway",
        "--peer",
        "127.0.0.2",
        "--local",
        "127.0.0.1",
    ];
    end(&mut sandbox.program(&words)).exits(0);
    fs::remove_file(sandbox.path("gateways/gw1/gw1.key")).expect("it was made");
    let words = ["encrypt", "--config", "gateways/gw1/gw1.yaml"];
    let ended = end(&mut sandbox.program(&words)).exits(2);
    let said = ended.stderr;
    assert!(
        said.contains("gateways/gw1/gw1.key cannot be read"),
        "{said}"
    );
    assert!(said.contains("cipherbench init gateway"), "{said}");
}

pub(crate) fn systemd_is_told_when_a_service_is_ready() {
    let sandbox = crate::kme::sandbox();
    let socket = UnixDatagram::bind(sandbox.path("notify")).expect("a short path");
    let limit = Some(Duration::from_secs(60));
    socket.set_read_timeout(limit).expect("a socket");
    let mut kmes = sandbox.interruptible(&["kme", "--config", "kme.yaml"]);
    let mut kmes = start(kmes.env("NOTIFY_SOCKET", sandbox.path("notify")));
    assert!(read_line(&mut kmes).starts_with("ready"));
    let mut message = [0; 64];
    let length = socket.recv(&mut message).expect("a message");
    assert_eq!(&message[..length], b"READY=1");
    kill(kmes.id().cast_signed(), SIGTERM);
    finish(kmes).exits(0);
}
