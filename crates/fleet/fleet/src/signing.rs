//! Signatures of jobs, and the keys that an agent trusts.
//!
//! A signature covers the job as it was submitted, as JSON without the signature, and the [`Terms`]
//! for running it: one fleet, an expiry date and, for a repeated job, a number of periods. One
//! signature is enough for all periods.
//!
//! An agent checks dates by its machine's clock, so a server cannot move them.

use crate::error::FleetError;
use crate::identity::{Identity, lines, text_of};
use crate::message::{Job, SIGNATURE_VERSION, Signature, Terms};
use guard::visible;
use nkeys::KeyPair;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Prefix of the signed bytes, so that no other message signed by the key is taken for a job.
const CONTEXT: &[u8] = b"cipherbench fleet job 2\n";
/// By how much the clocks of a submitter and an agent may differ, in seconds: a day and an hour.
pub(crate) const CLOCKS_DIFFER_MAX: u64 = 25 * 60 * 60;
/// The longest validity, in seconds: 400 days. An agent remembers a job for this time.
const VALID_MAX: u64 = 400 * 24 * 60 * 60;

/// Seconds since 1970, by this machine's clock.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// The signed bytes, as JSON.
#[derive(Serialize)]
struct Signed<'a> {
    terms: &'a Terms,
    job: &'a Job,
}

impl Terms {
    /// Returns the terms of a job that is signed now, for a fleet and the time `valid`.
    #[must_use]
    pub fn now(fleet: &str, valid: Duration, every: Option<u64>) -> Self {
        let signed_at = now();
        let valid = valid.as_secs();
        Self {
            fleet: fleet.to_owned(),
            signed_at,
            expires_at: signed_at.saturating_add(valid),
            periods: every.map_or(1, |every| valid / every.max(1) + 1),
        }
    }
}

impl Job {
    fn signed_bytes(&self, terms: &Terms) -> Vec<u8> {
        let mut job = self.clone();
        if job.period.is_some() {
            job.id = job.repeat_id().to_owned();
        }
        // The same bytes for every period, so that one signature covers all.
        (job.period, job.signature) = (None, None);
        let json = serde_json::to_vec(&Signed { terms, job: &job })
            .unwrap_or_else(|error| unreachable!("a job is maps, texts and numbers: {error}"));
        [CONTEXT, &json].concat()
    }

    /// Signs the job in its present form: a later change invalidates the signature.
    pub fn sign(&mut self, identity: &Identity, terms: Terms) {
        let signature = identity
            .key
            .sign(&self.signed_bytes(&terms))
            .unwrap_or_else(|error| unreachable!("an identity has its seed: {error}"));
        self.signature = Some(Signature {
            version: SIGNATURE_VERSION,
            terms,
            key: identity.public(),
            signature: base16ct::lower::encode_string(&signature),
        });
    }
}

/// Why a job is not run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Objection {
    pub(crate) reason: String,
    /// Whether it also holds at any later time.
    pub(crate) is_lasting: bool,
}

impl Objection {
    pub(crate) fn lasting(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_lasting: true,
        }
    }
}

/// The keys that an agent trusts to sign jobs, with their names.
#[derive(Debug, Clone)]
pub struct Trust(BTreeMap<String, String>);

