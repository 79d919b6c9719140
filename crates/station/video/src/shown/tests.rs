use super::*;

const FRAME_NS: u64 = VideoTest::FRAME_NS;

/// One second is measured: frames 50 to 74 of the clip.
fn test() -> VideoTest {
    VideoTest {
        duration_ns: 1_000_000_000,
        ..VideoTest::default()
    }
}

/// The whole clip, each frame on time.
fn whole() -> Vec<Placed> {
    let frames = usize::try_from(test().frames_in_all()).unwrap();
    let placed = (0..frames).map(|number| Placed {
        number,
        at_ns: number as u64 * FRAME_NS,
        psnr_db: None,
    });
    placed.collect()
}

fn counted(placed: &[Placed]) -> FramesSeen {
    count(placed, &test(), placed.len() as u64)
}

#[test]
fn a_clip_shown_whole_has_no_gap_but_that_of_its_frames() {
    let seen = counted(&whole());
    assert_eq!((seen.expected, seen.shown, seen.damaged), (25, 25, 0));
    assert_eq!((seen.freezes, seen.frozen_ns), (0, 0));
    assert_eq!(seen.longest_gap_ns, FRAME_NS);
    assert_eq!(seen.psnr_least_millidb, None);
}

#[test]
fn frames_outside_of_the_measured_part_do_not_count() {
    let mut placed = whole();
    placed.retain(|one| one.number >= 40 && one.number < 80);
    placed[0].psnr_db = Some(20.0);
    let seen = counted(&placed);
    assert_eq!((seen.shown, seen.damaged, seen.freezes), (25, 0, 0));
}

#[test]
fn missing_and_damaged_frames_are_counted_and_a_long_gap_is_a_freeze() {
    let mut placed = whole();
    placed.retain(|one| !(60..64).contains(&one.number));
    for (at, db) in [(50, 30.0), (51, 25.5)] {
        placed[at].psnr_db = Some(db);
    }
    let seen = counted(&placed);
    assert_eq!((seen.shown, seen.damaged), (21, 2));
    assert_eq!(seen.psnr_least_millidb, Some(25_500));
    assert_eq!(seen.psnr_mean_millidb, Some(27_750));
    // 200 ms are more than the 190 ms of a freeze.
    assert_eq!((seen.freezes, seen.frozen_ns), (1, 4 * FRAME_NS));
    placed.retain(|one| one.number != 66);
    assert_eq!(counted(&placed).freezes, 1);
}

#[test]
fn an_end_that_never_came_and_a_video_that_was_never_shown_are_freezes() {
    let mut placed = whole();
    placed.truncate(65);
    let seen = counted(&placed);
    assert_eq!((seen.shown, seen.freezes), (15, 1));
    assert_eq!(seen.longest_gap_ns, 10 * FRAME_NS);
    let none = counted(&[]);
    assert_eq!((none.shown, none.freezes, none.decoded), (0, 1, 0));
    assert_eq!(none.longest_gap_ns, 25 * FRAME_NS);
}

#[test]
fn a_repeated_frame_is_one_and_an_unknown_one_is_kept() {
    let mut bytes = b"x W4 H2\n".to_vec();
    for fill in [1, 1, 9, 2, 2] {
        bytes.extend_from_slice(b"FRAME\n");
        bytes.extend_from_slice(&[fill; 12]);
    }
    let reference: HashMap<u64, usize> = [(hash(&[1; 12]), 0), (hash(&[2; 12]), 2)].into();
    let last_ns = AtomicU64::new(0);
    let mut seen = watch(&bytes[..], &reference, Instant::now(), &last_ns).unwrap();
    let is: Vec<Is> = seen.shown.iter().map(|shown| shown.is).collect();
    assert_eq!(is, [Is::Frame(0), Is::Damaged(0), Is::Frame(2)]);
    assert_eq!(read_kept(&mut seen.damaged, 0, 12).unwrap(), [9; 12]);
    assert!(last_ns.load(Ordering::Relaxed) > 0);
}

#[test]
fn the_ratio_of_peak_and_noise_is_that_of_its_definition() {
    // Each sample off by 5: 20 log10(255 / 5).
    let db = psnr_db(&[100; 300], &[105; 300]);
    assert!((db - 34.1514).abs() < 1e-3, "{db}");
}
