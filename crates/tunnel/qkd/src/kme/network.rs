//! State of the simulated network: links that generate keys, keys that wait for their slaves,
//! faults and counters. No I/O and no clock: the caller passes times, counted from one arbitrary
//! start.
//!
//! Each pair of KMEs has a link with its own store of key material; SAEs of one KME share keys
//! through such a store, too. A key for slaves at several KMEs consumes material of the links to
//! all of them, as if it were transported under one-time pads.

use super::bucket::Bucket;
use super::call::Call;
use super::config::{Config, Keys};
use super::fault::{Armed, Fault, Faults};
use super::refusal::Refusal;
use crate::types::{Extension, Key, KeyBytes, KeyRequest, Status};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Maximum number of keys that wait for their slaves; beyond it, the oldest are discarded.
const WAITING_MAX: usize = 100_000;

/// An SAE's ID.
pub(super) type Sae = Arc<str>;

/// All KMEs with their links. KMEs are identified by their index in the configuration.
pub(super) struct Network {
    settings: Keys,
    kmes: Vec<KmeState>,
    /// The KME of each SAE.
    homes: HashMap<Sae, usize>,
    /// Links between a KME and one with the same or a higher index.
    links: BTreeMap<(usize, usize), Bucket>,
    /// Keys that wait for slaves, by ID.
    waiting: HashMap<String, Waiting>,
    /// The IDs of `waiting` by age.
    by_age: BTreeMap<u64, String>,
    /// Number of generated keys.
    made: u64,
    forgotten: u64,
    /// The last key of each pair of master and slave, kept for [`Fault::DoubleDelivery`].
    last: HashMap<(Sae, Sae), (String, Waiting)>,
}

struct KmeState {
    name: String,
    faults: Faults,
    counts: Counts,
}

/// Counters of one KME.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Responses, by call and status code.
    pub(super) answers: BTreeMap<(Call, u16), u64>,
    /// Keys delivered to masters.
    pub(super) to_masters: u64,
    /// Keys delivered to slaves.
    pub(super) to_slaves: u64,
}

/// A key that its master has received, and at least one slave has not.
#[derive(Clone)]
struct Waiting {
    age: u64,
    master: Sae,
    /// All SAEs that the master named.
    slaves: BTreeSet<Sae>,
    /// The slaves that have not fetched it.
    left: BTreeSet<Sae>,
    key: Zeroizing<Vec<u8>>,
}

impl Network {
    pub(super) fn new(config: &Config) -> Self {
        let settings = config.keys.clone();
        // Saturates: a configuration may ask for more bits than a number has room for.
        let bits = |keys: u64| keys.saturating_mul(settings.size.into());
        let count = config.kmes.len();
        // Each pair once, and each KME with itself: its SAEs share keys too.
        let pairs = (0..count).flat_map(|one| (one..count).map(move |other| (one, other)));
        let links = pairs
            .map(|pair| {
                let store = (bits(settings.stored), bits(settings.store));
                (pair, Bucket::new(store.0, store.1, bits(settings.rate)))
            })
            .collect();
        let kmes = config.kmes.iter().map(|kme| {
            let mut faults = Faults::default();
            for armed in &kme.start_with {
                faults.arm(*armed);
            }
            KmeState {
                name: kme.name.clone(),
                faults,
                counts: Counts::default(),
            }
        });
        let homes = config.kmes.iter().enumerate().flat_map(|(kme, config)| {
            let saes = config.saes.iter();
            saes.map(move |sae| (Sae::from(sae.as_str()), kme))
        });
        Self {
            kmes: kmes.collect(),
            homes: homes.collect(),
            links,
            waiting: HashMap::new(),
            by_age: BTreeMap::new(),
            made: 0,
            forgotten: 0,
            last: HashMap::new(),
            settings,
        }
    }

