//! What a run asks of a store, asked once and timed.

use super::PlaceArgs;
use base::{Error, Rng, Seed, hex};
use serde::Serialize;
use std::fmt;
use std::time::Instant;
use store::{
    ChunkSize, LogRecord, RUN_MEMORY, RecordSize, RunReader, RunWriter, SealedStore, StateKey, StateLog,
    StateStore, StoreError, StoreLock,
};

/// Bytes of the largest object that a probe writes.
const SIZE_MAX: u64 = 4_000_000_000;
/// How often something small is done, for its median.
const TIMES: usize = 16;
/// Bytes of a range that is read, as a worker reads of a run.
const RANGE: u64 = 256 << 10;
/// Records that are dealt to runs, of this many bytes, to as many partitions.
const RECORDS: u32 = 200_000;
const RECORD: usize = 40;
const PARTITIONS: u32 = 16;

/// What was measured of a place. All of it was also checked.
#[derive(Debug, Serialize)]
pub struct ProbedPlace {
    place: String,
    /// Creating what is there fails.
    conditional: bool,
    /// Who was replaced is stopped.
    fences: bool,
    /// Whether a lock of the folder keeps other processes of this machine out.
    locks: bool,
    create_ms: f64,
    append_ms: f64,
    range_ms: f64,
    object_bytes: u64,
    write_mb_s: f64,
    read_mb_s: f64,
    run_bytes: u64,
    run_write_mb_s: f64,
    run_read_mb_s: f64,
    written_bytes: u64,
    read_bytes: u64,
    requests: u64,
}

impl fmt::Display for ProbedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, create_ms, append_ms, range_ms, object_bytes, run_bytes, .. } = self;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        writeln!(f, "{place} can hold the state of a run: what is there is never created again, and")?;
        writeln!(f, "who was replaced as the one that leads is stopped.")?;
        let lock =
            if self.locks { "locked against other processes of this machine" } else { "by the log alone" };
        writeln!(f, "  two that lead     kept apart {lock}")?;
        writeln!(f, "  a small object    {create_ms:.1} ms, on stable storage")?;
        writeln!(f, "  a log record      {append_ms:.1} ms, on stable storage")?;
        writeln!(f, "  a range           {range_ms:.1} ms for {} KiB", RANGE >> 10)?;
        let (write, read) = (self.write_mb_s, self.read_mb_s);
        writeln!(
            f,
            "  a sealed object   {:.0} MB: written at {write:.1} MB/s, read at {read:.1}",
            mb(*object_bytes)
        )?;
        let (write, read) = (self.run_write_mb_s, self.run_read_mb_s);
        writeln!(
            f,
            "  runs              {:.0} MB: written at {write:.1} MB/s, read at {read:.1}",
            mb(*run_bytes)
        )?;
        let (written, read) = (mb(self.written_bytes), mb(self.read_bytes));
        write!(
            f,
            "In all {written:.0} MB written and {read:.0} MB read in {} requests; nothing is left.",
            self.requests
        )
    }
}

/// Probes a place, and removes what the probe made, whatever it finds.
///
/// # Errors
/// When the place does not do, or cannot be reached.
pub fn measure(args: &PlaceArgs) -> Result<ProbedPlace, Error> {
    if args.size == 0 || args.size > SIZE_MAX {
        return Err(Error::input(format!("--size {} is out of range; use 1 to 4G", args.size)));
    }
    let key = match &args.ledger {
        Some(ledger) => StateKey::beside(ledger)?,
        None => StateKey::fresh(),
    };
    let store = StateStore::open(&args.place, &args.store.options())?;
    store.probe()?;
    let mut rng = Seed::from_system().into_rng();
    let (run, folder) = (rng.bytes::<32>(), format!("probe/{}", hex(&rng.bytes::<8>())));
    let sealed = SealedStore::new(store.clone(), &key, &run, "probe");
    let measured = all(&sealed, &folder, args.size, &mut rng);
    let removed = remove(&store, &folder);
    let measured = measured?;
    removed?;
    Ok(measured)
}

fn remove(store: &StateStore, folder: &str) -> Result<(), StoreError> {
    store.list(folder)?.iter().try_for_each(|(name, _)| store.delete(name))
}

fn all(sealed: &SealedStore, folder: &str, size: u64, rng: &mut Rng) -> Result<ProbedPlace, StoreError> {
    let store = sealed.store();
    let small = rng.bytes::<64>();
    let create_ms = median(|i| sealed.create(&format!("{folder}/small/{i}"), &small).map(drop))?;
    let lock = store.lock()?;
    let (append_ms, fences) = log(sealed, &format!("{folder}/log"), &lock)?;
    let (range_ms, write_mb_s, read_mb_s) = object(sealed, &format!("{folder}/object"), size, rng)?;
    let (run_write_mb_s, run_read_mb_s) = runs(sealed, &format!("{folder}/runs"), rng)?;
    let moved = store.traffic();
    Ok(ProbedPlace {
        place: store.url().to_owned(),
        conditional: true,
        fences,
        locks: lock.is_held(),
        create_ms,
        append_ms,
        range_ms,
        object_bytes: size,
        write_mb_s,
        read_mb_s,
        run_bytes: u64::from(RECORDS) * RECORD as u64,
        run_write_mb_s,
        run_read_mb_s,
        written_bytes: moved.written,
        read_bytes: moved.read,
        requests: moved.requests,
    })
}

