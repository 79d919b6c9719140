//! What a program that these examples serve prints.

use serde::de::DeserializeOwned;
use std::io::{self, Write};
use std::sync::mpsc::Sender;

/// Keeps the output, and signals its first line.
pub(crate) struct Output {
    text: Vec<u8>,
    ready: Option<Sender<()>>,
}

impl Output {
    /// Without a report yet; `ready` hears of the first line.
    pub(crate) fn new(ready: Option<Sender<()>>) -> Self {
        Self {
            text: Vec::new(),
            ready,
        }
    }

    /// The report in the last line.
    pub(crate) fn report<T: DeserializeOwned>(&self) -> T {
        let last = self.text.trim_ascii().rsplit(|byte| *byte == b'\n').next();
        serde_json::from_slice(last.unwrap_or_default()).expect("a report ends the output")
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(ready) = self.ready.take() {
            // The caller is gone only if its thread has panicked.
            let _ = ready.send(());
        }
        Ok(())
    }
}
