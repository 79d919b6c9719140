//! The byte strings to look for on the cipher link: clear text of the stations' traffic.

use plan::{Adapter, LinkForm};
use std::net::Ipv4Addr;
use wire::stamp::pattern;

/// Length of a piece of the test frames' payload: a ciphertext does not show it by chance.
const PIECE_BYTES: usize = 8;
/// Offsets of pieces in the pattern behind a test frame's stamp. The kernel filter looks for the
/// first two; frames too short for a piece do not show it.
const PIECES_AT: [usize; 5] = [0, 24, 256, 512, 1024];

/// Returns the marker of the traffic, if it has one, and for a DUT that encrypts pieces of the test
/// frames' payload, which may be anywhere in its packets. An opaque form gives no other hint, so
/// the addresses of both ends in a row are looked for too, as headers of IPv4 have them.
pub(crate) fn markers(
    adapter: &Adapter,
    marker: Vec<u8>,
    ends: Option<[Ipv4Addr; 2]>,
    is_frames: bool,
) -> Vec<Vec<u8>> {
    let has_marker = !marker.is_empty();
    let mut markers = vec![marker];
    if adapter.form() == Some(LinkForm::Opaque) {
        let addresses = ends.map(|[a, b]| [[a, b], [b, a]]);
        let addresses = addresses.into_iter().flatten();
        markers.extend(addresses.map(|ends| ends.map(|end| end.octets()).concat()));
    }
    if is_frames && (adapter.form() == Some(LinkForm::Opaque) || adapter.encrypts() && has_marker) {
        let piece = |at| pattern(at + PIECE_BYTES)[at..].to_vec();
        markers.extend(PIECES_AT.map(piece));
    }
    // Of test frames the marker is the addresses of one way.
    let mut seen = Vec::new();
    markers.retain(|marker| {
        let is_new = !marker.is_empty() && !seen.contains(marker);
        seen.push(marker.clone());
        is_new
    });
    markers
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{BoxFormat, External};

    const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 19, 0, 1)];
    const THERE: &[u8] = &[198, 18, 0, 1, 198, 19, 0, 1];
    const BACK: &[u8] = &[198, 19, 0, 1, 198, 18, 0, 1];

    #[test]
    fn of_an_opaque_form_addresses_and_payload_are_looked_for_too() {
        let opaque = Adapter::External(External {
            format: Some(BoxFormat::Opaque {
                expands_bytes: 64,
                aggregate: false,
            }),
            boxes: Vec::new(),
            carrier: None,
            ports: Vec::new(),
            bump: true,
            gateway: None,
            tunnels: 1,
            suite_word: None,
            limit_ns: 0,
            ready_ns: 0,
        });
        let of = |adapter: &Adapter, marker: &[u8], is_frames| {
            markers(adapter, marker.to_vec(), Some(ENDS), is_frames)
        };
        assert_eq!(of(&Adapter::Direct, b"012345", false), [b"012345"]);
        assert!(of(&Adapter::Direct, b"", false).is_empty());
        assert_eq!(of(&opaque, b"012345", false), [b"012345", THERE, BACK]);
        assert_eq!(of(&opaque, b"", false), [THERE, BACK]);
        let found = of(&opaque, THERE, true);
        assert_eq!(found[..2], [THERE, BACK]);
        assert_eq!(found.len(), 2 + PIECES_AT.len());
        assert_eq!(found[3], pattern(32)[24..]);
        // Behind any other encryptor pieces of test frames may be at the end of a packet.
        let ours = Adapter::Cipherbench(plan::Encryptor::new(wire::Suite::Aes256Gcm));
        assert_eq!(of(&ours, b"012345", false), [b"012345"]);
        assert_eq!(of(&ours, THERE, true).len(), 1 + PIECES_AT.len());
        assert_eq!(of(&Adapter::Direct, THERE, true), [THERE]);
        assert!(of(&ours, b"", true).is_empty());
    }
}
