//! Requests to an SNMP agent: GET of version 2c (RFC 3416), or of version 3 with the User-based
//! Security Model (RFC 3414).

use super::{Answer, secret};
use async_snmp::client::ResponseShapePolicy;
use async_snmp::error::ErrorStatus;
use async_snmp::v3::ReportStatus;
use async_snmp::{
    Auth, AuthProtocol, Client, Error, Oid, PrivProtocol, Retry, UdpHandle, UsmConfig, Value,
};
use plan::{SnmpAgent, SnmpAuthentication, SnmpLogin, SnmpPrivacy};
use std::cell::Cell;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long one answer is awaited; then the request is sent once more.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
const RETRIES: u32 = 1;
/// How long the requests of one round may take.
const LIMIT: Duration = Duration::from_secs(2);
const OIDS_MAX: usize = 50;
/// `sysUpTime.0`, which every agent has.
const SYS_UP_TIME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];
/// A 32-bit counter begins again at 0 (RFC 2578 §7.1.6).
const COUNTER32_RANGE: u64 = 1 << 32;
/// Prefix of an opaque value with a floating-point number, as net-snmp's agent sends it.
const OPAQUE_FLOAT: [u8; 3] = [0x9f, 0x78, 0x04];

/// A session with one agent. Its secrets are in it.
pub(super) struct Session {
    address: String,
    /// The user of version 3.
    user: Option<String>,
    /// Whether it has answered a request yet.
    has_answered: Cell<bool>,
    /// Drives the client on the thread that polls.
    runtime: Runtime,
    client: Client<UdpHandle>,
}

impl Session {
    /// Reads the secrets and opens a socket; nothing is sent yet.
    pub(super) fn open(agent: &SnmpAgent) -> Result<Self, String> {
        let address = &agent.address;
        let failed = |error: &dyn std::fmt::Display| format!("the SNMP agent {address}: {error}");
        // Before the socket: without its secrets there is nothing to ask an agent.
        let login = login(&agent.login).map_err(|error| failed(&error))?;
        // On the thread that polls: a device is asked one question after the other anyway.
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(&error))?;
        let client = runtime.block_on(connect(address, login));
        let client = client.map_err(|error| failed(&error))?;
        Ok(Self {
            address: address.clone(),
            user: match &agent.login {
                SnmpLogin::V2c { .. } => None,
                SnmpLogin::V3 { user, .. } => Some(user.clone()),
            },
            has_answered: Cell::new(false),
            runtime,
            client,
        })
    }

    /// Returns the values of objects, in their order. A missing object has a separate error; an
    /// error of the agent is repeated for every object.
    pub(super) fn get(&self, oids: &[Oid]) -> Vec<Result<Answer, String>> {
        // `timeout` needs a running runtime, so it is created inside one.
        let answering = async { tokio::time::timeout(LIMIT, self.client.get_many(oids)).await };
        let address = &self.address;
        let error = match self.runtime.block_on(answering) {
            Ok(Ok(response)) if response.varbinds.len() == oids.len() => {
                self.has_answered.set(true);
                let values = response.varbinds.into_iter().zip(oids);
                return values
                    .map(|(found, oid)| {
                        answer(found.value)
                            .map_err(|what| format!("the SNMP agent {address} has {what} at {oid}"))
                    })
                    .collect();
            }
            Ok(Ok(_)) => format!("the SNMP agent {address} answers with other objects"),
            Ok(Err(error)) if !is_timeout(&error) => {
                format!("the SNMP agent {address} {}", explain(&error))
            }
            Ok(Err(_)) | Err(_) => format!("the SNMP agent {address} {}", self.why_silent()),
        };
        oids.iter().map(|_| Err(error.clone())).collect()
    }

    /// Why no answer came. An agent refuses a login of version 3 by reports that are not
    /// authenticated, which the client discards, as anyone could send them. So an agent that never
    /// answered gets a request without a password, to find out whether it is there and knows the
    /// user.
    fn why_silent(&self) -> &'static str {
        let Some(user) = self.user.as_ref().filter(|_| !self.has_answered.get()) else {
            return SILENT;
        };
        let asking = async {
            let client = connect(&self.address, UsmConfig::new(user.clone()).into()).await?;
            client.get(&Oid::new(SYS_UP_TIME)).await
        };
        let found = self
            .runtime
            .block_on(async { tokio::time::timeout(LIMIT, asking).await });
        match found {
            Ok(Err(error)) if is_timeout(&error) => SILENT,
            Ok(Err(error)) => match error.exchange_source() {
                Error::Report { status, .. }
                    if matches!(**status, ReportStatus::UnknownUserName { .. }) =>
                {
                    UNKNOWN_USER
                }
                _ => REFUSES,
            },
            Ok(Ok(_)) => REFUSES,
            Err(_) => SILENT,
        }
    }
}

