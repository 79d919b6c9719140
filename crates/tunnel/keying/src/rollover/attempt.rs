//! One attempt of either side, from start to end.

use super::live::Expired;
use super::offer::Agreed;
use super::{Attempt, Event, Output, Role, Rollover, Standing};
use crate::chain::{Context, EpochSecret, Link, Policy, Secret};
use crate::message::{Cause, Message, Offer, Refusal, for_people};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// A running attempt.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Running {
    pub(super) attempt: Attempt,
    pub(super) began: Duration,
    /// Its deadline.
    pub(super) ends: Duration,
    pub(super) cause: Cause,
    /// Connector: only a channel is missing, so that keys that both sides have are kept.
    pub(super) may_keep: bool,
    /// Connector: it has taken a token from the budget.
    pub(super) has_token: bool,
    pub(super) is_connected: bool,
    /// When the first certificate of either side expires, once it is connected.
    valid_until: Duration,
    /// The connection's secret; `None` before it is up and after the keys are derived.
    exporter: Option<Secret>,
    stage: Stage,
}

/// The input that an attempt waits for.
#[cfg_attr(test, derive(Clone))]
pub(super) enum Stage {
    /// Connector: waits for the connection.
    Connecting,
    /// Connector: waits for `Accept`, the response to this offer.
    Opened(Offer),
    /// Connector: waits for new keys from the KME, with [`Policy::Either`] until this time.
    Asking(Agreed, Option<Duration>),
    /// Connector: waits for `Ready` or `KeysMissing`, having proposed these QKD keys.
    Proposed(Agreed, Vec<Link>),
    /// Connector: waits for `Done`.
    Switched(Arc<EpochSecret>),
    /// Connector: waits for `Kept`.
    Keeping(Arc<EpochSecret>),
    /// Listener: waits for `Open`.
    Accepted,
    /// Listener: waits for `Keys`; the flag is set after `KeysMissing`.
    Answered(Agreed, bool),
    /// Listener: waits for the keys with these IDs from the KME, with [`Policy::Either`] until this
    /// time.
    Looking(Agreed, Vec<String>, Option<Duration>),
    /// Listener: waits for `Switched`.
    Installed(Arc<EpochSecret>),
    /// Complete: both sides seal with the epoch.
    Over(Arc<EpochSecret>),
    /// Complete: both sides have shown that they still have the keys of this epoch.
    Kept(Arc<EpochSecret>),
}

/// An input that advances an attempt.
pub(super) enum Step {
    Message(Message),
    Qkd(Result<Vec<Link>, String>),
    /// The KME's time limit has passed.
    KmeLate,
}

/// Why an attempt or a channel failed.
pub(super) struct Broken {
    pub(super) refusal: Option<Refusal>,
    pub(super) by_peer: bool,
    pub(super) detail: String,
}

impl From<Expired> for Broken {
    fn from(Expired(epoch): Expired) -> Self {
        let detail = format!("the keys of epoch {epoch} expired before both sides had them");
        Self::refuse(Refusal::Timeout, detail)
    }
}

impl Broken {
    /// This side refuses.
    pub(super) fn refuse(refusal: Refusal, detail: impl Into<String>) -> Self {
        Self {
            refusal: Some(refusal),
            by_peer: false,
            detail: for_people(&detail.into()).into_owned(),
        }
    }

    /// The peer refuses.
    pub(super) fn refused(refusal: Refusal, detail: &str) -> Self {
        Self {
            by_peer: true,
            ..Self::refuse(refusal, detail)
        }
    }

    /// The connection ended without a refusal.
    pub(super) fn gone(reason: String) -> Self {
        Self {
            refusal: None,
            by_peer: false,
            detail: for_people(&reason).into_owned(),
        }
    }

    /// A message is not expected in this state.
    pub(super) fn out_of_turn(message: &Message) -> Self {
        Self::refuse(
            Refusal::Protocol,
            format!("`{}` is out of order", message.name()),
        )
    }

    /// Closes the channel, unless it is already gone. If this side refuses, sends the reason first.
    pub(super) fn close(&self, attempt: Attempt, out: &mut Vec<Output>) {
        let Some(why) = self.refusal else { return };
        if !self.by_peer {
            let detail = self.detail.clone();
            out.push(Output::Send(attempt, Message::Refuse { why, detail }));
        }
        out.push(Output::Close(attempt));
    }
}

impl Running {
    pub(super) fn new(
        attempt: Attempt,
        began: Duration,
        limit: Duration,
        cause: Cause,
    ) -> Box<Self> {
        Box::new(Self {
            attempt,
            began,
            ends: began + limit,
            cause,
            may_keep: false,
            has_token: false,
            is_connected: false,
            valid_until: Duration::ZERO,
            exporter: None,
            stage: Stage::Connecting,
        })
    }

