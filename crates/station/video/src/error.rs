//! Why a part in a trial cannot be played.

use std::io;
use std::path::Path;

/// Why a part in a trial cannot be played. A video of which no frame is decoded is not an error:
/// the result reports it.
#[derive(Debug, thiserror::Error)]
pub enum VideoError {
    /// The spec, or the other station's message, is not JSON of its type.
    #[error("what was read is invalid: {0}")]
    Json(#[from] serde_json::Error),
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// The refused operation.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// ffmpeg cannot make or decode the clip.
    #[error("ffmpeg cannot {what}: {words}")]
    Clip {
        /// The operation that failed.
        what: &'static str,
        /// ffmpeg's output, or the defect of the clip.
        words: String,
    },
    /// The other station could not send the streams.
    #[error("station B sent no whole stream: {0}")]
    Sender(String),
    /// The other station ended without its report.
    #[error("station B ended the stream without a report")]
    NoReport,
}

impl VideoError {
    /// Names the operation that the system refused.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    /// Names the operation and the file.
    pub(crate) fn file(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::system(format!("{what} {}", path.display()))
    }
}
