//! The connector, which starts all attempts.

use super::attempt::{Broken, Running, Stage, Step};
use super::offer::{self, Agreed};
use super::{Attempt, Event, Output, Role, Rollover};
use crate::Side;
use crate::chain::{Link, Secret};
use crate::message::{Cause, Message, Refusal};
use std::time::Duration;

/// Maximum number of doublings of the pause, whatever its limit.
const DOUBLINGS_MAX: u32 = 20;

impl Rollover {
    /// Starts an attempt if one is wanted and due.
    pub(super) fn begin(&mut self, now: Duration, out: &mut Vec<Output>) {
        if self.not_before > now {
            return;
        }
        let Some(cause) = self.wanted.take() else {
            return;
        };
        self.newest += 1;
        let attempt = Attempt(self.newest);
        let limit = self.settings.attempt_limit;
        self.running = Some(Running::new(attempt, now, limit, cause));
        out.push(Output::Connect(attempt));
    }

    /// Schedules another attempt after a failed one, with a pause.
    pub(super) fn pause(&mut self, now: Duration) {
        let doublings = self.failures.min(DOUBLINGS_MAX);
        let pause = self.settings.retry_min.saturating_mul(1 << doublings);
        self.not_before = now + pause.min(self.settings.retry_max);
        self.failures = self.failures.saturating_add(1);
        self.wanted.get_or_insert(Cause::Retry);
    }

    /// A connection is up: that of the running attempt, or one that is no longer wanted.
    pub(super) fn connected(
        &mut self,
        now: Duration,
        attempt: Attempt,
        exporter: Secret,
        valid_until: Duration,
        out: &mut Vec<Output>,
    ) {
        if self.settings.role == Role::Listener {
            return self.taken(now, attempt, exporter, valid_until, out);
        }
        let known = self.is_running(attempt) || self.is_standing(attempt);
        match &mut self.running {
            Some(running) if running.attempt == attempt && !running.is_connected => {
                let own = offer::own(&self.settings, &self.epochs);
                let open = Message::Open {
                    offer: own.clone(),
                    cause: running.cause,
                };
                running.connected(exporter, valid_until, Stage::Opened(own));
                out.push(Output::Send(attempt, open));
            }
            _ if known => {}
            _ => out.push(Output::Close(attempt)),
        }
    }

    /// Advances an attempt of the connector.
    pub(super) fn step_connector(
        &mut self,
        now: Duration,
        running: &mut Running,
        stage: Stage,
        step: Step,
        out: &mut Vec<Output>,
    ) -> Result<Stage, Broken> {
        let attempt = running.attempt;
        match (stage, step) {
            (Stage::Opened(own), Step::Message(Message::Accept { offer: peer, epoch })) => {
                let agreed = offer::agree(&self.settings, &own, &peer)?;
                if agreed.epoch != epoch {
                    let due = agreed.epoch;
                    let detail = format!("epoch {epoch} was chosen, where {due} is next");
                    return Err(Broken::refuse(Refusal::Protocol, detail));
                }
                self.heed(now, &agreed, out);
                if !self.settings.policy.asks_qkd() {
                    return Ok(propose(attempt, agreed, Vec::new(), out));
                }
                out.push(Output::FetchQkd(attempt, None));
                Ok(Stage::Asking(agreed, self.kme_until(now)))
            }
            (Stage::Asking(agreed, _), Step::Qkd(keys)) => {
                match keys.and_then(|keys| self.spent.take(keys)) {
                    Ok(keys) => Ok(propose(attempt, agreed, keys, out)),
                    Err(detail) => self.go_without(attempt, agreed, &detail, out),
                }
            }
            (Stage::Asking(agreed, _), Step::KmeLate) => {
                self.go_without(attempt, agreed, "the KME did not answer in time", out)
            }
            (Stage::Proposed(agreed, qkd), Step::Message(Message::KeysMissing { reason }))
                if !qkd.is_empty() =>
            {
                let detail = format!("{}: {reason}", self.settings.peer_name);
                self.go_without(attempt, agreed, &detail, out)
            }
            (Stage::Proposed(agreed, qkd), Step::Message(Message::Ready { confirmation })) => {
                let secret = self.derive(running, agreed, &qkd);
                if !secret.confirms(Side::B, &confirmation) {
                    return Err(self.keys_differ(&secret));
                }
                let expires = running.expires(now, self.settings.hard);
                self.epochs.install(&secret, expires, out);
                self.epochs.switch(&secret, out)?;
                let confirmation = secret.confirmation(Side::A);
                out.push(Output::Send(attempt, Message::Switched { confirmation }));
                Ok(Stage::Switched(secret))
            }
            (Stage::Switched(secret), Step::Message(Message::Done)) => Ok(Stage::Over(secret)),
            (_, Step::Message(message)) => Err(Broken::out_of_turn(&message)),
            // A late result of the KME.
            (stage, Step::Qkd(_) | Step::KmeLate) => Ok(stage),
        }
    }

    /// Proceeds without QKD keys if the policy is `either`; otherwise refuses.
    fn go_without(
        &mut self,
        attempt: Attempt,
        agreed: Agreed,
        detail: &str,
        out: &mut Vec<Output>,
    ) -> Result<Stage, Broken> {
        let detail = self.may_go_without(detail)?;
        out.push(Output::Event(Event::WithoutQkd { detail }));
        Ok(propose(attempt, agreed, Vec::new(), out))
    }
}

fn propose(attempt: Attempt, agreed: Agreed, keys: Vec<Link>, out: &mut Vec<Output>) -> Stage {
    let qkd = keys.iter().map(|link| link.id.clone()).collect();
    out.push(Output::Send(attempt, Message::Keys { qkd }));
    Stage::Proposed(agreed, keys)
}
