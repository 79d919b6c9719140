//! Longest prefix match, one byte of the address per step.
//!
//! Prefixes with a length that is not a multiple of 8 are expanded, and a node's covering value is
//! pushed down into its leaves: a lookup reads one word per step, and ends at the first that is not
//! a node. It takes at most four steps for IPv4, and for IPv6 one per byte of the longest prefix on
//! the path, independent of the number of prefixes. A node takes 1 KB; addresses with common first
//! bytes share their nodes.

const NODE: u32 = 1 << 31;
/// The word of an address in no prefix.
const NONE: u32 = 0;
/// Largest value that can be stored.
pub(super) const VALUE_MAX: u32 = NODE - 2;

/// Values by prefix, for addresses of one length.
#[derive(Debug, Clone)]
pub(super) struct Trie {
    /// The root is the first. A word is [`NONE`], a value plus one, or [`NODE`] with a node's
    /// number.
    nodes: Vec<[u32; 256]>,
}

impl Trie {
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![[NONE; 256]],
        }
    }

    /// Inserts the value of a prefix, given as its address and its length in bits. Prefixes must be
    /// inserted in order of length, shorter ones first.
    pub(super) fn insert(&mut self, address: &[u8], length: u8, value: u32) {
        assert!(value <= VALUE_MAX, "values have 31 bits");
        let length = usize::from(length);
        // The last byte that the prefix covers; the bytes before it lead to its node.
        let last = length.saturating_sub(1) / 8;
        let mut node = 0;
        for byte in &address[..last] {
            node = self.child(node, *byte);
        }
        // Only a longer prefix has a child node here, so none is overwritten.
        let free_bits = 8 * (last + 1) - length;
        let first = usize::from(address[last]);
        let words = &mut self.nodes[node][first..first + (1 << free_bits)];
        debug_assert!(words.iter().all(|word| word & NODE == 0), "shorter first");
        // Plus one, because 0 marks an address in no prefix.
        words.fill(value + 1);
    }

    /// Returns the node under a word; a missing one is created, with all its words set to the old
    /// word.
    fn child(&mut self, node: usize, byte: u8) -> usize {
        let word = self.nodes[node][usize::from(byte)];
        if word & NODE != 0 {
            return (word ^ NODE) as usize;
        }
        let child = self.nodes.len();
        // The covering prefix is copied down, so a lookup need not remember it on its way.
        self.nodes.push([word; 256]);
        self.nodes[node][usize::from(byte)] = NODE | child as u32;
        child
    }

    /// Returns the value of the longest prefix that contains the address.
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
