#![doc = "The one binary: sub-commands and exit codes, nothing else."]
fn main() {}
