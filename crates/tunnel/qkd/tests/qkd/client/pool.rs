//! The pool, with a scripted KME.

use crate::client::requests::status;
use crate::client::server::{Reply, Request, Server, http, json};
use crate::client::setup::run;
use qkd::types::Status;
use qkd::{Failure, Pool, PoolSettings};
use serde_json::json as value;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A KME that delivers numbered keys of 256 bits.
#[derive(Default)]
struct Source {
    /// Keys delivered.
    delivered: AtomicUsize,
    /// Number of available keys; 0: unlimited.
    stock: AtomicUsize,
    /// Answers every call with status 503.
    down: AtomicBool,
    /// Repeats its first keys.
    stuck: AtomicBool,
    /// The requested numbers of keys.
    asked: Mutex<Vec<usize>>,
}

impl Source {
    fn answer(&self, request: &Request) -> Reply {
        let unavailable =
            Reply::Bytes(http("503 Wait", "application/json", r#"{"message":"dry"}"#));
        if self.down.load(Ordering::SeqCst) {
            return unavailable;
        }
        let delivered = self.delivered.load(Ordering::SeqCst);
        let stock = self.stock.load(Ordering::SeqCst);
        if request.path.ends_with("/status") {
            let mut status: Status = serde_json::from_str(&status("gw1")).unwrap();
            if stock != 0 {
                status.stored_key_count = (stock - delivered) as u64;
            }
            status.max_key_per_request = 5;
            return json(&serde_json::to_string(&status).unwrap());
        }
        let query = request.path.split("number=").nth(1).unwrap();
        let (number, size) = query.split_once("&size=").unwrap();
        assert_eq!(size, "256");
        let number: usize = number.parse().unwrap();
        self.asked.lock().unwrap().push(number);
        if stock != 0 && delivered + number > stock {
            return unavailable;
        }
        let first = if self.stuck.load(Ordering::SeqCst) {
            0
        } else {
            delivered
        };
        self.delivered.fetch_add(number, Ordering::SeqCst);
        let keys: Vec<_> = (first..first + number).map(key).collect();
        json(&value!({ "keys": keys }).to_string())
    }
}

fn key(number: usize) -> serde_json::Value {
    // 43 characters of base64 are 256 bits, the last of them with two zeros.
    value!({"key_ID": format!("00000000-0000-4000-8000-{number:012}"), "key": format!("{number:042}A=")})
}

fn server() -> (Server, Arc<Source>) {
    let source = Arc::new(Source::default());
    let answering = Arc::clone(&source);
    (
        Server::new(move |request| answering.answer(request)),
        source,
    )
}

fn settings() -> PoolSettings {
    PoolSettings {
        retry_min: Duration::from_millis(5),
        retry_max: Duration::from_millis(20),
        // Practically unlimited.
        max_age: Duration::from_secs(3600),
        ..PoolSettings::new("gw2")
    }
}

/// Waits for a condition.
async fn until(is: impl Fn() -> bool) {
    while !is() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn keys_are_prefetched() {
    let (server, source) = server();
    run(async {
        let pool = Pool::start(server.client(), settings());
        until(|| pool.ready() == 8).await;
        assert_eq!(
            *source.asked.lock().unwrap(),
            [5, 3],
            "not more than the KME gives at a time"
        );
        source.down.store(true, Ordering::SeqCst);
        let keys = pool.take(3).await.unwrap();
        assert_eq!(keys.len(), 3);
        assert!(keys[0].id.ends_with("000000000000"), "the oldest first");
        assert!(keys.iter().all(|key| key.key.len() == 32));
        source.down.store(false, Ordering::SeqCst);
        until(|| pool.ready() == 8).await;
        assert!(pool.take(0).await.unwrap().is_empty());
    });
}

#[test]
fn no_key_is_delivered_twice_and_all_waiting_callers_get_theirs() {
    let (server, source) = server();
    run(async {
        let pool = Arc::new(Pool::start(server.client(), settings()));
        let takers: Vec<_> = (0..40)
            .map(|taker| {
                let pool = Arc::clone(&pool);
                tokio::spawn(async move { pool.take(1 + taker % 12).await.unwrap() })
            })
            .collect();
        let mut ids = HashSet::new();
        let mut keys = HashSet::new();
        let mut taken = 0;
        for taker in takers {
            for key in taker.await.unwrap() {
                taken += 1;
                assert!(ids.insert(key.id) && keys.insert(key.key.to_vec()));
            }
        }
        assert_eq!(taken, (0..40).map(|taker| 1 + taker % 12).sum::<usize>());
        until(|| pool.ready() == 8).await;
        assert_eq!(
            source.delivered.load(Ordering::SeqCst),
            taken + 8,
            "none is lost"
        );
    });
}

#[test]
fn a_failure_is_reported_at_once_and_recovered_from() {
    let (server, source) = server();
    source.down.store(true, Ordering::SeqCst);
    run(async {
        let pool = Pool::start(server.client(), settings());
        let error = pool.take(1).await.unwrap_err();
        assert!(
            matches!(error.failure, Failure::Unavailable { .. }),
            "{error}"
        );
        // The pool retries by itself.
        until(|| server.requests().len() >= 4).await;
        source.down.store(false, Ordering::SeqCst);
        until(|| pool.ready() == 8).await;
        assert_eq!(pool.take(8).await.unwrap().len(), 8);
    });
}

#[test]
fn the_last_keys_of_a_kme_are_fetched_too() {
    let (server, source) = server();
    source.stock.store(7, Ordering::SeqCst);
    run(async {
        let pool = Pool::start(server.client(), settings());
        until(|| pool.ready() == 7).await;
        assert_eq!(source.asked.lock().unwrap()[..2], [5, 2]);
        assert_eq!(pool.take(6).await.unwrap().len(), 6);
        until(|| server.requests().len() >= 8).await;
        let error = pool.take(2).await.unwrap_err();
        assert!(error.to_string().contains("\"dry\""), "{error}");
        assert_eq!(pool.take(1).await.unwrap().len(), 1);
    });
}

#[test]
fn expired_keys_are_discarded_and_replaced_when_keys_are_next_taken() {
    let (server, source) = server();
    let max_age = Duration::from_millis(200);
    let settings = PoolSettings {
        target: 5,
        max_age,
        ..settings()
    };
    run(async {
        let pool = Pool::start(server.client(), settings);
        let delivered = || source.delivered.load(Ordering::SeqCst);
        until(|| delivered() == 5).await;
        // They were requested before.
        tokio::time::sleep(max_age).await;
        assert_eq!(pool.ready(), 0);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(delivered(), 5);
        let key = pool.take(1).await.unwrap().remove(0);
        let number: usize = key.id[24..].parse().unwrap();
        assert!(number >= 5, "{number} is one of the old keys");
        until(|| delivered() >= 11).await;
    });
}

#[test]
fn a_kme_that_delivers_twice_is_refused() {
    let (server, source) = server();
    source.stuck.store(true, Ordering::SeqCst);
    run(async {
        let pool = Pool::start(server.client(), settings());
        // The first answer is good, all others repeat it.
        until(|| pool.ready() == 5).await;
        until(|| source.asked.lock().unwrap().len() >= 3).await;
        let error = pool.take(6).await.unwrap_err();
        assert!(matches!(error.failure, Failure::SameId { .. }), "{error}");
        let keys = pool.take(5).await.unwrap();
        let ids: HashSet<_> = keys.iter().map(|key| &key.id).collect();
        assert_eq!(ids.len(), 5);
        let error = pool.take(1).await.unwrap_err();
        assert!(matches!(error.failure, Failure::SameId { .. }), "{error}");
    });
}

#[test]
fn a_cancelled_wait_leaves_no_demand() {
    let (server, source) = server();
    run(async {
        let pool = Pool::start(server.client(), settings());
        let hasty = tokio::time::timeout(Duration::ZERO, pool.take(12));
        assert!(hasty.await.is_err());
        until(|| pool.ready() == 8).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(source.delivered.load(Ordering::SeqCst), 8);
    });
}

#[test]
fn a_dropped_pool_sends_no_more_requests() {
    let (server, _) = server();
    run(async {
        let pool = Pool::start(server.client(), settings());
        until(|| pool.ready() == 8).await;
        let before = server.requests().len();
        drop(pool);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.requests().len(), before);
    });
}