impl Trust {
    /// Reads a file of lines `KEY NAME`; `#` begins a comment.
    ///
    /// # Errors
    /// When it cannot be read, or a line has no public key of a user.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        Self::parse(&text_of(path, "trusted keys")?, &path.display().to_string())
    }

    /// Parses the text of a file of trusted keys; `place` is its name in messages.
    ///
    /// # Errors
    /// When a line has no public key of a user.
    pub fn parse(text: &str, place: &str) -> Result<Self, FleetError> {
        let mut keys = BTreeMap::new();
        for line in lines(text, place) {
            let (key, name) = line
                .text
                .split_once(char::is_whitespace)
                .unwrap_or((&line.text, ""));
            let key = line.user_key(key, "write lines `KEY NAME`")?;
            keys.insert(key.to_owned(), name.trim().to_owned());
        }
        Ok(Self(keys))
    }

    /// Returns why an agent of this fleet does not run a job at the time `now`, in seconds since
    /// 1970.
    #[must_use]
    pub fn refusal(&self, job: &Job, fleet: &str, now: u64) -> Option<String> {
        let objection = self.objection(job, fleet, now);
        objection.map(|objection| objection.reason)
    }

    /// Returns why a job is not trusted in this fleet at the time `now`, in seconds since 1970.
    pub(crate) fn objection(&self, job: &Job, fleet: &str, now: u64) -> Option<Objection> {
        let Some(signature) = &job.signature else {
            let reason = "it is not signed, and this agent runs signed jobs only";
            return Some(Objection::lasting(reason));
        };
        self.objection_to_signature(job, signature)
            .or_else(|| objection_to_terms(job, &signature.terms, fleet))
            .map(Objection::lasting)
            .or_else(|| objection_to_time(job, &signature.terms, now))
    }

    fn objection_to_signature(&self, job: &Job, signature: &Signature) -> Option<String> {
        if signature.version != SIGNATURE_VERSION {
            return Some(format!(
                "its signature has version {} and this agent reads version {SIGNATURE_VERSION}, which names the fleet and \
                 the validity: submit it again with the agent's version of cipherbench",
                signature.version.max(1)
            ));
        }
        // Before the verification, which costs far more than a look-up.
        if !self.0.contains_key(&signature.key) {
            return Some(format!(
                "it is signed by {}, whose key this agent does not trust",
                visible(&signature.key)
            ));
        }
        let bytes = base16ct::mixed::decode_vec(&signature.signature).ok();
        let key = KeyPair::from_public_key(&signature.key);
        let signed = job.signed_bytes(&signature.terms);
        let is_right = bytes
            .zip(key.ok())
            .is_some_and(|(bytes, key)| key.verify(&signed, &bytes).is_ok());
        (!is_right).then(|| "its signature is not that of this job: it was changed".to_owned())
    }
}

/// Returns why the terms of a signed job exclude this fleet or this period.
fn objection_to_terms(job: &Job, terms: &Terms, fleet: &str) -> Option<String> {
    if terms.fleet != fleet {
        return Some(format!(
            "it is signed for the fleet {}, and this one is {}",
            visible(&terms.fleet),
            visible(fleet)
        ));
    }
    // Otherwise the list of jobs that ran would grow without a bound.
    if terms.expires_at.saturating_sub(terms.signed_at) > VALID_MAX {
        let days = VALID_MAX / 86_400;
        return Some(format!(
            "it is signed for more than the {days} days for which an agent remembers what it ran"
        ));
    }
    match (job.every, job.period) {
        (None, None) => None,
        (Some(_), Some(period)) if job.repeat_id() == job.id => {
            Some(format!("its id does not end with its period, {period:06}"))
        }
        (Some(_), Some(period)) if period < terms.periods => None,
        (Some(_), Some(period)) => Some(format!(
            "it is signed for {} periods, and this is period {period}, counted from 0",
            terms.periods
        )),
        (Some(_), None) => Some("it is a job that is repeated, without its period".to_owned()),
        (None, Some(_)) => Some("it is not repeated, and has a period".to_owned()),
    }
}

