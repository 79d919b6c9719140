//! The binary: sub-commands and exit codes only.

#![forbid(unsafe_code)]

mod cli;
mod command;
mod documents;
mod exit;
mod input;
mod notify;
mod output;
mod signals;
mod version;

use clap::Parser;
use cli::{Cli, Command};
use exit::Exit;
use nix::sys::stat::{Mode, umask};

fn main() -> Exit {
    // Before the first file is made, and before any thread is started: the umask is the process's.
    others_write_nothing();
    // A shell asks for the candidates of a word, and gets nothing else.
    cli::complete();
    let result = match Cli::parse().command {
        Command::Run(arguments) => command::run::run(&arguments),
        Command::Calibrate(arguments) => command::run::calibrate(&arguments),
        Command::Examples(arguments) => command::examples::examples(&arguments),
        Command::Init(arguments) => command::init::init(&arguments),
        Command::Check(arguments) => command::check::check(&arguments),
        Command::Schema(arguments) => command::schema::schema(&arguments),
        Command::Plan(arguments) => command::plan::plan(&arguments),
        Command::Runs(arguments) => command::runs::runs(&arguments),
        Command::Serve(arguments) => command::live::serve(&arguments),
        Command::Resume(arguments) => command::resume::resume(&arguments),
        Command::Report(arguments) => command::report::report(&arguments),
        Command::Sign(arguments) => command::sign::sign(&arguments),
        Command::Verify(arguments) => command::sign::verify(&arguments),
        Command::Export(arguments) => command::export::export(&arguments),
        Command::Compare(arguments) => command::compare::compare(&arguments),
        Command::History(arguments) => command::history::history(&arguments),
        Command::Bisect(arguments) => command::bisect::bisect(&arguments),
        Command::Lint(arguments) => command::lint::lint(&arguments),
        Command::Doctor(arguments) => command::doctor::doctor(&arguments),
        Command::TunnelCheck(arguments) => command::tunnel_check::tunnel_check(&arguments),
        Command::IkePeers(arguments) => command::ike_peers::ike_peers(&arguments),
        Command::Encrypt(arguments) => command::encrypt::encrypt(&arguments),
        Command::Hold => command::encrypt::hold(),
        Command::Kme(arguments) => command::kme::kme(&arguments),
        Command::Speed(arguments) => command::speed::speed(&arguments),
        Command::Kat(arguments) => command::devices::kat(&arguments),
        Command::Fatigue(arguments) => command::devices::fatigue(&arguments),
        Command::Keys(arguments) => command::keys::keys(&arguments),
        #[cfg(feature = "fleet")]
        Command::Fleet(arguments) => command::fleet::fleet(&arguments),
        Command::Generate(arguments) => command::generate::generate(&arguments),
        #[cfg(feature = "fleet")]
        Command::Figures(arguments) => command::figures::figures(&arguments),
        #[cfg(not(feature = "fleet"))]
        Command::Fleet(_) | Command::Figures(_) => Err(exit::Failure::without("fleet")),
        Command::Station(arguments) => command::station::station(&arguments),
        Command::Frames => command::frames::frames(),
        Command::Http => command::http::http(),
        Command::Probe => command::probe::probe(),
        Command::Video => command::video::video(),
        Command::Impair => command::impair::impair(),
        Command::Capture => command::capture::capture(),
        Command::Device => command::device::device(),
    };
    result.unwrap_or_else(|failure| {
        output::stderr(&format!("{failure}\n"));
        failure.exit
    })
}

/// Denies others write access to the files that this program makes, independent of the umask: a
/// report is made from a run's folder, and people act on it.
fn others_write_nothing() {
    let others = Mode::S_IWGRP | Mode::S_IWOTH;
    // The umask can be read only by setting it.
    let allowed = umask(others);
    umask(allowed | others);
}
