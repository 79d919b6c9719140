//! The connector, which starts all attempts.

use super::attempt::{Broken, Running, Stage, Step};
use super::offer::{self, Agreed};
use super::{Attempt, Event, Output, QkdRequest, Role, Rollover};
use crate::Side;
use crate::chain::{EpochSecret, Link, Secret};
use crate::message::{Cause, Message, Offer, Refusal};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of doublings of the pause, independent of its limit.
const DOUBLINGS_MAX: u32 = 20;

impl Rollover {
    /// When the next attempt starts, for a new epoch or, while there is no channel, for a channel.
    pub(super) fn begins_at(&self) -> Option<Duration> {
        match self.wanted {
            Some(cause) if cause.is_provoked() => Some(self.not_before.max(self.budget.ready_at())),
            Some(_) => Some(self.not_before),
            None if self.standing.is_none() => Some(self.not_before),
            None => None,
        }
    }

    /// Starts an attempt if one is due.
    pub(super) fn begin(&mut self, now: Duration, out: &mut Vec<Output>) {
        // The budget is only looked at here: the token is taken when the peer has accepted.
        if self.begins_at().is_none_or(|at| at > now) {
            return;
        }
        let wanted = self.wanted.take();
        self.newest += 1;
        let attempt = Attempt(self.newest);
        let limit = self.settings.attempt_limit;
        let mut running = Running::new(attempt, now, limit, wanted.unwrap_or(Cause::Start));
        // Nobody wants new keys, so a channel to the peer is enough.
        running.may_keep = wanted.is_none();
        self.running = Some(running);
        out.push(Output::Connect(attempt));
    }

    /// Delays the next attempt: after a failed one, and after the loss of a channel that has not
    /// lasted. Success does not shorten the pause, since an attacker can let attempts succeed and
    /// cut their channels.
    pub(super) fn pause(&mut self, now: Duration) {
        let doublings = self.failures.min(DOUBLINGS_MAX);
        let pause = self.settings.retry_min.saturating_mul(1 << doublings);
        self.not_before = now + pause.min(self.settings.retry_max);
        self.failures = self.failures.saturating_add(1);
    }

    /// A connection is up, either for the running attempt or no longer wanted.
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
                // With the offer as it was sent: epochs may have ended since.
                let agreed = offer::agree(&self.settings, &own, &peer)?;
                // Both sides compute the number. A difference would otherwise show later, as keys
                // that differ for no visible reason.
                if agreed.epoch != epoch {
                    let due = agreed.epoch;
                    let detail = format!("epoch {epoch} was chosen, where {due} is next");
                    return Err(Broken::refuse(Refusal::Protocol, detail));
                }
                self.heed(now, &agreed, out);
                if let Some(secret) = self.shared(running, &own, &agreed) {
                    let exporter = running.exporter();
                    let confirmation = secret.possession(Side::A, exporter);
                    let said = self.said;
                    out.push(Output::Send(attempt, Message::Keep { confirmation, said }));
                    return Ok(Stage::Keeping(secret));
                }
                running.may_keep = false;
                // No network can make an authentic peer say that it has just started.
                let has_restarted = agreed.peer_is_new && self.is_new_epoch_untried;
                self.is_new_epoch_untried = false;
                let provoked = running.cause.is_provoked() && !has_restarted;
                // As late as possible: an attempt that fails before this point has cost no keys.
                if provoked && !self.budget.take(now) {
                    return Err(self.too_often(now));
                }
                running.has_token = provoked;
                if !self.settings.policy.asks_qkd() {
                    return Ok(propose(attempt, agreed, Vec::new(), out));
                }
                out.push(Output::FetchQkd(attempt, QkdRequest::New { provoked }));
                Ok(Stage::Asking(agreed, self.kme_until(now)))
            }
            (Stage::Asking(agreed, _), Step::Qkd(keys)) => {
                let gave_none = keys.is_err();
                // The KME may be wrong or taken over, so its keys are checked like a peer's
                // message.
                match keys.and_then(|keys| self.spent.take(keys)) {
                    Ok(keys) => Ok(propose(attempt, agreed, keys, out)),
                    Err(detail) => {
                        self.go_without(attempt, agreed, &detail, out)
                            .inspect_err(|_| {
                                // The KME gave no keys, so that none were lost.
                                if running.has_token && gave_none {
                                    self.budget.put_back();
                                }
                            })
                    }
                }
            }
            (Stage::Asking(agreed, _), Step::KmeLate) => {
                self.go_without(attempt, agreed, "the KME did not answer in time", out)
            }
            (Stage::Proposed(agreed, qkd), Step::Message(Message::KeysMissing { reason }))
                // Once only: after a proposal without keys none can be missing.
                if !qkd.is_empty() =>
            {
                let detail = format!("{}: {reason}", self.settings.peer_name);
                self.go_without(attempt, agreed, &detail, out)
            }
            (Stage::Proposed(agreed, qkd), Step::Message(Message::Ready { confirmation })) => {
                // The listener opens packets of the epoch already. Its proof is checked before this
                // side seals.
                let secret = self.derive(running, agreed, &qkd);
                if !secret.confirms(Side::B, &confirmation) {
                    return Err(self.keys_differ(&secret));
                }
                let expires = running.expires(now, self.settings.hard);
                // Opens first, because the listener seals as soon as it receives `Switched`.
                self.epochs.install(&secret, expires, out);
                self.epochs.switch(&secret, out)?;
                (self.said, self.heard) = (0, 0);
                let confirmation = secret.confirmation(Side::A);
                out.push(Output::Send(attempt, Message::Switched { confirmation }));
                Ok(Stage::Switched(secret))
            }
            (Stage::Switched(secret), Step::Message(Message::Done)) => Ok(Stage::Over(secret)),
            (Stage::Keeping(secret), Step::Message(Message::Kept { confirmation, said })) => {
                if !secret.is_possessed(Side::B, running.exporter(), &confirmation) {
                    return Err(self.keys_differ(&secret));
                }
                self.refuse_older(said)?;
                Ok(Stage::Kept(secret))
            }
            (_, Step::Message(message)) => Err(Broken::out_of_turn(&message)),
            // A late result of the KME.
            (stage, Step::Qkd(_) | Step::KmeLate) => Ok(stage),
        }
    }

    /// The secret of the epoch that both sides seal with, if the attempt may keep it.
    fn shared(&self, running: &Running, own: &Offer, agreed: &Agreed) -> Option<Arc<EpochSecret>> {
        let secret = self.epochs.outbound_secret()?;
        let epoch = Some(secret.epoch());
        let is_shared = own.sends_in == epoch && agreed.peer_sends_in == epoch;
        (running.may_keep && is_shared).then(|| Arc::clone(secret))
    }

    /// The refusal of new keys that a network may have provoked.
    fn too_often(&self, now: Duration) -> Broken {
        let wait = self.budget.ready_at().saturating_sub(now);
        let detail = format!(
            "new keys were needed too often of late because of connections lost, attempts failed or \
             packets not opened: the next may follow in {} s",
            wait.as_secs() + 1
        );
        Broken::refuse(Refusal::TooOften, detail)
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
