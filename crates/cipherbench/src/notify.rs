//! Tells systemd that a service is ready (`Type=notify`, sd_notify(3)).

use crate::output;
use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The connection to systemd, if that has started the program.
pub(crate) struct Notify(Option<UnixDatagram>);

impl Notify {
    /// Connects, before the service drops the privileges that it takes. A failure is a warning:
    /// systemd ends the service if it waits for it.
    pub(crate) fn connect() -> Self {
        Self(connect().unwrap_or_else(|error| {
            output::warn(&[format!(
                "systemd cannot be told when the service is ready: {error}"
            )]);
            None
        }))
    }

    /// Reports that the service is ready.
    pub(crate) fn ready(&self) {
        if let Some(socket) = &self.0 {
            // It was connected before; a systemd that has gone needs no message.
            let _ = socket.send(b"READY=1");
        }
    }
}

fn connect() -> io::Result<Option<UnixDatagram>> {
    let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let address = match name.as_bytes() {
        // sd_notify(3): `@` means the abstract namespace, and replaces the zero that begins such
        // names.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(&name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    Ok(Some(socket))
}
