//! Simulated devices that are not what they seem, with what links, filter and counters show of
//! them.
//!
//! Frames pass two gateways: what the first takes in it seals, and the second opens. Each trial has
//! the readings of a lab of stations: the counters of the path's interfaces, both directions of
//! each, the kernel filter on the cipher link, and the device's own counters where it is our
//! encryptor. The filter is taken to see every frame, as its own tests show.

use crate::bench::frame_test;
use crate::device::{Model, Simulated, Tester};
use journal::record::{
    CipherWatch, DutWork, EndTraffic, InterfaceCounters, LinkTraffic, TrialReadings,
};
use plan::{Adapter, Cell};
use std::collections::BTreeMap;
use testbed::Interrupt;
use trial::TrialError;
use trial::frames::{FrameRun, Rig, RigLoad};
use wire::mix::Contents;

const ETHERNET_BYTES: u64 = 14;
const AROUND_IP_BYTES: u64 = 14 + 4;
/// Frames of ARP that cross a link one way in a trial, at most, and their length.
const ARP_FRAMES: f64 = 8.0;
const ARP_BYTES: u64 = 42;
/// Packets that two counters differ by, at most, since they are not read at one instant.
const IN_FLIGHT: f64 = 32.0;
/// Interfaces of the path, from A to B.
const PLACES: usize = 6;

/// What a device does beside, or pretends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lie {
    /// Nothing.
    None,
    /// One frame in this many leaves in clear, at random. It counts them as sealed.
    ClearOneIn(f64),
    /// One flow of this many leaves in clear. It counts them as sealed.
    ClearFlowOf(f64),
    /// One frame in this many takes another way than the cipher link. It counts them as sealed.
    PastTheLinkOneIn(f64),
    /// The same, and it counts only what it seals.
    PastTheLinkUncountedOneIn(f64),
    /// Payload that repeats is shorter on the cipher link by this share, and costs as much less.
    Compresses(f64),
    /// Payload that repeats costs this share less, and is as long as ever on the cipher link.
    Remembers(f64),
    /// It counts this many per cent more than the frames that were sent.
    CountsMore(f64),
    /// It counts this many per cent less than the frames that it carried.
    CountsLess(f64),
    /// It counts every frame that was sent as put out, also those that it lost.
    CountsTheLost,
    /// It counts one packet against the load for this many of the load, as taken in, sealed,
    /// opened and put out. Nobody sent any.
    CountsAgainstOneIn(f64),
    /// None of the device: somebody sends one packet for this many of the load.
    Foreign {
        /// Where the packets are.
        on: Stretch,
        /// Whether they go against the load.
        against: bool,
        one_in: f64,
    },
}

/// A part of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stretch {
    /// From station to station, through the device: packets that it seals.
    Path,
    /// The link of the sending station: broadcasts of ARP, which no gateway passes on.
    SourceLink,
    /// The link between the gateways: broadcasts of ARP.
    CipherLink,
    /// The link of the receiving station: broadcasts of ARP.
    SinkLink,
}

impl Stretch {
    /// Its interfaces, as places of the path.
    const fn places(self) -> std::ops::Range<usize> {
        match self {
            Self::Path => 0..PLACES,
            Self::SourceLink => 0..2,
            Self::CipherLink => 2..4,
            Self::SinkLink => 4..PLACES,
        }
    }
}

/// A simulated device with its evidence.
#[derive(Debug)]
pub(crate) struct Watched {
    rig: Simulated,
    lie: Lie,
    pub(crate) adapter: Adapter,
    pub(crate) ip_bytes: u64,
    /// Counters of the last trial with samples.
    pub(crate) sampled: Passed,
    pub(crate) watch: CipherWatch,
}

/// Frames of a trial at the places of the path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Passed {
    sent: u64,
    pub(crate) crossed: u64,
    pub(crate) clear: u64,
    put_out: u64,
    /// Packets of others at each place, with the load and against it.
    others: [u64; PLACES],
    others_against: [u64; PLACES],
    /// Packets of others that the device seals, with the load.
    sealed_others: u64,
    /// As the device counts them.
    counted_in: u64,
    counted_out: u64,
    counted_against: u64,
}

