use super::*;
use std::collections::{BTreeSet, HashMap};

const CHUNK: usize = 64 << 10;

/// A generator that is good enough to choose sizes.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % below
    }

    fn size(&mut self) -> usize {
        match self.roll(10) {
            0..6 => 1 + self.roll(200),
            6..8 => 1 + self.roll(CHUNK),
            8 => 1 + self.roll(6 * CHUNK),
            _ => 16,
        }
    }
}

/// The allocator with what a pager would know of it.
struct Watched {
    slabs: Slabs,
    live: BTreeSet<u32>,
}

impl Watched {
    fn new(chunk: usize, chunks: usize) -> Self {
        Self { slabs: Slabs::new(chunk, chunks), live: BTreeSet::new() }
    }

    fn alloc(&mut self, bytes: usize, align: usize) -> Result<usize, SlabFailure> {
        self.slabs.alloc(bytes, align, |chunk, live| assert!(live && self.live.insert(chunk)))
    }

    fn free(&mut self, at: usize) -> Result<(), SlabFailure> {
        self.slabs.free(at, |chunk, live| assert!(!live && self.live.remove(&chunk)))
    }
}

#[test]
fn classes_are_dense_and_waste_a_fifth_at_most() {
    for bytes in 1..300_000 {
        let size = class_size(class_index(bytes));
        assert!(size >= bytes && size.is_multiple_of(GRAIN), "{bytes} in {size}");
        assert!(bytes <= FINE || size * 4 <= bytes * 5 + 64, "{bytes} in {size}");
        assert!(class_index(bytes) == 0 || class_size(class_index(bytes) - 1) < bytes);
    }
    for chunk in [4 << 10, CHUNK, 2 << 20, 4 << 20] {
        for class in Slabs::new(chunk, 1).classes {
            let room = class.chunks as usize * chunk;
            assert!(class.slots >= 1 && (room - class.slots as usize * class.size) * 8 <= room);
        }
    }
}

/// No two objects overlap, all are aligned, live flags say exactly which chunks hold something, a second
/// instance gives the same addresses, and in the end everything is one free run again.
#[test]
fn objects_are_apart_and_flags_exact() {
    for (seed, chunk) in [(1, 4 << 10), (2, CHUNK), (3, 2 << 20)] {
        let [mut one, mut two] = [(); 2].map(|()| Watched::new(chunk, 4096));
        let mut dice = Dice(seed);
        let mut objects: HashMap<usize, usize> = HashMap::new();
        let mut order = Vec::new();
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        for step in 0..6000 {
            if order.is_empty() || dice.roll(100) < if step % 2000 < 1000 { 65 } else { 35 } {
                let (bytes, align) = (dice.size(), 1 << dice.roll(13));
                let at = one.alloc(bytes, align).expect("room");
                assert_eq!(two.alloc(bytes, align), Ok(at));
                assert!(at % align == 0 && at % GRAIN == 0 && at + bytes <= one.slabs.reach() * chunk);
                let before = taken.range(..=at).next_back();
                assert!(before.is_none_or(|(start, len)| start + len <= at), "overlap below {at}");
                assert!(
                    taken.range(at..).next().is_none_or(|(start, _)| at + bytes <= *start),
                    "overlap at {at}"
                );
                taken.insert(at, bytes);
                objects.insert(at, bytes);
                order.push(at);
            } else {
                let at = order.swap_remove(dice.roll(order.len()));
                assert!(one.free(at).is_ok() && two.free(at).is_ok());
                objects.remove(&at);
                taken.remove(&at);
            }
            if step % 500 == 0 {
                assert_live(&one, &taken, chunk);
            }
        }
        assert_live(&one, &taken, chunk);
        order.into_iter().for_each(|at| one.free(at).expect("allocated"));
        let pool = &mut one.slabs.pool;
        pool.merge_given();
        assert!(one.live.is_empty() && pool.top == 0 && pool.runs.is_empty());
    }
}

