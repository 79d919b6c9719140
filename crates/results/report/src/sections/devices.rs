//! Facts that the crypto devices report about themselves.

use super::Section;
use crate::tables;

pub(super) const SECTION: Section = Section::result("devices", "Devices", |run, out| {
    if !out.is_short() {
        out.tables(tables::device::facts(run));
    }
})
.beside();