impl Passed {
    /// The counters of the path's interfaces, from A to B.
    pub(crate) fn interfaces(&self) -> BTreeMap<String, InterfaceCounters> {
        let load = [
            self.sent,
            self.sent,
            self.crossed,
            self.crossed,
            self.put_out,
            self.put_out,
        ];
        let counters = load.into_iter().enumerate().map(|(place, packets)| {
            let (with, against) = (packets + self.others[place], self.others_against[place]);
            // Along the load, even places send to a link and odd ones receive from it.
            let (tx_packets, rx_packets) = match place % 2 {
                0 => (with, against),
                _ => (against, with),
            };
            InterfaceCounters {
                tx_packets,
                rx_packets,
                ..InterfaceCounters::default()
            }
        });
        testbed::path_interfaces()
            .into_iter()
            .zip(counters)
            .collect()
    }

    /// Our encryptor's counters.
    pub(crate) fn dut_counters(&self, ip_bytes: u64) -> BTreeMap<String, u64> {
        let against = self.counted_against;
        let counters = [
            ("gw1/clear_rx_packets", self.counted_in),
            ("gw1/clear_rx_bytes", self.counted_in * ip_bytes),
            ("gw1/cipher_tx_packets", self.counted_in),
            ("gw2/cipher_rx_packets", self.counted_out),
            ("gw2/clear_tx_packets", self.counted_out),
            ("gw2/clear_tx_bytes", self.counted_out * ip_bytes),
            ("gw2/clear_rx_packets", against),
            ("gw2/cipher_tx_packets", against),
            ("gw1/cipher_rx_packets", against),
            ("gw1/clear_tx_packets", against),
        ];
        let counters = counters.into_iter();
        counters
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }

    /// Packets of others that reached the receiving station.
    const fn strays(&self) -> u64 {
        self.others[PLACES - 1]
    }
}

impl Watched {
    pub(crate) fn new(cell: &Cell, (model, tester): (Model, Tester), lie: Lie, seed: u64) -> Self {
        let frames = &frame_test(cell).traffic.frames;
        let is_constant = frames.contents == Contents::Fixed;
        let saved = match lie {
            Lie::Compresses(share) | Lie::Remembers(share) if is_constant => share,
            _ => 0.0,
        };
        let model = Model {
            // A device with less work to do for each frame carries more of them: that is the gain.
            capacity: model.capacity / (1.0 - saved),
            ..model
        };
        // Random payload cannot be compressed, so this device is then an honest one.
        let lie = match lie {
            Lie::Compresses(_) if !is_constant => Lie::None,
            lie => lie,
        };
        let mut rig = Simulated::new(model, tester, seed);
        rig.frame_bytes = frames.mix.mean_bytes() as u64;
        Self {
            ip_bytes: rig.frame_bytes - AROUND_IP_BYTES,
            rig,
            lie,
            adapter: cell.dut.adapter.clone(),
            sampled: Passed::default(),
            watch: CipherWatch::default(),
        }
    }

    /// How many of these frames an event of this probability takes (normal beyond a few dozen).
    fn some(&mut self, of: u64, share: f64) -> u64 {
        let mean = of as f64 * share;
        if mean < 50.0 {
            // Poisson, by the product of uniform numbers (Knuth).
            let (mut product, mut count) = (self.rig.random.uniform(), 0);
            while product > (-mean).exp() {
                product *= self.rig.random.uniform();
                count += 1;
            }
            return count.min(of);
        }
        let deviation = (mean * (1.0 - share)).sqrt();
        let drawn = mean + deviation * self.rig.random.normal();
        (drawn.round().max(0.0) as u64).min(of)
    }

