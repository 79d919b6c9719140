//! `cipherbench keys`: key files.

use crate::cli::Keys;
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn keys(keys: &Keys) -> Result<Exit, Failure> {
    let Keys::Static { a, b } = keys;
    keying::create_pair(a, b).map_err(|error| Failure::new(Exit::Usage, error))?;
    output::stdout(&format!(
        "made {} and {}, each with its epoch file; both hold the same secret: \
         bring one to the peer by a safe way, and delete it here\n",
        a.display(),
        b.display()
    ))?;
    Ok(Exit::Done)
}
