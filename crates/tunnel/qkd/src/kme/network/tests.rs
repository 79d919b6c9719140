use super::*;
use axum::http::StatusCode;

/// Two KMEs; gw1 and gw3 at the first, gw2 and gw4 at the second.
fn network(keys: &str) -> Network {
    let text = format!(
        "kmes:
  - {{ name: a, listen: 127.0.0.1:0, certificate: a, key: a, ca: c, saes: [gw1, gw3] }}
  - {{ name: b, listen: 127.0.0.1:0, certificate: b, key: b, ca: c, saes: [gw2, gw4] }}
keys: {keys}
"
    );
    Network::new(&Config::from_text("kme.yaml", &text).unwrap())
}

const A: usize = 0;
const B: usize = 1;
const START: Duration = Duration::ZERO;

fn sae(id: &str) -> Sae {
    id.into()
}

/// New keys of gw1 for gw2.
fn get(network: &mut Network, request: &KeyRequest) -> Result<Vec<Key>, Refusal> {
    network.new_keys(START, A, &sae("gw1"), "gw2", request)
}

/// The keys of gw1 that an SAE at the second KME gets.
fn find(network: &mut Network, slave: &str, keys: &[Key]) -> Result<Vec<Key>, Refusal> {
    let ids: Vec<_> = keys.iter().map(|key| key.key_id.clone()).collect();
    network.keys_by_id(B, &sae(slave), "gw1", &ids)
}

fn bytes(keys: &[Key]) -> Vec<(&str, &[u8])> {
    keys.iter()
        .map(|key| (key.key_id.as_str(), key.key.0.as_slice()))
        .collect()
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T, Refusal>, status: u16, words: &str) {
    match result.unwrap_err() {
        Refusal::Error(found, error) => {
            assert_eq!((found.as_u16(), error.message.as_str()), (status, words));
        }
        Refusal::Unauthorized => panic!("401 instead of {status}: {words}"),
    }
}

const NOT_FOUND: &str = "one or more keys specified are not found on KME";

#[test]
fn both_sides_get_the_same_keys_and_the_slave_once() {
    let mut network = network("{}");
    let sent = get(&mut network, &KeyRequest::new(3, 512)).unwrap();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|key| key.key.0.len() == 64));
    let (first, rest) = sent.split_at(1);
    let found = find(&mut network, "gw2", rest).unwrap();
    assert_eq!(bytes(&found), bytes(rest));
    // One missing key fails the whole request: none of the keys is delivered.
    assert_refused(find(&mut network, "gw2", &sent), 400, NOT_FOUND);
    let found = find(&mut network, "gw2", first).unwrap();
    assert_eq!(bytes(&found), bytes(first));
    // Nothing is kept once every slave has its key.
    assert_eq!(network.waiting(), (0, 0));
}

#[test]
fn ids_are_uuids_and_no_two_keys_are_alike() {
    let mut network = network("{}");
    let keys = get(&mut network, &KeyRequest::new(100, 64)).unwrap();
    let ids: BTreeSet<_> = keys.iter().map(|key| &key.key_id).collect();
    let bytes: BTreeSet<_> = keys.iter().map(|key| key.key.0.as_slice()).collect();
    assert_eq!((ids.len(), bytes.len()), (100, 100));
    for id in ids {
        let parts: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
        assert!(
            id.as_bytes()[14] == b'4' && b"89ab".contains(&id.as_bytes()[19]),
            "{id}"
        );
    }
}

#[test]
fn only_named_slaves_get_keys() {
    let mut network = network("{}");
    let request = KeyRequest {
        additional_slave_sae_ids: vec!["gw4".to_owned()],
        ..KeyRequest::default()
    };
    let shared = get(&mut network, &request).unwrap();
    let own = get(&mut network, &KeyRequest::default()).unwrap();
    let found = ["gw2", "gw4"].map(|slave| find(&mut network, slave, &shared).unwrap());
    assert_eq!(bytes(&found[0]), bytes(&shared));
    assert_eq!(bytes(&found[1]), bytes(&shared));
    let refused = find(&mut network, "gw4", &own).unwrap_err();
    assert_eq!(refused, Refusal::Unauthorized);
    // Under another master's name the key is not found.
    let ids = [own[0].key_id.clone()];
    let found = network.keys_by_id(B, &sae("gw2"), "gw3", &ids);
    assert_refused(found, 400, NOT_FOUND);
    assert_eq!(find(&mut network, "gw2", &own).unwrap().len(), 1);
}

