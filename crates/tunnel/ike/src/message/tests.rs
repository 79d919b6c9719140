//! Round trips, a corpus of hostile messages, and the slow parser as an oracle.

use super::*;
use crate::oracle;
use arbitrary::Unstructured;
use proptest::prelude::*;
use std::net::IpAddr;

fn header() -> Header {
    Header {
        initiator_spi: 0x0102_0304_0506_0708,
        responder_spi: 0,
        exchange: Exchange::IKE_SA_INIT,
        from_initiator: true,
        is_response: false,
        message_id: 0,
    }
}

/// A message of one payload with any content.
fn raw(kind: PayloadType, body: &[u8]) -> Vec<u8> {
    chain(&[(kind, 0, body)])
}

fn chain(payloads: &[(PayloadType, u8, &[u8])]) -> Vec<u8> {
    let empty = Message {
        header: header(),
        payloads: Vec::new(),
    };
    let mut out = Vec::new();
    empty.emit(&mut out).unwrap();
    out[16] = payloads.first().map_or(0, |(kind, ..)| kind.0);
    for (at, (_, flags, body)) in payloads.iter().enumerate() {
        let next = payloads.get(at + 1).map_or(0, |(kind, ..)| kind.0);
        out.extend([next, *flags]);
        out.extend((body.len() as u16 + 4).to_be_bytes());
        out.extend(*body);
    }
    let length = out.len() as u32;
    out[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
    out
}

fn parsed(bytes: &[u8]) -> Result<Message, Malformed> {
    let parsed = Message::parse(bytes);
    let canonical = oracle::canonical(bytes);
    assert_eq!(parsed.is_ok(), canonical.is_some(), "{parsed:?}");
    if let (Ok(message), Some(canonical)) = (&parsed, canonical) {
        let mut emitted = vec![1, 2, 3];
        message.emit(&mut emitted).unwrap();
        assert_eq!(emitted[3..], canonical);
        assert_eq!(Message::parse(&canonical).as_ref(), Ok(message));
    }
    parsed
}

fn refused(bytes: &[u8]) -> String {
    parsed(bytes).expect_err("must be refused").to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_message_survives_a_round_trip(seed in prop::collection::vec(any::<u8>(), 0..1500)) {
        let message = oracle::message(&mut Unstructured::new(&seed)).unwrap();
        let mut bytes = Vec::new();
        message.emit(&mut bytes).unwrap();
        prop_assert_eq!(parsed(&bytes), Ok(message));
    }

    #[test]
    fn both_parsers_accept_the_same_messages(
        seed in prop::collection::vec(any::<u8>(), 0..1500),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let message = oracle::message(&mut Unstructured::new(&seed)).unwrap();
        let mut bytes = Vec::new();
        message.emit(&mut bytes).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
            let length = bytes.len() as u32;
            if let Some(field) = bytes.get_mut(LENGTH_AT..LENGTH_AT + 4) {
                field.copy_from_slice(&length.to_be_bytes());
            }
        }
        let _ = parsed(&bytes);
    }

    #[test]
    fn inner_payloads_survive_a_round_trip(seed in prop::collection::vec(any::<u8>(), 0..1500)) {
        let payloads = oracle::payloads(&mut Unstructured::new(&seed)).unwrap();
        let mut bytes = vec![9];
        let first = emit_payloads(&payloads, &mut bytes).unwrap();
        prop_assert_eq!(parse_payloads(first, &bytes[1..]), Ok(payloads));
        let canonical = oracle::canonical_payloads(first.0, &bytes[1..]);
        prop_assert_eq!(canonical.as_deref(), Some(&bytes[1..]));
    }
}

