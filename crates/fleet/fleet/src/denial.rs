//! The server's refusals and silences. It reports a denied subject as an event of the connection,
//! and leaves the request itself without an answer.

use async_nats::{Event, ServerError};
use std::collections::BTreeSet;
use tokio::sync::watch;

/// A connection's denied subjects, why the server no longer accepts the user, and why it does not
/// answer.
#[derive(Clone)]
pub(crate) struct Denials {
    subjects: watch::Sender<BTreeSet<String>>,
    refusal: watch::Sender<Option<String>>,
    silence: watch::Sender<Option<String>>,
}

impl Denials {
    pub(crate) fn new() -> Self {
        Self {
            subjects: watch::Sender::new(BTreeSet::new()),
            refusal: watch::Sender::new(None),
            silence: watch::Sender::new(None),
        }
    }

    /// Records an event of the connection.
    pub(crate) fn note(&self, event: &Event) {
        match event {
            // Permissions may have changed.
            Event::Connected => {
                self.subjects.send_replace(BTreeSet::new());
                self.refusal
                    .send_if_modified(|refusal| refusal.take().is_some());
                self.answered();
            }
            // The server also disconnects a user that it refuses.
            Event::Disconnected if self.refusal.borrow().is_none() => {
                // The client reconnects by itself; requests wait meanwhile.
                self.silent("the connection ended");
            }
            Event::ServerError(ServerError::Other(text)) => {
                if let Some(subject) = denied_subject(text) {
                    self.subjects.send_modify(|all| {
                        all.insert(subject.to_owned());
                    });
                } else if is_of_user(text) {
                    self.refuse(text);
                }
            }
            Event::ServerError(error) => self.refuse(&error.to_string()),
            Event::ClientError(error) if is_of_user(&error.to_string()) => {
                self.refuse(&error.to_string());
            }
            _ => {}
        }
    }

    /// Keeps the first reason: later ones come from attempts to reconnect.
    fn refuse(&self, text: &str) {
        keep_first(&self.refusal, text.trim_start_matches("nats: "));
    }

    /// Records that the server does not answer; the first reason stays.
    pub(crate) fn silent(&self, reason: &str) {
        keep_first(&self.silence, reason);
    }

    /// Records that the server answers.
    pub(crate) fn answered(&self) {
        self.silence
            .send_if_modified(|silence| silence.take().is_some());
    }

    /// Returns a receiver of the reason why the server does not answer.
    pub(crate) fn silences(&self) -> watch::Receiver<Option<String>> {
        self.silence.subscribe()
    }

    /// Forgets denials of subjects with this prefix, so that another attempt shows whether they
    /// still hold.
    pub(crate) fn forget(&self, prefix: &str) {
        self.subjects.send_if_modified(|all| {
            all.retain(|subject| !subject.starts_with(prefix));
            false
        });
    }

    /// Waits until the server denies a subject with this prefix, and returns it.
    pub(crate) async fn under(&self, prefix: &str) -> String {
        let mut subjects = self.subjects.subscribe();
        let find = |all: &BTreeSet<String>| {
            let found = all.iter().find(|subject| subject.starts_with(prefix));
            found.cloned()
        };
        loop {
            if let Some(found) = find(&subjects.borrow_and_update()) {
                return found;
            }
            // `self` holds a sender, so this does not fail.
            let _ = subjects.changed().await;
        }
    }

    /// Returns a receiver of the reason why the server no longer accepts the user.
    pub(crate) fn refusals(&self) -> watch::Receiver<Option<String>> {
        self.refusal.subscribe()
    }
}

/// Notes a reason unless there is one.
fn keep_first(kept: &watch::Sender<Option<String>>, reason: &str) {
    kept.send_if_modified(|kept| {
        // Receivers wake for the first reason only.
        let is_new = kept.is_none();
        kept.get_or_insert_with(|| reason.to_owned());
        is_new
    });
}

/// Returns the subject of nats-server's `Permissions Violation for Publish to "subject"`.
fn denied_subject(text: &str) -> Option<&str> {
    let (_, subject) = text.split_once("Permissions Violation for Publish to \"")?;
    subject.split('"').next()
}

fn is_of_user(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("authorization") || text.contains("authentication")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> Event {
        Event::ServerError(ServerError::Other(text.to_owned()))
    }

    #[tokio::test]
    async fn a_denied_subject_is_found_until_the_connection_is_another() {
        let denials = Denials::new();
        denials.note(&says(
            "Permissions Violation for Publish to \"$KV.fleet-jobs.1\"",
        ));
        assert_eq!(denials.under("$KV.fleet-jobs.1").await, "$KV.fleet-jobs.1");
        assert!(denials.refusals().borrow().is_none());
        denials.note(&Event::Connected);
        assert!(denials.subjects.borrow().is_empty());
    }

    #[test]
    fn a_connection_that_ended_is_a_silence_unless_it_is_a_refusal() {
        let denials = Denials::new();
        let silences = denials.silences();
        denials.note(&Event::Disconnected);
        denials.silent("timed out");
        assert_eq!(silences.borrow().as_deref(), Some("the connection ended"));
        denials.note(&Event::Connected);
        assert_eq!(*silences.borrow(), None);
        denials.note(&Event::ServerError(ServerError::AuthorizationViolation));
        denials.note(&Event::Disconnected);
        assert_eq!(*silences.borrow(), None);
    }

    #[test]
    fn the_first_reason_of_a_refusal_stays_until_there_is_a_connection() {
        let denials = Denials::new();
        denials.note(&says("User Authentication Expired"));
        denials.note(&Event::ServerError(ServerError::AuthorizationViolation));
        let refusals = denials.refusals();
        assert_eq!(
            refusals.borrow().as_deref(),
            Some("User Authentication Expired")
        );
        denials.note(&Event::Connected);
        assert_eq!(*refusals.borrow(), None);
    }
}
