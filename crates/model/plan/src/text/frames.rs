//! Frame tests in words.

use crate::{
    Axis, BaseLoad, Cell, Desync, Disturbed, Event, Failure, FrameTest, Goal, LabPlan, LatencyPath,
    Procedure, Reset, ServiceTest, Soak, ThroughputSearch,
};
use std::time::Duration;
use units::human;
use units::human::counted;
use units::time::print;
use units::{FrameRate, Ratio};

/// The traffic of a group, in one line.
pub(super) fn in_words(test: &FrameTest, group: &[Cell]) -> String {
    let mix = &test.traffic.frames.mix;
    let frames = match mix.shares.len() {
        1 => format!("frames of {mix} B"),
        _ if mix.name == "mix" => "a mix of frames".to_owned(),
        _ => format!("frames of {}", mix.name),
    };
    let phrase = |axis: Axis| axis.phrase(group.iter().filter_map(|cell| cell.value(axis)));
    let mut parts = vec![test.procedure.name().to_owned(), frames];
    parts.extend(Axis::all().filter_map(phrase));
    let stations = group.first().and_then(|cell| cell.stations);
    parts.extend(stations.map(|stations| format!("MTU {} B", stations.mtu)));
    parts.join(", ")
}

/// Further lines about a group: the mix, its line rate, the procedure.
pub(super) fn details(test: &FrameTest, group: &[Cell], lab: &LabPlan) -> Vec<String> {
    let mut lines = Vec::new();
    let mix = &test.traffic.frames.mix;
    if mix.shares.len() > 1 {
        let mean = human::number(mix.mean_bytes());
        lines.push(format!("sizes {mix} B, {mean} B on average"));
    }
    lines.extend(line_rates(test, group, lab));
    if let Some(search) = test.procedure.search() {
        lines.extend(search.goals.iter().map(goal));
        lines.push(searched(search));
    }
    lines.extend(own(&test.procedure));
    lines
}

