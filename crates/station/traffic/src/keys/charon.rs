//! The SAs in the log of a strongSwan daemon that writes keys: `filelog { … chd = 4, ike = 1 }`.
//!
//! ```text
//! 14[IKE] establishing CHILD_SA c0{3} reqid 1
//! 10[CHD] CHILD_SA c0{3} state change: CREATED => INSTALLING
//! 10[CHD] encryption initiator key => 36 bytes @ 0x7f0ae4000bd0
//! 10[CHD]    0: ED 1F E3 E5 C1 BF 65 F3 2E 6B DA 2B 24 1B B9 B2  ......e..k.+$...
//! …
//! 10[CHD] adding inbound ESP SA
//! 10[CHD]   SPI 0xe7a0fb1b, src 192.0.2.1 dst 192.0.2.2
//! 10[CHD] registering outbound ESP SA
//! 10[CHD]   SPI 0xbc3c123f, src 192.0.2.2 dst 192.0.2.1
//! 10[IKE] inbound CHILD_SA c0{3} established with SPIs … and TS 198.18.0.0/16 === 198.19.0.0/16
//! 10[CHD] adding outbound ESP SA
//! 10[CHD]   SPI 0xbc3c123f, src 192.0.2.2 dst 192.0.2.1
//! ```
//!
//! With SAs in the kernel, strongSwan logs "adding" in place of "registering" and no later "adding"
//! line; `outbound CHILD_SA c0{3} established …` then shows that the SA is used.
//!
//! Each line begins with its thread's number: lines of one thread belong together, and lines of
//! several threads mix. Only the side that began an exchange logs that it establishes the SA: that
//! line identifies the initiator's keys.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use zeroize::Zeroizing;

/// Longest key of a suite, in bytes: more is no key.
const KEY_BYTES_MAX: usize = 128;
/// Bytes of a key in one line.
const LINE_BYTES: usize = 16;
/// Most SAs that are kept, newest last: far more than a daemon has at one time.
const SAS_MAX: usize = 1 << 14;

/// A pair of SAs. Deliberately not `Debug`: it has their keys.
pub(crate) struct ChildSa {
    name: String,
    number: u32,
    /// SPI of packets that arrive.
    pub(crate) inbound: u32,
    /// SPI of packets to send.
    pub(crate) outbound: u32,
    /// Keying material of both, as the suite has it: cipher key, then salt or HMAC key.
    pub(crate) inbound_keymat: Zeroizing<Vec<u8>>,
    pub(crate) outbound_keymat: Zeroizing<Vec<u8>>,
    local: Vec<Network>,
    remote: Vec<Network>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// The peer may not be able to open packets yet.
    Registered,
    Sends,
    /// It is being deleted; the peer still opens late packets.
    Closing,
}

impl ChildSa {
    /// Whether it is for packets between these addresses.
    fn covers(&self, source: IpAddr, target: IpAddr) -> bool {
        let holds = |networks: &[Network], address| networks.iter().any(|it| it.holds(address));
        holds(&self.local, source) && holds(&self.remote, target)
    }
}

/// The SAs found in a daemon's log so far.
#[derive(Default)]
pub struct Log {
    sas: Vec<ChildSa>,
    /// SAs from exchanges that this side began.
    begun: BTreeSet<(String, u32)>,
    threads: BTreeMap<u32, Thread>,
}

/// The unfinished entries in the lines of one thread.
#[derive(Default)]
struct Thread {
    draft: Option<Draft>,
    /// The key to which the next bytes belong.
    key: Option<Key>,
    /// The SA to which the next SPI belongs.
    adding: Option<Adding>,
}

/// An SA without an end.
#[derive(Default)]
struct Draft {
    name: String,
    number: u32,
    /// Each with the number of bytes that its first line announces.
    keys: BTreeMap<Key, (usize, Zeroizing<Vec<u8>>)>,
    inbound: Option<u32>,
    outbound: Option<u32>,
    sends: bool,
}

