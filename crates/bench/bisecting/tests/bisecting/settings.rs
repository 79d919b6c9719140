//! A list of sets of settings.

use crate::support::{GATE, Place, Simulated, plan_of, to_end};
use bisecting::{BisectingError, End, Request, Source};

/// A campaign with two devices that have settings: `direct` has the sets with these names, each
/// another value of one parameter, and `equal`, which sets that of the first one.
fn campaign(sets: &[String]) -> String {
    let set = |name: &str, at: usize| {
        format!(
            "        {name}: {{ stations: {{ sysctls: {{ net.ipv4.tcp_rmem: 4096 8192 {at} }} }} }}\n"
        )
    };
    let each: String = (sets.iter().enumerate())
        .map(|(at, name)| set(name, 10_000 + at))
        .collect();
    format!(
        "campaign: bisected\nrepeats: 2\nduts:\n  - direct:\n      settings:\n{each}{}  - wireguard:\n      \
         settings: {{ usual: {{}}, small: {{ gateways: {{ ethtool: {{ gro: on }} }} }} }}\n  - cipherbench\ntrials:\n  \
         - tcp: {{ mtu: [1500 B, 9000 B], duration: 1 s, warmup: 0 s }}\n",
        set("equal", 10_000)
    )
}

/// Names of sets with their speeds in them.
fn named(speeds: impl IntoIterator<Item = f64>) -> Vec<String> {
    let speeds = speeds.into_iter().enumerate();
    speeds
        .map(|(at, speed)| format!("s{at}-speed-{speed}"))
        .collect()
}

fn request(place: &Place, sets: &[String]) -> Request {
    Request {
        plan: plan_of(&campaign(sets)),
        ..place.request_of(Source::Settings(sets.to_vec()))
    }
}

