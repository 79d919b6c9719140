//! A loaded provider or engine.

use super::engine::Engine;
use super::{c_string, forget_errors, pin, raw, reasons, remedy, text};
use crate::DeviceError;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr::{self, NonNull};

/// A provider in a separate library context, or an engine.
///
/// The context has no other provider except OpenSSL's `base`, which reads files and computes
/// nothing. So the provider computes every result.
pub(in super::super) struct Library {
    /// Null for the default context, which engines use.
    context: *mut raw::OSSL_LIB_CTX,
    /// The provider, then `base`.
    providers: Vec<NonNull<raw::OSSL_PROVIDER>>,
    engine: Option<Engine>,
}

// SAFETY: library contexts, providers and engines are thread-safe (OPENSSL-THREADS(7)); nothing
// here changes them after `Library` was made.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a provider by its name, from the directory of `module` if given.
    pub(in super::super) fn provider(
        name: &str,
        module: Option<&Path>,
    ) -> Result<Self, DeviceError> {
        raw::load()?;
        // Before libcrypto loads it, so that dropping the provider does not unload its code.
        pin(name, module, raw::PROVIDERS_FOLDER);
        // SAFETY: no arguments.
        let context = unsafe { raw::OSSL_LIB_CTX_new() };
        if context.is_null() {
            return Err(DeviceError::Unusable(
                "libcrypto is out of memory".to_owned(),
            ));
        }
        let mut library = Self {
            context,
            providers: Vec::new(),
            engine: None,
        };
        let loaded = match module {
            // libcrypto finds a provider by directory and file name, which may differ from `name`.
            Some(module) => {
                // The parent of a bare file name is empty.
                let folder = module.parent().filter(|folder| *folder != Path::new(""));
                let folder = folder.unwrap_or(Path::new("."));
                let stem = module.file_stem().unwrap_or_default();
                let folder = c_string(&folder.to_string_lossy())?;
                // SAFETY: a live context and a C string that the call copies.
                unsafe { raw::OSSL_PROVIDER_set_default_search_path(context, folder.as_ptr()) };
                library.load(&stem.to_string_lossy())
            }
            None => library.load(name),
        };
        if let Err(why) = loaded {
            let place = match module {
                Some(module) => format!("from {}", module.display()),
                None => "from OpenSSL's own directory (`openssl version -m` prints it)".to_owned(),
            };
            return Err(DeviceError::Unusable(format!(
                "OpenSSL does not load the provider {name:?} {place}: {why}; {}",
                remedy(&why)
            )));
        }
        // Without it a provider still computes; it only cannot read keys from files.
        let _ = library.load("base");
        Ok(library)
    }

    /// Loads an engine by its name, from `module` if given.
    pub(in super::super) fn engine(name: &str, module: Option<&Path>) -> Result<Self, DeviceError> {
        let engine = Engine::load(name, module)?;
        Ok(Self {
            context: ptr::null_mut(),
            providers: Vec::new(),
            engine: Some(engine),
        })
    }

    fn load(&mut self, name: &str) -> Result<(), String> {
        let name = c_string(name).map_err(|error| error.to_string())?;
        forget_errors();
        // SAFETY: a live context and a C string that the call copies.
        let provider = unsafe { raw::OSSL_PROVIDER_load(self.context, name.as_ptr()) };
        let Some(provider) = NonNull::new(provider) else {
            return Err(reasons().unwrap_or_else(|| "no reason given".to_owned()));
        };
        self.providers.push(provider);
        Ok(())
    }

    pub(super) const fn context(&self) -> *mut raw::OSSL_LIB_CTX {
        self.context
    }

    pub(super) const fn as_engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    /// Returns the name of the provider or the engine.
    pub(in super::super) fn name(&self) -> String {
        match &self.engine {
            Some(engine) => engine.name(),
            None => self.parameter(c"name").unwrap_or_default(),
        }
    }

    /// Returns the version of the provider; engines have none.
    pub(in super::super) fn version(&self) -> Option<String> {
        self.parameter(c"version")
    }

    /// Runs the provider's self-test, which computes for a while. Returns whether it passed.
    pub(in super::super) fn is_well(&self) -> bool {
        // SAFETY: a live provider.
        self.providers
            .first()
            .is_none_or(|provider| unsafe { raw::OSSL_PROVIDER_self_test(provider.as_ptr()) == 1 })
    }

    /// Returns a text parameter of the provider.
    fn parameter(&self, key: &CStr) -> Option<String> {
        let provider = self.providers.first()?;
        let mut value: *mut c_char = ptr::null_mut();
        // SAFETY: the list of parameters is terminated; the provider sets `value` to a string that
        // it owns or leaves it null.
        unsafe {
            let mut parameters = [
                raw::OSSL_PARAM_construct_utf8_ptr(key.as_ptr(), &raw mut value, 0),
                raw::OSSL_PARAM_construct_end(),
            ];
            raw::OSSL_PROVIDER_get_params(provider.as_ptr(), parameters.as_mut_ptr());
        }
        // SAFETY: null, or a NUL-terminated string that is valid for the provider's lifetime.
        unsafe { text(value) }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // Before their context, which they belong to.
        for provider in &self.providers {
            // SAFETY: this value loaded it, and everything made from it borrowed this value.
            unsafe { raw::OSSL_PROVIDER_unload(provider.as_ptr()) };
        }
        if !self.context.is_null() {
            // SAFETY: owned by this value.
            unsafe { raw::OSSL_LIB_CTX_free(self.context) };
        }
    }
}

/// Returns libcrypto's version text.
///
/// # Errors
/// [`DeviceError::Unusable`]: libcrypto cannot be loaded.
pub(in super::super) fn version() -> Result<String, DeviceError> {
    raw::load()?;
    // SAFETY: it is loaded; the result is a static string.
    Ok(unsafe { text(raw::OpenSSL_version(raw::OPENSSL_VERSION)) }.unwrap_or_default())
}
