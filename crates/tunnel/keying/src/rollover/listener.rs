//! The listener: it handles inbound connections, and requests a new epoch over the standing
//! channel.

use super::attempt::{Broken, Running, Stage, Step};
use super::offer::{self, Agreed};
use super::{Attempt, Event, Output, QkdRequest, Rollover};
use crate::Side;
use crate::chain::{EpochSecret, Link, Policy, Secret};
use crate::message::{Cause, Message, Refusal, for_people};
use std::time::Duration;

impl Rollover {
    /// Requests a new epoch if one is wanted; repeats the request if it had no effect.
    pub(super) fn ask(&mut self, now: Duration, out: &mut Vec<Output>) {
        let limit = self.settings.attempt_limit;
        let waits = self.asked.is_some_and(|asked| asked + limit > now);
        if let (Some(cause), Some(standing), false) = (self.wanted, &self.standing, waits) {
            self.asked = Some(now);
            let attempt = standing.attempt;
            self.said += 1;
            out.push(Output::Send(attempt, Message::Rekey { cause }));
        }
    }

    /// A connection was accepted. The peer runs one attempt at a time, so an older one is
    /// abandoned.
    pub(super) fn taken(
        &mut self,
        now: Duration,
        attempt: Attempt,
        exporter: Secret,
        valid_until: Duration,
        out: &mut Vec<Output>,
    ) {
        if attempt.0 <= self.newest {
            return out.push(Output::Close(attempt));
        }
        self.newest = attempt.0;
        let detail = "a newer connection was accepted";
        // Does nothing unless an attempt is running.
        self.fail(now, Broken::refuse(Refusal::Superseded, detail), out);
        let limit = self.settings.attempt_limit;
        // `Open` contains the actual cause.
        let mut running = Running::new(attempt, now, limit, Cause::Start);
        running.connected(exporter, valid_until, Stage::Accepted);
        self.running = Some(running);
    }

    /// Advances an attempt of the listener.
    pub(super) fn step_listener(
        &mut self,
        now: Duration,
        running: &mut Running,
        stage: Stage,
        step: Step,
        out: &mut Vec<Output>,
    ) -> Result<Stage, Broken> {
        let attempt = running.attempt;
        match (stage, step) {
            (Stage::Accepted, Step::Message(Message::Open { offer: peer, cause })) => {
                // Answers only, and changes no epoch: an `Open` may be old and delayed.
                let offer = offer::own(&self.settings, &self.epochs);
                let agreed = offer::agree(&self.settings, &offer, &peer)?;
                running.cause = cause;
                let epoch = agreed.epoch;
                out.push(Output::Send(attempt, Message::Accept { offer, epoch }));
                Ok(Stage::Answered(agreed, false))
            }
            (Stage::Answered(agreed, were_missing), Step::Message(Message::Keys { qkd: ids })) => {
                // The peer's state is in its offer, which a repeated `Keys` does not change.
                if !were_missing {
                    self.heed(now, &agreed, out);
                }
                match (self.settings.policy, ids.is_empty()) {
                    (Policy::Pqc, true) => Ok(self.install(now, running, agreed, &[], out)),
                    (Policy::Either, true) => {
                        if !were_missing {
                            let detail = format!("{} has no QKD keys", self.settings.peer_name);
                            out.push(Output::Event(Event::WithoutQkd { detail }));
                        }
                        Ok(self.install(now, running, agreed, &[], out))
                    }
                    (Policy::Qkd | Policy::Both, true) => {
                        let policy = self.settings.policy;
                        let detail =
                            format!("policy {policy} requires QKD keys, and there are none");
                        Err(Broken::refuse(Refusal::Qkd, detail))
                    }
                    (Policy::Pqc, false) => {
                        let detail = "policy pqc does not permit QKD keys";
                        Err(Broken::refuse(Refusal::Protocol, detail))
                    }
                    // Otherwise a peer could try one key after the other against the KME.
                    (_, false) if were_missing => {
                        let detail = "QKD keys were missing, and the peer proposes others";
                        Err(Broken::refuse(Refusal::Protocol, detail))
                    }
                    (_, false) => {
                        out.push(Output::FetchQkd(attempt, QkdRequest::Named(ids.clone())));
                        Ok(Stage::Looking(agreed, ids, self.kme_until(now)))
                    }
                }
            }
            (
                Stage::Answered(agreed, false),
                Step::Message(Message::Keep { confirmation, said }),
            ) => {
                let secret = self.epochs.outbound_secret().cloned();
                let kept = secret.filter(|secret| agreed.peer_sends_in == Some(secret.epoch()));
                let Some(secret) = kept else {
                    let detail = "the keys that are to be kept are no longer in use";
                    return Err(Broken::refuse(Refusal::KeysDiffer, detail));
                };
                // Before anything is changed: only a peer with the keys may end this side's old
                // epochs.
                if !secret.is_possessed(Side::A, running.exporter(), &confirmation) {
                    return Err(self.keys_differ(&secret));
                }
                self.refuse_older(said)?;
                self.heed(now, &agreed, out);
                let confirmation = secret.possession(Side::B, running.exporter());
                let said = self.said;
                out.push(Output::Send(attempt, Message::Kept { confirmation, said }));
                Ok(Stage::Kept(secret))
            }
            (Stage::Looking(agreed, ids, _), Step::Qkd(keys)) => {
                match keys.and_then(|keys| self.spent.take_named(keys, &ids)) {
                    Ok(keys) => Ok(self.install(now, running, agreed, &keys, out)),
                    Err(reason) => self.miss(attempt, agreed, &reason, out),
                }
            }
            (Stage::Looking(agreed, ..), Step::KmeLate) => {
                self.miss(attempt, agreed, "the KME did not answer in time", out)
            }
            (Stage::Installed(secret), Step::Message(Message::Switched { confirmation })) => {
                if !secret.confirms(Side::A, &confirmation) {
                    return Err(self.keys_differ(&secret));
                }
                self.epochs.switch(&secret, out)?;
                // Both sides count from the same message of the protocol.
                (self.said, self.heard) = (0, 0);
                out.push(Output::Send(attempt, Message::Done));
                Ok(Stage::Over(secret))
            }
            (_, Step::Message(message)) => Err(Broken::out_of_turn(&message)),
            // A late result of the KME.
            (stage, Step::Qkd(_) | Step::KmeLate) => Ok(stage),
        }
    }

