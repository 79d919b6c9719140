//! A slow second parser, and a generator of messages, for tests and fuzz targets.

mod generator;

pub use generator::{message, payloads};

/// The canonical form of a message: reserved fields are cleared. `None` if it violates a rule.
///
/// It shares nothing with the codec but the specification: it cuts bytes into pieces, checks each,
/// and joins them again.
#[must_use]
pub fn canonical(datagram: &[u8]) -> Option<Vec<u8>> {
    let (header, body) = datagram.split_at_checked(28)?;
    let length = u32::from_be_bytes(header[24..28].try_into().ok()?);
    if header[17] / 16 != 2 || length as usize != datagram.len() {
        return None;
    }
    let mut out = header.to_vec();
    out[17] = 0x20;
    out[19] &= 0x28;
    out.extend(chain(header[16], body, true)?);
    Some(out)
}

/// The same for decrypted payloads.
#[must_use]
pub fn canonical_payloads(first: u8, body: &[u8]) -> Option<Vec<u8>> {
    chain(first, body, false)
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |sum, byte| sum * 256 + *byte as usize)
}

fn chain(first: u8, mut rest: &[u8], outer: bool) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut kind = first;
    let mut count = 0;
    while kind != 0 {
        count += 1;
        let length = number(rest.get(2..4)?);
        if length < 4 || length > rest.len() || count > 128 {
            return None;
        }
        let (payload, behind) = rest.split_at(length);
        let sealed = kind == 46 || kind == 53;
        if sealed && (!outer || !behind.is_empty()) {
            return None;
        }
        let known = (33..=48).contains(&kind) || kind == 53;
        let critical = if known { 0 } else { payload[1] & 0x80 };
        out.extend([payload[0], critical, payload[2], payload[3]]);
        out.extend(content(kind, payload[0], &payload[4..])?);
        rest = behind;
        kind = if sealed { 0 } else { payload[0] };
    }
    rest.is_empty().then_some(out)
}

fn content(kind: u8, next: u8, body: &[u8]) -> Option<Vec<u8>> {
    let clear = |from: usize, to: usize| {
        let mut out = body.to_vec();
        out.get_mut(from..to)?.fill(0);
        Some(out)
    };
    match kind {
        33 => proposals(body),
        34 => clear(2, 4).filter(|_| body.len() > 4),
        35 | 36 => {
            let value = body.get(4..)?;
            let fits = match body[0] {
                1 => value.len() == 4,
                5 => value.len() == 16,
                13 => value.is_empty(),
                2 | 3 => !value.is_empty() && value.iter().all(|it| *it >= 32 && *it != 127),
                _ => !value.is_empty(),
            };
            clear(1, 4).filter(|_| fits)
        }
        37 => (body.len() > 1).then(|| body.to_vec()),
        38 => {
            let fits = *body.first()? != 4 || body.len() % 20 == 1;
            fits.then(|| body.to_vec())
        }
        39 => clear(1, 4).filter(|_| body.len() > 4),
        40 => (body.len() >= 16 && body.len() <= 256).then(|| body.to_vec()),
        41 => notification(body),
        42 => {
            let spis = number(body.get(2..4)?);
            let fits = match (body[0], body[1]) {
                (1, 0) => spis == 0 && body.len() == 4,
                (2 | 3, 4) => body.len() == 4 + 4 * spis,
                _ => false,
            };
            fits.then(|| body.to_vec())
        }
        44 | 45 => selectors(body),
        47 => configuration(body),
        53 => {
            let (at, of) = (number(body.get(..2)?), number(body.get(2..4)?));
            let fits = at >= 1 && at <= of && (at == 1 || next == 0);
            fits.then(|| body.to_vec())
        }
        _ => Some(body.to_vec()),
    }
}

fn notification(body: &[u8]) -> Option<Vec<u8>> {
    let kind = number(body.get(2..4)?);
    let data = match (body[0], body[1]) {
        (_, 0) => &body[4..],
        (2 | 3, 4) => body.get(8..)?,
        _ => return None,
    };
    let (low, high) = match kind {
        16390 => (1, 64),
        16401 => (8, 64),
        16388 | 16389 => (20, 20),
        17 => (2, 2),
        16385 | 16403 | 16397 => (4, 4),
        16398 => (16, 16),
        16431 => (2, usize::MAX),
        16446 => (10, usize::MAX),
        16441 | 16437 => (1, usize::MAX),
        _ => (0, usize::MAX),
    };
    let mut out = body.to_vec();
    if body[1] == 0 {
        out[0] = 0;
    }
    (data.len() >= low && data.len() <= high).then_some(out)
}

