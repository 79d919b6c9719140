//! The bridge as a program.

use super::Bridge;
use crate::serve::{ServeError, print_line};
use port::{LinkOffloads, LinkPort, Stop};
use std::io::Write;
use traffic_spec::{BridgeSpec, Monotonic, READY};

impl Bridge<LinkPort, Monotonic> {
    /// Opens the ports. From now on the kernel sees no frame of the interfaces.
    ///
    /// # Errors
    /// [`ServeError`] when a port cannot be opened.
    pub fn open(spec: &BridgeSpec) -> Result<Self, ServeError> {
        let [a, b] = &spec.interfaces;
        let ports = [open(a)?, open(b)?];
        Ok(Self::new(
            &spec.profile,
            spec.frame_bytes,
            ports,
            Monotonic::new(),
        ))
    }
}

/// Runs the [`BridgeSpec`] in `input` (JSON): opens the ports, prints [`READY`] on one line,
/// carries frames until `stop` is raised, and prints the [`impair::Impaired`] on one line of JSON.
/// Meanwhile the kernel sees no frame of the interfaces.
///
/// # Errors
/// [`ServeError`]; nothing has been printed then, or [`READY`] alone.
pub fn serve_bridge(input: &str, mut output: impl Write, stop: &Stop) -> Result<(), ServeError> {
    let spec: BridgeSpec = serde_json::from_str(input)?;
    // Before READY, so that no frame passes by the kernel once the stations send.
    let bridge = Bridge::open(&spec)?;
    print_line(&mut output, READY)?;
    let impaired = bridge.run(stop).map_err(ServeError::Bridge)?;
    print_line(&mut output, &serde_json::to_string(&impaired)?)
}

fn open(interface: &str) -> Result<LinkPort, ServeError> {
    // Frames one by one: the model decides on frames, not on super-packets.
    let none = LinkOffloads {
        tso: false,
        uso: false,
    };
    let mut port = LinkPort::open(interface, 1, none)?.remove(0);
    // Otherwise frames would also reach the other side past the model.
    if !port.host_is_deaf() {
        return Err(ServeError::KernelListens(interface.to_owned()));
    }
    port.keep_times();
    // If this is refused, the bridge is slower, and its counts show it.
    port.send_by_program();
    Ok(port)
}
