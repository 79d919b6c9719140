//! What the connections of one thread of the client share.

use crate::object::Object;
use crate::schedule::{Phases, Schedule};
use crate::spec::Fetch;
use crate::tally::Tally;
use journal::record::HttpFailure;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection in a closed loop pauses after a failure: a server that refuses each would
/// otherwise take all of the client's time.
const PAUSE: Duration = Duration::from_millis(10);

/// What the connections of one thread share.
pub(crate) struct Client {
    pub(crate) spec: Fetch,
    pub(crate) schedule: Schedule,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) objects: Vec<Object>,
    pub(crate) tally: RefCell<Tally>,
    pub(crate) received: Rc<Cell<u64>>,
    /// The number of the transaction that begins next.
    number: Cell<usize>,
}

impl Client {
    pub(crate) fn new(
        spec: &Fetch,
        schedule: Schedule,
        tls: Option<Arc<rustls::ClientConfig>>,
        phases: Phases,
    ) -> Self {
        let sizes = spec.test.objects();
        let objects = (0..).zip(&sizes);
        Self {
            spec: spec.clone(),
            schedule,
            tls,
            objects: objects
                .map(|(number, &bytes)| Object::new(number, bytes))
                .collect(),
            tally: RefCell::new(Tally::new(phases, &sizes)),
            received: Rc::default(),
            number: Cell::new(0),
        }
    }

    /// The next transaction of a connection: when it should begin, and the number of its object.
    pub(crate) async fn next(&self, share: f64) -> Option<(u64, usize)> {
        let begin_ns = self.schedule.next(share).await?;
        let number = self.number.get();
        self.number.set(number.wrapping_add(1));
        self.tally.borrow_mut().attempted += 1;
        Some((begin_ns, number % self.objects.len()))
    }

    /// Counts a failed transaction.
    pub(crate) async fn failed(&self, why: HttpFailure) {
        self.tally.borrow_mut().failed(why);
        if !self.schedule.is_open() {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether a connection is to be closed after this many transactions.
    pub(crate) fn is_used_up(&self, transactions: u32) -> bool {
        let most = self.spec.test.transactions_per_connection;
        most.is_some_and(|most| transactions >= most)
    }
}