/// Ordered by sender, then purpose: the order of keying material.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    initiator: bool,
    integrity: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Adding {
    Inbound,
    /// Its keys are known, and not used yet.
    Registered,
    Outbound,
}

impl Log {
    /// The SA that packets between these addresses are to be sealed with now. The daemon deletes an
    /// SA a moment before it names the next one.
    pub(crate) fn sealing(&self, source: IpAddr, target: IpAddr) -> Option<&ChildSa> {
        let newest = |state| {
            let mut sas = self.sas.iter().rev();
            sas.find(|sa| sa.state == state && sa.covers(source, target))
        };
        newest(State::Sends).or_else(|| newest(State::Closing))
    }

    /// Whether an SA with that outbound SPI is in use.
    pub(crate) fn has_outbound(&self, spi: u32) -> bool {
        self.sas.iter().any(|sa| sa.outbound == spi)
    }

    /// The SA of packets that arrive with that SPI.
    pub(crate) fn opening(&self, spi: u32) -> Option<&ChildSa> {
        // From the newest: a daemon may use an SPI again after an SA is gone.
        self.sas.iter().rev().find(|sa| sa.inbound == spi)
    }

    /// Lengths of the keying material of each SA, inbound and outbound, newest last.
    pub fn key_bytes(&self) -> impl Iterator<Item = [usize; 2]> {
        let bytes = |sa: &ChildSa| [sa.inbound_keymat.len(), sa.outbound_keymat.len()];
        self.sas.iter().map(bytes)
    }

    /// Reads one line; an unknown line changes nothing.
    pub fn read_line(&mut self, line: &str) {
        let Some((thread, group, text)) = split(line) else {
            return;
        };
        match group {
            "CHD" => self.read_child(thread, text),
            "IKE" => self.read_ike(thread, text),
            _ => {}
        }
    }

    fn read_child(&mut self, id: u32, text: &str) {
        if let Some((name, number, change)) = state_change(text) {
            return self.changed(id, name, number, change);
        }
        let thread = self.threads.entry(id).or_default();
        if let Some((key, announced)) = key_header(text) {
            thread.key = Some(key);
            if let Some(draft) = &mut thread.draft {
                let bytes = Zeroizing::new(Vec::with_capacity(KEY_BYTES_MAX));
                draft.keys.insert(key, (announced, bytes));
            }
            return;
        }
        if let Some(bytes) = dumped(text) {
            return thread.take_bytes(&bytes);
        }
        // Any other line ends a dump.
        thread.key = None;
        let adding = match text {
            "adding inbound ESP SA" => Some(Adding::Inbound),
            "registering outbound ESP SA" => Some(Adding::Registered),
            "adding outbound ESP SA" => Some(Adding::Outbound),
            _ => None,
        };
        if adding.is_some() {
            thread.adding = adding;
        } else if let Some(spi) = spi(text) {
            self.take_spi(id, spi);
        }
    }

    fn read_ike(&mut self, thread: u32, text: &str) {
        if let Some(rest) = text.strip_prefix("establishing CHILD_SA ") {
            self.begun
                .extend(named(rest).map(|(name, number, _)| (name.to_owned(), number)));
            return;
        }
        let Some((before, rest)) = text.split_once("CHILD_SA ") else {
            return;
        };
        let Some((name, number, rest)) = named(rest) else {
            return;
        };
        if !rest.starts_with(" established with SPIs ") {
            return;
        }
        match before {
            "" => self.finish(thread, (name, number), rest, false),
            "inbound " => self.finish(thread, (name, number), rest, true),
            // The peer can open packets. If this side began the exchange, that was known before.
            "outbound " => {
                self.set_state(State::Sends, |sa| sa.name == name && sa.number == number);
            }
            _ => {}
        }
    }

