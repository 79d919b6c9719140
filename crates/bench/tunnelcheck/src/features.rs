//! The offloads of this host's interfaces: which of them can be changed, their changes, and the way
//! back, which another process keeps.

use crate::findings::{Examined, Refusal};
use guard::output_within;
use offloads::{FEATURES, Feature};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testbed::ethtool;

const OUTPUT_BYTES_MAX: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(10);
/// Most characters of a driver's words.
pub(crate) const REASON_CHARS_MAX: usize = 60;

/// A setting of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Setting {
    interface: usize,
    feature: &'static Feature,
    found: bool,
}

/// The offloads of this host. Dropping it restores them.
pub(crate) struct Offloads {
    interfaces: Vec<Examined>,
    settings: Vec<Setting>,
    /// The features of each interface before any change.
    found: Vec<BTreeMap<String, ethtool::Feature>>,
    guardian: Guardian,
    row: Vec<u8>,
}

impl Offloads {
    /// Reads the features of interfaces, and tries which can be changed. An error is a clause for
    /// people.
    pub(crate) fn find(names: &[String]) -> Result<Self, String> {
        let found = names.iter().map(|name| read(name));
        let found: Vec<_> = found.collect::<Result<_, _>>()?;
        let mut restoring = Vec::new();
        for (name, features) in names.iter().zip(&found) {
            for (feature, state) in known(features).filter(|(_, state)| !state.is_fixed) {
                restoring.extend([name, feature.word, on_or_off(state.wanted)].map(str::to_owned));
            }
        }
        // First of all: from here on features are changed.
        let guardian = Guardian::start(&restoring)
            .map_err(|error| format!("no process that restores offloads: {error}"))?;
        let mut offloads = Self {
            interfaces: Vec::new(),
            settings: Vec::new(),
            found,
            guardian,
            row: Vec::new(),
        };
        for (number, name) in names.iter().enumerate() {
            offloads.try_each(number, name)?;
        }
        offloads.row = vec![0; offloads.settings.len()];
        Ok(offloads)
    }

    /// The interfaces with their features: settings are numbered in this order.
    pub(crate) fn interfaces(&self) -> &[Examined] {
        &self.interfaces
    }

    /// The number of settings.
    pub(crate) const fn len(&self) -> usize {
        self.settings.len()
    }

    /// Tries each feature of an interface, and puts it back.
    fn try_each(&mut self, number: usize, name: &str) -> Result<(), String> {
        let mut examined = Examined {
            name: name.to_owned(),
            ..Examined::default()
        };
        let features: Vec<_> = known(&self.found[number]).collect();
        let changeable = features.iter().filter(|(_, state)| !state.is_fixed);
        let as_found: Vec<_> = changeable
            .map(|(feature, state)| (feature.word, state.wanted))
            .collect();
        let mut settings = Vec::new();
        for (feature, state) in features {
            let refusal = if state.is_fixed {
                Some("fixed by the driver".to_owned())
            } else {
                let said = set(name, &[(feature.word, !state.on)])?;
                let is_changed = is_on(&read(name)?, feature) != state.on;
                // What depends on it goes with it, and comes back with it.
                set(name, &[(feature.word, state.wanted)])?;
                set(name, &as_found)?;
                let first = said.lines().next().unwrap_or("ethtool changes nothing");
                (!is_changed).then(|| first.chars().take(REASON_CHARS_MAX).collect())
            };
            match refusal {
                Some(reason) => refuse(&mut examined.refused, reason, feature.word),
                None => settings.push(Setting {
                    interface: number,
                    feature,
                    found: state.on,
                }),
            }
        }
        // As the message has them.
        settings.sort_by_key(|setting| !setting.found);
        for setting in &settings {
            let list = if setting.found {
                &mut examined.on
            } else {
                &mut examined.off
            };
            list.push(setting.feature.word.to_owned());
        }
        self.settings.extend(settings);
        self.interfaces.push(examined);
        Ok(())
    }

