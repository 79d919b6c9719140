//! Directions of traffic between the stations.

use plan::FlowDirection;
use schemars::JsonSchema;
use serde::Serialize;

/// A direction of the traffic. An open enum: values may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectionName {
    /// From station A to station B.
    AToB,
    /// From station B to station A.
    BToA,
}

impl From<FlowDirection> for DirectionName {
    fn from(way: FlowDirection) -> Self {
        match way {
            FlowDirection::AToB => Self::AToB,
            FlowDirection::BToA => Self::BToA,
        }
    }
}

impl DirectionName {
    /// Both, in the order of [`journal::record::FrameTrial::directions`].
    pub(crate) const BOTH: [Self; 2] = [Self::AToB, Self::BToA];

    /// For texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AToB => "A to B",
            Self::BToA => "B to A",
        }
    }
}