    fn changed(&mut self, thread: u32, name: &str, number: u32, change: &str) {
        if change == "CREATED => INSTALLING" {
            let draft = Draft {
                name: name.to_owned(),
                number,
                ..Draft::default()
            };
            self.threads.entry(thread).or_default().draft = Some(draft);
            return;
        }
        let is_it = |sa: &ChildSa| sa.name == name && sa.number == number;
        // Only the new state counts: charon may skip states between.
        match change.rsplit(' ').next() {
            Some("DELETING" | "DELETED") => self.set_state(State::Closing, is_it),
            Some("DESTROYING") => self.sas.retain(|sa| !is_it(sa)),
            _ => {}
        }
    }

    /// States follow one another in their order only.
    fn set_state(&mut self, state: State, is_it: impl Fn(&ChildSa) -> bool) {
        let sas = self.sas.iter_mut().filter(|sa| is_it(sa));
        // Lines of several threads mix, so a late one must not undo a later state.
        sas.for_each(|sa| sa.state = sa.state.max(state));
    }

    fn take_spi(&mut self, thread: u32, spi: u32) {
        let thread = self.threads.entry(thread).or_default();
        match (thread.adding.take(), &mut thread.draft) {
            (Some(Adding::Inbound), Some(draft)) => draft.inbound = Some(spi),
            (Some(Adding::Registered), Some(draft)) => draft.outbound = Some(spi),
            (Some(Adding::Outbound), Some(draft)) => {
                draft.outbound = Some(spi);
                draft.sends = true;
            }
            (Some(Adding::Outbound), None) => {
                self.set_state(State::Sends, |sa| sa.outbound == spi);
            }
            _ => {}
        }
    }

    fn finish(&mut self, thread: u32, (name, number): (&str, u32), rest: &str, renews: bool) {
        let thread = self.threads.entry(thread).or_default();
        let is_it = |draft: &mut Draft| draft.name == name && draft.number == number;
        let Some(mut draft) = thread.draft.take_if(is_it) else {
            return;
        };
        // Only the initiator logs the line before, which assigns the keys to the sides.
        let begun = self.begun.remove(&(draft.name.clone(), number));
        // A daemon with SAs in the kernel adds the outbound one immediately, even if the peer began
        // the renewal and cannot open its packets yet.
        let sends = draft.sends && (begun || !renews);
        let is_whole = (draft.keys.values()).all(|(announced, key)| key.len() == *announced);
        let (outbound_keymat, inbound_keymat) = (draft.keymat(begun), draft.keymat(!begun));
        // Both sides have keys of the same algorithms.
        let are_alike = outbound_keymat.len() == inbound_keymat.len();
        let (Some(inbound), Some(outbound), true) =
            (draft.inbound, draft.outbound, is_whole && are_alike)
        else {
            return;
        };
        let (local, remote) = selectors(rest);
        if self.sas.len() == SAS_MAX {
            // The oldest, which has been replaced long ago.
            self.sas.remove(0);
        }
        self.sas.push(ChildSa {
            inbound,
            outbound,
            outbound_keymat,
            inbound_keymat,
            local,
            remote,
            state: if sends {
                State::Sends
            } else {
                State::Registered
            },
            name: draft.name,
            number,
        });
    }
}

impl Thread {
    /// Takes the next bytes of a key, up to the number that its first line announced.
    fn take_bytes(&mut self, bytes: &[u8]) {
        let (Some(key), Some(draft)) = (self.key, &mut self.draft) else {
            return;
        };
        if let Some((announced, taken)) = draft.keys.get_mut(&key) {
            let left = announced.saturating_sub(taken.len());
            taken.extend(bytes.iter().take(left));
        }
    }
}

impl Draft {
    /// The sending keys of the exchange's initiator, or of its responder.
    fn keymat(&mut self, initiator: bool) -> Zeroizing<Vec<u8>> {
        let mut keymat = Zeroizing::new(Vec::with_capacity(2 * KEY_BYTES_MAX));
        for integrity in [false, true] {
            let key = self.keys.remove(&Key {
                initiator,
                integrity,
            });
            keymat.extend(key.iter().flat_map(|(_, key)| key.iter()));
        }
        keymat
    }
}

