//! Checkpoints: records of a long trial before its end, so that an interrupted run can resume it.
//!
//! 1. A soak or a fatigue trial reports a [`Checkpoint`] in a [`TrialEvent`](crate::TrialEvent).
//! 2. The run writes it to the journal as [`Checkpoint::record`].
//! 3. A later start reads the unfinished ones from the journal and passes the checkpoints of a cell
//!    and repeat to the trial: [`Trial::checkpoints`](crate::Trial::checkpoints).

use journal::Journal;
use journal::record::{FatigueProgress, Record, SoakProgress};
use plan::TrialRef;

/// A recorded step of a trial that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Checkpoint {
    /// A segment of a soak.
    Soak(Box<SoakProgress>),
    /// A snapshot of a fatigue trial; the last one of a start counts.
    Fatigue(Box<FatigueProgress>),
}

impl Checkpoint {
    /// Returns the checkpoints of the unfinished trials of a journal, in order.
    #[must_use]
    pub fn unfinished(journal: &Journal) -> Vec<Self> {
        let soaks = journal.soaked.iter().cloned().map(Self::from);
        let fatigue = journal.fatigued.iter().cloned().map(Self::from);
        soaks.chain(fatigue).collect()
    }

    /// Returns whether it belongs to this trial.
    #[must_use]
    pub fn is_of(&self, trial: TrialRef<'_>) -> bool {
        let (cell, repeat) = match self {
            Self::Soak(soak) => (&soak.cell, soak.repeat),
            Self::Fatigue(fatigue) => (&fatigue.cell, fatigue.repeat),
        };
        *cell == trial.cell.id && repeat == trial.repeat
    }

    /// Returns its line in the journal.
    #[must_use]
    pub fn record(&self) -> Record {
        match self {
            Self::Soak(soak) => Record::Soaked(soak.clone()),
            Self::Fatigue(fatigue) => Record::Fatigued(fatigue.clone()),
        }
    }

    /// Returns the measured time that it saves a resumed trial, in nanoseconds.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        match self {
            Self::Soak(soak) => soak.trial.duration_ns,
            Self::Fatigue(fatigue) => fatigue.segment.elapsed_ns(),
        }
    }

    /// Returns the segment if it is of a soak.
    #[must_use]
    pub fn soak(&self) -> Option<&SoakProgress> {
        match self {
            Self::Soak(soak) => Some(soak),
            Self::Fatigue(_) => None,
        }
    }

    /// Returns the snapshot if it is of a fatigue trial.
    #[must_use]
    pub fn fatigue(&self) -> Option<&FatigueProgress> {
        match self {
            Self::Fatigue(fatigue) => Some(fatigue),
            Self::Soak(_) => None,
        }
    }
}

impl From<SoakProgress> for Checkpoint {
    fn from(soak: SoakProgress) -> Self {
        Self::Soak(Box::new(soak))
    }
}

impl From<FatigueProgress> for Checkpoint {
    fn from(fatigue: FatigueProgress) -> Self {
        Self::Fatigue(Box::new(fatigue))
    }
}
