//! Files of unknown length and kind.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The device `/dev/null`: major 1, minor 3 (Linux, `admin-guide/devices.txt`).
const NULL_DEVICE: u64 = 1 << 8 | 3;

/// Opens a regular file for reading. Does not wait for the other end of a FIFO. `/dev/null` counts
/// as an empty file.
///
/// # Errors
/// Errors of the operating system, and [`ErrorKind::InvalidInput`] for anything except a regular
/// file, as it may have no end.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Opening a FIFO waits for a writer, possibly forever, and opening a device may have effects.
    refuse_other_kinds(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    // Another file may have taken its place since.
    refuse_other_kinds(&file.metadata()?)?;
    Ok(file)
}

fn refuse_other_kinds(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() || kind.is_char_device() && metadata.rdev() == NULL_DEVICE {
        return Ok(());
    }
    let kind = if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    let text = format!("it is {kind}, not a file");
    Err(io::Error::new(ErrorKind::InvalidInput, text))
}

/// Reads at most `bytes_max` bytes from a source.
///
/// # Errors
/// Errors of the source, and [`ErrorKind::FileTooLarge`] if it has more.
pub fn read_from(source: impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    read_into(Vec::new(), source, bytes_max)
}

fn read_into(mut bytes: Vec<u8>, source: impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    // One byte more distinguishes a source that is too long from one of exactly this length.
    let one_more = bytes_max as u64 + 1;
    source.take(one_more).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    Ok(bytes)
}

fn too_large(bytes_max: usize) -> io::Error {
    let text = format!("it has more than {bytes_max} bytes");
    io::Error::new(ErrorKind::FileTooLarge, text)
}

/// Reads a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// As for [`open_regular`] and [`read_from`].
pub fn read_bytes(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    // Only to fail early: a file of /proc has the length 0, and a file may grow, so the limit
    // holds while it is read as well.
    if length > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    // Room for one more byte, so that the end is found without a reallocation, which would copy
    // secrets.
    let room = Vec::with_capacity(length as usize + 1);
    read_into(room, file, bytes_max)
}

/// Reads a regular file of at most `bytes_max` bytes of UTF-8.
///
/// # Errors
/// As for [`read_bytes`], and [`ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: usize) -> io::Result<String> {
    let text = String::from_utf8(read_bytes(path, bytes_max)?);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use std::fs;

    #[test]
    fn files_up_to_the_limit_are_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        let error = read_bytes(&path, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        fs::write(&path, b"\xff").unwrap();
        let error = read_text(&path, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn sources_without_an_end_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        for (path, kind) in [
            (fifo.as_path(), "a FIFO"),
            (Path::new("/dev/zero"), "a device"),
            (folder.path(), "a folder"),
        ] {
            let error = read_bytes(path, 10).unwrap_err();
            assert!(error.to_string().contains(kind), "{error}");
        }
        assert!(read_bytes(Path::new("/dev/null"), 10).unwrap().is_empty());
        // A source other than a file ends at the limit too.
        assert!(read_from(io::repeat(0), 1000).is_err());
    }
}
