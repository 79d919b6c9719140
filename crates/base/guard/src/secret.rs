//! Files that hold secrets: read into memory that is wiped, and created durably.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Reads a file of up to `bytes_max` bytes into memory that is wiped when dropped and never
/// reallocated.
///
/// # Errors
/// The operating system's errors, and [`ErrorKind::InvalidData`] if the file is longer.
pub fn read_wiped(file: &mut File, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    // A vector that grows leaves copies behind. The one byte more shows that the file is longer.
    let mut text = Zeroizing::new(Vec::with_capacity(bytes_max + 1));
    file.take(bytes_max as u64 + 1).read_to_end(&mut text)?;
    if text.len() > bytes_max {
        let what = format!("it has more than {bytes_max} bytes: is it the right file?");
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(text)
}

/// Creates a file that must not exist yet, with these mode bits, durably. Removes it if writing
/// fails.
///
/// # Errors
/// The operating system's errors.
pub fn create_durable(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    // With `create_new` an existing file, or a link to one, is an error and never written to.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        // The file's content alone is not enough: after a power cut its name may be missing.
        .and_then(|()| sync_folder(path));
    written.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

/// Makes the directory entry of a file durable.
///
/// # Errors
/// The operating system's errors.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}
