//! A repository of a made-up device, and a bench that knows its truth.

use bisecting::{
    BisectingError, Conclusion, Fault, Measured, Measurer, Request, Resume, Source, Subject, Work,
};
use campaign::HostFacts;
use plan::Plan;
use session::Reporter;
use session::progress::Board;
use stats::Quantity;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use testbed::{Interrupt, LabError};

pub(crate) const CAMPAIGN: &str = "\
campaign: bisected
repeats: 2
duts: [direct, cipherbench]
trials:
  - tcp: { mtu: [1500 B, 9000 B], duration: 1 s, warmup: 0 s }
";

pub(crate) const GATE: &str = "tcp mtu=1500 throughput drops > 2 %";

/// The built program is the file `device` with the speed in it.
pub(crate) const BUILD: &str = "sh ./build.sh";

pub(crate) fn plan() -> Plan {
    plan_of(CAMPAIGN)
}

pub(crate) fn plan_of(campaign: &str) -> Plan {
    let campaign = campaign::from_text("campaign.yaml", campaign).unwrap();
    let host = HostFacts { cores: 4 };
    campaign.plan(&campaign.usual_lab(), &host).unwrap()
}

pub(crate) fn reporter() -> Reporter {
    Reporter {
        is_quiet: true,
        write: |_| (),
        log: None,
        board: Board::default(),
    }
}

/// A repository, and the folders that bisections of it use.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

impl Place {
    /// A repository of revisions with these speeds, on one branch.
    pub(crate) fn with_speeds(speeds: impl IntoIterator<Item = f64>) -> Self {
        let place = Self::empty();
        for (at, speed) in speeds.into_iter().enumerate() {
            place.revision(at, &format!("echo 'speed {speed} of {at}' > device"));
        }
        place
    }

    pub(crate) fn empty() -> Self {
        let place = Self {
            folder: testing::folder().unwrap(),
        };
        fs::create_dir(place.repository()).unwrap();
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        place
    }

    /// Commits a revision whose build runs these lines of a shell.
    pub(crate) fn revision(&self, at: usize, build: &str) {
        // A few bytes that are its own, so that all programs differ.
        let text = format!("set -e\n{build}\nchmod +x device\n");
        fs::write(self.repository().join("build.sh"), text).unwrap();
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--message", &format!("revision {at}")]);
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    pub(crate) fn git(&self, words: &[&str]) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=Nobody",
                "-c",
                "user.email=nobody@example.org",
                "-C",
            ])
            .arg(self.repository())
            .args(words)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The hash of the revision so many before the last one.
    pub(crate) fn back(&self, count: usize) -> String {
        self.git(&["rev-parse", &format!("main~{count}")])
    }

    /// A bisection from the revision `back` steps before the last one.
    pub(crate) fn request(&self, back: usize) -> Request {
        self.request_of(Source::Revisions {
            repository: self.repository(),
            good: format!("main~{back}"),
            bad: "main".to_owned(),
            command: BUILD.to_owned(),
            program: Some("device".to_owned()),
            limit: Duration::from_secs(20),
            cache: Some(self.folder.path().join("cache")),
            afresh: false,
        })
    }

    pub(crate) fn request_of(&self, source: Source) -> Request {
        Request {
            plan: plan(),
            gate: GATE.to_owned(),
            dut: None,
            source,
            pairs_max: 2000,
            seed: 1,
            repeats: Some(0),
            out: self.folder.path().join("runs"),
            command: vec!["cipherbench".to_owned(), "bisect".to_owned()],
            program: "0".to_owned(),
        }
    }

    /// Bisects revisions to the end.
    pub(crate) fn bisect(&self, back: usize, bench: &mut Simulated) -> Conclusion {
        to_end(self.begin(self.request(back)).unwrap(), bench).unwrap()
    }

    pub(crate) fn begin(&self, request: Request) -> Result<Work, BisectingError> {
        Work::begin(request, &reporter(), &Interrupt::new())
    }

    pub(crate) fn resume(&self, dir: &Path) -> Result<Work, BisectingError> {
        let resume = Resume {
            dir,
            is_trusted: true,
            agrees: |_| None,
        };
        Work::resume(&resume, &reporter(), &Interrupt::new())
    }

    /// Revisions whose programs are in the cache, by the numbers in them.
    pub(crate) fn built(&self) -> BTreeSet<usize> {
        let cache = fs::read_dir(self.folder.path().join("cache"));
        let folders = cache.into_iter().flatten().flatten();
        let programs =
            folders.filter_map(|folder| fs::read_to_string(folder.path().join("device")).ok());
        programs
            .filter_map(|text| text.split_whitespace().last()?.parse().ok())
            .collect()
    }

    /// Asserts that no work tree is left.
    #[track_caller]
    pub(crate) fn has_no_work_tree(&self) {
        let trees = self.git(&["worktree", "list"]);
        assert_eq!(trees.lines().count(), 1, "{trees}");
    }

    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }
}

pub(crate) fn to_end(
    mut work: Work,
    bench: &mut dyn Measurer,
) -> Result<Conclusion, BisectingError> {
    work.make_ends()?;
    work.search(bench)?;
    work.conclude()
}

/// A bench whose figures are the speeds in the programs or names of sets, with scatter.
pub(crate) struct Simulated {
    scatter: f64,
    state: u64,
    /// Trials made.
    pub(crate) trials: usize,
    /// Trials after which the user interrupts.
    pub(crate) interrupted_after: Option<usize>,
    /// The share of trials, in per cent, that other work spoils.
    pub(crate) busy_percent: u64,
}

impl Simulated {
    pub(crate) fn new(scatter: f64, seed: u64) -> Self {
        Self {
            scatter,
            state: seed,
            trials: 0,
            interrupted_after: None,
            busy_percent: 0,
        }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Of a standard normal distribution, nearly: a sum of twelve.
    fn normal(&mut self) -> f64 {
        let sum: f64 = (0..12).map(|_| self.next() as f64 / u64::MAX as f64).sum();
        sum - 6.0
    }
}

impl Measurer for Simulated {
    fn measure(&mut self, subject: &Subject) -> Result<Measured, BisectingError> {
        self.trials += 1;
        if self
            .interrupted_after
            .is_some_and(|after| self.trials > after)
        {
            return Err(LabError::Interrupted.into());
        }
        let text = match subject {
            Subject::Program(program) => fs::read_to_string(program).unwrap(),
            Subject::Dut(dut) => dut.replace('-', " "),
        };
        let mut words = text.split_whitespace();
        let speed = words.find(|word| *word == "speed").and(words.next());
        let is_busy = self.next() % 100 < self.busy_percent;
        let figure = match speed.and_then(|speed| speed.parse::<f64>().ok()) {
            _ if is_busy => Err(Fault::Machine("others took a core".to_owned())),
            Some(speed) => {
                let noise = (self.scatter * self.normal()).exp();
                Ok((Quantity::PayloadThroughput, 5e9 * speed * noise))
            }
            None => Err(Fault::Version("the device did not start".to_owned())),
        };
        Ok(Measured {
            figure,
            trial: None,
        })
    }
}
