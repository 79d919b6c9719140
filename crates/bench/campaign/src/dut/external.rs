//! Reads the settings of third-party boxes.

mod command;
mod declared;
mod gateway;
mod monitor;

use super::entry::{Duts, Variants, WeakAllowed, suite};
use crate::axis::Axes;
use crate::words::command_prefix;
pub(super) use declared::KEYS;

use command::{read_command, read_name};
use declared::BOX;
use monitor::{Sources, read_counter, read_monitor, read_version};
use plan::{
    Adapter, BOXES_MAX, BoxFormat, Carrier, External, ExternalBox, Form, GatewayPeer, IkePeer,
    LinkForm, Observed, Source,
};
use std::collections::BTreeMap;
use wire::{Suite, l2tp};
use yaml::{Map, Node, Reported, Spanned};

const COMMANDS_MAX: usize = 100;
const COUNTERS_MAX: usize = 50;
const PORTS_MAX: usize = 8;

const CIPHER_CHARS_MAX: usize = 100;

const FORMS: [(&str, LinkForm); 7] = [
    ("esp", LinkForm::Sealed(Form::Esp)),
    ("macsec", LinkForm::Sealed(Form::MacSec)),
    ("wireguard", LinkForm::Sealed(Form::WireGuard)),
    ("openvpn", LinkForm::Sealed(Form::OpenVpn)),
    ("gre", LinkForm::Gre),
    ("l2tpv3", LinkForm::L2tpv3),
    ("opaque", LinkForm::Opaque),
];

/// Keys of boxes that seal with a suite that campaigns know.
const SUITE_KEYS: [&str; 4] = ["suite", "suite_words", "legacy", "insecure"];
/// Keys of boxes with a maker's format.
const OPAQUE_KEYS: [&str; 3] = ["cipher", "expands", "aggregate"];

/// Suites of a form that limits them; the first is the default.
const fn form_suites(form: LinkForm) -> &'static [Suite] {
    match form {
        LinkForm::Sealed(Form::WireGuard) => &[Suite::ChaCha20Poly1305],
        LinkForm::Sealed(Form::OpenVpn) => &Suite::AEADS,
        LinkForm::Sealed(Form::MacSec) => &[Suite::Aes256Gcm, Suite::Aes128Gcm],
        LinkForm::Sealed(Form::Esp) | LinkForm::Gre | LinkForm::L2tpv3 | LinkForm::Opaque => &[],
    }
}

/// Default ports of a form, none if it has no ports: IKE is on both of ESP's.
const fn ports(form: LinkForm) -> &'static [u16] {
    match form {
        LinkForm::Sealed(Form::Esp) => &[500, 4500],
        LinkForm::Sealed(Form::WireGuard) => &[51820],
        LinkForm::Sealed(Form::OpenVpn) => &[1194],
        LinkForm::L2tpv3 => &[l2tp::UDP_PORT],
        LinkForm::Sealed(Form::MacSec) | LinkForm::Gre | LinkForm::Opaque => &[],
    }
}

