//! The energy counters of a machine: RAPL, by the kernel's powercap framework
//! (`Documentation/power/powercap/powercap.rst`).

use crate::protocol::EnergyZone;
use std::fs;
use std::io;
use std::path::Path;

/// The kernel's folder of energy counters.
pub(crate) const FOLDER: &str = "/sys/class/powercap";

/// Prefix of package zones; cores and memory controllers are zones below them.
const PACKAGE: &str = "intel-rapl:";

/// Reads the packages of a machine, in the order of their names; empty if it has none or this user
/// must not read them.
///
/// # Errors
/// When a file of a package has an unknown form.
pub(crate) fn read(folder: &Path) -> io::Result<Vec<EnergyZone>> {
    let mut zones = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // `intel-rapl:0` is a package, `intel-rapl:0:1` a part of it.
        let number = name.strip_prefix(PACKAGE);
        if number.is_some_and(|number| number.parse::<u32>().is_ok())
            && let Some(energy_uj) = readable(&entry.path().join("energy_uj"))?
        {
            let range = readable(&entry.path().join("max_energy_range_uj"))?;
            zones.push(EnergyZone {
                name,
                energy_uj,
                range_uj: range.map_or(u64::MAX, |most| most.saturating_add(1)),
            });
        }
    }
    zones.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(zones)
}

/// The journal's description of this machine's counters.
pub(crate) fn in_words(folder: &Path) -> String {
    match read(folder) {
        Ok(zones) if !zones.is_empty() => {
            let names: Vec<_> = zones.into_iter().map(|zone| zone.name).collect();
            format!("RAPL: {}", names.join(", "))
        }
        Ok(_) => format!("no RAPL: {} shows no package to read", folder.display()),
        Err(error) => format!("no RAPL: {error}"),
    }
}

/// The number in a file; `None` if it is not there or must not be read.
fn readable(file: &Path) -> io::Result<Option<u64>> {
    let Ok(text) = fs::read_to_string(file) else {
        return Ok(None);
    };
    let number = text.trim().parse().map_err(|_| {
        let what = format!("{} has an unknown form: {}", file.display(), text.trim());
        io::Error::other(what)
    });
    number.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, zone: &str, name: &str, text: &str) {
        let zone = folder.join(zone);
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join(name), text).unwrap();
    }

    #[test]
    fn packages_are_read_and_their_parts_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(read(folder).unwrap().is_empty());
        assert!(in_words(&folder.join("none")).starts_with("no RAPL: "));
        for (zone, energy) in [
            ("intel-rapl:1", "7\n"),
            ("intel-rapl:0", "5\n"),
            ("intel-rapl:0:0", "3\n"),
        ] {
            write(folder, zone, "energy_uj", energy);
            write(folder, zone, "max_energy_range_uj", "262143328850\n");
        }
        write(folder, "intel-rapl", "enabled", "1\n");
        write(folder, "dtpm", "energy_uj", "9\n");
        let found = read(folder).unwrap();
        let brief: Vec<_> = found
            .iter()
            .map(|zone| (&*zone.name, zone.energy_uj))
            .collect();
        assert_eq!(brief, [("intel-rapl:0", 5), ("intel-rapl:1", 7)]);
        assert!(found.iter().all(|zone| zone.range_uj == 262_143_328_851));
        assert_eq!(in_words(folder), "RAPL: intel-rapl:0, intel-rapl:1");
        write(folder, "intel-rapl:1", "energy_uj", "much\n");
        assert!(read(folder).unwrap_err().to_string().contains("much"));
    }
}
