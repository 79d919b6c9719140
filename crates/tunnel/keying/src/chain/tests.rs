use super::*;
use base16ct::lower::encode_string as hex;
use proptest::prelude::*;
use std::collections::HashSet;
use std::panic;

fn exporter() -> Secret {
    Zeroizing::new(std::array::from_fn(|index| index as u8))
}

fn context() -> Context {
    Context {
        connector: "gw1".to_owned(),
        listener: "gw2".to_owned(),
        tunnel: 3,
        lanes: 2,
        suite: Suite::Aes256Gcm,
        policy: Policy::Pqc,
        epoch: 1,
    }
}

fn link(kind: Kind, id: &str, key: Option<&[u8]>) -> Link {
    Link {
        kind,
        id: id.to_owned(),
        key: key.map(|key| Arc::new(Zeroizing::new(key.to_vec()))),
    }
}

fn ppk(id: &str, key: Option<&[u8]>) -> Link {
    link(Kind::Ppk, id, key)
}

fn qkd(id: &str, key: &[u8]) -> Link {
    link(Kind::Qkd, id, Some(key))
}

fn derive(context: Context, links: &[Link]) -> EpochSecret {
    EpochSecret::derive(context, &exporter(), links)
}

/// Everything derived from an epoch: keys of both directions in some slots, and both confirmations.
fn outputs(secret: &EpochSecret) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for side in [Side::A, Side::B] {
        all.push(secret.confirmation(side).0.to_vec());
        for slot in 0..3 {
            all.push(secret.sa_keys(side, slot).keymat.to_vec());
        }
    }
    all
}

fn share_nothing(one: &EpochSecret, other: &EpochSecret) -> bool {
    let known: HashSet<_> = outputs(one).into_iter().collect();
    outputs(other).iter().all(|output| !known.contains(output))
}

/// RFC 4231 §4.2, §4.3 and §4.7: a short key, one of text, one longer than a block.
#[test]
fn the_prf_is_hmac_sha_384() {
    let cases: [(&[u8], &[u8], &str); 3] = [
        (
            &[0x0b; 20],
            b"Hi There",
            "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59c\
             faea9ea9076ede7f4af152e8b2fa9cb6",
        ),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e\
             8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c6\
             0c2ef6ab4030fe8296248df163f44952",
        ),
    ];
    for (key, message, mac) in cases {
        assert_eq!(hex(&*prf(key, message)), mac);
    }
}

/// Derived by another implementation (Python's `hmac`, and `HKDFExpand` of its `cryptography`) from
/// `docs/security.md`.
#[test]
fn keys_are_those_that_another_implementation_derives() {
    // Given out of order, one of them absent: the other implementation sorts the PPKs, too.
    let (alpha, first, second) = ([0xa1; 32], [0x01; 32], [0x02; 48]);
    let absent = [ppk("beta", None), ppk("alpha", Some(&alpha))];
    let mut all = absent.to_vec();
    all.extend([
        qkd("f47ac10b-58cc-4372-a567-0e02b2c3d479", &first),
        qkd("550e8400-e29b-41d4-a716-446655440000", &second),
    ]);
    let cases = [
        (context(), vec![], (Side::A, 6), KEYS_PQC),
        (
            Context {
                suite: Suite::EncryptThenMac(wire::Cipher::Aes256Cbc, wire::Hmac::Sha512),
                policy: Policy::Both,
                epoch: EPOCH_MAX,
                ..context()
            },
            all,
            (Side::B, 4095),
            KEYS_BOTH,
        ),
        (
            Context {
                suite: Suite::ChaCha20Poly1305,
                policy: Policy::Qkd,
                epoch: 7,
                ..context()
            },
            vec![qkd("550e8400-e29b-41d4-a716-446655440000", &second)],
            (Side::A, 0),
            KEYS_QKD,
        ),
        (
            Context {
                policy: Policy::Either,
                epoch: 2,
                ..context()
            },
            absent.to_vec(),
            (Side::B, 7),
            KEYS_EITHER,
        ),
    ];
    for (context, links, (sender, slot), [keymat, confirmation]) in cases {
        let secret = derive(context, &links);
        assert_eq!(hex(&secret.sa_keys(sender, slot).keymat), keymat);
        assert_eq!(hex(&secret.confirmation(sender).0), confirmation);
    }
}

