//! Engines `gost-avx512`, `gost-avx2` and `gost-portable`: our own Magma and Kuznyechik, one engine
//! for each kernel of the crate `gost`. They process whole batches, since a packet has few blocks
//! compared with the width of a kernel.

mod bare;
mod integrity;
mod mgm;
mod nonce;
mod packets;
#[cfg(test)]
mod tests;
mod tree;

use crate::engine::Engine;
use crate::{Aead, SequenceNumbers, Transform};
use ::gost::kuznyechik::Kuznyechik;
use ::gost::magma::Magma;
use ::gost::{BlockCipher, KEY_BYTES, Kernel};
use bare::{CbcOmac, InCtr, InEcb};
use mgm::InMgm;
use wire::{Gost as Suites, Suite};

/// The engine of one kernel.
pub(crate) struct Gost {
    name: &'static str,
    kernel: fn() -> Option<Kernel>,
    /// Its requirements, as text.
    needs: &'static str,
}

pub(crate) static AVX512: Gost = Gost {
    name: "gost-avx512",
    kernel: Kernel::avx512,
    needs: "AVX-512 with VBMI, GFNI and VPCLMULQDQ",
};

pub(crate) static AVX2: Gost = Gost {
    name: "gost-avx2",
    kernel: Kernel::avx2,
    needs: "AVX2 and PCLMULQDQ",
};

pub(crate) static PORTABLE: Gost = Gost {
    name: "gost-portable",
    kernel: || Some(Kernel::PORTABLE),
    needs: "nothing",
};

impl Engine for Gost {
    fn name(&self) -> &'static str {
        self.name
    }

    fn probe(&self) -> Result<String, String> {
        match (self.kernel)() {
            Some(kernel) => Ok(format!("gost {} ({kernel})", env!("CARGO_PKG_VERSION"))),
            None => Err(format!("it requires {}, which this CPU lacks", self.needs)),
        }
    }

    fn aead(&self, suite: Suite, _key: &[u8]) -> Box<dyn Aead> {
        unreachable!("{suite} is not an AEAD with a single key")
    }

    fn transform(
        &self,
        suite: Suite,
        keymat: &[u8],
        numbers: SequenceNumbers,
    ) -> Box<dyn Transform> {
        // `Selection` makes no others.
        assert!(numbers.are_extended(), "{suite} has extended numbers");
        let Suite::Gost(suite) = suite else {
            unreachable!("{suite} is not served")
        };
        let kernel = (self.kernel)().expect("`probe` has succeeded");
        // Behind it is the salt of MGM, a second key for OMAC, or nothing.
        let (key, rest) = keymat
            .split_first_chunk()
            .expect("keying material begins with a key");
        match suite {
            Suites::KuznyechikMgm | Suites::KuznyechikMgmMac => {
                Box::new(InMgm::<Kuznyechik>::new(suite, key, rest, kernel))
            }
            Suites::MagmaMgm | Suites::MagmaMgmMac => {
                Box::new(InMgm::<Magma>::new(suite, key, rest, kernel))
            }
            Suites::MagmaCbcOmac => Box::new(CbcOmac::new(magma(key, kernel), magma(rest, kernel))),
            Suites::MagmaCtr => Box::new(InCtr::new(magma(key, kernel))),
            Suites::MagmaEcb => Box::new(InEcb::new(magma(key, kernel))),
        }
    }
}

/// Makes Magma from the key at the end of the keying material.
fn magma(key: &[u8], kernel: Kernel) -> Magma {
    let key: &[u8; KEY_BYTES] = key.try_into().expect("a key ends the keying material");
    Magma::new(key, kernel)
}
