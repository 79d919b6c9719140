//! Strategies for the readings around frame trials.

use super::text;
use journal::record::*;
use proptest::collection::vec;
use proptest::prelude::*;

pub(super) fn readings() -> impl Strategy<Value = TrialReadings> {
    let watch = proptest::option::of((any::<[u64; 3]>(), vec(text(), 0..3), any::<bool>()));
    let pair = || any::<Option<[u64; 2]>>();
    let work = any::<Option<(Option<u64>, Option<u64>, u64)>>();
    let machine = (any::<[u64; 2]>(), any::<[Option<u64>; 2]>());
    let clocks = any::<Option<(i64, i64, u64)>>();
    (pair(), watch, work, any::<[u64; 5]>(), machine, clocks).prop_map(
        |(cipher, watch, dut, drops, ([wall_ns, steal_ns], [foreign_ns, pressure_ns]), clocks)| {
            let [
                station,
                device,
                unattributed,
                station_sockets,
                device_sockets,
            ] = drops;
            TrialReadings {
                wall_ns,
                cipher: cipher.map(|[packets, bytes]| LinkTraffic { packets, bytes }),
                watch: watch.map(|(counts, examples, interrupted)| CipherWatch {
                    foreign_frames: counts[0],
                    marker_frames: counts[1],
                    foreign_bytes: counts[2],
                    clear_sealed_frames: counts[1],
                    examples,
                    interrupted,
                }),
                dut: dut.map(
                    |(taken_in_bytes, put_out_bytes, unaccounted_packets)| DutWork {
                        taken_in_bytes,
                        put_out_bytes,
                        lost_between_packets: put_out_bytes.map(|bytes| bytes / 3),
                        unaccounted_packets,
                    },
                ),
                dut_packets: [("gw2/cipher_rx_packets".to_owned(), wall_ns)].into(),
                links: [(
                    "b/b0".to_owned(),
                    EndTraffic {
                        received: station,
                        sent: device,
                    },
                )]
                .into(),
                drops: QueueDrops {
                    station,
                    device,
                    unattributed,
                    station_sockets,
                    device_sockets,
                },
                machine: MachineTime {
                    steal_ns,
                    foreign_ns,
                    pressure_ns,
                },
                machine_b: pressure_ns.map(|steal_ns| MachineTime {
                    steal_ns,
                    ..MachineTime::default()
                }),
                clocks: clocks.map(|(ahead_ns, faster_ppb, within_ns)| ClockAgreement {
                    ahead_ns,
                    faster_ppb,
                    within_ns,
                }),
            }
        },
    )
}
