//! Every order of events, not a sample of them: two ends, the datagrams between them and a number
//! of orders and faults, explored exhaustively.
//!
//! An event is a decision of the environment: which datagram arrives next, is lost or arrives
//! twice, when time passes to the next deadline of either end, who orders new keys or a delete, and
//! who restarts. All datagrams in flight may overtake each other.
//!
//! States are equal if no later event can distinguish them ([`equal`]).

mod content;
mod equal;
mod world;

use stateright::{Checker, Model, Property};
use world::{Happening, World};

/// How often each order and fault may happen, in any order and at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Budget {
    /// New keys of the child SA.
    rekeyed_children: u8,
    /// New keys of the IKE SA.
    rekeyed_ikes: u8,
    /// Further child SAs.
    created: u8,
    /// Deletes of a child SA.
    deleted: u8,
    /// Deletes of the session.
    ended: u8,
    losses: u8,
    duplicates: u8,
    /// Deadlines that pass while something is on its way.
    delays: u8,
    /// Restarts of either end: it forgets everything.
    restarts: u8,
}

/// All that can happen within a budget.
struct Everything {
    budget: Budget,
    /// Selects the nonces.
    seed: u64,
}

impl Model for Everything {
    type State = World;
    type Action = Happening;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.budget, self.seed)]
    }

    fn actions(&self, world: &World, found: &mut Vec<Happening>) {
        let left = &world.left;
        let count = world.flying.len();
        found.extend((0..count).map(Happening::Deliver));
        if left.losses > 0 {
            found.extend((0..count).map(Happening::Lose));
        }
        if left.duplicates > 0 {
            found.extend((0..count).map(Happening::Duplicate));
        }
        // Datagrams are fast: time passes while one is on its way only as a fault.
        if !world.is_calm() && (count == 0 || left.delays > 0) {
            found.push(Happening::Tick);
        }
        for side in 0..2 {
            let orders = [
                (left.rekeyed_children, Happening::RekeyChild(side)),
                (left.rekeyed_ikes, Happening::RekeyIke(side)),
                (left.created, Happening::Create(side)),
                (left.deleted, Happening::DeleteChild(side)),
                (left.ended, Happening::End(side)),
                (left.restarts, Happening::Restart(side)),
            ];
            let possible = orders.into_iter().filter(|(left, _)| *left > 0);
            found.extend(possible.map(|(_, happening)| happening));
        }
    }

    fn next_state(&self, world: &World, happening: Happening) -> Option<World> {
        let mut next = world.clone();
        next.happen(happening);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no rule is broken", |_, world: &World| {
                world.broken.is_none()
            }),
            Property::always(
                "a child SA carries packets at any time",
                |_, world: &World| world.is_open(),
            ),
            Property::always("both agree again", |_, world: &World| {
                world.clone().settles()
            }),
            Property::sometimes("both agree with an empty budget", |_, world: &World| {
                world.left == Budget::default() && world.agree()
            }),
        ]
    }
}

fn explore(budgets: &[Budget]) {
    for budget in budgets {
        for seed in 0..2 {
            let model = Everything {
                budget: *budget,
                seed,
            };
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let checker = model.checker().threads(threads).spawn_bfs().join();
            println!(
                "{budget:?}, seed {seed}: {} states",
                checker.unique_state_count()
            );
            checker.assert_properties();
        }
    }
}

const NONE: Budget = Budget {
    rekeyed_children: 0,
    rekeyed_ikes: 0,
    created: 0,
    deleted: 0,
    ended: 0,
    losses: 0,
    duplicates: 0,
    delays: 0,
    restarts: 0,
};

/// Two orders of each kind that can collide.
const COLLISIONS: [Budget; 8] = [
    Budget {
        rekeyed_children: 2,
        ..NONE
    },
    Budget {
        rekeyed_ikes: 2,
        ..NONE
    },
    Budget {
        rekeyed_children: 1,
        rekeyed_ikes: 1,
        ..NONE
    },
    Budget {
        rekeyed_children: 1,
        deleted: 1,
        ..NONE
    },
    Budget {
        rekeyed_ikes: 1,
        deleted: 1,
        ..NONE
    },
    Budget {
        rekeyed_ikes: 1,
        created: 1,
        ..NONE
    },
    Budget {
        rekeyed_ikes: 1,
        ended: 1,
        ..NONE
    },
    Budget {
        rekeyed_children: 1,
        ended: 1,
        ..NONE
    },
];

#[test]
fn orders_of_both_ends_at_once_end_in_agreement() {
    explore(&COLLISIONS);
}

#[test]
fn with_a_fault_too_both_ends_agree_again() {
    let lossy = |budget: Budget| Budget {
        losses: 1,
        ..budget
    };
    let doubled = |budget: Budget| Budget {
        duplicates: 1,
        ..budget
    };
    explore(&[
        lossy(COLLISIONS[0]),
        lossy(COLLISIONS[1]),
        doubled(COLLISIONS[0]),
        doubled(COLLISIONS[1]),
    ]);
}

#[test]
fn after_a_restart_both_ends_agree_again() {
    explore(&[
        Budget {
            restarts: 1,
            ..NONE
        },
        Budget {
            restarts: 1,
            rekeyed_ikes: 1,
            ..NONE
        },
        Budget {
            restarts: 1,
            rekeyed_children: 1,
            ..NONE
        },
    ]);
}

/// `make explore`: some minutes.
#[test]
#[ignore = "long; `make explore` runs it"]
fn with_several_faults_both_ends_agree_again() {
    for budget in COLLISIONS {
        explore(&[
            Budget {
                losses: 2,
                ..budget
            },
            Budget {
                losses: 1,
                duplicates: 1,
                ..budget
            },
            Budget {
                delays: 1,
                losses: 1,
                ..budget
            },
            Budget {
                restarts: 1,
                ..budget
            },
        ]);
    }
    explore(&[
        Budget {
            rekeyed_children: 3,
            ..NONE
        },
        Budget {
            rekeyed_ikes: 3,
            ..NONE
        },
        Budget {
            rekeyed_children: 2,
            rekeyed_ikes: 2,
            ..NONE
        },
    ]);
}
