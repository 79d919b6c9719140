//! Signals to a part that runs, and from it.

use port::Stop;

/// Flags that others raise.
#[derive(Debug, Clone, Copy)]
pub struct Triggers<'a> {
    /// Ends the part; the report then has the counts so far.
    pub stop: &'a Stop,
    /// Begins the storm of the load `storm`.
    pub storm: &'a Stop,
}

/// Progress of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The sockets are open and the certificates issued; the load begins.
    Ready,
    /// This number of peers is up, and stays up.
    Up(u64),
}
