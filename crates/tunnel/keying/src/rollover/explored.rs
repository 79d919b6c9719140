//! Every order of events, not a sample of them: two machines, the connections between them, and a
//! number of faults, explored exhaustively. (`tests/keying/rollover` simulates more faults, at
//! random.)
//!
//! An event is a decision of the environment: which message arrives next, which connection comes up
//! or is cut and whether a side learns of it, when time passes to the next deadline of either side,
//! who wants a new epoch, who restarts, who is restored to an earlier copy, and who sleeps.
//! Messages of one connection keep their order, as TLS ensures; connections overtake each other.
//!
//! States are equal if no later event can distinguish them ([`equal`]).

mod equal;
mod world;

use stateright::{Checker, Model, Property};
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;
use world::{Happening, World};

/// How often each fault may happen, in any order and at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Budget {
    /// Requests for a new epoch, by either side.
    demands: u8,
    /// Restarts of either side: it loses its keys.
    restarts: u8,
    /// Connections that are cut, with their messages in flight.
    cuts: u8,
    /// Deadlines that pass while something is on its way: messages are late, or lost for good.
    delays: u8,
    /// Copies of a side, to which it may be restored once.
    snapshots: u8,
    /// Jumps of one side's clock, further than the hard lifetime of keys.
    suspends: u8,
}

/// All that can happen within a budget.
struct Everything {
    budget: Budget,
    connections_max: u8,
}

impl Model for Everything {
    type State = World;
    type Action = Happening;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.budget)]
    }

    fn actions(&self, world: &World, found: &mut Vec<Happening>) {
        found.extend(world.deliveries());
        // Messages are fast: time passes while one is on its way only as a fault.
        if found.is_empty() || world.left.delays > 0 {
            found.push(Happening::Tick);
        }
        for connection in world
            .connections
            .iter()
            .filter(|it| !it.is_cut && world.left.cuts > 0)
        {
            let hears = connection.ends.map(|end| end.is_some());
            let told = [[false, false], [true, false], [false, true], [true, true]];
            let told = told
                .into_iter()
                .filter(|told| (0..2).all(|side| hears[side] || !told[side]));
            found.extend(told.map(|told| Happening::Cut(connection.number, told)));
        }
        for side in 0..2 {
            if world.left.demands > 0 {
                found.push(Happening::Demand(side));
            }
            if world.left.restarts > 0 {
                found.extend([true, false].map(|told| Happening::Restart(side, told)));
            }
            if world.left.snapshots > 0 {
                found.push(Happening::Snapshot(side));
            }
            if world.snapshots[side].is_some() {
                found.extend([true, false].map(|told| Happening::Restore(side, told)));
            }
            if world.left.suspends > 0 {
                found.push(Happening::Suspend(side));
            }
        }
    }

    fn next_state(&self, world: &World, happening: Happening) -> Option<World> {
        let mut next = world.clone();
        next.happen(happening);
        Some(next)
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.opened <= self.connections_max
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no rule is broken", |_, world: &World| {
                world.broken.is_none()
            }),
            Property::always("each opens what the other seals", |_, world: &World| {
                world.is_open()
            }),
            Property::always("both agree again", |_, world: &World| {
                world.clone().settles()
            }),
            Property::sometimes("both have agreed", |_, world: &World| world.agrees()),
        ]
    }
}

