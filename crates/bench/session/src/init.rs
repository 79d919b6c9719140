//! First files of a user: a campaign, a lab, or both ends of an encrypted tunnel, with a comment
//! for each key.
//!
//! ```text
//! answers ─► campaign, lab, gateway ─► Draft ─► files: all or none
//!                templates ──┘
//! ```
//!
//! Every text is read by the same code as `check` before anything is written. The caller has the
//! questions and their answers.

mod campaign;
mod choice;
mod draft;
mod error;
mod gateway;
mod lab;
mod ports;
mod template;

pub use campaign::{
    BOXES, BoxTexts, DEFAULT_PIN_FILE, DEVICES, Device, PROGRAMS, Program, SUBJECTS, Subject,
    box_campaign, device_campaign, encryptor_campaign, installed, missing_programs,
    program_campaign, summary,
};
pub use choice::Choice;
pub use draft::Draft;
pub use error::InitError;
pub use gateway::{Gateways, address_towards};
pub use lab::{LABS, hosts_lab, ports_lab};
pub use ports::{Port, Ports};
