//! Keys derived from a secret in a file.
//!
//! Sealing twice with the same nonce and key reveals traffic, and for GCM also the authentication
//! key. A static secret has no sessions, so it is never used as a key itself. Each time it is
//! opened, a new *epoch* is drawn and recorded on the disk before any key is handed out, and every
//! SA's key is derived for its epoch, lane, direction and suite.

use crate::derive::{SaKeys, sa_keys};
use crate::locked::LockedKeyFile;
use crate::text::Epochs;
use crate::{EPOCH_MAX, KeyError, LANES_MAX, Side, epoch_of, lane_of};
use guard::Writers;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use wire::Suite;

/// A valid and locked key file without a drawn epoch.
///
/// While this value or the [`StaticKeys`] created from it lives, no other process can open the
/// file.
pub struct KeyFile {
    file: LockedKeyFile,
}

impl KeyFile {
    /// Locks and reads a key file and the epoch file next to it. Only root, this process's user and
    /// the key file's owner may be able to replace them.
    ///
    /// # Errors
    /// [`KeyError`] whenever it is not certain that nonces cannot repeat.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        Self::of(LockedKeyFile::open(path, None)?)
    }

    /// As [`open`](Self::open), but only these users may have written the files.
    ///
    /// # Errors
    /// As there.
    pub fn open_for(path: &Path, writers: &Writers) -> Result<Self, KeyError> {
        Self::of(LockedKeyFile::open(path, Some(writers))?)
    }

    fn of(file: LockedKeyFile) -> Result<Self, KeyError> {
        let this = Self { file };
        // Refuses a file without epochs left, before anything else is set up.
        this.with_next_epoch()?;
        Ok(this)
    }

    /// Draws the next outbound epoch, which is on the disk when this returns. A drawn but unused
    /// epoch is lost, and there are 2^20: so draw it last, when everything else is ready.
    ///
    /// # Errors
    /// [`KeyError::EpochNotWritten`], and [`KeyError::Replaced`] if another program has replaced
    /// one of the files since; then there are no keys.
    pub fn draw_epoch(mut self) -> Result<StaticKeys, KeyError> {
        // The keys exist only after the epoch is on the disk: a crash in between loses an epoch,
        // and repeats none.
        self.record(self.with_next_epoch()?)?;
        Ok(StaticKeys {
            // As recorded, so that epochs that ended before a restart stay ended.
            peer_floor: self.file.recorded().peer,
            file: self,
            lanes_taken: BTreeSet::new(),
        })
    }

    /// The recorded epochs, with the next outbound one.
    fn with_next_epoch(&self) -> Result<Epochs, KeyError> {
        let recorded = self.file.recorded();
        // No wrap: epoch 1 again would repeat every nonce of its first use.
        if recorded.outbound == EPOCH_MAX {
            return Err(KeyError::EpochsUsedUp {
                path: self.file.path.clone(),
            });
        }
        Ok(Epochs {
            outbound: recorded.outbound + 1,
            ..recorded
        })
    }

    /// Records epochs on the disk.
    fn record(&mut self, epochs: Epochs) -> Result<(), KeyError> {
        self.file.record(epochs)
    }

    /// The keys that a side sends with.
    fn sa_keys(&self, suite: Suite, sender: Side, epoch: u32, lane: u16) -> SaKeys {
        sa_keys(&self.file.content.secret, suite, sender, epoch, lane)
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile")
            .field("path", &self.file.path)
            .finish_non_exhaustive()
    }
}

/// An opened key file: one epoch for sending, and the keys for receiving the peer's epochs.
pub struct StaticKeys {
    file: KeyFile,
    /// The peer's epochs below this have ended; at least those recorded in the file.
    peer_floor: u32,
    /// Lanes that were given their outbound keys.
    lanes_taken: BTreeSet<u16>,
}

