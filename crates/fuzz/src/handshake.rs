//! The control channel: messages, and two sides that exchange them over connections that break,
//! with a clock that jumps, KMEs that fail, and forged messages.

use arbitrary::{Result, Unstructured};
use keying::chain::{CHAIN_BYTES, Kind, Link, Policy, Secret};
use keying::message::{
    Cause, Confirmation, MESSAGE_BYTES_MAX, Message, Offer, OfferedPpk, Refusal, VERSION,
};
use keying::rollover::{
    Allowance, Attempt, Input, Output, Ppk, QkdRequest, Role, Rollover, Settings,
};
use keying::{EPOCH_MAX, KeyRing, SaKeys, Side};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use wire::Suite;
use zeroize::Zeroizing;

/// Any bytes are a message that survives a round trip, or an error that can be displayed.
pub(crate) fn body(data: &[u8]) {
    match Message::decode(data) {
        Ok(message) => {
            check_message(&message);
        }
        Err(garbled) => {
            let shown = garbled.to_string();
            assert!(
                shown.len() <= 512 && !shown.chars().any(char::is_control),
                "{shown:?}"
            );
        }
    }
    let u = &mut Unstructured::new(data);
    let _ = pieces(u);
    let _ = conversation(u);
}

/// Every message of one side is decoded unchanged by the other.
fn check_message(message: &Message) -> Vec<u8> {
    let bytes = message.encode();
    assert!(bytes.len() <= MESSAGE_BYTES_MAX);
    assert_eq!(Message::decode(&bytes).as_ref(), Ok(message));
    bytes
}

/// An incomplete message is rejected, as is one with trailing bytes.
fn pieces(u: &mut Unstructured<'_>) -> Result<()> {
    let mut bytes = check_message(&message(u)?);
    let cut = u.choose_index(bytes.len())?;
    assert!(Message::decode(&bytes[..cut]).is_err());
    bytes.push(b'{');
    assert!(Message::decode(&bytes).is_err());
    bytes.pop();
    // The result may be another message, which must survive as any other.
    bytes[cut] ^= u.int_in_range(1..=255)?;
    if let Ok(message) = Message::decode(&bytes) {
        check_message(&message);
    }
    Ok(())
}

/// Any well-formed message.
fn message(u: &mut Unstructured<'_>) -> Result<Message> {
    let number = u.arbitrary()?;
    Ok(match u.int_in_range(0..=12)? {
        0 => Message::Open {
            offer: offer(u)?,
            cause: cause(u)?,
        },
        1 => Message::Accept {
            offer: offer(u)?,
            epoch: epoch(u)?,
        },
        2 => Message::Keys {
            qkd: (0..u.int_in_range(0..=2)?).map(key_id).collect(),
        },
        3 => Message::KeysMissing {
            reason: "no".to_owned(),
        },
        4 => Message::Ready {
            confirmation: Confirmation([u.arbitrary()?; CHAIN_BYTES]),
        },
        5 => Message::Switched {
            confirmation: Confirmation([u.arbitrary()?; CHAIN_BYTES]),
        },
        6 => Message::Done,
        7 => Message::Rekey { cause: cause(u)? },
        8 => Message::Ping { number },
        9 => Message::Pong { number },
        10 => Message::Keep {
            confirmation: Confirmation([u.arbitrary()?; CHAIN_BYTES]),
            said: number,
        },
        11 => Message::Kept {
            confirmation: Confirmation([u.arbitrary()?; CHAIN_BYTES]),
            said: number,
        },
        _ => Message::Refuse {
            why: *u.choose(&[Refusal::Policy, Refusal::Qkd, Refusal::Superseded])?,
            detail: "\"\\ü".to_owned(),
        },
    })
}