#[test]
fn the_guilty_set_of_a_list_is_named_with_its_settings() {
    let place = Place::empty();
    let sets = named((0..9).map(|at| if at < 6 { 1.0 } else { 0.8 }));
    let work = place.begin(request(&place, &sets)).unwrap();
    let conclusion = to_end(work, &mut Simulated::new(0.02, 1)).unwrap();
    assert_eq!(
        (conclusion.outcome, conclusion.first, conclusion.last),
        (End::Found, Some(6), Some(6))
    );
    assert_eq!(conclusion.dut, "direct");
    let text = conclusion.text();
    for words in [
        "changed by  s6-speed-0.8: stations net.ipv4.tcp_rmem = 4096 8192 10006\n",
        "before it   s5-speed-1: stations net.ipv4.tcp_rmem = 4096 8192 10005\n",
        " of 9, ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&conclusion.json()).unwrap();
    let version = &json["versions"][6];
    assert_eq!(version["kind"], "settings");
    assert_eq!(version["dut"], "direct s6-speed-0.8");
}

#[test]
fn sets_that_do_not_differ_or_are_swapped_are_said_before_others_are_measured() {
    let place = Place::empty();
    let measured_of = |sets: &[String], seed: u64| {
        let work = place.begin(request(&place, sets)).unwrap();
        let conclusion = to_end(work, &mut Simulated::new(0.01, seed)).unwrap();
        let measured: Vec<usize> = (0..sets.len())
            .filter(|at| conclusion.versions[*at].measured)
            .collect();
        assert_eq!(measured, [0, sets.len() - 1]);
        let text = conclusion.text();
        assert!(text.contains("nothing between them was measured"), "{text}");
        assert!(text.contains("measured    2 sets of 5"), "{text}");
        conclusion.outcome
    };
    assert_eq!(measured_of(&named([1.0; 5]), 2), End::NoChange);
    let swapped = named([0.8, 0.8, 0.8, 1.0, 1.0]);
    assert_eq!(measured_of(&swapped, 3), End::Swapped);
}

#[test]
fn a_set_that_cannot_be_measured_is_skipped_and_as_an_end_refused() {
    let place = Place::empty();
    let mut sets = named((0..9).map(|at| if at < 4 { 1.0 } else { 0.8 }));
    sets[3] = "refused".to_owned();
    let work = place.begin(request(&place, &sets)).unwrap();
    let conclusion = to_end(work, &mut Simulated::new(0.02, 4)).unwrap();
    assert_eq!((conclusion.first, conclusion.last), (Some(3), Some(4)));
    sets.truncate(4);
    let work = place.begin(request(&place, &sets)).unwrap();
    let error = to_end(work, &mut Simulated::new(0.02, 5)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the bad end, refused, cannot be measured: 3 trials in a row"),
        "{text}"
    );
    assert!(
        text.contains("name others, or correct the settings"),
        "{text}"
    );
}

#[test]
fn a_bisection_of_settings_that_broke_off_goes_on() {
    let place = Place::empty();
    let sets = named((0..9).map(|at| if at < 7 { 1.0 } else { 0.8 }));
    for after in [0, 9, 40] {
        let mut bench = Simulated::new(0.02, 1);
        bench.interrupted_after = Some(after);
        let mut work = place.begin(request(&place, &sets)).unwrap();
        work.make_ends().unwrap();
        let error = work.search(&mut bench).unwrap_err();
        assert!(matches!(error, BisectingError::BrokeOff { .. }), "{error}");
        let dir = work.dir().to_owned();
        drop(work);
        bench.interrupted_after = None;
        let conclusion = to_end(place.resume(&dir).unwrap(), &mut bench).unwrap();
        assert_eq!(
            (conclusion.outcome, conclusion.first),
            (End::Found, Some(7))
        );
        assert!(conclusion.pairs <= bench.trials / 2);
    }
}

#[test]
fn lists_of_sets_that_cannot_be_bisected_are_refused() {
    let place = Place::empty();
    let sets = named([1.0, 1.0, 0.8]);
    let refused = |change: &dyn Fn(&mut Request), names: &[&str]| {
        let mut request = request(&place, &sets);
        let names = names.iter().map(|name| (*name).to_owned());
        request.source = Source::Settings(names.collect());
        change(&mut request);
        let error = place.begin(request).err().expect("it is refused");
        let text = error.to_string();
        assert!(text.contains("\nhelp: "), "{text}");
        assert!(!place.folder.path().join("runs").exists(), "{text}");
        text
    };
    let [good, bad] = [&*sets[0], &*sets[2]];
    let of = |names: &[&str]| refused(&|_| (), names);
    assert!(of(&[good]).starts_with("a bisection of one set of settings"));
    assert!(of(&[good, bad, good]).starts_with("the set `s0-speed-1` is named twice"));
    let dut = |name: &'static str| move |request: &mut Request| request.dut = Some(name.to_owned());
    let unknown = refused(&dut("direct"), &[good, "nosuch"]);
    assert!(
        unknown.starts_with("`direct` has no settings `nosuch`\nhelp: its sets are s0-speed-1, "),
        "{unknown}"
    );
    let text = of(&[good, "nosuch"]);
    assert!(
        text.starts_with("no device has all of the sets s0-speed-1, nosuch"),
        "{text}"
    );
    assert!(text.contains("direct, wireguard: name one"), "{text}");
    let text = refused(&dut("cipherbench"), &[good, bad]);
    assert!(
        text.starts_with("the campaign has no device `cipherbench` with `settings`"),
        "{text}"
    );
    let text = of(&[good, "equal"]);
    assert!(
        text.starts_with("the sets of both ends are equal: `s0-speed-1` and `equal`"),
        "{text}"
    );
    let text = refused(
        &|request| request.plan = plan_of(crate::support::CAMPAIGN),
        &[good, bad],
    );
    assert!(
        text.starts_with("no device of the campaign has `settings`"),
        "{text}"
    );
    // The gate names the device as the campaign does.
    let with_gate = |gate: String| move |request: &mut Request| request.gate = gate.clone();
    let text = refused(
        &with_gate(GATE.replace("mtu", "dut=wireguard mtu")),
        &[good, bad],
    );
    assert!(text.contains("there is dut=direct"), "{text}");
    let mut fine = request(&place, &sets);
    fine.gate = GATE.replace("mtu", "dut=direct mtu");
    assert!(place.begin(fine).is_ok());
}
