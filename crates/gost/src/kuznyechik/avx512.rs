//! By AVX-512.

use super::{Block, Direction, RoundKeys, avx2};

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) fn crypt(direction: Direction, keys: &RoundKeys, _: &RoundKeys, blocks: &mut [Block]) {
    avx2::crypt(direction, keys, blocks);
}

pub(super) fn mapped(keys: &RoundKeys) -> RoundKeys {
    RoundKeys(keys.0)
}
