//! Boxes that a command switches to another version, such as another firmware.

use super::rack::Rack;
use super::{await_that, held_with, lab_of, ping_cell, sealing};
use crate::trials::TestLab;
use journal::record::Outcome;
use plan::{Cell, Software, Switch, VersionSettings};
use std::fs;

/// A version whose command and its undoing write a line each.
fn version(rack: &Rack, name: &str, command: &str) -> Cell {
    let log = rack.path("versions");
    let line = |text: &str| format!("echo {text} >> {}", log.display());
    let mut cell = ping_cell(sealing(rack));
    cell.dut.software = Software {
        version: Some(name.to_owned()),
        settings: Some(VersionSettings {
            switch: Some(Switch {
                command: format!("{}; {command}", line(name)),
                undo: Some(line(&format!("not-{name}"))),
                limit_ns: 1_000_000_000,
            }),
            ..VersionSettings::default()
        }),
        ..Software::default()
    };
    cell
}

fn log(rack: &Rack) -> Vec<String> {
    let text = fs::read_to_string(rack.path("versions")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub(super) fn switched() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&lab_of(&rack));
    let (one, two) = (version(&rack, "one", "true"), version(&rack, "two", "true"));
    for cell in [&one, &one, &two] {
        lab.record(cell);
    }
    // Only when the version in force is another one.
    assert_eq!(log(&rack), ["one", "not-one", "two"]);
    for (command, words) in [
        (
            "echo no such image >&2; exit 3",
            &["failed (exit status 3)", "no such image", "\nhelp: run it"][..],
        ),
        (
            "echo at it; exec sleep 1000",
            &["did not end within 1 s (`limit`): at it"],
        ),
    ] {
        match lab.record(&version(&rack, "bad", command)).outcome {
            Outcome::Failed { reason } => {
                for words in words {
                    assert!(reason.contains(words), "{words}: {reason}");
                }
            }
            other => panic!("{other:#?}"),
        }
    }
    let both = ["bad", "not-bad"];
    assert_eq!(log(&rack)[3..], [&["not-two"][..], &both, &both].concat());
    lab.record(&one);
    drop(lab);
    assert_eq!(log(&rack)[8..], ["one", "not-one"]);
    assert!(rack.has_all_back());
    // A killed run leaves the way back to its host.
    let folder = testing::folder().unwrap();
    let mut run = held_with(&rack, folder.path(), &two);
    run.kill().unwrap();
    run.wait().unwrap();
    await_that("the boxes are switched back", || {
        log(&rack)[10..] == ["two", "not-two"]
    });
    await_that("the interfaces are back", || rack.has_all_back());
}
