use super::*;
use engine::CpuChoice;
use std::fs;
use wire::Suite;

fn aead() -> Box<dyn Aead> {
    let choice = CpuChoice::Auto;
    let selection = engine::select(&choice, Suite::ChaCha20Poly1305).unwrap();
    selection.aead(&[7; 32])
}

#[test]
fn transport_data_is_padded_with_zeroes_and_counts_up() {
    let mut sealing = Sealing {
        aead: aead(),
        peer_index: 0x0102_0304,
        next: 5,
    };
    for (bytes, padded) in [(20, 32), (32, 32), (33, 48), (0, 0)] {
        let mut inner: Vec<u8> = (1..=64).collect();
        let before = inner.clone();
        let counter = sealing.next;
        let mut packet = [0; 128];
        let length = sealing.seal(&mut inner, bytes, &mut packet);
        assert_eq!(inner, before, "the pattern behind is as before");
        assert_eq!(length, 16 + padded + 16);
        assert_eq!(packet[..8], [4, 0, 0, 0, 4, 3, 2, 1]);
        assert_eq!(packet[8..16], counter.to_le_bytes());
        let opened = aead().open(&nonce(counter), &[], &mut packet[16..length]);
        opened.unwrap();
        assert_eq!(packet[16..16 + bytes], before[..bytes]);
        assert!(
            packet[16 + bytes..16 + padded]
                .iter()
                .all(|byte| *byte == 0)
        );
        assert_eq!(sealing.next, counter + 1);
    }
}

#[test]
fn keys_are_read_as_wg_writes_them() {
    let folder = testing::folder().unwrap();
    let file = folder.path().join("station.conf");
    let key = |byte: u8| BASE64_STANDARD.encode([byte; 32]);
    let text = format!(
        "[Interface]\nPrivateKey = {}\nListenPort = 51820\n\n[Peer]\nPublicKey = {}\nEndpoint = \
         192.0.2.1:51820\nAllowedIPs = ::/0\n",
        key(1),
        key(2)
    );
    fs::write(&file, &text).unwrap();
    let read_keys = read(&file).unwrap();
    assert_eq!(
        (*read_keys.private, read_keys.peer_public),
        ([1; 32], [2; 32])
    );
    assert_eq!(*read_keys.psk, [0; 32]);
    fs::write(&file, format!("{text}PresharedKey = {}\n", key(3))).unwrap();
    assert_eq!(*read(&file).unwrap().psk, [3; 32]);
    fs::write(&file, text.replace("PublicKey = ", "PublicKey = x")).unwrap();
    let error = read(&file).err().unwrap().to_string();
    assert!(error == "`PublicKey` is no key", "{error}");
}

#[test]
fn a_device_that_does_not_answer_and_a_missing_file_are_named() {
    let folder = testing::folder().unwrap();
    let file = folder.path().join("none");
    // It takes the messages, and says nothing.
    let silent = UdpSocket::bind("127.0.0.2:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let selection = engine::select(&CpuChoice::Auto, Suite::ChaCha20Poly1305).unwrap();
    let ends = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
    let open = |selection| WireGuardKeys::open(selection, &file, ends, port, true);
    let error = open(selection.clone()).err().unwrap().to_string();
    assert!(
        error.starts_with("no WireGuard handshake with 127.0.0.2") && error.contains("/none: "),
        "{error}"
    );
    let key = BASE64_STANDARD.encode([1; 32]);
    fs::write(&file, format!("PrivateKey = {key}\nPublicKey = {key}\n")).unwrap();
    let begun = Instant::now();
    let error = open(selection).err().unwrap().to_string();
    assert!(begun.elapsed() >= HANDSHAKE_LIMIT, "{:?}", begun.elapsed());
    assert!(
        error.contains("it has not answered within 4 s\nhelp: "),
        "{error}"
    );
}
