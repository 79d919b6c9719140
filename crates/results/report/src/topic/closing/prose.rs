//! Method and limits of the figures, as named paragraphs.

use crate::kit::section::Paragraph;
use crate::layout::device::DeviceKind;
use crate::layout::{Protocol, Run};
use plan::{LabKind, ProcedureKind};

/// How the figures were measured.
pub(super) fn method(run: &Run<'_>) -> Vec<Paragraph> {
    if run.only_devices() {
        // Of the general method, only the order of cells applies to devices.
        return [&[DEVICE_LAB, METHOD[0]], devices(run).as_slice()].concat();
    }
    let lab = match run.plan().lab.kind {
        LabKind::Memory => MEMORY,
        LabKind::Device => DEVICE_LAB,
        LabKind::Namespaces => NAMESPACES,
        LabKind::Hosts => HOSTS,
    };
    let sets = run.frame_sets();
    // Paragraphs about other kinds of tests would hide the ones that apply.
    let when = |has: bool, text: &'static [Paragraph]| if has { text } else { &[] };
    let frames = when(!sets.is_empty(), FRAMES);
    let is_disturbed = sets.iter().any(|set| set.disturbance().is_some());
    let disturbed = when(is_disturbed, DISTURBED);
    let soak = when(sets.iter().any(|set| set.kind == ProcedureKind::Soak), SOAK);
    let devices = devices(run);
    [
        &[lab],
        METHOD,
        frames,
        disturbed,
        soak,
        &devices,
        compared(run),
    ]
    .concat()
}

/// Paragraphs about the kinds of crypto device trials in the run.
fn devices(run: &Run<'_>) -> Vec<Paragraph> {
    let all = [
        (DeviceKind::Kat, KAT),
        (DeviceKind::Speed, DEVICE_SPEED),
        (DeviceKind::Fatigue, FATIGUE),
    ];
    all.into_iter()
        .filter(|(kind, _)| run.device_cells(*kind).next().is_some())
        .flat_map(|(_, text)| text.iter().copied())
        .collect()
}

/// Limits of the figures' meaning.
pub(super) fn limits(run: &Run<'_>) -> Vec<Paragraph> {
    if run.only_devices() {
        return DEVICE_LIMITS.to_vec();
    }
    let has_udp = !run.sets_of(Protocol::Udp).is_empty();
    let all = LIMITS.iter().copied();
    // It would be wrong for frame tests, which search for zero loss.
    let fits =
        |(name, _): &Paragraph| *name != NOT_ZERO_LOSS || has_udp || run.frame_sets().is_empty();
    all.filter(fits).collect()
}

