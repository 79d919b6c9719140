//! Engines do not allocate per packet: all memory is allocated with the key. Allocations of C
//! libraries are not counted here.

use engine::{CpuChoice, Packet, engines, select};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use wire::Suite;

/// The system's allocator, with a count per thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: forwards every call to the system's allocator; the count is a thread-local cell, which
// needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller fulfils the requirements of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer is from `alloc`, and so from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_engine_allocates_for_a_packet() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(vec![1_u8]));
    assert_eq!(ALLOCATIONS.get(), before + 1, "allocations are counted");

    for suite in Suite::ALL {
        for info in engines().iter().filter(|info| info.version.is_ok()) {
            let Ok(selection) = select(&CpuChoice::Named(info.name.to_owned()), suite) else {
                continue;
            };
            let mut transform = selection.transform(&vec![7; suite.keymat_bytes()]);
            let bytes = 8 + suite.iv_bytes() + 1_408 + suite.icv_bytes();
            let place = |index| Packet {
                at: index * bytes,
                bytes,
                sequence_high: 0,
            };
            let places: Vec<_> = (0..40).map(place).collect();
            let mut buffer = vec![0; 40 * bytes];
            let mut authentic = vec![false; 40];
            let text = vec![0; 1_408];

            // One batch before counting, since a thread's first batch may allocate state that its
            // keys share.
            let mut counted = 0;
            for _ in 0..2 {
                let before = ALLOCATIONS.get();
                transform.seal(&mut buffer, &places).unwrap();
                buffer[8] ^= 1;
                transform
                    .open(&mut buffer, &places, &mut authentic)
                    .unwrap();
                transform.seal_from(0, &text, &mut buffer[..bytes]).unwrap();
                counted = ALLOCATIONS.get() - before;
            }
            assert_eq!(counted, 0, "{} {suite}", info.name);
        }
    }
}
