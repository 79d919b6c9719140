//! Restores the VLAN tag that the kernel removed from a frame (IEEE 802.1Q §9.6).

use wire::vnet::{NEEDS_CSUM, VNET_HEADER_BYTES};

/// Length of a tag.
pub(crate) const TAG_BYTES: usize = 4;
/// Target and source address, in front of the tag.
pub(crate) const ADDRESSES_BYTES: usize = 12;

/// The tag in the kernel's metadata of the frame; `None` without a tag.
#[inline]
pub(crate) const fn tag(status: u32, tci: u16, tpid: u16) -> Option<[u8; TAG_BYTES]> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
        libc::ETH_P_8021Q as u16
    } else {
        tpid
    };
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    Some([a, b, c, d])
}

/// Moves virtio header and addresses to the front of `slot`, into the free room for the tag, and
/// inserts the tag behind them.
#[inline]
pub(crate) fn insert(slot: &mut [u8], tag: [u8; TAG_BYTES]) {
    let before = VNET_HEADER_BYTES + ADDRESSES_BYTES;
    slot.copy_within(TAG_BYTES..TAG_BYTES + before, 0);
    slot[before..before + TAG_BYTES].copy_from_slice(&tag);
    // The virtio header's offsets into the frame: hdr_len and csum_start.
    for (at, meant) in [(2, slot[1] != 0), (6, slot[0] & NEEDS_CSUM != 0)] {
        if meant {
            let place = u16::from_ne_bytes([slot[at], slot[at + 1]]) + TAG_BYTES as u16;
            slot[at..at + 2].copy_from_slice(&place.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_tags_are_restored_and_old_kernels_imply_802_1q() {
        let valid = libc::TP_STATUS_VLAN_VALID;
        let tpid_valid = valid | libc::TP_STATUS_VLAN_TPID_VALID;
        assert_eq!(tag(0, 0x2064, 0x88a8), None);
        assert_eq!(tag(valid, 0x2064, 0), Some([0x81, 0, 0x20, 0x64]));
        assert_eq!(tag(tpid_valid, 7, 0x88a8), Some([0x88, 0xa8, 0, 7]));
    }
}
