//! A part over two streams: a spec comes in, lines of progress and a report go out.

use crate::error::PeersError;
use crate::run::run;
use crate::spec::Spec;
use crate::triggers::{Progress, Triggers};
use port::Stop;
use serde::Deserialize;
use serde_json::Deserializer;
use std::io::{BufRead, Write};
use std::thread;

/// Plays the part that `input` describes, a [`Spec`] in JSON. Lines after it are `storm`, which
/// begins the storm, and `stop`, which ends the part.
///
/// `output` gets the lines `ready` when the load begins and `up NUMBER` when that number of peers
/// stays up, and then a [`Report`](crate::Report) as one line of JSON. `stop` ends the part too.
///
/// # Errors
/// [`PeersError`].
pub fn play(
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write,
    stop: &Stop,
) -> Result<(), PeersError> {
    // It reads no further than the end of the spec.
    let spec = Spec::deserialize(&mut Deserializer::from_reader(&mut input))?;
    let failed = PeersError::system("make a flag");
    let storm = Stop::new().map_err(failed)?;
    let raised = [stop.clone(), storm.clone()];
    // It ends with its input, or with the process.
    thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            match line.trim() {
                "stop" => raised[0].raise(),
                "storm" => raised[1].raise(),
                _ => {}
            }
        }
    });
    let triggers = Triggers {
        stop,
        storm: &storm,
    };
    let mut written = Ok(());
    let report = run(&spec, triggers, &mut |progress| {
        let line = match progress {
            Progress::Ready => writeln!(output, "ready"),
            Progress::Up(count) => writeln!(output, "up {count}"),
        };
        let line = line.and_then(|()| output.flush());
        written = std::mem::replace(&mut written, Ok(())).and(line);
    })?;
    let report = serde_json::to_string(&report)?;
    let written = written.and_then(|()| writeln!(output, "{report}"));
    written.map_err(PeersError::system("write the report"))
}