fn offer(u: &mut Unstructured<'_>) -> Result<Offer> {
    let ppks = ["alpha", "beta", "gamma"].into_iter();
    let mut offered = Vec::new();
    for id in ppks {
        if u.arbitrary()? {
            offered.push(OfferedPpk {
                id: id.to_owned(),
                required: u.arbitrary()?,
            });
        }
    }
    let live = (0..u.int_in_range(0..=3)?)
        .map(|_| epoch(u))
        .collect::<Result<_>>()?;
    Ok(Offer {
        // Now and then a peer of the next version.
        version: VERSION + u16::from(u.ratio(1, 16)?),
        tunnel: 0,
        suite: SUITE.name().to_owned(),
        lanes: 1,
        payload: "l3".to_owned(),
        policy: *u.choose(&Policy::ALL)?,
        ppks: offered,
        live,
        last_epoch: if u.arbitrary()? { epoch(u)? } else { 0 },
        sends_in: if u.arbitrary()? {
            Some(epoch(u)?)
        } else {
            None
        },
    })
}

/// Near the beginning, the end, or anywhere.
fn epoch(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=2)? {
        0 => u.int_in_range(1..=6)?,
        1 => EPOCH_MAX - u.int_in_range(0..=2)?,
        _ => u.int_in_range(1..=EPOCH_MAX)?,
    })
}

fn cause(u: &mut Unstructured<'_>) -> Result<Cause> {
    Ok(*u.choose(&[Cause::Start, Cause::Demand, Cause::Desync, Cause::Time])?)
}

fn key_id(number: u8) -> String {
    format!("00000000-0000-4000-8000-0000000000{number:02x}")
}

const SUITE: Suite = Suite::Aes256Gcm;
const SECOND: Duration = Duration::from_secs(1);

/// One side, with the keys that its lanes would use.
struct Gateway {
    machine: Rollover,
    /// Panics if a nonce could repeat.
    ring: KeyRing,
    /// The keys that it seals with.
    sealing: Option<SaKeys>,
}

/// A connection: its attempt numbers on both sides, and the messages in transit in both directions.
struct Connection {
    attempts: [Attempt; 2],
    /// To the connector, to the listener.
    under_way: [VecDeque<Message>; 2],
}

/// Both sides, the connector first, and the connections between them.
struct Path {
    gateways: [Gateway; 2],
    policy: Policy,
    hard: Option<Duration>,
    connections: Vec<Connection>,
    now: Duration,
    /// Number of connections accepted.
    taken: u64,
    /// Number of QKD keys issued.
    keys: u8,
    /// No message was forged, and no side has restarted.
    honest: bool,
}

const ROLES: [Role; 2] = [Role::Connector, Role::Listener];

/// A side of the path; `hard` is its hard lifetime.
fn gateway(at: usize, policy: Policy, hard: Option<Duration>) -> Gateway {
    let names = ["gw1", "gw2"];
    let ppk = |id: &str, required| Ppk {
        id: id.to_owned(),
        key: Arc::new(Zeroizing::new(vec![id.len() as u8; 32])),
        required,
    };
    let mut ppks = vec![ppk("alpha", true)];
    if at == 0 {
        // Only one side has it, so it cannot be required.
        ppks.push(ppk("beta", false));
    }
    Gateway {
        machine: Rollover::new(Settings {
            role: ROLES[at],
            own_name: names[at].to_owned(),
            peer_name: names[1 - at].to_owned(),
            tunnel: 0,
            lanes: 1,
            suite: SUITE,
            payload: "l3".to_owned(),
            policy,
            ppks,
            every: 60 * SECOND,
            hard,
            grace: 5 * SECOND,
            attempt_limit: 3 * SECOND,
            retry_min: SECOND / 10,
            retry_max: 5 * SECOND,
            provoked: Allowance::OF_TUNNEL,
            ping_every: 10 * SECOND,
        }),
        ring: KeyRing::new([Side::A, Side::B][at]),
        sealing: None,
    }
}

