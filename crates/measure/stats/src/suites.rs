//! What a suite costs on the line: the bytes that it adds, the ceiling that they leave, and which
//! suites of a device stand beside one another.

use crate::cell::{CellResult, Parameters};
use campaign::plan::{Adapter, Carrier, Cell, Encryptor, Measurement, Mode, Plan, Procedure};
use journal::Journal;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use units::frame_constants::{FCS_BYTES, HEADER_BYTES, MIN_BYTES, PREAMBLE_AND_GAP_BYTES};
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};
use wire::{Cipher, Gost, Hmac, Suite};

/// TCP header with the timestamps option (RFC 7323), which kernels use unless told otherwise.
const TCP_HEADER_BYTES: usize = 32;

/// What a device adds to the packets of a cell: the full ones of TCP, the datagrams of UDP, the
/// mean of a mix of frames. Where its form pads by what cannot be known from outside, the most.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Overhead {
    /// Suite that seals them.
    pub suite: String,
    /// Length of the IP packets in clear.
    pub packet_bytes: f64,
    /// What is added to one: outer headers, IV, padding, tag.
    pub overhead_bytes: f64,
    /// The same, in per cent of the packet in clear.
    pub overhead_percent: f64,
}

/// The most that the path could carry in a cell, were nothing but the length of packets in the way.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ceiling {
    /// Where it comes from.
    pub basis: CeilingBasis,
    /// Id of the baseline's cell; `null` of a line rate.
    pub baseline_cell: Option<String>,
    /// Payload, of `tcp` and `udp`.
    pub payload_bps: Option<f64>,
    /// Frames of one direction, of `throughput`.
    pub frames_per_s: Option<f64>,
    /// The cell's figure by this; `null` when it has none.
    pub reached: Option<f64>,
}

/// Where a ceiling comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CeilingBasis {
    /// The links' rate: it cannot be exceeded for long.
    LineRate,
    /// The baseline's figure in the same group, as if it had filled a line: a device that does
    /// better than that has something that the baseline has not.
    Baseline,
}

/// One measurement by several suites of one device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SuiteMatrix {
    /// The group of its cells.
    pub group: String,
    /// The device, which but for the suite is the same in all of them.
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
    /// Hash of the HMAC, for people; `null` where the cipher authenticates as well.
    pub hash: Option<String>,
    /// Why nobody should protect anything with it; `null` where it protects.
    pub insecure: Option<String>,
}

/// The packets of a cell.
struct Packets {
    /// In what numbers, and the length of the IP packet.
    shares: Vec<(u64, usize)>,
    /// Payload in one; `None` where it is frames that are counted.
    payload_bytes: Option<usize>,
}

impl Packets {
    /// `None` for measurements in which packets do not fill the path, and where they are
    /// fragmented.
    fn of(cell: &Cell, parameters: &Parameters) -> Option<Self> {
        let mtu = usize::from(cell.stations?.mtu);
        let of_one = |packet: usize, payload: usize| Self {
            shares: vec![(1, packet)],
            payload_bytes: Some(payload),
        };
        match &cell.measurement {
            Measurement::Tcp { .. } => {
                let payload = mtu.checked_sub(IPV4_HEADER_BYTES + TCP_HEADER_BYTES)?;
                Some(of_one(mtu, payload))
            }
            Measurement::Udp { .. } => {
                let headers = IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
                let payload = match parameters.datagram_bytes {
                    Some(bytes) => usize::try_from(bytes).ok()?,
                    None => mtu.checked_sub(headers)?,
                };
                (payload + headers <= mtu).then(|| of_one(payload + headers, payload))
            }
            Measurement::Frames(test) if matches!(test.procedure, Procedure::Throughput(_)) => {
                let around = usize::try_from(HEADER_BYTES + FCS_BYTES).ok()?;
                let shares = test.traffic.mix.shares.iter().map(|share| {
                    let packet = usize::from(share.frame_bytes).saturating_sub(around);
                    (u64::from(share.weight), packet)
                });
                Some(Self {
                    shares: shares.collect(),
                    payload_bytes: None,
                })
            }
            _ => None,
        }
    }

    fn mean(&self, length: impl Fn(usize) -> u64) -> f64 {
        let weight: u64 = self.shares.iter().map(|(weight, _)| weight).sum();
        let lengths = self.shares.iter();
        let sum: u64 = lengths
            .map(|(weight, packet)| weight * length(*packet))
            .sum();
        sum as f64 / weight.max(1) as f64
    }

