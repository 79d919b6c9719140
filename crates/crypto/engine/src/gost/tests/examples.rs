//! The examples of RFC 9227, appendix A.
//!
//! They have no extended sequence numbers, which our engines always use: their packets lack four
//! bytes of additional data, and no engine opens them. So they test everything else: the tree, the
//! nonce, MGM with every kernel, and RustCrypto's packets, with which engines are compared with
//! extended sequence numbers.

use super::*;
use crate::gost::mgm::leaf_of;
use crate::gost::nonce::Nonce;
use crate::gost::tree::Tree;

/// Root key, salt and packet with its plaintext; then the key of its leaf, and text and ICV as
/// sent.
struct Example {
    suite: Suites,
    root: &'static str,
    salt: &'static str,
    /// SPI, sequence number and IV.
    prefix: &'static str,
    text: &'static str,
    key: &'static str,
    /// `None` if the text is sent in clear.
    ciphertext: Option<&'static str>,
    icv: &'static str,
}

const KUZNYECHIK: Example = Example {
    suite: Suites::KuznyechikMgm,
    root: "b6180c145c512dbd69d9cea92cac1b5ce1bcfa73792d61af0b440d84b522cc38",
    salt: "7b67e6f244f97f0678952e45",
    prefix: "5146536b00000001 0000000000000000",
    text: "4500003c233500007f01eecc0a6f0ac50a6f0a1d0800f35b0200580061626364
           65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
    key: "2ff1c90ede786e061e17b374d782af7bd880bd527c66a2badc3e569aab271da4",
    ciphertext: Some(
        "189d1288b718f9eabe554b239bee6596c6d4eafd316496ef901cac316005aa07
         6297b224bf6d2be35fd6f67e7b9deb3185ffe9179ca9bf0bdbafc23eae4da56f",
    ),
    icv: "50b070a15a2bd9738689f8ed",
};

const MAGMA: Example = Example {
    suite: Suites::MagmaMgm,
    root: "5b50bf3378870238f3ca740fd124ba6c2283ef589be6f46a894aa35d5f06b203",
    salt: "cf366312",
    prefix: "c8c2b28d00000001 0000000000000000",
    text: "4500003c242d00007f01edd40a6f0ac50a6f0a1d0800de5b02006d0061626364
           65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
    key: "256521e270b74a164dfc26e6bf0cca765e9d41027d4b7b19762b1cc901dcde7f",
    ciphertext: Some(
        "fa0840332c4f3fc9644d8c2c4a917e0cd86f8e61040387646bb9dfbd91503f4a
         f5d2426949d35a229e1e0efc99acee9e3243e23ba4d11e845c91a7191552cce8",
    ),
    icv: "5f4afa8b02940f5c",
};

const KUZNYECHIK_MAC: Example = Example {
    suite: Suites::KuznyechikMgmMac,
    root: "98bd34ce3be19a3465e487c0064883f488cc239263dc3204919b643fe757b2be",
    salt: "6c51cbac93c45bea9962791d",
    prefix: "3dac926a00000001 0000000000000000",
    text: "4500003c0cf100007f0105110a6f0ac50a6f0a1d0800485c0200030061626364
           65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
    key: "98f10301810a041cdadde1bd85a08f218bacb57e0035e222c831e3e4f0a20c8f",
    ciphertext: None,
    icv: "cac58ce5e88b4bf32d6cf04d",
};

const MAGMA_MAC: Example = Example {
    suite: Suites::MagmaMgmMac,
    root: "d065b530fa20b824c7570c1d862ae3392c1c076dfada6975744a07a8857dbd30",
    salt: "88798f29",
    prefix: "3e40699c00000001 0000000000000000",
    text: "4500003c0e0800007f0103fa0a6f0ac50a6f0a1d0800365c0200150061626364
           65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
    key: "4c614599a0a067f19487240ae100e1b7eaf23edaf87e387350861c683ba40446",
    ciphertext: None,
    icv: "4dd4258a253595df",
};

