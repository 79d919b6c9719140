//! Reads the settings of a DUT's versions: kernel parameters, features of interfaces, and the
//! command that switches external boxes.

use super::software::{Version, check_version, folder_of, read_command, read_path};
use crate::keys::seconds;
use plan::{
    LINK_FEATURES, NodeSettings, STATION_PROGRAMS, SYSCTL_CHARS_MAX, Software, StationProgram,
    Switch, VersionSettings, is_sysctl, is_sysctl_value, nanos,
};
use std::collections::BTreeMap;
use yaml::Absent::{Default, Depends};
use yaml::{Key, Map, Node, Reported, Value};

/// The key of every DUT in a lab with a kernel.
#[rustfmt::skip]
pub(super) const SETTINGS: Key = Key::group("(settings)", &[
    Key::new("settings", Value::Entries(&Value::Map(VERSION)), Depends("none"),
        MEANING).words("map of maps").range("not with versions of `program`").apart(),
]);

/// The key of external boxes.
#[rustfmt::skip]
pub(super) const BOX_SETTINGS: Key = Key::group("(box settings)", &[
    Key::new("settings", Value::Entries(&Value::Map(BOX_VERSION)), Depends("none"),
        MEANING).words("map of maps").apart(),
]);

const MEANING: &str = "Settings to compare, by names: `{ usual: {}, half: { … } }` measures both \
                       side by side, each a DUT, see [Settings](#settings)";

#[rustfmt::skip]
const VERSION: &[Key] = &[
    STATIONS,
    Key::new("gateways", Value::Map(NODE), Depends("none"), "The same on the loaded gateways")
        .apart(),
    PROGRAMS,
];

#[rustfmt::skip]
const PROGRAMS: Key = Key::new("programs", Value::Entries(&Value::Text), Depends("none"),
    "Programs of both stations in place of the installed tools, as paths relative to the \
     campaign: `{ iperf3: ../iperf-3.18/src/iperf3 }` measures with that version").words("map")
    .range("`iperf3`, `iperf`");

#[rustfmt::skip]
const STATIONS: Key = Key::new("stations", Value::Map(NODE), Depends("none"),
    "Settings of both stations, a map of the next table").apart();

#[rustfmt::skip]
const BOX_VERSION: &[Key] = &[
    STATIONS,
    PROGRAMS,
    Key::new("command", Value::Text, Depends("none"),
        "Switches the boxes to this version, such as another firmware: for `sh -c` on this \
         machine, before the boxes are brought up, if they have another version. Done when they \
         can be brought up"),
    Key::new("undo", Value::Text, Depends("none"),
        "Switches back: before another version, and at the end, also after an error, Ctrl-C or \
         kill").range("with `command`"),
    LIMIT,
];

#[rustfmt::skip]
const LIMIT: Key = Key::new("limit", Value::Time(seconds(1), seconds(3600)), Default("10 min"),
    "Longest time of each of the two").range("1 s to 1 h");

#[rustfmt::skip]
const NODE: &[Key] = &[
    Key::new("sysctls", Value::Entries(&Value::Text), Depends("none"),
        "Kernel parameters that each network namespace has: `{ net.ipv4.tcp_rmem: 4096 65536 \
         131072 }`").words("map").range("`net.`…"),
    Key::new("ethtool", Value::Entries(&Value::Switch), Depends("none"),
        "Features of all interfaces at the links, as `ethtool -K` names them: `{ gro: on }`")
        .words("map").range(FEATURES),
];

const FEATURES: &str = "`gro`, `gso`, `lro`, `ntuple`, `rx`, `rx-gro-hw`, `rx-gro-list`, \
                        `rx-udp-gro-forwarding`, `rxvlan`, `sg`, `tso`, `tx`, \
                        `tx-esp-segmentation`, `tx-udp-segmentation`, \
                        `tx-udp_tnl-csum-segmentation`, `tx-udp_tnl-segmentation`, `txvlan`";

/// Adds the settings of an entry to the versions of its program: each set is a version.
pub(super) fn read(
    map: &Map<'_>,
    programs: Vec<Version>,
    of_box: bool,
) -> Result<Vec<Version>, Reported> {
    let Some(node) = map.optional("settings") else {
        return Ok(programs);
    };
    let sets = node.entries(|name, value| {
        let settings = if of_box {
            value.keys(BOX_VERSION, read_box_version)
        } else {
            value.keys(VERSION, |map| {
                let stations = node_settings(map, "stations");
                let gateways = node_settings(map, "gateways");
                let programs = station_programs(map);
                Ok(VersionSettings {
                    stations: stations?,
                    gateways: gateways?,
                    programs: programs?,
                    switch: None,
                })
            })
        };
        check_version(&name, value)?;
        Ok((name.value.to_owned(), settings?))
    })?;
    if sets.is_empty() {
        let help = "write `{ usual: {}, half: { stations: { sysctls: { net.ipv4.tcp_rmem: 4096 65536 131072 } } } }`, \
                    or remove the key";
        return Err(node.mistake("no settings are given", help));
    }
    let [(_, common)] = &programs[..] else {
        return Err(both(node));
    };
    if common.version.is_some() {
        return Err(both(node));
    }
    let is_alone = sets.len() == 1;
    let versions = sets.into_iter().map(|(name, settings)| {
        let suffix = if is_alone {
            String::new()
        } else {
            format!(" {name}")
        };
        let software = Software {
            version: Some(name),
            settings: Some(settings),
            ..common.clone()
        };
        (suffix, software)
    });
    Ok(versions.collect())
}

