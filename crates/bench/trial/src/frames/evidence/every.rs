//! Checks over the readings of every frame trial: traffic on the cipher link, frames seen by its
//! kernel filter, device counters, and full queues. A check that fails names the trials.

use super::disturbed::{link_was_cut, was_exposed};
use super::{CONTROL_FRAMES, FrameObserved, FrameReadings, figures, load};
use crate::evidence::bounds::gateway_bytes;
use crate::evidence::failure::{count, nothing_seen, size};
use crate::evidence::gateway::IN_FLIGHT_PACKETS;
use crate::evidence::{ETHERNET_AND_FCS_BYTES, check, then_repeat, then_repeat_or};
use journal::record::{
    Check, CipherWatch, Cpu, Explanation, FrameTrial, LinkTraffic, MachineTime, TrialReadings,
};
use plan::{Adapter, Direction, LinkForm, PortKind, Role};
use units::human;

/// Ethernet header. Virtual links do not count the FCS.
const ETHERNET_BYTES: u64 = 14;
/// Longest frame of control traffic.
const CONTROL_FRAME_BYTES: u64 = 1518;
/// Ethernet and IPv4 headers that each fragment adds.
const FRAGMENT_HEADER_BYTES: u64 = 14 + 20;
/// Padding may depend on the length: this many consecutive lengths contain every amount of it.
const PAD_TO_BYTES_MAX: usize = 16;
/// Trials named by a check that fails.
const NAMED_MAX: usize = 3;

/// A trial with its number, counted from 1, and its readings.
pub(super) type Read<'a> = (usize, &'a FrameTrial, &'a TrialReadings);

/// Makes every check that applies.
pub(super) fn checks(observed: &FrameObserved<'_>, seen: &FrameReadings<'_>) -> Vec<Option<Check>> {
    let is_seen = seen.path.cipher.is_some();
    let counts_work = observed.result.trials.iter().any(|trial| {
        let readings = trial.readings.as_ref();
        readings.is_some_and(|readings| readings.dut.is_some())
    });
    vec![
        is_seen
            .then(|| cipher_link_amount(observed, seen))
            .flatten(),
        is_seen.then(|| trials_watched(observed, seen)).flatten(),
        counts_work.then(|| trials_sealed(observed, seen)).flatten(),
        losses_attributed(observed),
        machine_in_trials(observed),
    ]
}

pub(super) fn read<'a>(observed: &FrameObserved<'a>) -> impl Iterator<Item = Read<'a>> {
    let trials = (1..).zip(&observed.result.trials);
    trials.filter_map(|(number, trial)| Some((number, trial, trial.readings.as_deref()?)))
}

/// Number and load of a trial.
pub(super) fn name((number, trial, _): Read<'_>) -> String {
    match trial.load {
        0 => format!("trial {number} (unpaced)"),
        load => format!("trial {number} ({load} frames/s)"),
    }
}

/// Number and load of a trial, for people.
pub(super) fn place((number, trial, _): Read<'_>) -> String {
    format!("frame trial {number} ({})", load(trial))
}

/// Describes the trials that fail a check, the first ones by name.
pub(super) fn failed(failures: &[String]) -> String {
    let named = failures.iter().take(NAMED_MAX);
    let mut text: String = named.map(|failure| format!("; {failure}")).collect();
    if failures.len() > NAMED_MAX {
        text += &format!("; and {} trials more", failures.len() - NAMED_MAX);
    }
    text
}

