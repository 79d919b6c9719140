//! Kernel parameters that a campaign sets and this kernel does not have: reported before anything
//! is measured.

use crate::error::SessionError;
use plan::{LabKind, Plan};
use std::path::Path;

/// A sentence for each unknown parameter. Hosts of a lab are not asked.
pub(crate) fn unknown(plan: &Plan) -> Vec<String> {
    if plan.lab.kind != LabKind::Namespaces || plan.lab.hosts.is_some() {
        return Vec::new();
    }
    unknown_where(plan, |path| Path::new("/proc/sys").join(path).exists())
}

fn unknown_where(plan: &Plan, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for cell in &plan.cells {
        let Some(settings) = &cell.dut.software.settings else {
            continue;
        };
        let names = [&settings.stations, &settings.gateways];
        for name in names.iter().flat_map(|its| its.sysctls.keys()) {
            if exists(&path(name)) {
                continue;
            }
            let line = format!(
                "settings of DUT `{}`: this kernel has no parameter {name}",
                cell.dut.name
            );
            if !found.contains(&line) {
                found.push(line);
            }
        }
    }
    found
}

/// The path of a parameter; of an interface's, which only the lab has, that of the default.
fn path(name: &str) -> String {
    let mut parts: Vec<&str> = name.split('.').collect();
    // Parameters of an interface appear with the interface, which only the lab makes; `default` has
    // the same names.
    if let ["net", _, "conf" | "neigh", interface, ..] = &mut parts[..] {
        *interface = "default";
    }
    parts.join("/")
}

const HELP: &str = "see `sysctl -a` for its name; a module may have to be loaded first";

/// A warning about unknown parameters, if any.
pub(crate) fn warning(subject: &str, unknown: &[String]) -> Option<String> {
    let lines = unknown.iter();
    let lines: String = lines
        .map(|line| format!("warning: {subject}{line}\n"))
        .collect();
    (!unknown.is_empty()).then(|| format!("{lines}help: {HELP}\n"))
}

/// Refuses unknown parameters.
pub(crate) fn require(plan: &Plan) -> Result<(), SessionError> {
    match &unknown(plan)[..] {
        [] => Ok(()),
        lines => Err(SessionError::Program(format!(
            "{}\nhelp: {HELP}",
            lines.join("\n")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign::{HostFacts, from_text};

    #[test]
    fn a_parameter_of_an_interface_is_looked_for_at_the_default() {
        assert_eq!(path("net.ipv4.tcp_rmem"), "net/ipv4/tcp_rmem");
        assert_eq!(
            path("net.ipv6.conf.a0.disable_ipv6"),
            "net/ipv6/conf/default/disable_ipv6"
        );
    }

    #[test]
    fn each_unknown_parameter_is_reported_once() {
        let text = "campaign: c\nduts:\n  - direct: { settings: { one: {}, two: { stations: { sysctls: { \
                    net.ipv4.tcp_rnem: 1 2 3, net.ipv4.tcp_wmem: 1 2 3 } } } } }\ntrials:\n  \
                    - tcp: { mtu: [1300 B, 1500 B] }\n";
        let campaign = from_text("c.yaml", text).unwrap_or_else(|error| panic!("{error}"));
        let plan = campaign.plan(&campaign.usual_lab(), &HostFacts { cores: 2 });
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let unknown = unknown_where(&plan, |path| path == "net/ipv4/tcp_wmem");
        assert_eq!(
            unknown,
            ["settings of DUT `direct two`: this kernel has no parameter net.ipv4.tcp_rnem"]
        );
        assert_eq!(warning("", &[]), None);
    }
}
