//! The busiest CPU of this host over a time, from `/proc/stat`.

use crate::findings::CpuUse;
use std::fs;

/// The CPUs' counters at a time.
pub(crate) struct CpuTimes(Vec<Times>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    cpu: u16,
    total: u64,
    idle: u64,
    softirq: u64,
}

impl CpuTimes {
    pub(crate) fn now() -> Self {
        // An unreadable file has no CPU, and so no busiest one.
        Self(parse(&fs::read_to_string("/proc/stat").unwrap_or_default()))
    }

    /// The busiest CPU since `self` was read.
    pub(crate) fn busiest(&self) -> Option<CpuUse> {
        busiest(&self.0, &Self::now().0)
    }
}

fn parse(stat: &str) -> Vec<Times> {
    let times = |line: &str| {
        let (name, numbers) = line.strip_prefix("cpu")?.split_once(' ')?;
        let cpu = name.parse().ok()?;
        // user nice system idle iowait irq softirq steal (proc(5)); guests are part of the users.
        let numbers: Vec<u64> = numbers
            .split_ascii_whitespace()
            .take(8)
            .map_while(|number| number.parse().ok())
            .collect();
        (numbers.len() == 8).then(|| Times {
            cpu,
            total: numbers.iter().sum(),
            idle: numbers[3] + numbers[4],
            softirq: numbers[6],
        })
    };
    stat.lines().filter_map(times).collect()
}

fn busiest(before: &[Times], after: &[Times]) -> Option<CpuUse> {
    let used = |after: &Times| {
        let before = before.iter().find(|before| before.cpu == after.cpu)?;
        let total = after.total.checked_sub(before.total).filter(|t| *t > 0)?;
        // The kernel's idle time may decrease (proc(5)).
        let idle = after.idle.saturating_sub(before.idle).min(total);
        let softirq = after.softirq.saturating_sub(before.softirq).min(total);
        let percent = |part: u64| (part * 100 / total) as u8;
        Some(CpuUse {
            cpu: after.cpu,
            busy_percent: percent(total - idle),
            softirq_percent: percent(softirq),
        })
    };
    let used = after.iter().filter_map(used);
    used.max_by_key(|used| used.busy_percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_cpu_has_its_share_of_software_interrupts() {
        let before = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 10 100 0 0 5 0 0 0\ncpu1 0 0 0 50 0 0 0 0 0 0\nintr 5\n";
        let after = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 10 190 10 0 5 0 0 0\ncpu1 30 0 5 60 0 0 55 0 7 0\n";
        let found = busiest(&parse(before), &parse(after)).unwrap();
        let expected = CpuUse {
            cpu: 1,
            busy_percent: 90,
            softirq_percent: 55,
        };
        assert_eq!(found, expected);
        assert_eq!(busiest(&[], &parse(after)), None);
        assert_eq!(busiest(&parse(after), &parse(after)), None);
        assert!(!CpuTimes::now().0.is_empty());
    }
}