    /// "Get status": the keys available to `master` for `slave`.
    pub(super) fn status(
        &mut self,
        now: Duration,
        kme: usize,
        master: &Sae,
        slave: &str,
    ) -> Result<Status, Refusal> {
        let (slave, home) = self.known(slave)?;
        let size = self.settings.size;
        let stored = if self.kmes[kme]
            .faults
            // Only looked at: a status does not count as a call that the fault affects.
            .is_armed(Fault::Depleted, Call::EncKeys)
        {
            0
        } else {
            self.link(kme, home).bits(now) / u64::from(size)
        };
        Ok(Status {
            source_kme_id: self.kmes[kme].name.clone(),
            target_kme_id: self.kmes[home].name.clone(),
            master_sae_id: master.to_string(),
            slave_sae_id: slave.to_string(),
            key_size: size,
            stored_key_count: stored,
            max_key_count: Some(self.settings.store),
            max_key_per_request: self.settings.max_per_request.into(),
            max_key_size: self.settings.max_size,
            min_key_size: self.settings.min_size,
            max_sae_id_count: self.settings.max_sae_ids.into(),
            status_extension: None,
        })
    }

    /// "Get key": new keys for `master`, which the slaves may then fetch.
    pub(super) fn new_keys(
        &mut self,
        now: Duration,
        kme: usize,
        master: &Sae,
        slave: &str,
        request: &KeyRequest,
    ) -> Result<Vec<Key>, Refusal> {
        let (number, size) = self.checked(request)?;
        let (slave, home) = self.known(slave)?;
        let mut slaves = BTreeSet::from([slave.clone()]);
        // Slaves at one KME share one transport of the key.
        let mut homes = BTreeSet::from([home]);
        for id in &request.additional_slave_sae_ids {
            let (slave, home) = self.known(id)?;
            slaves.insert(slave);
            homes.insert(home);
        }
        let bits = u64::from(number) * u64::from(size);
        // All links are checked before any is charged: a refused request must not cost keys.
        let depleted = self.strikes(kme, Fault::Depleted, Call::EncKeys)
            || homes
                .iter()
                .any(|home| self.link(kme, *home).bits(now) < bits);
        if depleted {
            return Err(Refusal::unavailable("there are not enough keys at present"));
        }
        for home in homes {
            self.link(kme, home).take(bits);
        }
        let mut keys = Vec::new();
        // Remembered for each pair, because a repeated key must be one that this master has
        // received before.
        let pair = (Sae::clone(master), slave);
        for place in 0..number {
            let repeated = match self.last.get(&pair) {
                Some((id, last)) if place == 0 && last.key.len() == size as usize / 8 => {
                    Some((id.clone(), last.clone()))
                }
                _ => None,
            };
            let (id, waiting) = match repeated {
                Some(last) if self.strikes(kme, Fault::DoubleDelivery, Call::EncKeys) => last,
                _ => {
                    let waiting = Waiting {
                        age: self.made,
                        master: Sae::clone(master),
                        slaves: slaves.clone(),
                        left: slaves.clone(),
                        key: random(size as usize / 8)?,
                    };
                    self.made += 1;
                    (new_id()?, waiting)
                }
            };
            keys.push(key(&id, waiting.key.clone()));
            self.last
                .insert(pair.clone(), (id.clone(), waiting.clone()));
            self.await_slaves(id, waiting);
        }
        self.spoil(kme, Call::EncKeys, &mut keys)?;
        self.kmes[kme].counts.to_masters += keys.len() as u64;
        Ok(keys)
    }

