//! All mistakes of campaigns, labs, and configurations of encryptors and KMEs.

use crate::error::SessionError;
use crate::kernel::{self, Lack};
use crate::{planning, programs, sysctls};
use campaign::{Campaign, HostFacts, Input, LabFile};
use guard::read_text;
use lab::programs::Missing;
use plan::{Demand, LabKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use units::human::counted;
use yaml::{Merged, Mistakes};

/// Checks files. Returns for each its summary, or all its mistakes.
///
/// Campaigns are checked as this host would run them, in `lab` and in every lab among the files;
/// without one, in the lab that `run` would use.
#[must_use]
pub fn check(
    paths: &[PathBuf],
    lab: Option<LabFile>,
    allowed: Option<&Allowed<'_>>,
) -> Vec<Result<Checked, String>> {
    let host = planning::host_facts();
    let files: Vec<_> = paths.iter().map(|path| read(path, &host)).collect();
    // All files are read before any campaign is checked: a lab counts for every campaign, in any
    // order of the arguments.
    let mut labs: Vec<LabFile> = lab.into_iter().collect();
    labs.extend(files.iter().flatten().filter_map(|file| match file {
        Content::Lab(lab) => Some((**lab).clone()),
        _ => None,
    }));
    let files = paths.iter().zip(files);
    files
        .map(|(path, file)| match file? {
            Content::Lab(lab) => {
                let name = &lab.plan().name;
                let unseen = unseen(std::slice::from_ref(&*lab));
                Ok(Checked::plain(format!("lab {name}{unseen}")))
            }
            Content::Campaign(campaign) => {
                let check = |it: &Campaign| {
                    let checked = in_labs(it, &fitting(it, &labs), &host)?;
                    if let Some(allowed) = allowed {
                        allowed.check(path, &checked.permissions)?;
                    }
                    Ok(checked)
                };
                match campaign.shortened() {
                    // The short form replaces keys, so each form can have mistakes that the other
                    // one has not. The summary is of the long form, which a run uses without
                    // `--quick`.
                    Some(short) => check(&short).and_then(|_| check(&campaign)),
                    None => check(&campaign),
                }
            }
            Content::Other(summary) => Ok(Checked::plain(summary)),
        })
        .collect()
}

/// The content of a file that has no mistakes by itself.
enum Content {
    Campaign(Box<Campaign>),
    Lab(Box<LabFile>),
    /// A configuration, in words.
    Other(String),
}

/// Longer than any list of permissions.
const ALLOWED_BYTES_MAX: usize = 1 << 20;

/// Keys that only the configuration of an encryptor has.
const OF_ENCRYPTOR: [&str; 4] = ["local", "remote", "peers", "tunnel"];

/// Reads a file as the kind that its keys indicate, or a shipped one if there is no file of that
/// name. Mistakes are followed by the assumed kind, except in a file with the key `campaign`.
fn read(path: &Path, host: &HostFacts) -> Result<Content, String> {
    if !path.exists() {
        let name = path.to_str();
        if let Some(campaign) = name.and_then(Campaign::built_in_named) {
            return Ok(Content::Campaign(Box::new(campaign)));
        }
        if let Some(lab) = name.and_then(LabFile::built_in_named) {
            return Ok(Content::Lab(Box::new(lab)));
        }
        planning::refuse_missing("campaign or lab", path)
            .map_err(|error| format!("error: {error}"))?;
    }
    let document = yaml::load(path).map_err(|mistakes| mistakes.to_string())?;
    let has = |key: &str| document.has_key(key);
    let taken_for =
        |kind: &'static str| move |mistakes: Mistakes| format!("{mistakes}, taken for {kind}");
    // Configurations are recognized before the loader of campaigns sees the file, which would
    // report all of their keys as unknown.
    if has("kmes") {
        let config = qkd::kme::Config::load(path);
        let kind = "the configuration of KMEs (`cipherbench kme`), since it has the key `kmes`";
        return config
            .map(|it| Content::Other(kmes(&it)))
            .map_err(taken_for(kind));
    }
    if !has("campaign") && !has("lab") && OF_ENCRYPTOR.into_iter().any(has) {
        let config = encryptor::Config::load(path);
        let kind =
            "the configuration of an encryptor (`cipherbench encrypt`), which has the key `local`";
        return config
            .map(|it| Content::Other(encryptor(&it)))
            .map_err(taken_for(kind));
    }
    match campaign::load_input(path, host) {
        Ok(Input::Campaign(campaign)) => Ok(Content::Campaign(Box::new(campaign))),
        Ok(Input::Lab(lab)) => Ok(Content::Lab(Box::new(lab))),
        // A file without either key is read as a campaign. If that fails, the guess itself may be
        // the mistake, so the message names it and the keys of the other kinds.
        Err(mistakes) if has("campaign") => Err(mistakes.to_string()),
        Err(mistakes) if has("lab") => {
            Err(taken_for("a lab, since it has the key `lab`")(mistakes))
        }
        Err(mistakes) => Err(taken_for(
            "a campaign, which has the key `campaign`; a lab has `lab`, the configuration of an encryptor `local`, \
             and that of KMEs `kmes`",
        )(mistakes)),
    }
}

fn kmes(config: &qkd::kme::Config) -> String {
    let names: Vec<_> = config.kmes.iter().map(|kme| kme.name.as_str()).collect();
    format!("configuration of KMEs: {}", names.join(", "))
}

fn encryptor(config: &encryptor::Config) -> String {
    format!(
        "configuration of an encryptor: {}, {}, {}",
        config.suite,
        counted(config.peers.len() as u64, "peer"),
        counted(config.workers, "worker")
    )
}

/// A file without mistakes.
#[derive(Debug)]
pub struct Checked {
    /// The file in a line.
    pub summary: String,
    /// The programs that a campaign needs in any of its labs, and that this host lacks.
    missing: Vec<Missing>,
    /// The features that a campaign needs in any of its labs, and that this host's kernel lacks.
    lacks: Vec<Lack>,
    /// The kernel parameters that it sets in any of its labs, and that this host's kernel lacks.
    unknown: Vec<String>,
    /// The number of its cells.
    cells: usize,
    /// Commands, code and files that it uses, except Cipherbench's programs.
    permissions: Vec<Demand>,
}

impl Checked {
    /// Returns a warning about the programs, kernel features and parameters that the campaign
    /// `path` needs and that this host lacks, if any.
    #[must_use]
    pub fn warning(&self, path: &Path) -> Option<String> {
        let subject = format!("{}: ", path.display());
        let programs = programs::warning(&subject, &self.missing, self.cells);
        let kernel = kernel::warning(&subject, &self.lacks, self.cells);
        let sysctls = sysctls::warning(&subject, &self.unknown);
        let all: String = [programs, kernel, sysctls].into_iter().flatten().collect();
        (!all.is_empty()).then_some(all)
    }

    const fn plain(summary: String) -> Self {
        Self {
            summary,
            missing: Vec::new(),
            lacks: Vec::new(),
            unknown: Vec::new(),
            cells: 0,
            permissions: Vec::new(),
        }
    }
}

/// The permissions file: lines with the commands, code and files that campaigns may use here.
#[derive(Debug)]
pub struct Allowed<'a> {
    path: &'a Path,
    lines: BTreeSet<String>,
}

