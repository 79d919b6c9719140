//! The log of an IKE daemon, which a station takes keys from.

use arbitrary::{Result, Unstructured};
use traffic::DaemonLog;

/// Lines that a daemon writes while it sets an SA up, without the number of its thread.
const LINES: [&str; 12] = [
    "[IKE] establishing CHILD_SA c0{3} reqid 1",
    "[CHD] CHILD_SA c0{3} state change: CREATED => INSTALLING",
    "[CHD] encryption initiator key => 36 bytes @ 0x7f0ae4000bd0",
    "[CHD] integrity responder key => 32 bytes @ 0x7f0ae4000bd0",
    "[CHD]    0: ED 1F E3 E5 C1 BF 65 F3 2E 6B DA 2B 24 1B B9 B2  ......e..k.+$...",
    "[CHD]   32: B2 30 4E 2B                                      .0N+",
    "[CHD] adding inbound ESP SA",
    "[CHD] registering outbound ESP SA",
    "[CHD] adding outbound ESP SA",
    "[CHD]   SPI 0xe7a0fb1b, src 192.0.2.1 dst 192.0.2.2",
    "[IKE] inbound CHILD_SA c0{3} established with SPIs e7a0fb1b_i bc3c123f_o and TS ::/0 === ::/0",
    "[CHD] CHILD_SA c0{3} state change: INSTALLED => DELETING",
];

/// A key has 128 bytes at most, and keying material two of them.
const KEYMAT_BYTES_MAX: usize = 256;

/// Lines in any order and of any content are read without a panic; an SA comes from no less than
/// one line, and has no more keys than keys can have.
pub(crate) fn body(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let mut log = DaemonLog::default();
    let mut lines = 0;
    while let Ok(line) = line(&mut input) {
        log.read_line(&line);
        lines += 1;
        // An empty input gives the first choice, and never an error.
        if input.is_empty() {
            break;
        }
    }
    let sas: Vec<_> = log.key_bytes().collect();
    assert!(sas.len() <= lines, "{} SAs of {lines} lines", sas.len());
    let longest = sas.iter().flatten().max();
    assert!(
        longest.is_none_or(|bytes| *bytes <= KEYMAT_BYTES_MAX),
        "{sas:?}"
    );
}

fn line(input: &mut Unstructured<'_>) -> Result<String> {
    // A line of another program, or of a later version of the daemon.
    if input.ratio(1, 8)? {
        return input.arbitrary();
    }
    let thread = input.int_in_range(0..=3)?;
    Ok(format!("{thread:02}{}", input.choose(&LINES)?))
}