    /// Derives and installs the new epoch's inbound keys, and sends `Ready`.
    fn install(
        &mut self,
        now: Duration,
        running: &mut Running,
        agreed: Agreed,
        keys: &[Link],
        out: &mut Vec<Output>,
    ) -> Stage {
        let secret = self.derive(running, agreed, keys);
        let expires = running.expires(now, self.settings.hard);
        // Before `Ready` is sent: the connector may seal as soon as it has it.
        self.epochs.install(&secret, expires, out);
        let confirmation = secret.confirmation(Side::B);
        let ready = Message::Ready { confirmation };
        out.push(Output::Send(running.attempt, ready));
        Stage::Installed(secret)
    }

    /// The KME does not deliver the peer's QKD keys: proceeds without them if the policy is
    /// [`Policy::Either`]; otherwise refuses.
    fn miss(
        &mut self,
        attempt: Attempt,
        agreed: Agreed,
        reason: &str,
        out: &mut Vec<Output>,
    ) -> Result<Stage, Broken> {
        let detail = self.may_go_without(reason)?;
        let reason = detail.clone();
        out.push(Output::Send(attempt, Message::KeysMissing { reason }));
        out.push(Output::Event(Event::WithoutQkd { detail }));
        Ok(Stage::Answered(agreed, true))
    }

    /// Returns the reason for missing QKD keys as a message; refuses with every policy but
    /// [`Policy::Either`].
    pub(super) fn may_go_without(&self, detail: &str) -> Result<String, Broken> {
        match self.settings.policy {
            Policy::Either => Ok(for_people(detail).into_owned()),
            _ => Err(Broken::refuse(Refusal::Qkd, detail)),
        }
    }

    /// The refusal for keys that differ between the two sides.
    pub(super) fn keys_differ(&self, secret: &EpochSecret) -> Broken {
        let sources = secret.sources().join(", ");
        let made_of = if sources.is_empty() {
            "handshake".to_owned()
        } else {
            sources
        };
        let (own, peer) = (&self.settings.own_name, &self.settings.peer_name);
        let detail = format!(
            "{own} and {peer} have different keys of epoch {}, made of: {made_of}",
            secret.epoch()
        );
        Broken::refuse(Refusal::KeysDiffer, detail)
    }
}
