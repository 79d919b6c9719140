//! All interleavings of filling and emptying a mailbox, by a model checker.

/// The checker's version replaces the standard library's.
mod sync {
    pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};
    pub(crate) use std::sync::PoisonError;
}

#[path = "../src/mailbox.rs"]
mod mailbox;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use mailbox::Mailbox;

#[test]
fn every_item_is_taken_once_and_in_order() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new());
        let control = Arc::clone(&mailbox);
        let putting = thread::spawn(move || {
            control.put(1, |_| false);
            control.put(2, |_| false);
        });
        let mut taken = mailbox.take();
        taken.extend(mailbox.take());
        putting.join().unwrap();
        // A missed item appears at the lane's next look.
        taken.extend(mailbox.take());
        assert_eq!(taken, [1, 2]);
    });
}

#[test]
fn two_concurrent_senders_lose_no_item() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new());
        let putting = [1, 2].map(|thing| {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || mailbox.put(thing, |_| false))
        });
        let mut taken = mailbox.take();
        for thread in putting {
            thread.join().unwrap();
        }
        taken.extend(mailbox.take());
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}

#[test]
fn an_up_to_date_lane_uses_no_old_value() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new());
        let newest_is_known = Arc::new(AtomicBool::new(false));
        let control = (Arc::clone(&mailbox), Arc::clone(&newest_is_known));
        let lane = thread::spawn(move || {
            let (mailbox, newest_is_known) = control;
            let mut value = 0;
            for _ in 0..2 {
                mailbox.rest();
                mailbox.wake();
                // Read before the look: the value used after it may be as old as this.
                let must_be_new = newest_is_known.load(Ordering::SeqCst);
                value = mailbox.take().pop().unwrap_or(value);
                assert!(value == 1 || !must_be_new);
            }
        });
        mailbox.put(1, |_| false);
        newest_is_known.store(mailbox.is_up_to_date(), Ordering::SeqCst);
        lane.join().unwrap();
    });
}

#[test]
fn a_replaced_item_is_taken_first_or_never() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new());
        let control = Arc::clone(&mailbox);
        let putting = thread::spawn(move || {
            control.put(1, |_| false);
            control.put(2, |old| *old == 1);
        });
        let mut taken = mailbox.take();
        putting.join().unwrap();
        taken.extend(mailbox.take());
        assert!(taken == [1, 2] || taken == [2], "{taken:?}");
    });
}