#[test]
fn refusals_use_the_standards_texts() {
    let mut network = network("{ extensions: { abc_route_type: [direct], abc_max_age: 30000 } }");
    let refused = get(&mut network, &KeyRequest::new(1, 257));
    assert_refused(refused, 400, "size shall be a multiple of 8");
    let with = |name: &str, value: Value| KeyRequest {
        extension_mandatory: vec![Extension::from_iter([(name.to_owned(), value)])],
        ..KeyRequest::default()
    };
    let Err(Refusal::Error(StatusCode::BAD_REQUEST, error)) =
        get(&mut network, &with("abc_transfer_method", "qkd".into()))
    else {
        panic!("it is not supported")
    };
    let json = serde_json::to_value(&error).unwrap();
    let expected = serde_json::json!({
        "message": "not all extension_mandatory parameters are supported",
        "details": [{"extension_mandatory_unsupported": "abc_transfer_method is not supported"}],
    });
    assert_eq!(json, expected);
    assert!(get(&mut network, &with("abc_route_type", "direct".into())).is_ok());
    assert!(get(&mut network, &with("abc_max_age", 30_000.into())).is_ok());
    // A known extension with an unknown value has another text than an unknown one.
    for value in [Value::from("indirect"), Value::Null, Value::from(1)] {
        let refused = get(&mut network, &with("abc_route_type", value));
        let text = "not all extension_mandatory request options could be met";
        assert_refused(refused, 400, text);
    }
    let optional = KeyRequest {
        extension_optional: with("abc_transfer_method", "qkd".into()).extension_mandatory,
        ..KeyRequest::default()
    };
    assert!(get(&mut network, &optional).is_ok());
}

#[test]
fn requests_beyond_the_limits_are_refused() {
    let mut network = network("{ max_per_request: 2, max_sae_ids: 1 }");
    for number in [0, 3, u32::MAX] {
        let refused = get(&mut network, &KeyRequest::new(number, 256));
        assert_refused(refused, 400, "a request is for 1 to 2 keys");
    }
    // All are multiples of 8, so that only the range is wrong.
    for size in [0, 56, 1032, u32::MAX - 7] {
        let refused = get(&mut network, &KeyRequest::new(1, size));
        assert_refused(refused, 400, "a key has from 64 to 1024 bits");
    }
    let additional = |saes: &[&str]| KeyRequest {
        additional_slave_sae_ids: saes.iter().map(|sae| (*sae).to_owned()).collect(),
        ..KeyRequest::default()
    };
    let refused = get(&mut network, &additional(&["gw3", "gw4"]));
    assert_refused(refused, 400, "additional_slave_SAE_IDs are more than 1");
    let unknown = "the SAE ID of a slave is not known in this network";
    assert_refused(get(&mut network, &additional(&["gw9"])), 400, unknown);
    let gw1 = sae("gw1");
    let refused = network.new_keys(START, A, &gw1, "gw9", &KeyRequest::default());
    assert_refused(refused, 400, unknown);
    assert_refused(network.status(START, A, &gw1, "gw9"), 400, unknown);
    let id = "bc490419-7d60-487f-adc1-4ddcc177c139".to_owned();
    for (ids, words) in [
        (vec![], "a request is for 1 to 2 keys"),
        (vec![id.clone(); 3], "a request is for 1 to 2 keys"),
        (vec![id.clone(); 2], "a key ID is there twice"),
        (vec![id], NOT_FOUND),
    ] {
        let refused = network.keys_by_id(B, &sae("gw2"), "gw1", &ids);
        assert_refused(refused, 400, words);
    }
}

#[test]
fn a_link_delivers_only_generated_keys() {
    let mut network = network("{ rate: 2, store: 10, stored: 3 }");
    let gw1 = sae("gw1");
    let mut get = |at: Duration, number, size| {
        let request = KeyRequest::new(number, size);
        let keys = network.new_keys(at, A, &gw1, "gw2", &request);
        let status = network.status(at, A, &gw1, "gw2").unwrap();
        assert_eq!(status.max_key_count, Some(10));
        (keys.map(|keys| keys.len()), status.stored_key_count)
    };
    let short = Refusal::unavailable("there are not enough keys at present");
    assert_eq!(get(START, 4, 256), (Err(short.clone()), 3));
    // A key of twice the default size takes two of them.
    assert_eq!(get(START, 1, 512), (Ok(1), 1));
    // One millisecond short of a whole key; the refusal takes nothing.
    assert_eq!(get(Duration::from_millis(499), 2, 256), (Err(short), 1));
    assert_eq!(get(Duration::from_millis(500), 2, 256), (Ok(2), 0));
    // It was full long before.
    assert_eq!(get(Duration::from_secs(100), 1, 256), (Ok(1), 9));
}

#[test]
fn a_key_for_several_kmes_is_taken_from_each_link() {
    let mut network = network("{ rate: 0, store: 3 }");
    let request = KeyRequest {
        additional_slave_sae_ids: vec!["gw3".to_owned(), "gw4".to_owned(), "gw2".to_owned()],
        ..KeyRequest::default()
    };
    get(&mut network, &request).unwrap();
    let stored = network.stored(Duration::from_secs(1000));
    // Two slaves at the second KME cost its link one key, and the one at the first KME costs the
    // link of that KME to itself.
    assert_eq!(stored, [(["a", "a"], 2), (["a", "b"], 2), (["b", "b"], 3)]);
}

