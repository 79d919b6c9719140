//! Readings of a box other than by its commands: by SNMP, from a Prometheus page, and at an
//! interval while traffic flows.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::IntoStaticStr;

/// Values read from a box: once, before and after a trial, and at an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The box's model and software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Source>,
    /// Counters by name, read before and after a trial, like the counters of commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, Source>,
    /// Values read at an interval while traffic flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<Monitor>,
}

/// Readings of a box at an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// From one round of readings to the next, in nanoseconds.
    pub interval_ns: u64,
    /// The readings, in the order of each round.
    pub readings: Vec<Reading>,
}

/// One value that is read again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// `cpu`, `temperature`, `power`, or the name that the campaign gives it.
    pub name: String,
    /// Kind of the value.
    pub kind: ReadingKind,
    /// Unit of the value times `scale_ppm`; for a counter, which is reported as a rate, per second.
    pub unit: String,
    /// Factor for the value, in millionths.
    pub scale_ppm: u64,
    /// Source of the value.
    pub source: Source,
}

/// Kinds of readings.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ReadingKind {
    /// Utilisation of a processor in per cent.
    Cpu,
    /// Temperature in °C.
    Temperature,
    /// Electrical power in W.
    Power,
    /// Any other value that rises and falls.
    Gauge,
    /// A value that only rises; its rate is reported.
    Counter,
}

impl ReadingKind {
    /// As journals and results name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A command with [`Placeholder`](super::Placeholder)s, run like the box's other commands: the
    /// first number that it prints.
    Command(String),
    /// An object of an SNMP agent.
    Snmp {
        /// The agent.
        agent: SnmpAgent,
        /// Object identifier of the instance, in dotted decimal.
        oid: String,
    },
    /// A metric on a page in Prometheus's text format.
    Prometheus {
        /// `http://host:port/path`.
        url: String,
        /// The metric's name.
        metric: String,
        /// Labels that it must have; it may have more.
        labels: BTreeMap<String, String>,
        /// The label to read instead of the metric's value; only for a version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
}

/// An SNMP agent and how to log in there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SnmpAgent {
    /// `host:port`, of UDP.
    pub address: String,
    /// Version and credentials.
    pub login: SnmpLogin,
}

/// Version and credentials for an SNMP agent. The secrets themselves are in none of Cipherbench's
/// files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnmpLogin {
    /// Version 2c (RFC 1901), in clear.
    V2c {
        /// The community.
        community: Secret,
    },
    /// Version 3 with the User-based Security Model (RFC 3414).
    V3 {
        /// The user's name.
        user: String,
        /// Authentication protocol (RFC 3414, RFC 7860).
        authentication: SnmpAuthentication,
        /// Password of authentication.
        password: Secret,
        /// Encryption with its password; `None`: authNoPriv.
        privacy: Option<(SnmpPrivacy, Secret)>,
    },
}

/// Authentication protocols of SNMPv3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnmpAuthentication {
    /// HMAC-MD5-96.
    Md5,
    /// HMAC-SHA-96.
    #[serde(rename = "sha-1")]
    Sha1,
    /// HMAC-SHA-2 with 256 bits, truncated to 192.
    #[serde(rename = "sha-256")]
    Sha256,
    /// HMAC-SHA-2 with 384 bits, truncated to 256.
    #[serde(rename = "sha-384")]
    Sha384,
    /// HMAC-SHA-2 with 512 bits, truncated to 384.
    #[serde(rename = "sha-512")]
    Sha512,
}

/// Privacy protocols of SNMPv3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnmpPrivacy {
    /// CBC-DES (RFC 3414 §8).
    Des,
    /// CFB128-AES-128 (RFC 3826).
    #[serde(rename = "aes-128")]
    Aes128,
    /// AES-256 in CFB, with the localized key extended as in Blumenthal's draft.
    #[serde(rename = "aes-256")]
    Aes256,
    /// AES-256 in CFB, with the localized key extended as in Reeder's draft: Cisco's.
    #[serde(rename = "aes-256-cisco")]
    Aes256Cisco,
}

/// Location of a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Secret {
    /// The first line of a file that only its owner can read; an absolute path.
    File(String),
    /// The value of an environment variable of the run.
    Environment(String),
}

impl Secret {
    fn place(&self) -> String {
        match self {
            // The place alone: these words are printed, and a secret is in no plan.
            Self::File(path) => format!("the file {path}"),
            Self::Environment(name) => format!("the variable {name}"),
        }
    }
}

impl Source {
    /// The command, the page, or the agent and the places of its secrets.
    fn demand(&self) -> String {
        match self {
            Self::Command(command) => command.clone(),
            Self::Snmp { agent, .. } => {
                let secrets = match &agent.login {
                    SnmpLogin::V2c { community } => community.place(),
                    SnmpLogin::V3 {
                        password, privacy, ..
                    } => {
                        // The places of the secrets, never their contents.
                        let more = privacy.as_ref().map(|(_, secret)| secret.place());
                        let all: Vec<_> = [password.place()].into_iter().chain(more).collect();
                        all.join(" and ")
                    }
                };
                format!("SNMP to {}, with the secret in {secrets}", agent.address)
            }
            // Pages are read without a secret.
            Self::Prometheus { url, .. } => url.clone(),
        }
    }
}

impl Observed {
    /// Whether nothing is read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The commands, the agents with their secrets, and the pages, each with its key.
    pub(super) fn demands(&self) -> impl Iterator<Item = (&'static str, String)> {
        let version = self.version.iter().map(|source| ("version", source));
        let counters = self.counters.values().map(|source| ("counters", source));
        let readings = self.readings().map(|it| ("monitor", &it.source));
        let all = version.chain(counters).chain(readings);
        all.map(|(key, source)| (key, source.demand()))
    }

    /// The commands that are run at an interval.
    pub(super) fn commands(&self) -> impl Iterator<Item = &String> {
        self.readings().filter_map(|reading| match &reading.source {
            Source::Command(command) => Some(command),
            _ => None,
        })
    }

    /// Number of values read once by SNMP or from a page: the version, and the first value of each
    /// reading, without counters.
    pub(super) fn queries(&self) -> usize {
        // Not negative: each command is one of the readings.
        let asked = self.readings().count() - self.commands().count();
        usize::from(self.version.is_some()) + asked
    }

    fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.monitor.iter().flat_map(|monitor| &monitor.readings)
    }
}
