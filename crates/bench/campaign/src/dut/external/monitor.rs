//! Reads the readings of a box, and their sources.

use super::command::{read_command, read_name};
use super::declared::{
    AGENT, AUTHENTICATIONS, COUNTER, MONITOR, NAMED_READING, PRIVACIES, READING, SECRET_KEYS,
    VERSION,
};
use plan::{Monitor, Reading, ReadingKind, Secret, SnmpAgent, SnmpLogin, Source};
use std::collections::BTreeMap;
use yaml::{Map, Node, Reported};

const READINGS_MAX: usize = 50;
const UNIT_CHARS_MAX: usize = 20;
const SNMP_PORT: u16 = 161;
/// Longest object identifier (RFC 2578 §3.5).
const OID_ARCS_MAX: usize = 128;
/// Millionths in one.
const PPM: u64 = 1_000_000;
/// Decimals of a scale.
const SCALE_DECIMALS: usize = 6;
const SCALE_MAX: u64 = 1_000_000;

/// The default SNMP agent and page for the readings of a box.
#[derive(Debug, Clone, Default)]
pub(super) struct Sources {
    snmp: Option<SnmpAgent>,
    prometheus: Option<String>,
}

impl Sources {
    /// Reads the keys `snmp` and `prometheus` among others; a missing one is taken from `default`.
    pub(super) fn read(map: &Map<'_>, default: Self) -> Result<Self, Reported> {
        let snmp = map.with_default("snmp", default.snmp, |node| {
            node.keys(AGENT, read_agent).map(Some)
        });
        let prometheus = map.with_default("prometheus", default.prometheus, |node| {
            read_url(node).map(Some)
        });
        Ok(Self {
            snmp: snmp?,
            prometheus: prometheus?,
        })
    }

    /// Reads `oid`, or `metric` with its labels; `None` if both are absent.
    fn source(&self, map: &Map<'_>, is_fact: bool) -> Result<Option<Source>, Reported> {
        // A value may name another agent or page than its box.
        let own = Self::read(map, self.clone());
        let oid = map.with_default("oid", None, |node| read_oid(node).map(Some));
        let metric = map.with_default("metric", None, |node| read_metric(node).map(Some));
        let label = if is_fact { map.find("label") } else { Ok(None) };
        let (own, oid, metric, label) = (own?, oid?, metric?, label?);
        match (oid, metric) {
            (Some(_), Some(_)) => Err(map.node().mistake(
                "a value is read by SNMP or from a page, not both",
                "write `oid` or `metric`",
            )),
            (Some(oid), None) => match own.snmp {
                Some(agent) => Ok(Some(Source::Snmp { agent, oid })),
                None => Err(map.node().mistake(
                    "no SNMP agent is named for this `oid`",
                    "write `snmp: { agent: 192.0.2.1, … }` at the box, or beside `oid`",
                )),
            },
            (None, Some((metric, labels))) => match own.prometheus {
                // Prometheus has texts in labels only (`node_uname_info{release="…"} 1`); the
                // value of a metric is always a number.
                Some(url) if is_fact && label.is_none() => Err(map.node().mistake(
                    format!("a number of {url} is no version"),
                    "write `label`: the name of the label that has it",
                )),
                Some(url) => Ok(Some(Source::Prometheus {
                    url,
                    metric,
                    labels,
                    label,
                })),
                None => Err(map.node().mistake(
                    "no page is named for this `metric`",
                    "write `prometheus: http://192.0.2.1:9100/metrics` at the box, or beside `metric`",
                )),
            },
            (None, None) => Ok(None),
        }
    }

    fn required(&self, map: &Map<'_>, is_fact: bool) -> Result<Source, Reported> {
        let words = "write `oid` for an SNMP agent, or `metric` for a page of Prometheus";
        let source = self.source(map, is_fact)?;
        source.ok_or_else(|| map.node().mistake("nothing is to be read here", words))
    }
}

/// Reads the source of a version that no command prints.
pub(super) fn read_version(node: Node<'_>, sources: &Sources) -> Result<Source, Reported> {
    node.keys(VERSION, |map| sources.required(map, true))
}