impl<'a> Allowed<'a> {
    /// Reads the file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &'a Path) -> Result<Self, SessionError> {
        let text =
            read_text(path, ALLOWED_BYTES_MAX).map_err(|error| SessionError::Permissions {
                path: path.to_owned(),
                error,
            })?;
        let lines = text.lines().map(|line| line.trim().to_owned());
        Ok(Self {
            path,
            lines: lines.collect(),
        })
    }

    fn check(&self, campaign: &Path, permissions: &[Demand]) -> Result<(), String> {
        let mut others = permissions
            .iter()
            .filter(|demand| !self.lines.contains(demand.what.trim()));
        // One line is shown in full, so that it can be copied into the permissions file; the others
        // are counted.
        let Some(first) = others.next() else {
            return Ok(());
        };
        let more = match others.count() {
            0 => String::new(),
            more => format!("\n  and {}", counted(more as u64, "more such line")),
        };
        Err(format!(
            "error: {}: {} runs what {} does not allow\n  {}{more}\nhelp: whoever owns that file can allow it by that line",
            campaign.display(),
            first.place,
            self.path.display(),
            first.shown()
        ))
    }
}

/// Selects the labs for a campaign: device labs for a campaign of crypto devices, otherwise the
/// other labs; without a match, the lab that `run` would use.
fn fitting(campaign: &Campaign, labs: &[LabFile]) -> Vec<LabFile> {
    let of_devices = |lab: &&LabFile| lab.plan().kind == LabKind::Device;
    let fits = labs
        .iter()
        .filter(|lab| of_devices(lab) == campaign.tests_devices());
    let fitting: Vec<_> = fits.cloned().collect();
    if fitting.is_empty() {
        vec![campaign.usual_lab()]
    } else {
        fitting
    }
}

