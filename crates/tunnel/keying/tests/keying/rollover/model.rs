//! The simulation with all faults together. Invariants are asserted where they could break
//! (`gateway`, `world`).

use crate::rollover::random::Random;
use crate::rollover::world::{Faults, World};
use crate::rollover::{ms, ppk, settings};
use keying::EPOCH_MAX;
use keying::chain::Policy;
use keying::message::{Cause, Message, Offer, Refusal, VERSION};
use keying::rollover::{Attempt, Event, Input};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Suite;
use zeroize::Zeroizing;

/// After the last fault both sides agree on an epoch within this time: a dead channel is detected
/// after 1.5 s, a hanging attempt is abandoned after 2 s, the longest pause is 1 s, and delayed
/// messages arrive within 1 s.
const CONVERGES_WITHIN: Duration = ms_const(6000);
const SEEDS: u64 = 24;
/// Duration of the faults, then of the quiet phase.
const CYCLES: u32 = 12;

const fn ms_const(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Sums over all seeds, to ensure that every kind of event happened.
#[derive(Default)]
struct Sum {
    rollovers: u64,
    opened: u64,
    replayed: u64,
    inbound_most: usize,
    slowest: Duration,
    did: BTreeMap<String, u64>,
}

#[test]
fn under_any_faults_no_packet_is_lost_or_accepted_twice_and_both_sides_agree() {
    let mut sum = Sum::default();
    let seeds: Vec<u64> = match std::env::var("ROLLOVER_SEED") {
        Ok(seed) => vec![seed.parse().expect("ROLLOVER_SEED is a number")],
        Err(_) => (0..SEEDS).collect(),
    };
    for seed in &seeds {
        println!("ROLLOVER_SEED={seed}");
        simulate(*seed, &mut sum);
    }
    println!(
        "{} rollovers, {} packets opened, {} replayed, at most {} inbound epochs, at most {:?} to agree again; {:?}",
        sum.rollovers, sum.opened, sum.replayed, sum.inbound_most, sum.slowest, sum.did
    );
    if seeds.len() == 1 {
        return;
    }
    assert!(sum.rollovers >= 1000, "only {}", sum.rollovers);
    assert!(sum.replayed > 1000);
    for expected in [
        "restart",
        "refused",
        "swallowed",
        "message lost",
        "message late",
        "stalled",
        "cut",
        "packet lost",
        "packet twice",
        "packet late",
        "kme fails",
        "kme silent",
        "kme wrong",
        "kme repeats",
        "without QKD",
        "peer lost",
        "peer back",
        "KeysDiffer",
        "Timeout",
        "Superseded",
        "Qkd",
        "wrapped",
    ] {
        assert!(sum.did.contains_key(expected), "no `{expected}` in any run");
    }
}

fn simulate(seed: u64, sum: &mut Sum) {
    let policy = Policy::ALL[(seed % 4) as usize];
    let mut settings = settings(policy);
    settings[0].ppks = vec![ppk("beta", false), ppk("alpha", true)];
    settings[1].ppks = vec![ppk("alpha", false), ppk("gamma", false)];
    let mut world = World::new(seed, settings);
    if policy == Policy::Pqc {
        count_from(&mut world, EPOCH_MAX - 3);
    }
    let mut random = Random(!seed);
    for _ in 0..CYCLES {
        world.faults = faults(&mut random);
        wreak_havoc(&mut world, &mut random, ms(8000));
        world.faults = Faults::default();
        settle(&mut world, sum);
    }
    let mut last = 0;
    for (_, side, event) in &world.events {
        let what = match event {
            Event::Established { epoch, .. } if *side == 0 => {
                sum.rollovers += 1;
                let wrapped = last > EPOCH_MAX - 3 && *epoch < 100;
                last = *epoch;
                if !wrapped {
                    continue;
                }
                "wrapped".to_owned()
            }
            Event::Established { .. } => continue,
            Event::Failed { refusal, .. } => {
                refusal.map_or("disconnected".to_owned(), |refusal| format!("{refusal:?}"))
            }
            Event::PeerLost { .. } => "peer lost".to_owned(),
            Event::PeerBack { .. } => "peer back".to_owned(),
            Event::WithoutQkd { .. } => "without QKD".to_owned(),
            Event::Expired { .. } => "expired".to_owned(),
        };
        // Only KMEs deliver different keys.
        assert!(policy != Policy::Pqc || what != format!("{:?}", Refusal::KeysDiffer));
        *sum.did.entry(what).or_default() += 1;
    }
    for (fault, count) in &world.faults_done {
        *sum.did.entry((*fault).to_owned()).or_default() += count;
    }
    sum.opened += world.law.packets_opened;
    sum.replayed += world.law.packets_replayed;
    sum.inbound_most = sum.inbound_most.max(world.law.inbound_most);
}

/// Each fault often, seldom or never.
fn faults(random: &mut Random) -> Faults {
    let mut up_to = |most: u64| match random.below(3) {
        0 => 0,
        1 => most / 5,
        _ => most,
    };
    Faults {
        refused: up_to(300),
        swallowed: up_to(150),
        message_lost: up_to(80),
        stalled: up_to(40),
        cut: up_to(80),
        message_late: up_to(200),
        packet_lost: up_to(200),
        packet_twice: up_to(200),
        packet_late: up_to(200),
        kme_fails: up_to(200),
        kme_silent: up_to(100),
        kme_wrong: up_to(200),
        kme_repeats: up_to(200),
    }
}

fn wreak_havoc(world: &mut World, random: &mut Random, time: Duration) {
    const CAUSES: [Cause; 4] = [Cause::Demand, Cause::Bytes, Cause::Packets, Cause::Desync];
    let end = world.now + time;
    while world.now < end {
        world.run(random.between(ms(10), ms(300)));
        let side = random.below(2) as usize;
        let cause = CAUSES[random.below(4) as usize];
        match random.below(100) {
            0..60 => world.rekey(side, cause),
            60..75 => {
                world.rekey(side, cause);
                world.rekey(1 - side, cause);
            }
            75..82 => {
                let down = random.between(Duration::ZERO, ms(700));
                let reported = random.chance(500);
                world.restart(side, down, reported);
            }
            _ => {}
        }
    }
}

/// Without faults both soon agree, retire all old keys, and either can request new ones.
fn settle(world: &mut World, sum: &mut Sum) {
    let began = world.now;
    let agreed = world.run_until(began + CONVERGES_WITHIN, World::agrees);
    assert!(
        agreed,
        "no agreement: {:?}",
        world.events.iter().rev().take(8).collect::<Vec<_>>()
    );
    sum.slowest = sum.slowest.max(world.now - began);
    for side in [1, 0] {
        // An attempt in progress, perhaps with a new channel, ends first.
        world.run(ms(500));
        let before = world.established(side);
        world.rekey(side, Cause::Demand);
        let end = world.now + CONVERGES_WITHIN;
        let renewed = world.run_until(end, |world| {
            world.agrees() && world.established(side) != before
        });
        assert!(renewed, "gateway {side} cannot have another epoch");
    }
    let end = world.now + ms(10_000);
    let settled = world.run_until(end, |world| {
        let only = |side: usize| {
            let gateway = &world.gateways[side];
            gateway.live().len() == 1
                && gateway.live().keys().next()
                    == gateway.sends_in().map(|(epoch, _)| epoch).as_ref()
        };
        world.agrees() && only(0) && only(1)
    });
    assert!(settled, "old keys are kept");
}

/// Makes the listener count from this epoch on.
pub(crate) fn count_from(world: &mut World, last_epoch: u32) {
    let attempt = Attempt(1);
    world.gateways[1].taken = 1;
    let offer = Offer {
        version: VERSION,
        tunnel: 7,
        suite: Suite::Aes256Gcm.name().to_owned(),
        lanes: 4,
        payload: "l3".to_owned(),
        policy: Policy::Pqc,
        ppks: Vec::new(),
        last_epoch,
        live: Vec::new(),
        sends_in: None,
    };
    let open = Message::Open {
        offer,
        cause: Cause::Start,
    };
    let keys = Message::Keys { qkd: Vec::new() };
    let exporter = Zeroizing::new([7; 48]);
    world.feed(
        1,
        Input::Connected {
            attempt,
            exporter,
            valid_for: Duration::MAX,
        },
    );
    for message in [open, keys] {
        world.feed(1, Input::Received { attempt, message });
    }
    let reason = "end of file".to_owned();
    world.feed(1, Input::Disconnected { attempt, reason });
}
