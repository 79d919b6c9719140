//! The mode of a port of AF_XDP, as the kernel grants it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a port of AF_XDP works on its interface, as `native, copy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpMode {
    /// A receiver's; a sender needs no program.
    pub attach: Option<XdpAttach>,
    /// The owner of the memory that the driver uses.
    pub memory: XdpMemory,
}

/// The attachment point of an XDP program in the driver's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpAttach {
    /// In the driver.
    Native,
    /// Behind the driver, on any driver.
    Generic,
}

/// The owner of the memory that the driver uses for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMemory {
    /// The port's: the device reads and writes it.
    ZeroCopy,
    /// The kernel's: it copies each frame.
    Copy,
}

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.attach {
            Some(XdpAttach::Native) => "native, ",
            Some(XdpAttach::Generic) => "generic, ",
            None => "",
        })?;
        f.write_str(match self.memory {
            XdpMemory::ZeroCopy => "zero-copy",
            XdpMemory::Copy => "copy",
        })
    }
}
