//! Entries of a fleet's server, signed jobs, and files of users and keys.

use arbitrary::{Result, Unstructured};
use fleet::{
    Assignment, Identity, Job, LabOffer, LoadHistogram, Manifest, Point, Record, RunFigures,
    Selector, State, Terms, Trust, Users,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::LazyLock;

/// An agent's clock.
const NOW: u64 = 2_000_000_000;
/// A key that signs nothing else, and its public part.
const SEED: &str = "SUAEPKS3GDNNP5BHMNQSCS64K6WILGPJM4FIS5KIB77T2T2JQBZJK2TUU4";

/// Any bytes are an entry that is the same when it is written and read again, or an error.
pub(crate) fn entry(data: &[u8]) {
    survives::<Job>(data);
    survives::<State>(data);
    survives::<LabOffer>(data);
    survives::<Assignment>(data);
    survives::<Manifest>(data);
    survives::<RunFigures>(data);
    survives::<Point>(data);
    survives::<Vec<LoadHistogram>>(data);
    survives::<BTreeMap<String, String>>(data);
    if let Ok(job) = serde_json::from_slice::<Job>(data) {
        // Nobody trusts a key that has no line in the file.
        let nobody = Trust::parse("", "trust").expect("an empty file");
        assert!(nobody.refusal(&job, "here", NOW).is_some());
        let offer = LabOffer {
            lab: "lab".to_owned(),
            agent: String::new(),
            incarnation: String::new(),
            labels: BTreeMap::new(),
            job: None,
            waits: false,
            progress: None,
            beats: 0,
        };
        let fits = job.selector.misfit(&offer).is_none();
        let lab = job.selector.lab.as_deref();
        // The offer has no labels, and one lab.
        let asks_for_it = job.selector.labels.is_empty() && lab.is_none_or(|lab| lab == "lab");
        assert_eq!(fits, asks_for_it);
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Some((run, line)) = Record::place(text)
    {
        let again = Record::place(&format!("job/{run}-{line}"));
        assert_eq!(again, Some((run, line)));
    }
}

fn survives<T: DeserializeOwned + Serialize>(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(data) else {
        return;
    };
    // As JSON values, since not every entry can be compared.
    let written = serde_json::to_value(&value).expect("an entry is JSON");
    let again: T = serde_json::from_value(written.clone()).expect("it was written by this program");
    assert_eq!(serde_json::to_value(&again).expect("JSON"), written);
}

/// Names that lead out of a folder, that hide in it, and that do neither.
const NAMES: [&str; 14] = [
    "run",
    "journal.jsonl",
    "captures",
    "a.pcapng",
    "..",
    ".",
    "",
    "/",
    "/etc",
    ".ssh",
    "a\u{0}b",
    "\n",
    "x.esp_sa",
    "~",
];

/// A list of files places each below the folder of its run, within the bounds, or is refused.
pub(crate) fn manifest(data: &[u8]) {
    if let Ok(list) = serde_json::from_slice::<Manifest>(data) {
        check_places(&list);
    }
    // Too few bytes for a description.
    let _ = described(&mut Unstructured::new(data));
}

fn described(description: &mut Unstructured<'_>) -> Result<()> {
    let name = |description: &mut Unstructured<'_>| -> Result<String> {
        let mut parts = Vec::new();
        for _ in 0..=description.int_in_range(0..=3)? {
            parts.push(*description.choose(&NAMES)?);
        }
        Ok(parts.join("/"))
    };
    let run = name(description)?;
    let mut files = Vec::new();
    // Several sizes of `u64::MAX` may be drawn.
    let mut bytes = 0_u128;
    for _ in 0..description.int_in_range(0..=4)? {
        let size = *description.choose(&[0, 3, 1 << 20, 1 << 40, u64::MAX])?;
        bytes += u128::from(size);
        files.push((name(description)?, size));
    }
    let listed: Vec<Value> = files
        .iter()
        .map(|(path, bytes)| json!({ "path": path, "bytes": bytes, "sha256": "0".repeat(64) }))
        .collect();
    let list = json!({ "job": "1", "run": run, "files": listed });
    let is_name = |name: &str| {
        !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0', '\n'])
    };
    let names = files.iter().all(|(path, _)| path.split('/').all(is_name)) && is_name(&run);
    let parsed = serde_json::from_value::<Manifest>(list);
    assert_eq!(parsed.is_ok(), names, "{run:?} {files:?}");
    let Ok(parsed) = parsed else { return Ok(()) };
    check_places(&parsed);
    let mut paths: Vec<&String> = files.iter().map(|(path, _)| path).collect();
    paths.sort();
    paths.dedup();
    // The limit of a run, and no path twice.
    let is_small = bytes <= 8 << 30 && paths.len() == files.len();
    assert_eq!(parsed.check("1").is_ok(), is_small, "{files:?}");
    assert!(parsed.check("2").is_err());
    Ok(())
}

/// The oracle: each component counts one folder down, and none up.
fn check_places(list: &Manifest) {
    let folder = Path::new("/into");
    let run = folder.join(&list.run);
    assert_eq!(run.components().count(), 3, "{run:?}");
    for file in &list.files {
        let place = file.path.below(&run);
        assert!(place.starts_with(&run) && place != run, "{place:?}");
        let mut parts = place.components();
        assert_eq!(parts.next(), Some(Component::RootDir));
        for part in parts {
            let Component::Normal(name) = part else {
                panic!("{place:?}");
            };
            assert!(!name.as_encoded_bytes().starts_with(b"."), "{place:?}");
        }
    }
    if let Err(error) = list.check("1") {
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }
}

/// A signed job with any change to it, its terms or its period is refused. Only the signed form is
/// run, and a repeated job only in the periods of its terms.
pub(crate) fn signature(data: &[u8]) {
    let _ = changed(&mut Unstructured::new(data));
}

/// Periods of the signed jobs, in seconds.
const EVERY: [Option<u64>; 3] = [None, Some(60), Some(86_400)];

/// The trusted key, and a signed job of each period: signing takes most of the time here.
static SIGNED: LazyLock<(Trust, [Job; 3])> = LazyLock::new(|| {
    let identity = Identity::parse(SEED, "key").expect("a seed");
    let trust = Trust::parse(&identity.public(), "trust").expect("a key");
    let jobs = EVERY.map(|every| {
        let mut job = Job {
            id: "1".to_owned(),
            name: "campaign.yaml".to_owned(),
            campaign: "campaign: x".to_owned(),
            quick: true,
            selector: Selector::default(),
            priority: 0,
            labels: BTreeMap::from([("firmware".to_owned(), "2.1".to_owned())]),
            by: "somebody".to_owned(),
            every,
            period: None,
            signature: None,
        };
        let terms = Terms {
            fleet: "here".to_owned(),
            signed_at: NOW,
            expires_at: NOW + 86_400,
            periods: 5,
        };
        job.sign(&identity, terms);
        job
    });
    (trust, jobs)
});

fn changed(description: &mut Unstructured<'_>) -> Result<()> {
    let (trust, jobs) = &*SIGNED;
    let job = description.choose(jobs)?;
    let every = job.every;
    let period = every
        .map(|_| description.int_in_range(0..=7_u64))
        .transpose()?;
    let signed = period.map_or_else(|| job.clone(), |period| job.in_period(period));
    match description.int_in_range(0..=15)? {
        0 => {
            // Within the tolerance of clocks.
            let has_come = |period| period < 5 && period * every.unwrap_or(0) <= 90_000;
            let is_trusted = trust.refusal(&signed, "here", NOW).is_none();
            assert_eq!(is_trusted, period.is_none_or(has_come));
        }
        1 => assert!(trust.refusal(&signed, "there", NOW).is_some()),
        2 => assert!(trust.refusal(&signed, "here", NOW + 86_400).is_some()),
        _ => {}
    }

    // One change of its JSON.
    let mut text = serde_json::to_vec(&signed).expect("JSON");
    let at = description.int_in_range(0..=text.len() - 1)?;
    match description.int_in_range(0..=2)? {
        0 => text[at] = description.arbitrary()?,
        1 => drop(text.remove(at)),
        _ => text.insert(at, description.arbitrary()?),
    }
    // If it is trusted all the same, the change was in a part that is not signed: the period,
    // within its bounds, or the case of a digit.
    if let Ok(other) = serde_json::from_slice::<Job>(&text)
        && trust.refusal(&other, "here", NOW).is_none()
    {
        let mut same = job.clone();
        if let Some(period) = other.period {
            assert!(period < 5, "{other:?}");
            same = job.in_period(period);
        }
        // Hexadecimal digits have two forms.
        same.signature.clone_from(&other.signature);
        assert_eq!(other, same);
        let terms = |job: &Job| {
            job.signature
                .as_ref()
                .map(|signature| signature.terms.clone())
        };
        assert_eq!(terms(job), terms(&other));
    }
    Ok(())
}

/// Any text is a file of users, of trusted keys or of a key, or a mistake with its place; the
/// configuration of the server has the users of the file, and one administrator.
pub(crate) fn keys(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    // A comment or an empty line is no user.
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    let count = lines.filter(|line| !line.is_empty()).count();
    match Users::parse(text, "users") {
        Ok(users) => {
            let config = users.config("ADMIN");
            assert_eq!(config.matches("nkey: ").count(), count + 1, "{config}");
            assert_eq!(config.matches("permissions: ").count(), count, "{config}");
            let open = config.matches('{').count();
            assert_eq!(open, config.matches('}').count(), "{config}");
            assert!(!config.contains('#'), "{config}");
        }
        Err(error) => check_mistake(&error.to_string(), "users:"),
    }
    match Trust::parse(text, "trust") {
        Ok(_) => {}
        Err(error) => check_mistake(&error.to_string(), "trust:"),
    }
    match Identity::parse(text, "key") {
        Ok(identity) => assert!(identity.public().starts_with('U')),
        Err(error) => {
            let error = error.to_string();
            check_mistake(&error, "key:");
            // The seeds of all users begin with these letters: none is quoted.
            assert!(!error.contains("SUA"), "{error}");
        }
    }
}

fn check_mistake(text: &str, place: &str) {
    assert!(text.starts_with(place), "{text}");
    let is_shown = |c: char| c == '\n' || !c.is_control();
    assert!(text.chars().all(is_shown), "{text:?}");
    assert_eq!(text.lines().count(), 2, "{text}");
}