#[test]
fn the_status_names_both_ends() {
    let mut network = network("{ max_sae_ids: 0 }");
    let status = network.status(START, B, &sae("gw4"), "gw1").unwrap();
    let json = serde_json::to_value(&status).unwrap();
    let expected = serde_json::json!({
        "source_KME_ID": "b", "target_KME_ID": "a", "master_SAE_ID": "gw4", "slave_SAE_ID": "gw1",
        "key_size": 256, "stored_key_count": 100_000, "max_key_count": 100_000,
        "max_key_per_request": 128, "max_key_size": 1024, "min_key_size": 64, "max_SAE_ID_count": 0,
    });
    assert_eq!(json, expected);
}

fn arm(network: &mut Network, kme: &str, fault: Fault) {
    let once = Armed {
        count: Some(1),
        ..Armed::new(fault)
    };
    network
        .faults(Some(kme))
        .for_each(|faults| faults.arm(once));
}

#[test]
fn a_wrong_key_has_the_right_id_and_size() {
    for (kme, wrong_for_master) in [("a", true), ("b", false)] {
        let mut network = network("{}");
        arm(&mut network, kme, Fault::WrongKey);
        let sent = get(&mut network, &KeyRequest::new(2, 256)).unwrap();
        let found = find(&mut network, "gw2", &sent).unwrap();
        for (sent, found) in sent.iter().zip(&found) {
            assert_eq!(sent.key_id, found.key_id);
            assert_eq!(sent.key.0.len(), found.key.0.len());
            assert_ne!(*sent.key.0, *found.key.0);
        }
        // The fault was armed for one call.
        let sent = get(&mut network, &KeyRequest::default()).unwrap();
        let found = find(&mut network, "gw2", &sent).unwrap();
        assert_eq!(bytes(&sent), bytes(&found), "master: {wrong_for_master}");
    }
}

#[test]
fn a_slave_can_fetch_a_key_twice_that_its_master_got_twice() {
    let mut network = network("{}");
    let first = get(&mut network, &KeyRequest::default()).unwrap();
    assert_eq!(
        bytes(&find(&mut network, "gw2", &first).unwrap()),
        bytes(&first)
    );
    arm(&mut network, "a", Fault::DoubleDelivery);
    let second = get(&mut network, &KeyRequest::new(2, 256)).unwrap();
    assert_eq!(bytes(&second)[0], bytes(&first)[0]);
    // Only the first key of a request is repeated: a request for two must not get the same twice.
    assert_ne!(bytes(&second)[1], bytes(&first)[0]);
    let found = find(&mut network, "gw2", &second).unwrap();
    assert_eq!(bytes(&found), bytes(&second));
    let third = get(&mut network, &KeyRequest::default()).unwrap();
    assert_ne!(bytes(&third), bytes(&second)[1..]);
}

#[test]
fn a_slave_can_fetch_a_double_delivered_key_again() {
    let mut network = network("{}");
    arm(&mut network, "b", Fault::DoubleDelivery);
    let sent = get(&mut network, &KeyRequest::default()).unwrap();
    for _ in 0..2 {
        let found = find(&mut network, "gw2", &sent).unwrap();
        assert_eq!(bytes(&found), bytes(&sent));
    }
    assert_refused(find(&mut network, "gw2", &sent), 400, NOT_FOUND);
}

#[test]
fn a_lost_key_stays_lost() {
    let mut network = network("{}");
    arm(&mut network, "b", Fault::LostKey);
    let sent = get(&mut network, &KeyRequest::default()).unwrap();
    for _ in 0..2 {
        assert_refused(find(&mut network, "gw2", &sent), 400, NOT_FOUND);
    }
    let sent = get(&mut network, &KeyRequest::default()).unwrap();
    assert!(find(&mut network, "gw2", &sent).is_ok());
}

#[test]
fn a_depleted_kme_reports_it_in_its_status() {
    let mut network = network("{}");
    network
        .faults(None)
        .for_each(|faults| faults.arm(Armed::new(Fault::Depleted)));
    let stored = |network: &mut Network| {
        let status = network.status(START, A, &sae("gw1"), "gw2").unwrap();
        status.stored_key_count
    };
    assert_eq!(stored(&mut network), 0);
    let refused = get(&mut network, &KeyRequest::default());
    assert_refused(refused, 503, "there are not enough keys at present");
    network.faults(None).for_each(|faults| faults.clear(None));
    assert_eq!(stored(&mut network), 100_000);
}

#[test]
fn unfetched_keys_are_eventually_discarded() {
    let mut network = network("{ max_per_request: 1000, store: 1000000 }");
    let first = get(&mut network, &KeyRequest::new(1000, 64)).unwrap();
    for _ in 0..WAITING_MAX / 1000 {
        get(&mut network, &KeyRequest::new(1000, 64)).unwrap();
    }
    // The oldest request's keys are gone, and only these.
    assert_eq!(network.waiting(), (WAITING_MAX, 1000));
    assert_refused(find(&mut network, "gw2", &first), 400, NOT_FOUND);
}
