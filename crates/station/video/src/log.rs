//! The output of other programs.

use guard::read_from;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes kept: a player prints at most some lines per frame.
const BYTES_MAX: usize = 4 << 20;

/// Reads the beginning of a log, up to a limit; empty if it cannot be read.
pub(crate) fn read(path: &Path) -> String {
    // Cut, not refused: the beginning has the reason of a failure.
    let from = File::open(path).map(|log| log.take(BYTES_MAX as u64));
    let bytes = from.and_then(|from| read_from(from, BYTES_MAX));
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}
