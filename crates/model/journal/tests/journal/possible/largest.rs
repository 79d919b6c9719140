//! The largest numbers of a journal that was changed: no arithmetic may panic.

use super::*;
use plan::estimate::{noisy_ns, trial_ns};
use plan::{
    Adapter, BaseLoad, Disturbed, DriftBounds, Event, External, Failure, LatencyTest, Soak,
    ThroughputSearch,
};
use search::DelayTrend;

/// The largest count or time of a plan that is read.
const MOST: u64 = 100_000_000_000_000_000;

/// A test of frames by this procedure.
fn test_of(procedure: Procedure) -> Measurement {
    let Measurement::Frames(test) = frames() else {
        unreachable!("it is one of frames");
    };
    Measurement::Frames(FrameTest { procedure, ..test })
}

fn search() -> ThroughputSearch {
    ThroughputSearch {
        profile: plan::Profile::Fast,
        goals: plan::Profile::Fast.goals(),
        max_load: None,
        min_load: 1,
        drain_ns: MOST,
        timeout_ns: MOST,
    }
}

#[test]
fn of_a_plan_have_an_estimate() {
    let load = BaseLoad::Given { frames_per_s: MOST };
    let event = |event: Event| {
        Procedure::Disturbed(Disturbed {
            load: load.clone(),
            event,
        })
    };
    let (times, down_ns, watch_ns) = (u32::MAX, MOST, MOST);
    let procedures = [
        event(Event::Setup { times, watch_ns }),
        event(Event::Failover {
            failure: Failure::Link,
            times,
            down_ns,
            watch_ns,
        }),
        Procedure::Latency(LatencyTest {
            search: search(),
            percents: vec![1; 100],
            trial_ns: MOST,
            trials: u32::MAX,
            path: plan::LatencyPath::OneWay,
        }),
        Procedure::Soak(Soak {
            load: load.clone(),
            duration_ns: MOST,
            point_ns: 0,
            segment_ns: 0,
            probe_ns: Some(MOST),
            loss_ppm: 0,
            drift: DriftBounds {
                rate_ppm: 0,
                latency_ppm: 0,
                memory_ppm: 0,
                cpu_ppm: None,
                capacity_ppm: None,
            },
        }),
    ];
    for procedure in procedures {
        let mut plan = header().plan;
        let cell = &mut plan.cells[0];
        cell.measurement = test_of(procedure);
        cell.dut.adapter = Adapter::External(External {
            boxes: Vec::new(),
            carrier: None,
            format: None,
            ports: Vec::new(),
            bump: false,
            gateway: None,
            tunnels: 0,
            suite_word: None,
            limit_ns: MOST,
            ready_ns: MOST,
        });
        assert!(trial_ns(cell, 1) >= MOST);
        assert!(noisy_ns(&plan) >= MOST);
    }
}

#[test]
fn of_an_invalid_trial_are_counted_as_far_as_they_go() {
    let direction = FrameTrial {
        load: u64::MAX,
        duration_ns: u64::MAX,
        elapsed_ns: u64::MAX,
        intended: u64::MAX,
        sent: u64::MAX,
        received: u64::MAX,
        delay: Some(DelayTrend {
            start_ns: 0,
            growth_ns: i64::MAX,
            rise_ns: i64::MAX,
        }),
        ..FrameTrial::default()
    };
    let trial = FrameTrial {
        directions: vec![direction.clone(), direction.clone()],
        ..direction
    };
    assert!(trial.queued() > u64::MAX / 4);
    assert!(!trial.took_too_long());
    assert!(!trial.counts().is_high_loss(1_000_000));
}

#[test]
fn of_counters_are_added_as_far_as_they_go() {
    let names = [
        "OutSegs",
        "OutMsgs",
        "FragCreates",
        "InNoECTPkts",
        "InCEPkts",
    ];
    let stack = names.map(|name| (format!("gw1/{name}"), u64::MAX));
    let settings = PathSettings {
        stack: stack.into(),
        ..PathSettings::default()
    };
    assert_eq!(settings.ip_packets_sent("gw1"), Some(u64::MAX));
    assert_eq!(settings.ip_packets_received("gw1"), Some(u64::MAX));
    assert!(!LostAt::is_clear(u64::MAX, u64::MAX, u64::MAX));
}

#[test]
fn of_a_histogram_are_refused() {
    let bucket = LatencyBucket {
        upto_ns: 1,
        frames: u64::MAX,
    };
    let latency = LatencyTrial {
        directions: vec![vec![bucket], vec![bucket]],
        ..LatencyTrial::default()
    };
    let result = FrameResult {
        latency: vec![latency],
        ..FrameResult::default()
    };
    let procedure = Procedure::Load(Load {
        frames_per_s: Some(1),
        duration_ns: 1,
    });
    let outcome = Outcome::Measured(Box::new(measured(Figures::Frames(Box::new(result)))));
    let reasons = reasons(&test_of(procedure), outcome);
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("frames of a histogram")),
        "{reasons:?}"
    );
}
