//! Sums up the evidence of a cell's trials.

use super::Run;
use journal::record::{Evidence, FrameTrial, Measured, Outcome, TrialRecord};
use plan::{Form, LinkForm};
use stats::CellResult;

/// The check that others left the machine to a trial.
const MACHINE_CHECK: &str = "machine-was-ours";

/// Checks and sampled frames over all repeats of a cell.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Repeats with evidence.
    pub(crate) trials: u32,
    /// Repeats in which no check judged whether the machine was theirs: measured too shortly, or in
    /// memory.
    pub(crate) machine_unjudged: u32,
    pub(crate) checks: usize,
    pub(crate) passed: usize,
    pub(crate) frames: u64,
    pub(crate) esp_frames: u64,
    pub(crate) marker_frames: u64,
    pub(crate) coverage: Coverage,
}

/// How much of a cell's frame trials the evidence covers. Journals from before readings were
/// recorded have no covered trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// Frame trials.
    pub(crate) trials: u64,
    /// Trials with readings of the cipher link's counters.
    pub(crate) counted: u64,
    /// Trials in which the kernel filter saw every frame of the cipher link.
    pub(crate) filtered: u64,
    /// Frames sent in all frame trials.
    pub(crate) frames: u64,
    /// Frames of trials with both.
    pub(crate) covered_frames: u64,
}

impl Coverage {
    fn add(&mut self, trials: &[FrameTrial]) {
        for trial in trials {
            let readings = trial.readings.as_deref();
            let counted = readings.is_some_and(|it| it.cipher.is_some());
            let filtered = readings.is_some_and(|it| it.watch.is_some());
            self.trials += 1;
            // Counts come from a journal, so their sum may overflow.
            self.frames = self.frames.saturating_add(trial.sent);
            self.counted += u64::from(counted);
            self.filtered += u64::from(filtered);
            if counted && filtered {
                self.covered_frames = self.covered_frames.saturating_add(trial.sent);
            }
        }
    }

    /// Whether any trial was covered.
    pub(crate) const fn is_any(self) -> bool {
        self.counted > 0 || self.filtered > 0
    }
}

impl Summary {
    pub(crate) fn of(run: &Run<'_>, cell: &CellResult) -> Self {
        Self::over(run, std::iter::once(cell))
    }

    /// Sums over all cells.
    pub(crate) fn total(run: &Run<'_>) -> Self {
        Self::over(run, run.results.cells.iter())
    }

    fn over<'c>(run: &Run<'_>, cells: impl Iterator<Item = &'c CellResult>) -> Self {
        let mut sum = Self::default();
        let trials = cells.flat_map(|cell| run.trials(cell));
        // Invalid trials have evidence as well, and their checks count.
        for measured in trials.filter_map(read) {
            let evidence = &measured.evidence;
            if let Some(frames) = measured.frames() {
                sum.coverage.add(&frames.trials);
            }
            sum.trials += 1;
            let mut checks = evidence.checks.iter();
            let is_judged = checks.any(|check| check.name == MACHINE_CHECK);
            sum.machine_unjudged += u32::from(!is_judged);
            sum.checks += evidence.checks.len();
            sum.passed += evidence.checks.iter().filter(|check| check.passed).count();
            sum.frames = sum.frames.saturating_add(evidence.cipher_link.frames);
            sum.esp_frames = sum
                .esp_frames
                .saturating_add(evidence.cipher_link.esp_frames);
            sum.marker_frames = sum
                .marker_frames
                .saturating_add(evidence.cipher_link.marker_frames);
        }
        sum
    }
}

/// Returns the measurement of a trial that passed all checks.
pub(crate) fn measured(trial: &TrialRecord) -> Option<&Measured> {
    match &trial.outcome {
        Outcome::Measured(measured) => Some(measured),
        Outcome::Invalid { .. } | Outcome::Failed { .. } => None,
    }
}

/// Returns the outcome of a trial as one word.
pub(crate) const fn outcome_name(trial: &TrialRecord) -> &'static str {
    match trial.outcome {
        Outcome::Measured(_) => "measured",
        Outcome::Invalid { .. } => "invalid",
        Outcome::Failed { .. } => "failed",
    }
}

/// Returns the evidence of a trial; a failed one has none.
pub(crate) fn of_trial(trial: &TrialRecord) -> Option<&Evidence> {
    read(trial).map(|measured| &measured.evidence)
}

/// Returns the measurement of a trial, valid or not; a failed one has none.
fn read(trial: &TrialRecord) -> Option<&Measured> {
    match &trial.outcome {
        Outcome::Measured(measured) | Outcome::Invalid { measured, .. } => Some(measured),
        Outcome::Failed { .. } => None,
    }
}

/// The assumed form of frames between the gateways for a cell without one.
const NO_FORM: LinkForm = LinkForm::Sealed(Form::Esp);

/// Returns the form of frames between the gateways that all cells share; ESP if no cell has one,
/// `None` if the cells have several.
pub(crate) fn common_form(run: &Run<'_>) -> Option<LinkForm> {
    let cells = run.plan().cells.iter();
    let mut forms = cells.filter_map(|cell| cell.dut.adapter.form());
    let first = forms.next().unwrap_or(NO_FORM);
    forms.all(|form| form == first).then_some(first)
}

/// Returns the form of a cell's frames between the gateways; ESP if it has none.
pub(crate) fn form(run: &Run<'_>, cell: &CellResult) -> LinkForm {
    let planned = run.planned(cell);
    let form = planned.and_then(|cell| cell.dut.adapter.form());
    form.unwrap_or(NO_FORM)
}

/// Returns the name of the field that identifies the keys or sessions of packets, if the form has
/// one: [`journal::record::CipherLink::spis`] lists its values for each form.
pub(crate) const fn key_name(form: LinkForm) -> Option<&'static str> {
    match form {
        LinkForm::Sealed(Form::Esp) => Some("SPI"),
        LinkForm::Sealed(Form::WireGuard) => Some("receiver index"),
        LinkForm::Sealed(Form::OpenVpn) => Some("key"),
        LinkForm::Sealed(Form::MacSec) => Some("association number"),
        LinkForm::L2tpv3 => Some("session"),
        LinkForm::Gre | LinkForm::Opaque => None,
    }
}
