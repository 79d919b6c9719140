//! `cipherbench bisect`: which revision, program or set of settings changed a figure.

use super::resume::agrees;
use crate::cli::{Bisect, Output, Watching};
use crate::exit::{Exit, Failure};
use crate::{cli, output, signals, version};
use bisecting::{Bench, End, Request, Resume, Source, Work};
use session::programs::{self, OnMissing};
use session::{Reporter, Session, unix_ns};
use testbed::Interrupt;
use trial::Done;

/// Nothing between the ends is built before both were found to differ.
pub(crate) fn bisect(arguments: &Bisect) -> Result<Exit, Failure> {
    let options = Output {
        form: cli::Form {
            full: false,
            json: arguments.json,
        },
        quiet: arguments.quiet,
    };
    let reporter = &options.reporter(&Watching::default())?;
    let interrupt = signals::interrupt()?;
    let mut work = match &arguments.resume {
        Some(dir) => {
            let resume = Resume {
                dir,
                is_trusted: arguments.trust,
                agrees,
            };
            Work::resume(&resume, reporter, &interrupt)?
        }
        None => {
            let work = Work::begin(request(arguments)?, reporter, &interrupt)?;
            work.register();
            work
        }
    };
    if !work.is_measured() {
        measure(&mut work, reporter, interrupt)?;
    }
    let conclusion = work.conclude()?;
    let printed = if arguments.json {
        conclusion.json()
    } else {
        conclusion.text()
    };
    output::stdout(&printed)?;
    Ok(match conclusion.outcome {
        End::Found => Exit::Done,
        End::NoChange | End::Swapped => Exit::CriterionFailed,
        End::Undecided => Exit::Inconclusive,
    })
}

fn measure(work: &mut Work, reporter: &Reporter, interrupt: Interrupt) -> Result<(), Failure> {
    programs::require(&work.trial(), &Done::default(), OnMissing::Refuse, reporter)?;
    work.announce();
    // Before the lab: a build that fails for both ends needs none.
    work.make_ends()?;
    let session = Session::open(&work.plan().lab, interrupt, reporter)?;
    session.warn_of_load()?;
    // Before the first trial: a record of a trial must follow that of its machine and tools.
    work.opened(version::short(), session.environment()?)?;
    let (plan, question) = (work.plan().clone(), work.question().clone());
    let mut bench = Bench::new(session, &plan, &question);
    work.search(&mut bench)?;
    Ok(work.measure_others(bench.into_session())?)
}

fn request(arguments: &Bisect) -> Result<Request, Failure> {
    let usage = |text: &str| Failure::new(Exit::Usage, text);
    let Bisect {
        campaign,
        lab,
        quick,
        gate,
        good,
        bad,
        build,
        programs,
        ..
    } = arguments;
    let source = match (good, bad) {
        (Some(good), Some(bad)) => Source::Revisions {
            repository: arguments.repository.clone(),
            good: good.clone(),
            bad: bad.clone(),
            command: build.clone().ok_or_else(|| {
                usage(
                    "revisions without a build\n\
                     help: add the command that builds one: `--build make`",
                )
            })?,
            program: arguments.program.clone(),
            limit: arguments.build_limit,
            cache: arguments.cache.clone(),
            afresh: arguments.rebuild,
        },
        _ if !arguments.settings.is_empty() => Source::Settings(arguments.settings.clone()),
        _ => Source::Programs(programs.clone()),
    };
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    Ok(Request {
        plan: session::plan(campaign.as_deref(), lab.as_deref(), *quick, None)?,
        // The command line demands it unless a bisection is resumed.
        gate: gate.clone().unwrap_or_default(),
        dut: arguments.dut.clone(),
        source,
        pairs_max: arguments.pairs,
        seed: unix_ns(),
        repeats: arguments.repeats,
        out: arguments.out.clone(),
        command: words.collect(),
        program: version::short().to_owned(),
    })
}
