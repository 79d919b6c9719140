//! The energy of the machine, from a folder of the form of `/sys/class/powercap`: virtual machines
//! have none of their own.

use crate::trials::{TestLab, cell, tcp};
use plan::{Adapter, ReadingKind};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 1] = [(
    "the_machines_energy_is_read_and_its_counters_wrap",
    energy_of_two_packages,
)];

/// Microjoules per microsecond of each of two packages.
const WATTS: u64 = 40;
/// Where their counters begin again, in microjoules: after 2.5 s.
const RANGE_UJ: u64 = 100_000_000;
/// Pause between two steps of a counter.
const STEP: Duration = Duration::from_millis(2);

fn energy_of_two_packages() {
    let folder = testing::folder().unwrap();
    let folder = folder.path();
    // The last one is a part of package 0, which counts its energy already.
    for package in ["intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"] {
        fs::create_dir(folder.join(package)).unwrap();
        write(folder, package, "max_energy_range_uj", RANGE_UJ - 1);
        write(folder, package, "energy_uj", 0);
    }
    let mut lab = TestLab::build();
    lab.lab.set_powercap(folder.display().to_string());
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let energy_uj = begun.elapsed().as_micros() as u64 * WATTS;
                // The second one is about to begin again.
                for (package, more) in [("intel-rapl:0", 0), ("intel-rapl:1", RANGE_UJ / 2)] {
                    write(folder, package, "energy_uj", (energy_uj + more) % RANGE_UJ);
                }
                std::thread::sleep(STEP);
            }
        });
        let _ending = Ending(&over);
        let measured = lab.measured(&cell(Adapter::Direct, 1, true, tcp(1)));
        // Each counter has begun again in some trial.
        while begun.elapsed().as_micros() as u64 * WATTS < RANGE_UJ {
            lab.measured(&cell(Adapter::Direct, 1, true, tcp(1)));
        }
        measured
    });
    let [machine] = &measured.monitored.devices[..] else {
        panic!("{:#?}", measured.monitored);
    };
    assert_eq!((&*machine.name, machine.is_machine), ("machine", true));
    let [power] = &machine.series[..] else {
        panic!("{machine:#?}");
    };
    assert_eq!((power.kind, &*power.unit), (ReadingKind::Power, "W"));
    assert!(power.missed == 0 && !power.points.is_empty(), "{power:#?}");
    let load = power.loads[0];
    // A step may come late on a busy machine.
    let watts = load.mean_milli as f64 / 1000.0;
    let expected = 2.0 * WATTS as f64;
    assert!(
        (0.5 * expected..1.5 * expected).contains(&watts),
        "{power:#?}"
    );
}

/// Ends the counters, however the test ends.
struct Ending<'o>(&'o AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Replaces the number in a file at once, as the kernel shows it.
fn write(folder: &Path, package: &str, name: &str, value: u64) {
    let new = folder.join("new");
    fs::write(&new, format!("{value}\n")).unwrap();
    fs::rename(new, folder.join(package).join(name)).unwrap();
}