/// A difference of two versions is due to one of the two only.
fn both(node: Node<'_>) -> Reported {
    let help =
        "write `program` as a path, or an entry with other `name` and `settings` for each program";
    node.mistake("both `program` and `settings` name versions", help)
}

fn read_box_version(map: &Map<'_>) -> Result<VersionSettings, Reported> {
    let stations = node_settings(map, "stations");
    let command = map.with_default("command", None, |node| read_command(node).map(Some));
    let undo = map.with_default("undo", None, |node| read_command(node).map(Some));
    let limit = map.get("limit");
    let programs = station_programs(map);
    let (stations, command, undo, limit) = (stations?, command?, undo?, limit?);
    let switch = match (command, undo, map.optional("undo")) {
        (None, Some(_), Some(node)) => {
            let help = "write the command that switches to this version as `command`";
            return Err(node.mistake("`undo` undoes a `command`, and there is none", help));
        }
        (command, undo, _) => command.map(|command| Switch {
            command,
            undo,
            limit_ns: nanos(limit),
        }),
    };
    Ok(VersionSettings {
        stations,
        switch,
        programs: programs?,
        ..VersionSettings::default()
    })
}

fn station_programs(map: &Map<'_>) -> Result<BTreeMap<String, StationProgram>, Reported> {
    let folder = folder_of(map.node());
    map.with_default("programs", BTreeMap::new(), |node| {
        let programs = node.entries(|name, value| {
            if !STATION_PROGRAMS.contains(&name.value) {
                let what = format!("the stations start no `{}`", name.value);
                let help = format!("write one of {}", STATION_PROGRAMS.join(", "));
                return Err(value.mistake_at(&name.place, what, help));
            }
            let program = StationProgram {
                program: read_path(value, &folder)?.value,
                found: None,
            };
            Ok((name.value.to_owned(), program))
        })?;
        Ok(programs.into_iter().collect())
    })
}

fn node_settings(map: &Map<'_>, key: &'static str) -> Result<NodeSettings, Reported> {
    map.with_default(key, NodeSettings::default(), |node| {
        node.keys(NODE, |map| {
            let sysctls = map.with_default("sysctls", BTreeMap::new(), read_sysctls);
            let features = map.with_default("ethtool", BTreeMap::new(), read_features);
            Ok(NodeSettings {
                sysctls: sysctls?,
                features: features?,
            })
        })
    })
}

fn read_sysctls(node: Node<'_>) -> Result<BTreeMap<String, String>, Reported> {
    let sysctls = node.entries(|name, value| {
        if !is_sysctl(name.value) {
            let (what, help) = not_of_a_namespace(name.value);
            let what = format!("`{}` {what}", name.value);
            return Err(value.mistake_at(&name.place, what, help));
        }
        let text = value.text()?;
        if !is_sysctl_value(text) {
            let what = format!(
                "`{}` cannot be set to `{}`",
                name.value,
                text.escape_debug()
            );
            let help = format!("write up to {SYSCTL_CHARS_MAX} characters in one line");
            return Err(value.mistake(what, help));
        }
        Ok((name.value.to_owned(), text.to_owned()))
    })?;
    Ok(sysctls.into_iter().collect())
}

/// Why a name is no kernel parameter of a network namespace, and what to do.
fn not_of_a_namespace(name: &str) -> (&'static str, &'static str) {
    if name.starts_with("net.") {
        let help = "write it as `sysctl -a` does: `net.ipv4.tcp_rmem`";
        return ("is no name of a kernel parameter", help);
    }
    let folder = name.split_once('.').map(|(folder, _)| folder);
    let is_module = folder.is_some_and(|folder| !MACHINE_FOLDERS.contains(&folder));
    if is_module || name.starts_with("/sys/module/") {
        return (
            "is a parameter of a kernel module, which all namespaces of a machine share",
            "set it before a run, as in `echo 0 > /sys/module/tcp_cubic/parameters/hystart`, and \
             compare two runs",
        );
    }
    (
        "is a parameter of the whole machine",
        "only those that begin with `net.` belong to a network namespace; set others by hand before \
         a run, and compare two runs",
    )
}

/// Folders of `/proc/sys` with parameters of the whole machine.
const MACHINE_FOLDERS: [&str; 9] = [
    "abi", "crypto", "debug", "dev", "fs", "kernel", "sunrpc", "user", "vm",
];

fn read_features(node: Node<'_>) -> Result<BTreeMap<String, bool>, Reported> {
    let features = node.entries(|name, value| {
        let known = LINK_FEATURES.iter();
        let mut known = known.filter(|(word, printed)| [word, printed].contains(&&name.value));
        let Some((_, printed)) = known.next() else {
            let words: Vec<_> = LINK_FEATURES.iter().map(|(word, _)| *word).collect();
            let what = format!("the feature `{}` is not known", name.value);
            let help = format!("known are {}", words.join(", "));
            return Err(value.mistake_at(&name.place, what, help));
        };
        Ok(((*printed).to_owned(), value.bool()?))
    })?;
    let mut found = BTreeMap::new();
    for (printed, on) in features {
        if found.insert(printed.clone(), on).is_some() {
            let what = format!("`{printed}` is given under both of its names");
            return Err(node.mistake(what, "remove one"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_features_are_those_that_can_be_set() {
        let words = LINK_FEATURES.map(|(word, _)| format!("`{word}`"));
        assert_eq!(FEATURES, words.join(", "));
    }
}
