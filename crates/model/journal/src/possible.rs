//! Impossible records: counts and times that contradict each other.
//!
//! Journals before version 6 have no checksums, a counter can be wrong, and a program can have a
//! defect. So records of every version are checked when they are read: more received than sent, a
//! lower bound above its upper one, percentiles out of order, a time of zero. A trial that
//! contradicts itself is invalid, with the contradictions as reasons; a contradictory intermediate
//! record is not used. Only rules that hold for every measurement are checked. They have no
//! tolerance, except comparisons of two clocks or two readings.

mod device;
mod frames;
mod http;
mod ike;
mod video;

use crate::record::{
    Cpu, Evidence, FatigueProgress, Figures, Latency, Measured, Outcome, Record, SoakProgress,
    ToolParameters, Transfer, TrialRecord, TuneAttempt, Tuned,
};
use plan::{Cell, Plan};
use serde_json::Value;

/// Name of the check that a contradiction fails; reasons begin with this name.
const CHECK: &str = "record-is-possible";
/// Contradictions of a record that are reported; a damaged histogram may have hundreds.
const REPORTED_MAX: usize = 3;
/// Largest count, time or sum of a record: 3 years in nanoseconds, 12 days of bytes at 800 Gbit/s.
const MOST: u64 = 100_000_000_000_000_000;
/// Parts per million, the unit of shares.
const PPM: u64 = 1_000_000;
/// Two clocks, or two readings of one quantity, may differ by one part in this many: 1 %.
const TOLERANCE: u64 = 100;

/// Contradictions found so far, as sentences without a full stop.
#[derive(Debug, Default)]
struct Contradictions {
    found: Vec<String>,
    not_reported: usize,
}

impl Contradictions {
    /// Adds a contradiction unless the condition holds.
    fn unless(&mut self, holds: bool, contradiction: impl FnOnce() -> String) {
        match holds {
            true => {}
            // The text is made only if it is kept: a changed journal may have millions of
            // contradictions.
            false if self.found.len() < REPORTED_MAX => self.found.push(contradiction()),
            false => self.not_reported += 1,
        }
    }

    /// Adds a contradiction if a part is more than its whole.
    fn part(&mut self, (part, what): (u64, &str), (whole, of): (u64, &str)) {
        self.unless(part <= whole, || format!("{part} {what} of {whole} {of}"));
    }

    /// Adds a contradiction if the sum of values is more than can be measured.
    fn measurable(&mut self, what: &str, values: impl IntoIterator<Item = u64>) {
        // Each value is at most the sum, so one comparison covers all. Later stages may add
        // values of this size without an overflow.
        let sum = sum(values);
        self.unless(sum <= MOST, || format!("{what}: {sum} is more than can be"));
    }

    /// Adds a contradiction if values that must not fall do.
    fn rising(&mut self, what: &str, values: impl IntoIterator<Item = u64>) {
        // An empty list rises, as one of a single value does.
        let mut values = values.into_iter();
        let Some(mut last) = values.next() else {
            return;
        };
        for value in values {
            self.unless(last <= value, || format!("{what}: {value} after {last}"));
            last = value;
        }
    }

    fn into_reasons(self) -> Vec<String> {
        let mut reasons: Vec<String> = self.found;
        if self.not_reported > 0 {
            // Counted, so that three reasons are not taken for all.
            reasons.push(format!("and {} more contradictions", self.not_reported));
        }
        let reason = |contradiction| format!("{CHECK}: {contradiction}");
        reasons.into_iter().map(reason).collect()
    }
}

/// Returns why a record of this cell is impossible; empty if it is possible.
pub(crate) fn contradictions(record: &Record, cell: Option<&Cell>) -> Vec<String> {
    let mut found = Contradictions::default();
    match record {
        // They have no figures. The plan is checked when the header is read.
        Record::Header(_) | Record::Resumed(_) | Record::Added(_) | Record::End(_) => {}
        Record::Tuned(tuned) => of_tuning(tuned, &mut found),
        Record::Soaked(soaked) => of_soak(soaked, &mut found),
        Record::Fatigued(fatigued) => of_fatigue(fatigued, &mut found),
        // With the cell, by which bytes of frames can be compared.
        Record::Trial(trial) => of_trial(trial, cell, &mut found),
    }
    found.into_reasons()
}