/// The line rates of a group's cells, with the encapsulation if the station seals.
fn line_rates(test: &FrameTest, group: &[Cell], lab: &LabPlan) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in group {
        let Some(line_rate) = lab.line_rate(cell) else {
            continue;
        };
        let line = match test.traffic.sealed_by_station(&cell.dut.adapter) {
            Some(carrier) => format!("line rate {line_rate} frames/s in {}", carrier.in_words()),
            None => format!("line rate {line_rate} frames/s"),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn goal(goal: &Goal) -> String {
    let ratio = |ppm: u32| Ratio::from_ppm(ppm.into());
    let trials = if goal.criteria.initial_trial_ns == goal.criteria.final_trial_ns {
        format!("trials of {}", time(goal.criteria.final_trial_ns))
    } else {
        format!(
            "trials of {} to {}",
            time(goal.criteria.initial_trial_ns),
            time(goal.criteria.final_trial_ns)
        )
    };
    format!(
        "goal {}: loss {}, exceeded in up to {} of {}, {trials}, width {}",
        goal.name,
        ratio(goal.criteria.loss_ratio_ppm),
        ratio(goal.criteria.exceed_ratio_ppm),
        time(goal.criteria.duration_sum_ns),
        ratio(goal.criteria.width_ppm)
    )
}

fn searched(search: &ThroughputSearch) -> String {
    format!(
        "search by profile {} from {} to {}, drain {}, {} at most",
        search.profile.name(),
        FrameRate::new(search.min_load),
        most(search.max_load),
        time(search.drain_ns),
        time(search.timeout_ns)
    )
}

fn own(procedure: &Procedure) -> Option<String> {
    Some(match procedure {
        Procedure::Load(load) => {
            let rate = load.frames_per_s.map_or_else(
                || "as fast as the generator can".to_owned(),
                |rate| FrameRate::new(rate).to_string(),
            );
            format!("{rate} for {}", time(load.duration_ns))
        }
        Procedure::Throughput(_) => return None,
        Procedure::Mrr(test) => format!(
            "{} at {}, {} each, drain {}",
            counted(test.trials, "trial"),
            most(test.max_load),
            time(test.trial_ns),
            time(test.drain_ns)
        ),
        Procedure::Service(test) => service(test),
        Procedure::LossCurve(test) => format!(
            "from {} down in steps of {} %, {} each, drain {}, until two without loss",
            most(test.max_load),
            test.step_percent,
            time(test.trial_ns),
            time(test.drain_ns)
        ),
        Procedure::BackToBack(test) => format!(
            "bursts of up to {} at the highest load, the longest without loss {}, drain {}",
            time(test.burst_ns_max),
            counted(test.bursts, "time"),
            time(test.drain_ns)
        ),
        Procedure::Latency(test) => {
            let percents = test.percents.iter().map(|percent| format!("{percent} %"));
            format!(
                "then{} at {} of the throughput, {}{} each",
                match test.path {
                    LatencyPath::OneWay => "",
                    LatencyPath::RoundTrip => " round trips",
                },
                percents.collect::<Vec<_>>().join(", "),
                match test.trials {
                    1 => String::new(),
                    trials => format!("{trials} trials of "),
                },
                time(test.trial_ns)
            )
        }
        Procedure::Recovery(test) => format!(
            "then {} % of the throughput for {}, and {} % watched for {}",
            test.overload_percent,
            time(test.overload_ns),
            test.relief_percent,
            time(test.relief_ns)
        ),
        Procedure::Disturbed(test) => disturbed(test),
        Procedure::Soak(test) => soak(test),
    })
}

fn service(test: &ServiceTest) -> String {
    let limit = |what: &str, ns: Option<u64>| {
        ns.map_or_else(String::new, |ns| format!(", {what} {}", time(ns)))
    };
    let loads = test
        .steps()
        .map(|step| FrameRate::new(test.load(step)).to_string());
    format!(
        "{}, {} each, drain {}; up to the CIR of {} at most {} lost{}{}",
        loads.collect::<Vec<_>>().join(", "),
        time(test.step_ns),
        time(test.drain_ns),
        FrameRate::new(test.cir),
        Ratio::from_ppm(test.loss_ppm.into()),
        limit("mean delay", test.delay_ns),
        limit("delay variation", test.variation_ns)
    )
}

fn soak(test: &Soak) -> String {
    let ratio = |ppm: u32| Ratio::from_ppm(ppm.into());
    let drift = test.drift;
    format!(
        "{} for {}, in points of {} and segments of {}{}; stable if at most {} is lost, nothing stalls, and over the \
         whole time the rate drifts by at most {}, the median latency by {}, the device's memory by {}{}",
        base_load(&test.load),
        time(test.duration_ns),
        time(test.point_ns),
        time(test.segment_ns),
        test.probe_ns.map_or_else(String::new, |probe_ns| format!(
            ", before and after which the capacity is probed for {}",
            time(probe_ns)
        )),
        ratio(test.loss_ppm),
        ratio(drift.rate_ppm),
        ratio(drift.latency_ppm),
        ratio(drift.memory_ppm),
        [
            ("CPU time", drift.cpu_ppm),
            ("capacity", drift.capacity_ppm)
        ]
        .into_iter()
        .filter_map(|(name, ppm)| Some(format!(", its {name} by {}", ratio(ppm?))))
        .collect::<String>()
    )
}

fn base_load(load: &BaseLoad) -> String {
    match load {
        BaseLoad::Given { frames_per_s } => FrameRate::new(*frames_per_s).to_string(),
        BaseLoad::Share { percent, .. } => format!("{percent} % of the throughput"),
    }
}

fn disturbed(test: &Disturbed) -> String {
    let load = base_load(&test.load);
    match &test.event {
        Event::Rekey {
            every_ns,
            duration_ns,
            throughput,
        } => format!(
            "{load} for {}, then the same with new keys for all tunnels every {}{}",
            time(*duration_ns),
            time(*every_ns),
            if *throughput {
                ", then the search once more with them"
            } else {
                ""
            }
        ),
        Event::Failover {
            failure,
            times,
            down_ns,
            watch_ns,
        } => format!(
            "under {load}, {} {}, for {}, each watched for {} afterwards",
            match failure {
                Failure::Crash => "the encryptor on gw2 dies",
                Failure::Link => "the link between the gateways goes down",
                Failure::Bypass => "the encryptor on gw1 dies while another route leads past it",
            },
            counted(*times, "time"),
            time(*down_ns),
            time(*watch_ns)
        ),
        Event::Reset {
            kind,
            times,
            watch_ns,
        } => format!(
            "under {load}, {} {}, each watched for {}",
            match kind {
                Reset::Process => "the encryptor on gw2 is killed and started again",
                Reset::Orderly => "the encryptor on gw2 is stopped in order and started again",
                Reset::Command => "the box at B's side restarts by its own command",
            },
            counted(*times, "time"),
            time(*watch_ns)
        ),
        Event::Setup { times, watch_ns } => format!(
            "under {load}, all tunnels taken down and set up {}, each watched for {} afterwards",
            counted(*times, "time"),
            time(*watch_ns)
        ),
        Event::Desync {
            cause,
            times,
            watch_ns,
        } => format!(
            "under {load}, {} {}, each watched for {}",
            match cause {
                Desync::WrongKeys => "gw2's keys are replaced by wrong ones",
                Desync::MissedRollover => "gw2 misses a rollover of gw1's keys",
            },
            counted(*times, "time"),
            time(*watch_ns)
        ),
        Event::Hostile {
            attack,
            percents,
            trial_ns,
        } => {
            let percents = percents.iter().map(|percent| format!("{percent} %"));
            format!(
                "{load} for {}, then the same with hostile packets ({}) at {} of the load",
                time(*trial_ns),
                attack.name(),
                percents.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

fn most(max_load: Option<u64>) -> String {
    max_load.map_or_else(
        || "the line rate or what the generator reaches".to_owned(),
        |load| FrameRate::new(load).to_string(),
    )
}

fn time(ns: u64) -> String {
    print(Duration::from_nanos(ns))
}
