//! Fault injection at a KME: which faults, for which calls, and how often.

use super::call::Call;
use std::time::Duration;
use yaml::Absent::{Depends, Required};
use yaml::{Key, Map, Node, Reported, Value};

const FAULT: Value = Value::Name(|| Fault::ALL.map(Fault::name).to_vec());
const CALL: Value = Value::Name(|| Call::ALL.map(Call::name).to_vec());

/// Keys of a fault.
#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    Key::new("fault", FAULT, Required, "The fault."),
    // Clients time out much sooner than after the longest delay.
    Key::new("delay",
        Value::Time(Duration::from_millis(1), Duration::from_secs(60)),
        Depends("with the fault `delay`"),
        "The time by which answers are delayed."),
    Key::new("call", CALL, Depends("all that the fault can affect"), "The affected call."),
    Key::new("count", Value::Integer(1, u64::MAX), Depends("until it is cleared"),
        "Number of affected calls."),
];

/// Keys of a request to arm or clear a fault.
#[rustfmt::skip]
pub(super) const REQUEST: &[Key] = &[
    Key::new("kme", Value::Text, Depends("all"), "The KME with the fault."),
    KEYS[0],
    KEYS[1],
    KEYS[2],
    KEYS[3],
];

/// A fault of one KME.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Calls fail with status 503.
    Unavailable,
    /// Responses are delayed.
    Delay,
    /// The KME's links have no keys: requests fail, and the status reports 0 keys.
    Depleted,
    /// A delivered key differs from the other side's key with the same ID.
    WrongKey,
    /// "Get key" delivers the previous key again, with its ID; "Get key with key IDs" keeps the
    /// keys that it delivers, so that they can be fetched again.
    DoubleDelivery,
    /// Keys that the other side has are lost: "Get key with key IDs" does not find them, now or
    /// later.
    LostKey,
    /// Responses are not JSON.
    Garbage,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Unavailable,
        Self::Delay,
        Self::Depleted,
        Self::WrongKey,
        Self::DoubleDelivery,
        Self::LostKey,
        Self::Garbage,
    ];

    /// The fault's name in configurations, requests and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Delay => "delay",
            Self::Depleted => "depleted",
            Self::WrongKey => "wrong_key",
            Self::DoubleDelivery => "double_delivery",
            Self::LostKey => "lost_key",
            Self::Garbage => "garbage",
        }
    }

    /// Whether the fault can affect the call.
    pub(super) const fn concerns(self, call: Call) -> bool {
        match self {
            Self::Unavailable | Self::Delay | Self::Garbage => true,
            Self::Depleted => matches!(call, Call::EncKeys),
            Self::WrongKey | Self::DoubleDelivery => !matches!(call, Call::Status),
            Self::LostKey => matches!(call, Call::DecKeys),
        }
    }
}

/// An armed fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Armed {
    /// The fault.
    pub fault: Fault,
    /// Delay of responses; zero for faults other than [`Fault::Delay`].
    pub delay: Duration,
    /// The affected call; `None`: all that the fault can affect.
    pub call: Option<Call>,
    /// Number of affected calls; `None`: until it is cleared.
    pub count: Option<u64>,
}

impl Armed {
    /// Affects all calls that the fault can affect, until it is cleared.
    #[must_use]
    pub const fn new(fault: Fault) -> Self {
        Self {
            fault,
            delay: Duration::ZERO,
            call: None,
            count: None,
        }
    }

    fn strikes(&self, fault: Fault, call: Call) -> bool {
        self.fault == fault && self.call.is_none_or(|only| only == call)
    }
}

/// Reads a fault: an entry of `start_with` in the configuration, or a body sent to `/faults`.
pub(super) fn read(map: &Map<'_>) -> Result<Armed, Reported> {
    let fault = map.required("fault").and_then(|node| {
        let known = Fault::ALL.map(|fault| (fault.name(), fault));
        node.one_of("fault", &known)
    });
    let delay = map.optional("delay");
    let call = map.optional("call").map(|node| read_call(node, fault));
    let count = map.find("count");
    let delay = match (fault?, delay) {
        (Fault::Delay, Some(_)) => map.get("delay"),
        (Fault::Delay, None) => Err(map.node().mistake(
            "the key `delay` is missing: it says how long the delay is",
            "add it, for example `delay: 200 ms`",
        )),
        (fault, Some(node)) => Err(node.mistake(
            format!("the fault `{}` has no delay", fault.name()),
            "remove `delay`, or write `fault: delay`",
        )),
        (_, None) => Ok(Duration::ZERO),
    };
    Ok(Armed {
        fault: fault?,
        delay: delay?,
        call: call.transpose()?,
        count: count?,
    })
}

fn read_call(node: Node<'_>, fault: Result<Fault, Reported>) -> Result<Call, Reported> {
    let call = node.one_of("call", &Call::ALL.map(|call| (call.name(), call)))?;
    match fault {
        Ok(fault) if !fault.concerns(call) => Err(node.mistake(
            format!(
                "the fault `{}` cannot strike the call `{}`",
                fault.name(),
                call.name()
            ),
            "remove `call`: then it strikes all calls that it can affect",
        )),
        _ => Ok(call),
    }
}