/// Cuts a list of substructures: the mark, a reserved byte and the length are ahead of each.
fn substructures(mut rest: &[u8], more: u8) -> Option<Vec<(u8, &[u8])>> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let length = number(rest.get(2..4)?);
        if length < 4 || length > rest.len() || (rest[0] != 0 && rest[0] != more) {
            return None;
        }
        found.push((rest[0], &rest[4..length]));
        rest = &rest[length..];
    }
    let marks: Vec<bool> = found.iter().map(|(mark, _)| *mark == more).collect();
    let lasts = marks.iter().filter(|is_more| !**is_more).count();
    let right = lasts == 1 && marks.last() == Some(&false);
    (right || found.is_empty()).then_some(found)
}

fn joined(mark: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 4) as u16;
    let mut out = vec![mark, 0];
    out.extend(length.to_be_bytes());
    out.extend(body);
    out
}

fn proposals(body: &[u8]) -> Option<Vec<u8>> {
    let list = substructures(body, 2)?;
    if list.is_empty() || list.len() > 32 {
        return None;
    }
    let mut out = Vec::new();
    for (at, (mark, proposal)) in list.iter().enumerate() {
        let [number, protocol, spi, count] = *proposal.first_chunk::<4>()?;
        let counted = list.len() == 1 && number > 0 || number as usize == at + 1;
        let sized = match protocol {
            1 => spi == 0 || spi == 8,
            2 | 3 => spi == 4,
            _ => true,
        };
        let (ahead, transforms) = proposal.split_at_checked(4 + spi as usize)?;
        let transforms = substructures(transforms, 3)?;
        if !counted || !sized || count as usize != transforms.len() || count > 128 {
            return None;
        }
        let mut content = ahead.to_vec();
        for (mark, transform) in transforms {
            content.extend(joined(mark, &canonical_transform(transform)?));
        }
        out.extend(joined(*mark, &content));
    }
    Some(out)
}

fn canonical_transform(transform: &[u8]) -> Option<Vec<u8>> {
    let mut out = transform.to_vec();
    *out.get_mut(1)? = 0;
    let mut rest = transform.get(4..)?;
    let mut kinds = Vec::new();
    while !rest.is_empty() {
        let kind = number(rest.get(..2)?);
        let value = number(rest.get(2..4)?);
        let short = kind >= 0x8000;
        let end = if short { 4 } else { 4 + value };
        if kind == 14 || end > rest.len() {
            return None;
        }
        kinds.push(kind % 0x8000);
        rest = &rest[end..];
    }
    let mut distinct = kinds.clone();
    distinct.sort_unstable();
    distinct.dedup();
    (distinct.len() == kinds.len() && kinds.len() <= 8).then_some(out)
}

fn selectors(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = body.to_vec();
    out.get_mut(1..4)?.fill(0);
    let mut rest = body.get(4..)?;
    let mut count = 0;
    while !rest.is_empty() {
        let length = number(rest.get(2..4)?);
        let selector = rest.get(4..length)?;
        let half = match rest[0] {
            7 => 4,
            8 => 16,
            _ => 0,
        };
        if half > 0 {
            let ports = (number(selector.get(..2)?), number(selector.get(2..4)?));
            let addresses = &selector[4..];
            let ordered = addresses.len() == 2 * half && addresses[..half] <= addresses[half..];
            if !ordered || (ports.0 > ports.1 && ports != (65535, 0)) {
                return None;
            }
        }
        rest = &rest[length..];
        count += 1;
    }
    (count > 0 && body[0] as usize == count).then_some(out)
}

fn configuration(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = body.to_vec();
    out.get_mut(1..4)?.fill(0);
    let mut at = 4;
    let mut count = 0;
    while at < body.len() {
        let kind = number(body.get(at..at + 2)?) % 0x8000;
        let size = number(body.get(at + 2..at + 4)?);
        let fits = match kind {
            1..=4 | 6 => size == 0 || size == 4,
            13 => size == 0 || size == 8,
            8 | 15 => size == 0 || size == 17,
            10 | 12 => size == 0 || size == 16,
            14 => size.is_multiple_of(2),
            _ => true,
        };
        out[at] &= 0x7f;
        at += 4 + size;
        count += 1;
        if !fits || count > 128 {
            return None;
        }
    }
    (at == body.len()).then_some(out)
}
