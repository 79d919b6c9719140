//! The text form of a plan: every cell, its commands, the time it takes.

mod device;
mod frames;

use crate::estimate;
use crate::{Cables, Cell, Host, Hosts, LabKind, LabPlan, LackingCores, Measurement, Order, Plan};
use units::human;
use units::human::counted;
use units::{BitRate, Layer};

/// Renders a plan, with the commands that `commands` gives for a cell, word by word.
///
/// Commands that the cells of a group share are printed once.
pub fn to_text(plan: &Plan, commands: impl Fn(&Cell) -> Vec<Vec<String>>) -> String {
    to_text_here(plan, u32::MAX, commands)
}

/// The same on a machine with this number of cores, which skips the cells that need more.
pub fn to_text_here(
    plan: &Plan,
    cores: u32,
    commands: impl Fn(&Cell) -> Vec<Vec<String>>,
) -> String {
    let mut text = heading(plan, cores);
    for group in plan.cells.chunk_by(|a, b| a.group == b.group) {
        // Not empty: a chunk has at least one cell.
        let first = &group[0];
        // Most DUTs of a group run the same tools with the same words.
        let shared = commands(first);
        let is_shared = group.iter().all(|cell| commands(cell) == shared);
        let words = group_in_words(first, group);
        text += &format!("\n{}  {words}\n", first.group);
        if let Some(test) = first.measurement.frames() {
            for detail in frames::details(test, group, &plan.lab) {
                text += &format!("    {detail}\n");
            }
        }
        if is_shared {
            print_commands(&mut text, &shared);
        }
        let widths = group.iter().map(|cell| cell.dut.name.chars().count());
        let width = widths.max().unwrap_or(0);
        for cell in group {
            let name = &cell.dut.name;
            let mut settings = cell.dut.settings();
            if cell.calibration {
                // No DUT of the campaign has this name, so its line explains itself.
                settings.push_str(" (calibration)");
            }
            if let Some(lacking) = LackingCores::of(cell, &plan.lab, cores) {
                text += &format!("  skipped: {lacking}  {name:width$}  {settings}\n");
                continue;
            }
            let time = human::duration_ns(cell.estimate_ns as f64);
            let repeats = plan.repeats;
            text += &format!("  {repeats} × {time}  {name:width$}  {settings}\n");
            if !is_shared {
                print_commands(&mut text, &commands(cell));
            }
        }
    }
    claims(&mut text, plan);
    limits(&mut text, plan);
    text
}

/// The limits that the figures must keep.
fn limits(text: &mut String, plan: &Plan) {
    if plan.expect.is_empty() {
        return;
    }
    *text += "\nexpected\n";
    for limit in &plan.expect.limits {
        *text += &format!("  {}\n", limit.limit);
    }
}

/// The claims that the figures will be compared with.
fn claims(text: &mut String, plan: &Plan) {
    if plan.claims.is_empty() {
        return;
    }
    *text += "\nclaims\n";
    for claim in &plan.claims {
        let conditions = match claim.conditions.as_str() {
            // Empty if the source states none.
            "" => "conditions not stated",
            stated => stated,
        };
        *text += &format!(
            "  {}, {}: {} by {} ({conditions}); measured in {}\n",
            claim.dut,
            claim.measure_in_words(),
            claim.in_words(),
            claim.source,
            counted(claim.cells.len() as u64, "cell"),
        );
    }
}

/// The measurement of a cell in words, without the DUT.
#[must_use]
pub fn in_words(cell: &Cell) -> String {
    group_in_words(cell, std::slice::from_ref(cell))
}

/// The measurement of a group's cells in words; `cell` is one of them.
fn group_in_words(cell: &Cell, group: &[Cell]) -> String {
    // Crypto devices have no stations, and their words use neither.
    let (cores, path) = cell.stations.map_or_else(Default::default, |stations| {
        let offloads = if stations.offloads { "on" } else { "off" };
        let mut path = format!("MTU {} B, offloads {offloads}", stations.mtu);
        if stations.overlay.is_some() {
            path += &format!(", overlay {}", stations.overlay.name());
        }
        (counted(stations.cores, "core"), path)
    });
    let tuned = if cell.tune {
        ", best parameters searched first"
    } else {
        ""
    };
    match &cell.measurement {
        Measurement::Frames(test) => frames::in_words(test, group),
        Measurement::Device(test) => device::in_words(test),
        tool => tool.tool_in_words(&cores, &path, tuned),
    }
}

