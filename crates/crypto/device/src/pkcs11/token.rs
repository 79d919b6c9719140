//! A token, and each thread's session with the token.

use std::collections::HashMap;
use std::fs::Permissions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::MechanismType;
use cryptoki::session::{Session as Connection, UserType};
use cryptoki::slot::{Limit, Slot, TokenInfo};
use cryptoki::types::AuthPin;
use guard::open_regular;
use zeroize::Zeroizing;

use super::key::{KeyObject, KeyUse};
use super::mechanism::{Call, Mechanisms, TokenJob};
use super::raw::Functions;
use super::{code, describe, failed, unusable, unusable_since};
use crate::threads::lock;
use crate::{Device, DeviceError, Job, Keys, Session};
use catalog::Operation;
use catalog::device::Facts;

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;
/// Longer than any PIN.
const PIN_BYTES_MAX: usize = 4096;

/// A token with a logged-in user.
pub(crate) struct Token {
    // Fields are dropped in this order: sessions are closed before the library is finalised.
    owner: Arc<Mutex<Connection>>,
    objects: Mutex<HashMap<KeyUse, Weak<KeyObject>>>,
    library: Library,
    functions: Functions,
    slot: Slot,
    facts: Facts,
    mechanisms: Mechanisms,
}

/// An initialised module.
struct Library(Option<Pkcs11>);

impl Drop for Library {
    fn drop(&mut self) {
        if let Some(context) = self.0.take() {
            // Modules are never unloaded: some leave handlers that run at process exit.
            std::mem::forget(context.clone());
            // A failure cannot be reported from here, and may be due to a crashed token.
            let _ = context.finalize();
        }
    }
}

impl Library {
    fn context(&self) -> &Pkcs11 {
        self.0.as_ref().expect("taken only when dropped")
    }
}

/// Opens a token and logs in.
///
/// # Errors
/// [`DeviceError::Unusable`]: the module or token is missing, or others can read the file with the
/// PIN. [`DeviceError::PinRefused`]: a wrong PIN, a locked token, or one with a single attempt
/// left.
pub(crate) fn open(
    module: &Path,
    slot: Option<u64>,
    label: Option<&str>,
    pin_file: &Path,
) -> Result<Token, DeviceError> {
    let pin = read_pin(pin_file)?;
    let library = load(module)?;
    let context = library.context();
    // After the binding has loaded and initialised the module, which this only looks up again.
    let functions = Functions::of(module).map_err(unusable_since(module.display()))?;
    let (slot, token) = find(context, slot, label)?;
    let label = trimmed(token.label());
    // This session stays open, and with it the login and the imported keys.
    let connection = context
        .open_rw_session(slot)
        .map_err(unusable_since(format_args!(
            "token {label:?} does not open a session"
        )))?;
    log_in(&connection, &pin, &token, pin_file)?;
    let mechanisms = context
        .get_mechanism_list(slot)
        .map_err(unusable_since(format_args!(
            "token {label:?} does not list its mechanisms"
        )))?;
    let info = |&kind: &MechanismType| Some((kind, context.get_mechanism_info(slot, kind).ok()?));
    let mechanisms = Mechanisms(mechanisms.iter().filter_map(info).collect());
    Ok(Token {
        facts: facts(context, module, slot, &token),
        owner: Arc::new(Mutex::new(connection)),
        objects: Mutex::default(),
        library,
        functions,
        slot,
        mechanisms,
    })
}

fn load(module: &Path) -> Result<Library, DeviceError> {
    let shown = module.display();
    let context = Pkcs11::new(module).map_err(|error| {
        unusable(format!(
            "{shown} is no PKCS#11 module that can be loaded: {}; install it, or correct `module`",
            describe(&error)
        ))
    })?;
    let with = CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK);
    context
        .initialize(with)
        .map_err(|error| match code(&error) {
            Some(RvError::CryptokiAlreadyInitialized) => unusable(format!(
                "{shown} is in use in this process; a process can initialise a module only once"
            )),
            _ => unusable(format!("{shown} does not start: {}", describe(&error))),
        })?;
    Ok(Library(Some(context)))
}

