//! The search for the offload that hurts, between two networks.

use super::listen;
use crate::encrypt::Networks;
use crate::support::{end, finish, kill, start, wait_for};
use nix::sys::signal::{SIGINT, SIGKILL};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use testing::busy;

/// Everything that a search changes at both ends.
fn features(networks: &Networks) -> [String; 2] {
    [(1, "w0"), (2, "w1")].map(|(network, interface)| {
        let script = format!("ethtool -k {interface}");
        end(&mut networks.script(network, &script)).exits(0).stdout
    })
}

/// As a bridge that drops super-packets: nothing that fits a cable is dropped, and nobody reports
/// it. TCP goes on with single segments, far slower.
pub(crate) fn an_offload_that_hurts_is_named() {
    let networks = Networks::new();
    let drop = "ethtool -K w1 gro off && nft 'add table inet drops; \
                add chain inet drops in { type filter hook input priority -300; }; \
                add rule inet drops in meta length > 1600 drop'";
    end(&mut networks.script(2, drop)).exits(0);
    let before = features(&networks);
    let (far, words) = listen(&networks, "192.0.2.2");
    let script = format!("exec \"$0\" {words} --seconds 2 --offloads --out answer.json");
    let ended = end(&mut networks.script(1, &script));
    finish(far).exits(0);
    assert_eq!(features(&networks), before);
    // The path is not encrypted either.
    let ended = ended.exits(1);
    let answer = std::fs::read(networks.sandbox.path("answer.json")).expect("an answer");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    let found = &answer["offloads"];
    assert_eq!(found["not_restored"], Value::Array(Vec::new()), "{found:#}");
    let not_changed = found["not_changed"].to_string();
    for refused in ["here/w0: ", "there/w1: ", "(fixed by the driver)"] {
        assert!(not_changed.contains(refused), "{found:#}");
    }
    let hurting = found["hurting"].as_array().expect("a list");
    let named = hurting.iter().find(|hurting| {
        let causes = hurting["causes"].to_string();
        hurting["in_force"] == true && causes.contains("tso of here/w0 = on")
    });
    let Some(named) = named else {
        // Rates are compared, and other work may slow any of them.
        busy::too_busy(format!("{found:#}"));
    };
    assert!(
        named["symptoms"].to_string().contains("TCP from here"),
        "{found:#}"
    );
    let command = "here: ethtool -K w0 tso off";
    assert!(named["remedies"].to_string().contains(command), "{found:#}");
    assert!(ended.stdout.contains(command), "{}", ended.stdout);
}

/// Ctrl-C ends both ends in order. One that is killed leaves its offloads to another process, and
/// the other end sees it go.
pub(crate) fn an_ended_search_restores_every_offload_at_both_ends() {
    for (killed, signal) in [("asker", SIGINT), ("asker", SIGKILL), ("listener", SIGKILL)] {
        let networks = Networks::new();
        end(&mut networks.script(1, "ethtool -K w0 tso off gro on")).exits(0);
        let before = features(&networks);
        let (far, words) = listen(&networks, "192.0.2.2");
        let script = format!("exec env --default-signal=INT \"$0\" {words} --seconds 2 --offloads");
        let mut near = start(&mut networks.script(1, &script));
        let errors = near.stderr.take().expect("its output");
        let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
        let third = lines.find(|line| line.trim_start().starts_with("combination 3 of "));
        assert!(third.is_some(), "it ended before the third combination");
        let (first, second) = match killed {
            "asker" => (near, far),
            _ => (far, near),
        };
        kill(i32::try_from(first.id()).expect("a process id"), signal);
        // What the other one says is read, so that it can end.
        let rest = std::thread::spawn(move || lines.map_while(Some).count());
        let ended = finish(first);
        if signal == SIGINT {
            ended.exits(4);
        }
        finish(second).exits(5);
        rest.join().expect("it reads");
        wait_for("offloads as they were found", || {
            (features(&networks) == before).then_some(())
        });
    }
}