/// What objects touch is live. What is live is touched by an object's class size at most.
fn assert_live(of: &Watched, taken: &BTreeMap<usize, usize>, chunk: usize) {
    let touched = |round: &dyn Fn(usize) -> usize| -> BTreeSet<u32> {
        let chunks =
            |(at, bytes): (&usize, &usize)| (at / chunk) as u32..=((at + round(*bytes) - 1) / chunk) as u32;
        taken.iter().flat_map(chunks).collect()
    };
    let least = touched(&|bytes| bytes);
    assert!(least.is_subset(&of.live), "an object lies in a dead chunk");
    let owned: BTreeSet<u32> = (0..of.slabs.owners.len() as u32)
        .filter(|&c| match of.slabs.owners[c as usize] {
            Owner { slab: FREE, .. } => false,
            Owner { slab: LARGE, .. } => true,
            Owner { count, .. } => count > 0,
        })
        .collect();
    assert_eq!(owned, of.live);
    assert_eq!(of.slabs.live.now, of.live.len() as u64);
    assert!(of.live.iter().all(|c| least.contains(c) || of.slabs.owners[*c as usize].slab != LARGE));
}

/// The slab that is chosen is the one a search through all of them finds.
#[test]
fn the_fullest_slab_comes_first() {
    const SIZE: usize = 8 << 10;
    const SLOTS: usize = CHUNK / SIZE;
    let mut slabs = Watched::new(CHUNK, 64);
    let mut dice = Dice(4);
    let mut used = [[false; SLOTS]; 64];
    for step in 0..20_000 {
        let free = |slab: &[bool; SLOTS]| slab.iter().filter(|u| !**u).count();
        let all: Vec<_> = (0..64 * SLOTS).filter(|&n| used[n / SLOTS][n % SLOTS]).collect();
        if all.is_empty() || (all.len() < 60 * SLOTS && dice.roll(2) == usize::from(step % 4000 < 2000)) {
            let open = (0..64)
                .filter(|&s| (1..SLOTS).contains(&free(&used[s])))
                .min_by_key(|&s| (free(&used[s]), s));
            let slab = open.or_else(|| (0..64).find(|&s| free(&used[s]) == SLOTS)).expect("room");
            let slot = (0..SLOTS).find(|&n| !used[slab][n]).expect("room");
            assert_eq!(slabs.alloc(SIZE, 1), Ok(slab * CHUNK + slot * SIZE), "step {step}");
            used[slab][slot] = true;
        } else {
            let n = all[dice.roll(all.len())];
            slabs.free(n / SLOTS * CHUNK + n % SLOTS * SIZE).expect("allocated");
            used[n / SLOTS][n % SLOTS] = false;
        }
    }
}

#[test]
fn large_objects_take_the_lowest_run_that_fits() {
    let mut slabs = Watched::new(CHUNK, 100);
    let at: Vec<_> = (0..4).map(|_| slabs.alloc(10 * CHUNK, 4096).expect("room")).collect();
    assert_eq!(at, [0, 10, 20, 30].map(|c| c * CHUNK));
    slabs.free(at[0]).expect("allocated");
    slabs.free(at[2]).expect("allocated");
    assert_eq!(slabs.alloc(11 * CHUNK, 16), Ok(40 * CHUNK));
    assert_eq!(slabs.alloc(5 * CHUNK, 16), Ok(0));
    assert_eq!(slabs.alloc(10 * CHUNK, 16), Ok(20 * CHUNK));
    assert_eq!(slabs.alloc(5 * CHUNK, 16), Ok(5 * CHUNK));
    assert_eq!(slabs.slabs.peak(), 51);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut slabs = Watched::new(CHUNK, 4);
    assert_eq!(slabs.alloc(16, 3), Err(SlabFailure::Alignment));
    assert_eq!(slabs.alloc(16, 8192), Err(SlabFailure::Alignment));
    assert_eq!(slabs.alloc(5 * CHUNK, 16), Err(SlabFailure::Exhausted));
    assert_eq!(slabs.alloc(usize::MAX, 16), Err(SlabFailure::Exhausted));
    let small = slabs.alloc(48, 16).expect("room");
    let large = slabs.alloc(2 * CHUNK, 16).expect("room");
    for wrong in [small + 16, small + 48, large + 16, 3 * CHUNK, 400 * CHUNK, usize::MAX] {
        assert_eq!(slabs.free(wrong), Err(SlabFailure::NotAllocated), "{wrong}");
    }
    assert_eq!(slabs.free(small), Ok(()));
    assert_eq!(slabs.free(small), Err(SlabFailure::NotAllocated));
    assert_eq!(slabs.free(large), Ok(()));
    assert_eq!(slabs.free(large), Err(SlabFailure::NotAllocated));
    let all: Vec<_> = (0..4).map(|_| slabs.alloc(CHUNK, 16)).collect();
    assert!(all.iter().all(Result::is_ok) && slabs.alloc(1, 1) == Err(SlabFailure::Exhausted));
}
