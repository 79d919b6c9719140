//! The beginning of a bisection, and its continuation.

use super::{Work, records_path, replayed};
use crate::build::Builder;
use crate::figures::Figures;
use crate::git::Repository;
use crate::record::{BuildPlan, FILE_NAME, FORMAT, Header, Record};
use crate::{BisectingError, Question, Version, versions};
use bisect::{Bisection, Config};
use guard::RelativePath;
use journal::{Lines, run_dir};
use plan::{Adapter, Cell, Plan, WireGuardProgram};
use session::{Reporter, trust, unix_ns};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testbed::Interrupt;

/// The versions to bisect.
#[derive(Debug, Clone)]
pub enum Source {
    /// Revisions of a git repository.
    Revisions {
        /// A folder of the repository.
        repository: PathBuf,
        /// The good end.
        good: String,
        /// The bad end.
        bad: String,
        /// The command that builds one, for a shell in the top folder of its work tree.
        command: String,
        /// The program's path in the work tree; `None`: the usual one of the device.
        program: Option<String>,
        /// Longest time of a build.
        limit: Duration,
        /// Folder of built programs; `None`: the user's cache.
        cache: Option<PathBuf>,
        /// Whether programs in the cache are built again.
        afresh: bool,
    },
    /// Programs, from the good to the bad one.
    Programs(Vec<PathBuf>),
    /// Sets of the `settings` of a device, by their names, from the good to the bad one.
    Settings(Vec<String>),
}

/// A bisection to begin.
#[derive(Debug, Clone)]
pub struct Request {
    /// The campaign.
    pub plan: Plan,
    /// The change, as a gate.
    pub gate: String,
    /// The device; `None`: the only one with a program, or with the sets of settings.
    pub dut: Option<String>,
    /// The versions.
    pub source: Source,
    /// Most pairs before it ends undecided.
    pub pairs_max: u32,
    /// Seed of the order in each pair. It need not be secret, only not chosen.
    pub seed: u64,
    /// Repeats of all cells of the device at the end; `None`: the campaign's.
    pub repeats: Option<u32>,
    /// Folder of runs; the bisection gets a new folder in it.
    pub out: PathBuf,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Version and revision of this program.
    pub program: String,
}

/// A bisection to resume.
#[derive(Debug, Clone)]
pub struct Resume<'a> {
    /// Its folder.
    pub dir: &'a Path,
    /// Whether the commands in its journal are trusted.
    pub is_trusted: bool,
    /// Asks whether to go on; `None` if it cannot.
    pub agrees: fn(&str) -> Option<bool>,
}

impl Work {
    /// Begins a bisection: checks all that can be checked, and creates its folder. Nothing is
    /// built yet.
    ///
    /// # Errors
    /// A mistake in the request, or the folder cannot be written.
    pub fn begin(
        request: Request,
        reporter: &Reporter,
        interrupt: &Interrupt,
    ) -> Result<Self, BisectingError> {
        let (gate, dut) = (&request.gate, request.dut.as_deref());
        let question = || Question::of(gate, &request.plan, dut);
        let (question, versions, build, afresh) = match &request.source {
            Source::Programs(paths) => (question()?, versions::programs(paths)?, None, false),
            Source::Settings(names) => {
                let of = Question::of_settings(gate, &request.plan, dut, names)?;
                (of.0, of.1, None, false)
            }
            Source::Revisions {
                repository,
                good,
                bad,
                afresh,
                ..
            } => {
                let question = question()?;
                let repository = Repository::of(repository)?;
                // Before anything is built: a person who bisects with changes in the tree expects
                // them to be measured.
                repository.refuse_changes()?;
                let versions = repository.revisions(good, bad)?;
                let build = build_plan(&request.source, &repository, &request.plan, &question)?;
                (question, versions, Some(build), *afresh)
            }
        };
        let started_unix_ns = unix_ns();
        let config = Config {
            pairs_max: request.pairs_max,
            seed: request.seed,
            ..Config::new(versions.len(), question.change, question.size_ppm)
        };
        let bisection = Bisection::new(config.clone())?;
        let name = format!("bisect-{}", request.plan.name);
        // Last, after all that can be refused: a mistake leaves no folder.
        let dir = run_dir(&request.out, started_unix_ns, &name)?;
        let header = Header {
            format: FORMAT,
            started_unix_ns,
            command: request.command,
            program: request.program,
            config,
            question,
            versions,
            build,
            repeats: request.repeats.unwrap_or(request.plan.repeats),
            plan: request.plan,
        };
        let first = Record::Header(Box::new(header.clone()));
        let lines = Lines::create(records_path(&dir), &first)?;
        let builder = builder(&header, &dir, afresh)?;
        Ok(Self {
            dir,
            lines,
            header,
            bisection,
            builder,
            subjects: BTreeMap::new(),
            digest: None,
            reasons: BTreeMap::new(),
            figures: Figures::default(),
            faults: BTreeMap::new(),
            others: None,
            has_ended: false,
            reporter: reporter.clone(),
            interrupt: interrupt.clone(),
        })
    }

