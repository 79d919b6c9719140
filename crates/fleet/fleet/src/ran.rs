//! The signed jobs that an agent ran, in a file of its folder: otherwise anyone who can write to
//! the server's queue could queue a signed job again when it has ended.

use crate::error::{FleetError, disk};
use crate::kept::write_whole;
use crate::message::Job;
use crate::queue::ATTEMPTS_MAX;
use crate::signing::CLOCKS_DIFFER_MAX;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The most jobs that an agent remembers; it takes no further signed jobs then.
const REMEMBERED_MAX: usize = 20_000;
/// The largest file, in bytes: enough for `REMEMBERED_MAX` jobs.
const FILE_BYTES_MAX: usize = 8 << 20;

/// The record of a job that began here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Began {
    /// Number of starts, without resumes.
    times: u32,
    /// Whether it has ended.
    ended: bool,
    /// When its signature expires, in seconds since 1970.
    expires_at: u64,
}

/// The signed jobs that began here, by id.
#[derive(Debug)]
pub(crate) struct Ran {
    path: PathBuf,
    all: RefCell<BTreeMap<String, Began>>,
}

impl Ran {
    /// Reads the file, without expired jobs.
    ///
    /// # Errors
    /// When it cannot be read: without it jobs would be run again.
    pub(crate) fn read(folder: &Path, now: u64) -> Result<Self, FleetError> {
        let path = folder.join("ran.json");
        let mut all: BTreeMap<String, Began> = match guard::read_bytes(&path, FILE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(disk("read", &path)(error)),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| FleetError::Mistake {
                file: path.display().to_string(),
                reason: error.to_string(),
                help: "without it signed jobs could be run again: remove it only once these have expired"
                    .to_owned(),
            })?,
        };
        // A clock that is set back makes a job valid again that has just expired.
        all.retain(|_, began| now <= began.expires_at.saturating_add(2 * CLOCKS_DIFFER_MAX));
        Ok(Self {
            path,
            all: RefCell::new(all),
        })
    }

    /// Returns why a job must not begin here.
    pub(crate) fn objection(&self, job: &Job) -> Option<String> {
        let all = self.all.borrow();
        match all.get(&job.id) {
            Some(began) if began.ended => Some(
                "it ran here already, and a signed job is run once: submit it again".to_owned(),
            ),
            // A job that ends its agent each time must not do so for ever.
            Some(began) if began.times >= ATTEMPTS_MAX => Some(format!(
                "it began here {} times already: submit it again",
                began.times
            )),
            None if all.len() >= REMEMBERED_MAX => Some(format!(
                "this agent remembers {REMEMBERED_MAX} signed jobs that have not expired, and takes no more: submit jobs \
                 with a shorter `--valid`"
            )),
            _ => None,
        }
    }

    /// Records that a job begins, before it does.
    pub(crate) fn begin(&self, job: &Job) -> Result<(), FleetError> {
        self.change(job, |began| began.times += 1)
    }

    /// Records that a job has ended, before the server is informed.
    pub(crate) fn end(&self, job: &Job) -> Result<(), FleetError> {
        self.change(job, |began| began.ended = true)
    }

    /// Changes the record of a job; jobs without a signature have none.
    fn change(&self, job: &Job, change: impl FnOnce(&mut Began)) -> Result<(), FleetError> {
        let Some(signature) = &job.signature else {
            return Ok(());
        };
        let mut all = self.all.borrow_mut();
        let began = all.entry(job.id.clone()).or_insert(Began {
            times: 0,
            ended: false,
            expires_at: signature.terms.expires_at,
        });
        change(began);
        let text = serde_json::to_vec(&*all)
            .unwrap_or_else(|error| unreachable!("a map of texts and numbers: {error}"));
        write_whole(&self.path, &text)
            // The folder too, or the rename may be lost in a crash and the job would run again.
            .and_then(|()| fs::File::open(self.path.parent().unwrap_or(Path::new("."))))
            .and_then(|folder| folder.sync_all())
            .map_err(disk("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Selector, Signature, Terms};

    fn job(id: &str, expires_at: u64) -> Job {
        Job {
            id: id.to_owned(),
            name: String::new(),
            campaign: String::new(),
            quick: false,
            selector: Selector::default(),
            priority: 0,
            labels: BTreeMap::new(),
            by: String::new(),
            every: None,
            period: None,
            signature: Some(Signature {
                version: 2,
                terms: Terms {
                    expires_at,
                    ..Terms::default()
                },
                key: String::new(),
                signature: String::new(),
            }),
        }
    }

    #[test]
    fn a_job_that_ended_is_not_begun_again_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (job("1", 1000), job("2", 1000));
        let ran = Ran::read(folder.path(), 500).unwrap();
        ran.begin(&one).unwrap();
        // It goes on elsewhere, and comes back.
        assert_eq!(ran.objection(&one), None);
        ran.end(&one).unwrap();
        ran.begin(&other).unwrap();
        let again = Ran::read(folder.path(), 600).unwrap();
        assert!(
            again
                .objection(&one)
                .is_some_and(|why| why.contains("run once"))
        );
        for _ in 0..2 {
            assert_eq!(again.objection(&other), None);
            again.begin(&other).unwrap();
        }
        assert!(
            again
                .objection(&other)
                .is_some_and(|why| why.contains("3 times"))
        );
        let later = Ran::read(folder.path(), 1000 + 3 * CLOCKS_DIFFER_MAX).unwrap();
        assert!(later.all.borrow().is_empty());
    }

    #[test]
    fn a_full_or_a_damaged_memory_refuses_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let ran = Ran::read(folder.path(), 0).unwrap();
        let began = Began {
            times: 1,
            ended: true,
            expires_at: 1000,
        };
        for number in 0..REMEMBERED_MAX {
            ran.all
                .borrow_mut()
                .insert(format!("{number:020}"), began.clone());
        }
        assert!(
            ran.objection(&job("new", 1000))
                .is_some_and(|why| why.contains("no more"))
        );
        ran.end(&job(&format!("{:020}", 1), 1000)).unwrap();
        // The file of a full memory can be read.
        assert!(Ran::read(folder.path(), 0).is_ok());
        fs::write(folder.path().join("ran.json"), "{").unwrap();
        let error = Ran::read(folder.path(), 0).unwrap_err().to_string();
        assert!(error.contains("ran.json: "), "{error}");
    }
}
