//! Selection among engines that are absent, wrong or lack a suite.

use super::*;
use crate::{EngineFailed, NONCE_BYTES, Packet, SequenceNumbers, TagMismatch};
use wire::{Cipher, Hmac};

/// AWS-LC with one fault.
struct Faulty {
    name: &'static str,
    fault: Fault,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Absent,
    /// Has only AES-128-GCM.
    Narrow,
    WrongCiphertext,
    AcceptsForgeries,
    LeavesPlaintext,
    /// Seals the last packet of a large batch wrongly.
    WrongInBatches,
    /// Does not authenticate the high half of the sequence number.
    IgnoresHighHalf,
    WritesBeside,
    GivesUp,
    /// Is only slow.
    Outrun,
}

impl Engine for Faulty {
    fn name(&self) -> &'static str {
        self.name
    }

    fn probe(&self) -> Result<String, String> {
        if self.fault == Fault::Absent {
            return Err("no card in the slot: insert one".to_owned());
        }
        Ok("faulty 1".to_owned())
    }

    fn serves(&self, suite: Suite) -> bool {
        self.fault != Fault::Narrow || suite == Suite::Aes128Gcm
    }

    fn is_outrun(&self, _suite: Suite) -> bool {
        self.fault == Fault::Outrun
    }

    fn aead(&self, suite: Suite, key: &[u8]) -> Box<dyn Aead> {
        Box::new(FaultyKey {
            inner: AwsLc.aead(suite, key),
            fault: self.fault,
        })
    }

    fn encrypt_then_mac(
        &self,
        cipher: Cipher,
        hmac: Hmac,
        cipher_key: &[u8],
        hmac_key: &[u8],
        numbers: SequenceNumbers,
    ) -> Box<dyn Transform> {
        Box::new(FaultyTransform {
            inner: AwsLc.encrypt_then_mac(cipher, hmac, cipher_key, hmac_key, numbers),
            fault: self.fault,
        })
    }
}

struct FaultyKey {
    inner: Box<dyn Aead>,
    fault: Fault,
}

impl Aead for FaultyKey {
    fn suite(&self) -> Suite {
        self.inner.suite()
    }

    fn seal(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], src: &[u8], dst: &mut [u8]) {
        self.inner.seal(nonce, aad, src, dst);
        if self.fault == Fault::WrongCiphertext {
            dst[0] ^= 0x80;
        }
    }

    fn seal_in_place(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], buf: &mut [u8]) {
        self.inner.seal_in_place(nonce, aad, buf);
    }

    fn open(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch> {
        let result = self.inner.open(nonce, aad, buf);
        match self.fault {
            Fault::AcceptsForgeries => Ok(()),
            // One byte of the zeroed buffer is enough.
            Fault::LeavesPlaintext if result.is_err() => {
                buf[0] = 1;
                result
            }
            _ => result,
        }
    }
}

struct FaultyTransform {
    inner: Box<dyn Transform>,
    fault: Fault,
}

impl FaultyTransform {
    fn high(&self, sequence_high: u32) -> u32 {
        match self.fault {
            Fault::IgnoresHighHalf => 0,
            _ => sequence_high,
        }
    }
}

impl Transform for FaultyTransform {
    fn suite(&self) -> Suite {
        self.inner.suite()
    }

    fn seal_from(
        &mut self,
        sequence_high: u32,
        text: &[u8],
        packet: &mut [u8],
    ) -> Result<(), EngineFailed> {
        if self.fault == Fault::GivesUp {
            return Err(EngineFailed {
                engine: "faulty",
                reason: "the card is gone".to_owned(),
            });
        }
        let high = self.high(sequence_high);
        self.inner.seal_from(high, text, packet)?;
        match self.fault {
            Fault::WrongCiphertext => packet[24] ^= 0x80,
            Fault::WritesBeside => packet[0] ^= 0x80,
            _ => {}
        }
        Ok(())
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        let high = |packet: &Packet| Packet {
            sequence_high: self.high(packet.sequence_high),
            ..*packet
        };
        let packets: Vec<_> = packets.iter().map(high).collect();
        self.inner.seal(buffer, &packets)?;
        // Only with several packets: single ones are right, as from an engine with a wrong lane.
        if let (Fault::WrongInBatches, [_, .., last]) = (self.fault, &packets[..]) {
            buffer[last.at + 24] ^= 0x80;
        }
        Ok(())
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        let high = |packet: &Packet| Packet {
            sequence_high: self.high(packet.sequence_high),
            ..*packet
        };
        let packets: Vec<_> = packets.iter().map(high).collect();
        self.inner.open(buffer, &packets, authentic)?;
        for (packet, authentic) in packets.iter().zip(authentic) {
            match self.fault {
                Fault::AcceptsForgeries => *authentic = true,
                Fault::LeavesPlaintext if !*authentic => buffer[packet.at + 24] = 1,
                _ => {}
            }
        }
        Ok(())
    }
}

