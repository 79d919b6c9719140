//! Any reading of the tester: CPU time by role, and where packets were lost.

use journal::record::*;
use proptest::prelude::*;

pub(crate) fn cpu() -> impl Strategy<Value = Cpu> {
    let others = (any::<[Option<u64>; 2]>(), any::<Option<[u64; 4]>>());
    (any::<[u64; 8]>(), others).prop_map(|(times, ([dut_ns, idle_ns], counted))| Cpu {
        wall_ns: times[0],
        stations_ns: times[1],
        station_a_ns: times[2],
        station_b_ns: times[3],
        dut_ns,
        kernel_ns: times[4],
        busy_ns: times[5],
        steal_ns: times[6],
        foreign_ns: times[7],
        idle_ns,
        machine_b: idle_ns.map(|idle_ns| MachineCpu {
            idle_ns,
            foreign_ns: times[1],
            ..MachineCpu::default()
        }),
        counted: counted.map(|[wall_ns, station_a, station_b, machine]| CpuCounts {
            wall_ns,
            cycles: CountsByRole {
                station_a,
                station_b,
                dut: dut_ns,
                machine,
            },
            instructions: CountsByRole {
                station_a: machine,
                ..CountsByRole::default()
            },
        }),
    })
}

/// None or one, by the numbers.
pub(crate) fn lost(seen: [u64; 5]) -> Vec<LostAt> {
    let count = |at: &str, packets| PathCount {
        at: at.to_owned(),
        packets,
    };
    let one = LostAt {
        places: vec![PathPlace::Gw1, PathPlace::CipherLink],
        before: count("gw1/a1 received", seen[0]),
        behind: count("gw2/w1 received", seen[1]),
        dropped: seen[2],
    };
    seen[1]
        .is_multiple_of(2)
        .then_some(one)
        .into_iter()
        .collect()
}