/// Milliseconds of the middle one of several times.
fn median(mut once: impl FnMut(usize) -> Result<(), StoreError>) -> Result<f64, StoreError> {
    let mut times = Vec::with_capacity(TIMES);
    for i in 0..TIMES {
        let begun = Instant::now();
        once(i)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times[TIMES / 2])
}

fn mb_per_s(bytes: u64, begun: Instant) -> f64 {
    bytes as f64 / 1e6 / begun.elapsed().as_secs_f64()
}

fn wrong(store: &StateStore, what: &str) -> StoreError {
    Error::input(format!("{}: {what}; take another store", store.url())).into()
}

/// Leads, is replaced, and leads again: what was appended is there, and who was replaced is stopped.
fn log(sealed: &SealedStore, folder: &str, lock: &StoreLock) -> Result<(f64, bool), StoreError> {
    let record = |i: usize| LogRecord { tag: 1, payload: (i as u64).to_le_bytes().to_vec() };
    let (mut log, _) = StateLog::lead(sealed.clone(), folder, lock)?;
    let append_ms = median(|i| log.append(&[record(i)]).map(drop))?;
    if log.snapshot_due() {
        return Err(wrong(sealed.store(), "it says that a new log is long"));
    }
    log.snapshot(&[record(0)])?;
    let (mut old, (new, records)) = (log, StateLog::lead(sealed.clone(), folder, lock)?);
    if new.epoch() != 2 || records != [record(0)] {
        return Err(wrong(sealed.store(), "it does not give back a log as it was written"));
    }
    match old.append(&[record(1)]) {
        Err(StoreError::Fenced { .. }) => Ok((append_ms, true)),
        Err(error) => Err(error),
        Ok(_) => Err(wrong(sealed.store(), "it lets two processes lead one run")),
    }
}

/// Writes and reads a large object: milliseconds of a range, MB/s written and read.
fn object(sealed: &SealedStore, name: &str, size: u64, rng: &mut Rng) -> Result<(f64, f64, f64), StoreError> {
    let mut piece = vec![0; 1 << 20];
    piece.chunks_mut(64).for_each(|some| some.copy_from_slice(&rng.bytes::<64>()));
    let same = |mut read: &[u8], at: u64| {
        let (mut at, mut right) = (at as usize % piece.len(), true);
        while !read.is_empty() {
            let (now, later) = read.split_at(read.len().min(piece.len() - at));
            right &= *now == piece[at..at + now.len()];
            (read, at) = (later, 0);
        }
        right
    };
    let begun = Instant::now();
    let mut writer = sealed.writer(name, ChunkSize::Large)?;
    while writer.len() < size {
        writer.write(&piece[..piece.len().min((size - writer.len()) as usize)])?;
    }
    let id = writer.finish()?;
    let write_mb_s = mb_per_s(size, begun);
    let reader = sealed.reader(name)?;
    let (mut at, mut right) = (0, reader.len() == size && reader.id() == id);
    let begun = Instant::now();
    reader.stream(|read| {
        right &= same(read, at);
        at += read.len() as u64;
        Ok(())
    })?;
    let read_mb_s = mb_per_s(size, begun);
    let range_ms = median(|_| {
        let start = rng.below(size.saturating_sub(RANGE) + 1);
        right &= same(&reader.read(start..size.min(start + RANGE))?, start);
        Ok(())
    })?;
    match right {
        true => Ok((range_ms, write_mb_s, read_mb_s)),
        false => Err(wrong(sealed.store(), "it does not give back an object as it was written")),
    }
}

/// Deals records to runs and reads every partition: MB/s written and read.
fn runs(sealed: &SealedStore, folder: &str, rng: &mut Rng) -> Result<(f64, f64), StoreError> {
    let bytes = u64::from(RECORDS) * RECORD as u64;
    let begun = Instant::now();
    let shape = (PARTITIONS, RecordSize::Fixed(RECORD as u32));
    let mut writer = RunWriter::new(sealed.clone(), folder, shape, RUN_MEMORY)?;
    let mut checksum = 0u64;
    for _ in 0..RECORDS {
        let record = rng.bytes::<RECORD>();
        checksum = checksum.wrapping_add(u64::from_le_bytes(*record.last_chunk().expect("it has 40 bytes")));
        writer.push(u32::from(record[0]) * PARTITIONS / 256, &record)?;
    }
    let runs = writer.finish()?;
    let write_mb_s = mb_per_s(bytes, begun);
    let begun = Instant::now();
    let reader = RunReader::open(sealed.clone(), &runs)?;
    let (mut right, mut before, mut records) = (true, Vec::new(), 0);
    for partition in 0..PARTITIONS {
        for record in reader.partition(partition)?.sorted() {
            let last = record.last_chunk().expect("it has 40 bytes");
            checksum = checksum.wrapping_sub(u64::from_le_bytes(*last));
            right &= before[..] <= *record;
            before.clear();
            before.extend_from_slice(record);
            records += 1;
        }
    }
    let read_mb_s = mb_per_s(bytes, begun);
    match right && checksum == 0 && records == RECORDS {
        true => Ok((write_mb_s, read_mb_s)),
        false => Err(wrong(sealed.store(), "it does not give back runs as they were written")),
    }
}
