//! State that the connections of one client thread share.

use crate::object::Object;
use crate::schedule::{Phases, Schedule};
use crate::spec::Fetch;
use crate::tally::Tally;
use journal::record::HttpFailure;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Pause of a closed-loop connection after a failure. Without it, a server that refuses every
/// connection would take all of the client's time.
const PAUSE: Duration = Duration::from_millis(10);

/// State that the connections of one thread share.
pub(crate) struct Client {
    pub(crate) spec: Fetch,
    pub(crate) schedule: Schedule,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) objects: Vec<Object>,
    pub(crate) tally: RefCell<Tally>,
    pub(crate) received: Rc<Cell<u64>>,
    /// Number of the next transaction.
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
        Self {
            spec: spec.clone(),
            schedule,
            tls,
            objects: Object::all(&sizes),
            tally: RefCell::new(Tally::new(phases, &sizes)),
            received: Rc::default(),
            number: Cell::new(0),
        }
    }

    /// Waits for a connection's next transaction. Returns its start time and its object's number.
    pub(crate) async fn next(&self, share: f64) -> Option<(u64, usize)> {
        let begin_ns = self.schedule.next(share).await?;
        let number = self.number.get();
        // In turn over all connections of the thread: each object has its share, however fast a
        // connection is.
        self.number.set(number.wrapping_add(1));
        self.tally.borrow_mut().attempted += 1;
        Some((begin_ns, number % self.objects.len()))
    }

    /// Counts a failed transaction; pauses in a closed loop.
    pub(crate) async fn failed(&self, why: HttpFailure) {
        self.tally.borrow_mut().failed(why);
        if !self.schedule.is_open() {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether a connection must be closed after this many transactions.
    pub(crate) fn is_used_up(&self, transactions: u32) -> bool {
        let most = self.spec.test.transactions_per_connection;
        most.is_some_and(|most| transactions >= most)
    }
}