const KEYS_PQC: [&str; 2] = [
    "ce1fbe58498c683bb42209ed4999fcd53c24e097604bfad72ad32f5ded4b0375\
     99d310a4",
    "e663b500a8734f3c3720843e678e53cfbe1f5f478861ef35fe09ff04341d627e\
     f507ed193ec9f7e8528fa91bbd7bd06a",
];
const KEYS_BOTH: [&str; 2] = [
    "efdac252086dac0615feb43d3926bbe0d35cba7444677f8411584380aa3cbcb4\
     c67247872d70a9df90a624dd07919f7e740c0e8be4bdbf3fff610d77982b3bd2\
     db488191ee3c05d5c1ba3c1389c50f428c93ae4b2752943e1c6e923a36beb2e0",
    "bb92ea3d923d7fe161ff248918eacbe25a2b6b116848ab517e659fec545a7d46\
     fe1d53ba1983f7843b441516a8b4b41a",
];
const KEYS_QKD: [&str; 2] = [
    "ba6a062bedd48ff3dbe2baef2591ed1d5b84ba1b14947d6cf3c831f85e8f79ba\
     cce0a556",
    "3678f5c41b1926ef35f9fca55eb7f1e78217e238e098237e528cb6c405c2f185\
     a98d202e5c26c9213d296f53e1f93993",
];
const KEYS_EITHER: [&str; 2] = [
    "92aaf05206b62c03535db425ca09491dd86226b9660501a5b124a78d83e7abe2\
     d7d0aa9b",
    "4ef430cefa8c2d3003f132a99eae47b2d3cdc8e47835ec8ec678d8ee663ed0db\
     ddf66f6bd7ff9de6ff4b218fa84709d5",
];

#[test]
fn an_sa_has_the_spi_of_its_epoch_and_slot_and_keys_of_its_suite() {
    for suite in Suite::ALL {
        let secret = derive(
            Context {
                suite,
                epoch: 9,
                ..context()
            },
            &[],
        );
        let keys = secret.sa_keys(Side::A, 5);
        assert_eq!((keys.spi, keys.suite), (spi_of(9, 5), suite));
        assert_eq!(keys.keymat.len(), suite.keymat_bytes());
    }
}

#[test]
fn whatever_both_sides_agreed_on_changes_all_keys() {
    let links = [ppk("alpha", Some(&[1; 32]))];
    let of = |change: &dyn Fn(&mut Context)| {
        let mut context = context();
        change(&mut context);
        derive(context, &links)
    };
    let changes: [&dyn Fn(&mut Context); 11] = [
        &|_| {},
        &|it| it.connector.push('x'),
        &|it| it.listener.push('x'),
        // The same letters in another field.
        &|it| (it.connector, it.listener) = ("gw".to_owned(), "1gw2".to_owned()),
        &|it| (it.connector, it.listener) = ("gw2".to_owned(), "gw1".to_owned()),
        &|it| it.tunnel += 1,
        &|it| it.lanes += 1,
        // The same two numbers in the other's field.
        &|it| (it.tunnel, it.lanes) = (it.lanes, it.tunnel),
        // With keys of the same length.
        &|it| it.suite = Suite::ChaCha20Poly1305,
        &|it| it.policy = Policy::Either,
        &|it| it.epoch += 1,
    ];
    let secrets: Vec<_> = changes.iter().map(|change| of(*change)).collect();
    for (at, one) in secrets.iter().enumerate() {
        for (other_at, other) in secrets.iter().enumerate().skip(at + 1) {
            assert!(share_nothing(one, other), "changes {at} and {other_at}");
        }
    }
    let mut other = exporter();
    other[47] ^= 1;
    let other = EpochSecret::derive(context(), &other, &links);
    assert!(share_nothing(&secrets[0], &other), "another handshake");
}

#[test]
fn a_qkd_key_delivered_twice_derives_different_keys() {
    let policy = Policy::Qkd;
    let links = [qkd("same", &[7; 32])];
    let mut other = exporter();
    other[0] ^= 1;
    let secrets = [exporter(), other].map(|exporter| {
        EpochSecret::derive(
            Context {
                policy,
                ..context()
            },
            &exporter,
            &links,
        )
    });
    assert_eq!(
        secrets[0].last, secrets[1].last,
        "the handshake is not mixed in"
    );
    // Only the fingerprint of the session separates them.
    assert!(share_nothing(&secrets[0], &secrets[1]));
}

#[test]
fn no_two_sas_have_a_key_in_common() {
    let mut keys = HashSet::new();
    for suite in Suite::ALL {
        for tunnel in 0..2 {
            for epoch in 1..4 {
                let secret = derive(
                    Context {
                        suite,
                        tunnel,
                        epoch,
                        ..context()
                    },
                    &[],
                );
                for side in [Side::A, Side::B] {
                    for slot in 0..6 {
                        let made = secret.sa_keys(side, slot);
                        // The beginning only: keys of different lengths must not share it either.
                        assert!(keys.insert(made.keymat[..16].to_vec()));
                    }
                }
            }
        }
    }
}

