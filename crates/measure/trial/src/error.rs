//! Why a trial could not be measured.

use crate::command::CommandError;
use crate::transfer::TransferError;
use lab::LabError;
use search::SearchError;

/// Why a trial could not be measured. The text becomes the reason of a failed trial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// The lab or the DUT.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The cell asks for what cannot be.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A tool said so, or ended as it should not.
    #[error("{node}: {problem}")]
    Tool {
        /// [`lab::NodeId::name`].
        node: &'static str,
        /// A sentence.
        problem: String,
    },
    /// The tools' reports do not fit together.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// A search cannot be started.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// A crypto device cannot be used, or its worker did not do what it should.
    #[error("{problem}")]
    Device {
        /// A sentence, with what to do where that is known.
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
    pub(crate) fn frames(problem: impl Into<String>) -> Self {
        Self::Frames {
            problem: problem.into(),
        }
    }

    /// Whether the run is to stop, rather than go on with the next trial.
    pub(crate) const fn is_interrupt(&self) -> bool {
        matches!(self, Self::Lab(LabError::Interrupted))
    }
}
