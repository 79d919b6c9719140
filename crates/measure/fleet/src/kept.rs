//! What an agent's disk knows of its jobs.
//!
//! ```text
//! FOLDER/agent                    identity, made once
//! FOLDER/LAB/JOB/campaign.yaml    as submitted
//! FOLDER/LAB/JOB/job.json         the job, and what is known of its end
//! FOLDER/LAB/JOB/runs/RUN/        the run, as `cipherbench run` writes it
//! ```

use crate::error::FleetError;
use crate::message::{Held, Job};
use crate::random_word;
use crate::room;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// What a run's folder is known by.
pub(crate) const JOURNAL: &str = "journal.jsonl";
/// Without this much room no run begins or goes on: it would end in the midst of a trial.
const ROOM_MIN: u64 = 64 << 20;

/// What the record of a trial begins with in a journal.
const TRIAL: &[u8] = b"{\"record\":\"trial\"";

/// What an agent's disk knows of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) job: Job,
    pub(crate) held: Held,
    /// The program's exit code, once it has ended with a run.
    pub(crate) exit: Option<i32>,
    /// Whether the agent was stopped in order while it ran.
    pub(crate) stopped: bool,
    /// Trials in its journal when the attempt began.
    #[serde(default)]
    pub(crate) trials: usize,
}

impl Kept {
    /// A job that was taken, before its first run.
    pub(crate) const fn new(job: Job, held: Held) -> Self {
        Self {
            job,
            held,
            exit: None,
            stopped: false,
            trials: 0,
        }
    }
}

/// The folder of one lab.
pub(crate) struct Disk {
    folder: PathBuf,
}

impl Disk {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Whether too little room is left for a run, in words.
    pub(crate) fn lack(&self) -> Option<String> {
        // The lab's folder is made with its first job.
        let folders = self.folder.ancestors();
        let free = folders.map(room::free).find_map(Result::ok)?;
        (free < ROOM_MIN).then(|| {
            format!(
                "the disk of {} has {} left of the {} that a run needs",
                self.folder.display(),
                room::mebibytes(free),
                room::mebibytes(ROOM_MIN)
            )
        })
    }

    /// The job that an earlier start of the agent left.
    pub(crate) fn left(&self) -> Result<Option<Kept>, FleetError> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Ok(None);
        };
        for entry in entries.flatten() {
            let path = entry.path().join("job.json");
            let Ok(text) = fs::read(&path) else { continue };
            return serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| FleetError::Disk {
                    what: format!("cannot read {}", path.display()),
                    error: error.into(),
                });
        }
        Ok(None)
    }

    pub(crate) fn job_folder(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.job_folder(id).join("job.json").exists()
    }

    pub(crate) fn keep(&self, kept: &Kept) -> Result<(), FleetError> {
        let folder = self.job_folder(&kept.job.id);
        let write = || {
            fs::create_dir_all(&folder)?;
            write_whole(&folder.join("campaign.yaml"), kept.job.campaign.as_bytes())?;
            let text = serde_json::to_vec_pretty(kept)?;
            write_whole(&folder.join("job.json"), &text)
        };
        write().map_err(|error| FleetError::Disk {
            what: format!("cannot write into {}", folder.display()),
            error,
        })
    }

    pub(crate) fn forget(&self, id: &str) -> Result<(), FleetError> {
        let folder = self.job_folder(id);
        // First what makes it a job: half a folder is no job.
        let removed =
            fs::remove_file(folder.join("job.json")).and_then(|()| fs::remove_dir_all(&folder));
        removed.map_err(|error| FleetError::Disk {
            what: format!("cannot remove {}", folder.display()),
            error,
        })
    }

    /// Trials in the journal of a job's run.
    pub(crate) fn trials_of(&self, id: &str) -> usize {
        let journal = self.run_of(id).map(|run| run.join(JOURNAL));
        let Some(Ok(journal)) = journal.map(fs::File::open) else {
            return 0;
        };
        let lines = BufReader::new(journal).split(b'\n').map_while(Result::ok);
        lines.filter(|line| line.starts_with(TRIAL)).count()
    }

    /// The run's folder.
    pub(crate) fn run_of(&self, id: &str) -> Option<PathBuf> {
        let runs = fs::read_dir(self.job_folder(id).join("runs")).ok()?;
        let mut runs: Vec<PathBuf> = runs.flatten().map(|entry| entry.path()).collect();
        runs.retain(|run| run.join(JOURNAL).is_file());
        runs.sort();
        runs.pop()
    }
}

/// An identity that lasts as long as an agent's folder.
pub(crate) fn identity(folder: &Path) -> Result<String, FleetError> {
    let path = folder.join("agent");
    let disk = |error| FleetError::Disk {
        what: format!("cannot use {}", path.display()),
        error,
    };
    fs::create_dir_all(folder).map_err(disk)?;
    if let Ok(found) = fs::read_to_string(&path) {
        return Ok(found.trim().to_owned());
    }
    let host = nix::unistd::gethostname().map_or_else(
        |_| "host".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    let identity = format!("{host}-{}", random_word());
    write_whole(&path, identity.as_bytes()).map_err(disk)?;
    Ok(identity)
}

/// Replaces a file at once.
fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    io::Write::write_all(&mut file, content)?;
    file.sync_all()?;
    fs::rename(new, path)
}
