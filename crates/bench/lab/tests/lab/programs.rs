//! Programs on a station, and what a station does with odd requests. One station, no namespaces.

use crate::support::{PATIENCE, await_that, is_alive, reason, shell, start, this_program};
use lab::Station;
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testbed::protocol::{
    OUTPUT_LIMIT_BYTES, PROTOCOL_VERSION, Program, Ready, Reply, Request, Response,
};
use testbed::{Interrupt, Node, NodeId};

fn station() -> Station {
    let mut command = Command::new(this_program());
    command.args(["station", "--here"]);
    let station = Station::start(NodeId::A, command, &Interrupt::new()).unwrap();
    station.hello().unwrap();
    station
}

fn run(program: Program) -> testbed::protocol::Ended {
    (&station() as &dyn Node).run(program, PATIENCE).unwrap()
}

pub(crate) fn a_request_that_is_not_understood_is_answered_and_the_next_one_too() {
    let mut command = Command::new(this_program());
    command
        .args(["station", "--here"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut station = command.spawn().unwrap();
    let mut input = station.stdin.take().unwrap();
    let mut output = BufReader::new(station.stdout.take().unwrap()).lines();
    let mut ask = |line: &str| -> Reply {
        writeln!(input, "{line}").unwrap();
        serde_json::from_str(&output.next().unwrap().unwrap()).unwrap()
    };
    let reply = ask("\u{1}garbage{{{");
    assert_eq!(reply.id, 0);
    assert!(reply.result.unwrap_err().contains("not a request"));
    let reply = ask(r#"{"id": 7, "request": {"fly": {}}}"#);
    assert_eq!(reply.id, 7);
    assert!(reply.result.unwrap_err().contains("unknown variant `fly`"));
    let reply = ask(r#"{"id": 8, "request": {"hello": {"protocol": 999}}}"#);
    assert!(
        reply
            .result
            .unwrap_err()
            .contains(&format!("protocol {PROTOCOL_VERSION}, its caller 999"))
    );
    let own = format!(r#"{{"id": 9, "request": {{"hello": {{"protocol": {PROTOCOL_VERSION}}}}}}}"#);
    let reply = ask(&own);
    assert!(matches!(reply.result, Ok(Response::Hello { .. })));
    drop(input);
    assert!(station.wait().unwrap().success());
}

pub(crate) fn an_unknown_process_is_an_error() {
    let station = station();
    for request in [
        Request::Wait {
            process: 99,
            limit_ms: 1,
        },
        Request::Stop {
            process: 99,
            grace_ms: 1,
        },
        Request::Status { process: 99 },
        Request::Terminate { process: 99 },
        Request::AwaitLine {
            process: 99,
            prefix: String::new(),
            limit_ms: 1,
        },
        Request::CpuTime { process: Some(99) },
    ] {
        assert!(reason(&station.call(request).unwrap_err()).contains("process 99 is unknown"));
    }
}

pub(crate) fn a_line_is_had_as_soon_as_it_is_printed() {
    let station = station();
    let node: &dyn Node = &station;
    let line = |process, prefix: &str, limit: Duration| {
        let request = Request::AwaitLine {
            process,
            prefix: prefix.to_owned(),
            limit_ms: limit.as_millis() as u64,
        };
        match node.call(request).unwrap() {
            Response::Line(line) => line,
            other => panic!("{other:?}"),
        }
    };
    // On SIGTERM it prints a line and goes on: the line is reported before its end. The stop must
    // not make it print the line again.
    let script = "trap 'trap \"\" TERM; echo told; sleep 1000' TERM; echo first; \
                  while :; do sleep 0.01; done";
    let process = node.start(shell(script), PATIENCE).unwrap();
    assert_eq!(line(process, "fir", PATIENCE).as_deref(), Some("first"));
    assert_eq!(line(process, "told", Duration::from_millis(1)), None);
    let response = node.call(Request::Terminate { process }).unwrap();
    assert!(matches!(response, Response::Terminated), "{response:?}");
    assert_eq!(line(process, "told", PATIENCE).as_deref(), Some("told"));
    let ended = node.stop(process, Duration::ZERO).unwrap();
    assert_eq!(ended.stdout, "first\ntold\n");
    // One that ends without it is not waited for.
    let process = node.start(shell("echo second"), PATIENCE).unwrap();
    assert_eq!(line(process, "first", PATIENCE), None);
    assert_eq!(node.wait(process, PATIENCE).unwrap().code, Some(0));
}

pub(crate) fn a_stopped_program_is_resumed_to_end_by_sigterm() {
    let station = station();
    let node: &dyn Node = &station;
    // Only once it has set its traps: before, SIGTERM ends it like any program.
    let stopped = |script: &str| {
        let process = node.start(shell(script), PATIENCE).unwrap();
        let ready = Request::AwaitLine {
            process,
            prefix: "ready".to_owned(),
            limit_ms: PATIENCE.as_millis() as u64,
        };
        let response = node.call(ready).unwrap();
        assert!(matches!(response, Response::Line(Some(_))), "{response:?}");
        let stop = Request::Signal {
            process,
            signal: Signal::SIGSTOP as i32,
        };
        node.call(stop).unwrap();
        process
    };
    let ended = node
        .stop(stopped("echo ready; exec sleep 1000"), PATIENCE)
        .unwrap();
    assert_eq!(ended.signal, Some(Signal::SIGTERM as i32));
    assert!(!ended.timed_out);
    // Stopped again by a program of another session that SIGTERM does not reach.
    let script = "trap 'exit 7' TERM\nsetsid sh -c \"sleep 0.05; kill -STOP $$\" &\n\
                  echo ready\nwhile :; do sleep 0.01; done";
    let ended = node.stop(stopped(script), PATIENCE).unwrap();
    assert!(!ended.timed_out && ended.code == Some(7), "{ended:?}");
}

pub(crate) fn a_missing_program_is_named_with_the_package_that_brings_it() {
    let station = station();
    let program = Program::new(["/nonexistent/iperf9"]);
    let error = (&station as &dyn Node)
        .start(program, PATIENCE)
        .unwrap_err();
    assert!(reason(&error).contains("`/nonexistent/iperf9` is not installed"));
    // Whether or not this machine has it: the station looks nowhere.
    let mut command = Command::new(this_program());
    command
        .args(["station", "--here"])
        .env("PATH", "/nonexistent");
    let station = Station::start(NodeId::A, command, &Interrupt::new()).unwrap();
    for tool in ["iperf3", "iperf"] {
        let error = (&station as &dyn Node)
            .start(Program::new([tool]), PATIENCE)
            .unwrap_err();
        let reason = reason(&error);
        assert!(reason.contains(&format!("`{tool}`")), "{reason}");
        assert!(reason.ends_with(&format!("apt install {tool}")), "{reason}");
    }
}

pub(crate) fn endless_output_neither_blocks_nor_grows() {
    let ended = run(shell(
        "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end; echo err >&2",
    ));
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.len() <= OUTPUT_LIMIT_BYTES);
    assert!(ended.stdout.starts_with("xxx") && ended.stdout.ends_with("\nend\n"));
    assert_eq!(ended.stderr, "err\n");
    let station = station();
    let node: &dyn Node = &station;
    let process = node.start(Program::new(["yes"]), PATIENCE).unwrap();
    let ended = node.stop(process, PATIENCE).unwrap();
    assert_eq!(ended.signal, Some(15));
}

pub(crate) fn a_daemon_that_holds_the_output_open_does_not_hold_up_its_parents_end() {
    let ended = run(shell("sleep 1000 & echo done"));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"));
    assert!(!ended.timed_out);
}

pub(crate) fn input_is_written_and_closed_even_when_nobody_reads_it() {
    let stdin = "0123456789".repeat(500_000);
    let ended = run(Program {
        stdin: stdin.clone(),
        ..Program::new(["wc", "-c"])
    });
    assert_eq!(ended.stdout.trim(), stdin.len().to_string());
    assert_eq!(
        run(Program {
            stdin,
            ..Program::new(["true"])
        })
        .code,
        Some(0)
    );
    // Without input it is at its end at once.
    assert_eq!(run(Program::new(["cat"])).code, Some(0));
}

pub(crate) fn a_program_that_ignores_sigterm_is_killed() {
    let station = station();
    let node: &dyn Node = &station;
    let script = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
    let program = Program {
        ready: Ready::Line("ready".to_owned()),
        ..shell(script)
    };
    let process = node.start(program, PATIENCE).unwrap();
    let ended = node.stop(process, Duration::from_millis(50)).unwrap();
    assert_eq!(
        (ended.code, ended.signal, ended.timed_out),
        (None, Some(9), true)
    );
    assert_eq!(ended.stdout, "ready\n");
    // Its end is reported once.
    assert!(node.stop(process, PATIENCE).is_err());
}

pub(crate) fn a_program_whose_time_is_up_is_killed() {
    let station = station();
    let node: &dyn Node = &station;
    let (process, _) = start(node, shell("sleep 1000 & echo $!; wait"));
    let ended = node.wait(process, Duration::from_millis(300)).unwrap();
    assert!(ended.timed_out && ended.signal == Some(9));
    // With its whole group.
    let child = ended.stdout.trim().parse().unwrap();
    await_that("the child is gone", || !is_alive(child));
}

pub(crate) fn cores_are_counted_from_zero_and_held_to() {
    let station = station();
    let node: &dyn Node = &station;
    let Response::Hello { cores, .. } = station.hello().unwrap() else {
        panic!()
    };
    let last = cores - 1;
    let allowed = |cores: Vec<u16>| {
        let program = Program {
            cores,
            // Those variables would count too.
            ..Program::new([
                "env",
                "-u",
                "OMP_NUM_THREADS",
                "-u",
                "OMP_THREAD_LIMIT",
                "nproc",
            ])
        };
        node.run(program, PATIENCE)
            .unwrap()
            .stdout
            .trim()
            .to_owned()
    };
    assert_eq!(allowed(vec![last]), "1");
    assert_eq!(allowed(Vec::new()), cores.to_string());
    let program = Program {
        cores: vec![cores],
        ..Program::new(["true"])
    };
    let error = node.start(program, PATIENCE).unwrap_err();
    assert!(reason(&error).contains(&format!("core {cores} does not exist here")));
}

pub(crate) fn cpu_time_is_counted_while_a_program_runs_and_after() {
    let station = station();
    let node: &dyn Node = &station;
    // A child that is waited for, one that is not, and the program itself.
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let script = format!("sh -c '{busy}'; sh -c '{busy}; sleep 1000' & {busy}; echo ready; wait");
    let program = Program {
        ready: Ready::Line("ready".to_owned()),
        ..shell(&script)
    };
    let process = node.start(program, PATIENCE).unwrap();
    let running = node.cpu_time(Some(process)).unwrap();
    assert!(running.user_ns > 0);
    let machine = node.cpu_time(None).unwrap();
    assert!(machine.user_ns > running.user_ns);
    let ended = node.stop(process, PATIENCE).unwrap();
    assert!(ended.cpu.user_ns > 0 && ended.cpu.user_ns < ended.wall_ns);
}

pub(crate) fn cycles_are_counted_where_there_are_counters_and_nowhere_invented() {
    let station = station();
    let ended = || match station.call(Request::CountersEnd).unwrap() {
        Response::Counted(counted) => counted,
        other => panic!("{other:?}"),
    };
    assert_eq!(ended(), None, "nothing was started");
    let busy = (&station as &dyn Node).start(shell("while :; do :; done"), PATIENCE);
    let counting = station.call(Request::CountersStart {
        processes: vec![busy.unwrap()],
        machine: true,
    });
    let Response::Counting(counts) = counting.unwrap() else {
        panic!()
    };
    let found = ended();
    println!("counters: {found:?}");
    assert_eq!(found.is_some(), counts);
    if let Some(found) = found {
        let [program] = found.processes[..] else {
            panic!("{found:?}")
        };
        assert!(program.cycles <= found.machine.unwrap().cycles, "{found:?}");
    }
    assert_eq!(ended(), None, "they are read once");
    let node: &dyn Node = &station;
    let short = node.start(shell("true"), PATIENCE).unwrap();
    await_that("the short program ends", || {
        let status = station.call(Request::Status { process: short });
        matches!(status, Ok(Response::Status(Some(_))))
    });
    let counting = station.call(Request::CountersStart {
        processes: vec![short],
        machine: true,
    });
    assert!(
        matches!(counting, Ok(Response::Counting(false))),
        "{counting:?}"
    );
    let unknown = station.call(Request::CountersStart {
        processes: vec![99],
        machine: false,
    });
    assert!(reason(&unknown.unwrap_err()).contains("process 99 is unknown"));
}

pub(crate) fn a_program_is_ready_when_it_prints_its_line() {
    let station = station();
    let script = "echo starting; echo ready port=1; exec sleep 1000";
    let program = Program {
        ready: Ready::Line("ready".to_owned()),
        ..shell(script)
    };
    let request = Request::Start {
        program,
        limit_ms: 30_000,
    };
    let Response::Started { stdout, .. } = station.call(request).unwrap() else {
        panic!()
    };
    assert_eq!(stdout, "starting\nready port=1\n");

    let program = Program {
        ready: Ready::Line("ready".to_owned()),
        ..shell("echo no; sleep 1000")
    };
    let start = Instant::now();
    let error = (&station as &dyn Node)
        .start(program, Duration::from_millis(300))
        .unwrap_err();
    assert!(start.elapsed() < PATIENCE);
    assert!(
        reason(&error).contains("was not ready within 300 ms"),
        "{error}"
    );
    assert!(reason(&error).ends_with(": no"), "{error}");
}

pub(crate) fn a_program_that_ends_before_it_is_ready_reports_why() {
    let station = station();
    let program = Program {
        ready: Ready::Line("ready".to_owned()),
        ..shell("echo broken >&2; exit 5")
    };
    let error = (&station as &dyn Node)
        .start(program, PATIENCE)
        .unwrap_err();
    let reason = reason(&error);
    assert!(
        reason.contains("ended (exit status 5) before it was ready"),
        "{reason}"
    );
    assert!(reason.ends_with(": broken"), "{reason}");
}

pub(crate) fn at_end_of_input_nothing_is_left_not_even_daemons() {
    let station = station();
    let node: &dyn Node = &station;
    let (_, running) = start(node, Program::new(["sleep", "1000"]));
    // A daemon as they make themselves: a session of its own, its parent gone, its pipes closed.
    let script = "setsid sh -c 'exec sleep 1000' </dev/null >/dev/null 2>&1 & echo $!";
    let daemon: u32 = node
        .run(shell(script), PATIENCE)
        .unwrap()
        .stdout
        .trim()
        .parse()
        .unwrap();
    let request = Request::WriteFile {
        name: "secret".into(),
        content: "key".into(),
        secret: true,
    };
    let Response::Written { path } = node.call(request).unwrap() else {
        panic!()
    };
    assert!(is_alive(running) && is_alive(daemon) && std::fs::exists(&path).unwrap());
    drop(station);
    assert!(!is_alive(running) && !is_alive(daemon) && !std::fs::exists(&path).unwrap());
}

pub(crate) fn files_are_private_and_plain_names_only() {
    use std::os::unix::fs::PermissionsExt;
    let station = station();
    let write = |name: &str, secret| {
        let request = Request::WriteFile {
            name: name.to_owned(),
            content: "content".to_owned(),
            secret,
        };
        station.call(request)
    };
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let Response::Written { path } = write("key", false).unwrap() else {
        panic!()
    };
    assert_eq!(mode(&path), 0o644);
    // A key that takes the place of a public file is secret all the same.
    let Response::Written { path } = write("key", true).unwrap() else {
        panic!()
    };
    assert_eq!(mode(&path), 0o600);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "content");
    assert_eq!(
        mode(
            std::path::Path::new(&path)
                .parent()
                .unwrap()
                .to_str()
                .unwrap()
        ),
        0o700
    );
    for name in ["", ".", "..", "a/b", "/etc/passwd"] {
        assert!(reason(&write(name, false).unwrap_err()).contains("not a plain file name"));
    }
}