    /// "Get key with key IDs": the keys that `master` got for `slave`, each once.
    pub(super) fn keys_by_id(
        &mut self,
        kme: usize,
        slave: &Sae,
        master: &str,
        ids: &[String],
    ) -> Result<Vec<Key>, Refusal> {
        let number = ids.len() as u64;
        if number == 0 || number > self.settings.max_per_request.into() {
            return Err(self.wrong_number());
        }
        // Otherwise one of the two would be missing after the first was delivered.
        if ids.iter().collect::<BTreeSet<_>>().len() < ids.len() {
            return Err(Refusal::bad_request("a key ID is there twice"));
        }
        // All keys or none: nothing is removed until every ID has been found.
        let mut found = true;
        for id in ids {
            match self.waiting.get(id) {
                // The key exists, but its master did not name this SAE.
                Some(key) if *key.master == *master && !key.slaves.contains(slave) => {
                    return Err(Refusal::Unauthorized);
                }
                Some(key) if *key.master == *master => found &= key.left.contains(slave),
                _ => found = false,
            }
        }
        if !found {
            return Err(Refusal::keys_not_found());
        }
        // Faults strike only calls that would succeed otherwise.
        let lost = self.strikes(kme, Fault::LostKey, Call::DecKeys);
        let again = self.strikes(kme, Fault::DoubleDelivery, Call::DecKeys);
        let mut keys = Vec::new();
        for id in ids {
            let waiting = self.waiting.get_mut(id).expect("it was just found");
            keys.push(key(id, waiting.key.clone()));
            if again && !lost {
                continue;
            }
            waiting.left.remove(slave);
            if waiting.left.is_empty() {
                // Each key has one age, so that the two maps always hold the same keys.
                self.by_age.remove(&waiting.age);
                self.waiting.remove(id);
            }
        }
        if lost {
            return Err(Refusal::keys_not_found());
        }
        self.spoil(kme, Call::DecKeys, &mut keys)?;
        self.kmes[kme].counts.to_slaves += number;
        Ok(keys)
    }

    /// Number and size of the requested keys, if this KME can meet the request.
    fn checked(&self, request: &KeyRequest) -> Result<(u32, u32), Refusal> {
        let settings = &self.settings;
        let number = request.number.unwrap_or(1);
        let size = request.size.unwrap_or(settings.size);
        if number == 0 || number > settings.max_per_request {
            return Err(self.wrong_number());
        }
        if !size.is_multiple_of(8) {
            return Err(Refusal::size_is_no_multiple());
        }
        if size < settings.min_size || size > settings.max_size {
            return Err(Refusal::bad_request(format!(
                "a key has from {} to {} bits",
                settings.min_size, settings.max_size
            )));
        }
        if request.additional_slave_sae_ids.len() as u64 > settings.max_sae_ids.into() {
            return Err(Refusal::bad_request(format!(
                "additional_slave_SAE_IDs are more than {}",
                settings.max_sae_ids
            )));
        }
        self.check_extensions(&request.extension_mandatory)?;
        Ok((number, size))
    }

    fn wrong_number(&self) -> Refusal {
        let most = self.settings.max_per_request;
        Refusal::bad_request(format!("a request is for 1 to {most} keys"))
    }

    /// Checks mandatory extensions, which are met or rejected (clause 6.2). Optional extensions are
    /// ignored, as the standard allows.
    fn check_extensions(&self, mandatory: &[Extension]) -> Result<(), Refusal> {
        let known = &self.settings.extensions;
        let asked = || mandatory.iter().flatten();
        let unknown: Vec<_> = asked()
            .map(|(name, _)| name.as_str())
            .filter(|name| !known.contains_key(*name))
            .collect();
        if !unknown.is_empty() {
            return Err(Refusal::unsupported(&unknown));
        }
        let is_met = |name: &String, value: &Value| {
            let values = &known[name];
            // Values other than strings are compared in their JSON form.
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            values.is_empty() || values.contains(&text)
        };
        if asked().all(|(name, value)| is_met(name, value)) {
            Ok(())
        } else {
            Err(Refusal::unmet())
        }
    }

    fn known(&self, sae: &str) -> Result<(Sae, usize), Refusal> {
        match self.homes.get_key_value(sae) {
            Some((sae, home)) => Ok((Sae::clone(sae), *home)),
            None => Err(Refusal::bad_request(
                "the SAE ID of a slave is not known in this network",
            )),
        }
    }

