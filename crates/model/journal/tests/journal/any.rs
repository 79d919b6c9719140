//! Proptest strategies for records, for the plan of [`fixture`](crate::fixture).

mod evidence;
mod fatigue;
mod monitored;
mod readings;
mod variation;

use crate::any_tester::cpu;
use crate::fixture::{cell_id, trial};
use evidence::evidence;
use fatigue::{fatigue, fatigued};
use journal::{Record, record::*};
use monitored::{captures, monitored};
use plan::PortKind;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use readings::readings;

/// Any text: newlines, quotes, control characters and all planes of Unicode.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[\\n\\r\\x00\"\\\\{}\u{2028}é]{0,8}"]
}

/// Any sequence of records that may follow the header.
pub(crate) fn records() -> impl Strategy<Value = Vec<Record>> {
    let one = prop_oneof![
        1 => (any::<u64>(), text()).prop_map(|(at_unix_ns, program)| Record::Resumed(Box::new(Resumed {
            at_unix_ns,
            program,
            environment: Environment::default(),
        }))),
        1 => any::<u64>().prop_map(|at_unix_ns| Record::Added(Added {
            at_unix_ns,
            repeats: 5,
            cells: vec![crate::fixture::header().plan.cells[0].id.clone()],
        })),
        1 => tuned().prop_map(Record::Tuned),
        6 => (0..2_usize, 1..=3_u32, outcome().boxed(), any::<i64>()).prop_map(
            |(cell, repeat, outcome, clock_step_ns)| {
                let mut record = trial(cell, repeat, outcome);
                if let Record::Trial(trial) = &mut record {
                    trial.clock_step_ns = clock_step_ns;
                }
                record
            }
        ),
        2 => soaked().prop_map(|soaked| Record::Soaked(Box::new(soaked))).boxed(),
        2 => fatigued().prop_map(|fatigued| Record::Fatigued(Box::new(fatigued))).boxed(),
        1 => any::<u64>().prop_map(|at_unix_ns| Record::End(End { at_unix_ns })),
    ];
    vec(one, 0..8)
}

fn tuned() -> impl Strategy<Value = Tuned> {
    let attempt = (
        parameters(),
        any::<u64>(),
        option::of(any::<u64>()),
        option::of(text()),
    )
        .prop_map(|(parameters, payload_bps, lost_ppm, error)| TuneAttempt {
            parameters,
            payload_bps,
            lost_ppm,
            error,
        });
    (0..2_usize, parameters(), vec(attempt, 0..3)).prop_map(|(cell, best, attempts)| Tuned {
        cell: cell_id(cell),
        best,
        attempts,
    })
}

fn parameters() -> impl Strategy<Value = ToolParameters> {
    any::<(Option<u16>, Option<u64>, Option<u32>, Option<u64>)>().prop_map(
        |(streams, window_bytes, datagram_bytes, rate_bps)| ToolParameters {
            streams,
            window_bytes,
            datagram_bytes,
            rate_bps,
        },
    )
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        any_measured()
            .prop_map(|measured| Outcome::Measured(Box::new(measured)))
            .boxed(),
        (vec(text(), 0..3), any_measured().boxed()).prop_map(|(reasons, measured)| {
            Outcome::Invalid {
                reasons,
                measured: Box::new(measured),
            }
        }),
        text().prop_map(|reason| Outcome::Failed { reason }),
    ]
}