/// A suite that varies is added to the name.
pub(super) fn read(map: &Map<'_>) -> Result<Duts, Reported> {
    let form = map.read("form", |node| node.one_of("form", &FORMS));
    let (allowed, axes) = (WeakAllowed::read(map), Axes::of(map));
    let known = form.as_ref().map_or(&[][..], |form| form_suites(*form));
    // A form that could not be read limits no suites and no ports: its mistake is enough.
    let usual = known.first().copied().unwrap_or(Suite::Aes256Gcm);
    allowed.fail(&axes);
    let suites = axes.or("suite", usual, |node| {
        of_form(node, suite(node, &Suite::ALL, &allowed)?, known)
    });
    let words = map.with_default("suite_words", BTreeMap::new(), read_words);
    let (bump, plain) = (map.get("bump"), map.get("plain"));
    let without_ports = form.as_ref().ok().filter(|form| ports(**form).is_empty());
    let given_ports = map.with_default("ports", None, |node| match without_ports {
        None => read_ports(node).map(Some),
        Some(form) => {
            let what = format!("{} has no ports", in_words(*form));
            Err(node.mistake(what, "leave `ports` out"))
        }
    });
    let (limit, ready) = (map.get("limit"), map.get("ready"));
    let boxes = map.required("boxes").and_then(read_boxes);
    let tunnels = axes.get("tunnels");
    let peer = map.with_default("gateway", None, |node| match form {
        Ok(form) => gateway::read(node, form).map(Some),
        // Which keys it has depends on the form.
        Err(reported) => Err(reported),
    });
    let form = form?;
    // Keys that do not apply are refused one by one, each with its reason: as unknown keys they
    // would look like slips.
    let (format, suite_word) = match plain.as_ref() {
        Ok(true) => {
            let keys = [
                &["form", "ports", "gateway", "tunnels"][..],
                &SUITE_KEYS,
                &OPAQUE_KEYS,
            ];
            refuse(
                map,
                &keys.concat(),
                "boxes that do not encrypt have",
                |key| format!("leave out `{key}`, or `plain`"),
            )?;
            (None, None)
        }
        _ => read_format(map, form)?,
    };
    let (words, given_ports, plain) = (words?, given_ports?, plain?);
    let (boxes, bump) = (boxes?, bump?);
    let (peer, udp) = match peer? {
        Some((peer, udp)) => (Some(peer), udp),
        // Boxes may send ESP with or without UDP, and UDP makes the longest packets.
        None => (None, form != LinkForm::Sealed(Form::MacSec)),
    };
    // One gateway alone has no second box to sit between, and a bump has no address that the
    // station could set up a tunnel to.
    if let (Some(node), true) = (map.optional("gateway"), boxes.len() > 1 || bump) {
        let what = "one gateway is measured with `gateway`, between A's cable and B's";
        let help = "write one box and no `bump`; or leave `gateway` out and measure two boxes";
        return Err(node.mistake(what, help));
    }
    one_tunnel_where_needed(map, peer.as_ref(), &tunnels)?;
    let settings = External {
        boxes,
        // The suite is set below, for each value of its axis.
        carrier: match form {
            LinkForm::Sealed(form) if !plain => Some(Carrier {
                form,
                suite: usual,
                udp,
            }),
            _ => None,
        },
        format,
        bump,
        gateway: peer.map(Box::new),
        tunnels: 1,
        ports: if plain {
            Vec::new()
        } else {
            given_ports.unwrap_or_else(|| ports(form).to_vec())
        },
        suite_word,
        limit_ns: limit?,
        ready_ns: ready?,
    };
    axes.done()?;
    let duts = Variants::of(settings)
        .by(&suites, |it, suite| {
            // Boxes without a carrier have no suite: all values leave equal settings, and make
            // one DUT.
            let Some(carrier) = &mut it.carrier else {
                return "";
            };
            carrier.suite = suite;
            // Without a word the boxes are expected to name the suite as campaigns do.
            it.suite_word = words.get(suite.name()).cloned();
            suite.name()
        })
        .by(&tunnels, |it, tunnels| {
            it.tunnels = tunnels;
            format!("t{tunnels}")
        });
    Ok(duts.duts(Adapter::External))
}

