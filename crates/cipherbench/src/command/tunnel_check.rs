//! `cipherbench tunnel-check`: a quick question between two hosts.

use crate::cli::TunnelCheck;
use crate::exit::{Exit, Failure};
use crate::{output, signals};
use std::net::SocketAddr;
use testbed::Interrupt;
use tunnelcheck::{
    Findings, Listener, PORT, Question, Token, Verdict, ask, json, listening_address, peer_address,
    screen,
};

pub(crate) fn tunnel_check(arguments: &TunnelCheck) -> Result<Exit, Failure> {
    let interrupt = signals::interrupt()?;
    match (&arguments.host, &arguments.listen) {
        (Some(host), _) => check(host, arguments, &interrupt),
        (None, Some(address)) => {
            let address = listening_address(address.as_deref())?;
            listen(address, arguments, &interrupt)
        }
        (None, None) => {
            let problem = "neither HOST nor `--listen`";
            let help = "run `cipherbench tunnel-check --listen` on one host, and on the other one the line that \
                        it prints";
            Err(Failure::new(
                Exit::Usage,
                format!("{problem}\nhelp: {help}"),
            ))
        }
    }
}

fn check(host: &str, arguments: &TunnelCheck, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let peer = peer_address(host)?;
    let notice = notice(arguments);
    let findings = match (&arguments.ssh, &arguments.token) {
        (Some(ssh), _) => {
            notice(&format!("starting the other end: ssh {ssh}\n"));
            let far = session::listen_over_ssh(ssh, peer, interrupt)?;
            let asked = question(peer, &far.token, arguments, interrupt);
            // Also after a failed question: nothing of this program stays on the other host.
            far.end();
            asked?
        }
        (None, Some(token)) => question(peer, token, arguments, interrupt)?,
        (None, None) => {
            let problem = "no token, and no `--ssh`";
            let help = "run `cipherbench tunnel-check --listen` on the other host, and here the line that it \
                        prints; or let ssh do it: `--ssh user@host`";
            let text = format!("{problem}\nhelp: {help}");
            return Err(Failure::new(Exit::Usage, text));
        }
    };
    let verdict = Verdict::of(&findings);
    let document = json(&findings, &verdict);
    if let Some(path) = &arguments.out {
        output::file(path, &document)?;
    }
    output::stdout(&if arguments.json {
        document
    } else {
        screen(&findings, &verdict)
    })?;
    Ok(match verdict {
        Verdict {
            is_faulty: true, ..
        } => Exit::CriterionFailed,
        Verdict {
            is_incomplete: true,
            ..
        } => Exit::Inconclusive,
        _ => Exit::Done,
    })
}

fn question(
    peer: SocketAddr,
    token: &Token,
    arguments: &TunnelCheck,
    interrupt: &Interrupt,
) -> Result<Findings, Failure> {
    Ok(ask(&Question {
        peer,
        token,
        seconds: arguments.seconds,
        offloads: arguments.offloads,
        interrupt,
        notice: notice(arguments),
    })?)
}

fn listen(
    address: SocketAddr,
    arguments: &TunnelCheck,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let token = token(arguments)?;
    let listener = Listener::open(address, token.clone())?;
    let address = listener.address();
    let wait = units::human::duration(arguments.wait);
    let mut text = format!("listening on {address} (TCP and UDP) for {wait}");
    if !arguments.token_on_stdin {
        let to = match address.port() {
            PORT => address.ip().to_string(),
            // Some shells take brackets for a pattern.
            _ if address.is_ipv6() => format!("'{address}'"),
            _ => address.to_string(),
        };
        let token = token.digits();
        text +=
            &format!("; run on the other host:\n  cipherbench tunnel-check {to} --token {token}");
    }
    output::stdout(&(text + "\n"))?;
    listener.serve(arguments.wait, interrupt, notice(arguments))?;
    Ok(Exit::Done)
}

fn token(arguments: &TunnelCheck) -> Result<Token, Failure> {
    if !arguments.token_on_stdin {
        return Ok(Token::new()?);
    }
    let text = crate::input::spec()?;
    text.trim()
        .parse()
        .map_err(|error| Failure::new(Exit::Usage, error))
}

const fn notice(arguments: &TunnelCheck) -> fn(&str) {
    if arguments.quiet {
        |_| ()
    } else {
        output::stderr
    }
}
