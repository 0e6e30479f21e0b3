//! Vectors of the region behave as `Vec`, and the region is ordinary memory outside the launcher.

use osprey::{Heap, Memory, Oblivious, OspVec, touch_read, touch_write};

#[test]
fn a_vector_of_the_region_is_a_vector() {
    let mut ours = OspVec::new();
    let mut theirs = Vec::new();
    for x in 0..10_000u32 {
        ours.push(x);
        theirs.push(x);
        if x % 7 == 0 {
            assert_eq!(ours.pop(), theirs.pop());
        }
    }
    assert_eq!(&ours[..], &theirs[..]);
    ours.extend_from_slice(&theirs);
    theirs.extend_from_within(..);
    ours.resize(25_000, 9);
    theirs.resize(25_000, 9);
    ours.truncate(24_000);
    theirs.truncate(24_000);
    ours.extend(0..100);
    theirs.extend(0..100);
    assert!(ours.iter().eq(&theirs) && ours.clone().into_iter().eq(theirs.iter().copied()));
    let mut left = ours.clone().into_iter();
    assert_eq!((left.nth(10), left.len()), (Some(theirs[10]), theirs.len() - 11));
    for x in &mut ours {
        *x += 1;
    }
    assert!((&ours).into_iter().map(|x| x - 1).eq(theirs.iter().copied()));
    let room = ours.capacity();
    ours.clear();
    assert!(ours.is_empty() && ours.pop().is_none() && ours.capacity() == room);
    assert!((0..50u8).collect::<OspVec<_>>().iter().copied().eq(0..50));
    assert_eq!(format!("{:?}", OspVec::copy_of(&[7u8; 3])), "OspVec { len: 3, .. }");
}

#[test]
fn vectors_that_fill_a_cache_line_begin_at_one() {
    for len in [4usize, 5, 40, 5000, 100_000] {
        let all = [OspVec::<u128>::zeroed(len), OspVec::zeroed(len + 1), OspVec::untouched(len)];
        assert!(all.iter().all(|one| (one.as_ptr() as usize).is_multiple_of(64)), "{len}");
        assert!(all[..2].iter().all(|one| one.iter().all(|x| *x == 0)));
    }
}

/// Released memory comes back with its old content: zeroed means zeroed.
#[test]
fn a_zeroed_buffer_is_zero_wherever_it_lives() {
    fn check<M: Memory>(memory: &M, ours: bool) {
        for _ in 0..3 {
            let mut buffer = memory.zeroed::<u64>(3000);
            assert!(buffer.len() == 3000 && buffer.iter().all(|x| *x == 0));
            assert_eq!(osprey::owns(buffer.as_ptr().cast()), ours);
            buffer.fill(u64::MAX);
            touch_write(&mut buffer[1..2000]);
            touch_read(&buffer);
            assert!(buffer.iter().all(|x| *x == u64::MAX));
        }
        assert!(memory.zeroed::<u8>(0).is_empty() && memory.untouched::<u8>(5).len() == 5);
    }
    check(&Heap, false);
    check(&Oblivious, true);
}

#[test]
fn objects_are_counted_and_refused_in_words() {
    let before = osprey::stats();
    assert_eq!((before.mode.as_str(), before.engine.as_str()), ("off", "none"));
    osprey::tick();
    drop(OspVec::<u8>::zeroed(100));
    assert!(osprey::stats().events >= before.events + 3);
    let error = osprey::try_alloc(1 << 60, 16).expect_err("too much");
    assert!(error.contains("OSPREY_REGION"), "{error}");
    let error = osprey::try_alloc(16, 8192).expect_err("too strong");
    assert!(error.contains("alignment 8192"), "{error}");
    assert!(!osprey::owns(std::ptr::from_ref(&error).cast()) && !osprey::speculating());
}
