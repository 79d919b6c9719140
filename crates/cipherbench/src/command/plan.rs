//! `cipherbench plan FILE`: every cell with its commands and estimated time.

use crate::cli::Plan;
use crate::exit::{Exit, Failure};
use crate::output;
use session::Preview;

pub(crate) fn plan(arguments: &Plan) -> Result<Exit, Failure> {
    let Plan {
        campaign,
        lab,
        quick,
        json,
    } = arguments;
    // The number of repeats is the campaign's: `plan` shows the file, not a run.
    let plan = session::plan(campaign.as_deref(), lab.as_deref(), *quick, None)?;
    let preview = Preview::of(&plan).map_err(|error| Failure::new(Exit::Usage, error))?;
    // The text is for people: its warning goes to standard error, and does not disturb a pipe.
    if *json {
        output::stdout(&preview.json())?;
    } else {
        output::stdout(&preview.text())?;
        output::stderr(&preview.warning().unwrap_or_default());
    }
    Ok(Exit::Done)
}
