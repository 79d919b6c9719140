//! The SAs of one tunnel that IKE negotiated: one for sending, several for receiving.
//!
//! Each SA has separate keys and an SPI that its receiver chose, so there are no epochs to derive
//! keys from. A generation takes the place of the epoch for sending: it changes with each SA.

use crate::SaKeys;
use std::collections::BTreeMap;
use std::fmt;
use zeroize::Zeroizing;

/// The SAs of a tunnel with one lane.
#[derive(Default)]
pub struct ChildSas {
    inbound: BTreeMap<u32, SaKeys>,
    /// Keys for sending; `None` once they were handed out.
    outbound: Option<SaKeys>,
    is_sending: bool,
    generation: u32,
}

impl ChildSas {
    /// A tunnel without SAs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts to receive with an additional SA.
    ///
    /// # Panics
    /// If an SA with its SPI is installed: the anti-replay windows would not match.
    pub fn install_inbound(&mut self, keys: SaKeys) {
        let spi = keys.spi;
        let replaced = self.inbound.insert(spi, keys);
        assert!(
            replaced.is_none(),
            "the SPI {spi:#010x} must not be installed twice"
        );
    }

    /// Stops receiving with an SA; does nothing if it is not installed.
    pub fn retire_inbound(&mut self, spi: u32) {
        self.inbound.remove(&spi);
    }

    /// Switches sending to an SA whose keys were never used for sending.
    pub fn switch_outbound(&mut self, keys: SaKeys) {
        self.outbound = Some(keys);
        self.is_sending = true;
        // 0 means none. After 2^32 SAs no lane has the first generation any more.
        self.generation = self.generation.checked_add(1).unwrap_or(1);
    }

    /// Stops sending. An SA created earlier lives on with its owner.
    pub fn expire_outbound(&mut self) {
        self.outbound = None;
        self.is_sending = false;
    }

    /// The generation of the SA for sending, if there is one.
    #[must_use]
    pub fn generation(&self) -> Option<u32> {
        self.is_sending.then_some(self.generation)
    }

    /// The keys for sending, once; `None` if there is no SA.
    ///
    /// # Panics
    /// If they were handed out before: a second SA would start at the same sequence number and
    /// repeat the first one's nonces.
    pub fn outbound(&mut self) -> Option<SaKeys> {
        if !self.is_sending {
            return None;
        }
        let keys = self.outbound.take();
        assert!(
            keys.is_some(),
            "the outbound keys of an SA must not be handed out twice"
        );
        keys
    }

    /// The keys for receiving under an SPI.
    #[must_use]
    pub fn inbound(&self, spi: u32) -> Option<SaKeys> {
        let keys = self.inbound.get(&spi)?;
        Some(SaKeys {
            keymat: Zeroizing::new(keys.keymat.to_vec()),
            ..*keys
        })
    }
}

impl fmt::Debug for ChildSas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSas")
            // SPIs only.
            .field("inbound", &self.inbound.keys())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Suite;

    fn keys(spi: u32) -> SaKeys {
        SaKeys {
            spi,
            suite: Suite::Aes256Gcm,
            are_numbers_extended: false,
            keymat: Zeroizing::new(vec![spi as u8; Suite::Aes256Gcm.keymat_bytes()]),
        }
    }

    #[test]
    fn each_sa_is_sent_with_once() {
        let mut sas = ChildSas::new();
        assert_eq!((sas.generation(), sas.outbound().is_none()), (None, true));
        sas.switch_outbound(keys(7));
        assert_eq!(sas.generation(), Some(1));
        assert_eq!(sas.outbound().unwrap().spi, 7);
        sas.expire_outbound();
        assert_eq!((sas.generation(), sas.outbound().is_none()), (None, true));
        sas.switch_outbound(keys(8));
        assert_eq!(sas.generation(), Some(2));
        assert_eq!(sas.outbound().unwrap().spi, 8);
    }

    #[test]
    #[should_panic(expected = "must not be handed out twice")]
    fn keys_are_not_handed_out_twice() {
        let mut sas = ChildSas::new();
        sas.switch_outbound(keys(7));
        drop(sas.outbound());
        drop(sas.outbound());
    }

    #[test]
    fn several_sas_receive_until_each_is_retired() {
        let mut sas = ChildSas::new();
        sas.install_inbound(keys(0x1000));
        sas.install_inbound(keys(0x2000));
        sas.retire_inbound(0x1000);
        sas.retire_inbound(0x1000);
        assert!(sas.inbound(0x1000).is_none());
        let found = sas.inbound(0x2000).unwrap();
        assert!(!found.are_numbers_extended);
        assert_eq!(found.keymat, keys(0x2000).keymat);
        assert_eq!(
            format!("{sas:?}"),
            "ChildSas { inbound: [8192], generation: None, .. }"
        );
    }

    #[test]
    #[should_panic(expected = "must not be installed twice")]
    fn an_spi_is_installed_once() {
        let mut sas = ChildSas::new();
        sas.install_inbound(keys(0x1000));
        sas.install_inbound(keys(0x1000));
    }
}