/// Refuses several tunnels of a gateway if the station cannot distinguish them.
fn one_tunnel_where_needed(
    map: &Map<'_>,
    peer: Option<&GatewayPeer>,
    tunnels: &[Spanned<u16>],
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

/// The format of frames without a carrier, and the boxes' word for the cipher.
fn read_format(
    map: &Map<'_>,
    form: LinkForm,
) -> Result<(Option<BoxFormat>, Option<String>), Reported> {
    let it_has = format!("{} has", in_words(form));
    let not_opaque = || {
        refuse(map, &OPAQUE_KEYS, &it_has, |key| {
            format!("leave out `{key}`, or write `form: opaque`")
        })
    };
    let one_tunnel = || {
        refuse(map, &["tunnels"], &it_has, |_| {
            "leave `tunnels` out: there is one".to_owned()
        })
    };
    let in_clear = |format| {
        let no_suite = refuse(map, &SUITE_KEYS, &it_has, |key| {
            format!("it does not encrypt: leave out `{key}`; inside IPsec write `form: esp`")
        });
        // Each has reported its mistakes by now: `and` only joins the results.
        let refused = not_opaque().and(one_tunnel()).and(no_suite);
        refused.map(|()| (Some(format), None))
    };
    match form {
        LinkForm::Sealed(_) => not_opaque().map(|()| (None, None)),
        LinkForm::Gre => in_clear(BoxFormat::Gre),
        LinkForm::L2tpv3 => in_clear(BoxFormat::L2tpv3),
        LinkForm::Opaque => {
            let no_suite = refuse(map, &SUITE_KEYS, &it_has, |_| {
                "write `cipher`: what seals the frames, in the maker's words".to_owned()
            });
            let read = read_opaque(map);
            no_suite.and(one_tunnel()).and(read)
        }
    }
}

/// Reads a maker's format, and its cipher.
fn read_opaque(map: &Map<'_>) -> Result<(Option<BoxFormat>, Option<String>), Reported> {
    let cipher = map.required("cipher").and_then(|node| {
        let cipher = node.text()?.trim();
        let chars = cipher.chars().count();
        if chars > CIPHER_CHARS_MAX || cipher.chars().any(char::is_control) {
            let what = "`cipher` is too long, or has several lines";
            let help = format!("write up to {CIPHER_CHARS_MAX} characters on one line");
            return Err(node.mistake(what, help));
        }
        Ok(cipher.to_owned())
    });
    let (expands, aggregate) = (map.get("expands"), map.get("aggregate"));
    let format = BoxFormat::Opaque {
        expands_bytes: expands?,
        aggregate: aggregate?,
    };
    Ok((Some(format), Some(cipher?)))
}

/// A form in messages.
fn in_words(form: LinkForm) -> String {
    match form {
        LinkForm::Opaque => "the form `opaque`".to_owned(),
        form => form.name().to_owned(),
    }
}

/// Refuses keys that do not apply; `it_has` begins the message.
fn refuse(
    map: &Map<'_>,
    keys: &[&'static str],
    it_has: &str,
    help: impl Fn(&str) -> String,
) -> Result<(), Reported> {
    // All of them are requested, also after a mistake.
    let given = keys
        .iter()
        .filter_map(|key| Some((key, map.optional(key)?)));
    let mistakes =
        given.map(|(key, node)| Err(node.mistake(format!("{it_has} no `{key}`"), help(key))));
    mistakes.fold(Ok(()), Result::and)
}

/// Requires one of the form's suites, if the form limits them.
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
        if word.trim().is_empty() || word.chars().any(char::is_control) {
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

fn read_boxes(node: Node<'_>) -> Result<Vec<ExternalBox>, Reported> {
    let boxes = node.list(|item| item.keys(BOX, read_box))?;
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
    let suite_told = command("suite_told");
    let (reset, started) = (command("reset"), command("started"));
    let sources = Sources::read(map, Sources::default());
    // Keys that depend on them are not read with wrong ones.
    let given = sources
        .as_ref()
        .map_or_else(|_| Sources::default(), Clone::clone);
    let version = map.with_default("version", (None, None), |node| {
        if node.is_map() {
            Ok((None, Some(read_version(node, &given)?)))
        } else {
            Ok((Some(read_command(node)?), None))
        }
    });
    let none = Default::default();
    let counters = map.with_default("counters", none, |node| read_counters(node, &given));
    let monitor = map.with_default("monitor", None, |node| read_monitor(node, &given).map(Some));
    let (reset, started, (version, queried)) = (reset?, started?, version?);
    sources?;
    if reset.is_some() && started.is_none() {
        // A reset counts as done when this value differs: a command can succeed without a
        // restart.
        let help = "write `started`: a command that prints what differs after each restart, for example a boot id or \
                    a process id";
        return Err(map
            .node()
            .mistake("nothing shows that `reset` restarted this box", help));
    }
    let (counters, queried_counters) = counters?;
    Ok(ExternalBox {
        via: via?,
        up: up?,
        down: down?,
        version,
        suite_told: suite_told?,
        counters,
        counter_lines: counter_lines?,
        reset,
        started,
        observed: Observed {
            version: queried,
            counters: queried_counters,
            monitor: monitor?,
        },
    })
}

/// A program with its arguments, which takes a command as one more.
fn read_via(node: Node<'_>) -> Result<Vec<String>, Reported> {
    let without = "a shell on this machine";
    let words = command_prefix(node, "via", ("ssh admin@192.0.2.1", without, "a campaign"))?;
    // A command reaches `via` as its last argument, as ssh expects it. A program that runs its
    // arguments would look for a program with the command's text as its name.
    if lacks_shell(&words) {
        let via = words.join(" ");
        let what =
            format!("`{via}` runs a program with arguments, and gets each command as one word");
        let help = format!("end it with a shell: `via: {via} sh -c`");
        return Err(node.mistake(what, help));
    }
    Ok(words)
}

/// Whether the words certainly start neither a shell nor another program that interprets a command,
/// as ssh does.
fn lacks_shell(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [program, rest @ ..] = &*words else {
        return false;
    };
    let is_option = |word: &&&str| word.starts_with('-');
    match program.rsplit('/').next().unwrap_or(program) {
        // With a further word, that word is the program, which may be a shell.
        "ip" => matches!(rest, ["netns", "exec", _]),
        "nsenter" => rest
            .iter()
            // A number is the target of `-t`: no program follows.
            .all(|word| word.starts_with('-') || word.parse::<u32>().is_ok()),
        "docker" | "podman" => {
            // Other options may take a value, which cannot be distinguished from a container's
            // name: these ways are accepted.
            matches!(rest, ["exec", name] | ["exec", "-i", name] if !is_option(&name))
        }
        "kubectl" => rest.last() == Some(&"--"),
        _ => false,
    }
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

/// Counters that commands print, and counters with another source.
type Counters = (BTreeMap<String, String>, BTreeMap<String, Source>);

fn read_counters(node: Node<'_>, sources: &Sources) -> Result<Counters, Reported> {
    let mut counters = Counters::default();
    node.entries(|key, value| {
        read_name(&key, value, "a counter")?;
        let name = key.value.to_owned();
        if value.is_map() {
            // Nothing is replaced here: a key that occurs twice is refused before.
            drop(counters.1.insert(name, read_counter(value, sources)?))
        } else {
            drop(counters.0.insert(name, read_command(value)?))
        }
        Ok(())
    })?;
    let count = counters.0.len() + counters.1.len();
    if count > COUNTERS_MAX {
        let what = format!("{count} counters are given");
        return Err(node.mistake(what, format!("write {COUNTERS_MAX} at most")));
    }
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::lacks_shell;

    #[test]
    fn ways_that_surely_lead_to_no_shell_are_known() {
        let lacks = |via: &str| {
            let words: Vec<String> = via.split_whitespace().map(str::to_owned).collect();
            lacks_shell(&words)
        };
        for via in [
            "ip netns exec box",
            "nsenter --net=/proc/7/ns/net",
            "nsenter -t 4711 -n",
            "docker exec box",
            "/usr/bin/docker exec -i box",
            "kubectl exec -i pod --",
        ] {
            assert!(lacks(via), "{via}");
            assert!(!lacks(&format!("{via} sh -c")), "{via}");
        }
        for via in [
            "ssh admin@192.0.2.1",
            "/opt/way box",
            "docker exec router cli",
            "docker exec -u root box",
            "nsenter -t 4711 -n vtysh -c",
        ] {
            assert!(!lacks(via), "{via}");
        }
    }
}
