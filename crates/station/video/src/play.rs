//! Plays a part in a trial: reads a spec and writes a report.

use crate::clip::prepare;
use crate::error::VideoError;
use crate::receive::receive;
use crate::serve::serve;
use crate::spec::Spec;
use std::io::Write;

/// Plays the part that a spec in JSON describes. Reports one line of JSON: a
/// [`Prepared`](crate::Prepared) or a [`VideoResult`](journal::record::VideoResult).
///
/// # Errors
/// [`VideoError`].
pub fn play(spec: &str, mut report: impl Write) -> Result<(), VideoError> {
    let line = match serde_json::from_str(spec)? {
        Spec::Prepare(spec) => serde_json::to_string(&prepare(&spec)?)?,
        Spec::Serve(spec) => return serve(&spec),
        Spec::Receive(spec) => serde_json::to_string(&receive(&spec)?)?,
    };
    writeln!(report, "{line}").map_err(VideoError::system("write the report"))
}
