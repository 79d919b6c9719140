//! A gateway's key and certificate, for one start.

use super::super::dut_error;
use super::super::keys::write_file;
use crate::protocol::{Ended, Program};
use crate::{LabError, Node, Result};
use std::time::Duration;

/// How long `openssl` may take.
const TOOL_LIMIT: Duration = Duration::from_secs(10);

/// How long a certificate is good for. Clocks of two hosts differ by less.
const DAYS: &str = "9";

/// Who a gateway is.
#[derive(Debug)]
pub(super) struct Identity {
    /// Path of its certificate, ECDSA P-256, signed by itself.
    pub(super) certificate: String,
    /// Path of its private key, for the owner's eyes only.
    pub(super) key: String,
    /// SHA-256 of its certificate, in hexadecimal with colons.
    pub(super) fingerprint: String,
}

impl Identity {
    /// Makes one on a gateway. The key is written there and goes nowhere.
    pub(super) fn make(dut: &str, node: &dyn Node) -> Result<Self> {
        let name = node.id().name();
        // `openssl` writes into the files, whose modes stay.
        let key = write_file(node, &format!("{name}.openvpn.key"), "", true)?;
        let certificate = write_file(node, &format!("{name}.openvpn.crt"), "", false)?;
        let subject = format!("/CN={name}");
        openssl(
            dut,
            node,
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-noenc",
                "-keyout",
                &key,
                "-out",
                &certificate,
                "-days",
                DAYS,
                "-subj",
                &subject,
            ],
        )?;
        let shown = openssl(
            dut,
            node,
            &[
                "x509",
                "-in",
                &certificate,
                "-noout",
                "-fingerprint",
                "-sha256",
            ],
        )?;
        let fingerprint = fingerprint(&shown.stdout).ok_or_else(|| {
            let shown = shown.stdout.trim();
            dut_error(dut, format!("got no fingerprint on {name}: `{shown}`"))
        })?;
        Ok(Self {
            certificate,
            key,
            fingerprint: fingerprint.to_owned(),
        })
    }
}

fn openssl(dut: &str, node: &dyn Node, arguments: &[&str]) -> Result<Ended> {
    let words = ["openssl"].into_iter().chain(arguments.iter().copied());
    let name = node.id().name();
    let refused = |why: String| dut_error(dut, format!("got no certificate on {name}: {why}"));
    let ended = match node.run(Program::new(words), TOOL_LIMIT) {
        Ok(ended) => ended,
        Err(LabError::Node { reason, .. }) => return Err(refused(reason)),
        Err(error) => return Err(error),
    };
    if ended.code == Some(0) {
        return Ok(ended);
    }
    let (command, how) = (arguments[0], ended.how());
    Err(refused(format!(
        "`openssl {command}` failed ({how}){}",
        ended.last_words()
    )))
}

/// `sha256 Fingerprint=AB:CD:…`, whose name is in other letters in other versions.
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