async fn connect(address: &str, login: Auth) -> Result<Client<UdpHandle>, Box<Error>> {
    Client::builder(address, login)
        .construction_timeout(LIMIT)
        .request_timeout(ANSWER_LIMIT)
        .retry(Retry::fixed(RETRIES, Duration::ZERO).expect("few retries without delay are valid"))
        .max_oids_per_request(OIDS_MAX)
        .response_shape_policy(ResponseShapePolicy::Strict)
        .connect()
        .await
}

fn is_timeout(error: &Error) -> bool {
    matches!(error.exchange_source(), Error::Timeout { .. })
}

const SILENT: &str = "does not answer\n\
                      help: see whether it is reachable from this machine and lets it in; with v2c, an agent is \
                      silent when the community is wrong";
const UNKNOWN_USER: &str = "knows no such user\nhelp: see `user`, and the users that the agent has";
const REFUSES: &str = "is there and does not accept this login\n\
                       help: see `password`, `authentication`, `privacy` and `privacy_password`";

fn login(login: &SnmpLogin) -> Result<Auth, String> {
    match login {
        SnmpLogin::V2c { community } => Ok(Auth::v2c(secret::read(community)?.as_bytes())),
        SnmpLogin::V3 {
            user,
            authentication,
            password,
            privacy,
        } => {
            let password = secret::read(password)?;
            let usm = UsmConfig::new(user.clone());
            let protocol = authentication_protocol(*authentication);
            let usm = match privacy {
                None => usm.auth(protocol, password.as_bytes()),
                Some((privacy, secret)) => {
                    let secret = secret::read(secret)?;
                    let privacy = privacy_protocol(*privacy);
                    usm.auth_priv(protocol, password.as_bytes(), privacy, secret.as_bytes())
                }
            };
            // Such as a password of less than 8 bytes (RFC 3414 §11.2).
            let usm = usm.map_err(|error| format!("the login of `{user}` cannot be used: {error}"));
            Ok(usm?.into())
        }
    }
}

const fn authentication_protocol(protocol: SnmpAuthentication) -> AuthProtocol {
    match protocol {
        SnmpAuthentication::Md5 => AuthProtocol::Md5,
        SnmpAuthentication::Sha1 => AuthProtocol::Sha1,
        SnmpAuthentication::Sha256 => AuthProtocol::Sha256,
        SnmpAuthentication::Sha384 => AuthProtocol::Sha384,
        SnmpAuthentication::Sha512 => AuthProtocol::Sha512,
    }
}

const fn privacy_protocol(protocol: SnmpPrivacy) -> PrivProtocol {
    match protocol {
        SnmpPrivacy::Des => PrivProtocol::Des,
        SnmpPrivacy::Aes128 => PrivProtocol::Aes128,
        SnmpPrivacy::Aes256 => PrivProtocol::Aes256Blumenthal,
        SnmpPrivacy::Aes256Cisco => PrivProtocol::Aes256Reeder,
    }
}

/// Describes an error, as the rest of a sentence after the agent's name.
fn explain(error: &Error) -> String {
    match error.exchange_source() {
        Error::Auth { .. } => REFUSES.to_owned(),
        Error::Snmp {
            status: ErrorStatus::AuthorizationError | ErrorStatus::NoAccess,
            ..
        } => "lets this login read nothing\nhelp: see the agent's views".to_owned(),
        Error::Network { source, .. } => format!("cannot be reached: {source}"),
        other => format!("cannot be read: {other}"),
    }
}