    /// When the current wait times out.
    pub(super) fn wakes_at(&self) -> Duration {
        match self.stage {
            Stage::Asking(_, Some(until)) | Stage::Looking(_, _, Some(until)) => {
                until.min(self.ends)
            }
            _ => self.ends,
        }
    }

    /// Describes the missing input.
    pub(super) fn late(&self) -> String {
        let missing = match self.stage {
            Stage::Connecting => "connection",
            Stage::Opened(_) => "`accept`",
            Stage::Asking(..) | Stage::Looking(..) => "answer of the KME",
            Stage::Proposed(..) => "`ready`",
            Stage::Switched(_) => "`done`",
            Stage::Accepted => "`open`",
            Stage::Answered(..) => "`keys`",
            Stage::Keeping(_) => "`kept`",
            Stage::Installed(_) | Stage::Over(_) | Stage::Kept(_) => "`switched`",
        };
        let limit = self.ends - self.began;
        format!("no {missing} within {} ms", limit.as_millis())
    }

    /// Whether the keys are derived. They satisfy earlier requests for a new epoch, but not later
    /// ones.
    pub(super) fn has_keys(&self) -> bool {
        matches!(
            self.stage,
            Stage::Switched(_) | Stage::Installed(_) | Stage::Over(_)
        )
    }

    /// Takes a request for a new epoch, if the attempt will satisfy it.
    pub(super) fn takes(&mut self, cause: Cause) -> bool {
        if self.has_keys() || matches!(self.stage, Stage::Keeping(_) | Stage::Kept(_)) {
            return false;
        }
        // A channel alone is no longer enough: the offers decide on new keys now.
        if self.may_keep {
            self.may_keep = false;
            self.cause = cause;
        }
        true
    }

    /// The connection's secret. Panics after the keys are derived.
    pub(super) fn exporter(&self) -> &Secret {
        self.exporter
            .as_ref()
            .expect("it is there until keys are derived, once per attempt, on a connection")
    }

    #[cfg(test)]
    pub(super) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The connection is up, with certificates that are valid until then.
    pub(super) fn connected(&mut self, exporter: Secret, valid_until: Duration, stage: Stage) {
        self.is_connected = true;
        self.exporter = Some(exporter);
        self.valid_until = valid_until;
        self.stage = stage;
    }

    /// When the hard lifetime of an epoch is over that is derived now.
    pub(super) fn expires(&self, now: Duration, hard: Option<Duration>) -> Option<Duration> {
        // Not beyond the certificates: afterwards nobody vouches for the peer any more.
        Some(now.saturating_add(hard?).min(self.valid_until))
    }
}

