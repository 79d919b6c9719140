//! The S-boxes, and their forms for the kernels.

/// Eight substitutions of four bits. They are public: nothing about them is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sbox {
    /// `id-tc26-gost-28147-param-Z`, which is Magma's (RFC 7836 appendix C, RFC 8891 §4.1).
    Tc26Z,
    /// `id-Gost28147-89-TestParamSet` (RFC 4357 §11.2): for tests. RustCrypto's S-boxes by that
    /// name belong to GOST R 34.11-94.
    Test,
    /// `id-Gost28147-89-CryptoPro-A-ParamSet` (RFC 4357 §11.2).
    CryptoProA,
    /// `id-Gost28147-89-CryptoPro-B-ParamSet` (RFC 4357 §11.2).
    CryptoProB,
    /// `id-Gost28147-89-CryptoPro-C-ParamSet` (RFC 4357 §11.2).
    CryptoProC,
    /// `id-Gost28147-89-CryptoPro-D-ParamSet` (RFC 4357 §11.2). RustCrypto's S-boxes by that name
    /// belong to GOST R 34.11-94.
    CryptoProD,
}

impl Sbox {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Tc26Z,
        Self::Test,
        Self::CryptoProA,
        Self::CryptoProB,
        Self::CryptoProC,
        Self::CryptoProD,
    ];

    /// Name in tables and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tc26Z => "tc26-z",
            Self::Test => "test",
            Self::CryptoProA => "cryptopro-a",
            Self::CryptoProB => "cryptopro-b",
            Self::CryptoProC => "cryptopro-c",
            Self::CryptoProD => "cryptopro-d",
        }
    }

    /// The outputs of each of the eight for 0, 1, … 15, the highest digit first; the lowest four
    /// bits of a word go through the first.
    pub(super) const fn boxes(self) -> [u64; 8] {
        match self {
            Self::Tc26Z => [
                0xc462_a5b9_e8d7_03f1,
                0x6823_9a5c_1e47_bd0f,
                0xb358_2fad_e174_c960,
                0xc821_d4f6_70a5_3e9b,
                0x7f5a_816d_093e_b42c,
                0x5df6_92ca_b781_43e0,
                0x8e25_691c_f4b0_da37,
                0x17ed_0583_4fa6_9cb2,
            ],
            Self::Test => [
                0x42f5_9108_e3bc_d7a6,
                0xc9fe_813a_274d_60b5,
                0xd8ec_739a_1524_6f0b,
                0xe9b2_5f71_0dc6_a438,
                0x3e59_680d_ab7c_21f4,
                0x8f6b_19c5_d37a_0e24,
                0x9bc0_3675_48ef_1a2d,
                0xc652_b09d_3e7a_f418,
            ],
            Self::CryptoProA => [
                0x9632_8b17_a4ef_c0d5,
                0x37e9_8af0_526c_b4d1,
                0xe462_b3d8_cf5a_0719,
                0xe7ac_d139_02b4_f856,
                0xb519_8df0_e423_c7a6,
                0x3adc_120b_7594_8fe6,
                0x1d29_7a60_8c45_f3be,
                0xbaf5_0ce8_6239_17d4,
            ],
            Self::CryptoProB => [
                0x84b1_3509_2eac_d67f,
                0x012a_4d5c_973f_b86e,
                0xec0a_92db_758f_3614,
                0x750d_b612_3acf_4e98,
                0x27cf_95ab_140d_68e3,
                0x8326_4deb_c17f_a095,
                0x52ab_91c3_74d0_6f8e,
                0x04be_8371_a296_fd5c,
            ],
            Self::CryptoProC => [
                0x1bc2_9d0f_458e_a763,
                0x017d_b452_8efc_9a63,
                0x8250_49fa_37cd_6e1b,
                0x3601_5da8_b297_efc4,
                0x8db0_4512_93ce_6fa7,
                0xc9b1_8e24_7365_a0fd,
                0xa968_de20_f35b_41c7,
                0x7405_a2fe_c61b_d938,
            ],
            Self::CryptoProD => [
                0xfc2a_6450_79ed_1b83,
                0xb634_cfe2_7d80_5a91,
                0x1cb0_fe65_ad48_9372,
                0x15ec_a70d_62b4_93f8,
                0x0c89_d2ab_7365_4ef1,
                0x80f3_25eb_1a47_c9d6,
                0x306f_1e92_d8c4_ba57,
                0x1a68_fb04_c359_7d2e,
            ],
        }
    }

    pub(super) fn tables(self) -> &'static Tables {
        static TABLES: [Tables; 6] = [
            Tables::new(Sbox::Tc26Z),
            Tables::new(Sbox::Test),
            Tables::new(Sbox::CryptoProA),
            Tables::new(Sbox::CryptoProB),
            Tables::new(Sbox::CryptoProC),
            Tables::new(Sbox::CryptoProD),
        ];
        &TABLES[self as usize]
    }
}

/// The S-boxes in every kernel's form.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "for SIMD"))]
pub(super) struct Tables {
    /// The output of each for n, in the bits from 4 n.
    pub(super) packed: [u64; 8],
    /// For each S-box, as masks: the products of its input bits that sum to each output bit (its
    /// algebraic normal form). Product m has the input bits that are set in m.
    pub(super) products: [[[u64; 4]; 16]; 8],
    /// Look-ups in a word by nibbles, four even S-boxes and then four odd ones, with results in
    /// their position in the byte.
    pub(super) nibbles: [[u8; 16]; 8],
    /// Look-ups in planes of bytes, for each byte of a word: its low nibble, then the parts of its
    /// high nibble that go to the next byte and to the one after. Rotated by 3 bits: a rotation by
    /// 11 is one byte and 3 bits.
    pub(super) planes: [[[u8; 16]; 3]; 4],
}

impl Tables {
    const fn new(sbox: Sbox) -> Self {
        let boxes = sbox.boxes();
        let mut tables = Self {
            packed: [0; 8],
            products: [[[0; 4]; 16]; 8],
            nibbles: [[0; 16]; 8],
            planes: [[[0; 16]; 3]; 4],
        };
        let mut at = 0;
        while at < 8 {
            let mut n = 0;
            while n < 16 {
                let value = (boxes[at] >> (60 - 4 * n)) as u8 & 15;
                tables.packed[at] |= (value as u64) << (4 * n);
                let byte = at / 2;
                if at % 2 == 0 {
                    tables.nibbles[byte][n] = value;
                    tables.planes[byte][0][n] = value << 3;
                } else {
                    tables.nibbles[4 + byte][n] = value << 4;
                    // Rotated, the high nibble has its lowest bit at the top of the next byte, and
                    // three bits in the byte after it.
                    tables.planes[byte][1][n] = value << 7;
                    tables.planes[byte][2][n] = value >> 1;
                }
                n += 1;
            }
            tables.products[at] = products(tables.packed[at]);
            at += 1;
        }
        tables
    }
}

/// The algebraic normal form of an S-box: product m is in an output bit if the outputs at all
/// inputs within m sum to one.
const fn products(packed: u64) -> [[u64; 4]; 16] {
    let mut masks = [[0; 4]; 16];
    let mut m = 0;
    while m < 16 {
        let mut bit = 0;
        while bit < 4 {
            let (mut n, mut sum) = (0, 0);
            while n < 16 {
                if n & m == n {
                    sum ^= packed >> (4 * n + bit) & 1;
                }
                n += 1;
            }
            masks[m][bit] = 0_u64.wrapping_sub(sum);
            bit += 1;
        }
        m += 1;
    }
    masks
}
