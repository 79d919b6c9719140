//! Conversion of ECDSA signatures between DER, which libcrypto uses, and the concatenation of r and
//! s, which tokens and this crate use.

/// Reads `SEQUENCE { r INTEGER, s INTEGER }` into `raw`, each number as long as half of it.
/// `false`: `der` is malformed or a number is too long.
pub(super) fn to_raw(der: &[u8], raw: &mut [u8]) -> bool {
    let Some(content) = element(&mut &*der, 0x30) else {
        return false;
    };
    let mut rest = content;
    raw.fill(0);
    let (r, s) = raw.split_at_mut(raw.len() / 2);
    for half in [r, s] {
        let Some(number) = element(&mut rest, 0x02) else {
            return false;
        };
        let number = number.strip_prefix(&[0]).unwrap_or(number);
        let Some(start) = half.len().checked_sub(number.len()) else {
            return false;
        };
        half[start..].copy_from_slice(number);
    }
    rest.is_empty()
}

/// Writes r and s as DER.
pub(super) fn to_der(raw: &[u8], der: &mut Vec<u8>) {
    der.clear();
    // Numbers have at most 66 bytes (P-521): their lengths take one byte each, that of the sequence
    // one or two.
    let (r, s) = raw.split_at(raw.len() / 2);
    let mut content = [0_u8; 2 * (2 + 1 + 66)];
    let mut length = 0;
    for number in [r, s] {
        let zeros = number
            .iter()
            .take_while(|&&byte| byte == 0)
            .count()
            .min(number.len() - 1);
        let number = &number[zeros..];
        let sign = usize::from(number[0] >= 0x80);
        content[length] = 0x02;
        content[length + 1] = u8::try_from(number.len() + sign).expect("at most 67");
        length += 2 + sign;
        content[length..length + number.len()].copy_from_slice(number);
        length += number.len();
    }
    let short = u8::try_from(length).expect("at most 138");
    der.push(0x30);
    if short >= 0x80 {
        der.push(0x81);
    }
    der.push(short);
    der.extend_from_slice(&content[..length]);
}

/// Returns the content of the next element if it has this tag, and advances behind it.
fn element<'a>(rest: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&[found, first], behind) = rest.split_first_chunk()?;
    let (length, behind) = match first {
        0x81 => behind
            .split_first()
            .map(|(&length, behind)| (length, behind))?,
        0..=0x7f => (first, behind),
        _ => return None,
    };
    let (content, behind) = behind.split_at_checked(usize::from(length))?;
    *rest = behind;
    (found == tag).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn signatures_survive_a_round_trip(mut raw in prop::collection::vec(any::<u8>(), 32..=66), zeros in 0_usize..33) {
            raw.resize(raw.len() / 2 * 2, 0);
            let half = raw.len() / 2;
            raw[..zeros.min(half)].fill(0);
            let mut der = Vec::new();
            to_der(&raw, &mut der);
            let mut back = vec![0xff; raw.len()];
            prop_assert!(to_raw(&der, &mut back));
            prop_assert_eq!(&back, &raw);
            der.pop();
            prop_assert!(!to_raw(&der, &mut back));
        }

        #[test]
        fn any_bytes_are_read_or_refused(der in prop::collection::vec(any::<u8>(), 0..150)) {
            to_raw(&der, &mut [0; 64]);
        }
    }
}