fn any_measured() -> impl Strategy<Value = Measured> {
    let transfer = (
        any::<[u64; 3]>(),
        parameters(),
        any::<Option<u64>>(),
        any::<Option<[u64; 5]>>(),
    )
        .prop_map(|(bytes, parameters, retransmits, datagrams)| Transfer {
            parameters,
            duration_ns: bytes[0],
            sent_bytes: bytes[1],
            received_bytes: bytes[2],
            retransmits,
            datagrams: datagrams.map(|[sent, lost, station_lost, out_of_order, jitter_ns]| {
                Datagrams {
                    sent,
                    lost,
                    station_lost,
                    out_of_order,
                    copies: station_lost,
                    jitter_ns,
                    drain: (sent % 2 == 0).then_some(Drain {
                        time_ns: lost,
                        offered: sent,
                        offered_ns: jitter_ns,
                    }),
                }
            }),
            intervals: vec![Interval {
                start_ns: bytes[1],
                end_ns: bytes[0],
                bytes: bytes[2],
            }],
            tcp: retransmits.map(|_| TcpFacts::default()),
            reverse: retransmits.map(|_| Box::default()),
        });
    let latency = vec(any::<u64>(), 0..4).prop_map(|round_trips_ns| Latency {
        sent: round_trips_ns.first().copied().unwrap_or(0),
        received: round_trips_ns.len() as u64,
        round_trips_ns,
        ..Latency::default()
    });
    let figures = prop_oneof![
        Just(Figures::None),
        transfer.prop_map(Figures::Transfer),
        latency.prop_map(Figures::Latency),
        // Boxed: what they hold is too much for the stack of a test.
        frames()
            .prop_map(|found| Figures::Frames(Box::new(found)))
            .boxed(),
        device()
            .prop_map(|found| Figures::Device(Box::new(found)))
            .boxed(),
    ];
    let all = (figures, cpu(), evidence(), monitored(), captures());
    all.prop_map(|(figures, cpu, evidence, monitored, captures)| Measured {
        figures,
        cpu,
        evidence,
        monitored,
        captures,
    })
}

/// Any result of a frame test.
fn frames() -> impl Strategy<Value = FrameResult> {
    let burst = any::<(u64, u64, bool)>().prop_map(|(frames, lost, confirming)| BurstTrial {
        frames,
        lost,
        confirming,
    });
    let recovery = any::<([u64; 5], bool)>().prop_map(
        |([overload, relief, recovery_ns, overload_lost, relief_lost], recovered)| RecoveryTrial {
            overload,
            relief,
            recovery_ns,
            recovered,
            overload_lost,
            relief_lost,
        },
    );
    let disturbed = (vec(disturbance(), 1..3), option::of(throughput())).prop_map(
        |(disturbances, rekeyed_throughput)| {
            ProcedureRecord::Disturbed(DisturbedTrials {
                disturbances,
                rekeyed_throughput,
            })
        },
    );
    let found = prop_oneof![
        Just(ProcedureRecord::Nothing),
        vec(burst, 1..3).prop_map(ProcedureRecord::Bursts),
        recovery.prop_map(ProcedureRecord::Recovery),
        disturbed,
        vec(soak_segment(), 1..3).prop_map(ProcedureRecord::Soak),
    ];
    (
        vec(frame_trial(), 0..3),
        option::of(throughput()),
        vec(frame_latency(), 0..3),
        found,
        [frame_port(), frame_port()],
        any::<[Option<usize>; 2]>(),
    )
        .prop_map(
            |(
                trials,
                throughput,
                latency,
                found,
                [sender, receiver],
                [evidence_trial, flood_trial],
            )| {
                FrameResult {
                    trials,
                    throughput,
                    latency,
                    found,
                    sender,
                    receiver,
                    evidence_trial,
                    flood_trial,
                }
            },
        )
}

fn disturbance() -> impl Strategy<Value = Disturbance> {
    let reset = (
        any::<(Option<u64>, u64)>(),
        vec(text(), 0..3),
        vec(text(), 0..3),
    )
        .prop_map(|((silent_ns, bin_ns), before, after)| ResetRecord {
            silent_ns,
            bin_ns,
            before,
            after,
        });
    let event = (
        (text(), option::of(reset)),
        any::<[u64; 3]>(),
        any::<[Option<u64>; 3]>(),
    )
        .prop_map(
            |((name, reset), [at_ns, took_ns, lost], [first_ns, outage_ns, slowest_ns])| DutEvent {
                name,
                at_ns,
                took_ns,
                lost,
                first_ns,
                outage_ns,
                slowest_ns,
                reset,
            },
        );
    let attack = any::<(u16, u64, u64)>().prop_map(|(percent, sent, elapsed_ns)| AttackTrial {
        percent,
        sent,
        elapsed_ns,
    });
    let bin = any::<[u64; 3]>().prop_map(|[intended, received, latency_ns_max]| TimeBin {
        intended,
        received,
        latency_ns_max,
    });
    let bucket = any::<[u64; 2]>().prop_map(|[upto_ns, frames]| LatencyBucket { upto_ns, frames });
    (
        (any::<(usize, u64)>(), btree_map(text(), any::<u64>(), 0..3)),
        vec(event, 0..3),
        option::of(attack),
        vec(bin, 0..3),
        vec(bucket, 0..3),
    )
        .prop_map(
            |(((trial, bin_ns), dut_counters), events, attack, bins, histogram)| Disturbance {
                trial,
                events,
                attack,
                timeline: Timeline { bin_ns, bins },
                histogram,
                dut_counters,
            },
        )
}

