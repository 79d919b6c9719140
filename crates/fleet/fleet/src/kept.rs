//! An agent's folder: its identity and its jobs.
//!
//! ```text
//! FOLDER/agent                    identity, made once
//! FOLDER/fleet                    id of the fleet for signed jobs, pinned at the first start
//! FOLDER/ran.json                 the signed jobs that began here
//! FOLDER/LAB/JOB/campaign.yaml    as submitted
//! FOLDER/LAB/JOB/job.json         the job, its attempt and its exit code
//! FOLDER/LAB/JOB/runs/RUN/        the run, as `cipherbench run` writes it
//! ```

use crate::error::{FleetError, disk};
use crate::message::{Assignment, Job};
use crate::random_word;
use crate::room;
use guard::{Component, visible};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file that identifies a run's folder.
pub(crate) const JOURNAL: &str = "journal.jsonl";
/// Free bytes below which no run begins or goes on: it would end in the middle of a trial.
const ROOM_MIN: u64 = 64 << 20;

/// The largest file with a fleet's id.
const PIN_BYTES_MAX: usize = 1024;
/// The beginning of a trial's record in a journal.
const TRIAL: &[u8] = b"{\"record\":\"trial\"";

/// A job in an agent's folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredJob {
    pub(crate) job: Job,
    pub(crate) held: Assignment,
    /// The program's exit code, once it has ended with a run.
    pub(crate) exit: Option<i32>,
    /// Whether the run ended because the agent was stopped or its disk was full: it does not count
    /// as an attempt.
    pub(crate) stopped: bool,
    /// Trials in its journal when the attempt began.
    #[serde(default)]
    pub(crate) trials: usize,
}

impl StoredJob {
    /// A job that was taken, before its first run.
    pub(crate) const fn new(job: Job, held: Assignment) -> Self {
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

    /// Returns a message if too little room is left for a run.
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

    /// Returns the job that an earlier start of the agent left.
    pub(crate) fn left(&self) -> Result<Option<StoredJob>, FleetError> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Ok(None);
        };
        for entry in entries.flatten() {
            let path = entry.path().join("job.json");
            // A folder without it was removed in part, or kept by `leave`.
            let Ok(text) = fs::read(&path) else { continue };
            return serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| disk("read", &path)(error.into()));
        }
        Ok(None)
    }

    /// Returns the folder of a job.
    ///
    /// # Errors
    /// When the id would lead out of the lab's folder.
    pub(crate) fn job_folder(&self, id: &str) -> Result<PathBuf, FleetError> {
        match Component::new(id) {
            Ok(name) => Ok(self.folder.join(name)),
            Err(error) => Err(FleetError::Unfit {
                what: "the id of a job".to_owned(),
                reason: error.to_string(),
            }),
        }
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        let folder = self.job_folder(id);
        folder.is_ok_and(|folder| folder.join("job.json").exists())
    }

    pub(crate) fn keep(&self, kept: &StoredJob) -> Result<(), FleetError> {
        let folder = self.job_folder(&kept.job.id)?;
        let write = || {
            fs::create_dir_all(&folder)?;
            // The campaign first: with `job.json` the job counts as kept.
            write_whole(&folder.join("campaign.yaml"), kept.job.campaign.as_bytes())?;
            let text = serde_json::to_vec_pretty(kept)?;
            write_whole(&folder.join("job.json"), &text)
        };
        write().map_err(disk("write into", &folder))
    }

    pub(crate) fn forget(&self, id: &str) -> Result<(), FleetError> {
        let folder = self.job_folder(id)?;
        // `job.json` first: without it, a folder that was removed in part is no job.
        let removed =
            fs::remove_file(folder.join("job.json")).and_then(|()| fs::remove_dir_all(&folder));
        removed.map_err(disk("remove", &folder))
    }

    /// Forgets a job, and keeps its run.
    pub(crate) fn leave(&self, id: &str) -> Result<(), FleetError> {
        let path = self.job_folder(id)?.join("job.json");
        fs::remove_file(&path).map_err(disk("remove", &path))
    }

    /// Returns the number of trials in the journal of a job's run.
    pub(crate) fn trials_of(&self, id: &str) -> usize {
        let journal = self.run_of(id).map(|run| run.join(JOURNAL));
        let Some(Ok(journal)) = journal.map(File::open) else {
            return 0;
        };
        let lines = BufReader::new(journal).split(b'\n').map_while(Result::ok);
        lines.filter(|line| line.starts_with(TRIAL)).count()
    }

    /// Returns the folder of a job's run.
    pub(crate) fn run_of(&self, id: &str) -> Option<PathBuf> {
        let runs = fs::read_dir(self.job_folder(id).ok()?.join("runs")).ok()?;
        let mut runs: Vec<PathBuf> = runs.flatten().map(|entry| entry.path()).collect();
        runs.retain(|run| run.join(JOURNAL).is_file());
        // Names begin with the time, so the last one is the newest.
        runs.sort();
        runs.pop()
    }
}

/// Returns the identity in an agent's folder, and makes it if absent.
pub(crate) fn identity(folder: &Path) -> Result<String, FleetError> {
    let path = folder.join("agent");
    let cannot = disk("use", &path);
    fs::create_dir_all(folder).map_err(cannot)?;
    if let Ok(found) = fs::read_to_string(&path) {
        return Ok(found.trim().to_owned());
    }
    let host = nix::unistd::gethostname().map_or_else(
        |_| "host".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    // The name is for people; the random word keeps two agents of one host apart.
    let identity = format!("{host}-{}", random_word());
    write_whole(&path, identity.as_bytes()).map_err(cannot)?;
    Ok(identity)
}

/// Checks that a fleet is the one pinned in this agent's folder. The first fleet is pinned.
///
/// # Errors
/// When it is another fleet: jobs that were signed for it may have run already.
pub(crate) fn pin(folder: &Path, url: &str, fleet: &str) -> Result<(), FleetError> {
    let path = folder.join("fleet");
    let cannot = disk("use", &path);
    match guard::read_text(&path, PIN_BYTES_MAX) {
        Ok(known) if known.trim() == fleet => Ok(()),
        // A job that ran here would run again in a fleet that does not know it.
        Ok(known) => Err(FleetError::Foreign {
            what: format!(
                "the fleet at {url} is {fleet}, and this agent has run signed jobs of the fleet {}",
                visible(known.trim())
            ),
            help: format!(
                "reach that one (--url); if it was replaced on purpose, remove {}",
                path.display()
            ),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            write_whole(&path, fleet.as_bytes()).map_err(cannot)
        }
        Err(error) => Err(cannot(error)),
    }
}

/// Replaces a file atomically; only its owner can read it.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    // In the same folder, as a rename is atomic within a file system only.
    let new = path.with_extension("new");
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    io::Write::write_all(&mut file, content)?;
    file.sync_all()?;
    fs::rename(new, path)
}

/// Makes a folder that only its owner can change, under any umask.
#[cfg(test)]
pub(crate) fn private_folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(mode).tempdir();
    folder.unwrap_or_else(|error| panic!("no temporary folder: {error}"))
}
