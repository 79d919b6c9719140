//! Why a part in a trial cannot be played.

use std::io;
use std::path::Path;

/// Why a part in a trial cannot be played. A video that is never decoded is no error: the result
/// says so.
#[derive(Debug, thiserror::Error)]
pub enum VideoError {
    /// The spec, or what the other station said, is no JSON of its form.
    #[error("what was read is invalid: {0}")]
    Json(#[from] serde_json::Error),
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was asked of it.
        what: String,
        /// Its reason.
        source: io::Error,
    },
    /// ffmpeg did not make the clip, or cannot decode it.
    #[error("ffmpeg cannot {what}: {words}")]
    Clip {
        /// What it was to do.
        what: &'static str,
        /// What it printed, or what is wrong with the result.
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
    /// Names what was asked of the system.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    /// Names the file that was to be read or written.
    pub(crate) fn file(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::system(format!("{what} {}", path.display()))
    }
}