    fn link(&mut self, one: usize, other: usize) -> &mut Bucket {
        let pair = (one.min(other), one.max(other));
        self.links.get_mut(&pair).expect("all pairs have a link")
    }

    fn await_slaves(&mut self, id: String, waiting: Waiting) {
        self.by_age.insert(waiting.age, id.clone());
        self.waiting.insert(id, waiting);
        // A master with slaves that never fetch must not fill the memory.
        if self.waiting.len() > WAITING_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.waiting.remove(&oldest);
            self.forgotten += 1;
        }
    }

    /// Replaces the delivered keys by random ones if [`Fault::WrongKey`] strikes.
    fn spoil(&mut self, kme: usize, call: Call, keys: &mut [Key]) -> Result<(), Refusal> {
        if self.strikes(kme, Fault::WrongKey, call) {
            for key in keys {
                key.key = KeyBytes(random(key.key.0.len())?);
            }
        }
        Ok(())
    }

    fn strikes(&mut self, kme: usize, fault: Fault, call: Call) -> bool {
        self.strike(kme, fault, call).is_some()
    }

    /// Applies a fault to a call at a KME, if it is armed: see [`Faults::strike`].
    pub(super) fn strike(&mut self, kme: usize, fault: Fault, call: Call) -> Option<Armed> {
        self.kmes[kme].faults.strike(fault, call)
    }

    /// Counts a response.
    pub(super) fn count(&mut self, kme: usize, call: Call, status: u16) {
        let answers = &mut self.kmes[kme].counts.answers;
        *answers.entry((call, status)).or_default() += 1;
    }

    /// The faults of the KME with this name, or of all KMEs; none if no KME has the name.
    pub(super) fn faults(&mut self, kme: Option<&str>) -> impl Iterator<Item = &mut Faults> {
        self.kmes
            .iter_mut()
            .filter(move |state| kme.is_none_or(|name| state.name == name))
            .map(|state| &mut state.faults)
    }

    /// Name, counters and faults of each KME.
    pub(super) fn kmes(&self) -> impl Iterator<Item = (&str, &Counts, &Faults)> {
        self.kmes
            .iter()
            .map(|kme| (kme.name.as_str(), &kme.counts, &kme.faults))
    }

    /// Number of keys of the default size that each link has.
    pub(super) fn stored(&mut self, now: Duration) -> Vec<([&str; 2], u64)> {
        let (kmes, size) = (&self.kmes, u64::from(self.settings.size));
        let links = self.links.iter_mut();
        links
            .map(|((one, other), bucket)| {
                let names = [*one, *other].map(|kme| kmes[kme].name.as_str());
                (names, bucket.bits(now) / size)
            })
            .collect()
    }

    /// The number of keys that wait for slaves, and of those discarded.
    pub(super) fn waiting(&self) -> (usize, u64) {
        (self.waiting.len(), self.forgotten)
    }
}

fn key(id: &str, bytes: Zeroizing<Vec<u8>>) -> Key {
    Key {
        key_id: id.to_owned(),
        key_id_extension: None,
        key: KeyBytes(bytes),
        key_extension: None,
    }
}

fn random(bytes: usize) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let mut key = Zeroizing::new(vec![0; bytes]);
    fill(&mut key)?;
    Ok(key)
}

/// A UUID of version 4 (RFC 9562 §5.4).
fn new_id() -> Result<String, Refusal> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    // Version and variant.
    bytes[6] = 0x40 | bytes[6] & 0x0f;
    bytes[8] = 0x80 | bytes[8] & 0x3f;
    let mut id = String::with_capacity(36);
    for (place, byte) in bytes.into_iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        id.push_str(&format!("{byte:02x}"));
    }
    Ok(id)
}

fn fill(bytes: &mut [u8]) -> Result<(), Refusal> {
    getrandom::fill(bytes)
        .map_err(|error| Refusal::unavailable(format!("no random numbers are available: {error}")))
}

#[cfg(test)]
mod tests;
