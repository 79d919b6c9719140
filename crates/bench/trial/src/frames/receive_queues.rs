//! The receive queues of a card: its driver distributes arriving frames among them by a hash (RSS).
//!
//! 1. Read the driver's table (`ethtool -x`) and the fields of its hash (`ethtool -n`).
//! 2. Register commands that restore both with the station, which runs them at its end if this run
//!    dies.
//! 3. Set the table to the first queues, one for each thread, and the hash to addresses and ports,
//!    which differ between test flows.
//!
//! For a driver without a table nothing is set. The number of queues stays the same: on many cards
//! a change takes the link down.

use std::time::Duration;
use testbed::protocol::{Program, Request, Response};
use testbed::{Node, Result};

const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// Addresses and ports, in the notation of `ethtool -N`.
const ADDRESSES_AND_PORTS: &str = "sdfn";
/// The lines of `ethtool -n` with the fields of a hash, and their letters.
const FIELDS: [(&str, char); 7] = [
    ("L2DA", 'm'),
    ("VLAN tag", 'v'),
    ("L3 proto", 't'),
    ("IP SA", 's'),
    ("IP DA", 'd'),
    ("L4 bytes 0 & 1", 'f'),
    ("L4 bytes 2 & 3", 'n'),
];

/// A card's settings for a trial, restored on drop.
pub(crate) struct ReceiveQueues<'a> {
    node: &'a dyn Node,
    undo: Vec<Program>,
    /// The result: the distribution in force, or why nothing was set.
    pub(crate) in_words: String,
}

impl<'a> ReceiveQueues<'a> {
    /// Distributes UDP over IPv4 that arrives at an interface among its first `queues`.
    ///
    /// # Errors
    /// If the node fails. A driver's refusal is in [`in_words`](Self::in_words) instead.
    pub(crate) fn divide(node: &'a dyn Node, interface: &str, queues: u16) -> Result<Self> {
        let mut this = Self {
            node,
            undo: Vec::new(),
            in_words: String::new(),
        };
        let ethtool = |words: &[&str]| {
            let words = words.iter().copied();
            Program::new(["ethtool"].into_iter().chain(words))
        };
        let table = node.output(["ethtool", "-x", interface])?;
        let Some(weights) = weights(&table) else {
            "the driver has no table of receive queues: it divides frames by an unknown rule"
                .clone_into(&mut this.in_words);
            return Ok(this);
        };
        let before = fields(&node.output(["ethtool", "-n", interface, "rx-flow-hash", "udp4"])?);
        let hashed_by = |fields| ethtool(&["-N", interface, "rx-flow-hash", "udp4", fields]);
        let weights: Vec<String> = weights.iter().map(ToString::to_string).collect();
        let mut restore = vec!["-X", interface, "weight"];
        restore.extend(weights.iter().map(String::as_str));
        // The way back is registered before anything is changed.
        this.undo.push(ethtool(&restore));
        this.undo.extend(before.as_deref().map(hashed_by));
        this.at_end(this.undo.clone())?;
        let number = queues.to_string();
        let set = |program| -> Result<bool> { Ok(node.run(program, TOOL_LIMIT)?.code == Some(0)) };
        let is_divided = set(ethtool(&["-X", interface, "equal", &number]))?;
        let is_hashed = match before.as_deref() {
            Some(ADDRESSES_AND_PORTS) => true,
            Some(_) => set(hashed_by(ADDRESSES_AND_PORTS))?,
            // A hash that cannot be read cannot be restored, so it is left alone.
            None => false,
        };
        let by = if is_hashed {
            "addresses and ports"
        } else {
            "the fields that the driver chooses"
        };
        this.in_words = if is_divided {
            format!("frames are divided among the first {queues}, by {by}")
        } else {
            format!("the driver refuses to divide frames among the first {queues}")
        };
        Ok(this)
    }

    /// Registers programs that the station runs at its end.
    fn at_end(&self, programs: Vec<Program>) -> Result<()> {
        let limit_ms = TOOL_LIMIT.as_millis() as u64;
        match self.node.call(Request::AtEnd { programs, limit_ms })? {
            Response::Noted => Ok(()),
            other => Err(self.node.unexpected(&other)),
        }
    }
}

impl Drop for ReceiveQueues<'_> {
    fn drop(&mut self) {
        if self.undo.is_empty() {
            return;
        }
        // A station that is gone has restored the settings at its end.
        for program in std::mem::take(&mut self.undo) {
            let _ = self.node.run(program, TOOL_LIMIT);
        }
        // An empty list replaces the registered one, which has just been carried out.
        let _ = self.at_end(Vec::new());
    }
}

