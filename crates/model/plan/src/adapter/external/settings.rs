//! Settings of third-party boxes in the path.

use super::gateway::GatewayPeer;
use super::monitor::Observed;
use crate::adapter::carrier::{Carrier, LinkForm};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::{IntoStaticStr, VariantArray};
use wire::Suite;

/// Third-party boxes between the lab's [`Cables`](crate::Cables).
///
/// All of this is written to the journal: it must not contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// The box at A's cable and the one at B's; of two that are managed in one place, only the
    /// first.
    pub boxes: Vec<ExternalBox>,
    /// Format and suite that their sealed packets must have; `None` if they do not encrypt, or with
    /// a [`BoxFormat`].
    pub carrier: Option<Carrier>,
    /// Another format of their frames; `None` if they have a carrier, or forward in clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<BoxFormat>,
    /// UDP ports of the sealed packets and of the key exchange; for ESP, bare ESP is also expected.
    pub ports: Vec<u16>,
    /// Whether they pass Ethernet frames on between the stations, which are in one network then
    /// (bumps in the wire), or route packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bump: bool,
    /// Set to measure one gateway alone: how the station at B's cable, the other end of its
    /// tunnels, agrees on keys with the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Box<GatewayPeer>>,
    /// Tunnels: 1, or one for each pair of the first test addresses.
    #[serde(default = "crate::one", skip_serializing_if = "crate::is_one")]
    pub tunnels: u16,
    /// The boxes' name of the suite, if it differs; for [`BoxFormat::Opaque`] the cipher in the
    /// maker's words, a claim that nothing here proves.
    pub suite_word: Option<String>,
    /// Timeout of one command, in nanoseconds.
    pub limit_ns: u64,
    /// Timeout from the last command until A reaches B, in nanoseconds.
    pub ready_ns: u64,
}

/// A format of frames between boxes that no [`Carrier`] describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoxFormat {
    /// GRE (RFC 2784, RFC 2890), which does not encrypt.
    Gre,
    /// L2TPv3 (RFC 3931), which does not encrypt.
    L2tpv3,
    /// The maker's proprietary sealed format; only its owner's description is known.
    Opaque {
        /// The most that it adds to a frame, in bytes.
        expands_bytes: u16,
        /// Whether several of the stations' frames may share one between the boxes.
        aggregate: bool,
    },
}

impl BoxFormat {
    /// Required form of the boxes' frames.
    #[must_use]
    pub const fn form(self) -> LinkForm {
        match self {
            Self::Gre => LinkForm::Gre,
            Self::L2tpv3 => LinkForm::L2tpv3,
            Self::Opaque { .. } => LinkForm::Opaque,
        }
    }
}

/// Commands of one box, with [`Placeholder`]s.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalBox {
    /// Program and arguments that take a command as their last argument: `ssh`, `admin@192.0.2.1`.
    /// Empty: a shell on this machine.
    pub via: Vec<String>,
    /// Commands that bring it up, one after the other.
    pub up: Vec<String>,
    /// Commands that take it down, also after a failure.
    pub down: Vec<String>,
    /// Prints the box's model and software.
    pub version: Option<String>,
    /// Prints the suite in use, once traffic passes.
    pub suite_told: Option<String>,
    /// Commands by counter name: the first number that one prints is the count.
    pub counters: BTreeMap<String, String>,
    /// Commands that print lines of `name number`.
    pub counter_lines: Vec<String>,
    /// Restarts the box, or a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// Prints a value that changes with each restart by `reset`: a process id, a boot id, a start
    /// time. Set if `reset` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Values read by SNMP or from a page, and values read while traffic flows.
    #[serde(default, skip_serializing_if = "Observed::is_empty")]
    pub observed: Observed,
}

impl ExternalBox {
    /// Every command that a trial runs, except the commands for resets.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        // Resets are not among them: only trials of resets run those.
        let lists = [&self.up, &self.down, &self.counter_lines];
        let lists = lists.into_iter().flatten();
        let asked = self.version.iter().chain(&self.suite_told);
        let read = self.counters.values().chain(self.observed.commands());
        let all = lists.chain(asked).chain(read);
        all.map(String::as_str)
    }
}

impl External {
    /// The boxes' name of the suite; by default Cipherbench's name.
    #[must_use]
    pub fn suite_word(&self) -> &str {
        let configured = self.suite_word.as_deref();
        // A command may contain the word, even if the boxes seal nothing.
        configured.or(self.sealed_with()).unwrap_or("none")
    }

    /// The suite that they seal with, if campaigns know it.
    #[must_use]
    pub fn suite(&self) -> Option<Suite> {
        self.carrier.map(|carrier| carrier.suite)
    }

