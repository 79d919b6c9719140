//! Campaign files: read, checked, and combined with a lab and a host into a plan.

use crate::axis::CORES_MAX;
use crate::capture;
use crate::claim;
use crate::declared::{CAMPAIGN_KEYS, MISSING_CORES, ORDERS, QUICK};
use crate::dut;
use crate::expand::{self, Draft};
use crate::expect;
use crate::host::HostFacts;
use crate::impairment;
use crate::lab::{self, LabFile};
use crate::published::{self, OnPath};
use crate::shipped::{self, CAMPAIGNS, LABS};
use crate::trial::{self, Kind};
use plan::{
    Capture, Claim, Expectation, Expectations, ImpairProfile, LabKind, Measurement, Order, Plan,
    PublishedReport, estimate,
};
use std::path::Path;
use std::time::Duration;
use units::human::counted;
use yaml::{Document, FromNode, Map, Mistake, Mistakes, Place, Reported, Spanned};

const TITLE_CHARS_MAX: usize = 200;
/// A longer campaign is a slip of a list or a unit.
const TIME_MAX: Duration = Duration::from_secs(31 * 24 * 3600);

/// A campaign without mistakes, checked without a lab and a host.
#[derive(Debug, Clone)]
pub struct Campaign {
    name: String,
    title: String,
    /// The built-in lab that it names, if any.
    lab: Option<&'static str>,
    repeats: u32,
    order: Order,
    /// Whether cells with more cores than the host has stay in the plan: their trials fail, with
    /// the reason.
    skips_missing_cores: bool,
    /// The place of `repeats`, or of the name when it is not given.
    repeats_place: Place,
    drafts: Vec<Draft>,
    claims: Vec<Claim>,
    expect: Vec<Expectation>,
    published: Vec<OnPath>,
    capture: Option<Spanned<Capture>>,
    reports: Vec<PublishedReport>,
    /// The campaign with its keys replaced by the keys of its `quick`.
    short: Option<Box<Self>>,
}

/// A file that is a campaign or a lab.
#[derive(Debug, Clone)]
pub enum Input {
    /// It has the key `campaign`.
    Campaign(Campaign),
    /// It has the key `lab`.
    Lab(LabFile),
}

/// Reads and checks a campaign file for a host.
///
/// # Errors
/// All its mistakes and, if there are any, the places that ask for more cores than the host has. In
/// a campaign without mistakes [`Campaign::plan`] reports these.
pub fn load(path: &Path, host: &HostFacts) -> Result<Campaign, Mistakes> {
    read_for(&yaml::load(path)?, host)
}

/// Checks a campaign given as text; `file` is its name in messages.
///
/// # Errors
/// All its mistakes.
pub fn from_text(file: &str, text: &str) -> Result<Campaign, Mistakes> {
    read(&yaml::parse(file, text)?)
}

/// Reads and checks a file that may be a campaign or a lab.
///
/// # Errors
/// As [`load`]; when it is neither, its mistakes as a campaign.
pub fn load_input(path: &Path, host: &HostFacts) -> Result<Input, Mistakes> {
    let document = yaml::load(path)?;
    // A campaign may have the key `lab` too: it names a built-in lab.
    if document.has_key("lab") && !document.has_key("campaign") {
        lab::read(&document).map(Input::Lab)
    } else {
        read_for(&document, host).map(Input::Campaign)
    }
}

pub(crate) fn read_for(document: &Document, host: &HostFacts) -> Result<Campaign, Mistakes> {
    read(document).map_err(|mistakes| mistakes.and(host.too_many_cores(document)))
}

