//! A bisection that broke off goes on where it was.

use crate::support::{Place, Simulated, reporter, to_end};
use bisecting::{BisectingError, End, FILE_NAME, Resume, Work};
use std::fs;
use testbed::Interrupt;

#[test]
fn a_bisection_that_broke_off_anywhere_ends_as_one_that_did_not() {
    let place = Place::with_speeds((0..17).map(|at| if at < 11 { 1.0 } else { 0.85 }));
    for after in [0, 1, 7, 30] {
        let mut bench = Simulated::new(0.02, 1);
        bench.interrupted_after = Some(after);
        let mut work = place.begin(place.request(16)).unwrap();
        work.make_ends().unwrap();
        let error = work.search(&mut bench).unwrap_err();
        assert!(matches!(error, BisectingError::BrokeOff { .. }), "{error}");
        let dir = work.dir().to_owned();
        drop(work);
        let shown = format!("cipherbench bisect --resume {}", dir.display());
        assert!(error.to_string().ends_with(&shown), "{error}");
        // Killed while a line was written.
        let path = dir.join(FILE_NAME);
        let mut lines = fs::read(&path).unwrap();
        lines.extend(br#"{"record":"tri"#);
        fs::write(&path, lines).unwrap();
        bench.interrupted_after = None;
        let work = place.resume(&dir).unwrap();
        let conclusion = to_end(work, &mut bench).unwrap();
        assert_eq!(
            (conclusion.outcome, conclusion.first),
            (End::Found, Some(11))
        );
        // Every pair that was complete is kept.
        assert!(
            conclusion.pairs <= bench.trials / 2,
            "{} {}",
            conclusion.pairs,
            bench.trials
        );
        // One that has ended is read, and measures nothing.
        let work = place.resume(&dir).unwrap();
        assert!(work.is_measured());
        let again = work.conclude().unwrap();
        assert_eq!(again.json(), conclusion.json());
    }
    place.has_no_work_tree();
}

#[test]
fn ctrl_c_during_a_build_ends_it_and_can_be_resumed() {
    let place = Place::empty();
    place.revision(0, "echo 'speed 1 of 0' > device");
    place.revision(1, "sleep 60\necho 'speed 1 of 1' > device");
    let interrupt = Interrupt::new();
    let mut work = Work::begin(place.request(1), &reporter(), &interrupt).unwrap();
    let setter = std::thread::spawn({
        let cache = place.folder.path().join("cache");
        move || {
            // The good end is built, the bad one hangs.
            while fs::read_dir(&cache).map_or(0, Iterator::count) < 2 {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            interrupt.set();
        }
    });
    let error = work.make_ends().unwrap_err();
    setter.join().unwrap();
    assert!(matches!(error, BisectingError::BrokeOff { .. }), "{error}");
    place.has_no_work_tree();
}

#[test]
fn a_changed_record_is_refused_and_a_foreign_one_needs_trust() {
    let place = Place::with_speeds([1.0, 0.5]);
    let mut work = place.begin(place.request(1)).unwrap();
    work.make_ends().unwrap();
    let dir = work.dir().to_owned();
    drop(work);
    let untrusted = Resume {
        dir: &dir,
        is_trusted: false,
        agrees: |question| {
            assert!(question.contains("build in "), "{question}");
            assert!(question.contains("sh ./build.sh"), "{question}");
            None
        },
    };
    let resumed = Work::resume(&untrusted, &reporter(), &Interrupt::new());
    let error = resumed.err().unwrap().to_string();
    assert!(error.contains("resume it with `--trust`"), "{error}");
    let path = dir.join(FILE_NAME);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("sh ./build.sh", "rm -rf  ./all")).unwrap();
    let error = place.resume(&dir).err().unwrap().to_string();
    assert!(
        error.contains("bisect.jsonl:1: the checksum does not fit"),
        "{error}"
    );
    let error = place.resume(place.folder.path()).err().unwrap().to_string();
    assert!(error.contains("has no bisection"), "{error}");
}
