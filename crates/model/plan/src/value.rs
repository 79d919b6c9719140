//! Values on axes.

use crate::words::{nanos, on_off};
use crate::{
    Direction, Dscp, HttpClient, HttpServer, HttpVersion, ImpairProfile, IpVersion, LatencyPath,
    Overlay, Picture, Player, Ports, Store, Tool, TransferDirection, VideoTransport, Workers,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::human::counted;
use wire::mix::{Contents, FrameMix};

/// A value on an axis: as in the campaign in a [`Coordinate`](super::Coordinate), in force by
/// [`Cell::value`](super::Cell::value).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Left open: the DUT, the tool or another value decides.
    Open,
    /// On or off.
    Switch(bool),
    /// A number in the unit of the axis.
    Number(u64),
    /// A name, or a value of several parts; it has neither blank nor slash.
    Word(String),
}

impl Value {
    /// Without a unit.
    #[must_use]
    pub fn plain(&self) -> String {
        match self {
            // An axis may have another word for it in ids.
            Self::Open => "auto".to_owned(),
            Self::Switch(on) => on_off(*on).to_owned(),
            Self::Number(number) => number.to_string(),
            Self::Word(word) => word.clone(),
        }
    }

    pub(crate) fn counted(&self, noun: &str) -> String {
        match self {
            Self::Number(number) => counted(*number, noun),
            other => format!("{} {noun}s", other.plain()),
        }
    }
}

impl From<&str> for Value {
    fn from(word: &str) -> Self {
        // Coordinates are parts of ids, which have no blanks.
        Self::Word(word.replace(' ', "-"))
    }
}

impl From<String> for Value {
    fn from(word: String) -> Self {
        word.as_str().into()
    }
}

impl From<bool> for Value {
    fn from(on: bool) -> Self {
        Self::Switch(on)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        u64::from(number).into()
    }
}

impl From<u8> for Value {
    fn from(number: u8) -> Self {
        u64::from(number).into()
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        u64::from(number).into()
    }
}

impl From<Duration> for Value {
    fn from(time: Duration) -> Self {
        nanos(time).into()
    }
}

impl From<&ImpairProfile> for Value {
    fn from(profile: &ImpairProfile) -> Self {
        profile.name.as_str().into()
    }
}

/// Settings that axes show by their names.
pub(crate) trait Named: Into<&'static str> {}

impl Named for Direction {}
impl Named for Dscp {}
impl Named for HttpClient {}
impl Named for HttpServer {}
impl Named for HttpVersion {}
impl Named for LatencyPath {}
impl Named for Overlay {}
impl Named for Picture {}
impl Named for Player {}
impl Named for Store {}
impl Named for Tool {}
impl Named for TransferDirection {}
impl Named for VideoTransport {}
impl Named for Workers {}

// Not for every `Into<&'static str>`: `&'static str` itself is one, and has a conversion above.
impl<N: Named> From<N> for Value {
    fn from(named: N) -> Self {
        let name: &'static str = named.into();
        name.into()
    }
}

impl From<IpVersion> for Value {
    fn from(version: IpVersion) -> Self {
        version.number().into()
    }
}

impl From<Contents> for Value {
    fn from(contents: Contents) -> Self {
        contents.name().into()
    }
}

impl From<Ports> for Value {
    fn from(ports: Ports) -> Self {
        if ports == Ports::default() {
            Self::Open
        } else {
            ports.to_string().into()
        }
    }
}

/// `64`, `imix1`, `7x64+4x594+1x1518`.
impl From<FrameMix> for Value {
    fn from(mix: FrameMix) -> Self {
        // One size is a number, so that it sorts and compares as one.
        if let [share] = mix.shares.as_slice() {
            return share.frame_bytes.into();
        }
        // A mix that a campaign spells out is named `mix`, which would not distinguish two of
        // them.
        if FrameMix::named(&mix.name).is_some() {
            return mix.name.into();
        }
        let shares = mix.shares.iter();
        let shares: Vec<_> = shares
            .map(|share| format!("{}x{}", share.weight, share.frame_bytes))
            .collect();
        shares.join("+").into()
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Open, Into::into)
    }
}
