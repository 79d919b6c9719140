//! The payloads that our sender makes of packets, for tests that compare them with those of a slow
//! one.

use wire::aggfrag::{Aggregator, HEADER_BYTES};

/// The payloads of our sender: a packet that fits none as a whole is divided, and where `divides`
/// says so, others that do not fit the rest of one.
pub(crate) fn pack(packets: &[Vec<u8>], room: usize, divides: &[bool]) -> Vec<Vec<u8>> {
    let mut buffer = vec![0xee; room];
    let mut payloads = Vec::new();
    let mut aggregator = Aggregator::begin(room);
    for (packet, divide) in packets.iter().zip(divides.iter().cycle()) {
        if aggregator.push(&mut buffer, packet) {
            continue;
        }
        let fits_none = HEADER_BYTES + packet.len() > room;
        if aggregator.left() == 0 || !(fits_none || *divide) {
            let bytes = aggregator.finish(&mut buffer);
            payloads.push(buffer[..bytes].to_vec());
            aggregator = Aggregator::begin(room);
        }
        let mut rest = &packet[..];
        loop {
            rest = &rest[aggregator.push_part(&mut buffer, rest)..];
            if rest.is_empty() {
                break;
            }
            let bytes = aggregator.finish(&mut buffer);
            payloads.push(buffer[..bytes].to_vec());
            aggregator = Aggregator::resume(room, rest.len() as u16);
        }
    }
    let bytes = aggregator.finish(&mut buffer);
    payloads.push(buffer[..bytes].to_vec());
    payloads
}
