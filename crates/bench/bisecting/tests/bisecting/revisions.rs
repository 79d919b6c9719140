//! Revisions: the guilty one is named, few are built, nothing is left behind.

use crate::support::{Place, Simulated, to_end};
use bisecting::{BisectingError, End, Source};
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn the_guilty_revision_of_33_is_named_and_few_are_built() {
    let place = Place::with_speeds((0..33).map(|at| if at < 20 { 1.0 } else { 0.8 }));
    let conclusion = place.bisect(32, &mut Simulated::new(0.03, 1));
    assert_eq!(conclusion.outcome, End::Found);
    assert_eq!((conclusion.first, conclusion.last), (Some(20), Some(20)));
    let change = conclusion.change.unwrap();
    assert!(change.low < 0.8 && 0.8 < change.high, "{change:?}");
    assert!(conclusion.probability.unwrap() > 0.975);
    let built = place.built();
    assert!(
        built.len() <= 9 && built.contains(&20) && built.contains(&19),
        "{built:?}"
    );
    place.has_no_work_tree();
    let text = conclusion.text();
    let first = format!("changed by  {} revision 20\n", &place.back(12)[..12]);
    assert!(text.starts_with(&first), "{text}");
    assert!(text.contains(" Gbit/s, before "), "{text}");
    let json: serde_json::Value = serde_json::from_str(&conclusion.json()).unwrap();
    assert_eq!(json["outcome"], "found");
    assert_eq!(json["versions"][20]["commit"], place.back(12));
    assert_eq!(json["quantity"], "payload_throughput_bps");
}

#[test]
fn a_revision_of_32_that_costs_2_percent_is_named_at_a_scatter_of_2_percent() {
    let place = Place::empty();
    for at in 0..=32 {
        let speed = if at < 21 { 1.0 } else { 0.98 };
        let works = format!("echo 'speed {speed} of {at}' > device");
        // The search asks for the middle first.
        let broken = "echo lane.c: no such function >&2; exit 3";
        place.revision(at, if at == 16 { broken } else { &works });
    }
    let conclusion = place.bisect(32, &mut Simulated::new(0.02, 8));
    let text = conclusion.text();
    assert_eq!(conclusion.outcome, End::Found, "{text}");
    assert_eq!(
        (conclusion.first, conclusion.last),
        (Some(21), Some(21)),
        "{text}"
    );
    let change = conclusion.change.unwrap();
    assert!(change.low < 0.98 && change.high > 0.98, "{change:?}");
    assert!(conclusion.probability > Some(0.97), "{text}");
    assert!(text.contains("skipped     "), "{text}");
    assert!(
        text.contains("`sh ./build.sh` ended with exit status: 3"),
        "{text}"
    );
    // As few as without noise: five steps, both ends, the one before the change, the skipped one.
    assert!(place.built().len() <= 10, "{:?}", place.built());
    place.has_no_work_tree();
}

#[test]
fn without_a_difference_nothing_between_the_ends_is_built() {
    let place = Place::with_speeds([1.0; 9]);
    let conclusion = place.bisect(8, &mut Simulated::new(0.01, 2));
    assert_eq!(conclusion.outcome, End::NoChange);
    assert_eq!(place.built().into_iter().collect::<Vec<_>>(), [0, 8]);
    assert!(conclusion.text().contains("nothing between them was built"));
}

#[test]
fn swapped_ends_are_said_before_anything_between_is_built() {
    let place = Place::with_speeds((0..9).map(|at| if at < 5 { 0.8 } else { 1.0 }));
    let conclusion = place.bisect(8, &mut Simulated::new(0.01, 3));
    assert_eq!(conclusion.outcome, End::Swapped);
    assert_eq!(place.built().into_iter().collect::<Vec<_>>(), [0, 8]);
}

