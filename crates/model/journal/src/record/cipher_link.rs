//! Samples of the link between the gateways.

use super::OpenedPackets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Frames sampled on the link between the gateways during a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CipherLink {
    /// Sampled frames.
    pub frames: u64,
    /// Of those, frames in the device's form: ESP, bare or in UDP (the only form when this key was
    /// named), or another.
    pub esp_frames: u64,
    /// Frames with the stations' marker in clear.
    pub marker_frames: u64,
    /// TCP of the device itself between its gateways: key exchange, or key delivery from a KME.
    /// Absent in older journals.
    #[serde(default)]
    pub channel_frames: u64,
    /// All other frames, except known control traffic: ARP, ND, and the key exchange of devices
    /// that have one.
    pub other_frames: u64,
    /// Observed key identifiers in hexadecimal: SPIs; WireGuard's receiver indices; OpenVPN's key
    /// IDs in the first byte, followed by peer IDs.
    pub spis: Vec<String>,
    /// The class of service of the outermost IP header, by name ([`plan::Dscp::name_of`]): frames
    /// in the device's form and other frames; empty in older journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dscp: BTreeMap<String, u64>,
    /// Result of opening some of the sealed packets with the device's keys; `None` if only the
    /// device has them, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<OpenedPackets>,
    /// Statistics of the contents of sealed packets; `None` for a device that need not hide its
    /// payload or has a proprietary form, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<SealedContents>,
}

/// Statistics of the contents of sampled sealed packets, without the first 24 bytes of each: a
/// header and an initialisation vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedContents {
    /// Packets that were read, each once.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Pearson's chi-square of the counts of the 256 values of a byte, in thousandths: of random
    /// bytes 255,000 on average.
    pub chi_square_milli: u64,
    /// Blocks of 16 bytes that occurred before.
    pub repeated_blocks: u64,
    /// Sampled sealed frames that contained no whole packet.
    #[serde(default)]
    pub not_whole: u64,
}
