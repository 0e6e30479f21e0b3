//! Plans are legal whatever is known, and best when all is known.

use osprey::plan::{PlanStep, Planner, PlannerAnswer, window};
use osprey::trace::{Footer, TraceBlock, TraceEntry};
use std::collections::{HashMap, HashSet};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// Blocks of touches of `chunks` chunks, as a tracer gives them: a chunk that is mapped has no entry.
fn trace(random: &mut Random, chunks: usize, blocks: usize, microset: usize) -> Vec<TraceBlock> {
    let mut mapped: [Vec<u32>; 2] = Default::default();
    let mut handed_out = vec![false; chunks];
    (0..blocks)
        .map(|number| {
            let mut entries: Vec<TraceEntry> = Vec::new();
            while entries.len() < microset {
                // Sometimes from a few chunks, so that there is reuse at all distances.
                let among =
                    if random.below(3) == 0 { chunks } else { chunks.div_ceil(2).max(2 * microset + 1) };
                let chunk = random.below(among) as u32;
                if mapped.iter().flatten().any(|&other| other == chunk) {
                    continue;
                }
                mapped[1].push(chunk);
                let fresh = !std::mem::replace(&mut handed_out[chunk as usize], random.below(6) != 0);
                entries.push(TraceEntry { chunk, written: fresh || random.below(2) == 0, fresh });
            }
            mapped.swap(0, 1);
            mapped[1].clear();
            TraceBlock { events: number as u64 * 10, hash: number as u64 + 1, entries }
        })
        .collect()
}

fn flat(blocks: &[TraceBlock]) -> Vec<(u64, TraceEntry)> {
    let entries = |(number, block): (usize, &TraceBlock)| {
        block.entries.iter().map(move |&entry| (number as u64, entry)).collect::<Vec<_>>()
    };
    blocks.iter().enumerate().flat_map(entries).collect()
}

/// All steps of a plan that is given the trace when it waits: `push` blocks at a time, in a hurry now and
/// then.
fn steps(
    blocks: &[TraceBlock],
    capacity: usize,
    microset: usize,
    lookahead: u64,
    hurry: bool,
) -> Vec<PlanStep> {
    let mut planner = Planner::new(capacity, microset, lookahead).expect("large enough");
    let (mut fed, mut steps, mut turn) = (0, Vec::new(), 0);
    loop {
        turn += 1;
        let next = if hurry && turn % 3 == 0 { planner.hurry() } else { planner.next() };
        match next {
            PlannerAnswer::Step(step) => steps.push(step),
            PlannerAnswer::Done => return steps,
            PlannerAnswer::Wait if fed < blocks.len() => {
                assert!(planner.wants());
                planner.push(blocks[fed].clone());
                fed += 1;
            }
            PlannerAnswer::Wait => planner.finish(&Footer::default()),
        }
    }
}

/// Checks that a plan may be carried out and gives its reads.
fn legal(steps: &[PlanStep], blocks: &[TraceBlock], capacity: usize, all_known: bool) -> usize {
    struct Resident {
        used: u64,
        dirty: bool,
    }
    let trace = flat(blocks);
    let mut resident: HashMap<u32, Resident> = HashMap::new();
    let mut steps = steps.iter().peekable();
    let mut reads = 0;
    for (place, &(block, entry)) in trace.iter().enumerate() {
        if let Some(step) = steps.next_if(|step| step.fetch.place == place as u64) {
            for eviction in &step.evict {
                let gone = resident.remove(&eviction.chunk).expect("who leaves was there");
                assert_eq!(eviction.after, gone.used + 2);
                assert!(eviction.after <= block, "block {block} has not begun when its fetch must be there");
                assert_eq!(eviction.clean, !gone.dirty);
                let next = trace[place..].iter().find(|(_, entry)| entry.chunk == eviction.chunk);
                if all_known {
                    assert_eq!(eviction.next, next.map(|&(block, _)| block));
                    assert_eq!(eviction.dead, next.is_some_and(|(_, entry)| entry.fresh));
                } else if let Some(known) = eviction.next {
                    assert_eq!(Some(known), next.map(|&(block, _)| block));
                }
            }
            let fetch = step.fetch;
            assert_eq!((fetch.chunk, fetch.block, fetch.fresh), (entry.chunk, block, entry.fresh));
            let new = resident.insert(fetch.chunk, Resident { used: block, dirty: entry.fresh });
            assert!(new.is_none(), "fetched twice");
            reads += usize::from(!fetch.fresh);
        }
        assert!(resident.len() <= capacity);
        let state = resident.get_mut(&entry.chunk).expect("every entry finds its chunk");
        state.used = block;
        state.dirty |= entry.written;
    }
    assert!(steps.next().is_none());
    reads
}

