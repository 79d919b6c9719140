//! Each mistake has one clear error, before anything is built.

use crate::support::{CAMPAIGN, Place, plan};
use bisecting::{BisectingError, Question, Request, Source};
use campaign::{HostFacts, LabFile};
use std::fs;
use std::path::PathBuf;

/// The error of a request that is changed.
#[track_caller]
fn error(place: &Place, change: impl FnOnce(&mut Request)) -> String {
    let mut request = place.request(2);
    change(&mut request);
    let error = place
        .begin(request)
        .err()
        .expect("it is refused")
        .to_string();
    assert!(error.contains("\nhelp: "), "{error}");
    assert!(!place.folder.path().join("runs").exists(), "{error}");
    assert!(place.built().is_empty());
    error
}

fn ends(request: &mut Request, ends: (&str, &str)) {
    if let Source::Revisions { good, bad, .. } = &mut request.source {
        (*good, *bad) = (ends.0.to_owned(), ends.1.to_owned());
    }
}

#[test]
fn revisions_that_cannot_be_bisected_are_refused() {
    let place = Place::with_speeds([1.0; 4]);
    place.git(&["checkout", "--quiet", "-b", "side", "main~2"]);
    place.revision(4, "echo 'speed 1 of 4' > device");
    place.git(&["checkout", "--quiet", "main"]);
    let of = |good: &str, bad: &str| error(&place, |request| ends(request, (good, bad)));
    assert!(of("nowhere", "main").starts_with("`--good nowhere` names no revision in "));
    assert!(of("main~1", "--all").starts_with("`--bad --all` names no revision in "));
    assert!(of("main", "main").starts_with("`main` and `main` are the same revision"));
    let swapped = of("main", "main~2");
    assert!(
        swapped.starts_with("`main~2` is older than `main`: the ends are swapped"),
        "{swapped}"
    );
    assert!(of("side", "main").starts_with("`side` is no ancestor of `main`"));
    place.git(&[
        "merge",
        "--quiet",
        "--no-ff",
        "--message",
        "merge",
        "-s",
        "ours",
        "side",
    ]);
    assert!(of("side", "main").starts_with("`side` came into `main` by a merge"));
}

#[test]
fn a_dirty_tree_is_refused_and_files_that_git_does_not_know_are_not_dirt() {
    let place = Place::with_speeds([1.0; 4]);
    fs::write(place.repository().join("notes.txt"), "").unwrap();
    assert!(place.begin(place.request(2)).is_ok());
    fs::remove_dir_all(place.folder.path().join("runs")).unwrap();
    fs::write(place.repository().join("build.sh"), "exit 1").unwrap();
    let text = error(&place, |_| ());
    assert!(
        text.contains("has changes that no revision has: M build.sh"),
        "{text}"
    );
    assert!(text.contains("git stash"), "{text}");
}

#[test]
fn a_build_that_cannot_be_is_refused() {
    let place = Place::with_speeds([1.0; 4]);
    let with = |change: &dyn Fn(&mut String, &mut Option<String>, &mut PathBuf)| {
        error(&place, |request| {
            if let Source::Revisions {
                command,
                program,
                repository,
                ..
            } = &mut request.source
            {
                change(command, program, repository);
            }
        })
    };
    let text = with(&|command, _, _| command.clear());
    assert!(text.starts_with("an empty `--build`"), "{text}");
    for outside in ["/usr/bin/true", "../device", ""] {
        let text = with(&|_, program, _| *program = Some(outside.to_owned()));
        assert!(text.contains("is no path in the work tree"), "{text}");
    }
    let text = with(&|_, _, repository| *repository = "/".into());
    assert!(
        text.starts_with("/ is not in the work tree of a git repository"),
        "{text}"
    );
}

#[test]
fn an_end_that_does_not_build_is_named_with_its_output() {
    let place = Place::with_speeds([1.0; 4]);
    place.revision(4, "echo lane.c: no such function >&2\nexit 3");
    let mut work = place.begin(place.request(2)).unwrap();
    let error = work.make_ends().unwrap_err();
    assert!(
        matches!(error, BisectingError::End { end: "bad", .. }),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains("`sh ./build.sh` ended with exit status: 3\n  lane.c: no such function\n"),
        "{text}"
    );
    place.revision(5, "echo all is well > elsewhere");
    let mut request = place.request(3);
    if let Source::Revisions { command, .. } = &mut request.source {
        *command = "true".to_owned();
    }
    let mut work = place.begin(request).unwrap();
    let text = work.make_ends().unwrap_err().to_string();
    assert!(
        text.contains("builds, but leaves no program `device`"),
        "{text}"
    );
    place.has_no_work_tree();
}

