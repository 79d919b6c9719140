//! A list of programs.

use crate::support::{Place, Simulated, to_end};
use bisecting::{End, Source};
use std::fs;

#[test]
fn the_guilty_program_of_a_list_is_named() {
    let place = Place::empty();
    let programs = (0..6).map(|at| {
        let speed = if at < 4 { 1.0 } else { 0.8 };
        place.program(&format!("device-{at}"), &format!("speed {speed} of {at}"))
    });
    let source = Source::Programs(programs.collect());
    let work = place.begin(place.request_of(source)).unwrap();
    let conclusion = to_end(work, &mut Simulated::new(0.02, 1)).unwrap();
    assert_eq!(
        (conclusion.outcome, conclusion.first),
        (End::Found, Some(4))
    );
    assert!(
        conclusion.text().contains("device-4\n"),
        "{}",
        conclusion.text()
    );
}

#[test]
fn equal_programs_at_both_ends_are_refused_before_anything_is_measured() {
    let place = Place::empty();
    let programs = ["a", "b", "c"].map(|name| place.program(name, "speed 1 of 1"));
    let source = Source::Programs(programs.to_vec());
    let mut work = place.begin(place.request_of(source)).unwrap();
    let error = work.make_ends().unwrap_err().to_string();
    assert!(
        error.starts_with("the programs of both ends are equal"),
        "{error}"
    );
}

#[test]
fn a_program_that_changes_meanwhile_is_refused() {
    let place = Place::empty();
    let programs = ["a", "b"].map(|name| place.program(name, &format!("speed 1 of {name}")));
    let work = place
        .begin(place.request_of(Source::Programs(programs.to_vec())))
        .unwrap();
    let dir = work.dir().to_owned();
    drop(work);
    fs::write(&programs[1], "speed 2 of b").unwrap();
    let mut work = place.resume(&dir).unwrap();
    let error = work.make_ends().unwrap_err().to_string();
    assert!(
        error.contains("/b has changed since the bisection began"),
        "{error}"
    );
}