#[test]
fn revisions_that_do_not_build_hang_or_run_are_skipped() {
    let place = Place::empty();
    for at in 0..17 {
        let speed = if at < 8 { 1.0 } else { 0.7 };
        let works = format!("echo 'speed {speed} of {at}' > device");
        place.revision(
            at,
            match at {
                4 => "echo no such function >&2; exit 3",
                // In a process that outlives its shell.
                7 => "sleep 60 & wait",
                10 => "echo 'a device that does not start, of 10' > device",
                12 => "true || touch device; exit 0",
                _ => &works,
            },
        );
    }
    let mut request = place.request(16);
    if let Source::Revisions { limit, .. } = &mut request.source {
        *limit = Duration::from_secs(2);
    }
    let conclusion = to_end(place.begin(request).unwrap(), &mut Simulated::new(0.02, 4)).unwrap();
    // Revision 7 hangs, so that the change is in 7 or in 8.
    assert_eq!((conclusion.first, conclusion.last), (Some(7), Some(8)));
    let text = conclusion.text();
    assert!(
        text.contains("one of 2 revisions: all but the last cannot be measured"),
        "{text}"
    );
    assert!(text.contains("took longer than 2 s"), "{text}");
    place.has_no_work_tree();
    let reason = |at: usize| conclusion.versions[at].skipped.clone().unwrap_or_default();
    if !reason(4).is_empty() {
        assert!(reason(4).contains("ended with exit status: 3"), "{text}");
    }
    if !reason(10).is_empty() {
        assert!(
            reason(10).contains("3 trials in a row without a figure"),
            "{text}"
        );
    }
}

#[test]
fn two_changes_are_noticed() {
    let speed = |at| match at {
        0..5 => 1.0,
        5..12 => 0.8,
        _ => 0.6,
    };
    let place = Place::with_speeds((0..17).map(speed));
    let conclusion = place.bisect(16, &mut Simulated::new(0.02, 5));
    assert_eq!(conclusion.outcome, End::Found);
    assert!(
        [Some(5), Some(12)].contains(&conclusion.first),
        "{:?}",
        conclusion.first
    );
    assert!(
        conclusion.text().contains("another change: "),
        "{}",
        conclusion.text()
    );
}

#[test]
fn trials_that_other_work_spoils_are_made_again() {
    let place = Place::with_speeds((0..9).map(|at| if at < 3 { 1.0 } else { 0.8 }));
    let mut bench = Simulated::new(0.02, 6);
    bench.busy_percent = 40;
    assert_eq!(place.bisect(8, &mut bench).first, Some(3));
    let mut bench = Simulated::new(0.02, 6);
    bench.busy_percent = 100;
    let error = to_end(place.begin(place.request(8)).unwrap(), &mut bench).unwrap_err();
    assert!(matches!(error, BisectingError::BrokeOff { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("other programs or the hypervisor"),
        "{error}"
    );
}

#[test]
fn the_merges_of_a_branch_are_one_step_each() {
    let place = Place::with_speeds([1.0, 1.0, 1.0]);
    place.git(&["checkout", "--quiet", "-b", "side"]);
    for at in 3..6 {
        place.revision(at, &format!("echo 'speed 0.7 of {at}' > device"));
    }
    place.git(&["checkout", "--quiet", "main"]);
    place.git(&[
        "merge",
        "--quiet",
        "--no-ff",
        "--message",
        "merge side",
        "side",
    ]);
    place.revision(7, "echo 'speed 0.7 of 7' > device");
    let conclusion = place.bisect(4, &mut Simulated::new(0.01, 7));
    assert_eq!(conclusion.versions.len(), 5);
    assert_eq!(conclusion.first, Some(3));
    assert!(
        conclusion.text().contains("merge side"),
        "{}",
        conclusion.text()
    );
}

#[test]
fn a_build_leaves_no_process_behind() {
    let place = Place::empty();
    let mark = place.folder.path().display().to_string();
    for at in 0..2 {
        let left = format!("sh -c 'sleep 60; : {mark}' &");
        place.revision(at, &format!("{left}\necho 'speed 1 of {at}' > device"));
    }
    place.begin(place.request(1)).unwrap().make_ends().unwrap();
    let left = || -> Vec<String> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let commands =
            processes.filter_map(|it| fs::read_to_string(it.path().join("cmdline")).ok());
        commands.filter(|it| it.contains(&mark)).collect()
    };
    // Killed processes are gone a moment later.
    let end = Instant::now() + Duration::from_secs(10);
    while !left().is_empty() {
        assert!(Instant::now() < end, "{:?}", left());
        std::thread::sleep(Duration::from_millis(5));
    }
}