/// Returns the campaign's summary if all labs fit it; otherwise the mistakes, with the names of
/// the labs that cannot.
fn in_labs(campaign: &Campaign, labs: &[LabFile], host: &HostFacts) -> Result<Checked, String> {
    let mut refused: Vec<(Mistakes, Vec<&str>)> = Vec::new();
    let mut plan = None;
    let mut missing: Vec<Missing> = Vec::new();
    let mut lacks: Vec<Lack> = Vec::new();
    let mut unknown: Vec<String> = Vec::new();
    for lab in labs {
        match campaign.plan(lab, host) {
            Ok(made) => {
                for it in programs::missing_for(&made) {
                    // Labs share most programs. The warning names each once, with the cells of the
                    // first lab that needs it.
                    if missing.iter().all(|known| known.program != it.program) {
                        missing.push(it);
                    }
                }
                // The kernel is the same for every lab on this host: it is tried once.
                if lacks.is_empty() {
                    lacks = kernel::lacking(&made);
                }
                if unknown.is_empty() {
                    unknown = sysctls::unknown(&made);
                }
                plan = Some(made);
            }
            // Mistakes about the host are the same in every lab, and are reported once.
            Err(mistakes) => match refused.iter_mut().find(|(known, _)| *known == mistakes) {
                Some((_, names)) => names.push(&lab.plan().name),
                None => refused.push((mistakes, vec![&lab.plan().name])),
            },
        }
    }
    match plan.filter(|_| refused.is_empty()) {
        Some(plan) => Ok(Checked {
            summary: format!(
                "{}, in {}{}",
                planning::summary(&plan),
                lab_names(&names_of(labs)),
                unseen(labs)
            ),
            missing,
            lacks,
            unknown,
            cells: plan.cells.len(),
            permissions: plan.permissions(),
        }),
        None => Err(refusal(&refused)),
    }
}

/// The mistakes of a campaign in labs, each once with the labs that have it.
fn refusal(refused: &[(Mistakes, Vec<&str>)]) -> String {
    if let [(mistakes, names)] = refused {
        return format!("{mistakes}, checked in {}", lab_names(names));
    }
    // The help names the file of a lab.
    let mut all: Vec<(Merged<'_>, Vec<&str>)> = Vec::new();
    for (mistakes, names) in refused {
        for mistake in mistakes {
            // Texts of mistakes are compared without their places: one mistake may have another
            // place in each lab, and is then one paragraph with all of them.
            let known = all
                .iter()
                .position(|(known, _)| known.mistake.what == mistake.what);
            let at = known.unwrap_or_else(|| {
                all.push((Merged::of(mistake), Vec::new()));
                all.len() - 1
            });
            let (merged, labs) = &mut all[at];
            merged.add(&mistake.place);
            // These labs may have several mistakes with this text, and are named once.
            if labs.last() != names.last() {
                labs.extend(names);
            }
        }
    }
    let mut text = String::new();
    for (merged, labs) in &all {
        text += &format!("{merged}\nin {}\n\n", lab_names(labs));
    }
    let file = all
        .first()
        .map_or("", |(merged, _)| &*merged.mistake.place.file);
    let labs: usize = refused.iter().map(|(_, names)| names.len()).sum();
    let mistakes = counted(all.len() as u64, "mistake");
    text + &format!(
        "{mistakes} in {file}, checked in {}",
        counted(labs as u64, "lab")
    )
}

/// Describes the limits of the check for labs with hosts that only a run reaches.
fn unseen(labs: &[LabFile]) -> &'static str {
    if labs.iter().any(|lab| lab.plan().hosts.is_some()) {
        "; programs, cores and interfaces of its hosts are not looked at: `cipherbench doctor --lab FILE` does"
    } else {
        ""
    }
}

fn names_of(labs: &[LabFile]) -> Vec<&str> {
    labs.iter().map(|lab| lab.plan().name.as_str()).collect()
}

/// `lab namespaces`, `labs a, b`.
fn lab_names(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "lab" } else { "labs" };
    format!("{noun} {}", names.join(", "))
}