/// Finds the requested slot, with its token.
fn find(
    context: &Pkcs11,
    slot: Option<u64>,
    label: Option<&str>,
) -> Result<(Slot, TokenInfo), DeviceError> {
    let slots = context
        .get_slots_with_token()
        .map_err(unusable_since("the module does not list its slots"))?;
    // Skips slots with a token that does not respond or was never initialised.
    let token = |slot: Slot| Some((slot, context.get_token_info(slot).ok()?));
    let mut there: Vec<_> = slots.into_iter().filter_map(token).collect();
    there.retain(|(_, token)| token.token_initialized());
    let meant = |(place, token): &&(Slot, TokenInfo)| {
        slot.is_none_or(|slot| place.id() == slot)
            && label.is_none_or(|label| trimmed(token.label()) == trimmed(label))
    };
    let found: Vec<_> = there.iter().filter(meant).collect();
    if let [one] = found[..] {
        return Ok(one.clone());
    }
    let wanted = match (slot, label) {
        (Some(slot), Some(label)) => format!("token {label:?} in slot {slot}"),
        (Some(slot), None) => format!("token in slot {slot}"),
        (None, Some(label)) => format!("token {label:?}"),
        (None, None) => "token".to_owned(),
    };
    let list: Vec<_> = there
        .iter()
        .map(|(slot, token)| format!("{:?} in slot {}", trimmed(token.label()), slot.id()))
        .collect();
    Err(unusable(match (found.len(), list.is_empty()) {
        (0, true) => {
            format!("there is no {wanted}: the module has no initialised token; plug one in")
        }
        (0, false) => format!("there is no {wanted}; there are: {}", list.join(", ")),
        _ => format!(
            "there is more than one {wanted}; name a slot or a token of: {}",
            list.join(", ")
        ),
    }))
}

fn log_in(
    connection: &Connection,
    pin: &AuthPin,
    token: &TokenInfo,
    pin_file: &Path,
) -> Result<(), DeviceError> {
    let label = trimmed(token.label());
    let shown = pin_file.display();
    may_try(
        token.user_pin_locked(),
        token.user_pin_final_try(),
        label,
        pin_file,
    )?;
    connection.login(UserType::User, Some(pin)).or_else(|error| match code(&error) {
        Some(RvError::UserAlreadyLoggedIn) => Ok(()),
        Some(RvError::PinIncorrect | RvError::PinInvalid | RvError::PinLenRange) => Err(DeviceError::PinRefused(format!(
            "the PIN in {shown} is not that of token {label:?}; correct it before you try again: a token locks \
             itself after a few wrong ones"
        ))),
        Some(RvError::PinLocked) => Err(locked(label)),
        _ => Err(unusable(format!("token {label:?} rejects the login: {}", describe(&error)))),
    })
}

/// Checks that a PIN may be tried: a wrong file must not cost the token its last attempt.
fn may_try(
    is_locked: bool,
    is_final: bool,
    label: &str,
    pin_file: &Path,
) -> Result<(), DeviceError> {
    if is_locked {
        return Err(locked(label));
    }
    if is_final {
        let shown = pin_file.display();
        return Err(DeviceError::PinRefused(format!(
            "token {label:?} has one attempt left for its PIN, and would lock itself if the one in {shown} were wrong; \
             log in once with its vendor's tool, or run: pkcs11-tool --module MODULE --login --list-objects"
        )));
    }
    Ok(())
}

fn locked(label: &str) -> DeviceError {
    DeviceError::PinRefused(format!(
        "token {label:?} is locked after too many wrong PINs; its security officer can unlock it"
    ))
}

/// Reads the PIN from a file that only its owner may read.
fn read_pin(file: &Path) -> Result<AuthPin, DeviceError> {
    let shown = file.display();
    let cannot = |error| unusable(format!("cannot read the PIN in {shown}: {error}"));
    let opened = open_regular(file).map_err(cannot)?;
    let mode = opened.metadata().map_err(cannot)?.permissions().mode();
    if mode & OTHERS != 0 {
        let mode = mode & Permissions::mode(&Permissions::from_mode(0o777));
        return Err(unusable(format!(
            "the PIN in {shown} can be read by others (mode {mode:03o}); run: chmod 600 {shown}"
        )));
    }
    // Room for all of it: the buffer never moves and leaves no copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(PIN_BYTES_MAX + 1));
    let mut opened = opened.take(PIN_BYTES_MAX as u64);
    opened.read_to_end(&mut bytes).map_err(cannot)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| cannot(ErrorKind::InvalidData.into()))?;
    let pin = text.trim_end_matches(['\n', '\r']);
    if pin.is_empty() {
        Err(unusable(format!(
            "there is no PIN in {shown}; write it to that file"
        )))
    } else {
        Ok(AuthPin::from(pin))
    }
}

