//! A worker: one process, one device, one trial. [`catalog::worker`] defines its input and output.

use std::env;
use std::io::{self, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;

use guard::Lines;

use crate::orders::{self, Orders};
use crate::pkcs11::SoftHsm;
use crate::{Device, DeviceError, Keys, fatigue, kat, open, speed};
use catalog::device::{DeviceKind, DeviceTest};
use catalog::worker::{Fatigue, LINE_BYTES_MAX, Line, Spec};

/// A spec is far shorter.
const SPEC_BYTES_MAX: usize = 16 << 20;

/// Runs the trial that the first line of `input` specifies and reports it on `output`.
///
/// A [`DeviceKind::SoftHsm`] needs a second process, since the library finds its token by the
/// environment only: this program again, with the same arguments.
///
/// # Errors
/// Errors of writing to `output`, which end the trial.
pub fn serve(input: impl Read + Send + 'static, output: impl Write) -> io::Result<()> {
    let mut input = BufReader::new(input);
    // The rest of the input carries orders and stays in the buffer.
    let first = Lines::new(&mut input, SPEC_BYTES_MAX).next();
    let line = first
        .transpose()?
        .map_or_else(String::new, |line| line.text);
    let mut writer = LineWriter {
        output,
        failed: None,
    };
    match serde_json::from_str::<Spec>(&line) {
        Ok(spec) if spec.device == DeviceKind::SoftHsm => delegate(input, &mut writer, spec),
        Ok(spec) => work(&spec, &Orders::listen(input), &mut writer),
        Err(error) => writer.write(&Line::Failed(format!(
            "the first line of standard input is not the spec of a trial: {error}"
        ))),
    }
    writer.failed.map_or(Ok(()), Err)
}

/// The output of a worker, with its first error.
struct LineWriter<W> {
    output: W,
    failed: Option<io::Error>,
}

impl<W: Write> LineWriter<W> {
    fn write(&mut self, line: &Line) {
        // JSON cannot represent maps with keys other than strings; lines have no such maps.
        let mut text = serde_json::to_string(line).expect("a line can be written as JSON");
        text.push('\n');
        self.write_bytes(text.as_bytes());
    }

    fn write_bytes(&mut self, text: &[u8]) {
        let written = self
            .output
            .write_all(text)
            .and_then(|()| self.output.flush());
        self.failed = self.failed.take().or(written.err());
    }
}

/// Opens the device, runs the trial, and writes the last line.
fn work(spec: &Spec, orders: &Arc<Orders>, writer: &mut LineWriter<impl Write>) {
    let done = open(&spec.device).and_then(|device| {
        writer.write(&Line::Open(device.facts()));
        work_on(device, spec, orders, writer)
    });
    match done {
        Ok(true) => writer.write(&Line::End),
        Ok(false) => {}
        Err(DeviceError::NotOffered(text)) => writer.write(&Line::NotOffered(text)),
        Err(DeviceError::PinRefused(text)) => writer.write(&Line::PinRefused(text)),
        Err(DeviceError::Unusable(text) | DeviceError::Failed(text) | DeviceError::Wrong(text)) => {
            writer.write(&Line::Failed(text));
        }
    }
}

/// Returns `false` if it was stopped without a result.
fn work_on(
    device: Box<dyn Device>,
    spec: &Spec,
    orders: &Arc<Orders>,
    writer: &mut LineWriter<impl Write>,
) -> Result<bool, DeviceError> {
    let keys = Keys::new(spec.seed);
    // The reference for results: our engines with the fastest kernel.
    let cpu = open(&DeviceKind::Engine { kernel: None })?;
    match &spec.test {
        DeviceTest::Kat(kat) => {
            kat::run(&*device, &*cpu, &keys, &kat.algorithms, &mut |line| {
                writer.write(&line);
                writer.failed.is_none() && !orders.stopped()
            })?;
            Ok(!orders.stopped())
        }
        DeviceTest::Speed(test) => {
            let ready = || {
                writer.write(&Line::Ready);
                orders.begin()
            };
            let examination = speed::Examination::of_processes(spec.processes);
            let measured =
                speed::measure(&*device, &*cpu, &keys, test, examination, orders, ready)?;
            let done = measured.is_some();
            measured
                .into_iter()
                .for_each(|speed| writer.write(&Line::Speed(speed)));
            Ok(done)
        }
        DeviceTest::Fatigue(test) => {
            // Two closures write: `ready` once, then `report`. Never at the same time.
            let writer = std::cell::RefCell::new(writer);
            let ready = || {
                writer.borrow_mut().write(&Line::Ready);
                orders.begin()
            };
            let mut report = |fatigue: Fatigue| {
                let mut writer = writer.borrow_mut();
                writer.write(&Line::Fatigue(fatigue));
                if writer.failed.is_some() {
                    orders.stop();
                }
            };
            let reopen = || open(&spec.device);
            let against = fatigue::Against {
                cpu: &*cpu,
                keys: &keys,
                orders,
            };
            fatigue::run(device, &reopen, against, test, ready, &mut report)?;
            Ok(true)
        }
    }
}

/// Makes a token of SoftHSM2, runs the trial on it in a second process, and removes it when that
/// has ended, however it ended.
fn delegate(
    input: BufReader<impl Read + Send + 'static>,
    writer: &mut LineWriter<impl Write>,
    spec: Spec,
) {
    let ended = SoftHsm::make().and_then(|token| {
        let spec = Spec {
            device: token.spec(),
            ..spec
        };
        let ended = run_child(&token, &spec, input, writer);
        ended.map_err(|error| {
            DeviceError::Unusable(format!("cannot start a process for SoftHSM2: {error}"))
        })
    });
    match ended {
        Ok(None) => {}
        Ok(Some(status)) => {
            writer.write(&Line::Failed(format!(
                "the process with SoftHSM2 ended early: {status}"
            )));
        }
        Err(error) => writer.write(&Line::Failed(error.to_string())),
    }
}

/// Runs the second process. Returns its exit status unless it succeeded.
fn run_child(
    token: &SoftHsm,
    spec: &Spec,
    input: BufReader<impl Read + Send + 'static>,
    writer: &mut LineWriter<impl Write>,
) -> io::Result<Option<ExitStatus>> {
    let (name, value) = token.environment();
    let child = Command::new(env::current_exe()?)
        // The same arguments make the program a worker again.
        .args(env::args_os().skip(1))
        .env(name, value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut child = Reaped(child);
    let (Some(mut orders), Some(lines)) = (child.0.stdin.take(), child.0.stdout.take()) else {
        return Err(io::Error::other("it has no standard input or output"));
    };
    let mut line = serde_json::to_string(spec)?;
    line.push('\n');
    // The spec of the second process names the token; the orders after it are passed on unchanged.
    orders.write_all(line.as_bytes())?;
    // This thread ends with the input, or with the next order after the child has ended.
    thread::spawn(move || {
        for line in Lines::new(input, orders::LINE_BYTES_MAX).map_while(Result::ok) {
            if orders
                .write_all(format!("{}\n", line.text).as_bytes())
                .is_err()
            {
                return;
            }
        }
    });
    for line in Lines::new(BufReader::new(lines), LINE_BYTES_MAX) {
        let mut line = line?.text;
        line.push('\n');
        writer.write_bytes(line.as_bytes());
        if writer.failed.is_some() {
            return Ok(None);
        }
    }
    let status = child.0.wait()?;
    Ok((!status.success()).then_some(status))
}

/// A child process that is killed and reaped on drop.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // It has already ended unless writing to `output` failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