/// Reads the source of a counter that no command prints.
pub(super) fn read_counter(node: Node<'_>, sources: &Sources) -> Result<Source, Reported> {
    node.keys(COUNTER, |map| sources.required(map, false))
}

/// Reads the readings that are taken at an interval.
pub(super) fn read_monitor(node: Node<'_>, sources: &Sources) -> Result<Monitor, Reported> {
    node.keys(MONITOR, |map| {
        let interval = map.get("interval");
        // These have a fixed unit, so that reports can compare boxes; others state theirs.
        let known = [
            ("cpu", ReadingKind::Cpu, "%"),
            ("temperature", ReadingKind::Temperature, "°C"),
            ("power", ReadingKind::Power, "W"),
        ];
        let known = known.map(|(key, kind, unit)| {
            map.with_default(key, None, |node| {
                read_reading(node, sources, (key, kind, Some(unit))).map(Some)
            })
        });
        let named = |key, kind| {
            map.with_default(key, Vec::new(), |node| {
                node.entries(|name, value| {
                    read_name(&name, value, "a reading")?;
                    read_reading(value, sources, (name.value, kind, None))
                })
            })
        };
        let gauges = named("gauges", ReadingKind::Gauge);
        let counters = named("counters", ReadingKind::Counter);
        let mut readings = Vec::new();
        for reading in known {
            readings.extend(reading?);
        }
        readings.extend(gauges?);
        readings.extend(counters?);
        // Across all five keys: journals and tables find a reading by its name alone.
        let mut names: Vec<_> = readings.iter().map(|reading| &*reading.name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let what = format!("two readings are named `{}`", twice[0]);
            return Err(map.node().mistake(what, "give one another name"));
        }
        match readings.len() {
            1..=READINGS_MAX => Ok(Monitor {
                interval_ns: interval?,
                readings,
            }),
            count => Err(map.node().mistake(
                format!("{count} readings are given"),
                format!(
                    "write one to {READINGS_MAX}: `cpu`, `temperature`, `power`, or under `gauges` and `counters`"
                ),
            )),
        }
    })
}

/// Reads a command, or a map with the source, the scale and, if it is not known, the unit.
fn read_reading(
    node: Node<'_>,
    sources: &Sources,
    (name, kind, unit): (&str, ReadingKind, Option<&str>),
) -> Result<Reading, Reported> {
    let reading = |source, scale_ppm, unit: String| Reading {
        name: name.to_owned(),
        kind,
        unit,
        scale_ppm,
        source,
    };
    // The short form is a command alone. A gauge or a counter needs a map, for its unit.
    if let (false, Some(unit)) = (node.is_map(), unit) {
        let command = read_command(node)?;
        return Ok(reading(Source::Command(command), PPM, unit.to_owned()));
    }
    let keys = match unit {
        Some(_) => READING,
        None => NAMED_READING,
    };
    node.keys(keys, |map| {
        let source = sources.source(map, false);
        let command = map.with_default("command", None, |node| read_command(node).map(Some));
        let scale = map.read("scale", read_scale);
        let unit = match unit {
            Some(unit) => Ok(unit.to_owned()),
            None => map.required("unit").and_then(read_unit),
        };
        let source = match (source?, command?) {
            (Some(source), None) => source,
            (None, Some(command)) => Source::Command(command),
            (source, _) => {
                let what = match source {
                    Some(_) => "a value is read in one way, not two",
                    None => "nothing is to be read here",
                };
                let help = "write `command`, `oid` or `metric`";
                return Err(map.node().mistake(what, help));
            }
        };
        Ok(reading(source, scale?, unit?))
    })
}

fn read_unit(node: Node<'_>) -> Result<String, Reported> {
    let unit = node.text()?;
    if unit.chars().count() > UNIT_CHARS_MAX || unit.chars().any(char::is_control) {
        let help = format!("write up to {UNIT_CHARS_MAX} characters");
        return Err(node.mistake("a unit is not that long", help));
    }
    Ok(unit.to_owned())
}

