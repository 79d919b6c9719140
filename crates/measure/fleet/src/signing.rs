//! Signatures of jobs, and the keys that an agent trusts.
//!
//! Signed is the job as it was submitted, as JSON without the signature; of a repeated one without
//! its period, so that one signature is enough for all.

use crate::error::FleetError;
use crate::identity::{Identity, lines};
use crate::message::{Job, Signature};
use nkeys::KeyPair;
use std::collections::BTreeMap;
use std::path::Path;

/// What is in front of the signed bytes, so that no other message of the key is taken for a job.
const CONTEXT: &[u8] = b"cipherbench fleet job\n";

impl Job {
    fn signed_bytes(&self) -> Vec<u8> {
        let mut job = self.clone();
        if job.period.is_some() {
            job.id = job.repeat_id().to_owned();
        }
        (job.period, job.signature) = (None, None);
        let json = serde_json::to_vec(&job)
            .unwrap_or_else(|error| unreachable!("a job is maps, texts and numbers: {error}"));
        [CONTEXT, &json].concat()
    }

    /// Signs it as it is: a later change makes the signature wrong.
    pub fn sign(&mut self, identity: &Identity) {
        let signature = identity
            .key
            .sign(&self.signed_bytes())
            .unwrap_or_else(|error| unreachable!("an identity has its seed: {error}"));
        self.signature = Some(Signature {
            key: identity.public(),
            signature: base16ct::lower::encode_string(&signature),
        });
    }
}

/// The keys whose jobs an agent runs.
#[derive(Debug, Clone)]
pub struct Trust(BTreeMap<String, String>);

impl Trust {
    /// Reads a file of lines `KEY NAME`; `#` begins a comment.
    ///
    /// # Errors
    /// When it cannot be read, or a line has no public key of a user.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        let mut keys = BTreeMap::new();
        for line in lines(path, "trusted keys")? {
            let (key, name) = line
                .text
                .split_once(char::is_whitespace)
                .unwrap_or((&line.text, ""));
            let key = line.user_key(key, "write lines `KEY NAME`")?;
            keys.insert(key.to_owned(), name.trim().to_owned());
        }
        Ok(Self(keys))
    }

    /// Why a job is not trusted.
    pub(crate) fn objection(&self, job: &Job) -> Option<String> {
        let Some(Signature { key, signature }) = &job.signature else {
            return Some("it is not signed, and this agent runs signed jobs only".to_owned());
        };
        if !self.0.contains_key(key) {
            return Some(format!(
                "it is signed by {}, whose key this agent does not trust",
                key.escape_debug()
            ));
        }
        let signature = base16ct::mixed::decode_vec(signature).ok();
        let key = KeyPair::from_public_key(key);
        let is_right = signature
            .zip(key.ok())
            .is_some_and(|(bytes, key)| key.verify(&job.signed_bytes(), &bytes).is_ok());
        (!is_right).then(|| "its signature is not that of this job: it was changed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Selector;
    use std::fs;

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
        fs::write(&file, format!("# who\n{}\n", keys.join(" them\n"))).unwrap();
        Trust::read(&file).unwrap()
    }

    #[test]
    fn only_the_signed_job_of_a_trusted_key_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let ours = Identity::create(&folder.path().join("ours")).unwrap();
        let theirs = Identity::create(&folder.path().join("theirs")).unwrap();
        let trust = trusting(folder.path(), &[ours.public()]);
        let objection = |job: &Job| trust.objection(job).unwrap_or_default();
        let mut signed = job();
        assert!(objection(&signed).contains("not signed"));
        signed.sign(&ours);
        assert_eq!(trust.objection(&signed), None);
        let changed = Job {
            campaign: "campaign: y".to_owned(),
            ..signed.clone()
        };
        assert!(objection(&changed).contains("it was changed"));
        for signature in ["", "0", "zz", "é", &"0".repeat(128)] {
            let mut forged = signed.clone();
            forged.signature = Some(Signature {
                key: ours.public(),
                signature: signature.to_owned(),
            });
            assert!(objection(&forged).contains("it was changed"), "{signature}");
        }
        signed.sign(&theirs);
        assert!(objection(&signed).contains(&theirs.public()));
    }

    #[test]
    fn one_signature_is_enough_for_each_period_of_a_repeated_job_and_for_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let ours = Identity::create(&folder.path().join("ours")).unwrap();
        let trust = trusting(folder.path(), &[ours.public()]);
        let mut repeated = Job {
            every: Some(60),
            ..job()
        };
        repeated.sign(&ours);
        let third = repeated.in_period(3);
        assert_eq!(third.id, "1-000003");
        assert_eq!(trust.objection(&third), None);
        let as_another = Job {
            id: "2-000003".to_owned(),
            ..third
        };
        assert!(trust.objection(&as_another).is_some());
        // One that is not repeated gets no period.
        let mut once = job();
        once.sign(&ours);
        let again = Job {
            period: Some(1),
            id: "1-000001".to_owned(),
            ..once
        };
        assert!(trust.objection(&again).is_some());
    }

    #[test]
    fn keys_are_read_back_and_a_line_without_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = Identity::create(&path).unwrap();
        assert_eq!(Identity::read(&path).unwrap().public(), made.public());
        assert!(Identity::create(&path).is_err());
        let file = folder.path().join("trust");
        fs::write(&file, format!("{} me\nUNSOUND you\n", made.public())).unwrap();
        let error = Trust::read(&file).unwrap_err().to_string();
        assert!(
            error.contains("trust:2: `UNSOUND` is no public key"),
            "{error}"
        );
        let error = Identity::read(&file).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("no NKey of a user")));
    }
}