    /// Records that this user began it here, so that its programs and builds are run without a
    /// question when it is resumed.
    pub fn register(&self) {
        trust::register_digest(self.lines.first_digest(), &self.reporter);
    }

    /// Continues a bisection.
    ///
    /// # Errors
    /// When its records cannot be read, or were begun by somebody else and are not trusted.
    pub fn resume(
        resume: &Resume<'_>,
        reporter: &Reporter,
        interrupt: &Interrupt,
    ) -> Result<Self, BisectingError> {
        let dir = resume.dir;
        let path = records_path(dir);
        if !path.is_file() {
            return Err(BisectingError::mistake(
                format!(
                    "{} has no bisection: there is no {FILE_NAME}",
                    dir.display()
                ),
                "name the folder that `bisect` printed, such as runs/20261120T113000Z-bisect-quick",
            ));
        }
        let (lines, records) = Lines::append_to(path.clone())?;
        let (header, entries, replayed) = replayed(&path, records)?;
        if header.format != FORMAT {
            return Err(BisectingError::mistake(
                format!(
                    "{} has format {}, and this program reads format {FORMAT}",
                    path.display(),
                    header.format
                ),
                "use the version of cipherbench that wrote it",
            ));
        }
        // Before the question of trust: a person should not be asked about a journal that is
        // refused anyway.
        check(&header, &path)?;
        // From here on the journal decides on commands and paths of this machine.
        let demands = demands(&header);
        let journal = (lines.path(), lines.first_digest());
        trust::require_begun(journal, &demands, resume.is_trusted, resume.agrees)?;
        let bisection = Bisection::resume(header.config.clone(), &entries)?;
        let builder = builder(&header, dir, false)?;
        Ok(Self {
            dir: dir.to_owned(),
            lines,
            bisection,
            builder,
            subjects: BTreeMap::new(),
            digest: replayed.digest,
            reasons: replayed.reasons,
            figures: replayed.figures,
            faults: BTreeMap::new(),
            others: replayed.others,
            has_ended: replayed.has_ended,
            header,
            reporter: reporter.clone(),
            interrupt: interrupt.clone(),
        })
    }
}

/// Refuses a journal that no bisection could have written.
fn check(header: &Header, path: &Path) -> Result<(), BisectingError> {
    let mistake = |problem: String| {
        Err(BisectingError::mistake(
            format!("{}: {problem}", path.display()),
            "the file was changed; begin another bisection",
        ))
    };
    if let Some(problem) = header.plan.mistake() {
        return mistake(problem);
    }
    // Candidates become indices of versions below.
    if header.config.candidates != header.versions.len() {
        return mistake(format!(
            "a bisection of {} candidates with {} versions",
            header.config.candidates,
            header.versions.len()
        ));
    }
    let are_revisions = |version: &Version| matches!(version, Version::Revision { .. });
    if header.versions.iter().any(are_revisions) && header.build.is_none() {
        return mistake("revisions without a build".to_owned());
    }
    if !header
        .plan
        .cells
        .iter()
        .any(|cell| cell.id == header.question.cell)
    {
        return mistake("its cell is not in its plan".to_owned());
    }
    Ok(())
}

