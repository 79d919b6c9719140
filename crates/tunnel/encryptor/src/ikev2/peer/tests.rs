//! Two peers without network and clock.

use super::*;
use ike::crypto::{Cipher, KeMethodKind, Prf};
use ike::message::{AddressRange, Identity};
use ike::session::{
    ADDITIONAL_MAX, Authentication, ChildSuite, IkeSuite, Lifetimes, PpkPolicy, Retransmission,
    Transport,
};
use keying::{ChildSas, Keys};
use std::net::IpAddr;
use std::sync::Mutex;
use wire::Suite;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Sent(Vec<(Vec<u8>, Path)>);

impl Wire for Sent {
    fn send(&mut self, datagram: &[u8], path: Path, _marker: bool) {
        self.0.push((datagram.to_vec(), path));
    }
}

fn address(side: usize) -> IpAddr {
    ["192.0.2.1", "192.0.2.2"][side].parse().unwrap()
}

fn network(side: usize) -> AddressRange {
    let [first, last] = [["10.1.0.0", "10.1.0.255"], ["10.2.0.0", "10.2.0.255"]][side];
    AddressRange::any(first.parse().unwrap()..=last.parse().unwrap())
}

fn settings(side: usize) -> Settings {
    let names = ["gw1.example", "gw2.example"];
    Settings {
        identity: Identity::fqdn(names[side]),
        peer_identity: Some(Identity::fqdn(names[1 - side])),
        authentication: Authentication::SharedKey(Secret::new(vec![7; 32])),
        ike: vec![IkeSuite {
            cipher: Cipher::AesGcm16 { key_bits: 256 },
            prf: Prf::HmacSha384,
            exchange: KeMethodKind::X25519,
            additional: [None; ADDITIONAL_MAX],
        }],
        child: vec![ChildSuite {
            cipher: Cipher::AesGcm16 { key_bits: 256 },
            esn: true,
            exchange: Some(KeMethodKind::X25519),
            additional: [None; ADDITIONAL_MAX],
        }],
        local: vec![network(side)],
        remote: vec![network(1 - side)],
        children_max: 4,
        childless: false,
        initial_contact: true,
        ppks: Vec::new(),
        ppk_policy: PpkPolicy::Optional,
        datagram: Some(1200),
        lifetimes: Lifetimes::default(),
        retransmission: Retransmission::DEFAULT,
        idle: 10 * SECOND,
        transport: Transport {
            always_in_udp: true,
            ..Transport::default()
        },
    }
}

struct World {
    now: Duration,
    peers: [Peer; 2],
    sent: [Sent; 2],
    statuses: [Arc<Status>; 2],
    roles: [IkeRole; 2],
}

fn peer(side: usize, role: IkeRole, settings: Settings, status: &Arc<Status>) -> Peer {
    let at = |side| SocketAddr::new(address(side), 500);
    let wanted = Wanted {
        number: 0,
        role,
        path: Path {
            local: at(side),
            remote: at(1 - side),
        },
    };
    let keys = Arc::new(Mutex::new(Keys::from(ChildSas::new())));
    let children = Children::new(keys, Suite::Aes256Gcm, |_| ());
    Peer::new(wanted, settings, children, Arc::clone(status)).unwrap()
}

impl World {
    fn new(roles: [IkeRole; 2], change: impl FnOnce(&mut [Settings; 2])) -> Self {
        let mut settings = [settings(0), settings(1)];
        change(&mut settings);
        let statuses: [Arc<Status>; 2] = Default::default();
        for status in &statuses {
            let named = (0, "the peer".to_owned());
            status.ike().set_tunnels([named].into_iter());
        }
        let [first, second] = settings;
        Self {
            now: Duration::ZERO,
            peers: [
                peer(0, roles[0], first, &statuses[0]),
                peer(1, roles[1], second, &statuses[1]),
            ],
            sent: Default::default(),
            statuses,
            roles,
        }
    }

    /// A side starts anew, and has forgotten everything.
    fn restart(&mut self, side: usize) {
        let mut new = peer(side, self.roles[side], settings(side), &self.statuses[side]);
        new.attempt_in(self.now);
        self.peers[side] = new;
    }

    /// Both sides send at once: datagrams of a step arrive in the next.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            for side in 0..2 {
                let is_due = self.peers[side].wakes_at().is_some_and(|at| at <= self.now);
                if is_due {
                    self.peers[side].tick(self.now, &mut self.sent[side]);
                }
            }
            let arriving = self.sent.each_mut().map(|it| std::mem::take(&mut it.0));
            let is_quiet = arriving.iter().all(Vec::is_empty);
            for (side, datagrams) in arriving.into_iter().enumerate() {
                for (datagram, path) in datagrams {
                    let seen = Path {
                        local: path.remote,
                        remote: path.local,
                    };
                    let to = 1 - side;
                    self.peers[to].receive(self.now, &datagram, seen, true, &mut self.sent[to]);
                }
            }
            if is_quiet {
                let wakes = self.peers.iter().filter_map(Peer::wakes_at).min();
                let next = wakes.filter(|at| *at <= end);
                let Some(next) = next else {
                    self.now = end;
                    return;
                };
                self.now = next.max(self.now + Duration::from_millis(1));
            }
        }
    }

    /// Both sides have the same single child SA.
    fn agrees(&self) -> bool {
        let spis = self.peers.each_ref().map(|peer| {
            let sessions: Vec<_> = peer.sessions.iter().collect();
            let [only] = sessions.as_slice() else {
                return None;
            };
            let children: Vec<_> = only.session.children().collect();
            let [child] = children.as_slice() else {
                return None;
            };
            let is_sending = peer.children.sending() == Some((only.id, child.inbound_spi));
            is_sending.then_some((child.inbound_spi, child.outbound_spi))
        });
        matches!(spis, [Some(one), Some(other)] if one == (other.1, other.0))
    }

    fn ended(&self, side: usize) -> Vec<(String, u64)> {
        self.statuses[side].ike().ended()
    }
}

