//! Simulated paths of known faults.

use super::*;
use crate::observed::Question;
use crate::setting::{FEATURES, Place};
use probe::{Check, Datagrams, Direction};
use proptest::prelude::*;
use std::convert::Infallible;
use testbed::NodeId;

const TCP: DirectedQuestion = DirectedQuestion {
    question: Question::Probe(Check::Tcp),
    direction: Direction::Up,
};
const UDP: DirectedQuestion = DirectedQuestion {
    question: Question::Probe(Check::Udp(Datagrams::Single)),
    direction: Direction::Up,
};
const UNCHECKED: DirectedQuestion = DirectedQuestion {
    question: Question::Probe(Check::Udp(Datagrams::Unchecked)),
    direction: Direction::Up,
};

/// The answers of a combination in force; the number of the trial makes noise.
type Path = Box<dyn Fn(&[u8], u64) -> Answers>;

struct Simulated {
    settings: Vec<Setting>,
    in_force: Vec<u8>,
    path: Path,
    trials: u64,
}

impl Subject for Simulated {
    type Error = Infallible;

    fn settings(&self) -> &[Setting] {
        &self.settings
    }

    fn apply(&mut self, row: &[u8]) -> Result<Vec<u8>, Infallible> {
        let mut row = row.to_vec();
        // As the kernel does: a feature is off without the features that it needs.
        for at in 0..row.len() {
            let off = |other: usize| self.settings[other].value(row[other]) == "off";
            let missing = (0..row.len())
                .any(|other| needs(&self.settings[at], &self.settings[other]) && off(other));
            if missing && self.settings[at].value(row[at]) == "on" {
                row[at] = 1 - row[at];
            }
        }
        self.in_force = row.clone();
        Ok(row)
    }

    fn answers(&mut self, only: Option<DirectedQuestion>) -> Result<Answers, Infallible> {
        self.trials += 1;
        let mut answers = (self.path)(&self.in_force, self.trials);
        answers.retain(|asked, _| only.is_none_or(|only| only == *asked));
        Ok(answers)
    }
}

fn settings() -> Vec<Setting> {
    let places = [
        (NodeId::A, "a0"),
        (NodeId::Gw1, "a1"),
        (NodeId::Gw1, "w0"),
        (NodeId::Gw2, "w1"),
    ];
    let features = FEATURES.iter().take(8);
    places
        .iter()
        .flat_map(|(node, interface)| {
            features.clone().map(|feature| Setting::Feature {
                at: Place {
                    node: *node,
                    interface: (*interface).to_owned(),
                },
                feature,
                // GRO and later ones are off at the beginning.
                found: feature.word != "gro" && feature.word != "rx-gro-hw",
            })
        })
        .collect()
}

fn good(bps: f64) -> Answer {
    Answer {
        bps: Some(bps),
        ..Answer::default()
    }
}

fn bad(words: &str) -> Answer {
    Answer {
        fault: Some(words.to_owned()),
        ..Answer::default()
    }
}

fn examined(path: Path) -> (Vec<Setting>, Examination) {
    let mut subject = Simulated {
        settings: settings(),
        in_force: Vec::new(),
        path,
        trials: 0,
    };
    let limit = Duration::from_secs(60);
    let result = examine(&mut subject, limit, &mut |_| ()).unwrap();
    assert!(subject.in_force.iter().all(|level| *level == 0), "reverted");
    (subject.settings, result)
}

/// Names of causes with their values.
fn names(settings: &[Setting], finding: &Finding) -> Vec<String> {
    let causes = finding.causes.iter();
    causes
        .map(|cause| {
            let setting = &settings[cause.factor];
            format!("{} {}", setting.name(), setting.value(cause.level))
        })
        .collect()
}

fn index(name: &str) -> usize {
    settings()
        .iter()
        .position(|setting| setting.name() == name)
        .unwrap()
}