fn heading(plan: &Plan, cores: u32) -> String {
    let mut text = format!("campaign {}", plan.name);
    if !plan.title.is_empty() {
        text.push_str(&format!(": {}", plan.title));
    }
    text += &format!("\nlab {}\n", lab_in_words(&plan.lab));
    if !plan.lab.path.is_empty() {
        text += &format!("path: {}\n", path_in_words(&plan.lab));
    }
    if let Some(cables) = &plan.lab.external {
        let hosts = plan.lab.hosts.as_ref();
        text += &format!("cables: {}\n", cables_in_words(cables, hosts.is_some()));
    }
    if let Some(hosts) = &plan.lab.hosts {
        text += &format!("hosts: {}\n", hosts_in_words(hosts));
    }
    let cells = plan.cells.len() as u64;
    text += &format!(
        "{}, each {}: {}, {}\n",
        counted(cells, "cell"),
        counted(plan.repeats, "time"),
        counted(cells * u64::from(plan.repeats), "trial"),
        estimate::in_words(plan),
    );
    let lacking = plan.cells.iter();
    let lacking = lacking.filter_map(|cell| LackingCores::of(cell, &plan.lab, cores));
    let lacking: Vec<LackingCores> = lacking.collect();
    if let Some(most) = lacking.iter().max_by_key(|one| one.wanted) {
        let skipped = counted(lacking.len() as u64, "cell");
        let (verb, up_to) = match lacking.len() {
            1 => ("needs", ""),
            _ => ("need", "up to "),
        };
        text += &format!(
            "skipped: {skipped} {verb} {up_to}{} per station, this machine has {}\n",
            counted(most.wanted, "core"),
            most.present
        );
    }
    if let Some(capture) = &plan.capture {
        text += &format!("capture: {}\n", capture.in_words());
    }
    match plan.order {
        // Printed because it is not the default.
        Order::File => text += "order: that of the file\n",
        Order::Random { seed: Some(seed) } => {
            text += &format!("order: randomised blocks, seed {seed}\n");
        }
        // Random blocks are the default, and the seed is drawn when a run begins.
        Order::Random { seed: None } => {}
    }
    text
}

fn lab_in_words(lab: &LabPlan) -> String {
    let links = lab.link_bps.map_or_else(String::new, |bps| {
        format!(", links of {:#}", BitRate::new(bps, Layer::L1))
    });
    // Rings have neither addresses nor an MTU.
    if lab.kind == LabKind::Memory {
        let name = &lab.name;
        return format!("{name}: stations and encryptors in one process, joined by rings{links}");
    }
    // Nothing is built, so there is nothing but the name.
    if lab.kind == LabKind::Device {
        return format!(
            "{}: crypto devices, worked on by processes of this machine",
            lab.name
        );
    }
    let cipher_mtu = lab
        .cipher_mtu
        .map_or_else(|| "as needed".to_owned(), |mtu| format!("{mtu} B"));
    let addresses = &lab.addresses;
    // Behind a router gw2 is in another network.
    let gateways = if lab.path.iter().any(|element| element.routes()) {
        "gw1"
    } else {
        "gateways"
    };
    format!(
        "{}: A in {}/24, {gateways} in {}/24 (MTU {cipher_mtu}), B in {}/24{links}",
        lab.name, addresses.station_a, addresses.cipher, addresses.station_b
    )
}

/// Everything on the path of the frames, in order.
fn path_in_words(lab: &LabPlan) -> String {
    let elements = lab.path.iter().map(<&str>::from);
    let stops = ["A", "gw1"].into_iter().chain(elements);
    stops.chain(["gw2", "B"]).collect::<Vec<_>>().join(" – ")
}

/// The hosts with their stations and gateways, and the limits of checks before they are reached.
fn hosts_in_words(hosts: &Hosts) -> String {
    let of = |host: &Host| match &host.interface {
        Some(interface) => format!("{} at {interface}", host.describe()),
        None => host.describe(),
    };
    let (a, b) = (of(&hosts.a), of(&hosts.b));
    let on = if hosts.has_cable() {
        format!("A and gw1 on {a}, gw2 and B on {b}")
    } else {
        format!("A on {a}, B on {b}, no cable between them but by external boxes")
    };
    format!(
        "{on}; the tester's own limit is not measured: no link leads past the gateways; programs, cores and interfaces \
         of the hosts are not looked at here: `run` looks before it measures, and `doctor --lab FILE`"
    )
}

/// The interfaces and the boxes or stations at their ends.
fn cables_in_words(cables: &Cables, between_hosts: bool) -> String {
    // Every field is named, so that the compiler asks for the words of a new one.
    let Cables {
        station_a,
        station_b,
        tap,
        tap_host,
        gateway_a,
        gateway_b,
    } = cables;
    let of_host = tap_host.map_or_else(String::new, |host| format!(" of host {}", host.name()));
    let tap = match tap {
        Some([first, second]) => {
            format!("the link between the boxes crosses {first} and {second}{of_host}")
        }
        None => "no tap between the boxes: nothing can show that they encrypt".to_owned(),
    };
    let [of_a, of_b] = if between_hosts {
        [" of host a", " of host b"]
    } else {
        [""; 2]
    };
    format!(
        "A at {station_a}{of_a} (box at {gateway_a}), B at {station_b}{of_b} (box at {gateway_b}), {tap}"
    )
}

fn print_commands(text: &mut String, commands: &[Vec<String>]) {
    for command in commands {
        let words: Vec<_> = command.iter().map(|word| quoted(word)).collect();
        *text += &format!("    {}\n", words.join(" "));
    }
}

/// A word quoted for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // A single quote ends the quoted text, is escaped outside of it, and begins it again.
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_needs_it() {
        assert_eq!(quoted("-l"), "-l");
        assert_eq!(quoted("10.2.0.2"), "10.2.0.2");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
