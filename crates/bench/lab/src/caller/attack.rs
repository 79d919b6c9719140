//! Hostile remote hosts: their output must not fill this machine's memory.

use super::*;
use std::fs;
use testing::attack;

/// Held by the test that measures this process's memory.
static MEMORY: Mutex<()> = Mutex::new(());

/// Resident memory of this process, in MiB.
fn resident_mib() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
    (pages * 4096) >> 20
}

/// A station in the form of a shell command, with any answers.
fn station(command: &str) -> Station {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    Station::start(NodeId::A, shell, &Interrupt::new()).unwrap()
}

#[test]
fn an_answer_without_an_end_is_refused_at_its_limit() {
    let _alone = lock(&MEMORY);
    let before = resident_mib();
    let station = station("tr '\\0' x </dev/zero");
    let mut peak = before;
    let given_up = || {
        peak = peak.max(resident_mib());
        Ok::<_, Infallible>(lock(&station.calls).hung_up)
    };
    let Ok(is_over) = await_true(Duration::from_secs(300), Duration::from_millis(1), given_up);
    assert!(is_over, "the host is heard for ever");
    // The buffer doubles once beyond the limit, and other tests run in parallel.
    let bound = 3 * (REPLY_BYTES_MAX as u64 >> 20);
    let grown = peak - before;
    attack("MiB that an endless answer of a host takes", grown, bound);
    let error = station.hello().unwrap_err().to_string();
    assert!(error.contains("a line of more than 64 MiB"), "{error}");
}

#[test]
fn errors_without_an_end_are_kept_in_part() {
    let errors = Mutex::default();
    let text = "x".repeat(10 << 20) + "\nlast\r\n";
    keep_last_lines(text.as_bytes(), &errors);
    let lines = lock(&errors).lines.clone();
    let kept: usize = lines.iter().map(String::len).sum();
    assert_eq!(lines.back().map(String::as_str), Some("last"));
    let bound = STDERR_LINES * STDERR_LINE_BYTES;
    attack("bytes kept of a host's error line of 10 MiB", kept, bound);
}

#[test]
fn lines_that_are_no_answers_are_dropped_one_by_one() {
    let calls = Mutex::default();
    let _alone = lock(&MEMORY);
    let before = resident_mib();
    // Each line has a number that no call has.
    let line = format!(
        "{{\"id\":7,\"result\":{{\"Err\":\"{}\"}}}}\n",
        "x".repeat(1000)
    );
    let all = line.repeat(50_000);
    let own = (all.len() >> 20) as u64;
    hand_out_replies(all.as_bytes(), &calls);
    let grown = resident_mib().saturating_sub(before).saturating_sub(own);
    assert!(lock(&calls).hung_up && lock(&calls).lost.is_none());
    attack("MiB that 50 000 answers to no question take", grown, 32);
}