/// The armed faults of one KME, and how often each fault has struck.
#[derive(Debug, Default)]
pub(super) struct Faults {
    armed: Vec<Armed>,
    struck: [u64; Fault::ALL.len()],
}

impl Faults {
    /// Arms a fault. It replaces an armed fault of the same kind for the same calls.
    pub(super) fn arm(&mut self, armed: Armed) {
        self.armed
            // Two of a kind would add up their counts.
            .retain(|old| (old.fault, old.call) != (armed.fault, armed.call));
        self.armed.push(armed);
    }

    /// Clears one fault, or all.
    pub(super) fn clear(&mut self, fault: Option<Fault>) {
        self.armed
            .retain(|armed| fault.is_some_and(|fault| armed.fault != fault));
    }

    /// Applies the fault to a call if it is armed for it, and counts it. Returns the fault if it
    /// strikes.
    pub(super) fn strike(&mut self, fault: Fault, call: Call) -> Option<Armed> {
        let place = self
            .armed
            .iter()
            // The first that was armed strikes first, and only it counts down.
            .position(|armed| armed.strikes(fault, call) && fault.concerns(call))?;
        let armed = self.armed[place];
        match &mut self.armed[place].count {
            Some(1) => {
                self.armed.remove(place);
            }
            Some(count) => *count -= 1,
            None => {}
        }
        self.struck[fault as usize] += 1;
        Some(armed)
    }

    /// Whether the fault is armed for the call.
    pub(super) fn is_armed(&self, fault: Fault, call: Call) -> bool {
        self.armed.iter().any(|armed| armed.strikes(fault, call))
    }

    /// The armed faults, in the order in which they were armed.
    pub(super) fn armed(&self) -> &[Armed] {
        &self.armed
    }

    /// Number of calls that the fault has struck.
    pub(super) fn struck(&self, fault: Fault) -> u64 {
        self.struck[fault as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Armed, String> {
        yaml::parse("request", text)
            .and_then(|document| document.decode(|root| root.keys(KEYS, read)))
            .map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn is_read_from_yaml_and_from_json() {
        let delay = Armed {
            delay: Duration::from_millis(200),
            call: Some(Call::EncKeys),
            count: Some(3),
            ..Armed::new(Fault::Delay)
        };
        let yaml = "{ fault: delay, delay: 200 ms, call: enc_keys, count: 3 }";
        let json = r#"{"fault": "delay", "delay": "200 ms", "call": "enc_keys", "count": 3}"#;
        assert_eq!(parse(yaml), Ok(delay));
        assert_eq!(parse(json), Ok(delay));
        for fault in Fault::ALL {
            if fault != Fault::Delay {
                let text = format!("fault: {}", fault.name());
                assert_eq!(parse(&text), Ok(Armed::new(fault)));
            }
        }
    }

    #[test]
    fn a_fault_that_could_never_strike_is_refused() {
        for (text, words) in [
            ("fault: lost", "lost_key"),
            ("fault: delay", "how long the delay is"),
            ("{ fault: garbage, delay: 1 s }", "has no delay"),
            ("{ fault: delay, delay: 2 min }", "from 1 ms to 1 min"),
            ("{ fault: lost_key, call: status }", "cannot strike"),
            ("{ fault: depleted, count: 0 }", "from 1 to"),
            ("{ fault: depleted, every: 2 }", "`every` is not known"),
        ] {
            let mistakes = parse(text).unwrap_err();
            assert!(mistakes.contains(words), "{text}: {mistakes}");
        }
    }

    #[test]
    fn strikes_affected_calls_as_often_as_configured() {
        let mut faults = Faults::default();
        faults.arm(Armed {
            count: Some(2),
            ..Armed::new(Fault::WrongKey)
        });
        let mut strike = |call| faults.strike(Fault::WrongKey, call).is_some();
        assert!(!strike(Call::Status));
        assert!(strike(Call::EncKeys));
        assert!(strike(Call::DecKeys));
        assert!(!strike(Call::EncKeys));
        assert_eq!(faults.struck(Fault::WrongKey), 2);
        assert!(faults.armed().is_empty());
    }

    #[test]
    fn strikes_until_it_is_cleared() {
        let mut faults = Faults::default();
        let only_dec = Armed {
            call: Some(Call::DecKeys),
            ..Armed::new(Fault::Unavailable)
        };
        faults.arm(only_dec);
        faults.arm(only_dec);
        faults.arm(Armed::new(Fault::Garbage));
        assert_eq!(faults.armed().len(), 2);
        for _ in 0..5 {
            assert!(faults.strike(Fault::Unavailable, Call::DecKeys).is_some());
        }
        assert_eq!(faults.strike(Fault::Unavailable, Call::EncKeys), None);
        faults.clear(Some(Fault::Unavailable));
        assert_eq!(faults.strike(Fault::Unavailable, Call::DecKeys), None);
        assert_eq!(faults.armed(), [Armed::new(Fault::Garbage)]);
        faults.clear(None);
        assert!(faults.armed().is_empty());
    }
}
