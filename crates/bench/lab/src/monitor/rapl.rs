//! The energy counters of a machine: RAPL, by the kernel's powercap framework
//! (`Documentation/power/powercap/powercap.rst`).

use std::fs;
use std::io;
use std::path::Path;
use testbed::protocol::EnergyZone;

/// The kernel's folder of energy counters.
pub(crate) const FOLDER: &str = "/sys/class/powercap";

/// Prefix of zones.
const PREFIX: &str = "intel-rapl:";

/// The range of a counter if the kernel does not show it.
pub(crate) const UNKNOWN_RANGE: u64 = u64::MAX;

/// Domain of the memory modules, a zone below its package.
const DRAM: &str = "dram";

/// Domain of the whole platform, at the level of packages and with their energy in it.
const PLATFORM: &str = "psys";

/// Reads the packages of a machine and their memory, in the order of their names; empty if it has
/// none or this user must not read them.
///
/// # Errors
/// When a file of a zone has an unknown form.
pub(crate) fn read(folder: &Path) -> io::Result<Vec<EnergyZone>> {
    let mut zones = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(numbers) = name.strip_prefix(PREFIX) else {
            continue;
        };
        // A package without a name is counted, since only its parts and the platform must not be.
        let domain = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        let domain = domain.trim().to_owned();
        if is_counted(numbers, &domain)
            && let Some(energy_uj) = readable(&entry.path().join("energy_uj"))?
        {
            let range = readable(&entry.path().join("max_energy_range_uj"))?;
            zones.push(EnergyZone {
                name,
                domain,
                energy_uj,
                range_uj: range.map_or(UNKNOWN_RANGE, |most| most.saturating_add(1)),
            });
        }
    }
    // `read_dir` has no order, and readers follow each zone by its position.
    zones.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(zones)
}

/// Whether no other counted zone includes a zone's energy. `numbers` are `0` for a package and
/// `0:1` for a part of it.
fn is_counted(numbers: &str, domain: &str) -> bool {
    match numbers.split_once(':') {
        None => numbers.parse::<u32>().is_ok() && domain != PLATFORM,
        // A package includes its cores and graphics (`core`, `uncore`), but not its memory.
        Some(_) => domain == DRAM,
    }
}

/// The journal's description of this machine's counters.
pub(crate) fn in_words(folder: &Path) -> String {
    match read(folder) {
        Ok(zones) if !zones.is_empty() => {
            let has_memory = zones.iter().any(|zone| zone.domain == DRAM);
            let names = zones.into_iter().map(|zone| match zone.domain.as_str() {
                "" => zone.name,
                domain => format!("{} ({domain})", zone.name),
            });
            let names: Vec<_> = names.collect();
            let memory = if has_memory { "" } else { "; without memory" };
            format!("RAPL: {}{memory}", names.join(", "))
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
    fn packages_and_their_memory_are_read_and_no_energy_twice() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(read(folder).unwrap().is_empty());
        assert!(in_words(&folder.join("none")).starts_with("no RAPL: "));
        // The energy of cores is in their package, and the platform includes all packages; the last
        // zone is the first package by another interface.
        for (zone, domain, energy) in [
            ("intel-rapl:1", "package-1\n", "7\n"),
            ("intel-rapl:0", "package-0\n", "5\n"),
            ("intel-rapl:0:0", "core\n", "3\n"),
            ("intel-rapl:2", "psys\n", "90\n"),
            ("intel-rapl-mmio:0", "package-0\n", "5\n"),
        ] {
            write(folder, zone, "name", domain);
            write(folder, zone, "energy_uj", energy);
            write(folder, zone, "max_energy_range_uj", "262143328850\n");
        }
        write(folder, "intel-rapl", "enabled", "1\n");
        write(folder, "dtpm", "energy_uj", "9\n");
        let brief = || -> Vec<_> {
            let zones = read(folder).unwrap();
            assert!(zones.iter().all(|zone| zone.range_uj == 262_143_328_851));
            let zones = zones.into_iter();
            zones.map(|zone| (zone.name, zone.energy_uj)).collect()
        };
        let packages = [("intel-rapl:0", 5), ("intel-rapl:1", 7)];
        assert_eq!(brief(), packages.map(|(name, uj)| (name.to_owned(), uj)));
        assert_eq!(
            in_words(folder),
            "RAPL: intel-rapl:0 (package-0), intel-rapl:1 (package-1); without memory"
        );
        write(folder, "intel-rapl:0:1", "name", "dram\n");
        write(folder, "intel-rapl:0:1", "energy_uj", "2\n");
        write(
            folder,
            "intel-rapl:0:1",
            "max_energy_range_uj",
            "262143328850\n",
        );
        let energies: Vec<_> = brief().into_iter().map(|(_, uj)| uj).collect();
        assert_eq!(energies, [5, 2, 7]);
        assert_eq!(
            in_words(folder),
            "RAPL: intel-rapl:0 (package-0), intel-rapl:0:1 (dram), intel-rapl:1 (package-1)"
        );
        write(folder, "intel-rapl:1", "energy_uj", "much\n");
        assert!(read(folder).unwrap_err().to_string().contains("much"));
    }

    #[test]
    fn a_package_without_a_name_is_read() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "intel-rapl:0", "energy_uj", "5\n");
        write(folder.path(), "intel-rapl:0:0", "energy_uj", "3\n");
        assert_eq!(read(folder.path()).unwrap().len(), 1);
        assert_eq!(
            in_words(folder.path()),
            "RAPL: intel-rapl:0; without memory"
        );
    }
}