impl StaticKeys {
    /// Opens a key file and draws an epoch: [`KeyFile::open`] and [`KeyFile::draw_epoch`] in one.
    ///
    /// # Errors
    /// As those.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        KeyFile::open(path)?.draw_epoch()
    }

    /// This end of the tunnel.
    #[must_use]
    pub fn side(&self) -> Side {
        self.file.file.content.side
    }

    /// The epoch for sending, from 1.
    #[must_use]
    pub fn outbound_epoch(&self) -> u32 {
        self.file.file.recorded().outbound
    }

    /// The keys for sending in a lane.
    ///
    /// # Panics
    /// If they were handed out before, for any suite: a second SA would start at the same sequence
    /// number and repeat the first one's nonces. If `lane` is not below [`LANES_MAX`].
    pub fn outbound(&mut self, suite: Suite, lane: u16) -> SaKeys {
        let first = self.lanes_taken.insert(lane);
        assert!(
            first,
            "the outbound keys of lane {lane} must not be handed out twice"
        );
        let epoch = self.outbound_epoch();
        self.file.sa_keys(suite, self.side(), epoch, lane)
    }

    /// Draws the next outbound epoch, which is on the disk when this returns. Each lane may then be
    /// given keys again, of this epoch.
    ///
    /// # Errors
    /// [`KeyError::EpochNotWritten`], [`KeyError::Replaced`] or [`KeyError::EpochsUsedUp`]; the old
    /// epoch then stays in use.
    pub fn draw_epoch(&mut self) -> Result<u32, KeyError> {
        self.file.record(self.file.with_next_epoch()?)?;
        // Only after the epoch is recorded: if that fails, no lane gets its keys twice.
        self.lanes_taken.clear();
        Ok(self.outbound_epoch())
    }

    /// The keys for receiving under an SPI; `None` if it contains another lane, or an epoch of the
    /// peer that has ended or is invalid.
    ///
    /// The SPI is unauthenticated: a returned key does not imply that the peer uses this epoch.
    #[must_use]
    pub fn inbound(&self, suite: Suite, spi: u32, lane: u16) -> Option<SaKeys> {
        let epoch = epoch_of(spi);
        // An epoch below the floor could be a recording: its windows are gone.
        if lane_of(spi) != lane || lane >= LANES_MAX || epoch == 0 || epoch < self.peer_floor {
            return None;
        }
        Some(self.file.sa_keys(suite, self.side().peer(), epoch, lane))
    }

    /// Notes that a packet of the peer's `epoch` was authentic, which ends earlier epochs, also
    /// after a restart. Does nothing unless `epoch` is the highest so far. SAs created earlier live
    /// on with their owners.
    ///
    /// # Errors
    /// [`KeyError::EpochNotWritten`]; earlier epochs have then ended only until a restart, and
    /// noting the same epoch again retries the write.
    pub fn note_peer_epoch(&mut self, epoch: u32) -> Result<(), KeyError> {
        // In memory first: it holds from now on, even if the disk is full.
        self.peer_floor = self.peer_floor.max(epoch.min(EPOCH_MAX));
        self.record_peer_epoch(self.peer_floor)
    }

    /// Records the peer's `epoch` as [`note_peer_epoch`](Self::note_peer_epoch) does, but earlier
    /// epochs end only after a restart. For callers that keep a floor per lane, since lanes may
    /// reach an epoch one by one.
    ///
    /// # Errors
    /// [`KeyError::EpochNotWritten`].
    pub fn record_peer_epoch(&mut self, epoch: u32) -> Result<(), KeyError> {
        // An epoch from an SPI is never higher; the file could not be read again with one that is.
        let peer = epoch.min(EPOCH_MAX);
        // Rising epochs only. Each lane reports the same one, and only the first writes.
        let recorded = self.file.file.recorded();
        if peer > recorded.peer {
            self.file.record(Epochs { peer, ..recorded })?;
        }
        Ok(())
    }
}

impl fmt::Debug for StaticKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticKeys")
            .field("path", &self.file.file.path)
            .field("side", &self.side())
            .field("outbound_epoch", &self.outbound_epoch())
            .field("peer_floor", &self.peer_floor)
            .finish_non_exhaustive()
    }
}