#[test]
fn an_absent_key_differs_from_zeros_empty_and_unrequested() {
    let zeros = [0; 48];
    let variants = [
        vec![],
        vec![ppk("alpha", None)],
        vec![ppk("alpha", Some(&[]))],
        vec![ppk("alpha", Some(&[0]))],
        vec![ppk("alpha", Some(&zeros[..32]))],
        vec![ppk("alpha", Some(&zeros))],
        vec![ppk("beta", None)],
        vec![ppk("alpha", None), ppk("beta", None)],
        // The absent key in the other place.
        vec![ppk("alpha", Some(&zeros[..32])), ppk("beta", None)],
        vec![ppk("alpha", None), ppk("beta", Some(&zeros[..32]))],
        vec![
            ppk("alpha", Some(&zeros[..32])),
            ppk("beta", Some(&zeros[..32])),
        ],
    ];
    let secrets = variants.map(|links| derive(context(), &links));
    for (at, one) in secrets.iter().enumerate() {
        for other in &secrets[at + 1..] {
            assert_ne!(one.last, other.last, "{one:?} {other:?}");
            assert!(share_nothing(one, other), "{one:?} {other:?}");
        }
    }
}

#[test]
fn a_ppk_and_a_qkd_key_of_one_id_and_value_are_two_keys() {
    let policy = Policy::Either;
    let one = derive(
        Context {
            policy,
            ..context()
        },
        &[ppk("x", Some(&[5; 32]))],
    );
    let other = derive(
        Context {
            policy,
            ..context()
        },
        &[qkd("x", &[5; 32])],
    );
    assert_ne!(one.last, other.last);
    assert!(share_nothing(&one, &other));
}

#[test]
fn ppks_are_sorted_and_qkd_keys_stay_in_their_order() {
    let policy = Policy::Both;
    let mut links = vec![
        qkd("2", &[2; 32]),
        ppk("b", Some(&[11; 32])),
        qkd("1", &[1; 32]),
        ppk("a", None),
        ppk("B", Some(&[12; 32])),
    ];
    let one = derive(
        Context {
            policy,
            ..context()
        },
        &links,
    );
    assert_eq!(
        one.sources(),
        ["ppk:B", "-ppk:a", "ppk:b", "qkd:2", "qkd:1"]
    );
    // Two PPKs change places, which must not matter.
    links.swap(1, 4);
    let same = derive(
        Context {
            policy,
            ..context()
        },
        &links,
    );
    assert_eq!(outputs(&one), outputs(&same));
    // Two QKD keys change places, which must matter: their order is agreed.
    links.swap(0, 2);
    let other = derive(
        Context {
            policy,
            ..context()
        },
        &links,
    );
    assert!(share_nothing(&one, &other));
}

#[test]
fn policy_either_without_qkd_records_it() {
    let policy = Policy::Either;
    let one = derive(
        Context {
            policy,
            ..context()
        },
        &[],
    );
    assert_eq!(one.sources(), ["-qkd:none"]);
    let same = derive(
        Context {
            policy,
            ..context()
        },
        &[Link::no_qkd()],
    );
    assert_eq!(outputs(&one), outputs(&same));
}

#[test]
fn a_key_that_the_policy_requires_cannot_be_omitted() {
    let absent = link(Kind::Qkd, "1", None);
    let key = qkd("1", &[1; 32]);
    let cases = [
        (Policy::Pqc, vec![], true),
        (Policy::Pqc, vec![key.clone()], false),
        (Policy::Qkd, vec![key.clone()], true),
        (Policy::Qkd, vec![], false),
        (Policy::Qkd, vec![ppk("alpha", Some(&[1; 32]))], false),
        (Policy::Qkd, vec![Link::no_qkd()], false),
        (Policy::Qkd, vec![key.clone(), absent.clone()], false),
        // A repetition is for the caller to refuse (`rollover::qkd`).
        (Policy::Both, vec![key.clone(), key.clone()], true),
        (Policy::Both, vec![], false),
        (Policy::Both, vec![absent.clone()], false),
        (Policy::Either, vec![key.clone()], true),
        (Policy::Either, vec![absent.clone()], false),
        (Policy::Either, vec![key, Link::no_qkd()], false),
    ];
    for (policy, links, good) in cases {
        let made = panic::catch_unwind(|| {
            derive(
                Context {
                    policy,
                    ..context()
                },
                &links,
            )
        });
        assert_eq!(made.is_ok(), good, "{policy} {links:?}");
    }
}

#[test]
fn policies_define_their_key_sources() {
    let table = Policy::ALL.map(|policy| {
        assert_eq!(Policy::from_name(policy.name()), Some(policy));
        assert_eq!(
            serde_json::to_string(&policy).unwrap(),
            format!("\"{policy}\"")
        );
        (policy.mixes_handshake(), policy.asks_qkd())
    });
    assert_eq!(
        table,
        [(true, false), (false, true), (true, true), (true, true),]
    );
    assert_eq!(Policy::from_name("none"), None);
}