/// Any result of crypto devices.
fn device() -> impl Strategy<Value = DeviceResult> {
    let facts = (text(), text(), vec((text(), text()), 0..3)).prop_map(|(member, name, more)| {
        DeviceFacts {
            member,
            facts: Facts {
                name,
                version: String::new(),
                more,
            },
        }
    });
    let outcome = prop_oneof![
        Just(KatOutcome::Pass),
        Just(KatOutcome::NonePublished),
        text().prop_map(KatOutcome::Error),
        text().prop_map(KatOutcome::NotOffered),
        (text(), any::<Option<u32>>(), text()).prop_map(|(input, first_differing, detail)| {
            KatOutcome::Wrong {
                input,
                first_differing,
                detail,
            }
        }),
    ];
    let row = (any::<(usize, u32)>(), text(), text(), outcome).prop_map(
        |((device, tried), algorithm, case, outcome)| KatRow {
            device,
            algorithm,
            case,
            tried,
            outcome,
        },
    );
    let proof = prop_oneof![
        Just(Proof::Counted),
        Just(Proof::CpuFell),
        Just(Proof::EqualsCpu),
        Just(Proof::Unknown),
    ];
    let speed = (
        any::<[u64; 6]>(),
        any::<Option<u64>>(),
        any::<Option<[u64; 3]>>(),
        option::of(proof),
    )
        .prop_map(|(counts, device_operations, reference, proof)| SpeedTrial {
            span_ns: counts[0],
            together_ns: counts[1],
            devices: vec![DeviceSpeed {
                operations: counts[2],
                cpu_ns: counts[3],
                slices: counts[4..].to_vec(),
                device_operations,
                ..DeviceSpeed::default()
            }],
            reference: reference.map(|[operations, cpu_ns, elapsed_ns]| CpuReference {
                operations,
                cpu_ns,
                elapsed_ns,
            }),
            proof,
        });
    let found = prop_oneof![
        text().prop_map(DeviceRecord::NotOffered),
        vec(row, 0..3).prop_map(DeviceRecord::Kat),
        speed.prop_map(DeviceRecord::Speed),
        vec(fatigue(), 1..3).prop_map(DeviceRecord::Fatigue),
    ];
    (vec(facts, 0..3), found).prop_map(|(devices, found)| DeviceResult { devices, found })
}

fn soaked() -> impl Strategy<Value = SoakProgress> {
    (
        (0..2_usize, 1..=3_u32, any::<u64>()),
        option::of(throughput()),
        frame_trial(),
        soak_segment(),
    )
        .prop_map(
            |((cell, repeat, load), throughput, trial, segment)| SoakProgress {
                cell: cell_id(cell),
                repeat,
                load,
                throughput,
                trial,
                segment,
            },
        )
}

fn soak_segment() -> impl Strategy<Value = SoakSegment> {
    let device = any::<(u64, [Option<u64>; 4])>().prop_map(
        |(wall_ns, [cpu_ns, resident_bytes, rekeys, desyncs])| DevicePoint {
            wall_ns,
            cpu_ns,
            resident_bytes,
            rekeys,
            desyncs,
        },
    );
    let point = (
        any::<[u64; 5]>(),
        any::<[Option<u64>; 2]>(),
        option::of(device),
    )
        .prop_map(
            |([at_ns, intended, received, silent_ns, max_ns], [p50_ns, p99_ns], device)| {
                SoakPoint {
                    at_ns,
                    intended,
                    received,
                    silent_ns,
                    p50_ns,
                    p99_ns,
                    max_ns,
                    device,
                }
            },
        );
    let bucket = any::<[u64; 2]>().prop_map(|[upto_ns, frames]| LatencyBucket { upto_ns, frames });
    (
        any::<(usize, u32, u64, u64)>(),
        vec(point, 0..3),
        vec(bucket, 0..3),
        vec((any::<u64>(), frame_trial()), 0..3),
    )
        .prop_map(
            |((trial, start, started_unix_ns, point_ns), points, histogram, probes)| SoakSegment {
                trial,
                start,
                started_unix_ns,
                point_ns,
                points,
                histogram,
                probes: probes
                    .into_iter()
                    .map(|(at_unix_ns, trial)| SoakProbe { at_unix_ns, trial })
                    .collect(),
            },
        )
}