fn read(document: &Document) -> Result<Campaign, Mistakes> {
    // The long form is read first and takes the parser's mistakes: a file with any of them has no
    // plan, even if its short form can be read.
    let whole = document.decode(|root| root.keys(CAMPAIGN_KEYS, |map| read_map(map, None)));
    if !document.has_key("quick") {
        return whole;
    }
    let short = document.decode(|root| {
        root.keys(CAMPAIGN_KEYS, |map| {
            let own = map.required("quick")?;
            own.keys(QUICK, |own| read_map(map, Some(own)))
        })
    });
    match (whole, short) {
        (Ok(whole), Ok(mut short)) => {
            for report in &mut short.reports {
                report.short = true;
            }
            Ok(Campaign {
                short: Some(Box::new(short)),
                ..whole
            })
        }
        (Err(mistakes), Ok(_)) | (Ok(_), Err(mistakes)) => Err(mistakes),
        // Both forms read the keys that `quick` does not replace: a mistake there is in both.
        (Err(mistakes), Err(more)) => Err(mistakes.and(more.iter().cloned().collect())),
    }
}

/// Reads a campaign; keys of `short` replace its keys.
fn read_map(map: &Map<'_>, short: Option<&Map<'_>>) -> Result<Campaign, Reported> {
    // A key that is not requested is reported as unknown. The caller reads this one.
    let _ = map.optional("quick");
    let given = |key| {
        // Also requested when the short form replaces it, since it is known then too.
        let own = map.optional(key);
        short.and_then(|short| short.optional(key)).or(own)
    };
    // A key that both lack is missing in the file.
    let required = |key| given(key).map_or_else(|| map.required(key), Ok);
    // All keys are read before the first `?`, so that one mistake hides no other.
    let name = map.get::<Spanned<String>>("campaign");
    let title = map.find_with("title", |node, text: String| {
        if text.chars().count() <= TITLE_CHARS_MAX && !text.contains('\n') {
            Ok(text)
        } else {
            Err(node.mistake(
                "this title is too long",
                format!("use one line of up to {TITLE_CHARS_MAX} characters"),
            ))
        }
    });
    let repeats =
        given("repeats").map(|node| Spanned::<u32>::from_node(node, map.value("repeats")));
    let order = map.read("order", |node| node.one_of("order", &ORDERS));
    let skips_missing_cores = map.read("missing_cores", |node| {
        node.one_of("missing_cores", &MISSING_CORES)
    });
    let seed = map.find::<Spanned<u32>>("seed");
    let lab = map.with_default("lab", None, |node| {
        let named = LabFile::built_in_names().map(|name| (name, name));
        match node.text() {
            Ok(name) if shipped::named(LABS, name).is_some() && named.iter().all(|it| it.0 != name) => {
                let known = named.map(|(name, _)| name).join(", ");
                let what = format!("a campaign cannot name the lab \"{name}\"");
                let help = format!(
                    "known labs are {known}; leave `lab` out, and measure it there with `--lab {name}`"
                );
                Err(node.mistake(what, help))
            }
            _ => node.one_of("lab", &named).map(Some),
        }
    });
    let calibrate = map.find::<Spanned<bool>>("calibrate");
    // The devices under test: boxes that traffic goes through, or crypto devices.
    let devices = given("devices");
    let duts = match devices {
        Some(node) => dut::read_devices(node),
        None => required("duts").and_then(dut::read_all),
    };
    // `duts` is requested even so: otherwise it would be reported as an unknown key.
    let both = devices.and_then(|_| given("duts")).map(|node| {
        let what = "`duts` and `devices` are measured in labs of two kinds";
        node.mistake(what, "write two campaigns")
    });
    let read_trial = match devices {
        Some(_) => trial::read_of_devices,
        None => trial::read,
    };
    // Names of DUTs and of profiles in the trials are resolved by `expand`, since the file may
    // have these lists after the trials.
    let profiles = map.with_default("impairments", impairment::built_in(), impairment::read_all);
    let trials = required("trials").and_then(|node| {
        let trials = node.list(read_trial)?;
        if !trials.is_empty() {
            return Ok((node, trials));
        }
        let help = match devices {
            Some(_) => "for example `- kat`",
            None => "for example `- tcp: { mtu: 1500 B }`",
        };
        Err(node.mistake("no trial is given", help))
    });
    let claims = map
        .optional("claims")
        .map(|node| Ok((node, claim::read_all(node)?)));
    let expect = map
        .optional("expect")
        .map(|node| Ok((node, expect::read_all(node)?)));
    let published = map.with_default("published", Vec::new(), published::read);
    let capture = map.with_default("capture", None, capture::read);
    let order = match (order, seed) {
        (Ok(true), Ok(seed)) => Ok(Order::Random {
            seed: seed.map(|seed| seed.value),
        }),
        (Ok(false), Ok(None)) => Ok(Order::File),
        (Ok(false), Ok(Some(seed))) => {
            let what = "the order of the file needs no seed";
            let help = "remove it, or `order: file`";
            Err(map.node().mistake_at(&seed.place, what, help))
        }
        (Err(reported), _) | (_, Err(reported)) => Err(reported),
    };
    // From here on each step needs the results of others, so a mistake in those ends the reading.
    let duts = duts?;
    let (node, trials) = trials?;
    if let Some(reported) = both {
        return Err(reported);
    }
    // Calibration adds cells to frame tests only. `calibrate: off` without one changes nothing,
    // and is accepted.
    let tests_frames = trials
        .iter()
        .any(|trial| matches!(trial.kind, Kind::Frames(_)));
    let calibrate = calibrate.and_then(|calibrate| match calibrate {
        Some(on) if on.value && !tests_frames => {
            let what = "there is nothing to calibrate: no trial tests frames";
            Err(node.mistake_at(&on.place, what, "remove `calibrate`"))
        }
        Some(on) => Ok(on.value),
        None => Ok(true),
    });
    // Published figures, claims and limits refer to cells, which are known from here on. A mistake
    // in one of these, or in a key that no cell depends on, hides none in the others.
    let with_rig = *calibrate.as_ref().unwrap_or(&true);
    let drafts = expand::cells(node, &trials, &duts, with_rig, &profiles?)?;
    let claims = claims.transpose().and_then(|claims| match claims {
        Some((node, _)) if devices.is_some() => {
            let what = "claims are of DUTs that carry traffic";
            let help = "what was published of devices is in `published`";
            Err(node.mistake(what, help))
        }
        Some((node, asked)) => claim::resolve_all(node, &asked, &drafts, &duts),
        None => Ok(Vec::new()),
    });
    let expect = expect.transpose().and_then(|expect| match expect {
        Some((node, asked)) => expect::resolve_all(node, &asked, &drafts),
        None => Ok(Vec::new()),
    });
    let (name, title, lab) = (name?, title?.unwrap_or_default(), lab?);
    let repeats = repeats.transpose()?;
    let times = match &repeats {
        Some(repeats) => repeats.value,
        None => map.get("repeats")?,
    };
    let skips_missing_cores = skips_missing_cores?;
    let (claims, expect, order) = (claims?, expect?, order?);
    calibrate?;
    let (published, reports) = published::resolve(&published?, &drafts);
    let campaign = Campaign {
        drafts,
        claims,
        expect,
        published,
        capture: capture?,
        reports,
        short: None,
        order,
        skips_missing_cores,
        repeats: times,
        repeats_place: repeats.map_or_else(|| name.place.clone(), |repeats| repeats.place),
        name: name.value,
        title,
        lab,
    };
    // Checked without a lab too, so that `check FILE` finds it.
    match campaign.too_long() {
        Some(mistake) => Err(map
            .node()
            .mistake_at(&mistake.place, mistake.what, mistake.help)),
        None => Ok(campaign),
    }
}

