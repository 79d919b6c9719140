//! Lines about tunnels on standard error: limited, and none lost to a flood of others.
//!
//! Each kind of event of each tunnel has a budget, and all tunnels together one per kind. A line
//! that exceeds them is kept until there is room ([`Journal::flush`], once a second), and replaced
//! only by a newer one of the same kind and tunnel: then the newer one says how many were left out.
//! So the last event of each kind and tunnel is always logged.

use keying::rollover::{Allowance, Budget};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::Duration;
#[cfg(not(test))]
use std::time::Instant;

/// If a thousand tunnels lose their peers together, they must not log a thousand lines in a second.
const OF_KIND: Allowance = Allowance {
    burst: 20,
    refill: Duration::from_millis(50),
};
/// A peer that flaps is not worth more.
const OF_TUNNEL: Allowance = Allowance {
    burst: 6,
    refill: Duration::from_secs(5),
};

/// Kinds of events. None can hide another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Certificate,
    Keys,
    Failed,
    Lost,
    Back,
    Expired,
    WithoutQkd,
    Desync,
    DesyncOver,
}

/// A tunnel by its place, or `None` for the gateway.
type Subject = (Option<u16>, Kind);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Journal {
    #[cfg(not(test))]
    began: Instant,
    of_kinds: BTreeMap<Kind, Budget>,
    entries: BTreeMap<Subject, Entry>,
    /// The start of the next flush, which advances so that no subject waits for the others
    /// repeatedly.
    turn: usize,
    #[cfg(test)]
    skipped: Duration,
    #[cfg(test)]
    written: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    budget: Budget,
    waiting: Option<String>,
    left_out: u64,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            #[cfg(not(test))]
            began: Instant::now(),
            of_kinds: BTreeMap::new(),
            entries: BTreeMap::new(),
            turn: 0,
            #[cfg(test)]
            skipped: Duration::ZERO,
            #[cfg(test)]
            written: Vec::new(),
        }
    }
}

impl Journal {
    /// Writes a line, now or as soon as there is room.
    pub(super) fn log(&mut self, tunnel: Option<u16>, kind: Kind, line: String) {
        let subject = (tunnel, kind);
        let entry = self.entries.entry(subject).or_insert_with(|| Entry {
            budget: Budget::new(OF_TUNNEL),
            waiting: None,
            left_out: 0,
        });
        // The newer line replaces the older one: the last state of a tunnel is the one that
        // matters.
        entry.left_out += u64::from(entry.waiting.replace(line).is_some());
        self.try_write(subject);
    }

    /// Writes the waiting lines that the limits permit now.
    pub(super) fn flush(&mut self) {
        let waits =
            |(subject, entry): (&Subject, &Entry)| entry.waiting.is_some().then_some(*subject);
        let mut waiting: Vec<_> = self.entries.iter().filter_map(waits).collect();
        if waiting.is_empty() {
            return;
        }
        self.turn = self.turn.wrapping_add(1);
        let first = self.turn % waiting.len();
        // Otherwise the first subjects in the map would use the room of their kind each second.
        waiting.rotate_left(first);
        for subject in waiting {
            self.try_write(subject);
        }
    }

    fn try_write(&mut self, subject: Subject) {
        let now = self.now();
        let of_kind = self
            .of_kinds
            .entry(subject.1)
            .or_insert_with(|| Budget::new(OF_KIND));
        let Some(entry) = self.entries.get_mut(&subject) else {
            return;
        };
        // The kind's budget is only looked at: taken first, it would be lost when the tunnel's is
        // empty.
        if of_kind.ready_at() > now || !entry.budget.take(now) {
            return;
        }
        of_kind.take(now);
        let Some(mut line) = entry.waiting.take() else {
            return;
        };
        let left_out = std::mem::take(&mut entry.left_out);
        if left_out > 0 {
            line += &format!(" ({left_out} earlier events of this kind were not logged)");
        }
        // A closed standard error must not end a thread.
        let _ = writeln!(io::stderr(), "{line}");
        #[cfg(test)]
        self.written.push(line);
    }

    #[cfg(not(test))]
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    #[cfg(test)]
    fn now(&self) -> Duration {
        self.skipped
    }

    /// Lets time pass.
    #[cfg(test)]
    pub(super) fn skip(&mut self, time: Duration) {
        self.skipped += time;
        self.flush();
    }

    /// All lines so far.
    #[cfg(test)]
    pub(super) fn written(&self) -> Vec<String> {
        self.written.clone()
    }
}

#[cfg(test)]
mod attack {
    use super::*;

    #[test]
    fn a_flood_of_one_kind_hides_no_other_and_its_last_event_is_logged() {
        let mut journal = Journal::default();
        for round in 0..20_000 {
            let tunnel = Some(round % 100);
            journal.log(
                tunnel,
                Kind::Lost,
                format!("tunnel {tunnel:?} lost, {round}"),
            );
            if round % 100 == 0 {
                journal.skip(Duration::from_millis(100));
            }
        }
        journal.log(None, Kind::Certificate, "certificate".to_owned());
        journal.log(Some(7), Kind::Expired, "expired".to_owned());
        let written = journal.written();
        let hidden = ["certificate", "expired"];
        let hidden = hidden
            .iter()
            .filter(|line| !written.iter().any(|it| it == *line));
        testing::attack(
            "lines of other kinds hidden by a flood of lost peers",
            hidden.count(),
            0,
        );
        // 20 s passed.
        testing::attack(
            "lines of a flood of lost peers in 20 s",
            written.len() - 2,
            20 + 400,
        );
        journal.skip(Duration::from_secs(60));
        for _ in 0..20 {
            journal.skip(Duration::from_secs(1));
        }
        let last = (19_900..20_000).filter(|round| {
            let ending = format!("lost, {round}");
            !journal.written().iter().any(|line| line.contains(&ending))
        });
        testing::attack(
            "last events of a kind that are never logged",
            last.count(),
            0,
        );
        let counted = journal
            .written()
            .iter()
            .any(|line| line.contains("were not logged"));
        assert!(counted);
    }

    #[test]
    fn certificate_events_in_a_flood_are_all_logged() {
        let mut journal = Journal::default();
        let mut logged = 0;
        for number in 0..20 {
            for flood in 0..200 {
                let tunnel = Some(flood % 3);
                journal.log(tunnel, Kind::Failed, format!("failed {flood}"));
                journal.log(tunnel, Kind::Lost, format!("lost {flood}"));
            }
            journal.log(None, Kind::Certificate, format!("certificate {number}."));
            journal.skip(Duration::from_secs(5));
            logged += 1;
        }
        let written = journal.written();
        let lost = (0..logged).filter(|number| {
            let line = format!("certificate {number}.");
            !written.contains(&line)
        });
        testing::attack("certificate events lost in a flood", lost.count(), 0);
    }
}
