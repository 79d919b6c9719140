//! The search for the offload that hurts, over the offloads of both hosts.
//!
//! Each end changes its own interfaces. The listener restores them by itself if it hears nothing
//! for [`REVERT_AFTER`], so that a combination that cuts the connection costs time and no host.

use crate::asker::{Asker, unexpected};
use crate::error::CheckError;
use crate::features::Offloads;
use crate::findings::{Examined, Hurting, OffloadFindings, Remedy};
use crate::message::{Answer, Ask};
use offloads::{
    Answers, DirectedQuestion, Examination, FEATURES, Finding, Place, Question, Setting, Subject,
    answers, examine,
};
use probe::{Call, Check, Direction};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use testbed::NodeId;

/// Time of the search.
const TIME: Duration = Duration::from_secs(60);
/// Time without a request after which the listener restores its offloads.
pub(crate) const REVERT_AFTER: Duration = Duration::from_secs(12);
/// Time for an answer; then this end restores its offloads.
const CUT_AFTER: Duration = Duration::from_secs(5);
/// Time for the listener to restore its own, and for TCP to repeat what was lost.
const RETURN_LIMIT: Duration = Duration::from_secs(45);
const CHECK_MS: u64 = 150;
/// Payload of long datagrams at most, and if the path's MTU is not known.
const DATAGRAM_BYTES_MAX: u16 = 1380;
const DATAGRAM_BYTES_USUAL: u16 = 1180;
const DATAGRAM_BYTES_LEAST: u16 = 548;
const CUT: &str = "cut: not even the control connection passes";

/// Finds the offloads that hurt. The inner error is a clause for people.
pub(crate) fn offloads(
    asker: &mut Asker<'_>,
    left: Option<&str>,
    mtu: Option<u16>,
) -> Result<Result<OffloadFindings, String>, CheckError> {
    let begun = Instant::now();
    let here = crate::under_test::under_test(asker.peer(), left);
    let (own, spared) = match here.and_then(|it| Ok((Offloads::find(&it.names)?, it.spared))) {
        Ok(found) => found,
        Err(reason) => return Ok(Err(format!("{reason} (here)"))),
    };
    let (port, there) = match asker.request(&Ask::Offloads, RETURN_LIMIT, "read offloads")? {
        Answer::Offloads { port, found } => match found {
            Ok(found) => (port, found),
            Err(reason) => return Ok(Err(format!("{reason} (there)"))),
        },
        other => return Err(unexpected(&other)),
    };
    let mut settings = settings(NodeId::A, own.interfaces());
    let of_here = settings.len();
    settings.extend(self::settings(NodeId::B, &there.interfaces));
    let ip_bytes = if asker.peer().is_ipv4() { 28 } else { 48 };
    let datagram_bytes = mtu.map_or(DATAGRAM_BYTES_USUAL, |mtu| {
        let payload = mtu.saturating_sub(ip_bytes);
        payload.clamp(DATAGRAM_BYTES_LEAST, DATAGRAM_BYTES_MAX)
    });
    let mut not_changed = refused("here", own.interfaces());
    not_changed.extend(spared.into_iter().map(|words| format!("here/{words}")));
    not_changed.extend(refused("there", &there.interfaces));
    not_changed.extend(there.spared.iter().map(|words| format!("there/{words}")));
    if settings.is_empty() {
        let reason = not_changed.first().cloned().unwrap_or_default();
        return Ok(Err(format!("no offload can be changed: {reason}")));
    }
    let notice = asker.question.notice;
    let mut trying = Trying {
        server: SocketAddr::new(asker.peer(), port),
        asker,
        own,
        of_here,
        settings,
        datagram_bytes,
        is_cut: false,
    };
    let result = examine(&mut trying, TIME, &mut |line| {
        notice(&format!("  {}\n", local(line)));
    })?;
    let settings = std::mem::take(&mut trying.settings);
    let not_restored = trying.restore()?;
    Ok(Ok(concluded(
        &result,
        &settings,
        not_changed,
        not_restored,
        begun.elapsed(),
    )))
}

/// The settings of a host, in the order of its rows.
fn settings(node: NodeId, interfaces: &[Examined]) -> Vec<Setting> {
    let mut settings = Vec::new();
    for examined in interfaces {
        for (words, found) in [(&examined.on, true), (&examined.off, false)] {
            let features = words
                .iter()
                .filter_map(|word| FEATURES.iter().find(|feature| feature.word == word));
            settings.extend(features.map(|feature| Setting::Feature {
                at: Place {
                    node,
                    interface: examined.name.clone(),
                },
                feature,
                found,
            }));
        }
    }
    settings
}

/// The features that the drivers refuse to change, a line for each reason.
fn refused(host: &str, interfaces: &[Examined]) -> Vec<String> {
    let lines = interfaces.iter().flat_map(|examined| {
        let name = &examined.name;
        examined.refused.iter().map(move |refusal| {
            let words = refusal.features.join(", ");
            format!("{host}/{name}: {words} ({})", refusal.reason)
        })
    });
    lines.collect()
}