/// The number of trials covered in words, and an explanation if not all were.
pub(super) fn coverage(
    observed: &FrameObserved<'_>,
    covered: &[Read<'_>],
) -> (Option<Explanation>, String) {
    let trials = &observed.result.trials;
    let sent = trials.iter().map(|trial| trial.sent).sum();
    let words = format!(
        "{} of {} trials, {} of {sent} frames",
        covered.len(),
        trials.len(),
        covered.iter().map(|(_, trial, _)| trial.sent).sum::<u64>()
    );
    let missing = trials.len() - covered.len();
    let failure = (missing > 0).then(|| {
        Explanation::new(
            format!(
                "in {} the cipher link was not read",
                count(missing as u64, trials.len() as u64, "frame trial")
            ),
            "the link was down or its interface was replaced when the trial began or ended",
            then_repeat("look for what takes it down, and stop it"),
        )
    });
    let failure = failure.or_else(|| nothing_seen(sent, "frame was sent"));
    (failure, words)
}

/// Checks that in every trial the cipher link carried at least the bytes of the frames received,
/// and at most the bytes of the frames sent.
fn cipher_link_amount(observed: &FrameObserved<'_>, seen: &FrameReadings<'_>) -> Option<Check> {
    let mut covered = Vec::new();
    let mut first = None;
    let mut failures = Vec::new();
    for read in read(observed) {
        let Some(carried) = read.2.cipher else {
            continue;
        };
        covered.push(read);
        let (least, most) = bounds(observed, seen, read);
        if !(least..=most).contains(&carried.bytes) {
            let excess = carried.bytes > most;
            first.get_or_insert_with(|| amount_differs(read, excess, carried.bytes, (least, most)));
            failures.push(format!(
                "{}: the link carried {} B in {} packets, of {least} to {most} B expected for {} frames \
                 received and {} sent",
                name(read),
                carried.bytes,
                carried.packets,
                read.1.received,
                read.1.sent
            ));
        }
    }
    let (uncovered, words) = coverage(observed, &covered);
    let sum = covered
        .iter()
        .filter_map(|(_, _, readings)| readings.cipher);
    let sum = sum.fold(LinkTraffic::default(), |sum, more| LinkTraffic {
        packets: sum.packets + more.packets,
        bytes: sum.bytes + more.bytes,
    });
    let detail = format!(
        "by the counters of the cipher link: {words}, {} packets and {} B{}",
        sum.packets,
        sum.bytes,
        failed(&failures)
    );
    let empty = || nothing_seen(sum.packets, "packet crossed the cipher link");
    let failure = first.or(uncovered).or_else(empty);
    check("cipher-link-amount", failure, detail)
}

/// Explains bytes on the cipher link that do not match the frames.
fn amount_differs(
    read: Read<'_>,
    excess: bool,
    found: u64,
    (least, most): (u64, u64),
) -> Explanation {
    let place = place(read);
    if excess {
        return Explanation::new(
            format!(
                "in {place} the gateways exchanged {} more than the frames explain",
                size(found - most, most, human::data)
            ),
            "something else sends or duplicates packets there",
            then_repeat("stop other programs that use the lab's links"),
        );
    }
    Explanation::new(
        format!(
            "in {place} the gateways exchanged {} less than the frames need",
            size(least.saturating_sub(found), least, human::data)
        ),
        "part of the frames took another way than the tunnel",
        then_repeat("look at the lab's routes for a way past the gateways, and remove it"),
    )
}

/// The least and the most bytes that the cipher link carried in a trial.
fn bounds(
    observed: &FrameObserved<'_>,
    seen: &FrameReadings<'_>,
    (number, trial, readings): Read<'_>,
) -> (u64, u64) {
    let adapter = &seen.path.cell.dut.adapter;
    let profile = adapter.profile();
    let received = ip_bytes(trial.received_bytes, trial.received);
    let is_tunnel = profile.role == Role::Tunnel;
    // The lengths are known, and so is the ESP padding: the least padded length counts.
    let added = packets(observed).map(|bytes| profile.added_bytes_least(Some(bytes)));
    let added = added.min().unwrap_or(0);
    let per_packet = match (profile.aggregates, seen.path.links.offloads) {
        // Of packets that share an ESP packet only the packets are sure.
        (true, _) => 0,
        // A train of sealed packets shares one set of outer headers.
        (false, true) if is_tunnel => added as u64,
        (false, true) => 0,
        (false, false) => {
            let added = added + profile.outer_bytes;
            ethernet_bytes_counted(observed) + if is_tunnel { added as u64 } else { 0 }
        }
    };
    let least = received.saturating_add(trial.received.saturating_mul(per_packet));
    let hostile = hostile_sent(observed, number);
    let cipher_mtu = u64::from(seen.path.links.cipher_mtu);
    let longest = longest_packet(observed, adapter);
    let fragments = longest.div_ceil(cipher_mtu.saturating_sub(20).max(1));
    let around = added_most(observed, adapter) + ETHERNET_BYTES + fragments * FRAGMENT_HEADER_BYTES;
    let (sent, sent_bytes) = sent_most(trial);
    let most = sent_bytes
        .saturating_add(sent.saturating_mul(around))
        .saturating_add(hostile.saturating_mul(longest + ETHERNET_BYTES))
        .saturating_add(CONTROL_FRAMES * CONTROL_FRAME_BYTES)
        .saturating_add(gateway_bytes(adapter, readings.wall_ns));
    (least, most)
}

/// The bytes of a packet's Ethernet header in the link's counters. If the receiver of a virtual
/// link has an XDP program, both ends count packets after the header was removed (`veth_xdp_rcv`).
fn ethernet_bytes_counted(observed: &FrameObserved<'_>) -> u64 {
    let ends_on_the_link = observed.test.traffic.direction == Direction::Encrypt;
    if ends_on_the_link && observed.result.receiver.kind == Some(PortKind::Xdp) {
        0
    } else {
        ETHERNET_BYTES
    }
}

/// IP bytes of frames.
const fn ip_bytes(bytes: u64, frames: u64) -> u64 {
    bytes.saturating_sub(frames * ETHERNET_AND_FCS_BYTES)
}

/// Packets that may have left the sender in a trial, and their IP bytes: packets that the sender
/// counts as dropped may still have left.
pub(super) fn sent_most(trial: &FrameTrial) -> (u64, u64) {
    let mean = trial.sent_bytes.div_ceil(trial.sent.max(1));
    let bytes = ip_bytes(trial.sent_bytes, trial.sent);
    (
        trial.sent.saturating_add(trial.sender_dropped),
        bytes.saturating_add(trial.sender_dropped.saturating_mul(mean)),
    )
}

/// Hostile packets that were sent in a trial.
pub(super) fn hostile_sent(observed: &FrameObserved<'_>, number: usize) -> u64 {
    let hostile = observed.result.disturbances().iter();
    let hostile = hostile.filter(|it| it.trial + 1 == number);
    hostile.filter_map(|it| it.attack).map(|it| it.sent).sum()
}

/// IP bytes of the mix's frames.
fn packets(observed: &FrameObserved<'_>) -> impl Iterator<Item = usize> {
    let shares = &observed.test.traffic.frames.mix.shares;
    let bytes = shares.iter().map(|share| usize::from(share.frame_bytes));
    bytes.map(|bytes| bytes.saturating_sub(ETHERNET_AND_FCS_BYTES as usize))
}

/// The most that a DUT's encapsulation adds to a packet of the mix.
fn added_most(observed: &FrameObserved<'_>, adapter: &Adapter) -> u64 {
    let profile = adapter.profile();
    let lengths = packets(observed).flat_map(|bytes| bytes..bytes + PAD_TO_BYTES_MAX);
    let added = lengths.map(|bytes| profile.cipher_packet_bytes(bytes).saturating_sub(bytes));
    added.max().unwrap_or(0) as u64
}

/// The longest packet of the mix on the cipher link.
pub(super) fn longest_packet(observed: &FrameObserved<'_>, adapter: &Adapter) -> u64 {
    let profile = adapter.profile();
    let lengths = packets(observed).map(|bytes| profile.cipher_packet_bytes(bytes));
    lengths.max().unwrap_or(0) as u64
}

/// In every trial the kernel filter saw every frame of the cipher link: none of another form than
/// the device's, and of a device without one at least the frames received.
fn trials_watched(observed: &FrameObserved<'_>, seen: &FrameReadings<'_>) -> Option<Check> {
    let form = seen.path.cell.dut.adapter.form();
    let offloads = seen.path.links.offloads;
    let mut covered = Vec::new();
    let mut first = None;
    let mut failures = Vec::new();
    for read in read(observed) {
        let Some(watch) = &read.2.watch else {
            continue;
        };
        covered.push(read);
        let foreign = watch.foreign_frames;
        if watch.interrupted && !link_was_cut(observed, read.0) {
            first.get_or_insert_with(|| {
                Explanation::new(
                    format!("in {} the cipher link was down for a time", place(read)),
                    "another program or the device took it down; the trial did not",
                    then_repeat("stop what takes it down"),
                )
            });
            failures.push(format!(
                "{}: the link was down for a time, which nothing here did",
                name(read)
            ));
        }
        let leaked = watch.marker_frames > 0 && was_exposed(observed, read.0);
        if let Some(form) = form
            && foreign > 0
            && !leaked
        {
            let example = watch.examples.first().map_or("", String::as_str);
            first.get_or_insert_with(|| foreign_seen(read, form, watch));
            failures.push(format!(
                "{}: frames not {}: {foreign}, {} of the first ones with the stations' marker in \
                 clear; for example {example}",
                name(read),
                wanted(form),
                watch.marker_frames
            ));
        }
        if form.is_none() && !offloads && foreign < read.1.received {
            let unseen = read.1.received - foreign;
            first.get_or_insert_with(|| {
                Explanation::new(
                    format!(
                        "in {} {} were not seen between the gateways",
                        place(read),
                        count(unseen, read.1.received, "received frame")
                    ),
                    "they took another way",
                    then_repeat(
                        "look at the lab's routes for a way past the gateways, and remove it",
                    ),
                )
            });
            failures.push(format!(
                "{}: the filter saw {foreign} frames of {} received: they took another way",
                name(read),
                read.1.received
            ));
        }
    }
    let (uncovered, words) = coverage(observed, &covered);
    let verdict = match form {
        Some(form) => format!("not one frame that is not {} is allowed", wanted(form)),
        None => "each frame received must be seen in clear".to_owned(),
    };
    let detail = format!(
        "by the kernel filter on every frame of the cipher link: {words}; {verdict}{}",
        failed(&failures)
    );
    let links = covered.iter().filter_map(|(_, _, it)| it.cipher);
    let crossed = links.map(|it| it.packets).sum();
    let empty = || nothing_seen(crossed, "packet crossed the cipher link");
    check("trials-watched", first.or(uncovered).or_else(empty), detail)
}

/// The word for frames of that form.
const fn wanted(form: LinkForm) -> &'static str {
    if form.encrypts() {
        "sealed"
    } else {
        form.name()
    }
}

