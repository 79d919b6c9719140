//! A server of an operator: users have JWTs, which expire.

use crate::site::{PATIENCE, Site, access, end, kill, now};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use fleet::{Access, Fleet, Selector, Server, State, free_address};
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the first credentials of the agent are good.
const EXPIRES_IN: u64 = 4;

/// Ends with its owner.
struct Nats(Child);

impl Drop for Nats {
    fn drop(&mut self) {
        kill(self.0.id());
        self.0.wait().unwrap();
    }
}

/// A JWT as NATS has them (github.com/nats-io/jwt, version 2).
fn jwt(issuer: &KeyPair, subject: &KeyPair, expires: Option<u64>, nats: &Value) -> String {
    let subject = subject.public_key();
    let mut claims = json!({
        "jti": "of a test", "iat": now(), "iss": issuer.public_key(), "sub": subject, "name": subject,
        "nats": nats,
    });
    if let Some(expires) = expires {
        claims["exp"] = expires.into();
    }
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let signed = format!(
        "{}.{}",
        encode(header.to_string().as_bytes()),
        encode(claims.to_string().as_bytes())
    );
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", encode(&signature))
}

/// An operator with one account, and its system account.
struct Operator {
    key: KeyPair,
    account: KeyPair,
    system: KeyPair,
}

impl Operator {
    fn config(&self, listen: &str, store: &Path) -> String {
        let operator = jwt(
            &self.key,
            &self.key,
            None,
            &json!({ "type": "operator", "version": 2, "system_account": self.system.public_key() }),
        );
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
            "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
        });
        let of_account = json!({ "type": "account", "version": 2, "limits": limits });
        let mut of_system = of_account.clone();
        // The system's account has no streams.
        for key in ["mem_storage", "disk_storage", "streams", "consumer"] {
            of_system["limits"][key] = 0.into();
        }
        format!(
            "listen: \"{listen}\"\nserver_name: operated\noperator: {operator}\nsystem_account: {system}\n\
             resolver: MEMORY\nresolver_preload: {{\n  {account}: {account_jwt}\n  {system}: {system_jwt}\n}}\n\
             jetstream {{ store_dir: {store:?} }}\n",
            system = self.system.public_key(),
            account = self.account.public_key(),
            account_jwt = jwt(&self.key, &self.account, None, &of_account),
            system_jwt = jwt(&self.key, &self.system, None, &of_system),
        )
    }

    /// Credentials of a new user, as NATS's tools write them.
    fn credentials(&self, path: &Path, expires: Option<u64>) {
        let user = KeyPair::new_user();
        // What servers of earlier versions did not let their users: agents do without it.
        let denied = json!({ "deny": ["$JS.API.CONSUMER.MSG.NEXT.>"] });
        let of_user = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": denied,
        });
        let jwt = jwt(&self.account, &user, expires, &of_user);
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            user.seed().unwrap()
        );
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }
}

fn start(operator: &Operator, folder: &Path) -> (Nats, String) {
    let listen = free_address().unwrap().to_string();
    let config = folder.join("nats.conf");
    fs::write(&config, operator.config(&listen, &folder.join("store"))).unwrap();
    let log = fs::File::create(folder.join("nats.log")).unwrap();
    let child = Command::new(Server::program().unwrap())
        .arg("--config")
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    (Nats(child), format!("nats://{listen}"))
}

pub(crate) fn expiry() {
    let operator = Operator {
        key: KeyPair::new_operator(),
        account: KeyPair::new_account(),
        system: KeyPair::new_account(),
    };
    let folder = tempfile::tempdir().unwrap();
    let (_nats, url) = start(&operator, folder.path());
    let site = Site::of(folder, &url);
    let key = |name: &str| -> PathBuf { site.folder.path().join(name) };
    operator.credentials(&key("owner.creds"), None);
    let owner = Access {
        key: Some(key("owner.creds")),
        ..access(&url)
    };
    let since = Instant::now();
    while let Err(error) = site.runtime.block_on(Fleet::set_up(&owner, None)) {
        let log = fs::read_to_string(site.folder.path().join("nats.log")).unwrap();
        assert!(since.elapsed() < PATIENCE, "{error}\n{log}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let fleet = site.runtime.block_on(Fleet::connect(&owner)).unwrap();
    fs::create_dir(site.agent_folder("agent")).unwrap();
    let credentials = site.agent_folder("agent").join("key");
    operator.credentials(&credentials, Some(now() + EXPIRES_IN));
    let agent = site.start("agent", "lab");
    // Longer than the credentials are good.
    let id = site.submit_to(&fleet, 1, "slow", Selector::default());
    site.await_some("word that they expired", || {
        let logs = site.logs().to_lowercase();
        logs.contains("the server does not accept this agent: user authentication expired")
            .then_some(())
    });
    // The run goes on to its end without the server.
    site.await_some("end of the run", || {
        let job = site.agent_folder("agent").join("lab").join(&id);
        job.join("runs/the-run/report.md").exists().then_some(())
    });
    let state = site.runtime.block_on(fleet.state(&id)).unwrap();
    assert!(matches!(state, Some(State::Running(_))), "{state:?}");
    // A command with such credentials says so.
    operator.credentials(&key("old.creds"), Some(now() - 1));
    let old = Access {
        key: Some(key("old.creds")),
        ..access(&url)
    };
    let refused = site.runtime.block_on(Fleet::connect(&old)).err();
    let error = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("does not accept this user"), "{error}");

    operator.credentials(&credentials, None);
    site.await_some("upload with new credentials", || {
        let state = site.runtime.block_on(fleet.state(&id)).unwrap();
        matches!(state, Some(State::Done { .. })).then_some(())
    });
    site.check_run(&fleet, &id);
    end(agent);
}