struct Trying<'a, 'b> {
    asker: &'a mut Asker<'b>,
    /// The listener's server of probes.
    server: SocketAddr,
    own: Offloads,
    of_here: usize,
    settings: Vec<Setting>,
    datagram_bytes: u16,
    /// Whether the last combination cut the connection. Both ends are then as they were found.
    is_cut: bool,
}

impl Trying<'_, '_> {
    /// Requests something of the listener. If it does not answer, both ends go back first.
    fn talk(&mut self, ask: &Ask) -> Result<Answer, CheckError> {
        let during = "tried offloads";
        let first = self.asker.ask(ask, CUT_AFTER, during);
        match first? {
            Some(answer) => Ok(answer),
            None => {
                self.is_cut = true;
                self.restore_own()?;
                self.asker.answer(RETURN_LIMIT, during)
            }
        }
    }

    fn restore_own(&mut self) -> Result<(), CheckError> {
        self.set_own(&vec![0; self.of_here]).map(drop)
    }

    fn set_own(&mut self, row: &[u8]) -> Result<Vec<u8>, CheckError> {
        let set = self.own.apply(row);
        set.map_err(|reason| lost(format!("here: {reason}")))
    }

    fn set_there(&mut self, row: &[u8]) -> Result<Vec<u8>, CheckError> {
        match self.talk(&Ask::Apply { row: row.to_vec() })? {
            Answer::Applied { row: Ok(now) } if now.len() == row.len() => Ok(now),
            Answer::Applied { row: Err(reason) } => Err(lost(format!("there: {reason}"))),
            other => Err(unexpected(&other)),
        }
    }

    /// Restores both ends; returns what is not as it was.
    fn restore(self) -> Result<Vec<String>, CheckError> {
        let own = self.own.restore();
        let mut wrong: Vec<String> = own.into_iter().map(|it| format!("here: {it}")).collect();
        let during = "restored offloads";
        match self.asker.request(&Ask::Restore, RETURN_LIMIT, during)? {
            Answer::Restored { wrong: there } => {
                wrong.extend(there.into_iter().map(|it| format!("there: {it}")));
                Ok(wrong)
            }
            other => Err(unexpected(&other)),
        }
    }

    fn checks(&self) -> &'static [Check] {
        if self.server.is_ipv4() {
            &Check::ALL
        } else {
            &Check::IPV6
        }
    }
}

impl Subject for Trying<'_, '_> {
    type Error = CheckError;

    fn settings(&self) -> &[Setting] {
        &self.settings
    }

    fn apply(&mut self, row: &[u8]) -> Result<Vec<u8>, CheckError> {
        self.asker.step("")?;
        self.is_cut = false;
        let (here, there) = row.split_at(self.of_here);
        let mut now = self.set_own(here)?;
        now.extend(self.set_there(there)?);
        // A card may be silent for seconds after a change.
        if !self.is_cut && !self.asker.greets(CUT_AFTER) {
            self.is_cut = true;
            self.restore_own()?;
        }
        if self.is_cut {
            let there = vec![0; there.len()];
            self.set_there(&there)?;
            self.is_cut = true;
            return Ok(row.to_vec());
        }
        Ok(now)
    }

    fn answers(&mut self, only: Option<DirectedQuestion>) -> Result<Answers, CheckError> {
        let mut found = Answers::new();
        for direction in Direction::BOTH {
            for check in self.checks() {
                let asked = DirectedQuestion {
                    question: Question::Probe(*check),
                    direction,
                };
                if only.is_some_and(|only| only != asked) {
                    continue;
                }
                self.asker.step("")?;
                if !self.is_cut {
                    // The listener restores its offloads if it hears nothing.
                    self.talk(&Ask::Still)?;
                }
                let fault = if self.is_cut {
                    Some(CUT.to_owned())
                } else {
                    let token = self.asker.question.token.digits();
                    let called = probe::call(&Call {
                        server: self.server,
                        secret: Some(&token),
                        check_ms: CHECK_MS,
                        datagram_bytes: self.datagram_bytes,
                        checks: &[(direction, *check)],
                        mtu: false,
                    });
                    match called {
                        Ok(findings) => {
                            found.extend(answers(&findings));
                            None
                        }
                        Err(error) => Some(error.to_string()),
                    }
                };
                if fault.is_some() {
                    found.entry(asked).or_default().fault = fault;
                }
            }
        }
        Ok(found)
    }
}

fn lost(reason: String) -> CheckError {
    CheckError::Lost {
        during: "tried offloads",
        reason,
    }
}

/// The names that this check has for both ends, in the words of an examination.
fn local(words: &str) -> String {
    let names = [
        (" from A to B", " from here"),
        (" from B to A", " to here"),
        ("of a/", "of here/"),
        ("of b/", "of there/"),
    ];
    let replace = |words: String, (of_lab, own): (&str, &str)| words.replace(of_lab, own);
    names.into_iter().fold(words.to_owned(), replace)
}