/// Two sides and a sequence of random events.
fn conversation(u: &mut Unstructured<'_>) -> Result<()> {
    let policy = *u.choose(&Policy::ALL)?;
    let hard = u.ratio(1, 4)?.then_some(180 * SECOND);
    let mut path = Path {
        gateways: [0, 1].map(|at| gateway(at, policy, hard)),
        policy,
        hard,
        connections: Vec::new(),
        now: Duration::ZERO,
        taken: 0,
        keys: 0,
        // The hard lifetimes of the two sides may end at different times.
        honest: hard.is_none(),
    };
    path.deliver(0, Input::Tick, u)?;
    while !u.is_empty() {
        path.happen(u)?;
        path.check();
    }
    Ok(())
}

impl Path {
    /// Applies one random event.
    fn happen(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let to: usize = u.int_in_range(0..=1)?;
        // Mostly deliveries: a rollover takes several messages, which rarer events interrupt.
        let what: u8 = u.int_in_range(0..=31)?;
        let connection = match self.connections.len() {
            0 => None,
            count => Some(u.choose_index(count)?),
        };
        match (what, connection) {
            (0..=19, Some(at)) => {
                let connection = &mut self.connections[at];
                let attempt = connection.attempts[to];
                if let Some(message) = connection.under_way[to].pop_front() {
                    self.deliver(to, Input::Received { attempt, message }, u)?;
                }
            }
            (20, Some(at)) => {
                let attempt = self.connections[at].attempts[to];
                self.honest = false;
                let message = message(u)?;
                self.deliver(to, Input::Received { attempt, message }, u)?;
            }
            (21, Some(at)) => {
                let connection = self.connections.remove(at);
                for (to, attempt) in connection.attempts.into_iter().enumerate() {
                    let reason = "broken".to_owned();
                    self.deliver(to, Input::Disconnected { attempt, reason }, u)?;
                }
            }
            (22, Some(at)) => {
                let attempt = self.connections[at].attempts[to];
                let detail = "not JSON".to_owned();
                self.deliver(to, Input::Garbled { attempt, detail }, u)?;
            }
            (23, _) => {
                self.honest = false;
                self.gateways[to] = gateway(to, self.policy, self.hard);
            }
            (24, _) => {
                let cause = cause(u)?;
                self.deliver(to, Input::Rekey(cause), u)?;
            }
            _ => {
                self.now += Duration::from_millis(u.int_in_range(0..=20_000)?);
                for to in 0..2 {
                    self.deliver(to, Input::Tick, u)?;
                }
            }
        }
        Ok(())
    }