/// Explains frames between the gateways that did not have the device's form.
fn foreign_seen(read: Read<'_>, form: LinkForm, watch: &CipherWatch) -> Explanation {
    let (shown, cause, advice) = match watch.marker_frames {
        0 => (
            "",
            "another program sends on the link, or a gateway itself does, outside its tunnel",
            "stop what sends them",
        ),
        _ if !form.encrypts() => (
            ", some with the stations' data",
            "the boxes pass packets outside their tunnel",
            "correct the boxes' routes or policy so that everything takes the tunnel",
        ),
        _ => (
            ", some with the stations' data in clear",
            "the encryptor lets traffic pass unsealed: before its tunnel is up, past its policy, or with a NULL cipher",
            "correct its policy so that it drops what it cannot seal",
        ),
    };
    Explanation::new(
        format!(
            "in {} between the gateways crossed {} not {}{shown}",
            place(read),
            count(watch.foreign_frames, 0, "frame"),
            wanted(form)
        ),
        cause,
        then_repeat(advice),
    )
}

/// Checks that in every trial our encryptor counted at least the received packets as sealed and
/// opened, and no more than were sent. A trial in which it was restarted has no counts.
fn trials_sealed(observed: &FrameObserved<'_>, seen: &FrameReadings<'_>) -> Option<Check> {
    let mut covered = Vec::new();
    let mut first = None;
    let mut failures = Vec::new();
    // Sent but not counted yet: a deep queue may hold frames until the next trial.
    let mut uncounted = [0_u64; 2];
    for read in read(observed) {
        let Some(work) = read.2.dut else {
            continue;
        };
        covered.push(read);
        let least = ip_bytes(read.1.received_bytes, read.1.received);
        if work.bytes_least() < least {
            let by = size(least - work.bytes_least(), least, human::data);
            first.get_or_insert_with(|| {
                format!(
                    "in {} the device counted {by} less in clear than was received",
                    place(read)
                )
            });
            failures.push(format!(
                "{}: {} B in clear passed the device, of {least} B or more expected",
                name(read),
                work.bytes_least()
            ));
        }
        let most = counted_most(observed, seen, read);
        let counts = [
            ("took in", work.taken_in_bytes),
            ("put out", work.put_out_bytes),
        ];
        for (uncounted, (way, bytes)) in uncounted.iter_mut().zip(counts) {
            let bytes = bytes.unwrap_or(0);
            let most = uncounted.saturating_add(most);
            if bytes > most {
                let by = size(bytes - most, most, human::data);
                first.get_or_insert_with(|| {
                    format!(
                        "in {} the device {way} {by} more in clear than was sent",
                        place(read)
                    )
                });
                failures.push(format!(
                    "{}: the device counts {bytes} B in clear that it {way}, of {most} B or fewer sent",
                    name(read)
                ));
            }
            *uncounted = most.saturating_sub(bytes);
        }
        if work.unaccounted_packets > IN_FLIGHT_PACKETS {
            first.get_or_insert_with(|| {
                format!(
                    "in {} the device lost {} without naming a reason",
                    place(read),
                    count(work.unaccounted_packets, read.1.sent, "packet")
                )
            });
            failures.push(format!(
                "{}: {} packets are neither out nor dropped",
                name(read),
                work.unaccounted_packets
            ));
        }
    }
    let (_, words) = coverage(observed, &covered);
    let work = covered.iter().filter_map(|(_, _, readings)| readings.dut);
    let counted = work.map(|work| work.bytes_least()).max().unwrap_or(0);
    let detail = format!("by the device's own counters: {words}{}", failed(&failures));
    let failure = first.map(|difference| {
        Explanation::new(
            difference,
            "part of the traffic did not pass the encryptor, others used it too, or it counts wrong",
            then_repeat_or(
                "stop other programs that use the lab's links",
                "report it as a fault of the encryptor",
            ),
        )
    });
    let failure = failure.or_else(|| nothing_seen(counted, "packet passed the device"));
    check("trials-sealed", failure, detail)
}

