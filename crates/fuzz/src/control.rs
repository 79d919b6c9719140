//! Control messages of datagrams.

use port::Ancillary;

/// Any block can be parsed; a complete message is found before any other data.
pub(crate) fn cmsg(data: &[u8]) {
    let before = Ancillary::parse(data);
    assert_ne!(before.datagram_bytes, Some(0));
    // The kernel's message for a train: UDP_GRO as an int, in front of the rest.
    let mut block = message(17, 104, &1400i32.to_ne_bytes());
    let alone = Ancillary::parse(&block);
    assert_eq!(alone.datagram_bytes, Some(1400));
    block.extend(data);
    let both = Ancillary::parse(&block);
    assert_eq!(both.tos, before.tos);
    assert!(
        // `data` may have another message of this kind.
        both.datagram_bytes == before.datagram_bytes
            || both.datagram_bytes == Some(1400)
            || both.datagram_bytes.is_none()
    );
    // The kernel cuts messages that have no room (MSG_CTRUNC in recvmsg(2)).
    for cut in 0..block.len().min(64) {
        let _ = Ancillary::parse(&block[..cut]);
    }
}

/// A control message with its padding (cmsg(3)).
fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
    let header = size_of::<usize>() + 8;
    let mut message = (header + data.len()).to_ne_bytes().to_vec();
    message.extend(level.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(data);
    message.resize(message.len().next_multiple_of(size_of::<usize>()), 0);
    message
}
