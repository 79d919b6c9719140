//! Programs of the same name by different makers, and versions that lack what trials need.
//!
//! A program is identified by its version output, not by its name: BusyBox and GNU inetutils have a
//! `ping` and a `traceroute` that lack options and print other lines than the trials read.

use super::{known, said_of_itself};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A feature that a trial needs beyond a program's basic function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    /// Nothing.
    Plain,
    /// A simultaneous transfer both ways.
    BothWays,
}

/// The requirements on a program.
struct Rule {
    /// Its name.
    program: &'static str,
    /// The maker's mark in the version output; empty if there is only one maker.
    maker: &'static str,
    /// The maker's name in messages.
    of: &'static str,
    /// The oldest version that works, and why; `None` if all do.
    oldest: Option<([u32; 2], &'static str)>,
    /// The oldest version that can transfer both ways simultaneously.
    both_ways: Option<[u32; 2]>,
}

const RULES: [Rule; 5] = [
    Rule {
        program: "ping",
        maker: "iputils",
        of: "iputils",
        oldest: None,
        both_ways: None,
    },
    Rule {
        program: "traceroute",
        maker: "Modern traceroute for Linux",
        of: "the package traceroute (\"Modern traceroute for Linux\")",
        oldest: None,
        both_ways: None,
    },
    Rule {
        program: "iperf3",
        maker: "iperf 3.",
        of: "ESnet",
        oldest: None,
        both_ways: Some([3, 11]),
    },
    Rule {
        program: "iperf",
        maker: "iperf version 2.",
        of: "iperf 2",
        oldest: None,
        both_ways: Some([2, 1]),
    },
    Rule {
        program: "nats-server",
        maker: "",
        of: "",
        oldest: Some((
            [2, 10],
            "the configuration of a fleet has settings that older ones refuse",
        )),
        both_ways: None,
    },
];

/// Makers of other programs of the same names.
const OTHERS: [(&str, &str); 3] = [
    ("BusyBox", "BusyBox"),
    ("inetutils", "GNU inetutils"),
    ("iperf 3.", "ESnet (iperf 3)"),
];

/// Explains why a program with this version output does not serve a use; `None` if it does, and for
/// programs without a rule.
pub(crate) fn unfit(name: &str, said: &str, usage: Use) -> Option<String> {
    let rule = RULES.iter().find(|rule| rule.program == name)?;
    if !said.contains(rule.maker) {
        let other = OTHERS.iter().find(|(words, _)| said.contains(words));
        let whose = other.map_or("an unknown maker", |(_, maker)| maker);
        return Some(format!(
            "`{name}` is the one of {whose}, which lacks options and prints other lines; install the one of {}",
            rule.of
        ));
    }
    // Without a version that can be read, the program is tried.
    let version = version(said)?;
    let found = version.map(|number| number.to_string()).join(".");
    if let Some((oldest, why)) = rule.oldest.filter(|(oldest, _)| version < *oldest) {
        let [major, minor] = oldest;
        return Some(format!(
            "`{name}` is version {found}, and {why}: needed is {major}.{minor} or newer"
        ));
    }
    let [major, minor] = rule
        .both_ways
        .filter(|oldest| usage == Use::BothWays && version < *oldest)?;
    Some(format!(
        "`{name}` is version {found}, which cannot measure both ways at once: needed is {major}.{minor} or newer"
    ))
}

/// Like [`unfit`], for a program on this machine, which is run once for its version.
pub(super) fn unfit_here(name: &str, path: &Path, usage: Use) -> Option<String> {
    static SAID: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    // A program without a rule is not run.
    RULES.iter().find(|rule| rule.program == name)?;
    let argument = known(name)?.version;
    // Locked while the program runs: a second caller awaits its answer and does not run it again.
    let mut all = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let said = all
        .entry(path.to_owned())
        .or_insert_with(|| said_of_itself(path, argument).unwrap_or_default());
    // A program that prints no version is tried: the trial reports its error.
    (!said.is_empty()).then(|| unfit(name, said, usage))?
}

/// Returns the argument that makes a program print its version; `None` if it has no rule.
pub(super) fn asked_by(name: &str) -> Option<&'static str> {
    RULES.iter().find(|rule| rule.program == name)?;
    Some(known(name)?.version)
}

/// The first two numbers of the first version in a text: `iperf 3.12 (cJSON 1.7.15)`.
fn version(said: &str) -> Option<[u32; 2]> {
    let words = said.split(|c: char| !(c.is_alphanumeric() || c == '.'));
    let mut versions = words.filter_map(|word| {
        let mut numbers = word.trim_start_matches('v').split('.');
        Some([numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?])
    });
    versions.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSYBOX: &str = "ping: invalid option -- 'V'\nBusyBox v1.35.0 (Debian 1:1.35.0-4+deb12u1+b1) multi-call binary.\n";

    #[test]
    fn a_program_is_known_by_its_maker() {
        for (name, said, whose) in [
            ("ping", BUSYBOX, "the one of BusyBox"),
            (
                "ping",
                "ping (GNU inetutils) 2.4\n",
                "the one of GNU inetutils",
            ),
            (
                "traceroute",
                "traceroute (GNU inetutils) 2.4\n",
                "the one of GNU inetutils",
            ),
            ("traceroute", BUSYBOX, "the one of BusyBox"),
            ("ping", "toybox 0.8\n", "an unknown maker"),
            (
                "iperf",
                "iperf 3.12 (cJSON 1.7.15)\n",
                "the one of ESnet (iperf 3)",
            ),
        ] {
            let problem = unfit(name, said, Use::Plain).unwrap();
            assert!(problem.contains(whose), "{problem}");
        }
        for (name, said) in [
            (
                "ping",
                "ping from iputils 20221126\nlibcap: yes, IDN: yes\n",
            ),
            (
                "traceroute",
                "Modern traceroute for Linux, version 2.1.2\nCopyright\n",
            ),
            ("iperf3", "iperf 3.9 (cJSON 1.7.13)\n"),
            ("iperf", "iperf version 2.1.8 (12 August 2022) pthreads\n"),
            ("nats-server", "nats-server: v2.15.1\n"),
            ("ip", "whatever"),
        ] {
            assert_eq!(unfit(name, said, Use::Plain), None, "{name}");
        }
    }

    #[test]
    fn an_old_version_is_named_with_the_one_that_is_needed() {
        let both = |name, said| unfit(name, said, Use::BothWays);
        let problem = both("iperf3", "iperf 3.9 (cJSON 1.7.13)\n").unwrap();
        assert!(
            problem.contains("version 3.9") && problem.contains("3.11 or newer"),
            "{problem}"
        );
        assert_eq!(both("iperf3", "iperf 3.11 (cJSON 1.7.13)\n"), None);
        assert_eq!(both("iperf3", "iperf 3.12 (cJSON 1.7.15)\n"), None);
        assert!(both("iperf", "iperf version 2.0.14a (2 Oct 2020)\n").is_some());
        assert_eq!(
            both("iperf", "iperf version 2.1.8 (12 August 2022)\n"),
            None
        );
        let problem = unfit("nats-server", "nats-server: v2.9.10\n", Use::Plain).unwrap();
        assert!(
            problem.contains("2.9") && problem.contains("2.10 or newer"),
            "{problem}"
        );
    }

    #[test]
    fn every_rule_is_of_a_known_program() {
        assert!(RULES.iter().all(|rule| known(rule.program).is_some()));
    }
}
