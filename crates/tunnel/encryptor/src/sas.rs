//! The SAs that a lane opens with: for each tunnel the one that was proven last, and earlier ones
//! that are still valid.
//!
//! A tunnel with negotiated keys has several while its peer switches from one epoch to the next:
//! packets of both may arrive in any order. Each SA has a separate window and reassembler.

use esp::InboundSa;
use wire::aggfrag::Reassembler;

/// Identifies an SA of a lane. Valid until an SA is added or ended, so for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its tunnel.
    pub tunnel: u16,
    /// 0: the SA that was proven last; n: index n - 1 of the earlier ones.
    older: u16,
}

impl Place {
    /// The place of no SA.
    pub(crate) const NONE: Self = Self {
        tunnel: u16::MAX,
        older: 0,
    };
}

/// All inbound SAs of a lane.
pub(crate) struct Sas {
    /// The SA of each tunnel that was proven last. Separate from the rest, which is rarely read.
    newest: Vec<Option<InboundSa>>,
    /// The reassembler of each tunnel's newest SA.
    reassemblers: Vec<Reassembler>,
    /// The earlier SAs of each tunnel; empty except during a change of keys.
    older: Vec<Vec<(InboundSa, Reassembler)>>,
}

impl Sas {
    /// An empty set for that many tunnels.
    pub(crate) fn new(tunnels: usize) -> Self {
        Self {
            newest: (0..tunnels).map(|_| None).collect(),
            reassemblers: (0..tunnels).map(|_| Reassembler::new()).collect(),
            older: (0..tunnels).map(|_| Vec::new()).collect(),
        }
    }

    /// Finds the SA of an SPI. For the newest this costs one comparison.
    #[inline]
    pub(crate) fn find(&self, tunnel: u16, spi: u32) -> Option<(Place, &InboundSa)> {
        match &self.newest[usize::from(tunnel)] {
            // Almost every packet is of the newest epoch; the others are compared one after the
            // other.
            Some(sa) if sa.spi() == spi => Some((Place { tunnel, older: 0 }, sa)),
            _ => self.find_older(tunnel, spi),
        }
    }

    fn find_older(&self, tunnel: u16, spi: u32) -> Option<(Place, &InboundSa)> {
        let older = &self.older[usize::from(tunnel)];
        (1..).zip(older).find_map(|(number, (sa, _))| {
            let place = Place {
                tunnel,
                older: number,
            };
            (sa.spi() == spi).then_some((place, sa))
        })
    }

    /// The SPI of a tunnel's newest SA.
    #[inline]
    pub(crate) fn newest(&self, tunnel: u16) -> Option<u32> {
        self.newest[usize::from(tunnel)]
            .as_ref()
            .map(InboundSa::spi)
    }

    /// The SA at a place that [`find`](Self::find) returned.
    #[inline]
    pub(crate) fn at(&mut self, place: Place) -> &mut InboundSa {
        let tunnel = usize::from(place.tunnel);
        match place.older {
            0 => match &mut self.newest[tunnel] {
                Some(sa) => sa,
                None => unreachable!("a place is that of an SA"),
            },
            number => &mut self.older[tunnel][usize::from(number) - 1].0,
        }
    }

    /// The reassembler of the SA at a place.
    #[inline]
    pub(crate) fn reassembler(&mut self, place: Place) -> &mut Reassembler {
        let tunnel = usize::from(place.tunnel);
        match place.older {
            0 => &mut self.reassemblers[tunnel],
            number => &mut self.older[tunnel][usize::from(number) - 1].1,
        }
    }

    /// Adds a tunnel's newest SA. The previous one stays valid if `keeps_older`, or ends.
    pub(crate) fn add(&mut self, tunnel: u16, sa: InboundSa, keeps_older: bool) {
        let at = usize::from(tunnel);
        let before = self.newest[at].replace(sa);
        // Sequence numbers restart with each SA: fragments of two epochs must not be joined.
        let reassembler = std::mem::take(&mut self.reassemblers[at]);
        if keeps_older {
            self.older[at].extend(before.map(|before| (before, reassembler)));
        }
    }

    /// Ends the SAs of a tunnel with SPIs for which `goes_on` is false.
    pub(crate) fn retain(&mut self, tunnel: u16, mut goes_on: impl FnMut(u32) -> bool) {
        let at = usize::from(tunnel);
        self.older[at].retain(|(sa, _)| goes_on(sa.spi()));
        if self.newest(tunnel).is_some_and(|spi| !goes_on(spi)) {
            self.newest[at] = None;
            self.reassemblers[at] = Reassembler::new();
        }
    }
}
