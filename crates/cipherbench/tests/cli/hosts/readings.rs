//! What is read of the machines that two hosts are.

use super::Hosts;
use crate::support::{Sandbox, end, wait_for};
use serde_json::Value;

const CAMPAIGN: &str = "\
campaign: readings
repeats: 1
duts: [direct]
trials:
  - tcp: { mtu: 1400 B, streams: 1, duration: 1 s, warmup: 0 s }
  - load: { frame: 512 B, rate: 500 frames/s, duration: 1 s }
";

/// Gives a host another identity than that of the test's machine, and files of its own in place of
/// the kernel's: its CPU time and its energy counter.
const OWN_FILES: &str = "\
    cat /proc/sys/kernel/random/uuid > /run/boot; mount --bind /run/boot /proc/sys/kernel/random/boot_id; \
    cp /proc/stat /run/stat; mount --bind /run/stat /proc/stat; \
    mkdir -p /run/class/powercap/intel-rapl:0; cp -a /sys/class/net /run/class; mount --bind /run/class /sys/class";

/// Counts energy at some watts, and stolen time in ticks per second where there is any. A reader
/// must never find half a file.
const COUNT: &str = "\
import os, sys, time
watts, stolen = int(sys.argv[1]), int(sys.argv[2])
def put(path, text):
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(file, text.encode(), 0)
    os.close(file)
begun = time.monotonic()
while True:
    seconds = time.monotonic() - begun
    put('/run/class/powercap/intel-rapl:0/energy_uj', '%015d\\n' % (seconds * 1e6 * watts))
    if stolen:
        put('/run/stat', 'cpu  0 0 0 0 0 0 0 %012d 0 0\\n' % (seconds * stolen))
    time.sleep(0.005)
";

/// Of the second host alone the hypervisor takes eight cores, and each needs a power of its own.
pub(crate) fn each_host_is_read_for_itself() {
    const WATTS: [u64; 2] = [10, 30];
    let sandbox = Sandbox::new();
    let mut hosts = Hosts::new(&sandbox);
    sandbox.write("count.py", COUNT);
    for (number, host) in hosts.hosts.iter().enumerate() {
        // The first host's CPU time is that of the machine.
        let own_stat = ["umount /proc/stat", "true"][number];
        host.run(&format!("{OWN_FILES}; {own_stat}"));
        let [program, words @ ..] = host.enter();
        let mut count = sandbox.command(&program);
        count
            .args(words)
            .arg("python3")
            .arg(sandbox.path("count.py"));
        count.args([WATTS[number].to_string(), ["0", "800"][number].to_owned()]);
        let count = count.spawn().expect("python3 can be started");
        hosts.daemons.push(count);
        wait_for("a counter", || {
            let counter = "cat /sys/class/powercap/intel-rapl:0/energy_uj || true";
            host.run(counter).ends_with('\n').then_some(())
        });
    }
    end(&mut hosts.run(&sandbox, CAMPAIGN));
    let trials = sandbox.trials();
    assert_eq!(trials.len(), 2);
    for ((cell, _), outcome) in trials {
        assert_eq!(outcome["kind"], "invalid", "{cell}: {outcome}");
        let reasons = outcome["reasons"].as_array().expect("reasons");
        let blames_b = |reason: &&Value| {
            let reason = reason.as_str().expect("words");
            reason.starts_with("machine-was-ours: on host b, ")
        };
        assert!(
            reasons.iter().any(|it| blames_b(&it)),
            "{cell}: {reasons:?}"
        );
        let measured = &outcome["measured"];
        let stolen = |of: &Value| of["steal_ns"].as_u64().expect("a time");
        let cpu = &measured["cpu"];
        let wall_ns = cpu["wall_ns"].as_u64().expect("a time");
        assert!(stolen(&cpu["machine_b"]) > 4 * wall_ns, "{cpu}");
        assert!(stolen(cpu) < 4 * wall_ns, "{cpu}");
        for trial in measured["frames"]["trials"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let readings = &trial["readings"];
            let [a, b] = ["machine", "machine_b"].map(|name| stolen(&readings[name]));
            assert!(b > 0 && a < b, "{readings}");
        }
        let devices = measured["monitored"]["devices"]
            .as_array()
            .expect("machines");
        let power = |device: &Value| {
            let watts = &device["series"][0]["loads"][0]["mean_milli"];
            let name = device["name"].as_str().expect("a name").to_owned();
            (name, watts.as_u64().expect("a power") / 1000)
        };
        let powers: Vec<_> = devices.iter().map(power).collect();
        let [(a, of_a), (b, of_b)] = &powers[..] else {
            panic!("{devices:?}");
        };
        assert_eq!((&**a, &**b), ("host a", "host b"));
        // A step may come late on a busy machine.
        for (power, watts) in [(of_a, WATTS[0]), (of_b, WATTS[1])] {
            assert!((watts / 2..watts * 3 / 2).contains(power), "{powers:?}");
        }
    }
}