/// A decimal number above 0, in millionths.
fn read_scale(node: Node<'_>) -> Result<u64, Reported> {
    let text = node.text()?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    // Zeros on the right make the decimals a number of millionths. Longer decimals stay longer,
    // and are refused below.
    let padded = format!("{decimals:0<SCALE_DECIMALS$}");
    let parsed = || {
        let fits = are_digits(whole) && are_digits(decimals) && padded.len() == SCALE_DECIMALS;
        let whole: u64 = fits.then(|| whole.parse().ok())??;
        Some(whole.checked_mul(PPM)? + padded.parse::<u64>().ok()?)
    };
    match parsed() {
        Some(ppm @ 1..) if ppm <= SCALE_MAX * PPM => Ok(ppm),
        _ => Err(node.mistake(
            format!("`{text}` is no scale"),
            format!(
                "write a number from 0.000001 to {SCALE_MAX} with up to {SCALE_DECIMALS} decimals, for example `0.1` for \
                 tenths of a degree"
            ),
        )),
    }
}

/// An object identifier, without a leading dot.
fn read_oid(node: Node<'_>) -> Result<String, Reported> {
    let text = node.text()?;
    let dotted = text.strip_prefix('.').unwrap_or(text);
    let arcs: Option<Vec<u32>> = dotted.split('.').map(|arc| arc.parse().ok()).collect();
    let fits = |arcs: &[u32]| {
        let first = arcs.first().copied().unwrap_or(u32::MAX);
        let second = arcs.get(1).copied().unwrap_or(u32::MAX);
        // BER encodes the first two arcs as the one number 40 × first + second (X.690 §8.19.4),
        // so only under arc 2 may the second exceed 39.
        arcs.len() <= OID_ARCS_MAX && (first < 2 && second < 40 || first == 2 && second < 1000)
    };
    match arcs {
        Some(arcs) if fits(&arcs) => Ok(dotted.to_owned()),
        _ => Err(node.mistake(
            format!("`{text}` is no object identifier"),
            "write numbers, with the instance: `1.3.6.1.2.1.1.3.0`; `snmptranslate -On NAME` prints them",
        )),
    }
}

/// `name`, or `name{label="value", …}`.
fn read_metric(node: Node<'_>) -> Result<(String, BTreeMap<String, String>), Reported> {
    let text = node.text()?;
    let parsed = || {
        let Some((name, rest)) = text.split_once('{') else {
            return is_metric_name(text).then(|| (text.to_owned(), BTreeMap::new()));
        };
        let mut labels = BTreeMap::new();
        let inside = rest.strip_suffix('}')?.trim().trim_end_matches(',');
        // Values are not unescaped: the help says which characters they cannot have.
        for pair in inside.split(',').filter(|_| !inside.is_empty()) {
            let (label, value) = pair.split_once('=')?;
            let value = value.trim().strip_prefix('"')?.strip_suffix('"')?;
            let label = label.trim();
            let is_new = !labels.contains_key(label);
            if !is_metric_name(label) || value.contains(['"', '\\']) || !is_new {
                return None;
            }
            labels.insert(label.to_owned(), value.to_owned());
        }
        is_metric_name(name).then(|| (name.to_owned(), labels))
    };
    parsed().ok_or_else(|| {
        node.mistake(
            format!("`{text}` is no metric"),
            "write its name, and in braces labels that it must have: `node_hwmon_temp_celsius{chip=\"cpu\"}`; a value \
             may have no comma, no quotation mark and no backslash",
        )
    })
}

fn is_metric_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(fits)
}

/// `http://host:port/path`.
fn read_url(node: Node<'_>) -> Result<String, Reported> {
    let text = node.text()?;
    let is_url = || {
        let (authority, _) = text.strip_prefix("http://")?.split_once('/')?;
        // A user before `@` would be a secret in the campaign, and so in each journal.
        let fits = |c: char| c.is_ascii_graphic() && c != '@';
        (!authority.is_empty() && text.chars().all(fits)).then_some(())
    };
    match is_url() {
        Some(()) => Ok(text.to_owned()),
        None => Err(node.mistake(
            format!("`{text}` is not the address of a page that can be read"),
            "write `http://192.0.2.1:9100/metrics`; TLS and passwords are not supported",
        )),
    }
}