    /// Sets a level of each setting, 0 as found; returns the levels in force.
    pub(crate) fn apply(&mut self, row: &[u8]) -> Result<Vec<u8>, String> {
        if row.len() != self.settings.len() || row.iter().any(|level| *level > 1) {
            return Err("a combination of other settings".to_owned());
        }
        for (number, examined) in self.interfaces.iter().enumerate() {
            let settings = self.settings.iter().zip(row.iter().zip(&self.row));
            let of_it = settings.filter(|(setting, _)| setting.interface == number);
            let of_it: Vec<_> = of_it.collect();
            if of_it.iter().any(|(_, (wanted, now))| wanted != now) {
                // All of the interface: the kernel may have turned off some with others.
                let features: Vec<_> = of_it
                    .iter()
                    .map(|(setting, (wanted, _))| {
                        (setting.feature.word, setting.found == (**wanted == 0))
                    })
                    .collect();
                set(&examined.name, &features)?;
            }
        }
        let now = self.interfaces.iter().map(|examined| read(&examined.name));
        let now: Vec<_> = now.collect::<Result<_, _>>()?;
        let levels = self.settings.iter().map(|setting| {
            let on = is_on(&now[setting.interface], setting.feature);
            u8::from(on != setting.found)
        });
        self.row = levels.collect();
        Ok(self.row.clone())
    }

    /// Whether every setting is as it was found, as far as it was set.
    pub(crate) fn is_as_found(&self) -> bool {
        self.row.iter().all(|level| *level == 0)
    }

    /// Restores everything. Returns the features that are not as they were found.
    pub(crate) fn restore(mut self) -> Vec<String> {
        self.guardian.end();
        let mut wrong = Vec::new();
        for (examined, found) in self.interfaces.iter().zip(&self.found) {
            let name = &examined.name;
            match read(name) {
                Ok(now) => {
                    let differing = known(found).filter(|(feature, state)| {
                        now.get(feature.printed).map(|now| now.on) != Some(state.on)
                    });
                    wrong.extend(differing.map(|(feature, state)| {
                        format!("{} of {name} was {}", feature.word, on_or_off(state.on))
                    }));
                }
                Err(reason) => wrong.push(reason),
            }
        }
        wrong
    }
}

/// The features of the examination that an interface has.
fn known(
    features: &BTreeMap<String, ethtool::Feature>,
) -> impl Iterator<Item = (&'static Feature, ethtool::Feature)> {
    FEATURES
        .iter()
        .filter_map(|feature| Some((feature, *features.get(feature.printed)?)))
}

fn is_on(features: &BTreeMap<String, ethtool::Feature>, feature: &Feature) -> bool {
    features.get(feature.printed).is_some_and(|state| state.on)
}

fn refuse(refused: &mut Vec<Refusal>, reason: String, word: &str) {
    match refused.iter_mut().find(|known| known.reason == reason) {
        Some(known) => known.features.push(word.to_owned()),
        None => refused.push(Refusal {
            reason,
            features: vec![word.to_owned()],
        }),
    }
}

fn read(interface: &str) -> Result<BTreeMap<String, ethtool::Feature>, String> {
    let (text, said) = ethtool(&["-k", interface])?;
    if text.is_empty() {
        return Err(format!("`ethtool -k {interface}` failed: {}", said.trim()));
    }
    let features = ethtool::features(&text);
    Ok(features
        .map(|(name, feature)| (name.to_owned(), feature))
        .collect())
}

/// Sets features; returns what ethtool says. Its effect is read afterwards.
fn set(interface: &str, features: &[(&str, bool)]) -> Result<String, String> {
    let mut words = vec!["-K", interface];
    for (word, on) in features {
        words.extend([*word, on_or_off(*on)]);
    }
    Ok(ethtool(&words)?.1)
}

fn ethtool(words: &[&str]) -> Result<(String, String), String> {
    let mut command = Command::new("ethtool");
    let ended = output_within(command.args(words), OUTPUT_BYTES_MAX, LIMIT);
    let ended = ended.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "ethtool is missing: apt install ethtool".to_owned(),
        _ => format!("`ethtool` cannot be used: {error}"),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&ended.stdout), text(&ended.stderr)))
}

pub(crate) const fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The process that restores offloads once this one is gone, however that comes: its standard input
/// ends then.
struct Guardian(Child);

impl Guardian {
    const SCRIPT: &str = "trap '' HUP INT TERM; read -r _; \
                          while [ $# -ge 3 ]; do ethtool -K \"$1\" \"$2\" \"$3\"; shift 3; done";

    /// `restoring` has an interface, a feature and its value again and again.
    fn start(restoring: &[String]) -> io::Result<Self> {
        let child = Command::new("sh")
            .args(["-c", Self::SCRIPT, "sh"])
            .args(restoring)
            // Ctrl-C in a terminal ends a whole group.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self(child))
    }

    fn end(&mut self) {
        drop(self.0.stdin.take());
        // Its result is read from the interfaces.
        let _ = self.0.wait();
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.end();
    }
}
