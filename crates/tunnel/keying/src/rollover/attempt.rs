//! One attempt, of either side: how it begins, goes on and ends.

use super::offer::Agreed;
use super::{Attempt, Event, Output, Role, Rollover, Standing};
use crate::chain::{Context, EpochSecret, Link, Policy, Secret};
use crate::message::{Cause, Message, Offer, Refusal, for_people};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// An attempt that runs.
pub(super) struct Running {
    pub(super) attempt: Attempt,
    pub(super) began: Duration,
    /// It takes no longer.
    pub(super) ends: Duration,
    pub(super) cause: Cause,
    pub(super) is_connected: bool,
    /// From its connection until the keys are made.
    exporter: Option<Secret>,
    stage: Stage,
}

/// What is waited for.
pub(super) enum Stage {
    /// Connector: the connection.
    Connecting,
    /// Connector: `Accept`, to that offer.
    Opened(Offer),
    /// Connector: new keys from the KME, with [`Policy::Either`] until then.
    Asking(Agreed, Option<Duration>),
    /// Connector: `Ready`, or `KeysMissing`; with these QKD keys.
    Proposed(Agreed, Vec<Link>),
    /// Connector: `Done`.
    Switched(Arc<EpochSecret>),
    /// Listener: `Open`.
    Accepted,
    /// Listener: `Keys`; whether they were missing before.
    Answered(Agreed, bool),
    /// Listener: keys with these ids from the KME, with [`Policy::Either`] until then.
    Looking(Agreed, Vec<String>, Option<Duration>),
    /// Listener: `Switched`.
    Installed(Arc<EpochSecret>),
    /// Nothing any more: both sides seal with it.
    Over(Arc<EpochSecret>),
}

/// What brings an attempt on.
pub(super) enum Step {
    Message(Message),
    Qkd(Result<Vec<Link>, String>),
    /// The KME has had its time.
    KmeLate,
}

/// Why an attempt, or a channel, comes to its end.
pub(super) struct Broken {
    pub(super) refusal: Option<Refusal>,
    pub(super) by_peer: bool,
    pub(super) detail: String,
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

    /// The connection has ended by itself.
    pub(super) fn gone(reason: String) -> Self {
        Self {
            refusal: None,
            by_peer: false,
            detail: for_people(&reason).into_owned(),
        }
    }

    /// A message that does not belong here.
    pub(super) fn out_of_turn(message: &Message) -> Self {
        Self::refuse(
            Refusal::Protocol,
            format!("`{}` is out of turn", name(message)),
        )
    }

    /// What is to be done with the channel: nothing when it is gone.
    pub(super) fn close(&self, attempt: Attempt, out: &mut Vec<Output>) {
        let Some(why) = self.refusal else { return };
        if !self.by_peer {
            let detail = self.detail.clone();
            out.push(Output::Send(attempt, Message::Refuse { why, detail }));
        }
        out.push(Output::Close(attempt));
    }
}

fn name(message: &Message) -> &'static str {
    match message {
        Message::Open { .. } => "open",
        Message::Accept { .. } => "accept",
        Message::Keys { .. } => "keys",
        Message::KeysMissing { .. } => "keys_missing",
        Message::Ready { .. } => "ready",
        Message::Switched { .. } => "switched",
        Message::Done => "done",
        Message::Rekey { .. } => "rekey",
        Message::Ping { .. } => "ping",
        Message::Pong { .. } => "pong",
        Message::Refuse { .. } => "refuse",
    }
}

impl Running {
    pub(super) fn new(
        attempt: Attempt,
        began: Duration,
        limit: Duration,
        cause: Cause,
        exporter: Option<Secret>,
    ) -> Box<Self> {
        let is_connected = exporter.is_some();
        let stage = if is_connected {
            Stage::Accepted
        } else {
            Stage::Connecting
        };
        Box::new(Self {
            attempt,
            began,
            ends: began + limit,
            cause,
            is_connected,
            exporter,
            stage,
        })
    }

    /// When it has waited long enough for what it waits for.
    pub(super) fn wakes_at(&self) -> Duration {
        match self.stage {
            Stage::Asking(_, Some(until)) | Stage::Looking(_, _, Some(until)) => {
                until.min(self.ends)
            }
            _ => self.ends,
        }
    }