/// An agent and how to log in there.
fn read_agent(map: &Map<'_>) -> Result<SnmpAgent, Reported> {
    let agent = map.required("agent").and_then(|node| {
        let text = node.text()?;
        let fits = |c: char| c.is_ascii_graphic() && !"/@".contains(c);
        if !text.chars().all(fits) {
            let what = format!("`{text}` is no address of an agent");
            return Err(node.mistake(
                what,
                "write `192.0.2.1`, `box.example:1161` or `[2001:db8::1]:161`",
            ));
        }
        // An IPv6 address has colons without a port, unless it is in brackets.
        let bare_v6 = text.parse::<std::net::Ipv6Addr>().is_ok();
        let has_port = !bare_v6 && !text.ends_with(']') && text.contains(':');
        Ok(match (bare_v6, has_port) {
            (true, _) => format!("[{text}]:{SNMP_PORT}"),
            (false, true) => text.to_owned(),
            (false, false) => format!("{text}:{SNMP_PORT}"),
        })
    });
    let secret = |key| map.with_default(key, None, |node| read_secret(node).map(Some));
    let community = secret("community");
    let user = map.find("user");
    let authentication = map.read("authentication", |node| {
        node.one_of("authentication protocol", &AUTHENTICATIONS)
    });
    let password = secret("password");
    let privacy = map.with_default("privacy", None, |node| {
        node.one_of("privacy protocol", &PRIVACIES).map(Some)
    });
    let privacy_password = secret("privacy_password");
    let (address, community, user) = (agent?, community?, user?);
    let (password, privacy, privacy_password) = (password?, privacy?, privacy_password?);
    // Keys of v3 next to a community are refused: v2c would ignore them, and send in clear.
    let is_v3 = map.optional("authentication").is_some()
        || password.is_some()
        || privacy.is_some()
        || privacy_password.is_some();
    let login = match (community, user) {
        (Some(community), None) if !is_v3 => SnmpLogin::V2c { community },
        (None, Some(user)) => SnmpLogin::V3 {
            user,
            authentication: authentication?,
            privacy: match (privacy, privacy_password) {
                (None, None) => None,
                (Some(privacy), Some(password)) => Some((privacy, password)),
                _ => {
                    let what = "encryption needs a protocol and a password";
                    let help = "write `privacy` and `privacy_password`, or neither";
                    return Err(map.node().mistake(what, help));
                }
            },
            password: password.ok_or_else(|| {
                let help = "write `password: { secret_file: /path }`";
                map.node().mistake("a user of SNMPv3 has a password", help)
            })?,
        },
        _ => {
            return Err(map.node().mistake(
                "it is not clear how to log in to this agent",
                "write `community` for SNMP v2c, or `user` and `password` for v3",
            ));
        }
    };
    Ok(SnmpAgent { address, login })
}

/// Reads the place of a secret, never the secret itself.
fn read_secret(node: Node<'_>) -> Result<Secret, Reported> {
    const HELP: &str = "write `{ secret_file: /path }`, a file of mode 600, or `{ secret_env: NAME }`, an environment variable";
    if !node.is_map() {
        let what = "a secret has no place in a campaign, which every journal contains";
        return Err(node.mistake(what, HELP));
    }
    node.keys(SECRET_KEYS, |map| {
        let file = map.with_default("secret_file", None, |node| {
            let path = node.text()?;
            if path.starts_with('/') {
                Ok(Some(Secret::File(path.to_owned())))
            } else {
                Err(node.mistake(
                    format!("`{path}` depends on where the run is started"),
                    "write a path that begins with `/`",
                ))
            }
        });
        let variable = map.with_default("secret_env", None, |node| {
            let name = node.text()?;
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.chars().all(fits) {
                Ok(Some(Secret::Environment(name.to_owned())))
            } else {
                Err(node.mistake(
                    format!("`{name}` is no name of an environment variable"),
                    "use letters, digits and _",
                ))
            }
        });
        match (file?, variable?) {
            (Some(secret), None) | (None, Some(secret)) => Ok(secret),
            _ => Err(map.node().mistake("a secret is in one place", HELP)),
        }
    })
}
