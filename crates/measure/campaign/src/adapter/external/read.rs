//! Reads the settings of third-party boxes.

use super::gateway::{self, GatewayPeer, IkePeer};
use super::settings::{External, ExternalBox, Placeholder, fill_in};
use crate::adapter::carrier::{Carrier, Form};
use crate::adapter::entry::{Entry, Variants, WeakAllowed, name, suite, suites};
use crate::adapter::strongswan::StrongSwan;
use crate::axis::{AxisValues, axis, nanos};
use crate::words::command_prefix;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Suite;
use yaml::{Map, Node, Reported};

/// One box at each end of the link that is watched.
const BOXES_MAX: usize = 2;
const COMMANDS_MAX: usize = 100;
const COMMAND_CHARS_MAX: usize = 4000;
const COUNTERS_MAX: usize = 50;
const COUNTER_CHARS_MAX: usize = 40;
const PORTS_MAX: usize = 8;

const LIMIT_DEFAULT: Duration = Duration::from_secs(60);
const READY_DEFAULT: Duration = Duration::from_secs(60);
const LIMIT_MIN: Duration = Duration::from_secs(1);
const LIMIT_MAX: Duration = Duration::from_secs(600);

const FORMS: [(&str, Form); 4] = [
    ("esp", Form::Esp),
    ("macsec", Form::MacSec),
    ("wireguard", Form::WireGuard),
    ("openvpn", Form::OpenVpn),
];

/// Suites of a form that limits them; the first is the default.
const fn form_suites(form: Form) -> &'static [Suite] {
    match form {
        Form::WireGuard => &[Suite::ChaCha20Poly1305],
        Form::OpenVpn => &Suite::AEADS,
        Form::MacSec => &[Suite::Aes256Gcm, Suite::Aes128Gcm],
        Form::Esp => &[],
    }
}

/// Default ports of a form: IKE is on both of ESP's.
const fn ports(form: Form) -> &'static [u16] {
    match form {
        Form::Esp => &[500, 4500],
        Form::WireGuard => &[51820],
        Form::OpenVpn => &[1194],
        Form::MacSec => &[],
    }
}

/// A suite that varies is added to the name.
pub(in crate::adapter) fn read(map: &Map<'_>) -> Result<Entry<External>, Reported> {
    let name = name(map, "external");
    let form = map.with_default("form", Form::Esp, |node| node.one_of("form", &FORMS));
    let allowed = WeakAllowed::read(map);
    let known = form.as_ref().map_or(&[][..], |form| form_suites(*form));
    let usual = known.first().copied().unwrap_or(Suite::Aes256Gcm);
    let suites = suites(map, usual, &allowed, |node, allowed| {
        of_form(node, suite(node, &Suite::ALL, allowed)?, known)
    });
    let words = map.with_default("suite_words", BTreeMap::new(), read_words);
    let bump = map.with_default("bump", false, Node::bool);
    let plain = map.with_default("plain", false, Node::bool);
    let has_ports = !matches!(form, Ok(Form::MacSec));
    let given_ports = map.with_default("ports", None, |node| match has_ports {
        true => read_ports(node).map(Some),
        false => Err(node.mistake("MACsec has no ports", "leave `ports` out")),
    });
    let limit = map.with_default("limit", LIMIT_DEFAULT, read_limit);
    let ready = map.with_default("ready", READY_DEFAULT, read_limit);
    let boxes = map.required("boxes").and_then(read_boxes);
    let tunnels = axis(map, "tunnels", 1, |node| {
        node.integer(1..=StrongSwan::TUNNELS_MAX)
    });
    let peer = map.with_default("gateway", None, |node| match form {
        Ok(form) => gateway::read(node, form).map(Some),
        // Which keys it has depends on the form.
        Err(reported) => Err(reported),
    });
    let (form, words, given_ports, plain) = (form?, words?, given_ports?, plain?);
    if plain {
        nothing_of_encryption(map)?;
    }
    let (boxes, bump, peer) = (boxes?, bump?, peer?);
    if let (Some(node), true) = (map.optional("gateway"), boxes.len() > 1 || bump) {
        let what = "one gateway is measured with `gateway`, between A's cable and B's";
        let help = "write one box and no `bump`; or leave `gateway` out and measure two boxes";
        return Err(node.mistake(what, help));
    }
    one_tunnel_where_needed(map, peer.as_ref(), &tunnels)?;
    let settings = External {
        boxes,
        carrier: (!plain).then_some(Carrier {
            form,
            suite: usual,
            udp: form != Form::MacSec,
        }),
        bump,
        gateway: peer.map(Box::new),
        tunnels: 1,
        ports: match plain {
            true => Vec::new(),
            false => given_ports.unwrap_or_else(|| ports(form).to_vec()),
        },
        suite_word: None,
        limit_ns: nanos(limit?),
        ready_ns: nanos(ready?),
    };
    Variants::of(settings)
        .by(suites, |it, suite| {
            let Some(carrier) = &mut it.carrier else {
                return "";
            };
            carrier.suite = suite;
            it.suite_word = words.get(suite.name()).cloned();
            suite.name()
        })
        .by(tunnels, |it, tunnels| {
            it.tunnels = tunnels;
            format!("t{tunnels}")
        })
        .named(name)
}