/// The most bytes in clear that the device may count in a trial, on either side.
fn counted_most(
    observed: &FrameObserved<'_>,
    seen: &FrameReadings<'_>,
    (number, trial, _): Read<'_>,
) -> u64 {
    let adapter = &seen.path.cell.dut.adapter;
    let (sent, bytes) = sent_most(trial);
    // Of a device that carries whole frames, their headers count too.
    let (_, header_bytes) = adapter.profile().frame_bytes;
    let hostile = hostile_sent(observed, number);
    bytes
        .saturating_add(sent.saturating_mul(header_bytes as u64))
        .saturating_add(hostile.saturating_mul(longest_packet(observed, adapter)))
        .saturating_add(CONTROL_FRAMES * CONTROL_FRAME_BYTES)
}

/// Checks that no figure rests on loss that may not be the device's: a queue of the machine was
/// full that belongs to no interface of the path.
fn losses_attributed(observed: &FrameObserved<'_>) -> Option<Check> {
    let trials = &observed.result.trials;
    read(observed).next()?;
    let drops =
        |of: fn(&TrialReadings) -> u64| read(observed).map(|(_, _, it)| of(it)).sum::<u64>();
    let mut detail = format!(
        "before the receiving station's port {} frames found a queue full, at the device or an element of \
         the path {}, and elsewhere on the stations' machines {}",
        drops(|it| it.drops.station),
        drops(|it| it.drops.device),
        drops(|it| it.drops.unattributed)
    );
    let figures = figures(observed);
    let goals = observed
        .result
        .throughput
        .iter()
        .flat_map(|found| &found.goals);
    let bounds: Vec<u64> = goals
        .flat_map(|goal| [goal.lower, goal.upper])
        .flatten()
        .collect();
    let bears = |trial: &FrameTrial| {
        let rests = figures.iter().any(|figure| std::ptr::eq(*figure, trial));
        // The search repeats a trial with this loss; the last one at a load counts.
        let at_bound = bounds.contains(&trial.load) && is_last_at_its_load(trials, trial);
        rests || at_bound
    };
    let spoilt = read(observed).filter(|(_, trial, _)| trial.unattributed_loss() > 0);
    let spoilt: Vec<Read<'_>> = spoilt.filter(|(_, trial, _)| bears(trial)).collect();
    let words = |read: &Read<'_>| {
        format!(
            "{}: of {} lost frames up to {} may be the tester's own loss",
            name(*read),
            read.1.lost(),
            read.1.unattributed_loss()
        )
    };
    let listed: Vec<String> = spoilt.iter().map(words).collect();
    detail += &failed(&listed);
    let failure = spoilt.first().map(|read| {
        Explanation::new(
            format!(
                "in {} up to {} may be the tester's own loss",
                place(*read),
                count(read.1.unattributed_loss(), read.1.sent, "frame")
            ),
            "a queue of a station's machine was full, which is none of the device or the path",
            then_repeat(
                "stop other programs that send on that machine, or raise net.core.netdev_max_backlog (`cipherbench \
                 doctor --apply`)",
            ),
        )
    });
    check("losses-attributed", failure, detail)
}