/// Thread, group and text of a line: `10[CHD] text`.
fn split(line: &str) -> Option<(u32, &str, &str)> {
    let (thread, rest) = line.split_once('[')?;
    let (group, text) = rest.split_once("] ")?;
    Some((thread.parse().ok()?, group, text))
}

/// Name and number at the start of a text, and the rest: `c0{3} established`.
fn named(text: &str) -> Option<(&str, u32, &str)> {
    let (name, rest) = text.split_once('{')?;
    let (number, rest) = rest.split_once('}')?;
    Some((name, number.parse().ok()?, rest))
}

fn state_change(text: &str) -> Option<(&str, u32, &str)> {
    let (name, number, rest) = named(text.strip_prefix("CHILD_SA ")?)?;
    Some((name, number, rest.strip_prefix(" state change: ")?))
}

/// `encryption initiator key => 36 bytes @ 0x7f0ae4000bd0`.
fn key_header(text: &str) -> Option<(Key, usize)> {
    let (what, rest) = text.split_once(" key => ")?;
    let (purpose, side) = what.split_once(' ')?;
    let integrity = match purpose {
        "encryption" => false,
        "integrity" => true,
        _ => return None,
    };
    let initiator = match side {
        "initiator" => true,
        "responder" => false,
        _ => return None,
    };
    let (bytes, _) = rest.split_once(" bytes")?;
    let bytes: usize = bytes.parse().ok()?;
    let key = Key {
        initiator,
        integrity,
    };
    // The buffer has that capacity, and must not grow: it would leave keys behind.
    (1..=KEY_BYTES_MAX).contains(&bytes).then_some((key, bytes))
}

/// The bytes of a line of a dump: offset, up to 16 bytes, the same as text.
fn dumped(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (offset, rest) = text.split_once(": ")?;
    offset.trim_start().parse::<usize>().ok()?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(LINE_BYTES));
    // Two digits and a space each; then the column of text begins.
    for pair in rest.as_bytes().chunks(3).take(LINE_BYTES) {
        let [high, low, ..] = *pair else { break };
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let (Some(high), Some(low)) = (digit(high), digit(low)) else {
            break;
        };
        bytes.push((16 * high + low) as u8);
    }
    (!bytes.is_empty()).then_some(bytes)
}

/// `  SPI 0xe7a0fb1b, src 192.0.2.1 dst 192.0.2.2`.
fn spi(text: &str) -> Option<u32> {
    // The addresses behind it are the gateways'.
    let (spi, _) = text.trim_start().strip_prefix("SPI 0x")?.split_once(',')?;
    u32::from_str_radix(spi, 16).ok()
}

/// The networks behind ` and TS `: this side's, then the peer's.
fn selectors(text: &str) -> (Vec<Network>, Vec<Network>) {
    let Some((_, both)) = text.split_once(" and TS ") else {
        return Default::default();
    };
    let (local, remote) = both.split_once(" === ").unwrap_or((both, ""));
    // Selectors with a protocol or port do not parse, and hold no test traffic.
    let networks = |text: &str| text.split(' ').filter_map(Network::parse).collect();
    (networks(local), networks(remote))
}

/// A network of all protocols and ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let (address, bits) = (address.parse().ok()?, bits.parse().ok()?);
        (bits <= width(address)).then_some(Self { address, bits })
    }

    fn holds(&self, address: IpAddr) -> bool {
        let unlike = number(self.address) ^ number(address);
        let rest = width(address) - self.bits.min(width(address));
        self.address.is_ipv4() == address.is_ipv4() && unlike.checked_shr(rest).unwrap_or(0) == 0
    }
}

const fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => u32::BITS,
        IpAddr::V6(_) => u128::BITS,
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => address.into(),
    }
}

#[cfg(test)]
mod tests;
