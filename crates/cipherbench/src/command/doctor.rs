//! `cipherbench doctor`: what this host can measure, and which settings to tune.

use crate::cli::Doctor;
use crate::exit::{Exit, Failure};
use crate::output;
use engine::EngineInfo;
use lab::host::tuning::{Change, RECORD, Tuning};
use lab::host::{self, Finding, Status};
use lab::privilege;
use serde::Serialize;

pub(crate) fn doctor(arguments: &Doctor) -> Result<Exit, Failure> {
    let tuning = Tuning::of_this_machine(RECORD);
    let refused = |error| Failure::new(Exit::CannotBuild, error);
    match arguments {
        Doctor {
            apply: true, json, ..
        } => show_changes(&tuning.apply().map_err(refused)?, *json),
        Doctor {
            revert: true, json, ..
        } => show_changes(&tuning.revert().map_err(refused)?, *json),
        Doctor { json, .. } => {
            let mut findings = host::doctor(privilege::acquire());
            findings.extend(engine::engines().iter().map(engine));
            let text = if *json {
                as_json("findings", &findings)
            } else {
                host::render(&findings)
            };
            output::stdout(&text)?;
            let missing = |finding: &Finding| finding.needed && finding.status == Status::Missing;
            Ok(if findings.iter().any(missing) {
                Exit::CannotBuild
            } else {
                Exit::Done
            })
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

fn show_changes(changes: &[Change], json: bool) -> Result<Exit, Failure> {
    let text = match (json, changes) {
        (true, _) => as_json("changes", changes),
        (false, []) => "nothing to restore: nothing was tuned\n".to_owned(),
        (false, _) => changes
            .iter()
            .map(|change| in_words(change) + "\n")
            .collect(),
    };
    output::stdout(&text)?;
    let refused = changes.iter().any(|change| change.refused.is_some());
    Ok(if refused {
        Exit::CannotBuild
    } else {
        Exit::Done
    })
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

fn as_json<T: Serialize>(key: &str, list: &[T]) -> String {
    // Plain data with string keys always has a JSON form.
    let text = serde_json::to_string_pretty(&serde_json::json!({ key: list }));
    text.expect("a list can be written as JSON") + "\n"
}
