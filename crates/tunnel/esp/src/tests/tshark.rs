//! tshark as a second independent implementation: with the keys, it decrypts our packets and checks
//! their ICVs.
//!
//! tshark (4.0) does not support extended sequence numbers. It authenticates everything before the
//! ICV, so it gets each HMAC packet a second time, with the high half inserted where the HMAC
//! covers it (RFC 4303 §2.2.1): then the ICV must be good. tshark shows the ICV's state only where
//! it cannot parse the plaintext, which the four bytes ensure. For an AEAD, whose high half is in
//! the middle of the authenticated data, it can only decrypt.

use super::peer::{bytes, hex};
use super::*;
use wire::{Cipher, Hmac};

/// tshark's names for cipher and integrity; `None` for what it cannot decrypt.
fn names(suite: Suite) -> Option<(&'static str, &'static str)> {
    let Suite::EncryptThenMac(cipher, hmac) = suite else {
        let gcm = matches!(suite, Suite::Aes128Gcm | Suite::Aes256Gcm);
        return gcm.then_some(("AES-GCM with 16 octet ICV [RFC4106]", "NULL"));
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

/// tshark's security association for a suite's packets.
fn association(spi: u32, suite: Suite) -> Option<String> {
    let (cipher, hmac) = names(suite)?;
    let keymat = keymat(suite);
    // tshark expects an AEAD's salt behind the key.
    let aead = Suite::AEADS.contains(&suite);
    let (key, rest) = keymat.split_at(if aead {
        keymat.len()
    } else {
        suite.key_bytes()
    });
    let quoted = |key: &[u8]| match key {
        [] => String::new(),
        key => format!("0x{}", hex(key)),
    };
    let (key, rest) = (quoted(key), quoted(rest));
    Some(format!(
        r#"uat:esp_sa:"IPv4","192.0.2.1","192.0.2.2","{spi:#010x}","{cipher}","{key}","{hmac}","{rest}""#
    ))
}

#[test]
fn tshark_decrypts_what_we_seal_and_finds_its_icv_good() {
    let known = suites().into_iter().filter(|suite| names(*suite).is_some());
    let mut associations = Vec::new();
    let mut packets = Vec::new();
    let mut expected = Vec::new();
    for (spi, suite) in (0x2000..).zip(known) {
        associations.extend(association(spi, suite));
        let mut outbound = OutboundSa::new(spi, transform(suite));
        outbound.skip_to(0x7_0000_0001);
        let packet = seal(&mut outbound, INNER, 4);
        // A flipped bit of the ICV proves that tshark really checks it.
        let spelled_out = |icv_flip: u8| {
            let (rest, icv) = packet.split_at(packet.len() - suite.icv_bytes());
            let mut spelled_out = [rest, &7u32.to_be_bytes(), icv].concat();
            *spelled_out.last_mut().unwrap() ^= icv_flip;
            spelled_out
        };
        if !Suite::AEADS.contains(&suite) {
            packets.extend([spelled_out(0), spelled_out(1)]);
            expected.extend([(suite, Verdict::Good), (suite, Verdict::Bad)]);
        }
        packets.push(packet);
        expected.push((suite, Verdict::Decrypted(INNER.to_vec())));
    }

    // All packets in one file: a start of tshark takes a second.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), capture(&packets)).unwrap();
    let Some(verdicts) = read(file.path(), &associations) else {
        return;
    };
    assert_eq!(verdicts.len(), expected.len());
    for ((suite, expected), verdict) in expected.into_iter().zip(verdicts) {
        assert_eq!(verdict, expected, "{suite}");
    }
}

/// tshark's result for a packet.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Bad,
    /// The inner IP packet, whose addresses it decoded.
    Decrypted(Vec<u8>),
    Neither(String),
}

/// Its results for the packets of a capture; `None` where tshark is missing.
fn read(capture: &std::path::Path, associations: &[String]) -> Option<Vec<Verdict>> {
    let text = testing::tshark("interoperation with tshark", |command| {
        command.arg("-r").arg(capture);
        for preference in [
            "esp.enable_encryption_decode:TRUE",
            "esp.enable_authentication_check:TRUE",
        ] {
            command.args(["-o", preference]);
        }
        for association in associations {
            command.args(["-o", association]);
        }
        command.args(["-T", "fields"]);
        for field in ["esp.icv_good", "ip.src", "esp.contained_data"] {
            command.args(["-e", field]);
        }
    })?;
    let verdict = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
        ["1" | "True", ..] => Verdict::Good,
        ["0" | "False", ..] => Verdict::Bad,
        ["", "192.0.2.1,1.2.3.4", inner] => Verdict::Decrypted(bytes(&inner.replace(':', ""))),
        _ => Verdict::Neither(line.to_owned()),
    };
    Some(text.lines().map(verdict).collect())
}

/// A capture file of ESP packets in IPv4 (pcap, link type 101: raw IP).
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101u32] {
        file.extend(word.to_le_bytes());
    }
    for esp in packets {
        let bytes = 20 + esp.len() as u16;
        for word in [0, 0, u32::from(bytes), u32::from(bytes)] {
            file.extend(word.to_le_bytes());
        }
        // No checksum: tshark does not check it by default.
        let [high, low] = bytes.to_be_bytes();
        file.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, 50, 0, 0]);
        file.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        file.extend(esp);
    }
    file
}
