//! This gateway's certificate: when it expires, and a new one from the same files.

use super::Shell;
use crate::Lanes;
use crate::validity::{CertificateEvent, Watch};
use keying::message::Cause;
use std::time::SystemTime;
use tokio::time::Instant;

impl<L: Lanes> Shell<L> {
    /// Reports the certificate that is used from now on.
    pub(super) fn use_certificate(&mut self) {
        let valid = self.identity.valid();
        let not_after = valid.end;
        self.certificate = Watch::new(valid);
        self.lanes
            .certificate(&CertificateEvent::InUse { not_after });
        // It may expire soon already, and the next look is hours away.
        self.look_at_certificate();
    }

    /// Reports the certificate's event that is due.
    pub(super) fn look_at_certificate(&mut self) {
        if let Some(event) = self.certificate.due(SystemTime::now()) {
            self.lanes.certificate(&event);
        }
    }

    /// When to look at the certificate next.
    pub(super) fn certificate_due(&self) -> Option<Instant> {
        let wait = self.certificate.wait(SystemTime::now())?;
        Some(Instant::now() + wait)
    }

    /// Reads the certificate again, and negotiates new keys under it. The files are small, so
    /// reading them does not delay the tunnels.
    pub(super) fn reload(&mut self) {
        match self.identity.reload() {
            Ok(identity) => {
                self.identity = identity;
                self.use_certificate();
                // The hard lifetime of the present keys may end with the old certificate.
                self.rekey_all(Cause::Demand);
            }
            // The connections that are up need no certificate any more, so that nothing else
            // happens.
            Err(error) => {
                let reason = error.to_string();
                self.lanes
                    .certificate(&CertificateEvent::NotReloaded { reason });
            }
        }
    }
}