    /// What did not come.
    pub(super) fn late(&self) -> String {
        let missing = match self.stage {
            Stage::Connecting => "connection",
            Stage::Opened(_) => "`accept`",
            Stage::Asking(..) | Stage::Looking(..) => "answer of the KME",
            Stage::Proposed(..) => "`ready`",
            Stage::Switched(_) => "`done`",
            Stage::Accepted => "`open`",
            Stage::Answered(..) => "`keys`",
            Stage::Installed(_) | Stage::Over(_) => "`switched`",
        };
        let limit = self.ends - self.began;
        format!("no {missing} within {} ms", limit.as_millis())
    }

    /// The keys are made: what was wanted before is done with them, what is wanted now is not.
    pub(super) fn has_keys(&self) -> bool {
        matches!(
            self.stage,
            Stage::Switched(_) | Stage::Installed(_) | Stage::Over(_)
        )
    }

    /// Connector: the connection is up, and this offer is sent.
    pub(super) fn opened(&mut self, exporter: Secret, own: Offer) {
        self.is_connected = true;
        self.exporter = Some(exporter);
        self.stage = Stage::Opened(own);
    }
}

impl Rollover {
    /// Brings the running attempt on.
    pub(super) fn step(&mut self, now: Duration, step: Step, out: &mut Vec<Output>) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        // Whoever takes the stage gives the next one, or an end of the attempt.
        let stage = mem::replace(&mut running.stage, Stage::Connecting);
        let next = match step {
            Step::Message(Message::Refuse { why, detail }) => Err(Broken::refused(why, &detail)),
            step => match self.settings.role {
                Role::Connector => self.step_connector(now, &mut running, stage, step, out),
                Role::Listener => self.step_listener(now, &mut running, stage, step, out),
            },
        };
        match next {
            Ok(Stage::Over(secret)) => self.establish(now, &running, &secret, out),
            Ok(stage) => {
                running.stage = stage;
                self.running = Some(running);
            }
            Err(broken) => {
                self.running = Some(running);
                self.fail(now, broken, out);
            }
        }
    }

    /// Both sides seal with a new epoch.
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
        self.failures = 0;
        self.not_before = running.began + settings.retry_min;
        // Where both sides have the same time, the connector comes first, and the listener need not ask.
        let late = match settings.role {
            Role::Connector => Duration::ZERO,
            Role::Listener => (settings.every / 8).min(settings.attempt_limit),
        };
        self.due = Some(now + settings.every + late);
        let standing = Standing::new(running.attempt, now);
        if let Some(old) = self.standing.replace(standing) {
            out.push(Output::Close(old.attempt));
        }
        out.push(Output::Event(Event::Established {
            epoch,
            cause: running.cause,
            took: now.saturating_sub(running.began),
            sources: secret.sources(),
            handshake: settings.policy.mixes_handshake(),
        }));
    }

    /// The running attempt has come to its end without keys; the old ones go on.
    pub(super) fn fail(&mut self, now: Duration, broken: Broken, out: &mut Vec<Output>) {
        let Some(running) = self.running.take() else {
            return;
        };
        if running.is_connected {
            broken.close(running.attempt, out);
        } else if broken.refusal.is_some() {
            out.push(Output::Close(running.attempt));
        }
        if self.settings.role == Role::Connector {
            self.pause(now);
        }
        out.push(Output::Event(Event::Failed {
            refusal: broken.refusal,
            by_peer: broken.by_peer,
            detail: broken.detail,
        }));
    }

    /// What the peer's offer tells beside what was agreed on: which keys it still needs, and whether it is another than the
    /// one at the standing channel's end.
    pub(super) fn heed(&mut self, now: Duration, agreed: &Agreed, out: &mut Vec<Output>) {
        let grace_ends = now + self.settings.grace;
        self.epochs
            .peer_sends_in(agreed.peer_sends_in, grace_ends, out);
        if agreed.peer_is_new
            && let Some(standing) = self.standing.take()
        {
            out.push(Output::Close(standing.attempt));
            let detail = format!("{} has started anew", self.settings.peer_name);
            out.push(Output::Event(Event::PeerLost { detail }));
        }
    }

    /// Until when a KME is waited for: policies that need its keys wait as long as the attempt may take.
    pub(super) fn kme_until(&self, now: Duration) -> Option<Duration> {
        (self.settings.policy == Policy::Either).then(|| now + self.settings.attempt_limit / 3)
    }

    /// Makes the keys. All that was wanted until now is done with them.
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
        let exporter = running
            .exporter
            .as_ref()
            .expect("keys are made once in an attempt, on a connection that is up");
        let secret = Arc::new(EpochSecret::derive(context, exporter, &links));
        running.exporter = None;
        self.wanted = None;
        self.asked = None;
        secret
    }
}
