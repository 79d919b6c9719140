//! Simulated peers of a real gateway: the spec (JSON) on standard input, progress and report on
//! standard output.
//!
//! ```text
//! cargo run --release -p cipherbench-ike-peers --example peers < spec.json
//! ```

use port::Stop;
use std::error::Error;
use std::io::{self, BufReader};

fn main() -> Result<(), Box<dyn Error>> {
    let stop = Stop::new()?;
    Ok(ike_peers::play(
        BufReader::new(io::stdin()),
        io::stdout(),
        &stop,
    )?)
}
