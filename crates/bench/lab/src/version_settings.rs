//! The settings of a DUT's version on stations and gateways: applied before it starts, read back,
//! and restored after it has stopped.
//!
//! Kernel parameters and virtual interfaces go with their namespaces, so that a killed run leaves
//! nothing of them; interfaces of the machine get their features back from the station
//! ([`crate::lent`]).

use crate::on_node::ask;
use crate::procfs::{sysctl_path, sysctl_words};
use plan::{LINK_FEATURES, NodeSettings};
use std::collections::BTreeMap;
use testbed::ethtool::{self, Feature};
use testbed::protocol::Ended;
use testbed::{Node, NodeId, Result};

/// Attempts to restore features: some change others.
const PASSES: usize = 4;

/// The settings of one node before a version changed them.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    sysctls: Vec<Changed>,
    /// By interface.
    features: Vec<(String, Features)>,
    /// The features that the version asked for.
    asked: BTreeMap<String, bool>,
}

#[derive(Debug)]
struct Changed {
    name: String,
    was: String,
    set: String,
}

/// Why a setting cannot be applied or restored, with what to do.
type Refusal = String;

/// Settings with their former values, by name.
pub(crate) type Facts = BTreeMap<String, String>;

/// The settings of a node that must be restored.
pub(crate) type ToRestore = Vec<(NodeId, Applied)>;

/// The applied settings, or the one that is refused.
pub(crate) type Outcome = Result<std::result::Result<Facts, Refusal>>;

/// The features of an interface, by `ethtool -k`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Features(BTreeMap<String, Feature>);

impl Applied {
    /// Applies settings to a node, and adds to `applied` what must be restored, even if one fails.
    /// Returns each setting with its former value.
    pub(crate) fn apply(
        &mut self,
        node: &dyn Node,
        interfaces: &[&str],
        settings: &NodeSettings,
    ) -> Outcome {
        let mut facts = Facts::new();
        for (name, value) in &settings.sysctls {
            let set = sysctl_words(value);
            let Some(was) = read(node, name)? else {
                let help = if name == CONGESTION {
                    "this kernel has no TCP"
                } else {
                    "see `sysctl -a` for its name; parameters of the whole machine are in no network \
                     namespace, nor are those of a module that is not loaded"
                };
                return Ok(Err(format!(
                    "{} has no kernel parameter {name}\nhelp: {help}",
                    node.name()
                )));
            };
            self.sysctls.push(Changed {
                name: name.clone(),
                was: was.clone(),
                set: set.clone(),
            });
            let ended = write(node, name, value)?;
            let now = read(node, name)?.unwrap_or_default();
            if now != set {
                return Ok(Err(refused(node, name, value, &now, &ended)));
            }
            facts.insert(name.clone(), format!("{set}, was {was}"));
        }
        if settings.features.is_empty() {
            return Ok(Ok(facts));
        }
        self.asked.clone_from(&settings.features);
        for interface in interfaces {
            let before = Features::read(node, interface)?;
            self.features
                .push(((*interface).to_owned(), before.clone()));
            let ended = set_features(node, interface, &settings.features)?;
            let after = Features::read(node, interface)?;
            for (name, on) in &settings.features {
                let (found, state) = (after.0.get(name), before.0.get(name));
                if found.is_none_or(|found| found.on != *on) {
                    let why = match found {
                        None => "it does not have it".to_owned(),
                        Some(Feature { is_fixed: true, .. }) => "its driver fixes it".to_owned(),
                        Some(_) => {
                            format!("ethtool ends with {}{}", ended.how(), ended.last_words())
                        }
                    };
                    return Ok(Err(format!(
                        "{interface} of {} cannot have {name} {}: {why}\nhelp: see `ethtool -k` for \
                         what it can change; some features need others, which must be set too",
                        node.name(),
                        plan::on_off(*on)
                    )));
                }
                let was = state.is_some_and(|state| state.on);
                facts.insert(
                    format!("{interface} {name}"),
                    format!("{}, was {}", plan::on_off(*on), plan::on_off(was)),
                );
            }
        }
        Ok(Ok(facts))
    }

