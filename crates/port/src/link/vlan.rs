//! Putting back the VLAN tag that the kernel took off a frame (IEEE 802.1Q §9.6).

use super::receive::HEADROOM_BYTES;
use wire::vnet::{NEEDS_CSUM, VNET_HEADER_BYTES};

/// Length of a tag.
pub(super) const TAG_BYTES: usize = 4;
/// Target and source address, which stand in front of the tag.
const ADDRESSES_BYTES: usize = 12;
const _: () = assert!(HEADROOM_BYTES >= TAG_BYTES);

/// Reads the tag of a frame from its `PACKET_AUXDATA` (`struct tpacket_auxdata`), `None` where it has none.
#[inline]
pub(super) fn tag(auxdata: &[u8]) -> Option<[u8; TAG_BYTES]> {
    let auxdata = auxdata.first_chunk::<20>()?;
    let status = u32::from_ne_bytes(*auxdata.first_chunk()?);
    let field = |at: usize| u16::from_ne_bytes([auxdata[at], auxdata[at + 1]]);
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
        libc::ETH_P_8021Q as u16
    } else {
        field(18)
    };
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), field(16).to_be_bytes());
    Some([a, b, c, d])
}

/// Moves virtio header and addresses to the front of `slot`, where [`HEADROOM_BYTES`] are free, and puts the tag
/// behind them. The packet begins [`TAG_BYTES`] earlier then.
#[inline]
pub(super) fn insert(slot: &mut [u8], tag: [u8; TAG_BYTES]) {
    let start = HEADROOM_BYTES - TAG_BYTES;
    let before = VNET_HEADER_BYTES + ADDRESSES_BYTES;
    slot.copy_within(HEADROOM_BYTES..HEADROOM_BYTES + before, start);
    slot[start + before..start + before + TAG_BYTES].copy_from_slice(&tag);
    let vnet = &mut slot[start..start + VNET_HEADER_BYTES];
    // What the header says of places in the frame: hdr_len and csum_start.
    for (at, meant) in [(2, vnet[1] != 0), (6, vnet[0] & NEEDS_CSUM != 0)] {
        if meant {
            let place = u16::from_ne_bytes([vnet[at], vnet[at + 1]]);
            vnet[at..at + 2].copy_from_slice(&(place + TAG_BYTES as u16).to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_tag_is_one_and_old_kernels_mean_802_1q() {
        let auxdata = |status: u32, tpid: u16| {
            let mut bytes = [0; 20];
            bytes[..4].copy_from_slice(&status.to_ne_bytes());
            bytes[16..18].copy_from_slice(&0x2064u16.to_ne_bytes());
            bytes[18..].copy_from_slice(&tpid.to_ne_bytes());
            bytes
        };
        let valid = libc::TP_STATUS_VLAN_VALID;
        let tpid_valid = valid | libc::TP_STATUS_VLAN_TPID_VALID;
        assert_eq!(tag(&auxdata(0, 0x88a8)), None);
        assert_eq!(tag(&auxdata(valid, 0)), Some([0x81, 0, 0x20, 0x64]));
        let service = tag(&auxdata(tpid_valid, 0x88a8));
        assert_eq!(service, Some([0x88, 0xa8, 0x20, 0x64]));
        assert_eq!(tag(&auxdata(valid, 0)[..19]), None);
    }
}