static ABSENT: Faulty = Faulty {
    name: "absent",
    fault: Fault::Absent,
};
static NARROW: Faulty = Faulty {
    name: "narrow",
    fault: Fault::Narrow,
};
static OUTRUN: Faulty = Faulty {
    name: "outrun",
    fault: Fault::Outrun,
};
static WRONG: Faulty = Faulty {
    name: "wrong",
    fault: Fault::WrongCiphertext,
};
static GULLIBLE: Faulty = Faulty {
    name: "gullible",
    fault: Fault::AcceptsForgeries,
};
static LEAKY: Faulty = Faulty {
    name: "leaky",
    fault: Fault::LeavesPlaintext,
};

fn named(name: &str) -> CpuChoice {
    CpuChoice::Named(name.to_owned())
}

#[test]
fn engines_have_the_names_and_the_order_of_the_table() {
    let known: Vec<_> = catalog::engines().collect();
    assert_eq!(ENGINES.map(|engine| engine.name()).to_vec(), known);
}

#[test]
fn the_refusal_of_a_wrong_engine_names_the_failed_test() {
    for (engine, expected) in [
        (
            &WRONG,
            "engine wrong is refused for aes-256-gcm: it seals GCM test case 13 differently",
        ),
        (
            &GULLIBLE,
            "engine gullible is refused for aes-256-gcm: it accepts a forgery of GCM test case \
             13, or leaves plaintext of it behind",
        ),
        (
            &LEAKY,
            "engine leaky is refused for aes-256-gcm: it accepts a forgery of GCM test case 13, \
             or leaves plaintext of it behind",
        ),
    ] {
        let refusal = select_from(&[engine], &named(engine.name), Suite::Aes256Gcm);
        assert_eq!(refusal.unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_suite_with_an_hmac_is_tested_by_its_vectors_as_well() {
    let suite = Suite::EncryptThenMac(Cipher::Aes128Cbc, Hmac::Sha256);
    for (name, fault, expected) in [
        (
            "wrong",
            Fault::WrongCiphertext,
            "seals SP 800-38A F.2.1 differently",
        ),
        (
            "batches",
            Fault::WrongInBatches,
            "seals SP 800-38A F.2.1 differently",
        ),
        (
            "gullible",
            Fault::AcceptsForgeries,
            "accepts a forgery of SP 800-38A F.2.1, or leaves plaintext of it behind",
        ),
        (
            "leaky",
            Fault::LeavesPlaintext,
            "accepts a forgery of SP 800-38A F.2.1, or leaves plaintext of it behind",
        ),
        (
            "short",
            Fault::IgnoresHighHalf,
            "accepts a forgery of SP 800-38A F.2.1, or leaves plaintext of it behind",
        ),
        (
            "beside",
            Fault::WritesBeside,
            "writes beside the text of SP 800-38A F.2.1",
        ),
        (
            "gone",
            Fault::GivesUp,
            "fails at SP 800-38A F.2.1: the card is gone",
        ),
    ] {
        let failure = known_answers::check(&Faulty { name, fault }, suite).unwrap_err();
        assert_eq!(failure.to_string(), expected, "{name}");
    }
    assert_eq!(known_answers::check(&AwsLc, suite), Ok(()));
}

#[test]
fn auto_does_not_report_engines_without_the_suite() {
    let engines: [&'static dyn Engine; 3] = [&NARROW, &ABSENT, &AwsLc];
    let selection = select_from(&engines, &CpuChoice::Auto, Suite::Aes128Gcm).unwrap();
    assert_eq!(selection.engine(), "narrow");
    let selection = select_from(&engines, &CpuChoice::Auto, Suite::Aes256Gcm).unwrap();
    assert_eq!(selection.engine(), "aws-lc");
    let [absent] = selection.passed_over() else {
        panic!("{selection:?}")
    };
    assert_eq!(absent.engine, "absent");

    let error = select_from(&engines, &named("narrow"), Suite::Aes256Gcm).unwrap_err();
    assert_eq!(
        error.to_string(),
        "engine narrow does not have aes-256-gcm\nhelp: aws-lc has it, and `auto` selects it"
    );
    assert_eq!(error.in_short(), "engine narrow does not have aes-256-gcm");
    let error = select_from(&[&NARROW, &ABSENT], &named("narrow"), Suite::Aes256Gcm).unwrap_err();
    let expected = "help: no engine on this host has it: use another suite";
    assert_eq!(error.to_string().lines().nth(1), Some(expected));
    let error = select_from(&[&NARROW], &CpuChoice::Auto, Suite::Aes256Gcm).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no engine can serve aes-256-gcm: none of narrow has it"
    );
}

#[test]
fn auto_uses_the_next_engine_and_reports_why() {
    for suite in Suite::AEADS {
        let selection = select_from(&[&ABSENT, &WRONG, &AwsLc], &CpuChoice::Auto, suite).unwrap();
        assert_eq!(selection.engine(), "aws-lc");
        assert_eq!(selection.suite(), suite);
        let [absent, wrong] = selection.passed_over() else {
            panic!("{selection:?}")
        };
        assert_eq!(
            absent.reason.to_string(),
            "engine absent cannot be used here: no card in the slot: insert one"
        );
        assert!(matches!(
            &wrong.reason,
            EngineError::Refused { name: "wrong", .. }
        ));
    }
}

#[test]
fn auto_uses_an_outrun_engine_only_without_alternatives() {
    let suite = Suite::Aes128Gcm;
    let selection = select_from(&[&OUTRUN, &AwsLc], &CpuChoice::Auto, suite).unwrap();
    assert_eq!(selection.engine(), "aws-lc");
    assert!(!selection.is_outrun() && selection.passed_over().is_empty());
    let selection = select_from(&[&OUTRUN, &ABSENT], &CpuChoice::Auto, suite).unwrap();
    assert_eq!(selection.engine(), "outrun");
    assert!(selection.is_outrun());
    assert_eq!(selection.passed_over().len(), 1);
}

#[test]
fn auto_with_no_engine_left_names_every_reason() {
    let error = select_from(&[&ABSENT, &WRONG], &CpuChoice::Auto, Suite::Aes128Gcm).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("no engine can serve aes-128-gcm: engine absent"),
        "{text}"
    );
    assert!(text.contains("; engine wrong is refused"), "{text}");
}

#[test]
fn a_named_engine_is_never_replaced_by_another() {
    let error = select_from(&[&ABSENT, &AwsLc], &named("absent"), Suite::Aes256Gcm).unwrap_err();
    assert!(matches!(
        error,
        EngineError::Unavailable { name: "absent", .. }
    ));
}

#[test]
fn the_error_for_an_unknown_engine_lists_the_known_ones() {
    let expected = "there is no engine `opensll`\n\
                    help: known engines are auto, ipsec-mb, aws-lc, rustcrypto, gost-avx512, \
                    gost-avx2, gost-portable";
    assert_eq!(
        "opensll".parse::<CpuChoice>().unwrap_err().to_string(),
        expected
    );
    let error = select(&named("opensll"), Suite::Aes256Gcm).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_choice_survives_a_round_trip() {
    for choice in [CpuChoice::Auto, named("ipsec-mb"), named("rustcrypto")] {
        assert_eq!(choice.to_string().parse(), Ok(choice));
    }
}

#[test]
fn aws_lc_is_always_available_and_every_engine_has_a_version_or_a_reason() {
    let info = engines();
    assert_eq!(
        info.iter().map(|info| info.name).collect::<Vec<_>>(),
        [
            "ipsec-mb",
            "aws-lc",
            "rustcrypto",
            "gost-avx512",
            "gost-avx2",
            "gost-portable"
        ]
    );
    for engine in info {
        let text = engine.version.clone().unwrap_or_else(|reason| reason);
        assert!(!text.is_empty());
    }
    let version = info[1].version.as_deref().unwrap();
    assert!(version.starts_with("aws-lc-rs 1."), "{version}");
}

#[test]
#[should_panic(expected = "key length of aes-256-gcm")]
fn a_key_of_the_wrong_length_is_a_mistake_of_the_caller() {
    let selection = select(&CpuChoice::Auto, Suite::Aes256Gcm).unwrap();
    drop(selection.aead(&[0; 16]));
}
