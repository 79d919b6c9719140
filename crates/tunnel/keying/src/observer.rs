//! Keys for a test bench that opens the packets of both ends of a tunnel with static keys.

use crate::derive::{SECRET_BYTES, SaKeys, sa_keys};
use crate::text::KeyFile;
use crate::{FileTexts, Side, epoch_of, lane_of};
use std::fmt;
use wire::Suite;
use zeroize::Zeroizing;

/// The secret of a pair of key files in memory, for opening only.
///
/// It draws no epoch and locks no file, so it may exist next to the tunnel's ends. Nothing may be
/// sealed with its keys: that would repeat an end's nonces.
pub struct ObserverKeys {
    secret: Zeroizing<[u8; SECRET_BYTES]>,
}

impl ObserverKeys {
    /// Reads the secret of either key file of a pair; `None` if the text is no key file's.
    #[must_use]
    pub fn read(texts: &FileTexts) -> Option<Self> {
        let file = KeyFile::parse(texts.key.as_bytes()).ok()?;
        Some(Self {
            secret: file.secret,
        })
    }

    /// The keys of the SA that an SPI identifies, for packets from `sender`; `None` if the SPI
    /// contains no epoch.
    ///
    /// The SPI is unauthenticated: returned keys do not imply that the sender used this epoch.
    #[must_use]
    pub fn inbound(&self, suite: Suite, sender: Side, spi: u32) -> Option<SaKeys> {
        let epoch = epoch_of(spi);
        // No end ever seals in epoch 0.
        (epoch > 0).then(|| sa_keys(&self.secret, suite, sender, epoch, lane_of(spi)))
    }
}

impl fmt::Debug for ObserverKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObserverKeys").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StaticKeys, pair_texts, spi_of};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn they_are_the_keys_that_either_end_seals_with_in_any_epoch() {
        let texts = pair_texts().unwrap();
        let observer = ObserverKeys::read(&texts[0]).unwrap();
        let folder = testing::folder().unwrap();
        for (side, texts) in [Side::A, Side::B].into_iter().zip(&texts) {
            let path = folder.path().join(side.name());
            for (name, text) in [("", &*texts.key), (".epoch", &texts.epochs)] {
                let path = folder.path().join(format!("{}{name}", side.name()));
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            }
            let mut keys = StaticKeys::open(&path).unwrap();
            for lane in [0, 3] {
                keys.draw_epoch().unwrap();
                let sealing = keys.outbound(Suite::Aes256Gcm, lane);
                let opening = observer.inbound(Suite::Aes256Gcm, side, sealing.spi);
                let opening = opening.unwrap();
                assert_eq!(opening.spi, sealing.spi);
                assert_eq!(opening.keymat, sealing.keymat);
                let back = observer.inbound(Suite::Aes256Gcm, side.peer(), sealing.spi);
                assert_ne!(back.unwrap().keymat, sealing.keymat);
            }
        }
    }

    #[test]
    fn an_spi_without_an_epoch_has_none_and_no_secret_is_printed() {
        let [texts, _] = pair_texts().unwrap();
        let observer = ObserverKeys::read(&texts).unwrap();
        assert!(
            observer
                .inbound(Suite::Aes256Gcm, Side::A, spi_of(0, 7))
                .is_none()
        );
        assert_eq!(format!("{observer:?}"), "ObserverKeys { .. }");
        let other = FileTexts {
            key: Zeroizing::new("side: a\n".to_owned()),
            epochs: String::new(),
        };
        assert!(ObserverKeys::read(&other).is_none());
    }
}