/// Refuses several tunnels of a gateway whose tunnels the station could not tell apart.
fn one_tunnel_where_needed(
    map: &Map<'_>,
    peer: Option<&GatewayPeer>,
    tunnels: &AxisValues<u16>,
) -> Result<(), Reported> {
    let (what, help) = match peer {
        Some(GatewayPeer::Ike(IkePeer {
            any_address: true, ..
        })) => (
            "several tunnels cannot all be for any address",
            "leave `selectors` out: each tunnel is for one pair of test addresses then",
        ),
        Some(GatewayPeer::WireGuard(_)) => (
            "the station has one pair of keys for WireGuard, and so one tunnel",
            "leave `tunnels` out",
        ),
        Some(GatewayPeer::Ike(_)) | None => return Ok(()),
    };
    match map.optional("tunnels") {
        Some(node) if tunnels.iter().any(|tunnels| tunnels.value > 1) => {
            Err(node.mistake(what, help))
        }
        _ => Ok(()),
    }
}

/// Refuses settings that only boxes that encrypt have.
fn nothing_of_encryption(map: &Map<'_>) -> Result<(), Reported> {
    let keys = [
        "form",
        "suite",
        "suite_words",
        "ports",
        "legacy",
        "insecure",
        "gateway",
        "tunnels",
    ];
    let given = keys
        .into_iter()
        .filter_map(|key| Some((key, map.optional(key)?)));
    let mistakes = given.map(|(key, node)| {
        let what = format!("boxes that do not encrypt have no `{key}`");
        Err(node.mistake(what, format!("leave out `{key}`, or `plain`")))
    });
    mistakes.fold(Ok(()), Result::and)
}

/// Where a form has suites of its own, one of them.
fn of_form(node: Node<'_>, suite: Suite, known: &[Suite]) -> Result<Suite, Reported> {
    if known.is_empty() || known.contains(&suite) {
        return Ok(suite);
    }
    let names: Vec<_> = known.iter().map(|known| format!("`{known}`")).collect();
    let what = format!("packets of that form are not sealed with `{suite}`");
    Err(node.mistake(what, format!("write {}", names.join(", "))))
}

/// The boxes' names of suites.
fn read_words(node: Node<'_>) -> Result<BTreeMap<String, String>, Reported> {
    let words = node.entries(|key, value| {
        let Some(suite) = Suite::from_name(key.value) else {
            let known: Vec<_> = Suite::ALL.iter().map(|suite| suite.name()).collect();
            let what = format!("`{}` is no suite", key.value);
            let help = format!("suites are {}", known.join(", "));
            return Err(value.mistake_at(&key.place, what, help));
        };
        let word = value.text()?;
        if word.trim().is_empty() || word.contains('\n') {
            return Err(value.mistake(
                "a box calls no suite so",
                "write the word that it prints, on one line",
            ));
        }
        Ok((suite.name().to_owned(), word.trim().to_owned()))
    })?;
    Ok(words.into_iter().collect())
}

