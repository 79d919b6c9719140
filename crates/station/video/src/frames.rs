//! Raw frames, as ffmpeg and VLC write them.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead, BufReader, Read};

const HEADER_BYTES_MAX: u64 = 256;
/// Pixels of the largest picture of ITU-R BT.2020 (7680 × 4320).
const PIXELS_MAX: usize = 7680 * 4320;

/// Raw frames of planar 4:2:0 in the form of `yuv4mpegpipe`, which ffmpeg and VLC write.
pub(crate) struct Frames<R> {
    from: BufReader<R>,
    frame: Vec<u8>,
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(from: R) -> Self {
        Self {
            from: BufReader::new(from),
            frame: Vec::new(),
        }
    }

    /// Returns the next frame; `None` at the end, even within a frame if the player was stopped.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.frame.is_empty() {
            // One header for the whole stream; its size holds for all frames.
            let header = self.line()?;
            if header.is_empty() {
                return Ok(None);
            }
            let bytes = frame_bytes(&header);
            let bytes = bytes.ok_or_else(|| invalid(format!("`{header}` is no size of frames")))?;
            self.frame = vec![0; bytes];
        }
        let line = self.line()?;
        if line.is_empty() {
            return Ok(None);
        }
        if !line.starts_with("FRAME") {
            return Err(invalid(format!("`{line}` is no beginning of a frame")));
        }
        match self.from.read_exact(&mut self.frame) {
            // A player that is killed stops within a frame.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
            Ok(()) => Ok(Some(&self.frame)),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let mut from = (&mut self.from).take(HEADER_BYTES_MAX);
        from.read_until(b'\n', &mut line)?;
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn frame_bytes(header: &str) -> Option<usize> {
    let of = |letter: char| {
        let words = header.split(' ');
        let mut values = words.filter_map(|word| word.strip_prefix(letter)?.parse::<usize>().ok());
        values.next()
    };
    // Checked: the header comes from a player that reads data of the network.
    let pixels = of('W')?.checked_mul(of('H')?)?;
    // 4:2:0 has half as many colour samples as pixels.
    (1..=PIXELS_MAX).contains(&pixels).then(|| pixels / 2 * 3)
}

/// Returns the hash of a frame; all processes of this program version agree on it.
pub(crate) fn hash(frame: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(frame);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_ffmpeg_and_as_vlc_write_them() {
        for header in ["YUV4MPEG2 W4 H2 F25:1 Ip", "I420 W4 H2 F25:1 Ip A1:1"] {
            let mut bytes = format!("{header}\n").into_bytes();
            for fill in [1, 2] {
                bytes.extend_from_slice(b"FRAME\n");
                bytes.extend_from_slice(&[fill; 12]);
            }
            bytes.extend_from_slice(b"FRAME\ncut");
            let mut frames = Frames::new(&bytes[..]);
            assert_eq!(frames.next().unwrap(), Some(&[1; 12][..]));
            assert_eq!(frames.next().unwrap(), Some(&[2; 12][..]));
            assert_eq!(frames.next().unwrap(), None);
        }
        assert_eq!(Frames::new(&b""[..]).next().unwrap(), None);
        for bytes in [
            &b"no size\nFRAME\n"[..],
            b"x W4 H2\nother\n",
            b"x W1000000000 H1000000000\nFRAME\n",
        ] {
            assert!(Frames::new(bytes).next().is_err());
        }
    }

    #[test]
    fn a_picture_larger_than_any_is_no_picture() {
        assert_eq!(
            frame_bytes("YUV4MPEG2 W7680 H4320"),
            Some(7680 * 4320 / 2 * 3)
        );
        assert_eq!(frame_bytes("YUV4MPEG2 W4000000000 H4000000000"), None);
        assert_eq!(frame_bytes("YUV4MPEG2 W0 H4320"), None);
    }
}