    /// The suite's name, or the cipher in the maker's words; `None` if the boxes do not encrypt.
    #[must_use]
    pub fn sealed_with(&self) -> Option<&str> {
        match (&self.carrier, &self.format) {
            (Some(carrier), _) => Some(carrier.suite.name()),
            (None, Some(BoxFormat::Opaque { .. })) => self.suite_word.as_deref(),
            // GRE and L2TPv3 seal nothing.
            (None, _) => None,
        }
    }

    /// Required form of their frames; `None` if they forward in clear.
    #[must_use]
    pub fn form(&self) -> Option<LinkForm> {
        let sealed = self.carrier.map(|carrier| LinkForm::Sealed(carrier.form));
        sealed.or(self.format.map(BoxFormat::form))
    }
}

/// A word in braces in a box's command that is replaced: `{mtu}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Placeholder {
    /// The suite's name in campaigns, or the maker's words; `none` if the boxes do not encrypt.
    Suite,
    /// The boxes' name of the suite.
    SuiteWord,
    /// IP MTU of the stations' cables in bytes.
    Mtu,
    /// IP MTU of the link between the boxes in bytes.
    CipherMtu,
    /// Station A's address.
    StationA,
    /// Station B's address.
    StationB,
    /// Number of tunnels.
    Tunnels,
    /// The address that A sends to: the box's at A's cable.
    GatewayA,
    /// The address that B sends to.
    GatewayB,
    /// The network at A's cable.
    NetworkA,
    /// The network at B's cable.
    NetworkB,
    /// Network of the test frames on A's side.
    TestNetworkA,
    /// Network of the test frames on B's side.
    TestNetworkB,
    /// The first box's address between the boxes.
    CipherA,
    /// The second box's.
    CipherB,
}

impl Placeholder {
    /// The word between the braces.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A command with its placeholders replaced by the results of `value`.
///
/// A word of small letters and `_` in braces is a placeholder, unless `$` precedes it: the shell's
/// `${variable}`, `{print $1}` and `{a,b}` stay unchanged.
///
/// # Errors
/// The first word in braces that names no placeholder.
pub fn fill_in(
    command: &str,
    mut value: impl FnMut(Placeholder) -> String,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = command;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let is_word = |word: &&str| {
            let fits = |c: char| c.is_ascii_lowercase() || c == '_';
            !word.is_empty() && word.chars().all(fits) && !before.ends_with('$')
        };
        // Only words that look like placeholders are checked: other braces belong to the shell or
        // to the language of the box.
        let word = after.split_once('}').map(|(word, _)| word).filter(is_word);
        rest = match word {
            Some(word) => {
                let mut known = Placeholder::VARIANTS.iter();
                let known = known.find(|known| known.name() == word);
                // An unknown word is a slip, which a box would take literally.
                filled.push_str(&value(*known.ok_or(word)?));
                // Behind the closing brace. A replaced value is not searched again: it may
                // contain braces.
                &after[word.len() + 1..]
            }
            None => {
                filled.push('{');
                after
            }
        };
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Longest command, in characters.
pub const COMMAND_CHARS_MAX: usize = 4000;

/// Whether a command is not empty and short enough.
#[must_use]
pub fn command_fits(command: &str) -> bool {
    !command.trim().is_empty() && command.chars().count() <= COMMAND_CHARS_MAX
}

/// Whether a campaign can contain this command.
#[must_use]
pub fn is_command(command: &str) -> bool {
    command_fits(command) && fill_in(command, |_| String::new()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(command: &str) -> Result<String, String> {
        fill_in(command, |placeholder| {
            placeholder.name().to_ascii_uppercase()
        })
    }

    #[test]
    fn placeholders_are_replaced_and_a_shells_braces_stay() {
        let kept = "awk '{print $1}' ${home}/{a,b} {} {A} { mtu } {";
        assert_eq!(filled(kept).as_deref(), Ok(kept));
        assert_eq!(
            filled("set mtu={mtu} to={cipher_a}-{cipher_b}").as_deref(),
            Ok("set mtu=MTU to=CIPHER_A-CIPHER_B")
        );
        assert_eq!(filled("{{mtu}}").as_deref(), Ok("{MTU}"));
        assert_eq!(filled("a {mut} {nut}"), Err("mut".to_owned()));
    }

    #[test]
    fn every_placeholder_is_found_by_its_name() {
        for &placeholder in Placeholder::VARIANTS {
            let command = format!("x{{{}}}y", placeholder.name());
            let found = fill_in(&command, |found| {
                assert_eq!(found, placeholder);
                String::new()
            });
            assert_eq!(found.as_deref(), Ok("xy"));
        }
    }
}
