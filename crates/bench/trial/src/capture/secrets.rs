//! Keys of our tunnels as a table for Wireshark (`esp_sa`), so that people can open a capture.

use ::capture::EspFlow;
use plan::{Form, LinkForm};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use testbed::RunningDut;
use wire::{Cipher, Hmac, Suite};

/// UDP ports that carry the DUT's ESP.
pub(super) fn esp_ports(dut: &RunningDut) -> Vec<u16> {
    let ports = dut.sealed_ports.iter();
    let esp = ports.filter(|port| port.form == LinkForm::Sealed(Form::Esp) && port.port > 0);
    esp.map(|port| port.port).collect()
}

/// The table with the keys of these SAs, one a line.
///
/// # Errors
/// The reason for its lack: only the device has the keys, or Wireshark lacks the suite.
pub(super) fn table(dut: &RunningDut, flows: &[EspFlow]) -> Result<String, String> {
    let keys = dut
        .tunnel_keys
        .as_ref()
        .ok_or("no keys were written: only the device has them")?;
    let suite = keys.suite();
    let (cipher, integrity) = names(suite).ok_or_else(|| {
        format!(
            "no keys were written: Wireshark does not decrypt {}",
            suite.name()
        )
    })?;
    let mut text = String::new();
    for flow in flows {
        // Not an SA of the lab's tunnels: something else sent ESP.
        let Some(keymat) = keys.keymat([flow.source, flow.target], flow.spi) else {
            continue;
        };
        let _ = write!(
            text,
            "\"IPv4\",\"{}\",\"{}\",\"0x{:08x}\",\"{cipher}\",\"",
            flow.source, flow.target, flow.spi
        );
        let at = match suite {
            Suite::EncryptThenMac(..) => suite.key_bytes(),
            // Wireshark takes an AEAD's salt behind its key.
            _ => keymat.len(),
        };
        let (key, rest) = keymat.split_at(at);
        put_hex(&mut text, key);
        let _ = write!(text, "\",\"{integrity}\",\"");
        put_hex(&mut text, rest);
        text.push_str("\"\n");
    }
    Ok(text)
}

/// Writes the table for its owner alone.
pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    // One of an earlier trial would keep its permissions.
    let _ = std::fs::remove_file(path);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Appends a key as Wireshark reads it.
fn put_hex(text: &mut String, key: &[u8]) {
    if !key.is_empty() {
        text.push_str("0x");
    }
    for byte in key {
        let _ = write!(text, "{byte:02x}");
    }
}

/// Wireshark's names of a suite's cipher and integrity. It has neither ChaCha20-Poly1305 in ESP nor
/// GOST ciphers.
const fn names(suite: Suite) -> Option<(&'static str, &'static str)> {
    let (cipher, hmac) = match suite {
        Suite::Aes128Gcm | Suite::Aes256Gcm => {
            return Some(("AES-GCM with 16 octet ICV [RFC4106]", "NULL"));
        }
        Suite::EncryptThenMac(cipher, hmac) => (cipher, hmac),
        Suite::ChaCha20Poly1305 | Suite::Gost(_) => return None,
    };
    let cipher = match cipher {
        Cipher::Null => "NULL",
        Cipher::DesCbc => "DES-CBC [RFC2405]",
        Cipher::TripleDesCbc => "TripleDES-CBC [RFC2451]",
        Cipher::Aes128Cbc | Cipher::Aes256Cbc => "AES-CBC [RFC3602]",
    };
    let hmac = match hmac {
        Hmac::Md5 => "HMAC-MD5-96 [RFC2403]",
        Hmac::Sha1 => "HMAC-SHA-1-96 [RFC2404]",
        Hmac::Sha256 => "HMAC-SHA-256-128 [RFC4868]",
        Hmac::Sha512 => "HMAC-SHA-512-256 [RFC4868]",
    };
    Some((cipher, hmac))
}