#[test]
fn the_reasons_of_refusals_name_place_and_section() {
    let sa = |body: &[u8]| raw(PayloadType::SA, body);
    let cases: &[(&str, Vec<u8>)] = &[
        (
            "IKE message, byte 0 of the header: 8 bytes are needed, 3 are left (RFC 7296 section 3.1)",
            vec![1, 2, 3],
        ),
        (
            "IKE message, byte 34 in a payload NONCE: the nonce has 2 bytes (RFC 7296 section 3.9)",
            raw(PayloadType::NONCE, &[1, 2]),
        ),
        (
            "the nonce has 257 bytes",
            raw(PayloadType::NONCE, &[0; 257]),
        ),
        (
            "a payload SA: 1 bytes are needed, 0 are left (RFC 7296 section 3.3)",
            sa(&[]),
        ),
        (
            "a length of 3 bytes is shorter than the header that it includes",
            sa(&[0, 0, 0, 3]),
        ),
        (
            "the mark of the last substructure is 1",
            sa(&[1, 0, 0, 8, 1, 1, 0, 0]),
        ),
        ("the proposal's number is 0", sa(&[0, 0, 0, 8, 0, 1, 0, 0])),
        (
            "the proposal's number is 3",
            sa(&[2, 0, 0, 8, 2, 1, 0, 0, 0, 0, 0, 8, 3, 1, 0, 0]),
        ),
        (
            "the SPI has 3 bytes",
            sa(&[0, 0, 0, 11, 1, 3, 3, 0, 1, 2, 3]),
        ),
        ("more than 128 transforms", sa(&[0, 0, 0, 8, 1, 1, 0, 200])),
        (
            "8 bytes follow the last field",
            sa(&[0, 0, 0, 16, 1, 1, 0, 0, 0, 0, 0, 8, 1, 0, 0, 12]),
        ),
        (
            "the mark of the last transform is 0",
            sa(&[
                0, 0, 0, 24, 1, 1, 0, 2, 0, 0, 0, 8, 1, 0, 0, 12, 0, 0, 0, 8, 1, 0, 0, 12,
            ]),
        ),
        (
            "the attribute 14 occurs twice (RFC 7296 section 3.3.5)",
            sa(&[
                0, 0, 0, 24, 1, 1, 0, 1, 0, 0, 0, 16, 1, 0, 0, 12, 0x80, 14, 0, 128, 0x80, 14, 1, 0,
            ]),
        ),
        (
            "the key length, which must be a short attribute, has 2 bytes",
            sa(&[
                0, 0, 0, 22, 1, 1, 0, 1, 0, 0, 0, 14, 1, 0, 0, 12, 0, 14, 0, 2, 1, 0,
            ]),
        ),
        (
            "the public value has 0 bytes",
            raw(PayloadType::KE, &[0, 31, 0, 0]),
        ),
        (
            "the identity has 5 bytes",
            raw(PayloadType::ID_I, &[1, 0, 0, 0, 1, 2, 3, 4, 5]),
        ),
        (
            "a name contains the control character 0x00",
            raw(PayloadType::ID_R, &[2, 0, 0, 0, b'a', 0, b'b']),
        ),
        (
            "the list of authorities' hashes has 21 bytes",
            raw(PayloadType::CERTREQ, &[4; 22]),
        ),
        (
            "the notification's data has 19 bytes",
            raw(
                PayloadType::NOTIFY,
                &[[0, 0, 0x40, 4].as_slice(), &[7; 19]].concat(),
            ),
        ),
        (
            "the SPI has 9 bytes",
            raw(PayloadType::NOTIFY, &[3, 9, 0, 1]),
        ),
        ("the protocol is 9", raw(PayloadType::DELETE, &[9, 4, 0, 0])),
        (
            "262140 bytes are needed, 4 are left",
            raw(PayloadType::DELETE, &[3, 4, 0xff, 0xff, 0, 0, 0, 0]),
        ),
        (
            "the number of SPIs is 1",
            raw(PayloadType::DELETE, &[1, 0, 0, 1]),
        ),
        (
            "the number of selectors is 0",
            raw(PayloadType::TS_I, &[0; 4]),
        ),
        (
            "a range of addresses ends before its start (RFC 7296 section 3.13)",
            raw(
                PayloadType::TS_R,
                &[
                    1, 0, 0, 0, 7, 0, 0, 16, 0, 0, 255, 255, 10, 0, 0, 2, 10, 0, 0, 1,
                ],
            ),
        ),
        (
            "a range of ports ends before its start",
            raw(
                PayloadType::TS_R,
                &[
                    1, 0, 0, 0, 7, 0, 0, 16, 0, 2, 0, 1, 10, 0, 0, 1, 10, 0, 0, 2,
                ],
            ),
        ),
        (
            "the attribute's value has 3 bytes",
            raw(PayloadType::CP, &[1, 0, 0, 0, 0, 1, 0, 3, 1, 2, 3]),
        ),
        (
            "the fragment's number is 3 (RFC 7383 section 2.5)",
            raw(PayloadType::SKF, &[0, 3, 0, 2]),
        ),
        (
            "the fragment's number is 0",
            raw(PayloadType::SKF, &[0, 0, 0, 2]),
        ),
        (
            "which must be the last (RFC 7296 section 3.14)",
            chain(&[(PayloadType::NONCE, 0, &[0; 16]), (PayloadType::SK, 0, &[])])
                .into_iter()
                .chain([0])
                .collect(),
        ),
    ];
    for (expected, bytes) in cases {
        // A payload behind the encrypted one changes the length, too.
        let mut bytes = bytes.clone();
        if bytes.len() > HEADER_BYTES {
            let length = bytes.len() as u32;
            bytes[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
        }
        let reason = refused(&bytes);
        assert!(reason.contains(expected), "{reason}\nand not\n{expected}");
        assert!(reason.contains("RFC"), "{reason}");
    }
}

#[test]
fn another_length_or_version_is_refused() {
    let mut bytes = raw(PayloadType::NONCE, &[7; 16]);
    assert!(parsed(&bytes).is_ok());
    bytes[17] = 0x2f;
    assert!(parsed(&bytes).is_ok(), "minor versions are ignored");
    bytes[17] = 0x30;
    assert!(refused(&bytes).contains("the major version is 3, not 2 (RFC 7296 section 2.5)"));
    bytes[17] = 0x10;
    assert!(refused(&bytes).contains("the major version is 1"));
    bytes[17] = 0x20;
    bytes.push(0);
    assert!(refused(&bytes).contains("states a length of 48 bytes, the datagram has 49"));
    bytes.truncate(40);
    assert!(refused(&bytes).contains("the datagram has 40"));
    assert!(Header::peek(&bytes).is_err());
}

#[test]
fn an_unknown_payload_is_kept_and_reported_if_it_is_critical() {
    let kind = PayloadType(200);
    let nonce: &[u8] = &[5; 16];
    for flags in [0, 0x7f] {
        let message = parsed(&chain(&[
            (kind, flags, b"abc"),
            (PayloadType::NONCE, 0, nonce),
        ]));
        let message = message.unwrap();
        assert_eq!(message.unsupported(), None);
        assert_eq!(message.payloads.len(), 2);
    }
    let message = parsed(&chain(&[
        (PayloadType::NONCE, 0x80, nonce),
        (kind, 0x80, b"abc"),
    ]));
    let message = message.unwrap();
    // The critical bit of a known payload is ignored.
    assert_eq!(message.unsupported(), Some(kind));
    assert_eq!(kind.to_string(), "PayloadType 200");
}

#[test]
fn the_number_of_payloads_and_proposals_is_bounded() {
    let empty: (PayloadType, u8, &[u8]) = (PayloadType::VENDOR_ID, 0, &[]);
    assert!(parsed(&chain(&vec![empty; PAYLOADS_MAX])).is_ok());
    let reason = refused(&chain(&vec![empty; PAYLOADS_MAX + 1]));
    assert!(reason.contains("more than 128 payloads"), "{reason}");
    let proposal = |number| Proposal {
        number,
        protocol: Protocol::IKE,
        spi: Vec::new(),
        transforms: Vec::new(),
    };
    for (count, fits) in [
        (PROPOSALS_MAX as u8, true),
        (PROPOSALS_MAX as u8 + 1, false),
    ] {
        let message = Message {
            header: header(),
            payloads: vec![Payload::Sa((1..=count).map(proposal).collect())],
        };
        let mut bytes = Vec::new();
        message.emit(&mut bytes).unwrap();
        assert_eq!(parsed(&bytes).is_ok(), fits);
    }
}

#[test]
fn an_encrypted_payload_is_neither_nested_nor_followed() {
    let sealed = Payload::Encrypted {
        first: PayloadType::AUTH,
        body: vec![0; 40],
    };
    let mut inner = Vec::new();
    let first = emit_payloads(std::slice::from_ref(&sealed), &mut inner).unwrap();
    let nested = parse_payloads(first, &inner).unwrap_err();
    assert_eq!(nested.fault, Fault::Nested);
    let bytes = raw(PayloadType::SK, &[0; 40]);
    let behind = [bytes.as_slice(), &[0, 0, 0, 20], &[0; 16]].concat();
    let mut behind: Vec<u8> = behind;
    let length = behind.len() as u32;
    behind[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
    assert_eq!(parsed(&behind).unwrap_err().fault, Fault::NotLast);
}

#[test]
fn a_message_that_is_too_long_leaves_the_buffer_as_it_was() {
    let mut out = vec![1, 2];
    let message = Message {
        header: header(),
        payloads: vec![Payload::VendorId(vec![0; 65_532])],
    };
    let error = message.emit(&mut out).unwrap_err();
    assert_eq!(out, [1, 2]);
    assert_eq!(
        error.to_string(),
        "the length of 65536 exceeds 65535, the limit of its field (RFC 7296 section 3)"
    );
    let many = vec![Payload::InitiatorSelectors(vec![
        Selector::Unknown {
            kind: 9,
            protocol: 0,
            body: Vec::new(),
        };
        256
    ])];
    assert!(emit_payloads(&many, &mut out).is_err());
    assert_eq!(out, [1, 2]);
}

#[test]
fn assigned_numbers_are_distinct_and_ordered() {
    let lists = [
        NotifyType::ASSIGNED,
        PayloadType::ASSIGNED,
        TransformType::ASSIGNED,
        Encryption::ASSIGNED,
        PrfId::ASSIGNED,
        IntegrityId::ASSIGNED,
        KeMethod::ASSIGNED,
        AttributeType::ASSIGNED,
        IdentityType::ASSIGNED,
        AuthMethod::ASSIGNED,
        Exchange::ASSIGNED,
    ];
    for list in lists {
        assert!(list.is_sorted_by(|one, next| one.number < next.number));
    }
    assert!(NotifyType::NO_PROPOSAL_CHOSEN.is_error() && !NotifyType::COOKIE.is_error());
    assert_eq!(NotifyType::USE_PPK_INT.0, 16445);
    assert_eq!(KeMethod::ML_KEM_768.0, 36);
    assert_eq!(KeMethod::ML_KEM_768.to_string(), "ML_KEM_768");
}

#[test]
fn selectors_are_narrowed() {
    let range = |first: &str, last: &str, protocol, ports| AddressRange {
        protocol,
        ports,
        first: first.parse().unwrap(),
        last: last.parse().unwrap(),
    };
    let any = AddressRange::any(IpAddr::from([0, 0, 0, 0])..=IpAddr::from([255; 4]));
    let web = range("10.0.0.0", "10.0.0.255", 6, (80, 443));
    assert_eq!(any.intersect(&web), Some(web));
    let some = range("10.0.0.128", "10.0.1.0", 0, (400, 500));
    let both = range("10.0.0.128", "10.0.0.255", 6, (400, 443));
    assert_eq!(web.intersect(&some), Some(both));
    assert_eq!(some.intersect(&web), Some(both));
    for other in [
        range("10.0.1.0", "10.0.1.1", 6, (80, 80)),
        range("10.0.0.1", "10.0.0.1", 17, (80, 80)),
        range("10.0.0.1", "10.0.0.1", 6, (1, 2)),
        range("10.0.0.1", "10.0.0.1", 6, AddressRange::OPAQUE),
        range("::1", "::2", 0, AddressRange::ANY_PORT),
    ] {
        assert_eq!(web.intersect(&other), None);
    }
    let opaque = range("10.0.0.1", "10.0.0.1", 6, AddressRange::OPAQUE);
    assert_eq!(any.intersect(&opaque), Some(opaque));
    assert_eq!(opaque.intersect(&opaque), Some(opaque));
}
