//! One part from its spec to its report.

use crate::credentials::Credentials;
use crate::engine::Engine;
use crate::error::PeersError;
use crate::flood;
use crate::phases::Station;
use crate::report::{Generator, Report};
use crate::resources::{cpu_ns, memory_bytes, wake_exactly};
use crate::sockets::Sockets;
use crate::sources::Places;
use crate::spec::{Load, Spec};
use crate::triggers::{Progress, Triggers};
use std::time::Instant;

/// Plays the part; the load begins immediately.
///
/// # Errors
/// [`PeersError`]; failed set-ups are no error.
pub fn run(
    spec: &Spec,
    triggers: Triggers<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, PeersError> {
    check(spec)?;
    wake_exactly();
    let (began, began_cpu_ns) = (Instant::now(), cpu_ns());
    let before_bytes = memory_bytes();
    let (places, mut sockets) = Places::open(spec)?;
    let credentials = Credentials::new(spec, places.nat_port)?;
    let mut report = if let Load::HalfOpen { per_s, duration_ns } = spec.load {
        progress(Progress::Ready);
        let schedule = (per_s, duration_ns);
        flood::run(
            spec,
            &places,
            &credentials,
            &mut sockets,
            schedule,
            triggers,
        )?
    } else {
        let about = (spec.peers, spec.nat_port, spec.behaviour.childless);
        let engine = Engine::new(about, places, credentials);
        let station = Station {
            engine,
            sockets: &mut sockets,
            triggers,
            patience_ns: spec.behaviour.patience_ns,
            before_bytes,
            is_leaving: false,
        };
        station.run(spec, progress)?
    };
    let elapsed_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    report.generator = Generator {
        elapsed_ns,
        cpu_ns: cpu_ns().saturating_sub(began_cpu_ns),
        ..generator(&sockets)
    };
    Ok(report)
}

fn generator(sockets: &Sockets) -> Generator {
    Generator {
        missed: sockets.missed(),
        unsent: sockets.unsent,
        refusal: sockets.refusal.as_ref().map(ToString::to_string),
        ..Generator::default()
    }
}

/// Rates of 0, and a churn that needs more peers than there are.
fn check(spec: &Spec) -> Result<(), PeersError> {
    let rates = [
        spec.delete_per_s,
        match spec.load {
            Load::Storm { after_per_s } => after_per_s,
            Load::Setup { per_s }
            | Load::Concurrent { per_s, .. }
            | Load::Churn { per_s, .. }
            | Load::HalfOpen { per_s, .. }
            | Load::Rekey { per_s, .. } => Some(per_s),
        },
    ];
    if rates.contains(&Some(0)) {
        return Err(PeersError::Value("a rate of 0 per second".to_owned()));
    }
    if let Load::Churn {
        per_s, lifetime_ns, ..
    } = spec.load
    {
        let needed = u128::from(per_s) * u128::from(lifetime_ns) / 1_000_000_000;
        if needed >= u128::from(spec.peers) {
            return Err(PeersError::Value(format!(
                "{per_s} set-ups per second that live {} s need more than {needed} peers; there are {}",
                lifetime_ns / 1_000_000_000,
                spec.peers
            )));
        }
    }
    Ok(())
}
