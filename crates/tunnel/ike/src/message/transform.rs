//! Transforms: the algorithms of a proposal.

use super::registry::registry;

registry! {
    /// The type of a transform.
    TransformType(u8);
    ENCRYPTION = 1, "RFC 7296 section 3.3.2", "encryption";
    PRF = 2, "RFC 7296 section 3.3.2", "pseudo-random function";
    INTEGRITY = 3, "RFC 7296 section 3.3.2", "integrity";
    KEY_EXCHANGE = 4, "RFC 7296 section 3.3.2", "key exchange";
    SEQUENCE_NUMBERS = 5, "RFC 7296 section 3.3.2", "size of sequence numbers";
    ADDITIONAL_KE_1 = 6, "RFC 9370 section 2.2.1", "first additional key exchange";
    ADDITIONAL_KE_2 = 7, "RFC 9370 section 2.2.1", "second additional key exchange";
    ADDITIONAL_KE_3 = 8, "RFC 9370 section 2.2.1", "third additional key exchange";
    ADDITIONAL_KE_4 = 9, "RFC 9370 section 2.2.1", "fourth additional key exchange";
    ADDITIONAL_KE_5 = 10, "RFC 9370 section 2.2.1", "fifth additional key exchange";
    ADDITIONAL_KE_6 = 11, "RFC 9370 section 2.2.1", "sixth additional key exchange";
    ADDITIONAL_KE_7 = 12, "RFC 9370 section 2.2.1", "seventh additional key exchange";
    KEY_WRAP = 13, "RFC 9838", "key wrapping";
}

registry! {
    /// An encryption algorithm; an AEAD needs no integrity algorithm.
    Encryption(u16);
    DES = 2, "RFC 2405", "DES";
    TRIPLE_DES = 3, "RFC 2451", "3DES";
    NULL = 11, "RFC 2410", "none";
    AES_CBC = 12, "RFC 3602", "AES-CBC";
    AES_CTR = 13, "RFC 5930", "AES-CTR";
    AES_CCM_8 = 14, "RFC 5282", "AES-CCM, 8 bytes of ICV";
    AES_CCM_12 = 15, "RFC 5282", "AES-CCM, 12 bytes of ICV";
    AES_CCM_16 = 16, "RFC 5282", "AES-CCM, 16 bytes of ICV";
    AES_GCM_8 = 18, "RFC 5282", "AES-GCM, 8 bytes of ICV";
    AES_GCM_12 = 19, "RFC 5282", "AES-GCM, 12 bytes of ICV";
    AES_GCM_16 = 20, "RFC 5282", "AES-GCM, 16 bytes of ICV";
    NULL_AES_GMAC = 21, "RFC 4543", "integrity alone, by AES-GMAC";
    CAMELLIA_CBC = 23, "RFC 5529", "Camellia-CBC";
    CHACHA20_POLY1305 = 28, "RFC 7634", "ChaCha20-Poly1305";
    AES_CCM_8_IIV = 29, "RFC 8750", "AES-CCM with implicit IV";
    AES_GCM_16_IIV = 30, "RFC 8750", "AES-GCM with implicit IV";
    CHACHA20_POLY1305_IIV = 31, "RFC 8750", "ChaCha20-Poly1305 with implicit IV";
    KUZNYECHIK_MGM_KTREE = 32, "RFC 9227", "Kuznyechik-MGM";
    MAGMA_MGM_KTREE = 33, "RFC 9227", "Magma-MGM";
    KUZNYECHIK_MGM_MAC_KTREE = 34, "RFC 9227", "integrity alone, by Kuznyechik-MGM";
    MAGMA_MGM_MAC_KTREE = 35, "RFC 9227", "integrity alone, by Magma-MGM";
}

registry! {
    /// A pseudo-random function.
    PrfId(u16);
    HMAC_MD5 = 1, "RFC 2104", "HMAC-MD5";
    HMAC_SHA1 = 2, "RFC 2104", "HMAC-SHA-1";
    AES128_XCBC = 4, "RFC 4434", "AES-XCBC";
    HMAC_SHA2_256 = 5, "RFC 4868", "HMAC-SHA-256";
    HMAC_SHA2_384 = 6, "RFC 4868", "HMAC-SHA-384";
    HMAC_SHA2_512 = 7, "RFC 4868", "HMAC-SHA-512";
    AES128_CMAC = 8, "RFC 4615", "AES-CMAC";
    HMAC_STREEBOG_512 = 9, "RFC 9385", "HMAC of Streebog";
}

registry! {
    /// An integrity algorithm.
    IntegrityId(u16);
    NONE = 0, "RFC 7296 section 3.3.2", "none";
    HMAC_MD5_96 = 1, "RFC 2403", "HMAC-MD5, 12 bytes";
    HMAC_SHA1_96 = 2, "RFC 2404", "HMAC-SHA-1, 12 bytes";
    AES_XCBC_96 = 5, "RFC 3566", "AES-XCBC, 12 bytes";
    AES_CMAC_96 = 8, "RFC 4494", "AES-CMAC, 12 bytes";
    AES_128_GMAC = 9, "RFC 4543", "AES-128-GMAC";
    AES_192_GMAC = 10, "RFC 4543", "AES-192-GMAC";
    AES_256_GMAC = 11, "RFC 4543", "AES-256-GMAC";
    HMAC_SHA2_256_128 = 12, "RFC 4868", "HMAC-SHA-256, 16 bytes";
    HMAC_SHA2_384_192 = 13, "RFC 4868", "HMAC-SHA-384, 24 bytes";
    HMAC_SHA2_512_256 = 14, "RFC 4868", "HMAC-SHA-512, 32 bytes";
}