/// Belady's rule by its definition, quadratic: reads.
fn naive(blocks: &[TraceBlock], capacity: usize) -> usize {
    let trace = flat(blocks);
    let mut resident: HashMap<u32, u64> = HashMap::new();
    let mut reads = 0;
    for (place, &(block, entry)) in trace.iter().enumerate() {
        if !resident.contains_key(&entry.chunk) {
            if resident.len() == capacity {
                let wanted = |chunk: u32| {
                    let next = trace[place..].iter().position(|(_, later)| later.chunk == chunk);
                    next.filter(|&at| !trace[place + at].1.fresh).unwrap_or(usize::MAX)
                };
                let may_go = resident.iter().filter(|(_, used)| *used + 2 <= block);
                let victim = may_go.map(|(&chunk, _)| chunk).max_by_key(|&chunk| wanted(chunk));
                resident.remove(&victim.expect("not all are held"));
            }
            reads += usize::from(!entry.fresh);
        }
        resident.insert(entry.chunk, block);
    }
    reads
}

/// The least reads of all legal plans, by trying all of them. A set of chunks is a word.
fn exhaustive(blocks: &[TraceBlock], capacity: u32) -> u32 {
    let trace = flat(blocks);
    let mut states: HashMap<u32, u32> = HashMap::from([(0, 0)]);
    let mut used: HashMap<u32, u64> = HashMap::new();
    for &(block, entry) in &trace {
        let bit = 1u32 << entry.chunk;
        let mut after: HashMap<u32, u32> = HashMap::new();
        for (&set, &reads) in &states {
            if set & bit != 0 {
                keep(&mut after, set, reads);
                continue;
            }
            let reads = reads + u32::from(!entry.fresh);
            if set.count_ones() < capacity {
                keep(&mut after, set | bit, reads);
            }
            for chunk in (0..32).filter(|chunk| set >> chunk & 1 == 1) {
                if used[&chunk] + 2 <= block {
                    keep(&mut after, set & !(1 << chunk) | bit, reads);
                }
            }
        }
        states = after;
        used.insert(entry.chunk, block);
    }
    *states.values().min().expect("there is a plan")
}

fn keep(states: &mut HashMap<u32, u32>, set: u32, reads: u32) {
    states.entry(set).and_modify(|least| *least = reads.min(*least)).or_insert(reads);
}

#[test]
fn with_all_known_a_plan_reads_as_little_as_any() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let chunks = 7 + random.below(4);
        let (count, capacity) = (4 + random.below(6), 4 + random.below(3));
        let blocks = trace(&mut random, chunks, count, 2);
        let plan = steps(&blocks, capacity, 2, 0, false);
        let reads = legal(&plan, &blocks, capacity, true);
        assert_eq!(reads as u32, exhaustive(&blocks, capacity as u32), "seed {seed}");
    }
}

#[test]
fn with_all_known_a_plan_is_beladys() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let microset = 2 + random.below(4);
        let chunks = 2 * microset + 1 + random.below(60);
        let capacity = 2 * microset + random.below(chunks);
        let blocks = trace(&mut random, chunks, 60, microset);
        let reads = legal(&steps(&blocks, capacity, microset, 0, false), &blocks, capacity, true);
        assert_eq!(reads, naive(&blocks, capacity), "seed {seed}");
    }
}

#[test]
fn with_little_known_a_plan_is_legal_and_hardly_worse() {
    let (mut windowed, mut best) = (0, 0);
    for seed in 0..300 {
        let mut random = Random(seed);
        let microset = 2 + random.below(4);
        let chunks = 2 * microset + 1 + random.below(60);
        let capacity = 2 * microset + random.below(chunks);
        let blocks = trace(&mut random, chunks, 60, microset);
        let least = naive(&blocks, capacity);
        for (lookahead, hurry) in [(1, false), (5, true), (random.below(100) as u64 + 1, seed % 2 == 0)] {
            let plan = steps(&blocks, capacity, microset, lookahead, hurry);
            assert!(legal(&plan, &blocks, capacity, false) >= least, "seed {seed}: better than MIN");
        }
        let plan = steps(&blocks, capacity, microset, 4 * chunks as u64, false);
        windowed += legal(&plan, &blocks, capacity, false);
        best += least;
    }
    assert!(windowed * 100 <= best * 105, "a window of four rounds reads {windowed}, MIN {best}");
}