const EXAMPLES: [Example; 8] = [
    KUZNYECHIK,
    Example {
        prefix: "5146536b00000010 0000010001000000",
        text: "4500003c234800007f01eeb90a6f0ac50a6f0a1d0800e45b0200670061626364
               65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
        key: "9abac65778180e6f2af61fb8d571623666c2f5130d54e2116c7d530e6e7d48bc",
        ciphertext: Some(
            "780a2c626232157bfe017632f32db4d0a4fa612f66c2bf79d5e2149bac1dfc4b
             154b69034dc21def20906d596281127cff7256abf00ba122bb5e6c71a4d49a4d",
        ),
        icv: "c22f8740838e3dface91ccb8",
        ..KUZNYECHIK
    },
    MAGMA,
    Example {
        prefix: "c8c2b28d00000010 0000010001000000",
        text: "4500003c244000007f01edc10a6f0ac50a6f0a1d0800cf5b02007c0061626364
               65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
        key: "20e046d409839b23f066a50a7a065b4a39244f0e29ef1e6f2e5d2e1355f5da08",
        ciphertext: Some(
            "7a714841a534b758936a8eab269140a825a7f35db9e4371fe76c999c9b88db72
             1dc759f656b5b3eab6b14d6bd77a071d4b9378bd08976c33ed9a0191bffea1dd",
        ),
        icv: "dd5d509afdb80998",
        ..MAGMA
    },
    KUZNYECHIK_MAC,
    Example {
        prefix: "3dac926a00000006 0000000001000000",
        text: "4500003c0cfb00007f0105070a6f0ac50a6f0a1d0800435c0200080061626364
               65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
        key: "02c541877cc623f3f135919a7513b6f8a8a18cb26399862f50814f5291016784",
        icv: "babc67ec72a8c31a89b40e91",
        ..KUZNYECHIK_MAC
    },
    MAGMA_MAC,
    Example {
        prefix: "3e40699c00000006 0000000001000000",
        text: "4500003c0e1300007f0103ef0a6f0ac50a6f0a1d0800315c02001a0061626364
               65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
        key: "b4f3f90dc487fab8c4afd0eb4549f2f0e43632b67919372e1e9609eaf0b8e228",
        icv: "8484a92330a0b196",
        ..MAGMA_MAC
    },
];

fn seals<C: BlockCipher>(example: &Example) {
    let [root, salt, prefix, text, key, icv] = [
        example.root,
        example.salt,
        example.prefix,
        example.text,
        example.key,
        example.icv,
    ]
    .map(hex);
    let ciphertext = example.ciphertext.map_or_else(|| text.clone(), hex);
    let tree = Tree::new(&root[..].try_into().unwrap());
    let (found, _) = tree.leaf(leaf_of(&prefix));
    assert_eq!(found[..], key);
    let by_rustcrypto = slow(
        example.suite,
        &[root, salt.clone()].concat(),
        &prefix,
        None,
        &text,
    );
    assert_eq!(by_rustcrypto, [&ciphertext[..], &icv].concat());

    let nonce = Nonce::new(&salt).of_packet(&prefix);
    let (aad, plain) = match example.ciphertext {
        Some(_) => (prefix[..ESP_HEADER_BYTES].to_vec(), text),
        None => ([&prefix[..], &text].concat(), Vec::new()),
    };
    for kernel in Kernel::all() {
        let mut mgm = ::gost::mode::Mgm::new(C::new(&found, kernel));
        let (mut sealed, mut tag) = (plain.clone(), vec![0; icv.len()]);
        mgm.seal(nonce.as_ref(), &aad, &mut sealed, &mut tag);
        assert_eq!(tag, icv, "{kernel}");
        assert!(sealed.is_empty() || sealed == ciphertext, "{kernel}");
        assert!(
            mgm.open(nonce.as_ref(), &aad, &mut sealed, &tag),
            "{kernel}"
        );
        assert_eq!(sealed, plain, "{kernel}");
    }
}

#[test]
fn the_examples_of_rfc_9227_are_reproduced() {
    for example in &EXAMPLES {
        match example.suite {
            Suites::KuznyechikMgm | Suites::KuznyechikMgmMac => seals::<Kuznyechik>(example),
            _ => seals::<Magma>(example),
        }
    }
}

/// A peer without extended sequence numbers would have sealed it.
#[test]
fn no_engine_opens_a_packet_without_an_extended_sequence_number() {
    for example in &EXAMPLES {
        let ciphertext = example.ciphertext.unwrap_or(example.text);
        let sealed = [hex(example.prefix), hex(ciphertext), hex(example.icv)].concat();
        let keymat = [hex(example.root), hex(example.salt)].concat();
        for engine in engines() {
            let mut transform = engine.transform(
                Suite::Gost(example.suite),
                &keymat,
                SequenceNumbers::Extended,
            );
            let (mut buffer, places) = batch(std::slice::from_ref(&sealed), &[0]);
            let mut authentic = [true];
            transform
                .open(&mut buffer, &places, &mut authentic)
                .unwrap();
            assert_eq!(authentic, [false], "{}", engine.name);
        }
    }
}