registry! {
    /// A method of key exchange.
    KeMethod(u16);
    NONE = 0, "RFC 7296 section 3.3.2", "none";
    MODP_768 = 1, "RFC 7296 appendix B.1", "finite field, 768 bits";
    MODP_1024 = 2, "RFC 7296 appendix B.2", "finite field, 1024 bits";
    MODP_1536 = 5, "RFC 3526", "finite field, 1536 bits";
    MODP_2048 = 14, "RFC 3526", "finite field, 2048 bits";
    MODP_3072 = 15, "RFC 3526", "finite field, 3072 bits";
    MODP_4096 = 16, "RFC 3526", "finite field, 4096 bits";
    MODP_6144 = 17, "RFC 3526", "finite field, 6144 bits";
    MODP_8192 = 18, "RFC 3526", "finite field, 8192 bits";
    ECP_256 = 19, "RFC 5903", "P-256";
    ECP_384 = 20, "RFC 5903", "P-384";
    ECP_521 = 21, "RFC 5903", "P-521";
    MODP_1024_160 = 22, "RFC 5114", "finite field, 1024 bits, subgroup of 160";
    MODP_2048_224 = 23, "RFC 5114", "finite field, 2048 bits, subgroup of 224";
    MODP_2048_256 = 24, "RFC 5114", "finite field, 2048 bits, subgroup of 256";
    ECP_192 = 25, "RFC 5114", "P-192";
    ECP_224 = 26, "RFC 5114", "P-224";
    BRAINPOOL_224 = 27, "RFC 6954", "brainpoolP224r1";
    BRAINPOOL_256 = 28, "RFC 6954", "brainpoolP256r1";
    BRAINPOOL_384 = 29, "RFC 6954", "brainpoolP384r1";
    BRAINPOOL_512 = 30, "RFC 6954", "brainpoolP512r1";
    CURVE25519 = 31, "RFC 8031", "X25519";
    CURVE448 = 32, "RFC 8031", "X448";
    GOST3410_256 = 33, "RFC 9385", "GOST R 34.10-2012, 256 bits";
    GOST3410_512 = 34, "RFC 9385", "GOST R 34.10-2012, 512 bits";
    ML_KEM_512 = 35, "draft-ietf-ipsecme-ikev2-mlkem", "ML-KEM-512";
    ML_KEM_768 = 36, "draft-ietf-ipsecme-ikev2-mlkem", "ML-KEM-768";
    ML_KEM_1024 = 37, "draft-ietf-ipsecme-ikev2-mlkem", "ML-KEM-1024";
}

registry! {
    /// The size of sequence numbers.
    SequenceNumbers(u16);
    BITS_32 = 0, "RFC 7296 section 3.3.2", "32 bits";
    BITS_64 = 1, "RFC 7296 section 3.3.2", "64 bits, extended sequence numbers";
}

/// The attribute with the length of a key, in bits.
pub const KEY_LENGTH: u16 = 14;

/// One algorithm of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transform {
    /// The type.
    pub kind: TransformType,
    /// The algorithm, a number of the type's registry.
    pub id: u16,
    /// The attributes, of distinct types.
    pub attributes: Vec<TransformAttribute>,
}

/// An attribute of a transform (RFC 7296 section 3.3.5).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TransformAttribute {
    /// The type, below 32768.
    pub kind: u16,
    /// The value.
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AttributeValue {
    /// Two bytes.
    Short(u16),
    /// A value with a length.
    Long(Vec<u8>),
}

impl Transform {
    /// A transform without attributes.
    #[must_use]
    pub const fn new(kind: TransformType, id: u16) -> Self {
        Self {
            kind,
            id,
            attributes: Vec::new(),
        }
    }

    /// A transform with a key length in bits.
    #[must_use]
    pub fn with_key_bits(kind: TransformType, id: u16, bits: u16) -> Self {
        Self {
            kind,
            id,
            attributes: vec![TransformAttribute {
                kind: KEY_LENGTH,
                value: AttributeValue::Short(bits),
            }],
        }
    }

    /// The key length in bits.
    #[must_use]
    pub fn key_bits(&self) -> Option<u16> {
        self.attributes.iter().find_map(|it| match it.value {
            AttributeValue::Short(bits) if it.kind == KEY_LENGTH => Some(bits),
            _ => None,
        })
    }

    /// Whether all attributes are known. A transform with an unknown attribute must not be chosen
    /// (RFC 7296 section 3.3.6).
    #[must_use]
    pub fn is_understood(&self) -> bool {
        self.attributes.iter().all(|it| it.kind == KEY_LENGTH)
    }
}
