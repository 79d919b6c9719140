use super::*;

const MARK: [u8; MARK_BYTES] = *b"0123456789abcdef";
const SENT: u32 = 40;
/// Ethernet, IPv4 and UDP.
const OUTER: usize = 14 + 20 + 8;

/// Pseudo-random bytes, other ones for each seed.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    for _ in 0..64 {
        next();
    }
    (0..bytes).map(|_| next()).collect()
}

/// A frame with UDP from and to a port.
fn udp(port: u16, payload: &[u8]) -> Left {
    let mut bytes = vec![2; 12];
    bytes.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    bytes.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    bytes.extend(port.to_be_bytes());
    bytes.extend(port.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    Left {
        whole_bytes: bytes.len() as u32,
        bytes,
    }
}

fn marked(bytes: usize) -> Vec<u8> {
    MARK.iter().copied().cycle().take(bytes).collect()
}

/// Both bursts on `eth0`; `packet` makes a frame of a packet's number and inner length.
fn bursts(packet: impl Fn(u64, usize) -> Left) -> Watched {
    let bursts = [(0, 329_u32), (1000, 537)].map(|(first, inner_bytes)| Burst {
        inner_bytes,
        same_bytes: inner_bytes as usize - 28 - 13,
        frames: (first..first + u64::from(SENT))
            .map(|number| packet(number, inner_bytes as usize))
            .collect(),
    });
    Watched {
        interface: "eth0".to_owned(),
        bursts: bursts.into(),
    }
}

fn verdict(watched: Watched) -> Option<Seal> {
    look(&[watched], &MARK, SENT)
}

#[test]
fn ciphertext_of_the_right_lengths_is_encrypted() {
    for (port, head, form) in [
        (51820, [4, 0, 0, 0], "WireGuard"),
        (7, [4, 0, 0, 0], "WireGuard"),
        (4500, [0, 0, 1, 2], "ESP in UDP"),
        (5000, [9, 9, 9, 9], "UDP to port 5000"),
    ] {
        let seal = verdict(bursts(|number, inner| {
            // Padded to 16 B, with a counter and a tag.
            let sealed = noise(number, inner.next_multiple_of(16) + 16);
            udp(port, &[&head[..], &number.to_be_bytes(), &sealed].concat())
        }));
        let expected = Seal::Yes {
            interface: "eth0".to_owned(),
            form: form.to_owned(),
            packets: 2 * SENT,
        };
        assert_eq!(seal, Some(expected));
    }
}

#[test]
fn a_readable_mark_is_not_encrypted_wherever_it_is() {
    let readable = |number: u64, inner: usize| {
        let inner = [noise(number, 28), marked(inner - 28)].concat();
        udp(4789, &inner)
    };
    let Some(Seal::No {
        form, why, packets, ..
    }) = verdict(bursts(readable))
    else {
        panic!("it is readable");
    };
    assert_eq!(
        (&*form, why, packets),
        ("UDP to port 4789", Unsealed::Readable, 80)
    );
    // Sealed on one interface, readable on another.
    let sealed = bursts(|number, inner| udp(4500, &noise(number, inner + 40)));
    let mut also = bursts(readable);
    also.interface = "eth1".to_owned();
    also.bursts[0].frames.truncate(1);
    also.bursts[1].frames.clear();
    let seal = look(&[sealed, also], &MARK, SENT);
    assert!(
        matches!(&seal, Some(Seal::No { interface, packets: 1, .. }) if interface == "eth1"),
        "{seal:?}"
    );
}

#[test]
fn equal_texts_that_leave_as_equal_bytes_are_not_encrypted() {
    let key = noise(1, 2000);
    let seal = verdict(bursts(|_, inner| {
        let mixed: Vec<u8> = marked(inner).iter().zip(&key).map(|(a, b)| a ^ b).collect();
        udp(5000, &mixed)
    }));
    assert!(
        matches!(
            seal,
            Some(Seal::No {
                why: Unsealed::Repeats,
                ..
            })
        ),
        "{seal:?}"
    );
}

#[test]
fn nothing_is_concluded_from_other_packets() {
    // A coded form: neither readable, nor uniform.
    let coded = verdict(bursts(|number, inner| {
        let letters: Vec<u8> = noise(number, inner + 9)
            .iter()
            .map(|b| b & 63 | 64)
            .collect();
        udp(5000, &letters)
    }));
    assert!(
        matches!(&coded, Some(Seal::Unknown { reason }) if reason.contains("neither readable")),
        "{coded:?}"
    );
    // Compressed: too short.
    let short = verdict(bursts(|number, _| udp(5000, &noise(number, 60))));
    assert_eq!(short, None);
    // Packets of the same length whatever the packet: padded, or something else.
    let padded = verdict(bursts(|number, _| udp(5000, &noise(number, 500))));
    assert_eq!(padded, None);
    // A third of the packets.
    let few = verdict(bursts(|number, inner| {
        let more = if number % 3 == 0 { 0 } else { number as usize };
        udp(5000, &noise(number, inner + 40 + more))
    }));
    assert_eq!(few, None);
    let nothing = verdict(Watched {
        interface: "eth0".to_owned(),
        bursts: Vec::new(),
    });
    assert_eq!(nothing, None);
}

#[test]
fn uniform_bytes_pass_and_skewed_ones_do_not() {
    for seed in 0..200 {
        let packets: Vec<_> = (0..40)
            .map(|number| noise(seed * 1000 + number, 288))
            .collect();
        assert!(chi_square(&packets) < CHI_SQUARE_MAX, "{seed}");
        assert!(!repeats(&packets), "{seed}");
    }
    assert!(chi_square(&[marked(2000)]) > CHI_SQUARE_MAX);
    assert_eq!(form_of_frame(&udp(7, b"").bytes[..OUTER - 8]), "IP");
    assert_eq!(form_of_frame(&[2; 12]), "packets");
    let macsec = [&[2; 12][..], &[0x88, 0xe5], &[0; 20]].concat();
    assert_eq!(form_of_frame(&macsec), "Ethernet type 88e5");
}
