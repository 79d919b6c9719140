//! Static keys on a real disk: across restarts, crashes and careless handling, no nonce can repeat.

use guard::Insecure;
use keying::{
    EPOCH_MAX, KeyError, LANES_MAX, SaKeys, Side, StaticKeys, create_pair, pair_texts, spi_of,
};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wire::Suite;

const SUITE: Suite = Suite::Aes256Gcm;

/// A fresh pair of key files in a temporary folder.
struct Pair {
    folder: TempDir,
    a: PathBuf,
    b: PathBuf,
}

impl Pair {
    fn new() -> Self {
        let folder = testing::folder().unwrap();
        let (a, b) = (folder.path().join("a.key"), folder.path().join("b.key"));
        create_pair(&a, &b).unwrap();
        Self { folder, a, b }
    }

    /// A file beside the keys of side a.
    fn beside_a(&self, suffix: &str) -> PathBuf {
        self.folder.path().join(format!("a.key{suffix}"))
    }

    fn set_outbound_epoch(&self, epoch: u32) {
        let text = format!("cipherbench_epochs: 1\noutbound: {epoch}\npeer: 0\n");
        fs::write(self.beside_a(".epoch"), text).unwrap();
    }

    fn secret(&self) -> String {
        let text = fs::read_to_string(&self.a).unwrap();
        text.lines()
            .find_map(|line| line.strip_prefix("secret: "))
            .unwrap()
            .to_owned()
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn same(one: &SaKeys, other: &SaKeys) -> bool {
    one.spi == other.spi && one.keymat == other.keymat
}

#[test]
fn a_pair_created_in_memory_equals_one_created_in_files() {
    let pair = Pair::new();
    let texts = pair_texts().unwrap();
    let paths = ["a.key", "b.key"].map(|name| pair.folder.path().join("memory").join(name));
    let memory = pair.folder.path().join("memory");
    fs::create_dir(&memory).unwrap();
    set_mode(&memory, 0o700);
    for (path, texts) in paths.iter().zip(&texts) {
        fs::write(path, texts.key.as_bytes()).unwrap();
        let epochs = path.with_extension("key.epoch");
        fs::write(&epochs, &texts.epochs).unwrap();
        set_mode(path, 0o600);
        set_mode(&epochs, 0o600);
        assert_eq!(
            texts.epochs,
            fs::read_to_string(pair.beside_a(".epoch")).unwrap()
        );
    }
    let [mut a, b] = paths.map(|path| StaticKeys::open(&path).unwrap());
    let out = a.outbound(SUITE, 3);
    assert!(same(&b.inbound(SUITE, out.spi, 3).unwrap(), &out));
    assert!(
        !texts[0].key.contains(&pair.secret()),
        "each pair has its own secret"
    );
}

#[test]
fn each_end_receives_with_the_keys_that_the_other_sends_with() {
    let pair = Pair::new();
    let mut a = StaticKeys::open(&pair.a).unwrap();
    let mut b = StaticKeys::open(&pair.b).unwrap();
    assert_eq!((a.side(), b.side()), (Side::A, Side::B));
    for (lane, suite) in (0..).zip(Suite::ALL) {
        let from_a = a.outbound(suite, lane);
        let from_b = b.outbound(suite, lane);
        assert!(same(&from_a, &b.inbound(suite, from_a.spi, lane).unwrap()));
        assert!(same(&from_b, &a.inbound(suite, from_b.spi, lane).unwrap()));
        assert_eq!(from_a.spi, from_b.spi, "both are in their first epoch");
        assert_ne!(
            from_a.keymat, from_b.keymat,
            "a packet sent back is not authentic"
        );
        assert_eq!(from_a.keymat.len(), suite.keymat_bytes());
    }
}

#[test]
fn every_start_has_a_new_spi_and_new_keys() {
    let pair = Pair::new();
    let (mut spis, mut keys) = (HashSet::new(), HashSet::new());
    for epoch in 1..=5 {
        let mut a = StaticKeys::open(&pair.a).unwrap();
        assert_eq!(a.outbound_epoch(), epoch);
        for lane in 0..3 {
            let sa = a.outbound(SUITE, lane);
            assert!(spis.insert(sa.spi) && keys.insert(sa.keymat.to_vec()));
        }
    }
}

#[test]
fn two_pairs_have_no_secret_in_common() {
    assert_ne!(Pair::new().secret(), Pair::new().secret());
}

#[test]
#[should_panic(expected = "outbound keys of lane 1 must not be handed out twice")]
fn a_second_sender_in_one_lane_is_a_mistake_of_the_caller() {
    let pair = Pair::new();
    let mut a = StaticKeys::open(&pair.a).unwrap();
    let first = a.outbound(Suite::Aes256Gcm, 1);
    let second = a.outbound(Suite::Aes128Gcm, 1);
    assert_eq!(first.spi, second.spi);
}

#[test]
fn a_file_in_use_is_refused_until_it_is_closed() {
    let pair = Pair::new();
    let first = StaticKeys::open(&pair.a).unwrap();
    let link = pair.folder.path().join("other-name");
    symlink(&pair.a, &link).unwrap();
    for path in [&pair.a, &link] {
        let error = StaticKeys::open(path).unwrap_err();
        assert!(matches!(error, KeyError::InUse { .. }), "{error}");
        assert!(error.to_string().contains("is in use"));
    }
    drop(first);
    assert_eq!(
        StaticKeys::open(&link).unwrap().outbound_epoch(),
        2,
        "refusals draw no epoch"
    );
}

#[test]
fn a_crash_before_use_costs_an_epoch_and_nothing_else() {
    let pair = Pair::new();
    // As if killed after the epoch was on the disk: the keys were never used.
    drop(StaticKeys::open(&pair.a).unwrap());
    // As if killed while the next epoch was being written: half a file, not yet in its place.
    fs::write(pair.beside_a(".epoch.new"), "cipherbench_ep").unwrap();
    assert_eq!(StaticKeys::open(&pair.a).unwrap().outbound_epoch(), 2);
    assert!(!pair.beside_a(".epoch.new").exists());
}

#[test]
fn no_key_is_handed_out_when_its_epoch_cannot_be_recorded() {
    let pair = Pair::new();
    let fresh = pair.beside_a(".epoch.new");
    fs::create_dir(&fresh).unwrap();
    set_mode(&fresh, 0o700);
    let error = StaticKeys::open(&pair.a).unwrap_err();
    assert!(matches!(error, KeyError::EpochNotWritten { .. }), "{error}");
    assert!(error.to_string().contains("nonces could repeat"), "{error}");
    fs::remove_dir(&fresh).unwrap();
    assert_eq!(StaticKeys::open(&pair.a).unwrap().outbound_epoch(), 1);
}

#[test]
fn a_missing_epoch_file_is_refused_with_advice() {
    let pair = Pair::new();
    fs::remove_file(pair.beside_a(".epoch")).unwrap();
    let error = StaticKeys::open(&pair.a).unwrap_err();
    assert!(matches!(error, KeyError::EpochNotRead { .. }));
    let text = error.to_string();
    assert!(
        text.contains("nonces could repeat") && text.contains("keys static"),
        "{text}"
    );
    assert!(!pair.beside_a(".epoch").exists(), "it is not recreated");
}

#[test]
fn an_invalid_epoch_file_is_refused() {
    let pair = Pair::new();
    for text in [
        "",
        "outbound: 3\n",
        "cipherbench_epochs: 2\noutbound: 1\npeer: 0\n",
    ] {
        fs::write(pair.beside_a(".epoch"), text).unwrap();
        let error = StaticKeys::open(&pair.a).unwrap_err();
        assert!(matches!(error, KeyError::Malformed { .. }), "{error}");
    }
}

#[test]
fn the_last_epoch_is_the_last() {
    let pair = Pair::new();
    pair.set_outbound_epoch(EPOCH_MAX - 1);
    let mut last = StaticKeys::open(&pair.a).unwrap();
    assert_eq!(last.outbound(SUITE, LANES_MAX - 1).spi, u32::MAX);
    drop(last);
    for _ in 0..2 {
        let error = StaticKeys::open(&pair.a).unwrap_err();
        assert!(matches!(error, KeyError::EpochsUsedUp { .. }), "{error}");
    }
}

#[test]
fn keys_are_returned_only_for_the_lane_and_live_epochs() {
    let pair = Pair::new();
    let mut a = StaticKeys::open(&pair.a).unwrap();
    assert!(a.inbound(SUITE, spi_of(3, 5), 5).is_some());
    assert!(a.inbound(SUITE, spi_of(3, 5), 4).is_none(), "another lane");
    assert!(a.inbound(SUITE, spi_of(0, 5), 5).is_none(), "no epoch");
    assert!(a.inbound(SUITE, 5, LANES_MAX + 5).is_none(), "no lane");

    a.note_peer_epoch(3).unwrap();
    assert!(a.inbound(SUITE, spi_of(2, 0), 0).is_none());
    assert!(a.inbound(SUITE, spi_of(3, 0), 0).is_some());
    assert!(a.inbound(SUITE, spi_of(4, 0), 0).is_some());
    a.note_peer_epoch(2).unwrap();
    assert!(
        a.inbound(SUITE, spi_of(2, 0), 0).is_none(),
        "the floor never sinks"
    );
}

#[test]
fn the_peers_noted_epoch_outlives_a_restart() {
    let pair = Pair::new();
    StaticKeys::open(&pair.a)
        .unwrap()
        .note_peer_epoch(7)
        .unwrap();
    let a = StaticKeys::open(&pair.a).unwrap();
    assert_eq!(a.outbound_epoch(), 2, "its own epoch is not disturbed");
    assert!(a.inbound(SUITE, spi_of(6, 0), 0).is_none());
    assert!(a.inbound(SUITE, spi_of(7, 0), 0).is_some());
}

#[test]
fn an_unrecorded_peer_epoch_applies_at_once_and_is_recorded_later() {
    let pair = Pair::new();
    let fresh = pair.beside_a(".epoch.new");
    let mut a = StaticKeys::open(&pair.a).unwrap();
    fs::create_dir(&fresh).unwrap();
    set_mode(&fresh, 0o700);
    assert!(matches!(
        a.note_peer_epoch(7),
        Err(KeyError::EpochNotWritten { .. })
    ));
    assert!(a.inbound(SUITE, spi_of(6, 0), 0).is_none());
    fs::remove_dir(&fresh).unwrap();
    a.note_peer_epoch(7).unwrap();
    drop(a);
    assert!(
        StaticKeys::open(&pair.a)
            .unwrap()
            .inbound(SUITE, spi_of(6, 0), 0)
            .is_none()
    );
}

#[test]
fn files_that_others_could_use_are_refused_with_the_fix() {
    let pair = Pair::new();
    for bad in [0o640, 0o604, 0o620, 0o601] {
        set_mode(&pair.a, bad);
        let error = StaticKeys::open(&pair.a).unwrap_err();
        assert!(matches!(error, KeyError::TooOpen { .. }), "{error}");
        assert!(error.to_string().contains("(chmod 600 /"), "{error}");
    }
    set_mode(&pair.a, 0o400);
    set_mode(&pair.beside_a(".epoch"), 0o622);
    assert!(matches!(
        StaticKeys::open(&pair.a),
        Err(KeyError::TooOpen { .. })
    ));
    set_mode(&pair.beside_a(".epoch"), 0o644);
    assert!(StaticKeys::open(&pair.a).is_ok());
}

/// Who may replace the epoch file may bring an old epoch back, and with it used nonces.
#[test]
fn epoch_files_that_others_could_replace_are_refused() {
    let pair = Pair::new();
    let folder = pair.folder.path();
    for (mode, is_refused) in [
        (0o770, true),
        (0o703, true),
        (0o755, false),
        (0o1777, false),
    ] {
        set_mode(folder, mode);
        let opened = StaticKeys::open(&pair.a);
        match opened {
            Err(KeyError::Insecure(Insecure::Writable { .. })) => assert!(is_refused, "{mode:o}"),
            Ok(_) => assert!(!is_refused, "{mode:o}"),
            Err(error) => panic!("{mode:o}: {error}"),
        }
    }
    set_mode(folder, 0o700);
    let epochs = pair.beside_a(".epoch");
    let moved = pair.beside_a(".elsewhere");
    fs::rename(&epochs, &moved).unwrap();
    symlink(&moved, &epochs).unwrap();
    let error = StaticKeys::open(&pair.a).unwrap_err();
    assert!(matches!(error, KeyError::EpochNotRead { .. }), "{error}");
    fs::rename(&moved, &epochs).unwrap();

    for path in [epochs.as_path(), folder] {
        if chown(path, Some(4321), None).is_err() {
            eprintln!("SKIPPED: files of another user: only root can make them");
            return;
        }
        let error = StaticKeys::open(&pair.a).unwrap_err();
        assert!(
            matches!(error, KeyError::Insecure(Insecure::Owner { uid: 4321, .. })),
            "{error}"
        );
        chown(path, Some(0), None).unwrap();
    }
    // A whole pair of another user is theirs to roll back.
    for path in [pair.a.as_path(), &epochs, folder] {
        chown(path, Some(4321), None).unwrap();
    }
    StaticKeys::open(&pair.a).unwrap();
}

/// Nothing that lies at the name of the fresh file is written to.
#[test]
fn a_fresh_epoch_file_is_a_new_one() {
    let pair = Pair::new();
    let victim = pair.beside_a(".victim");
    fs::write(&victim, "untouched").unwrap();
    symlink(&victim, pair.beside_a(".epoch.new")).unwrap();
    StaticKeys::open(&pair.a).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
}

#[test]
fn a_key_file_with_a_second_name_is_refused() {
    let pair = Pair::new();
    let elsewhere = tempfile::tempdir_in(pair.folder.path()).unwrap();
    fs::hard_link(&pair.a, elsewhere.path().join("a.key")).unwrap();
    let error = StaticKeys::open(&pair.a).unwrap_err();
    assert!(
        matches!(error, KeyError::Linked { links: 2, .. }),
        "{error}"
    );
}

#[test]
fn an_invalid_key_file_is_refused_by_name() {
    let pair = Pair::new();
    let missing = StaticKeys::open(Path::new("/nonexistent/gw1.key"))
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("/nonexistent/gw1.key") && missing.contains("keys static"),
        "{missing}"
    );
    let folder = StaticKeys::open(pair.folder.path())
        .unwrap_err()
        .to_string();
    assert!(folder.contains("it is a folder, not a file"), "{folder}");
    let epoch_file = StaticKeys::open(&pair.beside_a(".epoch"))
        .unwrap_err()
        .to_string();
    assert!(
        epoch_file.contains(".epoch:2: expected one of"),
        "{epoch_file}"
    );
    fs::write(&pair.a, vec![b'#'; 5000]).unwrap();
    let long = StaticKeys::open(&pair.a).unwrap_err().to_string();
    assert!(long.contains("more than 4096 bytes"), "{long}");
}

#[test]
fn a_pair_is_for_its_owner_only_and_never_overwrites() {
    let pair = Pair::new();
    for path in [&pair.a, &pair.b, &pair.beside_a(".epoch")] {
        assert_eq!(mode(path), 0o600);
    }
    let before = fs::read(&pair.a).unwrap();
    let fresh = pair.folder.path().join("fresh.key");
    // The second file exists; the first would be new and must not be left behind.
    let error = create_pair(&fresh, &pair.a).unwrap_err();
    assert!(matches!(&error, KeyError::NotCreated { path, .. } if *path == pair.a));
    assert!(error.to_string().contains("never overwritten"), "{error}");
    assert_eq!(fs::read(&pair.a).unwrap(), before);
    assert!(
        create_pair(&fresh, &fresh).is_err(),
        "one name for both ends"
    );
    let left: HashSet<_> = fs::read_dir(pair.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        left,
        ["a.key", "a.key.epoch", "b.key", "b.key.epoch"]
            .map(str::to_owned)
            .into()
    );
}

#[test]
fn an_epoch_file_of_earlier_keys_is_not_reused() {
    let pair = Pair::new();
    fs::remove_file(&pair.a).unwrap();
    let error = create_pair(&pair.a, &pair.folder.path().join("c.key")).unwrap_err();
    assert!(matches!(error, KeyError::NotCreated { .. }), "{error}");
    assert!(!pair.a.exists());
}

#[test]
fn neither_debug_output_nor_messages_show_the_secret() {
    let pair = Pair::new();
    let secret = pair.secret();
    let mut a = StaticKeys::open(&pair.a).unwrap();
    let key = base16ct::lower::encode_string(&a.outbound(SUITE, 0).keymat);
    let shown = format!("{a:?}");
    assert!(
        shown.contains("a.key") && !shown.contains(&secret) && !shown.contains(&key),
        "{shown}"
    );
    drop(a);

    let good = fs::read_to_string(&pair.a).unwrap();
    for spoilt in [
        good.replace("secret: ", ""),
        good.replace("secret: ", "secret: x"),
        good.replace("side: a", &format!("side: {secret}")),
        good.replace("key: 1", &format!("key: {secret}")),
        good.replace("side: a", &format!("{secret}: a")),
    ] {
        fs::write(&pair.a, spoilt).unwrap();
        let error = StaticKeys::open(&pair.a).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(&secret[..16]), "{shown}");
    }
}