/// Returns why it is too early or too late for a signed job.
fn objection_to_time(job: &Job, terms: &Terms, now: u64) -> Option<Objection> {
    let (every, period) = (
        job.every.unwrap_or_default(),
        job.period.unwrap_or_default(),
    );
    let begins_at = terms.signed_at.saturating_add(every.saturating_mul(period));
    // Not lasting: the time comes, or a clock is set.
    if now.saturating_add(CLOCKS_DIFFER_MAX) < begins_at {
        let hours = (begins_at - now) / 3600;
        return Some(Objection {
            reason: format!(
                "its time begins in {hours} h by this machine's clock: see whether that and the submitter's are right"
            ),
            is_lasting: false,
        });
    }
    (now >= terms.expires_at).then(|| {
        let hours = (now - terms.expires_at) / 3600;
        Objection::lasting(format!(
            "its signature expired {hours} h ago by this machine's clock: submit it again, with a longer `--valid` if need be"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::{private_folder, write_whole};
    use crate::message::Selector;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn job() -> Job {
        Job {
            id: "1".to_owned(),
            name: "campaign.yaml".to_owned(),
            campaign: "campaign: x".to_owned(),
            quick: true,
            selector: Selector::default(),
            priority: 0,
            labels: BTreeMap::new(),
            by: "somebody".to_owned(),
            every: None,
            period: None,
            signature: None,
        }
    }

    fn trusting(folder: &Path, keys: &[String]) -> Trust {
        let file = folder.join("trust");
        let text = format!("# who\n{}\n", keys.join(" them\n"));
        write_whole(&file, text.as_bytes()).unwrap();
        Trust::read(&file).unwrap()
    }

    const NOW: u64 = 2_000_000_000;
    const DAY: u64 = 24 * 60 * 60;

    fn terms(periods: u64) -> Terms {
        Terms {
            fleet: "here".to_owned(),
            signed_at: NOW,
            expires_at: NOW + 30 * DAY,
            periods,
        }
    }

    #[test]
    fn only_the_signed_job_of_a_trusted_key_is_trusted() {
        let folder = private_folder();
        let ours = Identity::create(&folder.path().join("ours")).unwrap();
        let theirs = Identity::create(&folder.path().join("theirs")).unwrap();
        let trust = trusting(folder.path(), &[ours.public()]);
        let reason = |job: &Job| {
            let found = trust.objection(job, "here", NOW);
            found.map_or_else(String::new, |found| found.reason)
        };
        let mut signed = job();
        assert!(reason(&signed).contains("not signed"));
        signed.sign(&ours, terms(1));
        assert_eq!(reason(&signed), "");
        let changed = Job {
            campaign: "campaign: y".to_owned(),
            ..signed.clone()
        };
        assert!(reason(&changed).contains("it was changed"));
        let with = |change: &dyn Fn(&mut Signature)| {
            let mut forged = signed.clone();
            change(forged.signature.as_mut().unwrap());
            reason(&forged)
        };
        for signature in ["", "0", "zz", "é", &"0".repeat(128)] {
            let said = with(&|forged| forged.signature = signature.to_owned());
            assert!(said.contains("it was changed"), "{signature}");
        }
        // The terms cannot be changed either.
        for change in [
            &(|terms: &mut Terms| terms.fleet = "there".to_owned()) as &dyn Fn(&mut Terms),
            &|terms| terms.signed_at -= 1,
            &|terms| terms.expires_at += 1,
            &|terms| terms.periods += 1,
        ] {
            let said = with(&|forged| change(&mut forged.terms));
            assert!(said.contains("it was changed"), "{said}");
        }
        signed.sign(&theirs, terms(1));
        assert!(reason(&signed).contains(&theirs.public()));
    }

    #[test]
    fn a_signature_of_an_earlier_version_is_refused_with_what_to_do() {
        let folder = private_folder();
        let ours = Identity::create(&folder.path().join("ours")).unwrap();
        let trust = trusting(folder.path(), &[ours.public()]);
        let text = format!(r#"{{"key":"{}","signature":"00"}}"#, ours.public());
        let old = Job {
            signature: Some(serde_json::from_str(&text).unwrap()),
            ..job()
        };
        let reason = trust.objection(&old, "here", NOW).unwrap().reason;
        assert!(
            reason.contains("version 1 and this agent reads version 2"),
            "{reason}"
        );
        assert!(reason.contains("submit it again"), "{reason}");
    }

    #[test]
    fn a_signed_job_is_run_in_its_fleet_and_in_its_time_only() {
        let folder = private_folder();
        let ours = Identity::create(&folder.path().join("ours")).unwrap();
        let trust = trusting(folder.path(), &[ours.public()]);
        let mut signed = job();
        signed.sign(&ours, terms(1));
        let said = |fleet: &str, now: u64| {
            let found = trust.objection(&signed, fleet, now);
            found.map(|found| (found.reason, found.is_lasting))
        };
        assert_eq!(said("here", NOW + 30 * DAY - 1), None);
        // A clock that is wrong by a day is right enough.
        assert_eq!(said("here", NOW - DAY), None);
        let (early, is_lasting) = said("here", NOW - 2 * DAY).unwrap();
        assert!(early.contains("begins in 48 h") && !is_lasting, "{early}");
        let (late, is_lasting) = said("here", NOW + 31 * DAY).unwrap();
        assert!(late.contains("expired 24 h ago") && is_lasting, "{late}");
        let (elsewhere, _) = said("there", NOW).unwrap();
        assert!(
            elsewhere.contains("signed for the fleet here"),
            "{elsewhere}"
        );
        signed.sign(
            &ours,
            Terms {
                expires_at: u64::MAX,
                ..terms(1)
            },
        );
        let reason = trust.objection(&signed, "here", NOW).unwrap().reason;
        assert!(reason.contains("400 days"), "{reason}");
    }

    #[test]
    fn one_signature_is_enough_for_each_period_of_a_repeated_job_and_for_nothing_else() {
        let folder = private_folder();
        let ours = Identity::create(&folder.path().join("ours")).unwrap();
        let trust = trusting(folder.path(), &[ours.public()]);
        let objection = |job: &Job, now: u64| trust.objection(job, "here", now);
        let mut repeated = Job {
            every: Some(7 * DAY),
            ..job()
        };
        repeated.sign(&ours, terms(5));
        let third = repeated.in_period(3);
        assert_eq!(third.id, "1-000003");
        assert_eq!(objection(&third, NOW + 21 * DAY), None);
        // Not before its time, although the same signature is right then.
        let early = objection(&third, NOW).unwrap();
        assert!(early.reason.contains("begins in") && !early.is_lasting);
        let beyond = objection(&repeated.in_period(5), NOW + 29 * DAY).unwrap();
        assert!(beyond.reason.contains("5 periods"), "{beyond:?}");
        // The repeated job itself is not run as one more job.
        assert!(objection(&repeated, NOW).is_some());
        for id in ["2-000003", "1-3", "1-0000003", "1"] {
            let as_another = Job {
                id: id.to_owned(),
                ..third.clone()
            };
            assert!(objection(&as_another, NOW + 21 * DAY).is_some(), "{id}");
        }
        // A job that is not repeated gets no period.
        let mut once = job();
        once.sign(&ours, terms(1));
        for id in ["1", "1-000001"] {
            let again = Job {
                period: Some(1),
                id: id.to_owned(),
                ..once.clone()
            };
            assert!(objection(&again, NOW).is_some(), "{id}");
        }
    }

    #[test]
    fn a_file_of_trusted_keys_that_others_may_write_is_refused() {
        let folder = private_folder();
        let file = folder.path().join("trust");
        fs::write(&file, "").unwrap();
        let with = |mode: u32| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            Trust::read(&file).map_err(|error| error.to_string())
        };
        with(0o644).unwrap();
        for mode in [0o666, 0o646] {
            let error = with(mode).unwrap_err();
            assert!(
                error.contains("others than its owner may change it"),
                "{error}"
            );
        }
    }

    #[test]
    fn keys_are_read_back_and_a_line_without_one_is_named() {
        let folder = private_folder();
        let path = folder.path().join("key");
        let made = Identity::create(&path).unwrap();
        assert_eq!(Identity::read(&path).unwrap().public(), made.public());
        assert!(Identity::create(&path).is_err());
        let file = folder.path().join("trust");
        let text = format!("{} me\nUNSOUND you\n", made.public());
        write_whole(&file, text.as_bytes()).unwrap();
        let error = Trust::read(&file).unwrap_err().to_string();
        assert!(
            error.contains("trust:2: `UNSOUND` is no public key"),
            "{error}"
        );
        let error = Identity::read(&file).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("no NKey of a user")));
    }
}