fn explore(budgets: &[Budget]) {
    for budget in budgets {
        let model = Everything {
            budget: *budget,
            connections_max: 5,
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let checker = model.checker().threads(threads).spawn_bfs().join();
        println!("{budget:?}: {} states", checker.unique_state_count());
        checker.assert_properties();
    }
}

const fn budget(demands: u8, restarts: u8, cuts: u8, delays: u8) -> Budget {
    Budget {
        demands,
        restarts,
        cuts,
        delays,
        snapshots: 0,
        suspends: 0,
    }
}

impl Budget {
    /// With a copy of a side, too.
    const fn snapshot(self) -> Self {
        Self {
            snapshots: 1,
            ..self
        }
    }

    /// With a machine that sleeps, too.
    const fn suspend(self) -> Self {
        Self {
            suspends: 1,
            ..self
        }
    }
}

/// Otherwise the exploration would leave out the successors of one of them.
#[test]
fn states_that_count_as_equal_have_equal_futures() {
    let model = Everything {
        budget: budget(1, 1, 0, 1),
        connections_max: 3,
    };
    let mut seen: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
    let mut waiting = VecDeque::from(model.init_states());
    while let Some(world) = waiting.pop_front() {
        let mut happenings = Vec::new();
        model.actions(&world, &mut happenings);
        let digest = world.digest();
        let is_known = seen.contains_key(&digest);
        let mut futures = Vec::new();
        for happening in happenings {
            let next = model.next_state(&world, happening).expect("it can happen");
            futures.push((format!("{happening:?}"), next.digest()));
            // The futures of a state that counts as known are compared below, but not followed
            // again.
            if !is_known && model.within_boundary(&next) {
                waiting.push_back(next);
            }
        }
        let first = seen.entry(digest).or_insert_with(|| futures.clone());
        assert_eq!(*first, futures, "{world:?}");
    }
    assert!(seen.len() > 1000, "{} states", seen.len());
}

#[test]
fn with_one_fault_both_agree_again_whatever_the_order() {
    explore(&[
        budget(2, 0, 0, 0),
        budget(1, 1, 0, 0),
        budget(1, 0, 1, 0),
        budget(1, 0, 0, 1),
        budget(0, 0, 2, 0),
    ]);
}

/// A restored side repeats its nonces until it has new keys: nothing can prevent that. But no side,
/// restored or not, begins to seal with a key that it has sealed with before.
#[test]
fn after_a_snapshot_is_restored_or_a_machine_has_slept_both_agree_again() {
    explore(&[
        budget(0, 0, 0, 0).snapshot(),
        budget(1, 0, 0, 0).snapshot(),
        budget(1, 0, 0, 0).suspend(),
        budget(0, 0, 1, 0).suspend(),
    ]);
}

/// `make explore`: some minutes.
#[test]
#[ignore = "long; `make explore` runs it"]
fn with_several_faults_both_agree_again_whatever_the_order() {
    explore(&[
        budget(1, 2, 0, 0),
        budget(1, 0, 2, 0),
        budget(0, 0, 3, 0),
        budget(1, 0, 0, 2),
        budget(1, 1, 1, 0),
        budget(1, 1, 0, 1),
        budget(1, 0, 1, 1),
        budget(2, 1, 0, 1),
        budget(2, 0, 1, 1),
        budget(1, 1, 1, 1),
        budget(1, 2, 1, 0),
    ]);
}

/// `make explore`: some minutes.
#[test]
#[ignore = "long; `make explore` runs it"]
fn after_snapshots_and_sleep_with_other_faults_both_agree_again() {
    explore(&[
        budget(2, 0, 0, 0).snapshot(),
        budget(1, 0, 1, 0).snapshot(),
        budget(1, 1, 0, 0).snapshot(),
        budget(1, 0, 0, 1).snapshot(),
        budget(1, 1, 0, 0).suspend(),
        budget(1, 0, 1, 0).suspend(),
        budget(1, 0, 0, 1).suspend(),
        budget(1, 0, 0, 0).snapshot().suspend(),
    ]);
}

/// A side that is restored after its peer has heard more of it gets new keys; otherwise nothing
/// shows that it was.
#[test]
fn a_restored_side_does_not_keep_keys_that_its_peer_has_heard_more_of() {
    for side in 0..2 {
        for heard_more in [false, true] {
            let mut world = World::new(budget(0, 0, 0, 0).snapshot());
            assert!(world.settle());
            world.happen(Happening::Snapshot(side));
            if heard_more {
                for _ in 0..8 {
                    world.proceed();
                }
            }
            let before = world.gateways[side].outbound;
            world.happen(Happening::Restore(side, true));
            // The restored side waits for its peer, and learns that its connection is gone.
            for _ in 0..40 {
                world.proceed();
            }
            assert!(world.settle());
            let is_kept = world.gateways[side].outbound == before;
            assert_eq!(is_kept, !heard_more, "side {side}");
            assert_eq!(world.broken, None);
        }
    }
}