/// The commands and programs that it runs with this user's rights.
fn demands(header: &Header) -> Vec<String> {
    let mut demands: Vec<String> = header
        .plan
        .demands()
        .iter()
        .map(ToString::to_string)
        .collect();
    demands.extend(
        header
            .build
            .iter()
            // The folder belongs to the question: a command such as `make` runs the files that it
            // finds there.
            .map(|build| format!("build in {}: {}", build.repository, build.command)),
    );
    let programs = header.versions.iter().filter_map(|version| match version {
        Version::Program { path, .. } => Some(format!("program: {path}")),
        Version::Revision { .. } | Version::Settings { .. } => None,
    });
    demands.extend(programs);
    demands
}

fn builder(header: &Header, dir: &Path, afresh: bool) -> Result<Option<Builder>, BisectingError> {
    let Some(build) = &header.build else {
        return Ok(None);
    };
    Ok(Some(Builder {
        repository: Repository::of(Path::new(&build.repository))?,
        command: build.command.clone(),
        program: relative(&build.program)?,
        limit: Duration::from_nanos(build.limit_ns),
        cache: PathBuf::from(&build.cache),
        afresh,
        logs: dir.to_owned(),
    }))
}

fn relative(program: &str) -> Result<RelativePath, BisectingError> {
    RelativePath::new(program).map_err(|error| {
        BisectingError::mistake(
            format!("`--program {program}` is no path in the work tree: {error}"),
            "name the built program relative to the top of the repository, such as \
             `target/release/cipherbench`",
        )
    })
}

fn build_plan(
    source: &Source,
    repository: &Repository,
    plan: &Plan,
    question: &Question,
) -> Result<BuildPlan, BisectingError> {
    let Source::Revisions {
        command,
        program,
        limit,
        cache,
        ..
    } = source
    else {
        unreachable!("only revisions are built")
    };
    if command.trim().is_empty() {
        return Err(BisectingError::mistake(
            "an empty `--build`",
            "write the command that builds the device, such as `make` or `cargo build --release`",
        ));
    }
    let cell = plan.cells.iter().find(|cell| cell.id == question.cell);
    let usual = || cell.and_then(usual_program).map(str::to_owned);
    let Some(program) = program.clone().or_else(usual) else {
        return Err(BisectingError::mistake(
            format!(
                "where does the build leave the program of {}?",
                question.dut
            ),
            "name it relative to the top of the repository: `--program PATH`",
        ));
    };
    // Refused now, and not after the first build of perhaps half an hour.
    relative(&program)?;
    let cache = match cache {
        // The journal keeps it, and a resume may start in another folder.
        Some(cache) => {
            std::path::absolute(cache).map_err(|error| BisectingError::io("find", cache, error))?
        }
        None => user_cache()?,
    };
    let text = |path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(BisectingError::mistake(
            format!("the path {} is not UTF-8", path.display()),
            "rename the folder",
        )),
    };
    Ok(BuildPlan {
        repository: text(repository.top())?,
        command: command.clone(),
        program,
        limit_ns: plan::nanos(*limit),
        cache: text(&cache)?,
    })
}

/// The program that the usual build of a device leaves.
fn usual_program(cell: &Cell) -> Option<&'static str> {
    match &cell.dut.adapter {
        Adapter::Cipherbench(_) => Some("target/release/cipherbench"),
        Adapter::WireGuard(tunnel) => match tunnel.program {
            WireGuardProgram::Kernel => None,
            WireGuardProgram::Go => Some("wireguard-go"),
            WireGuardProgram::Boringtun => Some("target/release/boringtun-cli"),
            WireGuardProgram::Gotatun => Some("target/release/gotatun"),
        },
        Adapter::OpenVpn(_) => Some("src/openvpn/openvpn"),
        _ => None,
    }
}

/// `$XDG_CACHE_HOME/cipherbench/builds`, or below `~/.cache`.
fn user_cache() -> Result<PathBuf, BisectingError> {
    let absolute = |name| {
        // The XDG specification requires ignoring relative paths.
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    match cache {
        Some(cache) => Ok(cache.join("cipherbench/builds")),
        None => Err(BisectingError::mistake(
            "no folder for built programs: neither XDG_CACHE_HOME nor HOME is set",
            "name one with `--cache`",
        )),
    }
}
