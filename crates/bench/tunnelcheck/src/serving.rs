//! The listener's part in the search for the offload that hurts.

use crate::features::Offloads;
use crate::findings::HostOffloads;
use crate::message::Answer;
use crate::token::Token;
use crate::under_test::under_test;
use probe::Access;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// This host's offloads, and the server of probes. Dropping it restores the offloads.
pub(crate) struct Serving {
    offloads: Offloads,
    is_over: Arc<AtomicBool>,
}

impl Serving {
    /// Tries which offloads can be changed, and serves probes on an address of the tunnel.
    pub(crate) fn start(
        own: IpAddr,
        (asker, token): (IpAddr, &Token),
        left: Option<&str>,
    ) -> Result<(Self, u16, HostOffloads), String> {
        let under_test = under_test(asker, left)?;
        let failed = |error: std::io::Error| format!("no server of probes: {error}");
        let listener = TcpListener::bind((own, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let offloads = Offloads::find(&under_test.names)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (is_ended, token) = (Arc::clone(&is_over), token.clone());
        // It ends with the process, or with its caller.
        let thread = std::thread::Builder::new().name("probes".to_owned());
        let serve = move || {
            let access = Access {
                caller: asker,
                is_secret: &|text| token.is(text),
                is_over: &|| is_ended.load(Ordering::Relaxed),
            };
            // A server that fails answers nothing, which the asker reports.
            let _ = probe::serve(&listener, Some(&access));
        };
        thread.spawn(serve).map_err(failed)?;
        let found = HostOffloads {
            interfaces: offloads.interfaces().to_vec(),
            spared: under_test.spared,
        };
        Ok((Self { offloads, is_over }, port, found))
    }

    pub(crate) fn apply(&mut self, row: &[u8]) -> Answer {
        Answer::Applied {
            row: self.offloads.apply(row),
        }
    }

    /// Whether nothing is to be restored.
    pub(crate) fn is_as_found(&self) -> bool {
        self.offloads.is_as_found()
    }

    /// Sets everything as it was found, and goes on.
    pub(crate) fn go_back(&mut self) -> Result<(), String> {
        let found = vec![0; self.offloads.len()];
        self.offloads.apply(&found).map(drop)
    }

    /// Restores the offloads; returns what is not as it was.
    pub(crate) fn restore(self) -> Vec<String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.offloads.restore()
    }
}