    /// Restores the former settings, reads them back, and returns what is wrong: a setting that
    /// something else had changed meanwhile, or one that cannot be restored.
    pub(crate) fn restore(&self, node: &dyn Node) -> Result<Vec<Refusal>> {
        let mut wrong = Vec::new();
        let name = node.name();
        // In reverse, because one may have changed another.
        for (interface, before) in self.features.iter().rev() {
            let now = Features::read(node, interface)?;
            let lost = self.asked.iter().filter(|(name, on)| {
                let found = now.0.get(*name);
                // One that could not be set was reported then.
                found.is_some_and(|found| found.on != **on && !found.is_fixed)
            });
            wrong.extend(lost.map(|(feature, _)| {
                format!("{feature} of {interface} on {name} was changed during the trial")
            }));
            for _ in 0..PASSES {
                let other = before.unlike(&Features::read(node, interface)?);
                if other.is_empty() {
                    break;
                }
                set_features(node, interface, &other)?;
            }
            let left = before.unlike(&Features::read(node, interface)?);
            wrong.extend(left.iter().map(|(feature, on)| {
                format!(
                    "{feature} of {interface} on {name} cannot be switched back {}",
                    plan::on_off(*on)
                )
            }));
        }
        for Changed {
            name: sysctl,
            was,
            set,
        } in self.sysctls.iter().rev()
        {
            let now = read(node, sysctl)?.unwrap_or_default();
            if now != *set && now != *was {
                wrong.push(format!(
                    "{sysctl} on {name} was changed during the trial to {now}"
                ));
            }
            write(node, sysctl, was)?;
            let now = read(node, sysctl)?.unwrap_or_default();
            if now != *was {
                wrong.push(format!(
                    "{sysctl} on {name} cannot be set back to {was}: it is {now}"
                ));
            }
        }
        Ok(wrong)
    }
}

/// The interfaces of a node, and the settings that it gets.
pub(crate) struct Target<'a> {
    pub(crate) node: &'a dyn Node,
    pub(crate) interfaces: Vec<&'a str>,
    pub(crate) settings: &'a NodeSettings,
}

