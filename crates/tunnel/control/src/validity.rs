//! Notices about the end of this side's certificate.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// Upper limit of the notice period before a certificate expires.
const NOTICE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The longest time between two looks at the clock, which may be set.
const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);

/// An event of this gateway's certificate. Displays as the predicate of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateEvent {
    /// It is used from now on.
    InUse {
        /// When the certificate, or an intermediate certificate of it, expires.
        not_after: SystemTime,
    },
    /// It expires soon: less than a third of its time is left, and less than 30 days.
    ExpiresSoon {
        /// The time left.
        left: Duration,
    },
    /// It has expired.
    Expired,
    /// The files cannot be used, so the present certificate stays in use.
    NotReloaded {
        /// Why, for messages.
        reason: String,
    },
}

impl fmt::Display for CertificateEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const RENEW: &str = "create a new one, and send SIGHUP";
        match self {
            Self::InUse { not_after } => {
                let left = not_after.duration_since(SystemTime::now());
                let left = about(left.unwrap_or_default());
                write!(f, "is in use, and valid for another {left}")
            }
            Self::ExpiresSoon { left } => write!(f, "expires in {}: {RENEW}", about(*left)),
            Self::Expired => write!(f, "has expired, so no keys can be negotiated: {RENEW}"),
            Self::NotReloaded { reason } => {
                write!(
                    f,
                    "was not read again, and the present one stays in use: {reason}"
                )
            }
        }
    }
}

/// Reports once that a certificate expires soon, and once that it has expired.
pub(crate) struct Watch {
    valid: Range<SystemTime>,
    next: Option<Notice>,
}

#[derive(Clone, Copy)]
enum Notice {
    Soon,
    Expired,
}

impl Watch {
    pub(crate) const fn new(valid: Range<SystemTime>) -> Self {
        Self {
            valid,
            next: Some(Notice::Soon),
        }
    }

    /// Returns the event that is due.
    pub(crate) fn due(&mut self, now: SystemTime) -> Option<CertificateEvent> {
        // After the end there is no time left, instead of an error.
        let left = self.valid.end.duration_since(now).unwrap_or_default();
        // `take`, so that the end is reported once.
        if left.is_zero() {
            return self.next.take().map(|_| CertificateEvent::Expired);
        }
        let soon = matches!(self.next, Some(Notice::Soon)) && left <= self.notice();
        soon.then(|| {
            self.next = Some(Notice::Expired);
            CertificateEvent::ExpiresSoon { left }
        })
    }

    /// Time until the next call of [`due`](Self::due); `None`: none is needed.
    pub(crate) fn wait(&self, now: SystemTime) -> Option<Duration> {
        let at = match self.next? {
            Notice::Soon => self.valid.end - self.notice(),
            Notice::Expired => self.valid.end,
        };
        let wait = at.duration_since(now).unwrap_or_default();
        // The system's clock may be set meanwhile, and timers do not follow it.
        Some(wait.min(LOOK_EVERY))
    }

    /// How long before its end the certificate counts as about to expire.
    fn notice(&self) -> Duration {
        let whole = self.valid.end.duration_since(self.valid.start);
        // A third as well: a certificate of a day would be about to expire all its life.
        (whole.unwrap_or_default() / 3).min(NOTICE_MAX)
    }
}

/// An approximate time in words.
pub(crate) fn about(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn times_are_printed_in_the_unit_that_fits() {
        let s = Duration::from_secs;
        assert_eq!(about(s(70)), "70 s");
        assert_eq!(about(s(7000)), "116 min");
        assert_eq!(about(s(100_000)), "27 h");
        assert_eq!(about(s(1_000_000)), "11 days");
    }

    /// The events of a certificate, with the days after its creation, as its owner sees them.
    fn events(days: u32) -> Vec<(u32, CertificateEvent)> {
        let start = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        let end = start + days * DAY;
        let mut watch = Watch::new(start..end);
        let (mut now, mut events) = (start, Vec::new());
        while let Some(wait) = watch.wait(now) {
            assert!(wait <= LOOK_EVERY);
            now += wait;
            let days = now.duration_since(start).unwrap().as_secs() / DAY.as_secs();
            events.extend(watch.due(now).map(|event| (days as u32, event)));
        }
        events
    }

    #[test]
    fn an_owner_is_warned_in_time_and_once() {
        let soon = |left: u32| CertificateEvent::ExpiresSoon { left: left * DAY };
        let expired = CertificateEvent::Expired;
        assert_eq!(events(365), [(335, soon(30)), (365, expired.clone())]);
        assert_eq!(events(30), [(20, soon(10)), (30, expired)]);
    }

    #[test]
    fn a_clock_that_is_set_skips_no_expiry() {
        let start = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        let mut watch = Watch::new(start..start + 30 * DAY);
        assert_eq!(watch.due(start), None);
        assert_eq!(watch.due(start + 31 * DAY), Some(CertificateEvent::Expired));
        assert_eq!((watch.due(start), watch.wait(start)), (None, None));
    }
}
