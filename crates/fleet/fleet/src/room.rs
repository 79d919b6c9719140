//! Disk space.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns the free bytes on the disk of a file or folder.
pub(crate) fn free(path: &Path) -> io::Result<u64> {
    let disk = nix::sys::statvfs::statvfs(path)?;
    // Available, not free: the rest is reserved for root.
    Ok(disk.blocks_available() * disk.fragment_size())
}

/// Returns the bytes that a folder takes on its disk; unreadable entries count as nothing.
pub(crate) fn used(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => used(&entry.path()),
            // `stat` counts units of 512 bytes, independent of the disk's block size.
            Ok(meta) => meta.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

/// Formats a number of bytes, for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