/// Returns a text without its padding: blanks by the standard (PKCS #11 v3.2 §3.2), zero bytes in
/// some tokens.
fn trimmed(text: &str) -> &str {
    text.trim_end_matches([' ', '\0'])
}

fn facts(context: &Pkcs11, module: &Path, slot: Slot, token: &TokenInfo) -> Facts {
    let firmware = token.firmware_version().to_string();
    let mut more = vec![
        ("module", module.display().to_string()),
        ("slot", slot.id().to_string()),
        ("token", trimmed(token.label()).to_owned()),
        ("serial number", trimmed(token.serial_number()).to_owned()),
        ("hardware version", token.hardware_version().to_string()),
        ("firmware version", firmware.clone()),
    ];
    let mut version = firmware;
    if let Ok(library) = context.get_library_info() {
        version = library.library_version().to_string();
        let interface = format!("PKCS#11 {}", library.cryptoki_version());
        let library = trimmed(library.library_description());
        more.push(("library", library.to_owned()));
        more.push(("interface", interface));
    }
    let more = more.into_iter().map(|(key, value)| (key.to_owned(), value));
    let name = format!(
        "{} {}",
        trimmed(token.manufacturer_id()),
        trimmed(token.model())
    );
    Facts {
        name: name.trim().to_owned(),
        version,
        more: more.collect(),
    }
}

impl Token {
    /// Returns the error for a session that the token does not open. The same arguments opened the
    /// first session, so even an error about arguments means the number of sessions.
    fn without_session(&self, error: &Error) -> DeviceError {
        match code(error) {
            Some(
                RvError::SessionCount
                | RvError::ArgumentsBad
                | RvError::DeviceMemory
                | RvError::HostMemory,
            ) => unusable(format!(
                "the token has no more sessions ({}{}); use fewer threads",
                describe(error),
                self.session_limit()
            )),
            _ => failed(error),
        }
    }

    /// Returns the token's session limit, for the error above; empty if the token does not state
    /// one.
    fn session_limit(&self) -> String {
        let info = self.library.context().get_token_info(self.slot);
        match info.map(|info| info.max_session_count()) {
            Ok(Limit::Max(most)) => format!("; it states {most} at most"),
            _ => String::new(),
        }
    }

    /// Returns the key in the token, which is imported unless it already exists.
    fn object(
        &self,
        operation: Operation,
        keys: &Keys,
    ) -> Result<Option<Arc<KeyObject>>, DeviceError> {
        let Some(wanted) = KeyUse::of(operation, keys) else {
            return Ok(None);
        };
        let mut objects = lock(&self.objects);
        if let Some(object) = objects.get(&wanted).and_then(Weak::upgrade) {
            return Ok(Some(object));
        }
        let object = Arc::new(KeyObject::import(&self.owner, operation, keys)?);
        // Jobs keep objects alive; entries of ended ones are removed here.
        objects.retain(|_, object| object.strong_count() > 0);
        objects.insert(wanted, Arc::downgrade(&object));
        Ok(Some(object))
    }
}

impl Device for Token {
    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        let opened = self.library.context().open_ro_session(self.slot);
        let connection = opened.map_err(|error| self.without_session(&error))?;
        Ok(Box::new(TokenSession {
            token: self,
            connection,
        }))
    }

    fn present(&self) -> Result<(), DeviceError> {
        let info = self.library.context().get_token_info(self.slot);
        info.map(drop).map_err(|error| {
            DeviceError::Failed(format!(
                "the token is no longer present: {}",
                describe(&error)
            ))
        })
    }
}

struct TokenSession<'a> {
    token: &'a Token,
    connection: Connection,
}

impl Session for TokenSession<'_> {
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError> {
        let call = Call::of(&self.token.mechanisms, operation, keys)?;
        let object = self.token.object(operation, keys)?;
        let functions = &self.token.functions;
        let job = TokenJob::new(functions, &self.connection, operation, call, object)?;
        Ok(Box::new(job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_attempt_at_a_pin_is_not_used() {
        let refusal = |is_locked, is_final| {
            may_try(is_locked, is_final, "card", Path::new("pin")).map_err(|error| match error {
                DeviceError::PinRefused(text) => text,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(refusal(false, false), Ok(()));
        let last = refusal(false, true).unwrap_err();
        assert!(
            last.starts_with("token \"card\" has one attempt left"),
            "{last}"
        );
        let locked = refusal(true, true).unwrap_err();
        assert!(locked.starts_with("token \"card\" is locked"), "{locked}");
    }
}
