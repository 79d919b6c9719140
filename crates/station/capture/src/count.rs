//! Counts the kept frames by protocol and by length.

use crate::dissect::{EspFlow, dissect};
use crate::store::StoredFrame;
use journal::record::{CaptureContents, LengthCount, ProtocolCount};
use std::collections::{BTreeMap, BTreeSet};

/// Upper ends of the buckets: Wireshark's packet lengths, and super-packets beyond.
const BUCKETS: [u32; 12] = [
    79,
    159,
    319,
    639,
    1279,
    2559,
    5119,
    10_239,
    20_479,
    40_959,
    65_535,
    u32::MAX,
];
/// Number of the most frequent lengths to list.
const COMMONEST: usize = 5;

/// Counts frames, and lists the SAs of their ESP packets.
pub(crate) fn count<'k>(
    frames: impl Iterator<Item = &'k StoredFrame>,
    esp_ports: &[u16],
) -> (CaptureContents, BTreeSet<EspFlow>) {
    let mut contents = CaptureContents::default();
    let mut flows = BTreeSet::new();
    // A path sorts before the paths inside it.
    let mut protocols: BTreeMap<Vec<&str>, (u64, u64)> = BTreeMap::new();
    let mut exact: BTreeMap<u32, u64> = BTreeMap::new();
    for kept in frames {
        let bytes = u64::from(kept.whole_bytes);
        if contents.frames == 0 {
            contents.first_unix_ns = kept.at_unix_ns;
        }
        contents.last_unix_ns = kept.at_unix_ns;
        contents.frames += 1;
        contents.bytes += bytes;
        let dissected = dissect(&kept.bytes, esp_ports);
        flows.extend(dissected.esp);
        // Each frame counts for every layer that contains the innermost one, as in Wireshark's
        // hierarchy.
        for end in 1..=dissected.path.len() {
            let path = dissected.path[..end].to_vec();
            let (frames, sum) = protocols.entry(path).or_default();
            *frames += 1;
            *sum += bytes;
        }
        *exact.entry(kept.whole_bytes).or_default() += 1;
    }
    let protocols = protocols.into_iter();
    contents.protocols = protocols
        .map(|(path, (frames, bytes))| ProtocolCount {
            path: path.join(":"),
            frames,
            bytes,
        })
        .collect();
    contents.lengths = buckets(&exact);
    let mut commonest: Vec<_> = exact.into_iter().map(length).collect();
    // The sort is stable: of equally frequent lengths, the shortest comes first.
    commonest.sort_by_key(|count| std::cmp::Reverse(count.frames));
    commonest.truncate(COMMONEST);
    contents.commonest = commonest;
    (contents, flows)
}

fn buckets(exact: &BTreeMap<u32, u64>) -> Vec<LengthCount> {
    let mut from = 0;
    let counts = BUCKETS.into_iter().map(|upto| {
        let frames = exact.range(from..=upto).map(|(_, frames)| frames).sum();
        from = upto.saturating_add(1);
        length((upto, frames))
    });
    counts.filter(|count| count.frames > 0).collect()
}

const fn length((upto_bytes, frames): (u32, u64)) -> LengthCount {
    LengthCount { upto_bytes, frames }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_in_buckets_and_exactly() {
        let frames: Vec<_> = [60, 79, 80, 1514, 1514, 65_226, 1514]
            .into_iter()
            .zip(7..)
            .map(|(whole_bytes, at_unix_ns)| StoredFrame {
                at_unix_ns,
                bytes: Box::new([0; 14]),
                whole_bytes,
                is_outgoing: false,
            })
            .collect();
        let (contents, flows) = count(frames.iter(), &[]);
        let pairs = |counts: &[LengthCount]| -> Vec<_> {
            counts.iter().map(|it| (it.upto_bytes, it.frames)).collect()
        };
        assert_eq!(
            pairs(&contents.lengths),
            [(79, 2), (159, 1), (2559, 3), (65_535, 1)]
        );
        let commonest = pairs(&contents.commonest);
        assert_eq!(
            commonest,
            [(1514, 3), (60, 1), (79, 1), (80, 1), (65_226, 1)]
        );
        assert_eq!((contents.frames, contents.bytes), (7, 69_987));
        assert_eq!((contents.first_unix_ns, contents.last_unix_ns), (7, 13));
        let [eth] = &contents.protocols[..] else {
            panic!("{:?}", contents.protocols);
        };
        assert_eq!((&*eth.path, eth.frames, eth.bytes), ("eth", 7, 69_987));
        assert!(flows.is_empty());
    }
}
