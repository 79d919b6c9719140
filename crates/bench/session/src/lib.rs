//! Requests to the bench: the plan of a campaign, a check of files, a run from its first trial to
//! its journal, the state of hosts, lists of recorded runs and of shipped examples.
//!
//! ```text
//! campaign, lab ─► planning ─► Plan ─► programs ─► Session ─► Journal
//!                                                   └─► progress ─► terminal, log, viewers
//! ```
//!
//! [`init`] makes the files that a user begins with.
//!
//! The caller has the command line, the signals, the documents of a finished run, and the exit
//! code.

#![forbid(unsafe_code)]

mod check;
mod doctor;
mod error;
mod examples;
mod far_end;
pub mod init;
mod kernel;
mod listing;
mod nearest;
mod offloads;
mod planning;
mod preview;
pub mod programs;
pub mod progress;
mod reporter;
mod running;
pub mod runs;
pub mod software;
mod sysctls;
pub mod trust;
mod watch;

pub use self::offloads::{Offloads, THROUGH, examine_offloads};
pub use check::{Allowed, CheckSummary, Checked, Refused, check, check_summary};
pub use doctor::{Action, Answer, Answers, ask_hosts, ask_this_host};
pub use error::SessionError;
pub use examples::{example, examples, namesake};
pub use far_end::{FarEnd, listen_over_ssh};
pub use nearest::nearest_run;
pub use planning::{host_facts, load_lab, plan, summary};
pub use preview::Preview;
pub use reporter::{Log, Reporter};
pub use running::{Session, begin, is_complete, unix_ns};
