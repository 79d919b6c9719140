//! A worker: one process, one device, one trial. What it is told and what it says stands in
//! [`crate::report`].

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;

use crate::operation::device::{DeviceKind, DeviceTest};
use crate::orders::Orders;
use crate::pkcs11::SoftHsm;
use crate::report::{Fatigue, Line};
use crate::spec::Spec;
use crate::{Device, DeviceError, Keys, fatigue, kat, open, speed};

/// Does what the first line of `input` says, and tells what comes of it on `output`.
///
/// A [`DeviceKind::SoftHsm`] is done by a second process like this one, since the library finds its
/// token by the environment only: this program again, with the same arguments.
///
/// # Errors
/// Those of `output`: then nobody listens any more, and the work is ended.
pub fn serve(input: impl Read + Send + 'static, output: impl Write) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut line = String::new();
    input.read_line(&mut line)?;
    let mut voice = Voice {
        output,
        failed: None,
    };
    match serde_json::from_str::<Spec>(&line) {
        Ok(Spec {
            device: DeviceKind::SoftHsm,
            test,
            seed,
        }) => {
            delegate(input, &mut voice, test, seed);
        }
        Ok(spec) => work(&spec, &Orders::listen(input), &mut voice),
        Err(error) => voice.say(&Line::Failed(format!(
            "the first line of standard input is no trial on a device: {error}"
        ))),
    }
    voice.failed.map_or(Ok(()), Err)
}

/// Where a worker says its lines, and whether anybody listens.
struct Voice<W> {
    output: W,
    failed: Option<io::Error>,
}

impl<W: Write> Voice<W> {
    fn say(&mut self, line: &Line) {
        // Only maps with other keys than texts cannot be written as JSON, and lines have none.
        let mut text = serde_json::to_string(line).expect("a line can be written as JSON");
        text.push('\n');
        self.pass(text.as_bytes());
    }

    fn pass(&mut self, text: &[u8]) {
        let said = self
            .output
            .write_all(text)
            .and_then(|()| self.output.flush());
        self.failed = self.failed.take().or(said.err());
    }
}

/// Opens the device, does the work, and says how it ended.
fn work(spec: &Spec, orders: &Arc<Orders>, voice: &mut Voice<impl Write>) {
    let done = open(&spec.device).and_then(|device| {
        voice.say(&Line::Open(device.facts()));
        work_on(device, spec, orders, voice)
    });
    match done {
        Ok(true) => voice.say(&Line::End),
        Ok(false) => {}
        Err(DeviceError::NotOffered(text)) => voice.say(&Line::NotOffered(text)),
        Err(DeviceError::PinRefused(text)) => voice.say(&Line::PinRefused(text)),
        Err(DeviceError::Unusable(text) | DeviceError::Failed(text)) => {
            voice.say(&Line::Failed(text));
        }
    }
}

/// `false`: it was stopped, and there is no result.
fn work_on(
    device: Box<dyn Device>,
    spec: &Spec,
    orders: &Arc<Orders>,
    voice: &mut Voice<impl Write>,
) -> Result<bool, DeviceError> {
    let keys = Keys::new(spec.seed);
    let cpu = open(&DeviceKind::Engine { kernel: None })?;
    match &spec.test {
        DeviceTest::Kat(kat) => {
            kat::run(&*device, &*cpu, &keys, &kat.algorithms, &mut |line| {
                voice.say(&line);
                voice.failed.is_none() && !orders.stopped()
            })?;
            Ok(!orders.stopped())
        }
        DeviceTest::Speed(test) => {
            let ready = || {
                voice.say(&Line::Ready);
                orders.begin()
            };
            let measured = speed::measure(&*device, &*cpu, &keys, test, orders, ready)?;
            let done = measured.is_some();
            measured
                .into_iter()
                .for_each(|speed| voice.say(&Line::Speed(speed)));
            Ok(done)
        }
        DeviceTest::Fatigue(test) => {
            let voice = std::cell::RefCell::new(voice);
            let ready = || {
                voice.borrow_mut().say(&Line::Ready);
                orders.begin()
            };
            let mut say = |fatigue: Fatigue| {
                let mut voice = voice.borrow_mut();
                voice.say(&Line::Fatigue(fatigue));
                if voice.failed.is_some() {
                    orders.stop();
                }
            };
            let again = || open(&spec.device);
            let against = fatigue::Against {
                cpu: &*cpu,
                keys: &keys,
                orders,
            };
            fatigue::run(device, &again, against, test, ready, &mut say)?;
            Ok(true)
        }
    }
}

/// Makes a token of SoftHSM2, has another process like this one work with it, and removes it when
/// that has ended, however it ended.
fn delegate(
    input: BufReader<impl Read + Send + 'static>,
    voice: &mut Voice<impl Write>,
    test: DeviceTest,
    seed: u64,
) {
    let ended = SoftHsm::make().and_then(|token| {
        let spec = Spec {
            device: token.spec(),
            test,
            seed,
        };
        let ended = pass_on(&token, &spec, input, voice);
        ended.map_err(|error| {
            DeviceError::Unusable(format!("cannot start a process for SoftHSM2: {error}"))
        })
    });
    match ended {
        Ok(None) => {}
        Ok(Some(status)) => {
            voice.say(&Line::Failed(format!(
                "the process that worked with SoftHSM2 broke off: {status}"
            )));
        }
        Err(error) => voice.say(&Line::Failed(error.to_string())),
    }
}

/// `None` where the process came to its end; otherwise how it died.
fn pass_on(
    token: &SoftHsm,
    spec: &Spec,
    input: BufReader<impl Read + Send + 'static>,
    voice: &mut Voice<impl Write>,
) -> io::Result<Option<ExitStatus>> {
    let (name, value) = token.environment();
    let child = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(name, value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut child = Reaped(child);
    let (Some(mut told), Some(says)) = (child.0.stdin.take(), child.0.stdout.take()) else {
        return Err(io::Error::other("it has no standard input and output"));
    };
    let mut line = serde_json::to_string(spec)?;
    line.push('\n');
    told.write_all(line.as_bytes())?;
    // Ends with the input, or with the next order after the child has ended.
    thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            if told.write_all(format!("{line}\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    for line in BufReader::new(says).split(b'\n') {
        let mut line = line?;
        line.push(b'\n');
        voice.pass(&line);
        if voice.failed.is_some() {
            return Ok(None);
        }
    }
    let status = child.0.wait()?;
    Ok((!status.success()).then_some(status))
}

/// A process that does not outlive this.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // It has ended already unless nobody listens to this one any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