    /// Follows the frames of a trial through the device.
    fn follow(&mut self, run: &FrameRun) -> Passed {
        let trial = &run.trial;
        let arrived = trial.received + trial.receiver_dropped;
        let lost = trial.sent - arrived;
        // Part of what it loses is lost before it is sealed.
        let taken_in = trial.sent - (lost as f64 * self.rig.random.uniform()) as u64;
        let (mut crossed, mut clear) = (taken_in, 0);
        let (mut counted_in, mut counted_out) = (taken_in, arrived);
        let mut passed = Passed::default();
        // Honest traffic that every check must allow.
        self.neighbours(&mut passed);
        match self.lie {
            Lie::ClearOneIn(one_in) => clear = self.some(taken_in, 1.0 / one_in),
            Lie::ClearFlowOf(flows) => clear = (taken_in as f64 / flows) as u64,
            Lie::PastTheLinkOneIn(one_in) => crossed -= self.some(taken_in, 1.0 / one_in),
            Lie::PastTheLinkUncountedOneIn(one_in) => {
                let past = self.some(taken_in, 1.0 / one_in);
                crossed -= past;
                counted_in -= past;
                counted_out = counted_out.saturating_sub(past);
            }
            Lie::CountsMore(percent) => {
                counted_in = (trial.sent as f64 * (1.0 + percent / 100.0)) as u64;
                counted_out = counted_in;
            }
            Lie::CountsLess(percent) => {
                counted_in = (taken_in as f64 * (1.0 - percent / 100.0)) as u64;
                counted_out = (arrived as f64 * (1.0 - percent / 100.0)) as u64;
            }
            Lie::CountsTheLost => (counted_in, counted_out) = (trial.sent, trial.sent),
            Lie::CountsAgainstOneIn(one_in) => {
                passed.counted_against = self.some(trial.sent, 1.0 / one_in);
            }
            Lie::Foreign {
                on,
                against,
                one_in,
            } => {
                let packets = self.some(trial.sent, 1.0 / one_in);
                let others = if against {
                    &mut passed.others_against
                } else {
                    &mut passed.others
                };
                on.places().for_each(|place| others[place] += packets);
                match (on, against) {
                    (Stretch::Path, true) => passed.counted_against = packets,
                    (Stretch::Path, false) => {
                        passed.sealed_others = packets;
                        counted_in += packets;
                        counted_out += packets;
                    }
                    // ARP ends on its link, so the device neither seals nor counts it.
                    _ => {}
                }
            }
            Lie::None | Lie::Compresses(_) | Lie::Remembers(_) => {}
        }
        Passed {
            sent: trial.sent,
            crossed,
            clear,
            put_out: arrived,
            counted_in,
            counted_out,
            ..passed
        }
    }

    /// A few frames of ARP on each link, either way.
    fn neighbours(&mut self, passed: &mut Passed) {
        for link in [Stretch::SourceLink, Stretch::CipherLink, Stretch::SinkLink] {
            for others in [&mut passed.others, &mut passed.others_against] {
                let frames = (ARP_FRAMES * self.rig.random.uniform()) as u64;
                link.places().for_each(|place| others[place] += frames);
            }
        }
    }

    fn readings(&mut self, run: &FrameRun, passed: Passed) -> TrialReadings {
        let profile = self.adapter.profile();
        let sealed_bytes = profile.cipher_packet_bytes(self.ip_bytes as usize) as f64;
        let shorter = match self.lie {
            Lie::Compresses(share) => 1.0 - share,
            _ => 1.0,
        };
        let sealed_bytes = ETHERNET_BYTES + (sealed_bytes * shorter) as u64;
        let clear_bytes = ETHERNET_BYTES + self.ip_bytes;
        let others = passed.others[Stretch::CipherLink.places().start];
        // Packets of others on the cipher link are either sealed by the device or ARP.
        let arp = others - passed.sealed_others;
        let sealed = passed.crossed - passed.clear + passed.sealed_others;
        let is_ours = self.adapter.encryptor().is_some();
        let dut_packets = if is_ours {
            passed.dut_counters(self.ip_bytes)
        } else {
            BTreeMap::new()
        };
        let links = passed.interfaces().into_iter().map(|(end, counters)| {
            let packets = EndTraffic {
                received: counters.rx_packets,
                sent: counters.tx_packets,
            };
            (end, packets)
        });
        let watch = CipherWatch {
            foreign_frames: passed.clear,
            // The watch looks for the marker in the first frames only.
            marker_frames: passed.clear.min(64),
            ..CipherWatch::default()
        };
        self.watch.foreign_frames += watch.foreign_frames;
        self.watch.marker_frames += watch.marker_frames;
        TrialReadings {
            wall_ns: run.took_ns,
            cipher: Some(LinkTraffic {
                packets: passed.crossed + others,
                bytes: sealed * sealed_bytes + passed.clear * clear_bytes + arp * ARP_BYTES,
            }),
            watch: Some(watch),
            dut_packets,
            links: links.collect(),
            dut: is_ours.then(|| DutWork {
                lost_between_packets: None,
                taken_in_bytes: Some(passed.counted_in * self.ip_bytes),
                put_out_bytes: Some(passed.counted_out * self.ip_bytes),
                unaccounted_packets: (IN_FLIGHT * self.rig.random.uniform()) as u64,
            }),
            ..TrialReadings::default()
        }
    }
}

impl Rig for Watched {
    fn run(&mut self, load: &RigLoad, interrupt: &Interrupt) -> Result<FrameRun, TrialError> {
        let mut run = self.rig.run(load, interrupt)?;
        let passed = self.follow(&run);
        run.strays.foreign = passed.strays();
        run.trial.readings = Some(Box::new(self.readings(&run, passed)));
        if load.sampled {
            self.sampled = passed;
        }
        Ok(run)
    }

    fn line_rate(&self) -> Option<u64> {
        None
    }
}
