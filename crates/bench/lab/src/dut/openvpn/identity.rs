//! A gateway's key and certificate for one start.

use super::super::keys::write_file;
use std::time::Duration;
use testbed::protocol::{Ended, Program};
use testbed::{LabError, Node, Result};

/// How long `openssl` may take.
const TOOL_LIMIT: Duration = Duration::from_secs(10);

/// A gateway's TLS identity.
#[derive(Debug)]
pub(super) struct Identity {
    /// Path of its self-signed ECDSA P-256 certificate.
    pub(super) certificate: String,
    /// Path of its private key, readable by the owner only.
    pub(super) key: String,
    /// SHA-256 of its certificate, in hexadecimal with colons.
    pub(super) fingerprint: String,
}

impl Identity {
    /// Generates one on a gateway. The key never leaves it.
    pub(super) fn make(dut: &str, node: &dyn Node) -> Result<Self> {
        let name = node.name();
        // `openssl` writes into the existing files and keeps their modes.
        let key = write_file(node, &format!("{name}.openvpn.key"), "", true)?;
        let certificate = write_file(node, &format!("{name}.openvpn.crt"), "", false)?;
        let subject = format!("/CN={name}");
        // Nine days: clocks of two hosts differ by less.
        let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -days 9";
        let files = ["-keyout", &key, "-out", &certificate, "-subj", &subject];
        openssl(dut, node, request.split(' ').chain(files))?;
        let show = "x509 -noout -fingerprint -sha256 -in".split(' ');
        let shown = openssl(dut, node, show.chain([certificate.as_str()]))?;
        let fingerprint = fingerprint(&shown.stdout).ok_or_else(|| {
            let shown = shown.stdout.trim();
            LabError::dut(dut, format!("got no fingerprint on {name}: `{shown}`"))
        })?;
        Ok(Self {
            certificate,
            key,
            fingerprint: fingerprint.to_owned(),
        })
    }
}

fn openssl<'a>(
    dut: &str,
    node: &dyn Node,
    arguments: impl Iterator<Item = &'a str>,
) -> Result<Ended> {
    let program = Program::new(["openssl"].into_iter().chain(arguments));
    let command = format!("openssl {}", program.argv[1]);
    let run = || {
        let ended = node.run(program, TOOL_LIMIT)?;
        if ended.code == Some(0) {
            return Ok(ended);
        }
        let (how, said) = (ended.how(), ended.last_words());
        Err(node.error(format!("`{command}` failed ({how}){said}")))
    };
    let refused = |name: &str, why: &str| format!("got no certificate on {name}: {why}");
    run().map_err(|error| error.into_dut(dut, refused))
}

/// Parses `sha256 Fingerprint=AB:CD:…`; the case of the name depends on the version.
fn fingerprint(shown: &str) -> Option<&str> {
    let (_, print) = shown.trim().split_once('=')?;
    let octets = print.split(':');
    let are_octets = octets
        .clone()
        .all(|octet| octet.len() == 2 && octet.bytes().all(|b| b.is_ascii_hexdigit()));
    (are_octets && octets.count() == 32).then_some(print)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_32_octets_or_none() {
        let print = ["AB"; 32].join(":");
        for name in ["sha256 Fingerprint", "SHA256 Fingerprint"] {
            assert_eq!(fingerprint(&format!("{name}={print}\n")), Some(&*print));
        }
        for wrong in [
            "",
            "sha256 Fingerprint=",
            "AB:CD",
            &format!("x={print}:AB"),
            "x=ZZ",
        ] {
            assert_eq!(fingerprint(wrong), None, "{wrong}");
        }
    }
}
