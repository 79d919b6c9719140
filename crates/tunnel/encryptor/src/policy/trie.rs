//! Longest prefix match, a byte of the address a step.
//!
//! Prefixes whose length is not a multiple of 8 are expanded, and what covers a node is pushed down into its
//! leaves: a lookup reads one word a step, and ends at the first that is no node. So it takes four steps at most for
//! IPv4, as many as bytes are in the longest prefix on the way for IPv6, and how many prefixes there are does not
//! matter. A node takes 1 KB; addresses that have their first bytes in common share the nodes of those.

const NODE: u32 = 1 << 31;
/// What an address has that lies in no prefix.
const NONE: u32 = 0;
/// Largest value that can be kept.
pub(super) const VALUE_MAX: u32 = NODE - 2;

/// Values by prefix, for addresses of one length.
#[derive(Debug, Clone)]
pub(super) struct Trie {
    /// The root is the first. A word is [`NONE`], a value plus one, or [`NODE`] with a node's number.
    nodes: Vec<[u32; 256]>,
}

impl Trie {
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![[NONE; 256]],
        }
    }

    /// Notes the value of a prefix, given as its address and its length in bits. A longer prefix must come after all
    /// that are shorter.
    pub(super) fn insert(&mut self, address: &[u8], length: u8, value: u32) {
        assert!(value <= VALUE_MAX, "values have 31 bits");
        let length = usize::from(length);
        // The last byte that the prefix says anything of; the bytes before it lead there.
        let last = length.saturating_sub(1) / 8;
        let mut node = 0;
        for byte in &address[..last] {
            node = self.child(node, *byte);
        }
        // Nodes hang only where a longer prefix leads, so none is overwritten.
        let free_bits = 8 * (last + 1) - length;
        let first = usize::from(address[last]);
        let words = &mut self.nodes[node][first..first + (1 << free_bits)];
        debug_assert!(words.iter().all(|word| word & NODE == 0), "shorter first");
        words.fill(value + 1);
    }

    /// The node under a word, made if there is none: then all its words are what that one was.
    fn child(&mut self, node: usize, byte: u8) -> usize {
        let word = self.nodes[node][usize::from(byte)];
        if word & NODE != 0 {
            return (word ^ NODE) as usize;
        }
        let child = self.nodes.len();
        self.nodes.push([word; 256]);
        self.nodes[node][usize::from(byte)] = NODE | child as u32;
        child
    }

    /// The value of the longest prefix that the address lies in.
    #[inline]
    pub(super) fn lookup(&self, address: &[u8]) -> Option<u32> {
        let mut node = 0;
        for byte in address {
            let word = self.nodes[node][usize::from(*byte)];
            if word & NODE == 0 {
                return word.checked_sub(1);
            }
            node = (word ^ NODE) as usize;
        }
        // No prefix is longer than the address, so the last byte leads to no node.
        None
    }
}
