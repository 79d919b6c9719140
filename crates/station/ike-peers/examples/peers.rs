//! Simulated peers of a real gateway: the spec (JSON) on standard input, progress and report on
//! standard output.
//!
//! ```text
//! cargo run --release -p cipherbench-ike-peers --example peers < spec.json
//! ```

use std::io::{self, BufReader};

fn main() -> Result<(), ike_peers::PeersError> {
    ike_peers::play(BufReader::new(io::stdin()), io::stdout())
}
