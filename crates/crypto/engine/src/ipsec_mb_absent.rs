//! Placeholder for engine `ipsec-mb` in a build without it.

use crate::Aead;
use crate::engine::Engine;
use wire::Suite;

pub(crate) struct IpsecMb;

impl Engine for IpsecMb {
    fn name(&self) -> &'static str {
        "ipsec-mb"
    }

    fn probe(&self) -> Result<String, String> {
        Err(if cfg!(target_arch = "x86_64") {
            "not built in: install libipsec-mb-dev and rebuild".to_owned()
        } else {
            "not built in: Intel's library is for x86-64 only".to_owned()
        })
    }

    fn aead(&self, _: Suite, _: &[u8]) -> Box<dyn Aead> {
        unreachable!("an engine whose probe fails is never selected")
    }
}