    /// Passes an input to one side, and carries out its actions.
    fn deliver(&mut self, to: usize, input: Input, u: &mut Unstructured<'_>) -> Result<()> {
        // A queue and no recursion: an output of one side is an input of the other.
        let mut inputs = VecDeque::from([(to, input)]);
        while let Some((to, input)) = inputs.pop_front() {
            let mut outputs = Vec::new();
            let gateway = &mut self.gateways[to];
            gateway.machine.handle(self.now, input, &mut outputs);
            for output in outputs {
                let gateway = &mut self.gateways[to];
                match output {
                    Output::InstallInbound(secret) => gateway.ring.install_inbound(secret),
                    Output::SwitchOutbound(secret) => {
                        gateway.ring.switch_outbound(secret);
                        gateway.sealing = gateway.ring.outbound(0);
                    }
                    Output::RetireInbound(epoch) => gateway.ring.retire_inbound(epoch),
                    Output::ExpireOutbound(epoch) => {
                        assert!(self.hard.is_some());
                        gateway.ring.expire_outbound(epoch);
                        gateway.sealing = None;
                    }
                    Output::Send(attempt, message) => self.send(to, attempt, message),
                    Output::Close(attempt) => self.close(to, attempt, &mut inputs),
                    Output::Connect(attempt) => self.connect(attempt, u, &mut inputs)?,
                    Output::FetchQkd(attempt, request) => {
                        let ids = match request {
                            QkdRequest::New { .. } => None,
                            QkdRequest::Named(ids) => Some(ids),
                        };
                        let keys = self.fetch(ids, u)?;
                        inputs.push_back((to, Input::Qkd { attempt, keys }));
                    }
                    Output::Event(_) => {}
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, from: usize, attempt: Attempt, message: Message) {
        check_message(&message);
        let mut connections = self.connections.iter_mut();
        // Without a connection the message is lost, as on a broken one.
        if let Some(connection) = connections.find(|it| it.attempts[from] == attempt) {
            connection.under_way[1 - from].push_back(message);
        }
    }

    /// Messages sent before still arrive; then the other side learns that the connection is closed.
    fn close(&mut self, from: usize, attempt: Attempt, inputs: &mut VecDeque<(usize, Input)>) {
        let mut connections = self.connections.iter();
        let Some(at) = connections.position(|it| it.attempts[from] == attempt) else {
            return;
        };
        let connection = self.connections.remove(at);
        let (to, attempt) = (1 - from, connection.attempts[1 - from]);
        let [to_connector, to_listener] = connection.under_way;
        let under_way = if to == 0 { to_connector } else { to_listener };
        for message in under_way {
            inputs.push_back((to, Input::Received { attempt, message }));
        }
        let reason = "closed".to_owned();
        inputs.push_back((to, Input::Disconnected { attempt, reason }));
    }

    fn connect(
        &mut self,
        attempt: Attempt,
        u: &mut Unstructured<'_>,
        inputs: &mut VecDeque<(usize, Input)>,
    ) -> Result<()> {
        if u.ratio(1, 8)? {
            let reason = "refused".to_owned();
            inputs.push_back((0, Input::Disconnected { attempt, reason }));
            return Ok(());
        }
        self.taken += 1;
        let mut exporter = Secret::new([0; CHAIN_BYTES]);
        // As in TLS: both ends export the same secret, and each connection another one.
        exporter[..8].copy_from_slice(&self.taken.to_be_bytes());
        let attempts = [attempt, Attempt(self.taken)];
        let valid_for = Duration::from_secs(u.int_in_range(0..=600)?);
        for (to, attempt) in attempts.into_iter().enumerate() {
            let exporter = exporter.clone();
            let connected = Input::Connected {
                attempt,
                exporter,
                valid_for,
            };
            inputs.push_back((to, connected));
        }
        self.connections.push(Connection {
            attempts,
            under_way: Default::default(),
        });
        Ok(())
    }

    /// The result of either side's KME.
    fn fetch(
        &mut self,
        ids: Option<Vec<String>>,
        u: &mut Unstructured<'_>,
    ) -> Result<std::result::Result<Vec<Link>, String>> {
        let ids = ids.unwrap_or_else(|| {
            self.keys = self.keys.wrapping_add(1);
            vec![key_id(self.keys)]
        });
        let mut bytes = 32;
        match u.int_in_range(0..=15)? {
            0 => return Ok(Err("503".to_owned())),
            1 => return Ok(Ok(Vec::new())),
            2 => bytes = u.int_in_range(0..=40)?,
            _ => {}
        }
        let key = |id: String| Link {
            kind: Kind::Qkd,
            key: Some(Arc::new(Zeroizing::new(
                id.bytes().cycle().take(bytes).collect(),
            ))),
            id,
        };
        Ok(Ok(ids.into_iter().map(key).collect()))
    }

    /// Packets sealed by one side can be opened by the other.
    fn check(&self) {
        if !self.honest {
            return;
        }
        for from in 0..2 {
            let [sender, receiver] = [from, 1 - from].map(|at| &self.gateways[at]);
            if let Some(sealing) = &sender.sealing {
                let opening = receiver.ring.inbound(sealing.spi, 0);
                let opening = opening.expect("neither side seals with keys that the other lacks");
                assert_eq!(sealing.keymat, opening.keymat);
            }
        }
    }
}