/// Returns why a plan is impossible; `None` if it is possible.
pub(crate) fn impossible_plan(plan: &Plan) -> Option<String> {
    let repeats = plan.repeats;
    if !(1..=Plan::REPEATS_MAX).contains(&repeats) {
        return Some(format!("a plan of {repeats} repeats cannot be"));
    }
    // A plan is plain data with string keys, which always has a JSON form. It covers numbers that
    // are added to plans later, too.
    let value = serde_json::to_value(plan).expect("a plan can be written as JSON");
    let number = too_large(&value)?;
    Some(format!("a plan with the number {number} cannot be"))
}

/// Returns a number of a plan that exceeds every possible count or time.
fn too_large(value: &Value) -> Option<u64> {
    match value {
        // Negative and fractional numbers are none of the counts and times that are added up.
        Value::Number(number) => number.as_u64().filter(|number| *number > MOST),
        Value::Array(values) => values.iter().find_map(too_large),
        Value::Object(values) => values.values().find_map(too_large),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

impl TrialRecord {
    /// Makes a measured outcome invalid if its counts and times contradict each other. `cell` is
    /// the trial's cell.
    pub fn refuse_the_impossible(&mut self, cell: &Cell) {
        let mut found = Contradictions::default();
        of_trial(self, Some(cell), &mut found);
        self.refuse(found.into_reasons());
    }

    /// Makes a measured outcome invalid for these reasons, if there are any.
    pub(crate) fn refuse(&mut self, reasons: Vec<String>) {
        if reasons.is_empty() {
            return;
        }
        // Invalid and failed trials have no figure that could be taken away.
        if let Outcome::Measured(measured) = &mut self.outcome {
            self.outcome = Outcome::Invalid {
                reasons,
                measured: std::mem::take(measured),
            };
        }
    }
}

fn of_trial(trial: &TrialRecord, cell: Option<&Cell>, found: &mut Contradictions) {
    let Outcome::Measured(measured) = &trial.outcome else {
        return; // It has no figure.
    };
    found.measurable("a trial's time in ns", [trial.duration_ns]);
    found.unless(trial.duration_ns > 0, || "a trial of no duration".into());
    // The trial is timed by another clock than its figures.
    let most_ns = with_tolerance(trial.duration_ns);
    match &measured.figures {
        Figures::None => {}
        Figures::Transfer(transfer) => of_transfer(transfer, most_ns, found),
        Figures::Latency(latency) => of_latency(latency, most_ns, found),
        Figures::Http(http) => http::of_result(http, most_ns, found),
        Figures::Video(video) => video::of_result(video, most_ns, found),
        Figures::Ike(ike) => ike::of_result(ike, most_ns, found),
        Figures::Frames(frames) => frames::of_result(frames, cell, found),
        Figures::Device(device) => device::of_result(device, found),
    }
    // Reports print the figures by the kind of the cell, and would find none of another kind.
    if let Some(cell) = cell {
        let key: &str = (&measured.figures).into();
        let fits = measured.figures == Figures::None || key == cell.measurement.figures();
        found.unless(fits, || {
            format!("figures of another kind than `{}`", cell.measurement.name())
        });
    }
    of_cpu(&measured.cpu, found);
    of_evidence(measured, found);
}

/// `most_ns`: the time that the whole trial took.
fn of_transfer(transfer: &Transfer, most_ns: u64, found: &mut Contradictions) {
    let Transfer {
        parameters,
        duration_ns,
        sent_bytes,
        received_bytes,
        retransmits,
        datagrams,
        intervals,
        tcp,
        reverse,
    } = transfer;
    // A run writes one level. Of changed journals, serde_json refuses more than 128.
    if let Some(reverse) = reverse {
        of_transfer(reverse, most_ns, found);
    }
    if let Some(tcp) = tcp {
        for rtt in [tcp.loaded_rtt_ns, tcp.baseline_rtt_ns]
            .into_iter()
            .flatten()
        {
            found.part((rtt, "ns of a round trip"), (most_ns, "ns of the trial"));
        }
    }
    found.unless(*duration_ns > 0, || "a transfer of no duration".into());
    found.part(
        (*duration_ns, "ns of transfer"),
        (most_ns, "ns of the trial"),
    );
    found.measurable(
        "bytes",
        [*sent_bytes, *received_bytes, retransmits.unwrap_or(0)],
    );
    if let Some(datagrams) = datagrams {
        found.measurable("datagrams", [datagrams.out_of_order, datagrams.jitter_ns]);
        let sent = (datagrams.sent, "datagrams sent");
        found.part((datagrams.lost, "lost"), sent);
        let lost = (datagrams.lost, "datagrams lost");
        found.part((datagrams.station_lost, "lost by the station"), lost);
        if let Some(drain) = datagrams.drain {
            let drained = (drain.time_ns, "ns in which a queue drained");
            found.part(drained, (*duration_ns, "ns of transfer"));
            found.unless(drain.offered_ns > 0, || "datagrams sent in no time".into());
        }
        if let ToolParameters {
            datagram_bytes: Some(bytes),
            ..
        } = parameters
        {
            // Tools send whole datagrams of one length, so this is exact.
            let expected = datagrams.sent.saturating_mul(u64::from(*bytes));
            found.unless(expected == *sent_bytes, || {
                let sent = datagrams.sent;
                format!(
                    "{sent} datagrams of {bytes} B sent, which are {expected} B, not {sent_bytes}"
                )
            });
        }
    }
    for interval in intervals {
        let (start, end) = (interval.start_ns, interval.end_ns);
        found.unless(start <= end, || {
            format!("an interval from {start} ns to {end} ns")
        });
    }
    found.rising(
        "intervals' ends in ns",
        intervals.iter().map(|one| one.end_ns),
    );
    // The timeline covers the measured time, and is a second count of the bytes.
    if let Some(last) = intervals.last() {
        found.unless(differs_little(last.end_ns, *duration_ns), || {
            format!(
                "intervals of {} ns in a transfer of {duration_ns} ns",
                last.end_ns
            )
        });
        let counted = sum(intervals.iter().map(|interval| interval.bytes));
        found.unless(differs_little(counted, *received_bytes), || {
            format!("{received_bytes} B received, but {counted} B in the intervals")
        });
    }
}

fn of_latency(latency: &Latency, most_ns: u64, found: &mut Contradictions) {
    let Latency {
        sent,
        received,
        round_trips_ns,
        loaded,
        route: _,
    } = latency;
    for under in loaded {
        found.part((under.received, "replies"), (under.sent, "requests"));
        let listed = under.round_trips_ns.len() as u64;
        found.unless(listed == under.received, || {
            format!("{} replies, but {listed} round-trip times", under.received)
        });
        found.part(
            (under.duration_ns, "ns of requests"),
            (most_ns, "ns of the trial"),
        );
    }
    found.part((*received, "replies"), (*sent, "requests"));
    // Each reply has one time: percentiles count these.
    let listed = round_trips_ns.len() as u64;
    found.unless(listed == *received, || {
        format!("{received} replies, but {listed} round-trip times")
    });
    for time in round_trips_ns {
        found.part((*time, "ns of a round trip"), (most_ns, "ns of the trial"));
    }
}

fn of_cpu(cpu: &Cpu, found: &mut Contradictions) {
    let stations = (cpu.stations_ns, "ns of the stations' CPU time");
    let of_each = cpu.station_a_ns.saturating_add(cpu.station_b_ns);
    found.part((of_each, "ns of both"), stations);
    // None of these always contains the others: of two hosts `busy_ns` is A's alone, and the
    // stations' time is of both.
    let spent = cpu
        .stations_ns
        .max(cpu.busy_ns)
        .max(cpu.dut_ns.unwrap_or(0));
    let others = [
        cpu.wall_ns,
        cpu.kernel_ns,
        cpu.steal_ns,
        cpu.foreign_ns,
        spent,
    ];
    let b = cpu.machine_b.unwrap_or_default();
    let of_b = [b.busy_ns, b.steal_ns, b.foreign_ns, b.idle_ns];
    found.measurable("CPU time of host b in ns", of_b);
    found.measurable("CPU time in ns", others);
    // Shares are quotients by the wall time.
    found.unless(cpu.wall_ns > 0 || spent == 0, || {
        format!("{spent} ns of CPU time in no time")
    });
    // Cycles and instructions are of other hardware than the times: no rule relates them.
    if let Some(counted) = cpu.counted {
        for counts in [counted.cycles, counted.instructions] {
            let stations = [counts.station_a, counts.station_b];
            let others = [counts.dut.unwrap_or(0), counts.machine];
            found.measurable("counts of the CPUs", [stations, others].concat());
        }
    }
}

/// An outcome is `measured` only if every check passed.
fn of_evidence(measured: &Measured, found: &mut Contradictions) {
    let Evidence {
        checks,
        cipher_link,
        watch,
        interfaces,
        ..
    } = &measured.evidence;
    for (name, counters) in interfaces {
        found.measurable(name, [counters.rx_bytes, counters.tx_bytes]);
        let packets = [counters.rx_packets, counters.tx_packets];
        let dropped = [counters.rx_dropped, counters.tx_dropped];
        let errors = [counters.rx_errors, counters.tx_errors];
        found.measurable(name, [packets, dropped, errors].concat());
    }
    // A run makes a trial with a failed check invalid: one that is measured was changed.
    for check in checks {
        found.unless(check.passed, || {
            format!("a figure although `{}` failed", check.name)
        });
    }
    // A frame is of one kind at most.
    let kinds = [
        cipher_link.esp_frames,
        cipher_link.channel_frames,
        cipher_link.other_frames,
    ];
    let sampled = (cipher_link.frames, "frames sampled on the cipher link");
    found.part((sum(kinds), "recognised"), sampled);
    let classes = sum(cipher_link.dscp.values().copied());
    found.part((classes, "with a class of service"), sampled);
    found.part((cipher_link.marker_frames, "with the marker"), sampled);
    if let Some(opened) = &cipher_link.opened {
        let sampled = (opened.packets, "sealed packets sampled whole");
        found.part((opened.opened, "opened"), sampled);
        let opened_packets = (opened.opened, "opened packets");
        found.part(
            (opened.between_stations, "between stations"),
            opened_packets,
        );
    }
    if let Some(contents) = &cipher_link.contents {
        let bytes = (contents.bytes, "bytes of sealed packets");
        found.part((contents.packets, "packets with some"), bytes);
        found.part((contents.repeated_blocks, "in repeated blocks"), bytes);
    }
    // Frames with the marker on a foreign link are a leak; here only their number must fit.
    if let Some(watch) = watch {
        let foreign = (watch.foreign_frames, "foreign frames");
        found.part((watch.marker_frames, "with the marker"), foreign);
    }
}

fn of_tuning(tuned: &Tuned, found: &mut Contradictions) {
    for TuneAttempt { lost_ppm, .. } in &tuned.attempts {
        found.part((lost_ppm.unwrap_or(0), "lost"), (PPM, "parts per million"));
    }
}

fn of_soak(soaked: &SoakProgress, found: &mut Contradictions) {
    frames::of_trial(&soaked.trial, None, found);
    frames::of_segment(&soaked.segment, found);
    if let Some(throughput) = &soaked.throughput {
        frames::of_throughput(throughput, found);
    }
}

fn of_fatigue(fatigued: &FatigueProgress, found: &mut Contradictions) {
    device::of_segment(&fatigued.segment, fatigued.devices.len(), found);
}

/// Whether two readings of one quantity differ by no more than [`TOLERANCE`].
const fn differs_little(a: u64, b: u64) -> bool {
    // `max` is not `const`.
    let largest = if a > b { a } else { b };
    a.abs_diff(b) <= largest / TOLERANCE
}

const fn with_tolerance(value: u64) -> u64 {
    value.saturating_add(value / TOLERANCE)
}

fn sum(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, u64::saturating_add)
}