/// Paragraphs about rankings and ceilings, if the run has them.
fn compared(run: &Run<'_>) -> &'static [Paragraph] {
    let results = &run.results;
    // The first paragraph is about rankings, the second about ceilings.
    match (results.rankings.is_empty(), results.suites.is_empty()) {
        (false, false) => COMPARED,
        (false, true) => &COMPARED[..1],
        (true, false) => &COMPARED[1..],
        (true, true) => &[],
    }
}

const COMPARED: &[Paragraph] = &[
    (
        "Ranking",
        "A device's rank is 1 plus the number of devices that are surely better. The \
        second number is its worst possible rank. Not being distinguished is not transitive, so devices are not \
        cut into groups; a device with a wide spread gets a wide span of ranks, not a good one. The ratios within the \
        same repeats decide which is better; overlap of two intervals decides nothing. The path without an encryptor \
        and controls are not ranked.",
    ),
    (
        "Ceilings",
        "What a suite adds follows from its headers, IV, padding and tag. A ceiling is the links' rate by the \
         length of packets on the fuller link, which nothing exceeds for long. If links have no rate it is the \
         baseline's figure less the share of the longer packets on a line that it had filled: that \
         is no bound, and a device with an advantage that the baseline lacks may exceed it. It \
         shows how much of the distance to the baseline is due to the suite's bytes.",
    ),
];

const NAMESPACES: Paragraph = (
    "Lab",
    "Four network namespaces on one machine, station A – gateway 1 – gateway 2 – station B, joined \
     by veth pairs. The device under test sits on the gateways; `direct` is the same path with \
     plain forwarding.",
);

const HOSTS: Paragraph = (
    "Lab",
    "Station A and gateway 1 on one host, gateway 2 and station B on the other, joined by a cable; on \
     each host the two are network namespaces joined by a veth pair. The device under test sits on the \
     gateways; `direct` is the same path with plain forwarding.",
);

const MEMORY: Paragraph = (
    "Lab",
    "Generator, device and analyser in one process, joined by rings in memory: no kernel and no \
     interface is in the path.",
);

const DEVICE_LAB: Paragraph = (
    "Lab",
    "None: each device is opened by worker processes on this machine, so that one that crashes is a counted failure and \
     not the end of the run. They start together once all of them have their keys.",
);

const KAT: &[Paragraph] = &[(
    "Functional trial",
    "Official vectors, empty input, normal input, every size around the edges of blocks and pages, and device against CPU both \
     ways: one encrypts and the other decrypts, one signs and the other verifies. An algorithm passes when every input of every \
     case was right in every repeat; one that was not tried does not pass.",
)];

const DEVICE_SPEED: &[Paragraph] = &[
    (
        "Speed",
        "Operations by the time from the first worker's beginning to the last one's end, in which each does one operation after \
         the other with a key that is in place. Bytes are those of the input, MB are millions of bytes. Results \
         are checked, since a device that does nothing is fast: so many, selected at random, that 1 wrong in 1000 is found with a \
         probability of 99 %.",
    ),
    (
        "Faster, slower, the same",
        "One figure is above another if the difference exceeds the farthest repeat of either, \
        and 2 %. A device overtakes the CPU from the smallest number on from which it is above \
        it at all larger ones; between two numbers, the point is interpolated on the line that \
        joins their ratios on logarithmic axes. It saturates at the smallest number that no \
        larger one is above.",
    ),
    (
        "Who did the work",
        "A device that is declared to spare the CPU must prove it: by its own counter, or by CPU \
        time of the workers below half of what our own engines need for the operation. Without \
        either the card equals the CPU, and its figures are not attributed to the device.",
    ),
];

const FATIGUE: &[Paragraph] = &[(
    "Fatigue",
    "Every thread runs the operations in turn and checks every result; some inputs are invalid \
    on purpose and must be refused. A wrong result, an operation that failed, an invalid input that passed and a process that died are failures. \
     Devices that worked until the end are censored: the Kaplan-Meier estimate counts them for \
     as long as they were observed. Time between the parts of a resumed run does not count.",
)];

const DEVICE_LIMITS: &[Paragraph] = &[
    (
        "One machine",
        "A device's speed is that of bus, driver and library too, and of the cores that feed it. Ratios to the CPU of the same \
         run carry over to other machines better than rates do, and less well to a machine with another CPU.",
    ),
    (
        "Models",
        "A modelled coprocessor gives real results in the times that the campaign sets: it shows \
        how such a device would shape the curves, and says nothing about real products.",
    ),
    (
        "Hours",
        "A trial says nothing about times longer than its own. The lower bound of the mean time \
        between failures holds only for a constant failure rate, which new and worn-out devices \
        do not have.",
    ),
    (
        "No claim of security",
        "Correct results say nothing about side channels, key storage or the randomness of keys.",
    ),
];

const FRAMES: &[Paragraph] = &[
    (
        "Frames",
        "Generated and checked by the tester itself. Each carries flow, sequence number, intended send \
         time and checksum, so that loss, reordering (RFC 4737), duplication and corruption are \
         counted separately. Lost is what left the sender and did not arrive intact. A search counts \
         frames that were not sent in time as lost too: a load that was not offered was not carried; \
         what the receiving station dropped is lost too, and the verdict says so.",
    ),
    (
        "Throughput",
        "Searched by MLRsearch (RFC 9971), all goals at once. The relevant lower bound is the \
         highest load known to meet the goal, the upper bound the lowest known not to. A missing \
         bound is reported as missing, never estimated.",
    ),
    (
        "One-way latency",
        "From the intended send time, so that a frame that had to wait for the sender counts its \
         wait. Frames leave in bursts on a schedule, and the schedule itself is what latency counts \
         from. Percentiles come from histograms of three significant digits, all repeats pooled.",
    ),
    (
        "Verdicts",
        "A figure is link-limited when a link is filled to 99 % of its rate (behind an encryptor \
         the cipher side's, where frames are longer); machine-limited where stations and device share cores, or a station had \
         no idle time; tester-limited where it is surely at least 95 % of what the tester \
         does without a device, or when the stations' own losses explain the failed load; \
         dut-limited when even the upper bound surely lies below those 95 %; else inconclusive, as it is \
         when a station seals or opens by a suite other than AES-GCM and may be the limit, when repeats of the device or of the tester \
         fall in two bands, or when either has one repeat.",
    ),
    (
        "Frame sizes",
        "Include the 4 bytes of FCS, as the device would receive them on its clear side. Links \
         without FCS, preamble and gap (veth, rings) carry 4 bytes less; L1 rates on them are \
         computed.",
    ),
];

const DISTURBED: &[Paragraph] = &[(
    "Disturbed loads",
    "One load, never stopped, while something happens to the device. Figures of one event (an \
    outage, the frames that a rekey cost) are estimated over the events of all repeats; figures \
    of a trial (rates, latency) over the repeats. Times are in the frames' intended time: an \
    outage ends with the last frame that never arrived. An event after which frames were lost to \
    the end has no time; medians count it as longer than any other. Rekeys and hostile packets \
    are compared with the same load without events, measured first.",
)];

const SOAK: &[Paragraph] = &[(
    "Soaks",
    "One load for the whole time, in segments with a short pause between them, each recorded point by point. A soak is \
     stable only where the whole time was measured, no more was lost than the goal allows, traffic never stopped for 100 ms, \
     keys stayed in step, and the 95 % intervals of the drift of rate, median latency and the device's memory over the whole time \
     (Theil and Sen's slope) are within their bounds, from 30 points on. A condition that is \
     violated makes it unstable; one that could not be shown makes it inconclusive. Correlated \
     neighbouring points make an interval too narrow.",
)];

const METHOD: &[Paragraph] = &[
    (
        "Order",
        "All cells are measured once, then all again, so that drift of the machine affects \
        device and baseline equally; within each repeat in a random order, unless the campaign keeps that of its file. Repeats of both \
         pair up: a ratio is the geometric mean over those pairs.",
    ),
    (
        "Intervals",
        "95 %, by Student's t on the logarithms of the repeats; of a ratio, on those of the ratios within the same repeats. \
         Two repeats have one, as wide as two repeats leave it; one repeat has none and decides nothing. Findings (differs, \
         better, faster, stops, met) allow 5 % of chance over all comparisons of their kind by one quantity in the \
         whole run (Holm), so one may be missing where a single interval excludes it. Where a value is 0 or \
         negative, the values themselves are taken.",
    ),
    (
        "Figures",
        "Throughput is payload that station B received by the time measured, without any header. \
         A figure is the mean of the repeats ± the largest distance of a repeat from it, also in \
         per cent of the mean. The largest distance is no interval. Where it would reach zero, the \
         smallest and the largest repeat stand in its place.",
    ),
    (
        "Latency",
        "Round-trip times of single echo requests on the otherwise idle path. Percentiles are \
         nearest rank over all repeats pooled.",
    ),
    (
        "CPU",
        "CPU-seconds of the stations' tools and of the device's processes; the rest of the \
         machine's busy time is the kernel's forwarding, its threads and the tester. Payload per \
         CPU-second divides throughput by the cores kept busy; on a machine whose cores are \
         shared it is the steadier figure.",
    ),
    (
        "Evidence",
        "During each trial frames between the gateways are sampled and read: an encrypting device \
         must show packets in the form that it seals them in (ESP, WireGuard, OpenVPN) and never \
         the stations' marker, the baseline must show the marker. Interface counters must agree \
         with what the tool reports. A trial that fails a check is invalid and gives no figure; \
         the figure of its cell is of the valid repeats, marked with their number and the check, such as `[2 of 3]`.",
    ),
];

const NOT_ZERO_LOSS: &str = "Not zero loss";
const LIMITS: &[Paragraph] = &[
    (
        "One machine",
        "Stations, gateways and kernel share its cores. What the stations use, the device lacks. \
         Ratios to the baseline of the same run carry over to other machines better than rates do.",
    ),
    (
        "No cable",
        "veth has no line rate, no propagation delay and no frame check sequence. With offloads \
         on it hands over packets of up to 64 KiB whole, which flatters throughput; measure with \
         offloads off as well.",
    ),
    (
        NOT_ZERO_LOSS,
        "UDP rates here are received rates at the offered load, with the loss. They are \
         not RFC 2544 throughput, which is the highest rate without any loss.",
    ),
    (
        "No claim of security",
        "The checks show that the sampled frames look like sealed packets and carry no marker in \
        clear. They do not judge the cipher, its keys or its implementation.",
    ),
];
