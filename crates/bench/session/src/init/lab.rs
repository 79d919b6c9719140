//! Labs of ports.

use super::choice::Choice;
use super::error::InitError;
use super::template::{fill, quoted};

/// The kinds of labs, in the order of the question.
pub static LABS: [Choice<()>; 2] = [
    Choice::new(
        "ports",
        "two ports of this machine, with boxes between them",
        (),
    ),
    Choice::new("hosts", "two hosts with a cable between them", ()),
];

/// A lab of two ports of this machine, for boxes between them; `file` is its name in messages.
///
/// # Errors
/// The mistakes of impossible names.
pub fn ports_lab(file: &str, [a, b]: &[String; 2]) -> Result<String, InitError> {
    let [a, b] = [a, b].map(|port| quoted(port));
    checked(file, fill(PORTS, false, &[("a", &a), ("b", &b)]))
}

/// A lab of two hosts, each with its port; `file` is its name in messages.
///
/// A host is a name for `ssh`, a whole command, or `here` for this machine.
///
/// # Errors
/// The mistakes of impossible names.
pub fn hosts_lab(
    file: &str,
    hosts: &[String; 2],
    [a, b]: &[String; 2],
) -> Result<String, InitError> {
    let [reach_a, reach_b] = [&hosts[0], &hosts[1]].map(|host| reach(host));
    let [a, b] = [a, b].map(|port| quoted(port));
    let values: [(&str, &str); 4] = [
        ("reach_a", &reach_a),
        ("reach_b", &reach_b),
        ("a", &a),
        ("b", &b),
    ];
    checked(file, fill(HOSTS, false, &values))
}

const PORTS: &str = include_str!("templates/ports.yaml");
const HOSTS: &str = include_str!("templates/hosts.yaml");
/// The name of this machine as a host.
const HERE: &str = "here";

fn reach(host: &str) -> String {
    let host = host.trim();
    match host {
        HERE => String::new(),
        // Several words are a command already.
        host if host.contains(' ') => format!("    reach: {}\n", quoted(host)),
        host => format!("    reach: {}\n", quoted(&format!("ssh {host}"))),
    }
}

fn checked(file: &str, text: String) -> Result<String, InitError> {
    campaign::lab_from_text(file, &text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(names: [&str; 2]) -> [String; 2] {
        names.map(str::to_owned)
    }

    #[test]
    fn every_lab_is_read_as_it_was_asked_for() {
        let ports = two(["enp1s0", "eth2.7"]);
        let text = ports_lab("lab.yaml", &ports).expect("a lab");
        let lab = campaign::lab_from_text("lab.yaml", &text).expect("a lab");
        let cables = lab.plan().external.as_ref().expect("cables");
        assert_eq!(
            (&*cables.station_a, &*cables.station_b),
            ("enp1s0", "eth2.7")
        );
        let hosts = two(["root@left", "here"]);
        let text = hosts_lab("lab.yaml", &hosts, &ports).expect("a lab");
        assert!(text.contains("reach: \"ssh root@left\""), "{text}");
        let lab = campaign::lab_from_text("lab.yaml", &text).expect("a lab");
        let hosts = lab.plan().hosts.as_ref().expect("hosts");
        let here = hosts.each().map(|(_, host)| host.is_this_machine());
        assert_eq!(here, [false, true]);
        for impossible in ["", "a port", "of-more-than-15-characters"] {
            let ports = two([impossible, "eth1"]);
            assert!(ports_lab("lab.yaml", &ports).is_err(), "{impossible}");
        }
        assert!(ports_lab("lab.yaml", &two(["eth1", "eth1"])).is_err());
    }
}
