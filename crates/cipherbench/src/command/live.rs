//! `cipherbench serve [RUNS]`, and the option `--live` of a run: runs in a browser.

use crate::cli::{Serve, Watching};
use crate::exit::{Exit, Failure};
use crate::{output, signals};
use ::live::{Bound, Server, Site};
use session::Reporter;
use std::os::fd::AsFd;
use std::path::Path;

pub(crate) fn serve(arguments: &Serve) -> Result<Exit, Failure> {
    let Serve {
        folder,
        listen,
        names,
    } = arguments;
    // A folder that is not there is reported here, and not by each page.
    session::runs::list(folder)?;
    let bound = Bound::new(*listen, "--listen")?;
    // Registered before another thread starts: a signal in between is kept, not fatal.
    let stop = signals::stop()?;
    if let Some(warning) = exposure(&bound, folder) {
        output::stderr(&warning);
    }
    let url = bound.url();
    let site = Site {
        root: folder.clone(),
        names: names.clone(),
        current: None,
    };
    let server = Server::start(bound, site)?;
    // The service continues if standard output is closed.
    let _ = output::stdout(&format!("ready url={url}\n"));
    // Without events it is stopped by SIGKILL only, and loses nothing.
    let _ = port::wait_readable(&[stop.as_fd()], None);
    drop(server);
    Ok(Exit::Done)
}

/// A warning if other machines can reach the pages.
fn exposure(bound: &Bound, folder: &Path) -> Option<String> {
    let warning = || {
        format!(
            "warning: everyone who can reach {} can read the runs in {}\nhelp: without an address, only this machine \
             can\n",
            bound.url(),
            folder.display()
        )
    };
    bound.is_public().then(warning)
}

/// The pages of a run; without `--live` there are none.
pub(crate) enum Pages<'a> {
    None,
    /// The address is taken.
    Bound(Bound, &'a Reporter),
    Served(Server),
}

impl<'a> Pages<'a> {
    pub(crate) fn bound(watching: &Watching, reporter: &'a Reporter) -> Result<Self, Failure> {
        Ok(match watching.live {
            Some(address) => Self::Bound(Bound::new(address, "--live")?, reporter),
            None => Self::None,
        })
    }

    /// Serves the run in this folder, with the others next to it.
    pub(crate) fn serve(self, dir: &Path) -> Result<Self, Failure> {
        let Self::Bound(bound, reporter) = self else {
            return Ok(self);
        };
        // `resume .` names the folder without its parent.
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let root = dir.parent().unwrap_or(Path::new("."));
        if let Some(warning) = exposure(&bound, root) {
            reporter.warn(&warning);
        }
        let run = dir.file_name().unwrap_or_default().to_string_lossy();
        let run = ::live::encoded(&run);
        let url = format!("{}progress/{run}", bound.url());
        let site = Site {
            root: root.to_owned(),
            names: Vec::new(),
            current: Some(reporter.board.clone()),
        };
        let server = Server::start(bound, site)?;
        // Also if it is quiet: with port 0 nothing else names the port.
        reporter.warn(&format!("live at {url}\n"));
        Ok(Self::Served(server))
    }

    /// Lets open pages show the end of the run.
    pub(crate) fn finish(self) {
        if let Self::Served(server) = self {
            server.finish();
        }
    }
}
