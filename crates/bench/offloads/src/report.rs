//! The result for people and for programs.

use crate::examine::{Examination, Finding};
use crate::nodes::Refused;
use crate::observed::Question;
use crate::setting::{Keep, Setting};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;
use units::human::counted;

/// An examination with its settings.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    /// The path in words: `the tunnel of our encryptor in the lab `default``.
    pub path: &'a str,
    /// The settings.
    pub settings: &'a [Setting],
    /// Features that drivers do not change.
    pub refused: &'a [Refused],
    /// The result.
    pub result: &'a Examination,
    /// How long it took.
    pub took: Duration,
}

/// Has TCP find the largest packet by itself, for a black hole.
const PROBING: &str = "net.ipv4.tcp_mtu_probing";

/// A change that ends the symptoms.
struct Remedy {
    /// Commands, each with the name of its node.
    commands: Vec<(String, String)>,
    keep: Vec<Keep>,
}

impl Report<'_> {
    /// Whether nothing that is in force breaks or slows the path.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        !self.result.findings.iter().any(|finding| finding.in_force)
    }

    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |words: &str| text += &format!("{words}\n");
        let result = self.result;
        line(&format!(
            "{}: {}, {}, {} of {} pairs in force together, {} in {}",
            self.path,
            counted(self.settings.len() as u64, "setting"),
            counted(result.rows as u64, "combination"),
            result.pairs_covered,
            result.pairs,
            counted(result.trials as u64, "trial"),
            units::human::duration(self.took)
        ));
        for (asked, answer) in &result.found {
            if let Some(bps) = answer.bps {
                line(&format!(
                    "  {asked}: {} as found",
                    units::human::bit_rate(bps)
                ));
            }
        }
        line("");
        if result.findings.is_empty() {
            line("No setting breaks or slows this path.");
        }
        for finding in &result.findings {
            self.finding(finding, &mut line);
            line("");
        }
        let mut list = |title: &str, lines: &[String]| {
            if !lines.is_empty() {
                line(title);
                lines.iter().for_each(|it| line(&format!("  {it}")));
            }
        };
        list("Without a cause:", &result.unexplained);
        list("Notes:", &result.notes);
        list(
            "Not changed, because the driver refuses:",
            &self.refused_lines(),
        );
        text
    }

    /// The refused features, one line for each interface and reason.
    fn refused_lines(&self) -> Vec<String> {
        let mut lines: Vec<(String, String)> = Vec::new();
        for Refused {
            at,
            feature,
            on,
            reason,
        } in self.refused
        {
            let word = format!("{feature} {}", crate::setting::on_or_off(*on));
            let key = format!("{at} ({reason})");
            match lines.iter_mut().find(|(known, _)| *known == key) {
                Some((_, words)) => {
                    let _ = write!(words, ", {word}");
                }
                None => lines.push((key, word)),
            }
        }
        lines
            .into_iter()
            .map(|(key, words)| format!("{key}: {words}"))
            .collect()
    }

    fn finding(&self, finding: &Finding, line: &mut impl FnMut(&str)) {
        line(&self.title(finding));
        for symptom in &finding.symptoms {
            line(&format!("  {}: {}", symptom.asked, symptom.words));
        }
        if !finding.confirmed {
            line("  (no time was left to confirm it: repeat with a longer `--time`)");
        }
        for (number, Remedy { commands, keep }) in self.remedies(finding).iter().enumerate() {
            line(if number == 0 { "  change it:" } else { "  or:" });
            for (node, command) in commands {
                line(&format!("    {command}    # on {node}"));
            }
            for Keep { file, content } in keep {
                line(&format!("  keep it, in {file}:"));
                content.lines().for_each(|it| line(&format!("    {it}")));
            }
        }
    }

    /// The causes with their effect.
    fn title(&self, finding: &Finding) -> String {
        let causes: Vec<String> = finding
            .causes
            .iter()
            .map(|cause| {
                let setting = &self.settings[cause.factor];
                format!("`{}` = {}", setting.name(), setting.value(cause.level))
            })
            .collect();
        let slows = finding
            .symptoms
            .iter()
            .all(|symptom| symptom.words.starts_with("slow"));
        let verb = match (slows, causes.len()) {
            (true, 1) => "slows",
            (true, _) => "slow",
            (false, 1) => "breaks",
            (false, _) => "break",
        };
        if causes.is_empty() {
            return "In every combination, so that none of these settings is the cause:".to_owned();
        }
        let together = if causes.len() > 1 { " together" } else { "" };
        let causes = causes.join(" and ");
        if finding.in_force {
            format!("FOUND: {causes}{together} {verb} this path now")
        } else {
            format!(
                "Leave as it is: {causes} would{together} {} this path",
                verb.trim_end_matches('s')
            )
        }
    }

    /// Ways to end the symptoms: a change of any one of the causes.
    fn remedies(&self, finding: &Finding) -> Vec<Remedy> {
        let mut remedies = Vec::new();
        if finding.in_force {
            remedies.extend(finding.causes.iter().map(|cause| {
                let setting = &self.settings[cause.factor];
                let commands = setting.commands(1 - cause.level).into_iter();
                Remedy {
                    commands: commands
                        .map(|(node, words)| (node.name().to_owned(), words.join(" ")))
                        .collect(),
                    keep: setting.kept(1 - cause.level),
                }
            }));
            let mut symptoms = finding.symptoms.iter();
            if symptoms.any(|symptom| symptom.asked.question == Question::Mtu) {
                remedies.push(Remedy {
                    commands: vec![("a and b".to_owned(), format!("sysctl -w {PROBING}=1"))],
                    keep: vec![Keep {
                        file: "/etc/sysctl.d/90-path-mtu.conf".to_owned(),
                        content: format!("{PROBING} = 1"),
                    }],
                });
            }
        }
        remedies
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let result = self.result;
        let causes = |finding: &Finding| -> Vec<Value> {
            let causes = finding.causes.iter();
            causes
                .map(|cause| {
                    let setting = &self.settings[cause.factor];
                    json!({ "setting": setting.name(), "value": setting.value(cause.level) })
                })
                .collect()
        };
        let findings = result.findings.iter().map(|finding| {
            let symptoms = finding.symptoms.iter();
            let remedies = self.remedies(finding).into_iter().map(|remedy| {
                let commands = remedy.commands.iter();
                json!({
                    "commands": commands
                        .map(|(node, command)| json!({ "node": node, "command": command }))
                        .collect::<Vec<_>>(),
                    "keep": remedy.keep,
                })
            });
            json!({
                "causes": causes(finding),
                "in_force": finding.in_force,
                "confirmed": finding.confirmed,
                "symptoms": symptoms
                    .map(|it| json!({ "check": it.asked.to_string(), "words": it.words }))
                    .collect::<Vec<_>>(),
                "remedies": remedies.collect::<Vec<_>>(),
            })
        });
        let found = result.found.iter().map(|(asked, answer)| {
            json!({ "check": asked.to_string(), "bps": answer.bps, "fault": answer.fault })
        });
        let value = json!({
            "path": self.path,
            "fit": self.is_fit(),
            "settings": self.settings.iter().map(Setting::name).collect::<Vec<_>>(),
            "combinations": result.rows,
            "pairs": result.pairs,
            "pairs_covered": result.pairs_covered,
            "trials": result.trials,
            "took_ns": self.took.as_nanos() as u64,
            "as_found": found.collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
            "without_cause": result.unexplained,
            "notes": result.notes,
            "refused": self.refused_lines(),
        });
        // Plain data with string keys always has a JSON form.
        serde_json::to_string_pretty(&value).expect("a value can be written as JSON") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Place;
    use testbed::NodeId;

    #[test]
    fn features_that_the_driver_refuses_are_listed_with_its_words() {
        let refused = |feature, on, reason: &str| Refused {
            at: Place {
                node: NodeId::Gw1,
                interface: "w0".to_owned(),
            },
            feature,
            on,
            reason: reason.to_owned(),
        };
        let words = "netlink error: Operation not supported";
        let refused = [
            refused("lro", false, "fixed by the driver"),
            refused("gro", true, words),
            refused("rx-gro-hw", false, "fixed by the driver"),
        ];
        let result = Examination::default();
        let report = Report {
            path: "path",
            settings: &[],
            refused: &refused,
            result: &result,
            took: Duration::from_secs(1),
        };
        let listed = "Not changed, because the driver refuses:\n  \
                      gw1/w0 (fixed by the driver): lro off, rx-gro-hw off\n  \
                      gw1/w0 (netlink error: Operation not supported): gro on\n";
        let text = report.text();
        assert!(text.ends_with(listed), "{text}");
        // A refusal is no fault of the path.
        assert!(report.is_fit());
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["refused"].as_array().map(Vec::len), Some(2), "{json}");
    }
}