fn frame_trial() -> impl Strategy<Value = FrameTrial> {
    let readings = option::of(readings().prop_map(Box::new));
    (any::<([u64; 8], [u64; 9])>(), readings).prop_map(
        |(
            (
                [
                    load,
                    duration_ns,
                    elapsed_ns,
                    intended,
                    sent,
                    sent_bytes,
                    received,
                    received_bytes,
                ],
                [
                    duplicated,
                    too_late,
                    reordered,
                    corrupted,
                    after_end,
                    receiver_dropped,
                    sender_dropped,
                    late,
                    frames,
                ],
            ),
            readings,
        )| FrameTrial {
            load,
            duration_ns,
            elapsed_ns,
            intended,
            sent,
            sent_bytes,
            received,
            received_bytes,
            duplicated,
            too_late,
            reordered,
            corrupted,
            after_end,
            receiver_dropped,
            sender_dropped,
            receiver_stood_ns_max: late / 2,
            late_ns_max: late,
            late_frames: frames,
            delay: (frames % 2 == 0).then_some(DelayTrend {
                start_ns: -3,
                growth_ns: frames.cast_signed(),
                rise_ns: 5,
            }),
            reserve: (frames % 3 == 0).then_some(Reserve {
                rate: load,
                frames,
                saved: frames / 2,
            }),
            directions: match load % 3 {
                0 => vec![FrameTrial::default(); 2],
                _ => Vec::new(),
            },
            readings,
        },
    )
}

fn throughput() -> impl Strategy<Value = SearchRecord> {
    let goal = (
        text(),
        any::<[Option<u64>; 2]>(),
        proptest::num::f64::POSITIVE | proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
        any::<[u32; 2]>(),
    )
        .prop_map(
            |(goal, [lower, upper], rate, [lower_trials, upper_trials])| GoalBounds {
                goal,
                lower,
                upper,
                conditional_throughput: rate,
                lower_trials,
                upper_trials,
                outcome: lower.map(|_| GoalOutcome::Regular),
            },
        );
    let end = prop_oneof![Just(SearchEnd::Reached), Just(SearchEnd::TimedOut)];
    (any::<[u64; 2]>(), text(), vec(goal, 0..3), end).prop_map(
        |([max_load, took_ns], max_load_by, goals, end)| SearchRecord {
            max_load,
            max_load_by,
            goals,
            end,
            took_ns,
        },
    )
}

fn frame_latency() -> impl Strategy<Value = LatencyTrial> {
    let bucket = any::<[u64; 2]>().prop_map(|[upto_ns, frames]| LatencyBucket { upto_ns, frames });
    let numbers = (any::<Option<u8>>(), any::<[u64; 2]>());
    let reflection = (vec(bucket.clone(), 0..4), any::<bool>());
    let reflection = reflection.prop_map(|(residence, from_arrival)| Reflection {
        residence,
        from_arrival,
    });
    (
        numbers,
        vec(bucket, 0..4),
        vec(variation::variation(), 0..3),
        option::of(reflection),
    )
        .prop_map(
            |((percent, [load, frames]), histogram, variation, round_trip)| LatencyTrial {
                percent,
                load,
                frames,
                directions: vec![histogram.clone()],
                histogram,
                variation,
                clocks: None,
                round_trip,
            },
        )
}

fn frame_port() -> impl Strategy<Value = FramePort> {
    let kernels = prop_oneof![Just(PortKind::Packet), Just(PortKind::Socket)];
    let others = prop_oneof![Just(PortKind::Xdp), Just(PortKind::Memory)];
    (
        option::of(prop_oneof![kernels, others]),
        option::of(text()),
        vec(text(), 0..3),
        any::<u16>(),
        option::of(text()),
    )
        .prop_map(|(kind, xdp_mode, passed_over, threads, engine)| FramePort {
            kind,
            xdp_mode,
            passed_over,
            threads,
            engine,
        })
}
