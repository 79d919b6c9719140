//! The clock of a network card (PTP hardware clock), which stamps the card's frames.
//!
//! The kernel reads it between two readings of its system clock (`PTP_SYS_OFFSET_EXTENDED` of
//! linux/ptp_clock.h), so a stamp's time by CLOCK_REALTIME is known to within the time between
//! these readings.

use crate::kernel::{check, request_for, socket};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

/// Number of readings, for the tightest to count: any of them may be interrupted.
const READINGS: usize = 5;
/// How much faster than CLOCK_REALTIME a card's clock may be, in parts of 10^6: oscillators are
/// wrong by 100, the kernel corrects by 500, and a program that follows another clock by a little
/// more.
const FASTER_PPM: u64 = 2000;

/// `ETHTOOL_GET_TS_INFO`.
const GET_STAMP_INFO: u32 = 0x41;

/// `struct ethtool_ts_info` of linux/ethtool.h.
#[repr(C)]
#[derive(Debug, Default)]
struct EthtoolStampInfo {
    command: u32,
    stamping: u32,
    clock: i32,
    send_types: u32,
    reserved_send: [u32; 3],
    receive_filters: u32,
    reserved_receive: [u32; 3],
}

/// The clock of a card that stamps every frame.
#[derive(Debug)]
pub struct CardClock {
    device: File,
}

/// A card's clock, read between two readings of CLOCK_REALTIME.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardReading {
    /// CLOCK_REALTIME before.
    pub before_ns: i64,
    /// The card's clock.
    pub card_ns: i64,
    /// CLOCK_REALTIME after.
    pub after_ns: i64,
}

impl CardClock {
    /// Opens the clock of an interface of this network namespace; `None` unless its card stamps all
    /// frames that it receives and, on request, those that it sends. That setting is another
    /// program's (`hwstamp_ctl -i eth2 -t 1 -r 1`), and is not changed here: some drivers take the
    /// link down for it, and a program that follows PTP sets it itself.
    ///
    /// # Errors
    /// When the interface does not exist, or `/dev/ptp…` cannot be opened.
    pub fn of(interface: &str) -> io::Result<Option<Self>> {
        let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let mut request = request_for(interface)?;
        let mut setting = libc::hwtstamp_config {
            flags: 0,
            tx_type: 0,
            rx_filter: 0,
        };
        request.ifr_ifru.ifru_data = ptr::from_mut(&mut setting).cast();
        let number = libc::SIOCGHWTSTAMP as libc::Ioctl;
        // SAFETY: SIOCGHWTSTAMP takes an ifreq that points to this structure; both outlive it.
        let asked = check(unsafe { libc::ioctl(socket.as_raw_fd(), number, &raw mut request) });
        let stamps_all = setting.tx_type == libc::HWTSTAMP_TX_ON as libc::c_int
            && setting.rx_filter == libc::HWTSTAMP_FILTER_ALL as libc::c_int;
        // A driver that stamps nothing does not know the question.
        if asked.is_err() || !stamps_all {
            return Ok(None);
        }
        let mut info = EthtoolStampInfo {
            command: GET_STAMP_INFO,
            ..EthtoolStampInfo::default()
        };
        request.ifr_ifru.ifru_data = ptr::from_mut(&mut info).cast();
        let number = libc::SIOCETHTOOL as libc::Ioctl;
        // SAFETY: SIOCETHTOOL takes an ifreq that points to the structure of its command.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), number, &raw mut request) })?;
        let Ok(clock) = u32::try_from(info.clock) else {
            return Ok(None);
        };
        let device = File::open(format!("/dev/ptp{clock}"))?;
        Ok(Some(Self { device }))
    }

    /// Reads it a few times. Returns the tightest reading.
    ///
    /// # Errors
    /// When the kernel or the driver cannot (Linux before 5.0), or the card is gone.
    pub fn read(&self) -> io::Result<CardReading> {
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut found: libc::ptp_sys_offset_extended = unsafe { std::mem::zeroed() };
        found.n_samples = READINGS as libc::c_uint;
        let number = libc::PTP_SYS_OFFSET_EXTENDED;
        // SAFETY: it takes this structure, which outlives the call and has room for 25 readings.
        check(unsafe { libc::ioctl(self.device.as_raw_fd(), number, &raw mut found) })?;
        let nanoseconds =
            |time: &libc::ptp_clock_time| time.sec * 1_000_000_000 + i64::from(time.nsec);
        let readings = found.ts[..READINGS]
            .iter()
            .map(|[before, card, after]| CardReading {
                before_ns: nanoseconds(before),
                card_ns: nanoseconds(card),
                after_ns: nanoseconds(after),
            });
        let tightest = readings.min_by_key(|reading| reading.after_ns.abs_diff(reading.before_ns));
        tightest.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl CardReading {
    /// The earliest and latest time by CLOCK_REALTIME when the card's clock may have shown this.
    #[must_use]
    pub fn real_ns(&self, card_ns: i64) -> [i64; 2] {
        let since_ns = card_ns.saturating_sub(self.card_ns);
        let drifted = since_ns.unsigned_abs().div_ceil(1_000_000 / FASTER_PPM);
        let drifted_ns = i64::try_from(drifted).unwrap_or(i64::MAX);
        [
            self.before_ns
                .saturating_add(since_ns)
                .saturating_sub(drifted_ns),
            self.after_ns
                .saturating_add(since_ns)
                .saturating_add(drifted_ns),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For any value and speed of the card's clock and any duration of its reading.
        #[test]
        fn the_range_holds_the_true_time(
            read_at_ns in 0_i64..1 << 60,
            shows_ns in 0_i64..1 << 60,
            faster_ppm in -1900_i64..=1900,
            took_ns in 0_i64..50_000,
            after_part in 0.0..=1.0,
            stamped_before_ns in -1_000_000_i64..1_000_000_000,
        ) {
            let after_ns = (took_ns as f64 * after_part) as i64;
            let reading = CardReading {
                before_ns: read_at_ns - (took_ns - after_ns),
                card_ns: shows_ns,
                after_ns: read_at_ns + after_ns,
            };
            let passed_ns = i128::from(stamped_before_ns);
            let shown = passed_ns + passed_ns * i128::from(faster_ppm) / 1_000_000;
            let [earliest, latest] = reading.real_ns(shows_ns - shown as i64);
            let truth_ns = read_at_ns - stamped_before_ns;
            // The division above rounds by less than 1 ns.
            prop_assert!(earliest <= truth_ns + 1 && truth_ns <= latest + 1);
            let width = latest.abs_diff(earliest);
            prop_assert!(width <= took_ns.unsigned_abs() + stamped_before_ns.unsigned_abs() / 200 + 2);
        }
    }

    #[test]
    fn an_interface_without_a_card_has_no_clock() {
        assert!(CardClock::of("lo").unwrap().is_none());
        assert!(CardClock::of("").is_err());
    }
}