#[test]
fn a_new_epoch_gives_each_lane_new_keys_and_is_on_the_disk() {
    let pair = Pair::new();
    let mut a = StaticKeys::open(&pair.a).unwrap();
    let first = [0, 1].map(|lane| a.outbound(SUITE, lane));
    let (one, two) = (a.outbound_epoch(), a.draw_epoch().unwrap());
    assert_eq!(two, one + 1);
    let later = [0, 1].map(|lane| a.outbound(SUITE, lane));
    for (first, later) in first.iter().zip(&later) {
        assert_eq!(keying::epoch_of(later.spi), two);
        assert_eq!(keying::lane_of(later.spi), keying::lane_of(first.spi));
        assert_ne!(first.keymat, later.keymat);
    }
    drop(a);
    let again = StaticKeys::open(&pair.a).unwrap();
    assert_eq!(again.outbound_epoch(), two + 1);
}

#[test]
fn an_epoch_that_is_only_recorded_ends_the_earlier_ones_at_the_next_start() {
    let pair = Pair::new();
    let mut b = StaticKeys::open(&pair.b).unwrap();
    b.record_peer_epoch(5).unwrap();
    assert!(b.inbound(SUITE, spi_of(4, 0), 0).is_some());
    drop(b);
    let b = StaticKeys::open(&pair.b).unwrap();
    assert!(b.inbound(SUITE, spi_of(4, 0), 0).is_none());
    assert!(b.inbound(SUITE, spi_of(5, 0), 0).is_some());
}