fn is_last_at_its_load(trials: &[FrameTrial], trial: &FrameTrial) -> bool {
    let at_load = trials.iter().rfind(|other| other.load == trial.load);
    at_load.is_some_and(|last| std::ptr::eq(last, trial))
}

/// A part of a time, in per cent.
const fn percent(part_ns: u64, whole_ns: u64) -> u64 {
    match part_ns.saturating_mul(100).checked_div(whole_ns) {
        Some(percent) => percent,
        None => 0,
    }
}

/// Reports the time that others took of the machine in the trials, with the worst trial: of two
/// machines, the one that lost more. Never fails.
fn machine_in_trials(observed: &FrameObserved<'_>) -> Option<Check> {
    let readings: Vec<&TrialReadings> = read(observed).map(|(_, _, it)| it).collect();
    let wall_ns: u64 = readings.iter().map(|it| it.wall_ns).sum();
    let most: Vec<_> = readings.iter().map(|it| it.most_taken()).collect();
    let taken_ns: u64 = most.iter().map(MachineTime::taken_ns).sum();
    let steal_ns: u64 = most.iter().map(|it| it.steal_ns).sum();
    let waited_ns: Option<u64> = most.iter().map(|it| it.pressure_ns).sum();
    let share = |it: &TrialReadings| percent(it.most_taken().taken_ns(), it.wall_ns);
    // Time is counted in steps of 10 ms, so that a short trial shows a large share for one.
    let long = read(observed).filter(|(_, _, it)| it.wall_ns >= Cpu::MACHINE_FROM_NS);
    let worst = long.max_by_key(|(_, _, it)| share(it));
    let taken_percent = percent(taken_ns, wall_ns);
    let mut detail = format!(
        "over {} trials other programs took {} ms of CPU time and the hypervisor {} ms in {} ms: {taken_percent} % of \
         one core",
        readings.len(),
        (taken_ns - steal_ns) / 1_000_000,
        steal_ns / 1_000_000,
        wall_ns / 1_000_000
    );
    if let Some(waited_ns) = waited_ns {
        detail += &format!(
            "; some task waited for a core for {} ms",
            waited_ns / 1_000_000
        );
    }
    if let Some(worst) = worst {
        detail += &format!("; most in {}, {} %", name(worst), share(worst.2));
    }
    if taken_percent > Cpu::TAKEN_PERCENT {
        detail += "; the figure suffers";
    }
    (!readings.is_empty()).then_some(())?;
    check("machine-in-trials", None, detail)
}
