//! One measurement with several suites of one device, side by side.

use crate::figures::overhead::Packets;
use crate::figures::parameters::Parameters;
use journal::Journal;
use plan::{Adapter, Cell, Encryptor};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use wire::{Cipher, Gost, Hmac, Suite};

/// One measurement with several suites of one device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SuiteMatrix {
    /// The group of its cells.
    pub group: String,
    /// The device, which differs only in the suite.
    pub device: String,
    /// At least two, from the oldest suite to the strongest.
    pub entries: Vec<SuiteEntry>,
}

/// A suite's place in a matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SuiteEntry {
    /// Id of its cell.
    pub cell: String,
    /// Name of the suite.
    pub suite: String,
    /// Cipher, for people.
    pub cipher: String,
    /// Hash of the HMAC, for people; `null` for a cipher that authenticates.
    pub hash: Option<String>,
    /// Why it must not protect data; `null` if it may.
    pub insecure: Option<String>,
}

/// Cells of one group with devices that differ in suite only.
struct Family<'a> {
    group: &'a str,
    kind: String,
    /// All settings but the suite.
    settings: Value,
    cells: Vec<(Suite, &'a Cell)>,
}

/// Every measurement with several suites of one device, in the plan's order.
pub(crate) fn matrices(journal: &Journal) -> Vec<SuiteMatrix> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for cell in &journal.header.plan.cells {
        let adapter = &cell.dut.adapter;
        let is_control = adapter.encryptor().is_some_and(Encryptor::is_null);
        let measured = Packets::of(cell, &Parameters::default()).is_some();
        let (Some(carrier), false, true) = (adapter.carrier(), is_control, measured) else {
            continue;
        };
        let Some((kind, settings)) = without_suite(adapter) else {
            continue;
        };
        let known = families
            .iter_mut()
            .find(|known| known.group == cell.group && known.settings == settings);
        match known {
            Some(known) if known.cells.iter().any(|(suite, _)| *suite == carrier.suite) => {}
            Some(known) => known.cells.push((carrier.suite, cell)),
            None => families.push(Family {
                group: &cell.group,
                kind,
                settings,
                cells: vec![(carrier.suite, cell)],
            }),
        }
    }
    families.retain(|family| family.cells.len() > 1);
    let is_alone = |family: &Family<'_>| {
        let same = |other: &&Family<'_>| (other.group, &other.kind) == (family.group, &family.kind);
        families.iter().filter(same).count() == 1
    };
    families
        .iter()
        .map(|family| family.matrix(is_alone(family)))
        .collect()
}

/// Kind and settings in the plan's serialized form, which covers any kind.
fn without_suite(adapter: &Adapter) -> Option<(String, Value)> {
    let mut settings = serde_json::to_value(adapter).ok()?;
    let fields = settings.as_object_mut()?;
    fields.remove("suite")?;
    let kind = fields.get("kind")?.as_str()?.to_owned();
    Some((kind, settings))
}

impl Family<'_> {
    fn matrix(&self, is_alone: bool) -> SuiteMatrix {
        let device = match self.cells.first() {
            // Devices of one kind with different settings are distinguished by the names of their
            // DUTs.
            Some((_, first)) if !is_alone => format!("{} as in {}", self.kind, first.dut.name),
            _ => self.kind.clone(),
        };
        let mut cells = self.cells.clone();
        cells.sort_by_key(|(suite, _)| age(*suite));
        let entries = cells.into_iter().map(|(suite, cell)| entry(suite, cell));
        SuiteMatrix {
            group: self.group.to_owned(),
            device,
            entries: entries.collect(),
        }
    }
}

/// [`Suite::ALL`] has the strongest first.
fn age(suite: Suite) -> Option<std::cmp::Reverse<usize>> {
    let place = Suite::ALL.iter().position(|known| *known == suite);
    place.map(std::cmp::Reverse)
}

fn entry(suite: Suite, cell: &Cell) -> SuiteEntry {
    let (cipher, hash) = match suite {
        Suite::Aes128Gcm => ("AES-128-GCM", None),
        Suite::Aes256Gcm => ("AES-256-GCM", None),
        Suite::ChaCha20Poly1305 => ("ChaCha20-Poly1305", None),
        Suite::EncryptThenMac(cipher, hmac) => (cipher_name(cipher), Some(hash_name(hmac))),
        Suite::Gost(gost) => gost_names(gost),
    };
    SuiteEntry {
        cell: cell.id.clone(),
        suite: suite.name().into(),
        cipher: cipher.into(),
        hash: hash.map(str::to_owned),
        insecure: suite.insecure().map(str::to_owned),
    }
}

const fn gost_names(gost: Gost) -> (&'static str, Option<&'static str>) {
    match gost {
        Gost::KuznyechikMgm => ("Kuznyechik-MGM", None),
        Gost::MagmaMgm => ("Magma-MGM", None),
        Gost::KuznyechikMgmMac => ("none", Some("Kuznyechik-MGM")),
        Gost::MagmaMgmMac => ("none", Some("Magma-MGM")),
        Gost::MagmaCbcOmac => ("Magma-CBC", Some("OMAC")),
        Gost::MagmaCtr => ("Magma-CTR", None),
        Gost::MagmaEcb => ("Magma-ECB", None),
    }
}

const fn cipher_name(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::Null => "none",
        Cipher::DesCbc => "DES-CBC",
        Cipher::TripleDesCbc => "3DES-CBC",
        Cipher::Aes128Cbc => "AES-128-CBC",
        Cipher::Aes256Cbc => "AES-256-CBC",
    }
}

const fn hash_name(hmac: Hmac) -> &'static str {
    match hmac {
        Hmac::Md5 => "MD5",
        Hmac::Sha1 => "SHA-1",
        Hmac::Sha256 => "SHA-256",
        Hmac::Sha512 => "SHA-512",
    }
}