    /// Mean bits of one on the line, preamble and gap included, its IP packet as long as `sealed`
    /// makes it.
    fn line_bits(&self, sealed: impl Fn(usize) -> usize) -> f64 {
        8.0 * self.mean(|packet| {
            let frame = sealed(packet) as u64 + HEADER_BYTES + FCS_BYTES;
            frame.max(MIN_BYTES) + PREAMBLE_AND_GAP_BYTES
        })
    }
}

/// What seals each packet by itself; `None` where nothing does, and where the bytes added depend on
/// more than the packet: on other packets in the same ESP packet, or on a frame around it.
fn carrier(adapter: &Adapter) -> Option<Carrier> {
    match adapter.encryptor() {
        Some(encryptor) if encryptor.mode != Mode::L3 || encryptor.aggregate => None,
        _ => adapter.carrier(),
    }
}

impl Overhead {
    pub(crate) fn of(cell: &Cell, parameters: &Parameters) -> Option<Self> {
        let carrier = carrier(&cell.dut.adapter)?;
        let packets = Packets::of(cell, parameters)?;
        let packet_bytes = packets.mean(|packet| packet as u64);
        let profile = cell.dut.adapter.profile();
        let mtu = cell.stations.map_or(0, |stations| stations.mtu);
        let sealed_bytes = packets.mean(|packet| profile.carried_bytes(packet, mtu) as u64);
        let overhead_bytes = sealed_bytes - packet_bytes;
        Some(Self {
            suite: carrier.suite.name().into(),
            packet_bytes,
            overhead_bytes,
            overhead_percent: 100.0 * overhead_bytes / packet_bytes,
        })
    }
}

/// Gives each cell that has one its ceiling.
pub(crate) fn set_ceilings(journal: &Journal, cells: &mut [CellResult]) {
    let plan = &journal.header.plan;
    let ceilings: Vec<Option<Ceiling>> = plan
        .cells
        .iter()
        .zip(cells.iter())
        .map(|(planned, cell)| ceiling(plan, planned, cell, cells))
        .collect();
    for (cell, ceiling) in cells.iter_mut().zip(ceilings) {
        cell.ceiling = ceiling;
    }
}

fn ceiling(plan: &Plan, planned: &Cell, cell: &CellResult, all: &[CellResult]) -> Option<Ceiling> {
    let packets = Packets::of(planned, &cell.parameters)?;
    let clear_bits = packets.line_bits(|packet| packet);
    let carrier = carrier(&planned.dut.adapter);
    let profile = planned.dut.adapter.profile();
    let mtu = planned.stations.map_or(0, |stations| stations.mtu);
    let cipher_bits =
        carrier.map(|_| packets.line_bits(|packet| profile.carried_bytes(packet, mtu)));
    let figure = figure(cell);
    let (basis, baseline_cell, most) = match plan.lab.link_bps {
        // What is added in ways that are not known here leaves no ceiling.
        Some(_) if carrier.is_none() && !profile.is_clear() => return None,
        Some(link_bps) => {
            let packets_per_s = link_bps as f64 / cipher_bits.unwrap_or(clear_bits).max(clear_bits);
            let each = packets
                .payload_bytes
                .map_or(1.0, |bytes| 8.0 * bytes as f64);
            (CeilingBasis::LineRate, None, packets_per_s * each)
        }
        None if has_given_load(planned) => return None,
        None => {
            let same = |other: &&CellResult| other.baseline && other.group == cell.group;
            let baseline = all.iter().find(same)?;
            let most = self::figure(baseline)? * clear_bits / cipher_bits?;
            (CeilingBasis::Baseline, Some(baseline.id.clone()), most)
        }
    };
    let is_payload = packets.payload_bytes.is_some();
    Some(Ceiling {
        basis,
        baseline_cell,
        payload_bps: is_payload.then_some(most),
        frames_per_s: (!is_payload).then_some(most),
        reached: figure.filter(|_| most > 0.0).map(|figure| figure / most),
    })
}

/// A load that the campaign gives bounds the baseline, whatever the path could carry.
fn has_given_load(cell: &Cell) -> bool {
    matches!(
        &cell.measurement,
        Measurement::Udp {
            rate_bps: Some(_),
            ..
        }
    )
}

/// What a ceiling is compared with.
fn figure(cell: &CellResult) -> Option<f64> {
    Some(cell.rate()?.mean)
}

/// Cells of one group whose devices differ in suite only.
struct Family<'a> {
    group: &'a str,
    kind: String,
    /// All settings but the suite.
    settings: Value,
    cells: Vec<(Suite, &'a Cell)>,
}

/// Every measurement that was made with several suites of one device, in the plan's order.
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

/// Kind and settings as the plan is written, whatever settings that kind has.
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
            // Devices of one kind with other settings: the names of their DUTs tell them apart.
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
