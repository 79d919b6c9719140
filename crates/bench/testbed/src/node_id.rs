//! The nodes of a lab and their names.

use plan::{Element, LabPlan};

/// A node of the built-in lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeId {
    /// Station A, the source of one-way traffic.
    A,
    /// The gateway next to A.
    Gw1,
    /// The gateway next to B.
    Gw2,
    /// Station B, the sink of one-way traffic.
    B,
    /// An element between the gateways.
    Element(ElementId),
    /// The bridge between external boxes: the tester connects the two ends of their link and
    /// inspects it.
    Tap,
    /// This machine outside the lab's namespaces, which runs the commands for external boxes.
    Host,
}

impl NodeId {
    /// The nodes of every lab, in the order of the path.
    pub const ALL: [Self; 4] = [Self::A, Self::Gw1, Self::Gw2, Self::B];

    /// Returns the name in journals and messages: `a`, `gw1`, `gw2`, `b`, `bridge1`, `router2`,
    /// `nat3`, `impair4`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::Gw1 => "gw1",
            Self::Gw2 => "gw2",
            Self::B => "b",
            Self::Element(element) => element.name(),
            Self::Tap => "tap",
            Self::Host => "host",
        }
    }

    /// Whether its kernel forwards IP: gateways and routers do.
    #[must_use]
    pub const fn forwards_ip(self) -> bool {
        match self {
            Self::A | Self::B | Self::Tap | Self::Host => false,
            Self::Gw1 | Self::Gw2 => true,
            Self::Element(element) => element.kind.routes(),
        }
    }

    /// Returns the node with this [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        // By a search among all, so that a name cannot be read as another node than it was made
        // from.
        let elements = ElementId::all().map(Self::Element);
        Self::ALL
            .into_iter()
            .chain(elements)
            .chain([Self::Tap, Self::Host])
            .find(|node| node.name() == name)
    }
}

/// An element of the path: its kind, and its position from gw1 to gw2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElementId {
    /// Counted from 0; below [`LabPlan::ELEMENTS_MAX`].
    index: u8,
    kind: Element,
}

impl ElementId {
    /// Returns the elements of a path in its order, at most [`LabPlan::ELEMENTS_MAX`].
    pub fn of_path(path: &[Element]) -> impl Iterator<Item = Self> {
        // No further than there are names: plans are checked against the same limit.
        let numbered = (0..).zip(path).take(LabPlan::ELEMENTS_MAX);
        numbered.map(|(index, &kind)| Self { index, kind })
    }

    fn all() -> impl Iterator<Item = Self> {
        Element::ALL
            .into_iter()
            .flat_map(|(_, kind)| Self::of_path(&[kind; LabPlan::ELEMENTS_MAX]).collect::<Vec<_>>())
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(self) -> Element {
        self.kind
    }

    /// Its position, counted from 0 at gw1.
    #[must_use]
    pub const fn index(self) -> u8 {
        self.index
    }

    /// Its kind and position, counted from 1: `bridge1`, `router2`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        // Whole names, since errors and keys of records keep a `&'static str`.
        const BRIDGES: [&str; LabPlan::ELEMENTS_MAX] = ["bridge1", "bridge2", "bridge3", "bridge4"];
        const ROUTERS: [&str; LabPlan::ELEMENTS_MAX] = ["router1", "router2", "router3", "router4"];
        const NATS: [&str; LabPlan::ELEMENTS_MAX] = ["nat1", "nat2", "nat3", "nat4"];
        const IMPAIRS: [&str; LabPlan::ELEMENTS_MAX] = ["impair1", "impair2", "impair3", "impair4"];
        // `of_path` makes no higher one.
        let index = self.index as usize;
        match self.kind {
            Element::Bridge => BRIDGES[index],
            Element::Router => ROUTERS[index],
            Element::Nat => NATS[index],
            Element::Impair => IMPAIRS[index],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_one_place() {
        let path = Element::ALL.map(|(_, kind)| kind);
        let elements: Vec<_> = ElementId::of_path(&path).map(NodeId::Element).collect();
        let names: Vec<_> = elements.iter().map(|node| node.name()).collect();
        assert_eq!(names, ["bridge1", "router2", "nat3", "impair4"]);
        let others = elements.into_iter().chain([NodeId::Tap, NodeId::Host]);
        for node in NodeId::ALL.into_iter().chain(others) {
            assert_eq!(NodeId::from_name(node.name()), Some(node));
        }
        for name in ["", "bridge", "bridge0", "bridge5", "router1 "] {
            assert_eq!(NodeId::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_path_has_no_more_elements_than_a_plan_may_have() {
        assert_eq!(ElementId::of_path(&[Element::Bridge; 9]).count(), 4);
    }
}