fn concluded(
    result: &Examination,
    settings: &[Setting],
    not_changed: Vec<String>,
    not_restored: Vec<String>,
    took: Duration,
) -> OffloadFindings {
    let hurting = result.findings.iter();
    OffloadFindings {
        settings: settings.len() as u32,
        combinations: result.rows as u32,
        pairs: result.pairs as u32,
        pairs_covered: result.pairs_covered as u32,
        trials: result.trials as u32,
        hurting: hurting.map(|finding| hurts(finding, settings)).collect(),
        unexplained: result.unexplained.iter().map(|it| local(it)).collect(),
        not_changed,
        not_restored,
        took_ms: took.as_millis() as u64,
    }
}

fn hurts(finding: &Finding, settings: &[Setting]) -> Hurting {
    let causes = finding.causes.iter().map(|cause| {
        let setting = &settings[cause.factor];
        local(&format!(
            "{} = {}",
            setting.name(),
            setting.value(cause.level)
        ))
    });
    let symptoms = finding.symptoms.iter();
    let symptoms = symptoms.map(|it| local(&format!("{}: {}", it.asked, it.words)));
    // A change of any one of them suffices.
    let in_force = finding.causes.iter().filter(|_| finding.in_force);
    let remedies = in_force.map(|cause| {
        let setting = &settings[cause.factor];
        let commands = setting.commands(1 - cause.level).into_iter();
        let commands = commands.map(|(node, words)| {
            let host = if node == NodeId::A { "here" } else { "there" };
            format!("{host}: {}", words.join(" "))
        });
        Remedy {
            commands: commands.collect(),
            keep: setting.kept(1 - cause.level),
        }
    });
    Hurting {
        causes: causes.collect(),
        symptoms: symptoms.collect(),
        in_force: finding.in_force,
        confirmed: finding.confirmed,
        remedies: remedies.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Refusal;
    use offloads::Answer as Found;
    use std::convert::Infallible;

    /// A path that breaks while its third setting is as found.
    struct Broken {
        settings: Vec<Setting>,
        row: Vec<u8>,
    }

    impl Subject for Broken {
        type Error = Infallible;

        fn settings(&self) -> &[Setting] {
            &self.settings
        }

        fn apply(&mut self, row: &[u8]) -> Result<Vec<u8>, Infallible> {
            self.row = row.to_vec();
            Ok(self.row.clone())
        }

        fn answers(&mut self, _: Option<DirectedQuestion>) -> Result<Answers, Infallible> {
            let asked = DirectedQuestion {
                question: Question::Probe(Check::Tcp),
                direction: Direction::Down,
            };
            let fault = (self.row[2] == 0).then(|| "stalled".to_owned());
            let answer = Found {
                fault,
                ..Found::default()
            };
            Ok(Answers::from([(asked, answer)]))
        }
    }

    #[test]
    fn a_finding_names_the_host_the_offload_and_the_command() {
        let examined = [Examined {
            name: "w0".to_owned(),
            on: vec!["tso".to_owned()],
            off: vec!["gro".to_owned(), "of-a-later-version".to_owned()],
            refused: Vec::new(),
        }];
        let mut settings = settings(NodeId::A, &examined);
        settings.extend(self::settings(NodeId::B, &examined));
        assert_eq!(settings.len(), 4);
        let mut path = Broken {
            settings,
            row: Vec::new(),
        };
        let Ok(result) = examine(&mut path, TIME, &mut |_| ());
        let found = concluded(&result, &path.settings, Vec::new(), Vec::new(), TIME);
        let hurting = &found.hurting[0];
        assert!(hurting.in_force && hurting.confirmed, "{hurting:?}");
        assert_eq!(hurting.causes, ["tso of there/w0 = on"]);
        assert_eq!(hurting.symptoms, ["TCP to here: stalled"]);
        let remedy = &hurting.remedies[0];
        assert_eq!(remedy.commands, ["there: ethtool -K w0 tso off"]);
        assert_eq!(remedy.keep[0].file, "/etc/systemd/network/10-w0.link");
        assert_eq!(
            local("TCP from A to B: lost (with `gro of b/w0` = on)"),
            "TCP from here: lost (with `gro of there/w0` = on)"
        );
    }

    #[test]
    fn refused_offloads_are_listed_with_their_interface_and_reason() {
        let examined = [Examined {
            name: "w0".to_owned(),
            refused: vec![Refusal {
                reason: "fixed by the driver".to_owned(),
                features: vec!["lro".to_owned(), "rx-gro-hw".to_owned()],
            }],
            ..Examined::default()
        }];
        assert_eq!(
            refused("there", &examined),
            ["there/w0: lro, rx-gro-hw (fixed by the driver)"]
        );
    }
}