#[test]
fn a_confirmation_is_of_one_side_and_of_one_secret() {
    let one = derive(context(), &[ppk("alpha", Some(&[1; 32]))]);
    let other = derive(context(), &[ppk("alpha", Some(&[2; 32]))]);
    for side in [Side::A, Side::B] {
        let mut shown = one.confirmation(side);
        assert!(one.confirms(side, &shown));
        assert!(!one.confirms(side.peer(), &shown), "it can be sent back");
        assert!(!other.confirms(side, &shown));
        // Every bit: a comparison of a part would let some pass.
        for bit in 0..CHAIN_BYTES * 8 {
            shown.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!one.confirms(side, &shown));
            shown.0[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(one.confirms(side, &shown));
    }
}

#[test]
fn an_id_has_1_to_255_bytes_that_can_be_shown() {
    let cases = [
        ("a", true),
        ("550e8400-e29b-41d4-a716-446655440000", true),
        ("ä b", true),
        ("", false),
        ("a\n", false),
        ("\u{1b}[2J", false),
        // A control character outside ASCII (C1).
        ("\u{85}", false),
    ];
    for (id, good) in cases {
        assert_eq!(is_id(id), good, "{id:?}");
    }
    assert!(is_id(&"x".repeat(ID_BYTES_MAX)));
    assert!(!is_id(&"x".repeat(ID_BYTES_MAX + 1)));
    // Bytes count, not characters.
    assert!(!is_id(&"ä".repeat(ID_BYTES_MAX / 2 + 1)));
}

#[test]
fn debug_output_shows_no_key() {
    let link = ppk("alpha", Some(&[0xab; 32]));
    assert_eq!(
        format!("{link:?}"),
        "Link { kind: Ppk, id: \"alpha\", present: true, .. }"
    );
    let secret = derive(context(), &[link]);
    let shown = format!("{secret:?} {:?}", secret.confirmation(Side::A));
    assert!(
        shown.ends_with("sources: [\"ppk:alpha\"], .. } Confirmation(..)"),
        "{shown}"
    );
    for bytes in outputs(&secret)
        .iter()
        .map(Vec::as_slice)
        .chain([&secret.last[..]])
    {
        // Four bytes are never there by chance, as a list or in hexadecimal.
        for piece in bytes.chunks_exact(4) {
            let list = format!("{piece:?}");
            assert!(!shown.contains(list.trim_matches(['[', ']'])), "{shown}");
            assert!(!shown.contains(&hex(piece)), "{shown}");
        }
    }
}

/// Parses a sequence of framed fields; `None` if the bytes are not one.
fn fields_of(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (field, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        fields.push(field.to_vec());
        bytes = rest;
    }
    Some(fields)
}

fn any_link() -> impl Strategy<Value = (bool, String, Option<Vec<u8>>)> {
    // Few letters and short keys, so that equal and almost equal pairs are frequent.
    let id = "[a-c]{1,3}";
    let key = proptest::option::of(proptest::collection::vec(0..2u8, 0..4));
    (any::<bool>(), id, key)
}

fn of_any((is_ppk, id, key): &(bool, String, Option<Vec<u8>>)) -> Link {
    let kind = if *is_ppk { Kind::Ppk } else { Kind::Qkd };
    link(kind, id, key.as_deref())
}

proptest! {
    #[test]
    fn framed_fields_are_unambiguous(
        fields in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..6)
    ) {
        let slices: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(fields_of(&framed(&slices)), Some(fields));
    }

    /// HMAC treats a key shorter than a block like the same key padded with zeros.
    #[test]
    fn two_links_are_never_one_hmac_key(one in any_link(), other in any_link()) {
        let padded = |link: &(bool, String, Option<Vec<u8>>)| {
            let mut key = of_any(link).prf_key().to_vec();
            // A block of SHA-384.
            key.resize(128, 0);
            key
        };
        prop_assert_eq!(padded(&one) == padded(&other), one == other);
    }

    #[test]
    fn two_lists_of_ppks_are_never_one_chain(
        one in proptest::collection::vec(any_link(), 0..4),
        other in proptest::collection::vec(any_link(), 0..4),
    ) {
        let ordered = |list: &[(bool, String, Option<Vec<u8>>)]| {
            let mut ppks: Vec<_> = list.iter().map(|(_, id, key)| (true, id.clone(), key.clone())).collect();
            ppks.sort();
            // As the settings require: each ID once.
            ppks.dedup_by(|one, next| one.1 == next.1);
            ppks
        };
        let (one, other) = (ordered(&one), ordered(&other));
        let of = |list: &[_]| derive(context(), &list.iter().map(of_any).collect::<Vec<_>>());
        let (first, second) = (of(&one), of(&other));
        prop_assert_eq!(first.last == second.last, one == other);
        prop_assert_eq!(share_nothing(&first, &second), one != other);
    }
}
