//! Whether a plan could come from campaign and lab files: a journal may have been changed.

use super::{Cables, Host, LabKind, LabPlan, Measurement, Plan};
use crate::names::{is_congestion, is_interface, is_program_path, is_test_network};
use guard::is_identifier;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

impl Plan {
    /// Returns the first text that no campaign or lab file could have given this plan: ``the lab's
    /// name `../x` ``. `None` if every text is possible. Names, words and commands are checked by
    /// the rules of the files; numbers within the ranges of their types are not.
    #[must_use]
    pub fn mistake(&self) -> Option<String> {
        if !is_identifier(&self.name, 1..=Self::NAME_CHARS_MAX) {
            return Some(quoted("the name", &self.name));
        }
        // Names and words with rules first, since they give the clearer message. The search for
        // control characters then covers all other texts, also of fields that later versions add.
        of_lab(&self.lab)
            .or_else(|| self.of_cells())
            .or_else(|| control_character(&self.lab).or_else(|| control_character(&self.cells)))
    }

    fn of_cells(&self) -> Option<String> {
        // Records refer to cells by id: two equal ones would mix the figures of two cells.
        let mut ids = BTreeSet::new();
        self.cells.iter().find_map(|cell| {
            if !ids.insert(cell.id.as_str()) {
                return Some(quoted("two cells", &cell.id));
            }
            let external = cell.dut.adapter.external();
            if let Some(mistake) = external.and_then(|external| external.mistake()) {
                return Some(format!(
                    "of the DUT `{}` {mistake}",
                    cell.dut.name.escape_debug()
                ));
            }
            if let Some(mistake) = cell.dut.software.mistake() {
                let name = cell.dut.name.escape_debug();
                return Some(format!("of the DUT `{name}` {mistake}"));
            }
            // Later stages rely on the cables of a lab that measures boxes.
            if external.is_some() && self.lab.external.is_none() {
                return Some("boxes in a lab without cables to them".to_owned());
            }
            // Cells of devices have no stations, and labs of devices no links: neither fits the
            // other.
            let of_device = matches!(cell.measurement, Measurement::Device(_));
            if of_device != (self.lab.kind == LabKind::Device) {
                return Some(quoted("in a lab of another kind the cell", &cell.id));
            }
            match &cell.measurement {
                Measurement::Tcp {
                    congestion: Some(name),
                    ..
                } if !is_congestion(name) => Some(quoted("the congestion control", name)),
                _ => None,
            }
        })
    }
}

fn of_lab(lab: &LabPlan) -> Option<String> {
    if !is_identifier(&lab.name, 1..=LabPlan::NAME_CHARS_MAX) {
        return Some(quoted("the lab's name", &lab.name));
    }
    if lab.hosts.is_some() != (lab.kind == LabKind::Hosts) {
        return Some("hosts in a lab of another kind, or none in one of hosts".to_owned());
    }
    // Each element is built before the first trial: a long list would exhaust the machine.
    if lab.path.len() > LabPlan::ELEMENTS_MAX {
        return Some(format!("a path of {} elements", lab.path.len()));
    }
    // An address outside of these ranges would send test traffic to the network of somebody else.
    let addresses = &lab.addresses;
    let networks = [addresses.station_a, addresses.cipher, addresses.station_b];
    if let Some(network) = networks
        .into_iter()
        .find(|network| !is_test_network(*network))
    {
        return Some(format!("the network {network}/24"));
    }
    // Names of interfaces and paths of programs become words of commands that run as root.
    let interfaces = lab.external.iter().flat_map(Cables::interfaces);
    let interfaces = interfaces.map(|(_, name)| name);
    let hosts = || {
        let hosts = lab.hosts.iter();
        hosts.flat_map(|hosts| hosts.each().map(|(_, host)| host))
    };
    let at_cable = hosts().filter_map(|host: &Host| host.interface.as_deref());
    if let Some(name) = interfaces.chain(at_cable).find(|name| !is_interface(name)) {
        return Some(quoted("the interface", name));
    }
    let mut programs = hosts().filter_map(|host| host.program.as_deref());
    let wrong = programs.find(|path| !is_program_path(path));
    wrong.map(|path| quoted("the program", path))
}

/// Finds a text with a control character, which would begin a new line in a configuration file or
/// in the input of `ip`. Commands of boxes and builds are skipped: they may have several lines.
fn control_character(part: &impl Serialize) -> Option<String> {
    fn find(value: &Value) -> Option<&str> {
        match value {
            // Escapes of JSON are decoded here, so `\u000a` is found too.
            Value::String(text) => text.contains(char::is_control).then_some(text.as_str()),
            Value::Array(values) => values.iter().find_map(find),
            Value::Object(values) => {
                let skipped = ["boxes", "build"];
                let others = values
                    .iter()
                    .filter(|(key, _)| !skipped.contains(&key.as_str()));
                others.map(|(_, value)| value).find_map(find)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }
    // A plan is plain data with string keys, which always has a JSON form.
    let value = serde_json::to_value(part).expect("a plan can be written as JSON");
    find(&value).map(|text| quoted("the text", text))
}

fn quoted(what: &str, text: &str) -> String {
    format!("{what} `{}`", text.escape_debug())
}