#[test]
fn any_roles_but_two_responders_lead_to_one_ike_sa() {
    use IkeRole::{Auto, Initiate, Respond};
    for roles in [
        [Auto, Auto],
        [Initiate, Respond],
        [Respond, Initiate],
        [Initiate, Initiate],
        [Auto, Respond],
        [Respond, Auto],
        [Auto, Initiate],
    ] {
        let mut world = World::new(roles, |_| ());
        world.pass(5 * SECOND);
        assert!(world.agrees(), "{roles:?}");
        // Nothing changes any more, though both are asked whether they live.
        world.pass(60 * SECOND);
        assert!(world.agrees(), "{roles:?}");
        let established = world.statuses.each_ref().map(|it| it.ike().established());
        assert_eq!(established, [1, 1], "{roles:?}");
    }
    let mut world = World::new([Respond, Respond], |_| ());
    world.pass(60 * SECOND);
    assert!(!world.agrees() && world.sent.iter().all(|it| it.0.is_empty()));
}

#[test]
fn a_side_that_restarts_is_back_soon() {
    for roles in [[IkeRole::Auto; 2], [IkeRole::Initiate, IkeRole::Respond]] {
        for side in 0..2 {
            let mut world = World::new(roles, |_| ());
            world.pass(20 * SECOND);
            assert!(world.agrees());
            world.restart(side);
            // A responder is found by the check whether it lives, and others begin by themselves.
            let responds = roles[side] == IkeRole::Respond;
            world.pass(if responds { 90 * SECOND } else { 3 * SECOND });
            assert!(world.agrees(), "{roles:?}, side {side}");
        }
    }
}

#[test]
fn child_sas_are_replaced_on_request_of_both_sides_at_once() {
    let mut world = World::new([IkeRole::Auto; 2], |_| ());
    world.pass(5 * SECOND);
    for _ in 0..5 {
        for side in 0..2 {
            let now = world.now;
            world.peers[side].order(now, Order::Rekey, &mut world.sent[side]);
        }
        world.pass(70 * SECOND);
        assert!(world.agrees());
    }
}

#[test]
fn a_peer_that_narrows_gets_no_tunnel() {
    let half = AddressRange {
        last: "10.2.0.127".parse().unwrap(),
        ..network(1)
    };
    let mut world = World::new([IkeRole::Auto; 2], |settings| {
        settings[1].local = vec![half]
    });
    world.pass(5 * SECOND);
    assert_eq!(world.peers[0].children.sending(), None);
    assert!(!world.agrees());
}

#[test]
fn a_network_that_is_not_restricted_here_may_be_narrowed() {
    let any = AddressRange::any("0.0.0.0".parse().unwrap()..="255.255.255.255".parse().unwrap());
    let mut world = World::new([IkeRole::Auto; 2], |settings| {
        for settings in settings {
            settings.local = vec![any];
        }
    });
    world.pass(5 * SECOND);
    assert!(world.agrees());
}

#[test]
fn a_peer_that_is_refused_is_asked_less_and_less() {
    let mut world = World::new([IkeRole::Initiate, IkeRole::Respond], |settings| {
        settings[1].authentication = Authentication::SharedKey(Secret::new(vec![8; 32]));
    });
    world.pass(600 * SECOND);
    let refused = ("AUTHENTICATION_FAILED".to_owned(), 23);
    for side in 0..2 {
        let ended = world.ended(side);
        let [(name, count)] = ended.as_slice() else {
            panic!("{ended:?}")
        };
        assert_eq!(*name, refused.0);
        assert!((10..=refused.1 + 2).contains(count), "{count}");
    }
}

#[test]
fn a_peer_that_is_silent_loses_its_child_sas() {
    let mut world = World::new([IkeRole::Auto; 2], |_| ());
    world.pass(5 * SECOND);
    assert!(world.agrees());
    let start = world.now;
    // Only this side's clock goes on.
    while world.peers[0].children.sending().is_some() {
        world.now = world.peers[0].wakes_at().unwrap().max(world.now);
        assert!(world.now < start + 120 * SECOND);
        let now = world.now;
        world.peers[0].tick(now, &mut Sent::default());
    }
    let ended = world.ended(0);
    assert_eq!(ended, [("silent".to_owned(), 1)]);
}
