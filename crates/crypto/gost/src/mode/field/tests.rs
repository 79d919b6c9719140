//! Every kernel against multiplication bit by bit.

use super::Sum;
use crate::Kernel;
use crate::kernel::kernels;
use proptest::prelude::*;

/// Σ factor ⊗ block by definition: one shift and one conditional subtraction per bit.
fn by_definition(block_bytes: usize, factors: &[u8], data: &[u8]) -> Vec<u8> {
    let bits = 8 * block_bytes;
    let (modulus, mask) = match block_bytes {
        8 => (0x1b, u128::from(u64::MAX)),
        _ => (0x87, u128::MAX),
    };
    let number = |bytes: &[u8]| {
        (0..block_bytes).fold(0, |n: u128, i| {
            n << 8 | u128::from(bytes.get(i).copied().unwrap_or(0))
        })
    };
    let mut sum = 0;
    for (factor, block) in factors.chunks(block_bytes).zip(data.chunks(block_bytes)) {
        let (factor, block) = (number(factor), number(block));
        let mut product = 0_u128;
        for i in (0..bits).rev() {
            let carry = product >> (bits - 1) & 1;
            product = product << 1 & mask;
            product ^= carry * modulus;
            product ^= (factor >> i & 1) * block;
        }
        sum ^= product;
    }
    sum.to_be_bytes()[16 - block_bytes..].to_vec()
}

fn by_kernel(kernel: Kernel, block_bytes: usize, parts: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut sum = Sum::new(kernel, block_bytes);
    for (factors, data) in parts {
        sum.accumulate(factors, data);
    }
    let mut block = vec![0; block_bytes];
    sum.finish(&mut block);
    block
}

#[test]
fn multiplies_extreme_values_by_definition() {
    for kernel in kernels() {
        for block_bytes in [8, 16] {
            // Sixteen set bits in every fourth place: a careless integer product would overflow
            // into the next position.
            for byte in [0x00, 0x01, 0x11, 0x80, 0xff] {
                let (factors, data) =
                    (vec![byte; 4 * block_bytes], vec![0xff; 3 * block_bytes + 1]);
                assert_eq!(
                    by_kernel(kernel, block_bytes, &[(&factors, &data)]),
                    by_definition(block_bytes, &factors, &data),
                    "{kernel}, {block_bytes} bytes, {byte:#x}"
                );
            }
        }
    }
}

#[test]
fn the_empty_sum_is_zero() {
    for kernel in kernels() {
        assert_eq!(by_kernel(kernel, 8, &[(&[], &[])]), [0; 8]);
        assert_eq!(by_kernel(kernel, 16, &[]), [0; 16]);
    }
}

proptest! {
    #[test]
    fn sums_equal_the_definition(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        factors in prop::collection::vec(any::<u8>(), 320..=320),
        cut in 0_usize..10,
    ) {
        for kernel in kernels() {
            for block_bytes in [8, 16] {
                let factors = &factors[..bytes.len().next_multiple_of(block_bytes)];
                let cut = (cut * block_bytes).min(bytes.len() / block_bytes * block_bytes);
                let parts = [
                    (&factors[..cut], &bytes[..cut]),
                    (&factors[cut..], &bytes[cut..]),
                ];
                prop_assert_eq!(
                    by_kernel(kernel, block_bytes, &parts),
                    by_definition(block_bytes, factors, &bytes),
                    "{}, {} bytes", kernel, block_bytes
                );
            }
        }
    }
}