#[test]
fn programs_that_cannot_be_bisected_are_refused() {
    let place = Place::with_speeds([1.0; 4]);
    let good = place.program("good", "speed 1");
    let of =
        |paths: Vec<PathBuf>| error(&place, |request| request.source = Source::Programs(paths));
    assert!(of(vec![good.clone()]).starts_with("a bisection of 1 program"));
    let missing = of(vec![good.clone(), "/nowhere/bad".into()]);
    assert!(
        missing.starts_with("cannot find the program /nowhere/bad: "),
        "{missing}"
    );
    let text = place.folder.path().join("text");
    fs::write(&text, "").unwrap();
    assert!(of(vec![good, text]).contains("is not a file that can be executed"));
}

#[test]
fn a_gate_that_no_bisection_can_ask_is_refused() {
    let refused = |gate: &str| {
        let error = Question::of(gate, &plan(), None).unwrap_err().to_string();
        assert!(error.contains("\nhelp: "), "{error}");
        error
    };
    for (gate, problem) in [
        (
            "tcp throughput >= 5 Gbit/s",
            "a limit of the figure itself in a gate about versions",
        ),
        (
            "tcp throughput drops > 2 % against baseline",
            "a reference in a gate about versions",
        ),
        (
            "tcp throughput drops > 2 %",
            "is about 2 cells of cipherbench: tcp/mtu=1500/cores=1/cipherbench",
        ),
        (
            "tcp mtu=1400 throughput drops > 2 %",
            "no cell here is `mtu=1400`",
        ),
        ("ping p99 rises > 2 %", "no cell here is `ping`"),
        (
            "tcp mtu=1500 p99 rises > 2 %",
            "`p99` is measured by no tcp trial",
        ),
        ("tcp mtu=1500 throughput falls > 2 %", "falls"),
    ] {
        let text = refused(gate);
        assert!(text.contains(problem), "{gate}: {text}");
    }
    let place = Place::with_speeds([1.0; 4]);
    let text = error(&place, |request| {
        request.gate = "tcp mtu=1500 throughput drops > 0 %".to_owned();
    });
    assert!(text.contains("too small or too large"), "{text}");
}

#[test]
fn a_device_without_a_program_and_a_lab_with_hosts_are_refused() {
    let gate = "tcp mtu=1500 throughput drops > 2 %";
    let of = |dut: &str| {
        Question::of(gate, &plan(), Some(dut))
            .unwrap_err()
            .to_string()
    };
    assert!(of("direct").starts_with("the device `direct` runs no program"));
    assert!(of("nothing").starts_with("the campaign has no device `nothing`"));
    let planned = |campaign: &str| {
        let campaign = campaign::from_text("campaign.yaml", campaign).unwrap();
        let host = HostFacts { cores: 4 };
        campaign.plan(&campaign.usual_lab(), &host).unwrap()
    };
    let direct = planned(&CAMPAIGN.replace(", cipherbench", ""));
    let error = Question::of(gate, &direct, None).unwrap_err().to_string();
    assert!(
        error.contains("is about no device with a program"),
        "{error}"
    );
    let two = planned(&CAMPAIGN.replace("direct", "wireguard-go"));
    let error = Question::of(gate, &two, None).unwrap_err().to_string();
    assert!(
        error.starts_with("several devices have a program: "),
        "{error}"
    );
    assert!(Question::of(gate, &two, Some("wireguard-go")).is_ok());
    let lab = LabFile::built_in_named("two-hosts").unwrap();
    let campaign = campaign::from_text("campaign.yaml", CAMPAIGN).unwrap();
    let far = campaign.plan(&lab, &HostFacts { cores: 4 }).unwrap();
    let error = Question::of(gate, &far, None).unwrap_err().to_string();
    assert!(
        error.starts_with("the lab `two-hosts` has hosts"),
        "{error}"
    );
}
