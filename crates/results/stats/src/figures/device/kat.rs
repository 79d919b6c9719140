//! The functional trial: whether every result of each algorithm was right.
//!
//! `pass` requires evidence: the algorithm has a row on every device and in every repeat, inputs
//! were tried, and all results were right. A wrong result in one repeat makes it wrong. An
//! algorithm without a row, or without tried inputs, is an error: its result is unknown.

use super::{DeviceTestInfo, Repeats};
use journal::record::{KatOutcome, KatRow};
use schemars::JsonSchema;
use serde::Serialize;

/// The result of a functional trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KatResult {
    /// Algorithms that passed on every device.
    pub passed: u32,
    /// Algorithms with a wrong result, or an error, on one of them.
    pub failed: u32,
    /// Algorithms that not every device offers.
    pub not_offered: u32,
    /// Each algorithm on each device, in the plan's order.
    pub algorithms: Vec<KatAlgorithm>,
}

/// An algorithm on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KatAlgorithm {
    /// `aes-128-cbc`.
    pub algorithm: String,
    /// Its kind, for people: `AES`, `Hash`.
    pub family: String,
    /// The device's name.
    pub member: String,
    /// The worst of its cases.
    pub verdict: KatVerdict,
    /// Inputs tried in all cases, of one repeat.
    pub tried: u64,
    /// Its cases, in the order made.
    pub cases: Vec<KatCase>,
}

/// One case: the worst of the repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KatCase {
    /// `vectors`, `empty`, `sizes`, `device encrypts, cpu decrypts` …
    pub case: String,
    /// Inputs tried.
    pub tried: u32,
    /// Its outcome.
    pub verdict: KatVerdict,
    /// Its repeat, from 1.
    pub repeat: u32,
    /// The first input with a wrong result: `vector 3`, `17 B`.
    pub input: Option<String>,
    /// Offset of the first differing byte; `null` if all are right, or the result has another
    /// length.
    pub first_differing_byte: Option<u32>,
    /// The expected and the actual result, or why it is missing.
    pub detail: Option<String>,
}

/// The outcome of a case; the worst of several is the last of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KatVerdict {
    /// No official vectors are published: nothing was tried.
    NonePublished,
    /// The device does not offer it.
    NotOffered,
    /// All right.
    Pass,
    /// The device reported a failure, or the result is unknown.
    Error,
    /// A wrong result.
    Wrong,
}

impl KatVerdict {
    /// A device's outcome of one case.
    #[must_use]
    pub const fn of(outcome: &KatOutcome) -> Self {
        match outcome {
            KatOutcome::Pass => Self::Pass,
            KatOutcome::Wrong { .. } => Self::Wrong,
            KatOutcome::Error(_) => Self::Error,
            KatOutcome::NotOffered(_) => Self::NotOffered,
            KatOutcome::NonePublished => Self::NonePublished,
        }
    }

    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NonePublished => "none published",
            Self::NotOffered => "not offered",
            Self::Pass => "pass",
            Self::Error => "error",
            Self::Wrong => "wrong",
        }
    }

    /// Whether it is a failure.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Error | Self::Wrong)
    }
}

impl KatResult {
    pub(super) fn of(asked: &[String], info: &DeviceTestInfo, repeats: &Repeats<'_>) -> Self {
        let of = |name: &String| -> Vec<KatAlgorithm> {
            let members = info.members.iter().enumerate();
            members
                .map(|(device, member)| KatAlgorithm::of(name, device, member, repeats))
                .collect()
        };
        let algorithms: Vec<Vec<KatAlgorithm>> = asked.iter().map(of).collect();
        let count = |wanted: fn(&[KatAlgorithm]) -> bool| {
            let found = algorithms.iter().filter(|devices| wanted(devices));
            u32::try_from(found.count()).unwrap_or(u32::MAX)
        };
        let failed = |devices: &[KatAlgorithm]| devices.iter().any(|one| one.verdict.is_failure());
        let passed =
            |devices: &[KatAlgorithm]| devices.iter().all(|one| one.verdict == KatVerdict::Pass);
        let (passed, failed) = (count(passed), count(failed));
        let all = u32::try_from(algorithms.len()).unwrap_or(u32::MAX);
        Self {
            passed,
            failed,
            // Each algorithm is in at most one of the two counts, as one that passed on all
            // devices failed on none.
            not_offered: all - passed - failed,
            algorithms: algorithms.into_iter().flatten().collect(),
        }
    }
}

