//! Parser of OpenVPN's log.

use crate::dut::site::by_node;
use testbed::{LabError, NodeId};

/// Start of the line that it prints once its interface exists and its socket is bound.
pub(super) const BOUND: &str = "UDPv4 link remote:";

/// Start of the line that reports the cipher, once per handshake.
pub(super) const DATA_CHANNEL: &str = "Data Channel: cipher ";

/// Returns program, version and crypto library from its output, by `gateway/key`.
pub(super) fn facts(said: &str, gateway: NodeId, program: &str) -> Vec<(String, String)> {
    let after = |prefix: &str| said.lines().find_map(|line| line.strip_prefix(prefix));
    // `OpenVPN 2.6.14 x86_64-pc-linux-gnu [SSL (OpenSSL)] …`
    let version = after("OpenVPN ").and_then(|rest| rest.split_ascii_whitespace().next());
    // `library versions: OpenSSL 3.0.22 25 Aug 2026, LZO 2.10`
    let library = after("library versions: ").and_then(|rest| rest.split(',').next());
    let facts = [
        ("program", Some(program)),
        ("version", version),
        ("library", library.map(str::trim)),
    ];
    let known = facts.into_iter();
    let known = known.filter_map(|(key, value)| Some((key, value?.to_owned())));
    by_node(gateway, known).collect()
}

/// `Data Channel: cipher 'AES-256-GCM', peer-id: 0`
pub(super) fn agreed_cipher(line: &str) -> Option<&str> {
    // Up to the closing quotation mark: versions add different words after it.
    let quoted = line.strip_prefix(DATA_CHANNEL)?.strip_prefix('\'')?;
    quoted.split_once('\'').map(|(cipher, _)| cipher)
}

/// Adds to an error what to do.
pub(super) fn explain(error: LabError) -> LabError {
    error.help_for("Unrecognized option", "OpenVPN 2.6 or newer is needed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_versions_of_the_program_and_of_what_encrypts_for_it() {
        let log = "Using certificate fingerprint to verify peer (no CA option set). \n\
                   OpenVPN 2.6.14 x86_64-pc-linux-gnu [SSL (OpenSSL)] [LZO] [DCO]\n\
                   library versions: OpenSSL 3.0.22 25 Aug 2026, LZO 2.10\n";
        let expected = [
            ("gw1/program", "openvpn"),
            ("gw1/version", "2.6.14"),
            ("gw1/library", "OpenSSL 3.0.22 25 Aug 2026"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(facts(log, NodeId::Gw1, "openvpn"), expected);
        assert_eq!(facts("", NodeId::Gw1, "openvpn"), expected[..1]);
    }

    #[test]
    fn the_cipher_is_the_quoted_word() {
        let aead = "Data Channel: cipher 'AES-256-GCM', peer-id: 0";
        assert_eq!(agreed_cipher(aead), Some("AES-256-GCM"));
        let with_hmac = "Data Channel: cipher 'AES-256-CBC', auth 'SHA256'";
        assert_eq!(agreed_cipher(with_hmac), Some("AES-256-CBC"));
        for wrong in [
            "",
            "Data Channel: cipher ",
            "Data Channel: cipher 'AES",
            "cipher 'X'",
        ] {
            assert_eq!(agreed_cipher(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_error_of_a_version_that_is_too_old_names_the_needed_one() {
        let explained = |reason: &str| {
            let dut = "openvpn".to_owned();
            let reason = reason.to_owned();
            explain(LabError::Dut { dut, reason }).to_string()
        };
        let old = "Options error: Unrecognized option or missing parameter(s): peer-fingerprint";
        assert!(explained(old).ends_with("help: OpenVPN 2.6 or newer is needed"));
        assert!(!explained("died").contains("help:"));
    }
}
