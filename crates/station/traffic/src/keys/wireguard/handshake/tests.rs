use super::*;

fn identity(private: u8, peer: u8, psk: u8) -> Identity {
    Identity {
        private: [private; 32].into(),
        peer_public: public(&[peer; 32].into()),
        psk: [psk; 32].into(),
    }
}

/// The peer's part, by `snow`; the MACs by this file's own functions.
fn respond(identity: &Identity, initiation: &[u8], own_index: u32) -> (Vec<u8>, [[u8; 32]; 2]) {
    let (body, macs) = initiation.split_at(initiation.len() - 2 * MAC_BYTES);
    assert_eq!(initiation.len(), 148);
    assert_eq!(
        macs[..MAC_BYTES],
        mac(&mac_key(&public(&identity.private)), body)
    );
    let mut noise = Builder::new(PATTERN.parse().unwrap())
        .local_private_key(&*identity.private)
        .unwrap()
        .psk(2, &identity.psk)
        .unwrap()
        .prologue(IDENTIFIER)
        .unwrap()
        .build_responder()
        .unwrap();
    let mut stamp = [0; 12];
    assert_eq!(noise.read_message(&body[8..], &mut stamp).unwrap(), 12);
    assert_eq!(stamp[..4], [0x40, 0, 0, 0], "TAI64");
    let mut message = vec![RESPONSE, 0, 0, 0];
    message.extend(own_index.to_le_bytes());
    message.extend(&body[4..8]);
    let mut part = [0; NOISE_BYTES_MAX];
    let written = noise.write_message(&[], &mut part).unwrap();
    message.extend(&part[..written]);
    put_macs(
        &mut message,
        &mac_key(noise.get_remote_static().unwrap().try_into().unwrap()),
    );
    let (from_initiator, to_initiator) = noise.dangerously_get_raw_split();
    (message, [from_initiator, to_initiator])
}

#[test]
fn both_sides_get_the_same_keys_and_each_others_index() {
    let (one, other) = (identity(1, 2, 9), identity(2, 1, 9));
    let (mut initiation, first) = Initiation::new(&one, 0xaabb).unwrap();
    let (second, [forth, back]) = respond(&other, &first, 0xccdd);
    let session = initiation.finish(&second).unwrap();
    assert_eq!((session.own_index, session.peer_index), (0xaabb, 0xccdd));
    assert_eq!((*session.sealing, *session.opening), (forth, back));
}

#[test]
fn responses_of_others_and_damaged_ones_make_no_session() {
    let (one, other) = (identity(1, 2, 9), identity(2, 1, 9));
    for at in 0..RESPONSE_BYTES - MAC_BYTES {
        let (mut initiation, first) = Initiation::new(&one, 5).unwrap();
        let (mut second, _) = respond(&other, &first, 6);
        second[at] ^= 1;
        assert!(initiation.finish(&second).is_none(), "byte {at}");
    }
    let (mut initiation, first) = Initiation::new(&one, 5).unwrap();
    let (second, _) = respond(&identity(2, 1, 8), &first, 6);
    assert!(
        initiation.finish(&second).is_none(),
        "another pre-shared key"
    );
    assert!(initiation.finish(&second[1..]).is_none());
    assert!(initiation.finish(&[]).is_none());
}
