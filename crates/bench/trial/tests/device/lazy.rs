//! Tokens that verify signatures, or only say so. The example `truth` uses this file too.

use campaign::{HostFacts, LabFile, from_text};
use catalog::device::DeviceKind;
use device::SoftHsm;
use journal::record::Outcome;
use lab::programs::search_path;
use std::path::Path;
use std::process::{Command, Stdio};
use testbed::Interrupt;
use trial::{Measurer, OnDevices, Trial, links};

/// A token of PKCS #11, whose functions all pass to those of SoftHSM but for what a fault changes.
pub(crate) struct Token {
    softhsm: SoftHsm,
    folder: tempfile::TempDir,
}

impl Token {
    /// `None`, as [`testing::skip`] reports, where a token cannot be made or compiled here.
    pub(crate) fn make() -> Option<Self> {
        let test = "a token that verifies nothing";
        let cc = Command::new("cc")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if !cc.is_ok_and(|status| status.success()) {
            testing::lacks(test, "cc", "apt install gcc");
            return None;
        }
        match SoftHsm::make() {
            Ok(softhsm) => Some(Self {
                softhsm,
                folder: testing::folder().expect("a folder"),
            }),
            Err(error) => {
                testing::skip(test, error);
                None
            }
        }
    }

    /// The token with this fault (a macro of `token.c`), as a device of a campaign.
    fn device(&self, fault: &str) -> String {
        let DeviceKind::Pkcs11 {
            module,
            slot: _,
            token,
            pin_file,
        } = self.softhsm.spec()
        else {
            unreachable!("it is a token");
        };
        let own = self.folder.path().join(format!("{fault}.so"));
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crypto/device/tests/data/token.c");
        let mut cc = Command::new("cc");
        cc.arg(format!("-D{fault}"))
            .arg(format!("-DREAL=\"{}\"", module.display()))
            .args(["-shared", "-fPIC", "-o"])
            .args([&own, &source])
            .arg("-ldl");
        assert!(cc.status().expect("cc").success(), "{cc:?}");
        let token = token.map_or_else(String::new, |token| format!("token: {token}, "));
        let (own, pin_file) = (own.display(), pin_file.display());
        format!("pkcs11: {{ module: {own}, {token}pin_file: {pin_file} }}")
    }

    /// What comes of a speed trial of `ecdsa-p256 verify` with this fault. This program is the
    /// worker, where its argument is this.
    pub(crate) fn verifies(&self, fault: &str, worker: &str) -> Outcome {
        let text = format!(
            "campaign: lazy\ndevices: [{}]\n\
             trials: [speed: {{ operation: ecdsa-p256 verify, concurrency: 2, duration: 300 ms }}]\n",
            self.device(fault)
        );
        let campaign = from_text("lazy.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
        let lab = LabFile::built_in_named("device").expect("it is built in");
        let plan = campaign.plan(&lab, &HostFacts { cores: 2 });
        let plan = plan.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let (name, value) = self.softhsm.environment();
        let program = std::env::current_exe().expect("a program");
        let command = vec![
            "env".into(),
            format!("{name}={}", value.display()).into(),
            program.into(),
            worker.into(),
        ];
        let mut on = OnDevices::new(command, search_path());
        let cell = &plan.cells[0];
        let trial = Trial::of(cell, 1, links(&plan, cell));
        let record = on.measure(&trial, &mut |_| (), &Interrupt::new());
        record.expect("no interrupt").outcome
    }
}

/// Whether the results of a device are said to be wrong.
pub(crate) fn is_found(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Invalid { reasons, .. } => {
            let mut reasons = reasons.iter();
            reasons.any(|reason| reason.starts_with("results-right"))
        }
        _ => false,
    }
}

/// A fault of `token.c` that changes nothing.
pub(crate) const NONE: &str = "HONEST";