#[test]
fn a_trace_that_names_a_chunk_twice_is_planned_too() {
    for seed in 0..100 {
        let mut random = Random(seed);
        let entry = |random: &mut Random| TraceEntry {
            chunk: random.below(20) as u32,
            written: random.below(2) == 0,
            fresh: random.below(5) == 0,
        };
        let blocks: Vec<TraceBlock> = (0..50)
            .map(|_| {
                let length = random.below(5);
                TraceBlock {
                    entries: (0..length).map(|_| entry(&mut random)).collect(),
                    ..TraceBlock::default()
                }
            })
            .collect();
        for lookahead in [0, 3] {
            legal(&steps(&blocks, 8, 4, lookahead, false), &blocks, 8, lookahead == 0);
        }
    }
}

fn entries(chunks: impl IntoIterator<Item = u32>, written: bool, fresh: bool) -> Vec<TraceEntry> {
    chunks.into_iter().map(|chunk| TraceEntry { chunk, written, fresh }).collect()
}

fn blocks(entries: &[TraceEntry], microset: usize) -> Vec<TraceBlock> {
    entries
        .chunks(microset)
        .map(|part| TraceBlock { entries: part.to_vec(), ..TraceBlock::default() })
        .collect()
}

#[test]
fn dead_chunks_go_first_however_soon_they_are_touched() {
    // Chunks 2 and 3 are handed out anew right after the eviction; 0 and 1 are wanted much later.
    let mut all = entries(0..4, true, true);
    all.extend(entries(10..16, true, true));
    all.extend(entries(2..4, true, true));
    all.extend(entries(20..26, true, true));
    all.extend(entries(0..2, true, false));
    let trace = blocks(&all, 2);
    let plan = steps(&trace, 8, 2, 0, false);
    assert_eq!(legal(&plan, &trace, 8, true), naive(&trace, 8));
    let gone: Vec<_> = plan.iter().flat_map(|step| &step.evict).take(2).collect();
    assert!(gone.iter().all(|eviction| eviction.dead && matches!(eviction.chunk, 2 | 3)), "{gone:?}");
}

#[test]
fn clean_chunks_go_before_written_ones_when_neither_is_wanted() {
    // Everything leaves once, then chunk 0 is written and chunk 1 only read, and neither is wanted again.
    let mut all = entries(0..2, true, true);
    all.extend(entries(10..20, true, true));
    all.extend(entries([0], true, false));
    all.extend(entries([1], false, false));
    all.extend(entries(30..40, true, true));
    let trace = blocks(&all, 2);
    let plan = steps(&trace, 4, 2, 0, false);
    legal(&plan, &trace, 4, true);
    let again =
        |chunk| plan.iter().find(|step| step.fetch.chunk == chunk && !step.fetch.fresh).expect("fetched");
    assert!(again(1).fetch.clean && !again(0).fetch.clean);
    let gone: Vec<u32> = plan
        .iter()
        .filter(|step| step.fetch.chunk >= 30)
        .flat_map(|step| &step.evict)
        .map(|e| e.chunk)
        .collect();
    let place = |chunk| gone.iter().position(|&other| other == chunk).expect("left");
    assert!(place(1) < place(0), "{gone:?}");
}

#[test]
fn a_capacity_too_small_is_an_error_with_the_least() {
    let error = Planner::new(63, 32, 0).expect_err("two blocks do not fit");
    assert!(error.contains("63 resident chunks") && error.ends_with("at least 64"), "{error}");
    assert!(Planner::new(64, 32, 0).is_ok());
}

#[test]
fn marks_are_known_until_forgotten() {
    let mut random = Random(5);
    let blocks = trace(&mut random, 40, 30, 4);
    let mut planner = Planner::new(16, 4, 0).expect("large enough");
    assert_eq!(planner.block_mark(0), None);
    blocks.iter().for_each(|block| planner.push(block.clone()));
    planner.finish(&Footer::default());
    assert_eq!((planner.known(), planner.blocks(), planner.block_mark(29)), (120, 30, Some((290, 30))));
    while planner.planned() < 60 {
        assert!(matches!(planner.next(), PlannerAnswer::Step(_)));
    }
    planner.forget(100);
    assert_eq!(planner.block_mark(13), None, "planned and forgotten");
    assert_eq!(planner.block_mark(20), Some((200, 21)), "not yet planned");
    let mut later = HashSet::new();
    while let PlannerAnswer::Step(step) = planner.next() {
        later.insert(step.fetch.block);
    }
    assert!(later.contains(&29));
}

#[test]
fn the_window_of_a_stream_follows_the_capacity() {
    assert_eq!((window(4096), window(10)), (32768, 4096));
}
