//! Stamps of test frames.

use wire::stamp::{STAMP_BYTES, Stamp, pattern};

/// A stamp read equals the one written, and valid bytes equal the bytes that would be written.
pub(crate) fn body(data: &[u8]) {
    if let Some(stamp) = Stamp::read(data) {
        let expected = [
            &stamp.to_bytes(data.len() as u16)[..],
            pattern(data.len() - STAMP_BYTES),
        ]
        .concat();
        assert_eq!(data, expected);
    }
    let Some((fields, rest)) = data.split_first_chunk::<16>() else {
        return;
    };
    let field = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
    let low = u64::from(field(8)) << 32 | u64::from(field(10)) << 16 | u64::from(field(12));
    let stamp = Stamp {
        tag: field(0),
        flow: field(2),
        sequence: u32::from(field(4)) << 16 | u32::from(field(6)),
        intended_ns: low,
    };
    let length = STAMP_BYTES + usize::from(field(14)) % 1400;
    let mut payload = [
        &stamp.to_bytes(length as u16)[..],
        pattern(length - STAMP_BYTES),
    ]
    .concat();
    assert_eq!(Stamp::read(&payload), Some(stamp));
    let mut own = vec![0; length - STAMP_BYTES];
    stamp.fill_random(&mut own);
    let own = [&stamp.to_bytes(length as u16)[..], &own].concat();
    assert_eq!(Stamp::read_random(&own), Some(stamp));
    // The rest selects the change.
    if let [place, change, ..] = *rest
        && change != 0
    {
        // Scaled, so that one byte can select any place.
        let at = usize::from(place) * length / 256;
        payload[at] ^= change;
        assert_eq!(Stamp::read(&payload), None);
    }
}
