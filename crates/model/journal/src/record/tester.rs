//! Bounds of a tester's disturbance for warnings and for invalid figures. The evidence and the
//! report use the same ones.

use super::{Cpu, FrameTrial};
use plan::HostName;

impl Cpu {
    /// Shortest span for a statement about the machine, in nanoseconds: its time is counted in
    /// steps of 10 ms.
    pub const MACHINE_FROM_NS: u64 = 500_000_000;
    /// CPU time used by others that is worth a warning if exceeded, in per cent of one core.
    pub const TAKEN_PERCENT: u64 = 10;
    /// CPU time used by others that spoils the figure if exceeded, in per cent of one core, unless
    /// the machine was idle for at least that time.
    pub const TAKEN_PERCENT_MOST: u64 = 50;

    /// Returns the times of the machine of the path with more CPU time used by others, preferring a
    /// machine that the path had to wait for, with the name of its host if there are two.
    #[must_use]
    pub fn most_taken(self) -> (Option<HostName>, Self) {
        let Some(b) = self.machine_b else {
            return (None, self);
        };
        let of_a = Self {
            machine_b: None,
            ..self
        };
        let of_b = Self {
            busy_ns: b.busy_ns,
            steal_ns: b.steal_ns,
            foreign_ns: b.foreign_ns,
            idle_ns: Some(b.idle_ns),
            ..of_a
        };
        let taken = |cpu: &Self| (cpu.was_taken_from_path(), cpu.taken_ns());
        // Host A wins a tie, so that equal hosts always give one answer.
        if taken(&of_b) > taken(&of_a) {
            (Some(HostName::B), of_b)
        } else {
            (Some(HostName::A), of_a)
        }
    }

    /// CPU time that other programs and the hypervisor took of A's machine, in nanoseconds.
    #[must_use]
    pub const fn taken_ns(&self) -> u64 {
        self.foreign_ns.saturating_add(self.steal_ns)
    }

    /// The same in per cent of one core; `None` over too short a time.
    #[must_use]
    pub const fn taken_percent(&self) -> Option<u64> {
        // The kernel counts in ticks of 10 ms: over less the share would be chance.
        if self.wall_ns < Self::MACHINE_FROM_NS {
            return None;
        }
        Some(self.taken_ns().saturating_mul(100) / self.wall_ns)
    }

    /// Whether the path waited for CPU time that others used: more than a figure tolerates, and
    /// more than the cores were idle.
    #[must_use]
    pub fn was_taken_from_path(&self) -> bool {
        let percent = self.taken_percent().unwrap_or(0);
        // A machine that was idle for longer had room: nothing waited for the taken time.
        let waited = self.idle_ns.is_some_and(|idle| idle < self.taken_ns());
        percent > Self::TAKEN_PERCENT_MOST && waited
    }
}

impl FrameTrial {
    /// A burst that leaves this late means that the sender stalled; a receiver that does not poll
    /// its port for this long has stalled. In nanoseconds.
    pub const STALL_NS: u64 = 20_000_000;
    /// A frame that left later than this after its intended time is late, in nanoseconds.
    pub const LATE_NS: u64 = 1_000_000;
    /// Share of frames over 1 ms late that is worth a warning if exceeded, in per cent.
    pub const LATE_PERCENT: u64 = 5;
    /// Share of frames over 1 ms late that means another load if exceeded, in per cent.
    pub const LATE_PERCENT_MOST: u64 = 10;

    /// Whether the sender of a paced load stalled, or sent late often enough that its frames came
    /// in bursts.
    #[must_use]
    pub fn sender_stalled(&self) -> bool {
        self.load > 0
            && (self.late_ns_max >= Self::STALL_NS || self.is_late_beyond(Self::LATE_PERCENT))
    }

    /// Whether the receiver stalled, so that frames waited for it.
    #[must_use]
    pub const fn receiver_stalled(&self) -> bool {
        self.receiver_stood_ns_max >= Self::STALL_NS
    }

    /// Whether too many frames of a paced load left late, in any direction, for the load to be the
    /// one set.
    #[must_use]
    pub fn came_in_bursts(&self) -> bool {
        self.load > 0 && self.is_late_beyond(Self::LATE_PERCENT_MOST)
    }

    fn is_late_beyond(&self, percent: u64) -> bool {
        let is_late =
            |own: &Self| own.late_frames.saturating_mul(100) > own.sent.saturating_mul(percent);
        self.each_direction().iter().any(is_late)
    }
}