impl KatAlgorithm {
    fn of(name: &str, device: usize, member: &str, repeats: &Repeats<'_>) -> Self {
        let mut cases: Vec<KatCase> = Vec::new();
        let mut silent = None;
        for (repeat, found) in repeats {
            let own = |row: &&KatRow| row.device == device && row.algorithm == name;
            let rows: Vec<&KatRow> = found.kat().iter().filter(own).collect();
            if rows.is_empty() {
                silent = silent.or(Some(*repeat));
            }
            for row in rows {
                let case = KatCase::of(*repeat, row);
                match cases.iter_mut().find(|known| known.case == case.case) {
                    // The first of equal repeats is reported.
                    Some(known) if known.verdict < case.verdict => *known = case,
                    Some(_) => {}
                    None => cases.push(case),
                }
            }
        }
        // A repeat without any row for the algorithm is an unknown result, which does not pass.
        if let Some(repeat) = silent {
            cases.push(KatCase {
                case: "all".into(),
                tried: 0,
                verdict: KatVerdict::Error,
                repeat,
                input: None,
                first_differing_byte: None,
                detail: Some("no result was recorded".into()),
            });
        }
        let worst = cases.iter().map(|case| case.verdict).max();
        Self {
            algorithm: name.to_owned(),
            family: family(name).to_owned(),
            member: member.to_owned(),
            verdict: worst.unwrap_or(KatVerdict::Error),
            tried: cases.iter().map(|case| u64::from(case.tried)).sum(),
            cases,
        }
    }
}

impl KatCase {
    fn of(repeat: u32, row: &KatRow) -> Self {
        let mut case = Self {
            case: row.case.clone(),
            tried: row.tried,
            verdict: KatVerdict::of(&row.outcome),
            repeat,
            input: None,
            first_differing_byte: None,
            detail: None,
        };
        match &row.outcome {
            // A case without inputs proves nothing.
            KatOutcome::Pass if row.tried == 0 => {
                case.verdict = KatVerdict::Error;
                case.detail = Some("nothing was tried".into());
            }
            KatOutcome::Pass | KatOutcome::NonePublished => {}
            KatOutcome::Wrong {
                input,
                first_differing,
                detail,
            } => {
                case.input = Some(input.clone());
                case.first_differing_byte = *first_differing;
                case.detail = Some(detail.clone());
            }
            KatOutcome::Error(why) | KatOutcome::NotOffered(why) => case.detail = Some(why.clone()),
        }
        case
    }
}

/// The kind of an algorithm, for people, by the prefix of its name; `Other` for an unknown prefix.
#[must_use]
pub fn family(algorithm: &str) -> &'static str {
    const MACS: &[&str] = &["hmac", "cmac", "omac", "imito"];
    const FAMILIES: &[(&str, &[&str])] = &[
        ("GOST", &["magma", "kuznyechik", "gost", "streebog"]),
        ("Hash", &["md5", "sha", "blake"]),
        ("AES", &["aes"]),
        ("ChaCha20", &["chacha"]),
        ("DES", &["des", "3des"]),
        ("RSA", &["rsa"]),
        ("ECDSA", &["ecdsa"]),
        ("EdDSA", &["ed25519", "ed448"]),
        ("Post-quantum", &["ml-kem", "ml-dsa", "slh-dsa"]),
    ];
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| algorithm.starts_with(prefix));
    if starts(MACS) {
        return "MAC";
    }
    let found = FAMILIES.iter().find(|(_, prefixes)| starts(prefixes));
    found.map_or("Other", |(name, _)| name)
}
