//! `cipherbench doctor`: what this host, or every host of a lab, can measure, and which settings to
//! tune.

use crate::cli::Doctor;
use crate::exit::{Exit, Failure};
use crate::{output, planning, signals};
use engine::EngineInfo;
use lab::host::tuning::{Change, RECORD, Tuning};
use lab::host::{self, Finding, Status};
use lab::{Visit, privilege};
use plan::{Cables, Host, HostName};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use testbed::Interrupt;

/// Time limit for the check on a host, which tries out a lab's requirements.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn doctor(arguments: &Doctor) -> Result<Exit, Failure> {
    match &arguments.lab {
        Some(lab) => of_lab(lab, arguments),
        None => of_this_host(arguments, &arguments.interface),
    }
}

fn of_this_host(arguments: &Doctor, interfaces: &[String]) -> Result<Exit, Failure> {
    let answer = here(arguments, interfaces)?;
    output::stdout(&answer.text(arguments.json))?;
    Ok(answer.exit())
}

/// Findings about a host, or changes made there.
enum Answer {
    Findings(Vec<Finding>),
    Changes(Vec<Change>),
}

/// Looks at this host, or tunes it.
fn here(arguments: &Doctor, interfaces: &[String]) -> Result<Answer, Failure> {
    let tuning = Tuning::of_this_machine(RECORD, interfaces);
    let refused = |error| Failure::new(Exit::CannotBuild, error);
    Ok(match arguments {
        Doctor { apply: true, .. } => Answer::Changes(tuning.apply().map_err(refused)?),
        Doctor { revert: true, .. } => Answer::Changes(tuning.revert().map_err(refused)?),
        _ => {
            let mut findings = host::doctor(privilege::acquire(), interfaces);
            findings.extend(engine::engines().iter().map(engine));
            Answer::Findings(findings)
        }
    })
}

/// Asks every host of a lab. One that cannot be reached does not keep the others from answering.
fn of_lab(lab: &Path, arguments: &Doctor) -> Result<Exit, Failure> {
    let lab = planning::load_lab(lab)?;
    let plan = lab.plan();
    let Some(hosts) = &plan.hosts else {
        let cables = plan.external.iter().flat_map(Cables::interfaces);
        let interfaces: Vec<_> = cables.map(|(_, name)| name.to_owned()).collect();
        return of_this_host(arguments, &interfaces);
    };
    let interrupt = signals::interrupt()?;
    let mut exit = Exit::Done;
    let mut all = serde_json::Map::new();
    let mut text = String::new();
    for (name, host) in hosts.each() {
        let key = name.name();
        text += &format!("host `{key}` ({})\n", host.describe());
        let boxes = plan.external.iter();
        let boxes = boxes.flat_map(|cables| cables.interfaces_on(name));
        let interfaces: Vec<String> = host
            .interface
            .iter()
            .cloned()
            .chain(boxes.map(str::to_owned))
            .collect();
        let answer = if host.is_this_machine() {
            here(arguments, &interfaces)
        } else {
            there((name, host), &interfaces, arguments, &interrupt)
        };
        match answer {
            Ok(answer) => {
                all.insert(key.to_owned(), answer.value());
                text += &(answer.text(false) + "\n");
                if answer.exit() != Exit::Done {
                    exit = answer.exit();
                }
            }
            Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
            Err(failure) => {
                let said = failure.to_string();
                let words = said.strip_prefix("error: ").unwrap_or(&said);
                all.insert(key.to_owned(), json!({ "error": words }));
                text += &format!("{said}\n\n");
                exit = Exit::CannotBuild;
            }
        }
    }
    if arguments.json {
        output::stdout(&pretty(&json!({ "hosts": all })))?
    } else {
        output::stdout(&(text.trim_end().to_owned() + "\n"))?
    }
    Ok(exit)
}

/// Has another host look at itself, or tune itself.
fn there(
    (name, host): (HostName, &Host),
    interfaces: &[String],
    arguments: &Doctor,
    interrupt: &Interrupt,
) -> Result<Answer, Failure> {
    let visit = Visit::open(name, host, interrupt)?;
    let action = match arguments {
        Doctor { apply: true, .. } => Some("--apply"),
        Doctor { revert: true, .. } => Some("--revert"),
        _ => None,
    };
    let at = interfaces.iter().flat_map(|name| ["--interface", name]);
    let words = ["doctor", "--json"].into_iter().chain(action).chain(at);
    let words: Vec<_> = words.map(str::to_owned).collect();
    let ended = visit.run(&words, LIMIT)?;
    Answer::read(&ended.stdout).ok_or_else(|| {
        let text = format!(
            "{}: `cipherbench doctor` there failed: {}\nhelp: run it on that host",
            visit.name(),
            ended.stderr.trim()
        );
        Failure::new(Exit::CannotBuild, text)
    })
}

impl Answer {
    /// From the JSON of [`value`](Self::value).
    fn read(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let list = |key: &str| value.get(key).cloned();
        match (list("findings"), list("changes")) {
            (Some(findings), _) => serde_json::from_value(findings).ok().map(Self::Findings),
            (_, Some(changes)) => serde_json::from_value(changes).ok().map(Self::Changes),
            _ => None,
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Findings(findings) => json!({ "findings": findings }),
            Self::Changes(changes) => json!({ "changes": changes }),
        }
    }

    fn text(&self, as_json: bool) -> String {
        match self {
            _ if as_json => pretty(&self.value()),
            Self::Findings(findings) => host::render(findings),
            Self::Changes(changes) if changes.is_empty() => {
                "nothing to restore: nothing was tuned\n".to_owned()
            }
            Self::Changes(changes) => changes
                .iter()
                .map(|change| in_words(change) + "\n")
                .collect(),
        }
    }

    fn exit(&self) -> Exit {
        let missing = |finding: &Finding| finding.needed && finding.status == Status::Missing;
        let failed = match self {
            Self::Findings(findings) => findings.iter().any(missing),
            Self::Changes(changes) => changes.iter().any(|change| change.refused.is_some()),
        };
        if failed {
            Exit::CannotBuild
        } else {
            Exit::Done
        }
    }
}

fn engine(engine: &EngineInfo) -> Finding {
    let (status, found, advice) = match &engine.version {
        Ok(version) => (Status::Good, version, ""),
        Err(reason) => (
            Status::Warning,
            reason,
            "the other engines serve; this one may be faster",
        ),
    };
    Finding {
        name: format!("engine {}", engine.name),
        status,
        needed: false,
        found: found.clone(),
        why: "seals and opens packets of the bundled encryptor".to_owned(),
        advice: advice.to_owned(),
    }
}

fn in_words(change: &Change) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not there".to_owned());
    let Change {
        name,
        before,
        after,
        refused,
        ..
    } = change;
    match refused {
        Some(reason) => format!("{name}  {}, not changed: {reason}", value(after)),
        None if before == after => format!("{name}  {}, as it was", value(after)),
        None => format!("{name}  {}, was {}", value(after), value(before)),
    }
}

fn pretty(value: &Value) -> String {
    // Plain data with string keys always has a JSON form.
    serde_json::to_string_pretty(value).expect("a value can be written as JSON") + "\n"
}