/// A pseudo-random factor between 0.6 and 1: a busy machine.
fn noise(trial: u64) -> f64 {
    let mixed = trial.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    0.6 + 0.4 * (mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / (1u64 << 24) as f64
}

#[test]
fn a_path_without_fault_has_no_finding_on_a_busy_machine() {
    let (_, result) = examined(Box::new(|_, trial| {
        [
            (TCP, good(1e9 * noise(trial))),
            (UDP, good(2e8 * noise(trial + 7))),
        ]
        .into()
    }));
    assert_eq!(result.findings, []);
    assert_eq!(result.unexplained, Vec::<String>::new());
    assert_eq!(result.pairs_covered, result.pairs);
}

#[test]
fn one_setting_that_breaks_is_named_with_all_its_symptoms() {
    let tso = index("tso of gw1/w0");
    let (settings, result) = examined(Box::new(move |row, trial| {
        let answer = if row[tso] == 0 {
            bad("stalled")
        } else {
            good(1e9 * noise(trial))
        };
        [(TCP, answer.clone()), (UDP, answer)].into()
    }));
    let [finding] = &result.findings[..] else {
        panic!("{:?}", result.findings);
    };
    assert_eq!(names(&settings, finding), ["tso of gw1/w0 on"]);
    assert_eq!(finding.symptoms.len(), 2);
    assert!(finding.in_force && finding.confirmed);
}

#[test]
fn a_pair_that_breaks_is_named_as_a_pair() {
    let (tso, gro) = (index("tso of a/a0"), index("gro of gw1/a1"));
    let (settings, result) = examined(Box::new(move |row, _| {
        let fails = row[tso] == 0 && row[gro] == 1;
        [(TCP, if fails { bad("corrupted") } else { good(1e9) })].into()
    }));
    let [finding] = &result.findings[..] else {
        panic!("{:?}", result.findings);
    };
    assert_eq!(
        names(&settings, finding),
        ["tso of a/a0 on", "gro of gw1/a1 on"]
    );
    assert!(!finding.in_force, "GRO was found off");
}

#[test]
fn a_setting_that_slows_is_told_apart_from_noise() {
    let rx = index("rx of gw2/w1");
    let (settings, result) = examined(Box::new(move |row, trial| {
        let bps = if row[rx] == 0 { 1e9 } else { 2e8 };
        [(TCP, good(bps * noise(trial)))].into()
    }));
    let [finding] = &result.findings[..] else {
        panic!("{:?}", result.findings);
    };
    assert_eq!(names(&settings, finding), ["rx of gw2/w1 off"]);
    assert!(finding.symptoms[0].words.starts_with("slow: "));
}

/// The five faults that tests/replicas injects into real paths, by their symptoms.
#[test]
fn each_known_fault_of_an_offload_is_named() {
    let of = |datagrams| DirectedQuestion {
        question: Question::Probe(Check::Udp(datagrams)),
        direction: Direction::Up,
    };
    let (trains, marked) = (of(Datagrams::Trains), of(Datagrams::Marked));
    let (found, changed) = (0, 1);
    let faults = [
        // A tunnel that passes super-packets on whole, or a bridge that drops them.
        ("tso of gw1/w0", found, TCP, Some("stalled"), "on"),
        ("gso of gw1/w0", found, TCP, Some("lost"), "on"),
        // A GRO that merges across ECN and TTL.
        ("gro of gw1/a1", changed, marked, Some("corrupted"), "on"),
        // USO with a wrong length.
        (
            "tx-udp-segmentation of a/a0",
            found,
            trains,
            Some("lost"),
            "on",
        ),
        // Datagrams without a checksum that GRO does not join.
        ("gro of gw1/a1", found, UNCHECKED, None, "off"),
    ];
    for (name, level, asked, fault, value) in faults {
        let at = index(name);
        let (settings, result) = examined(Box::new(move |row, trial| {
            let answer = match fault {
                _ if row[at] != level => good(1e9 * noise(trial)),
                Some(words) => bad(words),
                None => good(1e8 * noise(trial)),
            };
            [(asked, answer), (UDP, good(2e8 * noise(trial + 7)))].into()
        }));
        let [finding] = &result.findings[..] else {
            panic!("{name}: {:?}", result.findings);
        };
        assert_eq!(names(&settings, finding), [format!("{name} {value}")]);
        assert!(finding.confirmed);
        assert_eq!(finding.symptoms[0].asked, asked);
    }
}

/// A path that is slow with a setting, but only in trials before this one: as while other programs
/// take the machine.
fn slow_before(trial: u64) -> Examination {
    let tso = index("tso of gw1/w0");
    let path: Path = Box::new(move |row, at| {
        let is_slow = row[tso] == 0 && (2..trial).contains(&at);
        [(TCP, good(if is_slow { 1e8 } else { 1e9 }))].into()
    });
    examined(path).1
}

#[test]
fn a_slow_rate_that_is_not_confirmed_has_no_cause() {
    let always = slow_before(u64::MAX);
    assert_eq!(always.findings.len(), 1);
    assert!(always.findings[0].confirmed);
    // The last trial is of the confirmation.
    let result = slow_before(u64::try_from(always.trials).unwrap());
    assert_eq!(result.findings, []);
    let [words] = &result.unexplained[..] else {
        panic!("{:?}", result.unexplained);
    };
    assert!(words.contains("`tso of gw1/w0` = on"), "{words}");
    assert!(words.contains("not confirmed"), "{words}");
}

/// TCP that goes on by timeouts only: its rate is a fault, though its words are of a slow one.
#[test]
fn a_rate_of_timeouts_is_confirmed_as_the_fault_that_it_is() {
    let tso = index("tso of gw1/w0");
    let (settings, result) = examined(Box::new(move |row, trial| {
        let bps = if row[tso] == 0 { 7.8e5 } else { 1.2e9 };
        [(TCP, good(bps * noise(trial)))].into()
    }));
    let [finding] = &result.findings[..] else {
        panic!("{result:?}");
    };
    assert_eq!(names(&settings, finding), ["tso of gw1/w0 on"]);
    assert!(finding.confirmed && finding.in_force);
    assert!(finding.symptoms[0].words.starts_with("slow: "));
}

#[test]
fn a_fault_that_is_there_whatever_is_set_has_no_cause() {
    let (_, result) = examined(Box::new(|_, _| {
        [
            (TCP, bad("stalled")),
            (UDP, good(1e9)),
            (UNCHECKED, good(1e8)),
        ]
        .into()
    }));
    let [finding] = &result.findings[..] else {
        panic!("{:?}", result.findings);
    };
    assert_eq!(finding.causes, []);
    let asked: Vec<DirectedQuestion> = finding
        .symptoms
        .iter()
        .map(|symptom| symptom.asked)
        .collect();
    assert_eq!(asked, [TCP, UNCHECKED]);
    assert!(finding.symptoms[1].words.contains("does not coalesce"));
}

#[test]
fn a_failure_that_is_not_repeated_is_no_finding() {
    let (_, result) = examined(Box::new(|_, trial| {
        [(
            TCP,
            if trial == 4 {
                bad("stalled")
            } else {
                good(1e9)
            },
        )]
        .into()
    }));
    assert_eq!(result.findings, []);
    assert!(
        result.unexplained[0].contains("not again"),
        "{:?}",
        result.unexplained
    );
}

#[test]
fn without_time_the_symptom_is_reported_without_a_cause() {
    let mut subject = Simulated {
        settings: settings(),
        in_force: Vec::new(),
        path: Box::new(|row, _| {
            [(
                TCP,
                if row[3] == 0 {
                    bad("stalled")
                } else {
                    good(1e9)
                },
            )]
            .into()
        }),
        trials: 0,
    };
    let result = examine(&mut subject, Duration::ZERO, &mut |_| ()).unwrap();
    assert_eq!((result.rows, result.findings.len()), (1, 0));
    assert!(result.unexplained[0].contains("no time left"));
    assert!(result.pairs_covered < result.pairs);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Two independent causes, each a setting or a pair.
    #[test]
    fn several_causes_are_all_found(
        first in prop::collection::btree_set(0usize..32, 1..3),
        second in prop::collection::btree_set(0usize..32, 1..3),
        values in any::<u32>(),
    ) {
        let settings = settings();
        // A cause is a feature that is on, and none that another needs or that contains the other.
        let free = |at: &usize| !["rx", "tx", "sg"].contains(&word(&settings[*at]));
        prop_assume!(first.iter().chain(&second).all(free));
        prop_assume!(first.is_disjoint(&second));
        let level = move |at: usize| (values >> at & 1) as u8;
        let with_levels = move |cause: &std::collections::BTreeSet<usize>| -> Vec<Level> {
            cause.iter().map(|&factor| Level { factor, level: level(factor) }).collect()
        };
        let (one, two) = (with_levels(&first), with_levels(&second));
        let causes = [one.clone(), two.clone()];
        let (_, result) = examined(Box::new(move |row, _| {
            let answer = |cause: &[Level]| if is_in(cause, row) { bad("lost") } else { good(1e9) };
            [(TCP, answer(&causes[0])), (UDP, answer(&causes[1]))].into()
        }));
        let found: Vec<_> = result.findings.iter().map(|finding| finding.causes.clone()).collect();
        // A feature that is off may lack another one, which is then as good a cause.
        let is_on = |cause: &Level| settings[cause.factor].value(cause.level) == "on";
        for cause in [one, two].into_iter().filter(|cause| cause.iter().all(is_on)) {
            prop_assert!(found.contains(&cause), "{:?} not in {:?}", cause, found);
        }
    }
}

fn word(setting: &Setting) -> &'static str {
    match setting {
        Setting::Feature { feature, .. } => feature.word,
        Setting::Mtu { .. } => "mtu",
    }
}