/// Applies settings to all nodes. Returns what must be restored in any case, and the settings by
/// `node/name` or the first refusal.
pub(crate) fn apply_all(targets: &[Target<'_>]) -> (ToRestore, Outcome) {
    let (mut all, mut facts) = (Vec::new(), Facts::new());
    for Target {
        node,
        interfaces,
        settings,
    } in targets
    {
        if settings.is_empty() {
            continue;
        }
        let mut applied = Applied::default();
        let outcome = applied.apply(*node, interfaces, settings);
        all.push((node.id(), applied));
        match outcome {
            Ok(Ok(found)) => facts.extend(
                found
                    .into_iter()
                    .map(|(name, value)| (format!("{}/{name}", node.name()), value)),
            ),
            other => return (all, other),
        }
    }
    (all, Ok(Ok(facts)))
}

const CONGESTION: &str = "net.ipv4.tcp_congestion_control";

fn refused(node: &dyn Node, name: &str, value: &str, now: &str, ended: &Ended) -> Refusal {
    let how = if ended.code == Some(0) {
        format!("it reads back as {now}")
    } else {
        format!("{}{}", ended.how(), ended.last_words())
    };
    let help = if name == CONGESTION {
        "`sysctl net.ipv4.tcp_available_congestion_control` lists those that are loaded, `sudo \
         modprobe tcp_NAME` loads another one"
    } else if ended.code == Some(0) {
        "write a value that the kernel keeps as it is, as `sysctl` prints it"
    } else {
        "see whether a network namespace may set it (sysctl(8), ip-sysctl), and its range"
    };
    format!(
        "{} cannot set {name} to {value}: {how}\nhelp: {help}",
        node.name()
    )
}

/// The value of a parameter; `None` if the namespace does not have it.
fn read(node: &dyn Node, name: &str) -> Result<Option<String>> {
    let ended = ask(node, ["cat", &sysctl_path(name)])?;
    Ok((ended.code == Some(0)).then(|| sysctl_words(&ended.stdout)))
}

fn write(node: &dyn Node, name: &str, value: &str) -> Result<Ended> {
    // Opened by the shell, which reports a refusal in words.
    let script = "printf '%s\\n' \"$1\" > \"$2\"";
    ask(node, ["sh", "-c", script, "sh", value, &sysctl_path(name)])
}

fn set_features(
    node: &dyn Node,
    interface: &str,
    wanted: &BTreeMap<String, bool>,
) -> Result<Ended> {
    let mut argv = vec!["ethtool", "-K", interface];
    for (name, on) in wanted {
        argv.extend([word_of(name), plan::on_off(*on)]);
    }
    ask(node, argv)
}

/// The word by which `ethtool -K` knows a feature: a short one, or the kernel's own.
fn word_of(printed: &str) -> &str {
    let mut known = LINK_FEATURES.iter();
    known
        .find(|(_, name)| *name == printed)
        .map_or(printed, |(word, _)| word)
}

impl Features {
    fn read(node: &dyn Node, interface: &str) -> Result<Self> {
        let ended = ask(node, ["ethtool", "-k", interface])?;
        if ended.code != Some(0) {
            return Err(node.error(format!(
                "`ethtool -k {interface}` failed ({}){}",
                ended.how(),
                ended.last_words()
            )));
        }
        Ok(Self::parse(&ended.stdout))
    }

    fn parse(text: &str) -> Self {
        let all = ethtool::features(text);
        Self(all.map(|(name, found)| (name.to_owned(), found)).collect())
    }

    /// The features that differ from the present ones and can be changed, with the states of
    /// these.
    fn unlike(&self, now: &Self) -> BTreeMap<String, bool> {
        let other = self.0.iter().filter(|(name, was)| {
            !was.is_fixed && now.0.get(*name).is_some_and(|now| now.on != was.on)
        });
        other.map(|(name, was)| (name.clone(), was.on)).collect()
    }
}

/// The features of an interface that a campaign may set and the driver can, as `ethtool -K` accepts
/// them, from the output of `ethtool -k`.
pub(crate) fn changeable(text: &str) -> BTreeMap<String, String> {
    let found = Features::parse(text).0;
    let known = LINK_FEATURES.iter().filter_map(|(word, printed)| {
        let found = found.get(*printed)?;
        (!found.is_fixed).then(|| ((*word).to_owned(), plan::on_off(found.on).to_owned()))
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Features for w0:\n\
                        rx-checksumming: off [fixed]\n\
                        tcp-segmentation-offload: on\n\
                        \ttx-tcp-segmentation: on\n\
                        \ttx-tcp-mangleid-segmentation: off\n\
                        generic-receive-offload: off [requested on]\n\
                        rx-gro-list: off\n";

    #[test]
    fn features_are_compared_by_line_and_fixed_ones_left_alone() {
        let before = Features::parse(TEXT);
        let after = Features::parse(
            &TEXT.replace("mangleid-segmentation: off", "mangleid-segmentation: on"),
        );
        let other: Vec<_> = before.unlike(&after).into_iter().collect();
        assert_eq!(other, [("tx-tcp-mangleid-segmentation".to_owned(), false)]);
        let fixed = Features::parse(&TEXT.replace("off [fixed]", "on [fixed]"));
        assert!(before.unlike(&fixed).is_empty());
    }

    #[test]
    fn borrowed_interfaces_get_back_every_feature_that_a_campaign_may_set() {
        let words: Vec<_> = changeable(TEXT).into_iter().collect();
        let words: Vec<_> = words.iter().map(|(word, on)| (&**word, &**on)).collect();
        assert_eq!(
            words,
            [("gro", "off"), ("rx-gro-list", "off"), ("tso", "on")]
        );
    }
}