/// Returns the table entries per queue from the output of `ethtool -x`; `None` if it shows no
/// table.
fn weights(printed: &str) -> Option<Vec<usize>> {
    let mut lines = printed.lines();
    let (_, rings) = lines.next()?.split_once(" with ")?;
    let rings: usize = rings.split_once(' ')?.0.parse().ok()?;
    // `ethtool -X … weight` takes the number of entries of each queue. It restores the shares, not
    // the order of the entries.
    let mut weights = vec![0; rings];
    for line in lines {
        let Some((_, queues)) = line
            .split_once(':')
            .filter(|(number, _)| number.trim().parse::<u32>().is_ok())
        else {
            // The hash key and function follow the table.
            break;
        };
        for queue in queues.split_ascii_whitespace() {
            *weights.get_mut(queue.parse::<usize>().ok()?)? += 1;
        }
    }
    weights.iter().any(|weight| *weight > 0).then_some(weights)
}

/// Returns the hash's fields, as letters, from the output of `ethtool -n`; `None` if it shows none.
fn fields(printed: &str) -> Option<String> {
    let has = |name: &str| printed.lines().any(|line| line.trim().starts_with(name));
    let letters: String = FIELDS
        .iter()
        .filter(|(name, _)| has(name))
        .map(|(_, letter)| letter)
        .collect();
    (!letters.is_empty()).then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use testbed::NodeId;
    use testbed::protocol::Ended;

    const TABLE: &str = "RX flow hash indirection table for eth2 with 4 RX ring(s):\n    \
                         0:      0     1     2     3     0     1     2     3\n    \
                         8:      0     0     0     0     0     0     0     0\n\
                         RSS hash key:\n6d:5a:56:da\nRSS hash function:\n    toeplitz: on\n";
    const HASH: &str =
        "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n\n";

    /// A station with a fake `ethtool` that prints the output of a card.
    #[derive(Default)]
    struct Stub {
        table: &'static str,
        hash: &'static str,
        refuses: bool,
        /// Commands that change settings, and commands for the station's end.
        done: Mutex<Vec<String>>,
        printed: Mutex<Ended>,
    }

    impl Node for Stub {
        fn id(&self) -> NodeId {
            NodeId::B
        }

        fn call(&self, request: Request) -> Result<Response> {
            Ok(match request {
                Request::Start { program, .. } => {
                    let words = program.argv.join(" ");
                    let (code, stdout) = match words.split(' ').nth(1) {
                        Some("-x") => (i32::from(self.table.is_empty()), self.table),
                        Some("-n") => (i32::from(self.hash.is_empty()), self.hash),
                        _ => {
                            self.done.lock().unwrap().push(words);
                            (i32::from(self.refuses), "")
                        }
                    };
                    *self.printed.lock().unwrap() = Ended {
                        code: Some(code),
                        stdout: stdout.to_owned(),
                        ..Ended::default()
                    };
                    Response::Started {
                        process: 1,
                        pid: 1,
                        stdout: String::new(),
                    }
                }
                Request::Wait { .. } => Response::Ended(self.printed.lock().unwrap().clone()),
                Request::AtEnd { programs, .. } => {
                    let words = programs.iter().map(|program| program.argv.join(" "));
                    let words: Vec<_> = words.collect();
                    self.done
                        .lock()
                        .unwrap()
                        .push(format!("at the end: {}", words.join("; ")));
                    Response::Noted
                }
                other => panic!("{other:?}"),
            })
        }
    }

    fn divide(stub: &Stub) -> (String, Vec<String>) {
        let words = ReceiveQueues::divide(stub, "eth2", 2)
            .unwrap()
            .in_words
            .clone();
        (words, stub.done.lock().unwrap().clone())
    }

    #[test]
    fn a_cards_queues_are_set_and_restored() {
        let stub = Stub {
            table: TABLE,
            hash: HASH,
            ..Stub::default()
        };
        let (words, done) = divide(&stub);
        let restore = [
            "ethtool -X eth2 weight 10 2 2 2",
            "ethtool -N eth2 rx-flow-hash udp4 sd",
        ];
        let expected = [
            &*format!("at the end: {}", restore.join("; ")),
            "ethtool -X eth2 equal 2",
            "ethtool -N eth2 rx-flow-hash udp4 sdfn",
            restore[0],
            restore[1],
            "at the end: ",
        ];
        assert_eq!(done, expected);
        assert_eq!(
            words,
            "frames are divided among the first 2, by addresses and ports"
        );
    }

    #[test]
    fn what_a_driver_does_not_do_is_said() {
        let (words, done) = divide(&Stub::default());
        assert!(words.contains("has no table of receive queues"), "{words}");
        assert_eq!(done, [""; 0]);
        let refusing = Stub {
            table: TABLE,
            refuses: true,
            ..Stub::default()
        };
        let (words, _) = divide(&refusing);
        assert!(words.contains("refuses"), "{words}");
    }
}
