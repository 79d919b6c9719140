//! One measurement with several suites of one device, side by side.

use crate::figures::overhead::Packets;
use crate::figures::parameters::Parameters;
use crate::figures::series::Series;
use journal::Journal;
use plan::{Cell, Common, Dimension, Encryptor, Setting};
use schemars::JsonSchema;
use serde::Serialize;
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
type Family<'a> = Series<Common, (Suite, &'a Cell)>;

/// Every measurement with several suites of one device, in the plan's order.
pub(crate) fn matrices(journal: &Journal) -> Vec<SuiteMatrix> {
    let cells = journal.header.plan.cells.iter();
    let mut families: Vec<Family<'_>> = Series::all(cells.filter_map(member));
    for family in &mut families {
        let mut seen = Vec::new();
        family.members.retain(|(suite, _)| {
            // Of several cells with one suite the first is shown: the matrix has one place for
            // each.
            let is_first = !seen.contains(suite);
            seen.push(*suite);
            is_first
        });
    }
    // One suite has no other to be compared with.
    families.retain(|family| family.members.len() > 1);
    let group_and_kind = |family: &Family<'_>| {
        let first = family.members.first();
        (
            family.key.group.clone(),
            first.map(|(_, cell)| cell.dut.adapter.kind()),
        )
    };
    // Two families of one kind in one group differ in another setting, which the title must show.
    let is_alone = |family: &Family<'_>| {
        let own = group_and_kind(family);
        families
            .iter()
            .filter(|other| group_and_kind(other) == own)
            .count()
            == 1
    };
    families
        .iter()
        .map(|family| matrix(family, is_alone(family)))
        .collect()
}

/// A cell with its suite, and all that its family shares; `None` if its suite does not matter.
fn member(cell: &Cell) -> Option<(Common, (Suite, &Cell))> {
    let adapter = &cell.dut.adapter;
    let suite = adapter.carrier()?.suite;
    let is_control = adapter.encryptor().is_some_and(Encryptor::is_null);
    // A matrix is about the bytes and the work of a suite: measurements that fill no path do not
    // show them.
    if is_control || Packets::of(cell, &Parameters::default()).is_none() {
        return None;
    }
    let (_, common) = cell.along(Dimension::Setting(Setting::Suite))?;
    Some((common, (suite, cell)))
}

fn matrix(family: &Family<'_>, is_alone: bool) -> SuiteMatrix {
    let mut cells = family.members.clone();
    let device = match cells.first().map(|(_, first)| &first.dut) {
        // Devices of one kind with different settings are distinguished by the names of their DUTs.
        Some(first) if !is_alone => format!("{} as in {}", first.adapter.kind(), first.name),
        Some(first) => first.adapter.kind().to_owned(),
        None => String::new(),
    };
    // By age and not by figure, so that every matrix has one order of rows.
    cells.sort_by_key(|(suite, _)| age(*suite));
    let entries = cells.into_iter().map(|(suite, cell)| entry(suite, cell));
    SuiteMatrix {
        group: family.key.group.clone(),
        device,
        entries: entries.collect(),
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
