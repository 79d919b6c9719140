//! Writes a store as a pcapng file (draft-ietf-opsawg-pcapng): one section, one interface, frames
//! with time stamps in nanoseconds, and statistics.

use crate::store::StoredFrame;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// `if_tsresol`: time stamps in units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Direction in `epb_flags`.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// The file's description of the interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interface<'a> {
    /// `node/interface`.
    pub(crate) name: &'a str,
    /// The capture filter in words.
    pub(crate) description: &'a str,
    pub(crate) snap_bytes: u32,
    /// Selected frames.
    pub(crate) selected: u64,
    /// Selected frames that the kernel lost.
    pub(crate) dropped: u64,
    /// End of the capture.
    pub(crate) ended_unix_ns: u64,
}

/// Writes the file.
///
/// # Errors
/// The file system's; the file is then removed.
pub(crate) fn write<'k>(
    path: &Path,
    interface: Interface<'_>,
    frames: impl Iterator<Item = &'k StoredFrame>,
) -> io::Result<()> {
    // Replaces the file of an earlier attempt.
    let file = BufWriter::new(File::create(path)?);
    write_to(file, interface, frames).map_err(|error| {
        // Half a file would be mistaken for a whole one.
        let _ = fs::remove_file(path);
        match error {
            PcapError::IoError(error) => error,
            error => io::Error::other(error),
        }
    })
}

fn write_to<'k>(
    output: impl Write,
    interface: Interface<'_>,
    frames: impl Iterator<Item = &'k StoredFrame>,
) -> Result<(), PcapError> {
    let application = concat!("cipherbench ", env!("CARGO_PKG_VERSION"));
    let section = SectionHeaderBlock {
        // Only here does the library write the halves of the statistics' time in the right order.
        endianness: Endianness::Big,
        options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(
            application,
        ))],
        ..SectionHeaderBlock::default()
    };
    let mut writer = PcapNgWriter::with_section_header(output, section)?;
    writer.write_pcapng_block(InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: interface.snap_bytes,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(interface.name)),
            InterfaceDescriptionOption::IfDescription(Cow::Borrowed(interface.description)),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    })?;
    for kept in frames {
        let direction = if kept.is_outgoing { OUTBOUND } else { INBOUND };
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(kept.at_unix_ns),
            original_len: kept.whole_bytes,
            data: Cow::Borrowed(&kept.bytes),
            options: vec![EnhancedPacketOption::Flags(direction)],
        })?;
    }
    // Last, as its counts are of the whole capture.
    writer.write_pcapng_block(InterfaceStatisticsBlock {
        interface_id: 0,
        timestamp: interface.ended_unix_ns,
        options: vec![
            InterfaceStatisticsOption::IsbFilterAccept(interface.selected),
            InterfaceStatisticsOption::IsbOsDrop(interface.dropped),
        ],
    })?;
    writer.into_inner().flush().map_err(PcapError::IoError)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERFACE: Interface<'_> = Interface {
        name: "gw1/w0",
        description: "every frame",
        snap_bytes: 256,
        selected: 3,
        dropped: 1,
        ended_unix_ns: (7 << 32) + 9,
    };

    fn frame() -> StoredFrame {
        StoredFrame {
            at_unix_ns: 1_700_000_000_123_456_789,
            bytes: Box::new([5; 61]),
            whole_bytes: 1514,
            is_outgoing: true,
        }
    }

    #[test]
    fn the_file_has_frames_and_drop_counts_as_the_format_says() {
        let mut file = Vec::new();
        write_to(&mut file, INTERFACE, [frame(), frame()].iter()).unwrap();
        let word = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < file.len() {
            blocks.push((word(at), at));
            let bytes = word(at + 4) as usize;
            assert_eq!(word(at + bytes - 4) as usize, bytes, "both lengths");
            at += bytes;
        }
        let kinds: Vec<_> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 6, 5]);
        let packet = blocks[2].1;
        let time = u64::from(word(packet + 12)) << 32 | u64::from(word(packet + 16));
        assert_eq!(time, 1_700_000_000_123_456_789);
        assert_eq!((word(packet + 20), word(packet + 24)), (61, 1514));
        let statistics = blocks[4].1;
        assert_eq!((word(statistics + 12), word(statistics + 16)), (7, 9));
        // Options isb_filteraccept (6) and isb_osdrop (7) of 8 bytes, then the end of options.
        let options: Vec<_> = (0..7).map(|at| word(statistics + 20 + 4 * at)).collect();
        assert_eq!(options, [0x6_0008, 0, 3, 0x7_0008, 0, 1, 0]);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        // The frame fits into the buffer, so only the final flush writes.
        let full = BufWriter::new(File::options().write(true).open("/dev/full").unwrap());
        let error = write_to(full, INTERFACE, [frame()].iter()).unwrap_err();
        assert!(
            matches!(&error, PcapError::IoError(it) if it.kind() == io::ErrorKind::StorageFull),
            "{error:?}"
        );
    }
}