impl Campaign {
    /// The shipped campaign of that name; all are built into the program.
    ///
    /// # Panics
    /// Never: tests read these files.
    #[must_use]
    pub fn built_in_named(name: &str) -> Option<Self> {
        let shipped = shipped::named(CAMPAIGNS, name)?;
        Some(from_text(shipped.file, shipped.text).expect("a shipped campaign has no mistakes"))
    }

    /// The built-in campaign that is measured when none is named.
    ///
    /// # Panics
    /// As [`Self::built_in_named`].
    #[must_use]
    pub fn quick() -> Self {
        Self::built_in_named("quick").expect("it is shipped")
    }

    /// Returns the campaign with its keys replaced by the keys of its `quick`; `None` if `quick` is
    /// absent.
    #[must_use]
    pub fn shortened(&self) -> Option<Self> {
        self.short.as_deref().cloned()
    }

    /// Returns the name of the lab that the campaign names.
    #[must_use]
    pub const fn named_lab(&self) -> Option<&'static str> {
        self.lab
    }

    /// Returns the built-in lab to measure it in unless another is named: the one that it names, or
    /// the default of its kind.
    #[must_use]
    pub fn usual_lab(&self) -> LabFile {
        let device = self.tests_devices().then_some("device");
        let name = self.lab.or(device);
        let named = name.and_then(LabFile::built_in_named);
        named.unwrap_or_else(LabFile::built_in)
    }

    /// Its name, fit for a folder's.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its description, one line; may be empty.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether it measures crypto devices, which need a lab of kind `device`.
    #[must_use]
    pub fn tests_devices(&self) -> bool {
        let is_of_device = |draft: &Draft| matches!(draft.cell.measurement, Measurement::Device(_));
        self.drafts.iter().any(is_of_device)
    }

    /// How many cells it has.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.drafts.len()
    }

    /// Times that each cell is measured.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats
    }

    /// The same campaign with this many repeats of each cell, at least one.
    #[must_use]
    pub fn with_repeats(self, repeats: u32) -> Self {
        Self {
            repeats: repeats.clamp(1, Plan::REPEATS_MAX),
            ..self
        }
    }

    /// The same campaign without the cells that need more cores than `cores`: for the built-in one,
    /// which must run on any host.
    #[must_use]
    pub fn within_cores(mut self, cores: u16) -> Self {
        self.drafts.retain(|draft| {
            draft
                .cell
                .stations
                .is_none_or(|stations| stations.cores <= cores)
        });
        // Claims and published figures name cells by id: a cell that is gone must be named by
        // neither.
        for claim in &mut self.claims {
            let is_there = |id: &String| self.drafts.iter().any(|draft| draft.cell.id == *id);
            claim.cells.retain(is_there);
        }
        self.claims.retain(|claim| !claim.cells.is_empty());
        for OnPath { figure, .. } in &mut self.published {
            let is_there = |id: &String| self.drafts.iter().any(|draft| draft.cell.id == *id);
            figure.cells.retain(is_there);
        }
        self.published.retain(|one| !one.figure.cells.is_empty());
        self
    }

    /// Makes its plan for a lab and a host.
    ///
    /// # Errors
    /// Requirements that the lab or the host does not meet, at their place in the campaign.
    pub fn plan(&self, lab: &LabFile, host: &HostFacts) -> Result<Plan, Mistakes> {
        let mut mistakes: Vec<Mistake> = Vec::new();
        // Many cells share a value; it is reported once.
        let mut put = |mistake: Mistake| {
            if !mistakes.iter().any(|known| known.place == mistake.place) {
                mistakes.push(mistake);
            }
        };
        // With `missing_cores: skip` any number of cores that a file can have is accepted.
        let accepted = if self.skips_missing_cores {
            &HostFacts { cores: CORES_MAX }
        } else {
            host
        };
        let by_overhead = self.by_overhead(lab);
        // An `auto` MTU of the cipher link has room for the longest packet of any cell.
        let longest = by_overhead
            .first()
            .map_or(0, |draft| draft.cipher_packet_bytes());
        let cipher_mtu = lab.plan().cipher_mtu.map_or(longest, usize::from);
        // One mistake is kept for each place. The cell with the longest packets comes first, so
        // the MTU that its help names is enough for all.
        for draft in by_overhead {
            draft
                .check(lab, cipher_mtu, accepted)
                .into_iter()
                .for_each(&mut put);
        }
        self.capture_elsewhere(lab).into_iter().for_each(&mut put);
        self.too_long().into_iter().for_each(&mut put);
        if let Some(mistakes) = Mistakes::new(mistakes) {
            return Err(mistakes);
        }
        let path = &lab.plan().path;
        let (published, reports) = published::on_path(&self.published, &self.reports, path);
        // The element of an impaired path is there in every cell: cells that name no profile get
        // the one that does nothing, so that reports show under which they were measured.
        let cells = self.drafts_in(lab).map(|draft| {
            let mut cell = draft.cell.clone();
            if lab.plan().is_impaired()
                && cell.impair.is_none()
                && cell.dut.adapter.crosses_elements()
            {
                cell.impair = Some(ImpairProfile::none());
            }
            // A cell that is skipped takes no time.
            let wanted = cell.stations.map_or(0, |stations| stations.cores);
            let is_skipped = self.skips_missing_cores && lab.plan().hosts.is_none();
            cell.estimate_ns = if is_skipped && wanted > host.cores {
                0
            } else {
                estimate::trial_ns(&cell, self.repeats)
            };
            cell
        });
        Ok(Plan {
            name: self.name.clone(),
            title: self.title.clone(),
            lab: lab.plan().clone(),
            repeats: self.repeats,
            order: self.order,
            cells: cells.collect(),
            claims: self.claims.clone(),
            expect: Expectations {
                limits: self.expect.clone(),
                ..Expectations::default()
            },
            published,
            capture: self.capture.as_ref().map(|capture| capture.value.clone()),
            reports,
        })
    }

    /// Returns the cells, the longest cipher packets first: an MTU that fits these fits the others.
    fn by_overhead(&self, lab: &LabFile) -> Vec<&Draft> {
        let mut drafts: Vec<_> = self.drafts_in(lab).collect();
        drafts.sort_by_key(|draft| std::cmp::Reverse(draft.cipher_packet_bytes()));
        drafts
    }

    /// The cells that a lab measures. Between hosts no link leads past the gateways, so the tester
    /// itself is not measured there.
    fn drafts_in(&self, lab: &LabFile) -> impl Iterator<Item = &Draft> {
        let between_hosts = lab.plan().kind == LabKind::Hosts;
        let drafts = self.drafts.iter();
        drafts.filter(move |draft| !(between_hosts && draft.cell.calibration))
    }

    /// A capture needs the kernel of this machine, and writes its file here.
    fn capture_elsewhere(&self, lab: &LabFile) -> Option<Mistake> {
        let capture = self.capture.as_ref()?;
        (lab.plan().kind != LabKind::Namespaces).then(|| {
            capture.place.mistake(
                "only a lab of namespaces on this machine captures frames",
                "remove `capture`, or use a lab of kind `namespaces`: `--lab namespaces`",
            )
        })
    }

    fn too_long(&self) -> Option<Mistake> {
        // Loops of a fatigue trial alone can take more nanoseconds than 64 bits hold: nothing
        // here may wrap.
        let once: u64 = self
            .drafts
            .iter()
            .map(|draft| estimate::trial_ns(&draft.cell, self.repeats))
            .fold(0, u64::saturating_add);
        let total = Duration::from_nanos(once).saturating_mul(self.repeats);
        (total > TIME_MAX).then(|| {
            let days = total.as_secs() / (24 * 3600);
            self.repeats_place.mistake(
                format!("the campaign takes {days} days"),
                format!(
                    "{}, {} each; at most {} days are possible: shorten durations or lists",
                    counted(self.cells() as u64, "cell"),
                    counted(self.repeats, "time"),
                    TIME_MAX.as_secs() / (24 * 3600),
                ),
            )
        })
    }
}
