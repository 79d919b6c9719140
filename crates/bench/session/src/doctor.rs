//! What this host, or every host of a lab, can measure, and which settings to tune.

use crate::error::SessionError;
use device::DeviceError;
use engine::EngineInfo;
use lab::host::tuning::{Change, RECORD, Tuning};
use lab::host::{self, Finding, Status};
use lab::{Visit, privilege};
use plan::{Host, HostName, LabPlan};
use serde_json::{Value, json};
use std::time::Duration;
use testbed::{Interrupt, LabError};

/// Time limit for the check on a host, which tries out a lab's requirements.
const LIMIT: Duration = Duration::from_secs(60);

/// A request to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Look at itself.
    Look,
    /// Tune itself.
    Apply,
    /// Restore what it tuned.
    Revert,
}

/// Findings about a host, or changes made there.
#[derive(Debug)]
pub enum Answer {
    /// Findings.
    Findings(Vec<Finding>),
    /// Changes.
    Changes(Vec<Change>),
}

/// The answers of the hosts of a lab, or why one has none.
#[derive(Debug)]
pub struct Answers(Vec<(HostName, String, Result<Answer, SessionError>)>);

/// Asks this host, with interfaces that a lab uses on it.
///
/// # Errors
/// When it cannot be tuned.
pub fn ask_this_host(action: Action, interfaces: &[String]) -> Result<Answer, SessionError> {
    let tuning = Tuning::of_this_machine(RECORD, interfaces);
    Ok(match action {
        Action::Apply => Answer::Changes(tuning.apply()?),
        Action::Revert => Answer::Changes(tuning.revert()?),
        Action::Look => {
            // Without the privilege there are still findings, and its lack is one of them.
            let mut findings = host::doctor(privilege::acquire(), interfaces);
            findings.extend(engine::engines().iter().map(engine));
            findings.push(libcrypto(device::libcrypto_version()));
            Answer::Findings(findings)
        }
    })
}

/// Asks every host of a lab. One that cannot be reached does not keep the others from answering.
///
/// # Errors
/// When it is interrupted.
pub fn ask_hosts(
    plan: &LabPlan,
    action: Action,
    interrupt: &Interrupt,
) -> Result<Answers, SessionError> {
    let mut answers = Vec::new();
    for (name, host) in plan.hosts.iter().flat_map(|hosts| hosts.each()) {
        let boxes = plan.external.iter();
        let boxes = boxes.flat_map(|cables| cables.interfaces_on(name));
        let interfaces: Vec<String> = host
            .interface
            .iter()
            .cloned()
            .chain(boxes.map(str::to_owned))
            .collect();
        let answer = if host.is_this_machine() {
            ask_this_host(action, &interfaces)
        } else {
            ask((name, host), &interfaces, action, interrupt)
        };
        // Any other error is the answer of its host, and the remaining hosts are asked
        // nevertheless.
        if let Err(SessionError::Lab(LabError::Interrupted)) = answer {
            return Err(LabError::Interrupted.into());
        }
        answers.push((name, host.describe(), answer));
    }
    Ok(Answers(answers))
}

/// Has another host look at itself, or tune itself.
fn ask(
    (name, host): (HostName, &Host),
    interfaces: &[String],
    action: Action,
    interrupt: &Interrupt,
) -> Result<Answer, SessionError> {
    let visit = Visit::open(name, host, interrupt)?;
    let action = match action {
        Action::Apply => Some("--apply"),
        Action::Revert => Some("--revert"),
        Action::Look => None,
    };
    let at = interfaces.iter().flat_map(|name| ["--interface", name]);
    let words = ["doctor", "--json"].into_iter().chain(action).chain(at);
    let words: Vec<_> = words.map(str::to_owned).collect();
    let ended = visit.run(&words, LIMIT)?;
    // The exit code does not count: `doctor` also fails if the host is unfit, which is an answer.
    Answer::read(&ended.stdout).ok_or_else(|| SessionError::NoAnswer {
        host: visit.name().to_owned(),
        reason: ended.stderr.trim().to_owned(),
    })
}

impl Answers {
    /// Whether every host can run a lab, or has changed everything.
    #[must_use]
    pub fn are_fit(&self) -> bool {
        let fit = |answer: &Result<Answer, _>| answer.as_ref().is_ok_and(Answer::is_fit);
        self.0.iter().all(|(_, _, answer)| fit(answer))
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let hosts = self.0.iter().map(|(name, _, answer)| {
            let value = match answer {
                Ok(answer) => answer.value(),
                Err(error) => json!({ "error": error.to_string() }),
            };
            (name.name().to_owned(), value)
        });
        pretty(&json!({ "hosts": hosts.collect::<serde_json::Map<_, _>>() }))
    }

    /// As a table for each host.
    #[must_use]
    pub fn text(&self) -> String {
        let hosts = self.0.iter().map(|(name, host, answer)| {
            let answer = match answer {
                Ok(answer) => answer.text() + "\n",
                Err(error) => format!("error: {error}\n\n"),
            };
            format!("host `{}` ({host})\n{answer}", name.name())
        });
        hosts.collect::<String>().trim_end().to_owned() + "\n"
    }
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

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> String {
        pretty(&self.value())
    }

    /// As a table.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
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

    /// Whether the host can run a lab, or has changed everything.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        let missing = |finding: &Finding| finding.needed && finding.status == Status::Missing;
        match self {
            Self::Findings(findings) => !findings.iter().any(missing),
            Self::Changes(changes) => changes.iter().all(|change| change.refused.is_none()),
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

fn libcrypto(version: Result<String, DeviceError>) -> Finding {
    let (status, found, advice) = match version {
        Ok(version) => (Status::Good, version, String::new()),
        Err(reason) => (
            Status::Warning,
            "not there".to_owned(),
            format!("all else can be measured; {reason}"),
        ),
    };
    Finding {
        name: "libcrypto".to_owned(),
        status,
        needed: false,
        found,
        why: "OpenSSL as a crypto device, and beside our engines in their functional trials"
            .to_owned(),
        advice,
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
