//! All mistakes of campaigns, labs, and configurations of encryptors and KMEs.

mod summary;

pub use summary::{CheckSummary, check_summary};

use crate::error::SessionError;
use crate::kernel::{self, Lack};
use crate::{planning, programs, sysctls};
use campaign::{Campaign, HostFacts, Input, LabFile};
use guard::read_text;
use lab::programs::Missing;
use plan::{Demand, LabKind};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use units::human::counted;
use yaml::{Merged, Mistakes};

/// Checks files. Returns for each its summary, or all its mistakes.
///
/// Campaigns are checked as this host would run them: in `lab`, which they must fit, and in the
/// labs among the files, of which they must fit one; without a lab, in the one that `run` would
/// use.
#[must_use]
pub fn check(
    paths: &[PathBuf],
    lab: Option<LabFile>,
    allowed: Option<&Allowed<'_>>,
) -> Vec<Result<Checked, Refused>> {
    let host = planning::host_facts();
    let files: Vec<_> = paths.iter().map(|path| read(path, &host)).collect();
    // All files are read before any campaign is checked: a lab counts for every campaign, in any
    // order of the arguments.
    let named = lab.clone();
    let mut labs: Vec<LabFile> = lab.into_iter().collect();
    labs.extend(files.iter().flatten().filter_map(|file| match file {
        Content::Lab(lab) => Some((**lab).clone()),
        _ => None,
    }));
    let files = paths.iter().zip(files);
    files
        .map(|(path, file)| match file? {
            Content::Lab(lab) => Ok(Checked {
                has_hosts: lab.plan().hosts.is_some(),
                ..Checked::plain(format!("lab {}", lab.plan().name))
            }),
            Content::Campaign(campaign) => {
                let check = |it: &Campaign| {
                    let checked = in_labs(it, (&fitting(it, &labs), named.as_ref()), &host)?;
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
fn read(path: &Path, host: &HostFacts) -> Result<Content, Refused> {
    if !path.exists() {
        let name = path.to_str();
        if let Some(campaign) = name.and_then(Campaign::built_in_named) {
            return Ok(Content::Campaign(Box::new(campaign)));
        }
        if let Some(lab) = name.and_then(LabFile::built_in_named) {
            return Ok(Content::Lab(Box::new(lab)));
        }
        planning::refuse_missing("campaign or lab", path)
            .map_err(|error| Refused::whole(format!("error: {error}")))?;
    }
    let document = yaml::load(path).map_err(|mistakes| Refused::of(&mistakes, ""))?;
    let has = |key: &str| document.has_key(key);
    let taken_for = |kind: &'static str| {
        move |mistakes: Mistakes| Refused::of(&mistakes, &format!(", taken for {kind}"))
    };
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
        Err(mistakes) if has("campaign") => Err(Refused::of(&mistakes, "")),
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
    /// Whether it is a lab with hosts that only a run reaches, or was checked in one.
    has_hosts: bool,
    /// The number of labs that the campaign does not fit, of several that were given.
    unfit: usize,
}

/// A file with mistakes.
#[derive(Debug)]
pub struct Refused {
    /// All of them, each with its place.
    whole: String,
    /// The first one, and the number of all.
    short: String,
}

impl Refused {
    fn whole(text: String) -> Self {
        Self {
            short: text.clone(),
            whole: text,
        }
    }

    /// `end` follows the number of mistakes.
    fn of(mistakes: &Mistakes, end: &str) -> Self {
        let merged = mistakes.merged();
        let count = mistakes.count();
        let short = match merged.as_slice() {
            [first, _, ..] => format!(
                "{first}\nand {} in {}{end}",
                counted((count - 1 - first.others.len()) as u64, "other mistake"),
                first.mistake.place.file
            ),
            _ => format!("{mistakes}{end}"),
        };
        Self {
            whole: format!("{mistakes}{end}"),
            short,
        }
    }
}

/// All mistakes.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole)
    }
}

impl Checked {
    const fn plain(summary: String) -> Self {
        Self {
            summary,
            has_hosts: false,
            unfit: 0,
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

    fn check(&self, campaign: &Path, permissions: &[Demand]) -> Result<(), Refused> {
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
        Err(Refused::whole(format!(
            "error: {}: {} runs what {} does not allow\n  {}{more}\nhelp: whoever owns that file can allow it by that line",
            campaign.display(),
            first.place,
            self.path.display(),
            first.shown()
        )))
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

/// Returns the campaign's summary if it fits a lab, and the `named` one if there is one; otherwise
/// the mistakes, with the names of the labs that cannot.
fn in_labs(
    campaign: &Campaign,
    (labs, named): (&[LabFile], Option<&LabFile>),
    host: &HostFacts,
) -> Result<Checked, Refused> {
    let mut fit: Vec<&LabFile> = Vec::new();
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
                fit.push(lab);
            }
            // Mistakes about the host are the same in every lab, and are reported once.
            Err(mistakes) => match refused.iter_mut().find(|(known, _)| *known == mistakes) {
                Some((_, names)) => names.push(&lab.plan().name),
                None => refused.push((mistakes, vec![&lab.plan().name])),
            },
        }
    }
    // The option names the lab of a run. Several files are the labs of a folder, and a campaign
    // need not be meant for all of them.
    let must_fit = named.filter(|named| labs.contains(named));
    let is_fit = must_fit.is_none_or(|named| fit.contains(&named));
    match plan.filter(|_| is_fit) {
        Some(plan) => Ok(Checked {
            summary: format!(
                "{}, in {}",
                planning::summary(&plan),
                of_labs(&fit, labs.len())
            ),
            missing,
            lacks,
            unknown,
            cells: plan.cells.len(),
            permissions: plan.permissions(),
            has_hosts: fit.iter().any(|lab| lab.plan().hosts.is_some()),
            unfit: labs.len() - fit.len(),
        }),
        None => Err(refusal(&refused)),
    }
}

/// `lab namespaces`, `labs a, b`, `12 of 15 labs`.
fn of_labs(fit: &[&LabFile], all: usize) -> String {
    /// More names are counted.
    const NAMED_MAX: usize = 3;
    let names: Vec<&str> = fit.iter().map(|lab| lab.plan().name.as_str()).collect();
    match names.len() {
        1..=NAMED_MAX if all == names.len() => lab_names(&names),
        1..=NAMED_MAX => format!("{} of {all} labs", names.join(", ")),
        count if count == all => format!("all {all} labs"),
        count => format!("{count} of {all} labs"),
    }
}

/// The mistakes of a campaign in labs, each once with the labs that have it.
fn refusal(refused: &[(Mistakes, Vec<&str>)]) -> Refused {
    if let [(mistakes, names)] = refused {
        return Refused::of(mistakes, &format!(", checked in {}", lab_names(names)));
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
    let end = format!(
        "{mistakes} in {file}, checked in {}",
        counted(labs as u64, "lab")
    );
    // The one that most labs have.
    let most = all.iter().rev().max_by_key(|(_, labs)| labs.len());
    let most = most.map_or_else(String::new, |(merged, labs)| {
        format!(
            "{}\nin {}\n",
            merged.mistake,
            counted(labs.len() as u64, "lab")
        )
    });
    Refused {
        whole: text + &end,
        short: most + &end,
    }
}

/// `lab namespaces`, `labs a, b`.
fn lab_names(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "lab" } else { "labs" };
    format!("{noun} {}", names.join(", "))
}
