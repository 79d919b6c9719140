//! Errors of trials.

use crate::command::CommandError;
use crate::transfer::TransferError;
use search::SearchError;
use testbed::LabError;

/// Why a trial could not be measured. The text becomes the reason of a failed trial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// The lab or the DUT.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The cell's settings are impossible.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A tool reported an error or ended unexpectedly.
    #[error("{node}: {problem}")]
    Tool {
        /// [`testbed::NodeId::name`].
        node: &'static str,
        /// A sentence.
        problem: String,
    },
    /// The tools' reports are inconsistent.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// A search cannot be started.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// A crypto device cannot be used, or its worker failed.
    #[error("{problem}")]
    Device {
        /// A sentence, with the remedy if it is known.
        problem: String,
    },
    /// Sampled packets cannot be opened, regardless of their contents.
    #[error("no engine of the tester opens the sampled packets: {problem}")]
    Samples {
        /// A sentence.
        problem: String,
    },
    /// A frame test cannot be carried out.
    #[error("{problem}")]
    Frames {
        /// A sentence, with what to change.
        problem: String,
    },
}

impl TrialError {
    /// A frame test that cannot be carried out; `problem` is a sentence with what to change.
    pub fn frames(problem: impl Into<String>) -> Self {
        Self::Frames {
            problem: problem.into(),
        }
    }

    /// Whether it ends the run, not only this trial.
    pub(crate) const fn is_interrupt(&self) -> bool {
        matches!(self, Self::Lab(LabError::Interrupted))
    }
}