fn read_ports(node: Node<'_>) -> Result<Vec<u16>, Reported> {
    let ports = node.list(Node::port)?;
    match ports.len() {
        1..=PORTS_MAX => Ok(ports),
        count => Err(node.mistake(
            format!("{count} ports are given"),
            format!("write one to {PORTS_MAX}, or leave `ports` out"),
        )),
    }
}

fn read_limit(node: Node<'_>) -> Result<Duration, Reported> {
    node.duration(LIMIT_MIN..=LIMIT_MAX)
}

fn read_boxes(node: Node<'_>) -> Result<Vec<ExternalBox>, Reported> {
    let boxes = node.list(|item| item.map(read_box))?;
    match boxes.len() {
        1..=BOXES_MAX => Ok(boxes),
        count => Err(node.mistake(
            format!("{count} boxes are given"),
            "write the box at A's cable, and the one at B's; or one for both",
        )),
    }
}

fn read_box(map: &Map<'_>) -> Result<ExternalBox, Reported> {
    let via = map.with_default("via", Vec::new(), read_via);
    let commands = |key| map.with_default(key, Vec::new(), read_commands);
    let (up, down, counter_lines) = (commands("up"), commands("down"), commands("counter_lines"));
    let command = |key| map.with_default(key, None, |node| read_command(node).map(Some));
    let (version, suite_told) = (command("version"), command("suite_told"));
    let (reset, started) = (command("reset"), command("started"));
    let counters = map.with_default("counters", BTreeMap::new(), read_counters);
    let (reset, started) = (reset?, started?);
    if reset.is_some() && started.is_none() {
        let help = "write `started`: a command that prints what differs after each restart, for example a boot id or \
                    a process id";
        return Err(map
            .node()
            .mistake("nothing shows that `reset` restarted this box", help));
    }
    Ok(ExternalBox {
        via: via?,
        up: up?,
        down: down?,
        version: version?,
        suite_told: suite_told?,
        counters: counters?,
        counter_lines: counter_lines?,
        reset,
        started,
    })
}

/// A program with its arguments, which takes a command as one more.
fn read_via(node: Node<'_>) -> Result<Vec<String>, Reported> {
    let without = "a shell on this machine";
    command_prefix(node, "via", ("ssh admin@192.0.2.1", without, "a campaign"))
}

fn read_commands(node: Node<'_>) -> Result<Vec<String>, Reported> {
    let commands = node.one_or_many(read_command)?;
    if commands.len() > COMMANDS_MAX {
        let what = format!("{} commands are given", commands.len());
        let help = format!("write {COMMANDS_MAX} at most, or put them into a script");
        return Err(node.mistake(what, help));
    }
    Ok(commands)
}

/// A command whose placeholders are known.
fn read_command(node: Node<'_>) -> Result<String, Reported> {
    let command = node.text()?.trim_end();
    let chars = command.chars().count();
    if command.trim().is_empty() || chars > COMMAND_CHARS_MAX {
        let what = format!("a command of {chars} characters");
        let help = format!("write 1 to {COMMAND_CHARS_MAX}, or put them into a script");
        return Err(node.mistake(what, help));
    }
    match fill_in(command, |_| String::new()) {
        Ok(_) => Ok(command.to_owned()),
        Err(word) => {
            let known = Placeholder::ALL.map(|known| format!("{{{}}}", known.name()));
            let what = format!("`{{{word}}}` stands for nothing here");
            let help = format!("commands may have {}", known.join(", "));
            Err(node.mistake(what, help))
        }
    }
}

fn read_counters(node: Node<'_>) -> Result<BTreeMap<String, String>, Reported> {
    let counters = node.entries(|key, value| {
        let name = key.value;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > COUNTER_CHARS_MAX || !name.chars().all(fits) {
            let what = format!("a counter cannot be named `{name}`");
            let help = format!("use up to {COUNTER_CHARS_MAX} letters, digits and _ - .");
            return Err(value.mistake_at(&key.place, what, help));
        }
        Ok((name.to_owned(), read_command(value)?))
    })?;
    if counters.len() > COUNTERS_MAX {
        let what = format!("{} counters are given", counters.len());
        return Err(node.mistake(what, format!("write {COUNTERS_MAX} at most")));
    }
    Ok(counters.into_iter().collect())
}