impl Rollover {
    /// Advances the running attempt.
    pub(super) fn step(&mut self, now: Duration, step: Step, out: &mut Vec<Output>) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        // A placeholder: each step yields the next stage or ends the attempt.
        let stage = mem::replace(&mut running.stage, Stage::Connecting);
        let keeps = matches!(stage, Stage::Keeping(_));
        let next = match step {
            Step::Message(Message::Refuse { why, detail }) => Err(Broken::refused(why, &detail)),
            step => match self.settings.role {
                Role::Connector => self.step_connector(now, &mut running, stage, step, out),
                Role::Listener => self.step_listener(now, &mut running, stage, step, out),
            },
        };
        match next {
            Ok(Stage::Over(secret)) => self.establish(now, &running, &secret, out),
            Ok(Stage::Kept(secret)) => self.resume(now, &running, &secret, out),
            Ok(stage) => {
                running.stage = stage;
                self.running = Some(running);
            }
            Err(broken) => {
                // The keys differ, or the peer was restored to an earlier state. Another attempt to
                // keep them would fail for the same reason.
                running.may_keep &= !(keeps && broken.refusal == Some(Refusal::KeysDiffer));
                self.running = Some(running);
                self.fail(now, broken, out);
            }
        }
    }

    /// Completes an attempt: both sides seal with the new epoch.
    fn establish(
        &mut self,
        now: Duration,
        running: &Running,
        secret: &EpochSecret,
        out: &mut Vec<Output>,
    ) {
        let (epoch, settings) = (secret.epoch(), &self.settings);
        self.epochs
            .peer_sends_in(Some(epoch), now + settings.grace, out);
        self.established = Some(epoch);
        self.is_new_epoch_untried = true;
        // Requests in quick succession must not become attempts without a pause.
        self.not_before = self.not_before.max(running.began + settings.retry_min);
        // With equal settings on both sides the connector acts first, and the listener need not
        // ask.
        let late = match settings.role {
            Role::Connector => Duration::ZERO,
            Role::Listener => (settings.every / 8).min(settings.attempt_limit),
        };
        self.due = Some(now + settings.every + late);
        let handshake = settings.policy.mixes_handshake();
        self.stand(now, running, out);
        out.push(Output::Event(Event::Established {
            epoch,
            cause: running.cause,
            took: now.saturating_sub(running.began),
            sources: secret.sources(),
            handshake,
        }));
    }

    /// Completes an attempt that keeps the keys.
    fn resume(
        &mut self,
        now: Duration,
        running: &Running,
        secret: &EpochSecret,
        out: &mut Vec<Output>,
    ) {
        let epoch = secret.epoch();
        // If the last message of its attempt was lost, the connector could not know of the epoch.
        let is_in_use = self.epochs.outbound() == Some(epoch);
        if is_in_use && self.established != Some(epoch) {
            return self.establish(now, running, secret, out);
        }
        self.not_before = self.not_before.max(running.began + self.settings.retry_min);
        // A request over the old channel may be lost.
        self.asked = None;
        self.stand(now, running, out);
        out.push(Output::Event(Event::PeerBack { epoch }));
    }

    /// Refuses to keep keys with a peer that has sent fewer messages than were received from it: it
    /// was restored from a snapshot, and would repeat nonces.
    pub(super) fn refuse_older(&self, said: u64) -> Result<(), Broken> {
        if said >= self.heard {
            return Ok(());
        }
        let detail = format!(
            "{} was restored to an earlier state: its keys would repeat nonces, so there are new ones",
            self.settings.peer_name
        );
        Err(Broken::refuse(Refusal::KeysDiffer, detail))
    }

    /// The attempt's connection becomes the standing channel.
    fn stand(&mut self, now: Duration, running: &Running, out: &mut Vec<Output>) {
        let standing = Standing::new(running.attempt, now);
        // The old channel is closed only after the new one has succeeded: until then it carries
        // requests, and shows that the peer lives.
        if let Some(old) = self.standing.replace(standing) {
            out.push(Output::Close(old.attempt));
        }
    }

    /// Ends the running attempt without keys. The old keys stay in use.
    pub(super) fn fail(&mut self, now: Duration, broken: Broken, out: &mut Vec<Output>) {
        let Some(running) = self.running.take() else {
            return;
        };
        if running.is_connected {
            broken.close(running.attempt, out);
        // No connection yet, so no reason can be sent. A connection that has failed by itself needs
        // no end.
        } else if broken.refusal.is_some() {
            out.push(Output::Close(running.attempt));
        }
        if self.settings.role == Role::Connector {
            let limit = self.settings.attempt_limit;
            let standing = self.standing.as_mut();
            // A channel that has lasted shows that the failures before it are over.
            if standing.is_some_and(|standing| standing.forgives(now, limit)) {
                self.failures = 0;
            }
            self.pause(now);
            // Even without `Done`, the epoch may be in use on both sides.
            let may_be_shared =
                matches!(running.stage, Stage::Switched(_)) && self.standing.is_none();
            if !running.may_keep && !may_be_shared {
                self.wanted.get_or_insert(Cause::Retry);
            }
        }
        out.push(Output::Event(Event::Failed {
            refusal: broken.refusal,
            by_peer: broken.by_peer,
            detail: broken.detail,
        }));
    }

    /// Applies the state in the peer's offer: which keys it still uses, and whether it has
    /// restarted since the standing channel was established.
    pub(super) fn heed(&mut self, now: Duration, agreed: &Agreed, out: &mut Vec<Output>) {
        let grace_ends = now + self.settings.grace;
        self.epochs
            .peer_sends_in(agreed.peer_sends_in, grace_ends, out);
        if agreed.peer_is_new
            && let Some(standing) = self.standing.take()
        {
            out.push(Output::Close(standing.attempt));
            let detail = format!("{} has restarted", self.settings.peer_name);
            out.push(Output::Event(Event::PeerLost { detail }));
        }
    }

    /// The deadline of the KME. `None`: a policy that requires its keys waits until the attempt's
    /// end.
    pub(super) fn kme_until(&self, now: Duration) -> Option<Duration> {
        // Leaves the rest of the attempt for the messages that follow.
        (self.settings.policy == Policy::Either).then(|| now + self.settings.attempt_limit / 3)
    }

    /// Derives the keys. They satisfy all requests for a new epoch so far.
    pub(super) fn derive(
        &mut self,
        running: &mut Running,
        agreed: Agreed,
        qkd: &[Link],
    ) -> Arc<EpochSecret> {
        let settings = &self.settings;
        let (own, peer) = (settings.own_name.clone(), settings.peer_name.clone());
        let (connector, listener) = match settings.role {
            Role::Connector => (own, peer),
            Role::Listener => (peer, own),
        };
        let context = Context {
            connector,
            listener,
            tunnel: settings.tunnel,
            lanes: settings.lanes,
            suite: settings.suite,
            policy: settings.policy,
            epoch: agreed.epoch,
        };
        let mut links = agreed.ppks;
        links.extend_from_slice(qkd);
        let secret = Arc::new(EpochSecret::derive(context, running.exporter(), &links));
        // Taken away, so that no second epoch can be derived from one connection.
        running.exporter = None;
        self.wanted = None;
        self.asked = None;
        secret
    }
}
