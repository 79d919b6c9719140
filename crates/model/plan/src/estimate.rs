//! How long a trial takes: the tool's time, and an allowance for setup and teardown.
//!
//! | Part | Time |
//! | --- | --- |
//! | TCP, UDP | warm-up + duration, up to the next whole second |
//! | ping | count × interval |
//! | frames | that of the procedure ([`ProcedurePlan::time`](crate::ProcedurePlan::time)) |
//! | before it, if it has a search or the highest load, to warm the device up | [`FLOOD_RUN`] |
//! | after it, for the evidence | [`EVIDENCE_RUN`] |
//! | around each trial of frames, those two included | drain + [`FRAMES_AROUND`] |
//! | functional trial of devices | algorithms × [`ALGORITHM`] |
//! | speed of devices | duration + processes × [`PROCESS`] + threads × [`THREAD`] |
//! | fatigue of devices | duration, or loops × operations × threads × [`OPERATION`], plus workers |
//! | around it all | [`BRING_UP`] |
//! | over an impaired path | [`IMPAIRED_PATH`] |
//! | of OpenVPN | [`TLS_UP`] |
//! | of strongSwan | [`IKE_UP`] |
//! | of strongSwan's tunnels but the first, at each set-up | tunnels × [`TUNNEL_SET_UP`] |
//! | of Cipherbench with agreed keys, likewise | tunnels × [`HANDSHAKE`], QKD: [`KME_UP`] once |
//! | of boxes outside | commands × [`BOX_COMMAND`] + [`BOX_READY`] |
//! | search, once per cell with `tune` | [`attempts`] × ([`TUNE_RUN`] + [`BRING_UP`]) |
//!
//! The time of a search is divided equally among the trials of its cell, so that the times of all
//! trials add up to the time of the plan.

mod device;

pub use crate::adapter::{
    BOX_COMMAND, BOX_READY, HANDSHAKE, IKE_UP, KME_UP, TLS_UP, TUNNEL_SET_UP,
};
pub use crate::procedure::{EVIDENCE_RUN, FLOOD_RUN, FRAMES_AROUND, LEAD_RUN, NOISY_SEARCHES};
use crate::{Cell, Event, Measurement, Plan};
pub use device::{ALGORITHM, OPERATION, PROCESS, THREAD};
use std::time::Duration;
use units::human;

/// Around one trial: DUT up and down, tools up and down, evidence read.
pub const BRING_UP: Duration = Duration::from_millis(250);
/// The element takes the bridge's place, and gives it back when all frames have left.
pub const IMPAIRED_PATH: Duration = Duration::from_millis(600);
/// Time that the tool runs in one attempt of a search.
pub const TUNE_RUN: Duration = Duration::from_secs(1);

/// Stream counts, windows, the neighbours of the best, and the two best again.
const ATTEMPTS_TCP: u32 = 4 + 3 + 2 + 2;
/// Datagram lengths, when they are searched.
const ATTEMPTS_UDP_DATAGRAM: u32 = 3;
/// Offered rates, when they are searched.
const ATTEMPTS_UDP_RATE: u32 = 6;
/// The two best are tried again.
const ATTEMPTS_AGAIN: u32 = 2;

/// Time of one trial of a cell that is measured `repeats` times, in nanoseconds.
#[must_use]
pub fn trial_ns(cell: &Cell, repeats: u32) -> u64 {
    at_pace(cell, repeats, 1)
}

/// Time of a whole plan if a noisy device or machine makes searches for throughput take
/// [`NOISY_SEARCHES`] times their usual time, none longer than its timeout. Equals
/// [`Plan::estimate_ns`] for a plan without searches.
#[must_use]
pub fn noisy_ns(plan: &Plan) -> u64 {
    // Cells that are skipped have no estimate, and stay at none.
    let taking_time = plan.cells.iter().filter(|cell| cell.estimate_ns > 0);
    let times = taking_time.map(|cell| at_pace(cell, plan.repeats, NOISY_SEARCHES));
    let once = times.fold(0, u64::saturating_add);
    let whole = once.saturating_mul(plan.repeats.into());
    // The plan may be from a journal of a version with other allowances: the result is still no
    // less than the estimate that it recorded.
    whole.max(plan.estimate_ns())
}

/// Time of a whole plan: `about 8 min`, or `about 8 min, with noisy searches about 14 min`;
/// of cells that are all skipped `nothing to measure`.
/// Neither is a bound: repeats of spoilt trials, retries and outages add to both.
#[must_use]
pub fn in_words(plan: &Plan) -> String {
    if plan.estimate_ns() == 0 {
        return "nothing to measure".to_owned();
    }
    let [usual, noisy] =
        [plan.estimate_ns(), noisy_ns(plan)].map(|time| human::estimate_ns(time as f64));
    // Nothing is searched then, or it makes no difference, and one time is enough.
    if usual == noisy {
        format!("about {usual}")
    } else {
        format!("about {usual}, with noisy searches about {noisy}")
    }
}

fn at_pace(cell: &Cell, repeats: u32, searches: u32) -> u64 {
    let profile = cell.dut.adapter.profile();
    let tunnels = profile.set_up;
    // Each attempt brings the DUT up anew.
    let search = (TUNE_RUN + BRING_UP + tunnels) * attempts(cell);
    let path = match cell.impair {
        // The element is in the path for the time of the trial alone.
        Some(_) => IMPAIRED_PATH,
        None => Duration::ZERO,
    };
    // A search is done once per cell, in its first trial; all trials get an equal share of its
    // time.
    let own =
        BRING_UP + path + tunnels * set_ups(&cell.measurement).saturating_add(1) + profile.beside;
    let time = measuring(&cell.measurement, searches) + own + search / repeats.max(1);
    // A few days at most, unless a journal was changed.
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Number of set-ups in a trial, with one before it to learn their duration.
fn set_ups(measurement: &Measurement) -> u32 {
    match measurement.frames().and_then(|test| test.procedure.event()) {
        Some(Event::Setup { times, .. }) => times.saturating_add(1),
        _ => 0,
    }
}

/// Most attempts of the search before a cell's first trial; 0 when nothing is searched.
#[must_use]
pub fn attempts(cell: &Cell) -> u32 {
    if !cell.tune {
        return 0;
    }
    match cell.measurement {
        Measurement::Tcp { .. } => ATTEMPTS_TCP,
        Measurement::Udp {
            datagram_bytes,
            rate_bps,
            ..
        } => match (datagram_bytes, rate_bps) {
            // With both given nothing is left to search.
            (Some(_), Some(_)) => 0,
            // One length, at each rate.
            (Some(_), None) => 1 + ATTEMPTS_UDP_RATE + ATTEMPTS_AGAIN,
            (None, Some(_)) => ATTEMPTS_UDP_DATAGRAM + ATTEMPTS_AGAIN,
            (None, None) => ATTEMPTS_UDP_DATAGRAM + ATTEMPTS_UDP_RATE + ATTEMPTS_AGAIN,
        },
        _ => 0,
    }
}

/// Time of the measurement itself.
fn measuring(measurement: &Measurement, searches: u32) -> Duration {
    match measurement {
        Measurement::Frames(test) => test.procedure.time(searches),
        Measurement::Device(test) => device::time(test),
        tool => tool.tool_time().unwrap_or_default(),
    }
}
