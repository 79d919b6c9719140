//! Plays a part in a trial: reads a spec and writes a report.

use crate::client::fetch;
use crate::error::HttpError;
use crate::server::serve;
use crate::spec::Spec;
use std::io::Write;

/// Plays the part that a spec in JSON describes: becomes the server, or fetches and writes an
/// [`HttpResult`](journal::record::HttpResult) as one line of JSON.
///
/// # Errors
/// [`HttpError`].
pub fn play(spec: &str, mut report: impl Write) -> Result<(), HttpError> {
    match serde_json::from_str(spec)? {
        // It returns only with an error.
        Spec::Serve(spec) => match serve(&spec)? {},
        Spec::Fetch(spec) => {
            let result = serde_json::to_string(&fetch(&spec)?)?;
            writeln!(report, "{result}").map_err(HttpError::system("write the report"))
        }
    }
}