/// Returns the value, or the reason why it cannot be used.
fn answer(value: Value) -> Result<Answer, String> {
    match value {
        Value::Integer(number) => Ok(Answer::Number(number.into())),
        Value::Gauge32(number) | Value::UInteger32(number) | Value::TimeTicks(number) => {
            Ok(Answer::Number(number.into()))
        }
        Value::Counter32(count) => Ok(Answer::Wrapping {
            count: count.into(),
            range: COUNTER32_RANGE,
        }),
        Value::Counter64(count) => Ok(Answer::Count(count)),
        Value::OctetString(bytes) => Ok(Answer::Text(String::from_utf8_lossy(&bytes).into())),
        Value::Opaque(bytes) => match bytes.strip_prefix(&OPAQUE_FLOAT) {
            Some(&[a, b, c, d]) => Ok(Answer::Decimal(f32::from_be_bytes([a, b, c, d]).into())),
            _ => Err("an opaque value".to_owned()),
        },
        Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView => {
            Err("no object".to_owned())
        }
        other => Err(format!("no number ({:?})", other.kind())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Secret;
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn every_type_of_a_number_is_read() {
        assert_eq!(answer(Value::Integer(-5)), Ok(Answer::Number(-5)));
        assert_eq!(
            answer(Value::Gauge32(u32::MAX)),
            Ok(Answer::Number(4_294_967_295))
        );
        let wrapping = Answer::Wrapping {
            count: 7,
            range: 1 << 32,
        };
        assert_eq!(answer(Value::Counter32(7)), Ok(wrapping));
        assert_eq!(
            answer(Value::Counter64(u64::MAX)),
            Ok(Answer::Count(u64::MAX))
        );
        let mut opaque = OPAQUE_FLOAT.to_vec();
        opaque.extend_from_slice(&0.5_f32.to_be_bytes());
        assert_eq!(
            answer(Value::Opaque(opaque.into())),
            Ok(Answer::Decimal(0.5))
        );
        let text = answer(Value::OctetString("41.5"[..].as_bytes().to_vec().into()));
        assert_eq!(text, Ok(Answer::Text("41.5".to_owned())));
        for none in [
            Value::Null,
            Value::NoSuchInstance,
            Value::Opaque(vec![1].into()),
        ] {
            assert!(answer(none).is_err());
        }
    }

    /// Answers every request with truncated copies of it, each with one byte changed.
    #[test]
    fn an_agent_that_sends_garbage_is_an_error_in_time() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let address: SocketAddr = socket.local_addr().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut request = [0; 2000];
                let mut turn = 0_usize;
                while !over.load(Ordering::Relaxed) {
                    let Ok((length, from)) = socket.recv_from(&mut request) else {
                        continue;
                    };
                    for cut in 0..length {
                        turn += 1;
                        let mut answer = request[..length - cut].to_vec();
                        let at = turn * 7 % answer.len();
                        answer[at] ^= (turn % 255 + 1) as u8;
                        let _ = socket.send_to(&answer, from);
                    }
                }
            });
            // Any variable that is set serves as a secret.
            let community = Secret::Environment("PATH".to_owned());
            let user = |privacy| SnmpLogin::V3 {
                user: "bench".to_owned(),
                authentication: SnmpAuthentication::Sha256,
                password: community.clone(),
                privacy,
            };
            let encrypted = user(Some((SnmpPrivacy::Aes128, community.clone())));
            let v2c = SnmpLogin::V2c {
                community: community.clone(),
            };
            for login in [v2c, user(None), encrypted] {
                let agent = SnmpAgent {
                    address: address.to_string(),
                    login,
                };
                let session = Session::open(&agent).unwrap();
                let begun = std::time::Instant::now();
                let found = session.get(&[Oid::parse("1.3.6.1.2.1.1.3.0").unwrap()]);
                assert!(found.len() == 1 && found[0].is_err(), "{found:?}");
                // With room for a busy machine.
                assert!(begun.elapsed() < 5 * LIMIT);
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
