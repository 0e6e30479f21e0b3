//! Rows moved into shares by Paillier encryption: the payload back end of PS3I as its paper has it.
//!
//! * **Functionality.** The giver holds rows `v_1 .. v_n`; the taker chooses `m` of them by a map
//!   `t -> i(t)`, in any order, with repeats. Both get shares of `v_i(1) .. v_i(m)`, fresh for each, as the
//!   fields of the layout say.
//! * **Security.** Semi-honest, one party corrupted. Towards the taker: Paillier's encryption under the
//!   giver's key of 2048 bits (decisional composite residuosity, about 112 bits). Towards the giver:
//!   statistical, `2^-SIGMA` per number.
//! * **Who learns what.** Both: `n`, `m`, the layout. The giver nothing else: an answer has uniform
//!   randomness and masked values, so which of its ciphertexts it came from does not show, nor whether two
//!   came from the same one. The taker: its own map.
//! * **Paper.** Section 2.3 of the private randomised trials paper, "any additively homomorphic encryption
//!   scheme", and its reference 8. Deviations: every answer is re-randomised (there is no operation on
//!   ciphertexts that does not do it); masks are fresh per row and number and far wider than the numbers;
//!   several numbers share a ciphertext, and several rows an answer; words of bits are shared by exclusive
//!   or.
//! * **Cost.** 256 bytes, then 512 bytes per ciphertext: `n pieces` one way, `m / lanes pieces` the other
//!   way, one turn. An exponentiation of 1024 bits modulo 2048 bits four times for each ciphertext of the
//!   giver, and one of 2048 bits modulo 4096 bits for each answer. [`price`] is exact and a test holds it to
//!   the ledger.
//!
//! ```text
//! giver                                                     taker
//! key      n = p q                                 ->       n
//! rows     Enc(v_1) .. Enc(v_n)                    ->       keeps those in its map
//! answers  masked v_i(t), shares them out          <-       Enc(v_i(t) + r_t), re-randomised; keeps -r_t
//! ```

pub mod key;
mod pool;
pub mod slots;

use crate::payload::{PayloadLayout, PayloadTable};
use crate::permute::TransferBill;
use base::{Cost, Error, PartyId, Seed};
use key::{CIPHERTEXT_BYTES, Ciphertext, KEY_BYTES, PublicKey, SecretKey};
use net::{Session, StepLink};
use pool::RandomiserPool;
use slots::SlotPlan;
use std::ops::Range;
use std::sync::Arc;

/// Ciphertexts that travel in one message.
const BATCH: u64 = 64;

/// Why a key or a ciphertext of a peer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CiphertextRefusal {
    /// A modulus is even or has not 2048 bits.
    Modulus,
    /// A ciphertext is zero.
    Zero,
    /// A ciphertext is not below `n^2`.
    Large,
    /// A ciphertext shares a factor with `n`.
    Factor,
}

impl CiphertextRefusal {
    /// The text for an error.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Modulus => "a Paillier modulus is not an odd number of 2048 bits",
            Self::Zero => "a Paillier ciphertext is zero",
            Self::Large => "a Paillier ciphertext is not below the square of the modulus",
            Self::Factor => "a Paillier ciphertext shares a factor with the modulus",
        }
    }
}

/// The giver's key, and its randomisers computed ahead.
pub struct PayloadGiver {
    key: Arc<SecretKey>,
    pool: RandomiserPool,
    count: u64,
    threads: usize,
}

impl PayloadGiver {
    /// A fresh key for `rows` rows of this layout, and threads that compute one randomiser per ciphertext.
    /// Made before the match, they are ready when it is done.
    #[must_use]
    pub fn prepare(seed: &Seed, rows: u64, layout: &PayloadLayout, threads: usize) -> Self {
        let key = Arc::new(SecretKey::generate(&mut seed.fork("primes").into_rng()));
        let count = rows * SlotPlan::new(layout).pieces() as u64;
        let owner = key.clone();
        let pool = RandomiserPool::start(seed, count, threads, move |rng| owner.randomiser(rng));
        Self { key, pool, count, threads }
    }

    /// The giver's half: shares of the `rows_out` rows that the taker chooses among those of `table`.
    ///
    /// # Errors
    /// `Malformed` for answers that are no ciphertexts; `Channel` when the peer is gone; `Misuse` for another
    /// table than prepared for.
    pub fn give(
        mut self,
        session: &mut Session,
        table: &PayloadTable,
        rows_out: u64,
    ) -> Result<PayloadTable, Error> {
        let plan = SlotPlan::new(table.layout());
        let peer = session.me().other();
        if table.rows() * plan.pieces() as u64 != self.count {
            return Err(Error::misuse("the giver was prepared for another number of rows"));
        }
        let mut shares = PayloadTable::zeros(table.layout().clone(), rows_out)?;
        if rows_out == 0 || plan.pieces() == 0 {
            return Ok(shares);
        }
        session.step("key", |s| s.link(peer).send(&self.key.public().to_bytes()))?;
        session.step("rows", |s| {
            for range in batches(self.count) {
                let message = self.encrypt(&plan, table, range.clone());
                s.link(peer).send(&message)?;
                s.link(peer).flush()?;
                s.report(range.end, self.count);
            }
            Ok(())
        })?;
        session.step("answers", |s| {
            let total = plan.answers(rows_out);
            let mut groups = shares_by_answer(&plan, &mut shares);
            for range in batches(total) {
                let link = &mut s.link(peer);
                let answers = recv(link, self.key.public(), range.clone())?;
                self.decrypt(&plan, &answers, range.start, &mut groups);
                s.report(range.end, total);
            }
            Ok(())
        })?;
        Ok(shares)
    }

    /// The ciphertexts numbered `range`: those of a row lie together.
    fn encrypt(&mut self, plan: &SlotPlan, table: &PayloadTable, range: Range<u64>) -> Vec<u8> {
        let pieces = plan.pieces() as u64;
        let tasks: Vec<_> = range.map(|i| (i, self.pool.take())).collect();
        let key = &self.key;
        let sealed = over_cores(self.threads, tasks, |(i, randomiser)| {
            let plaintext = plan.pack((i % pieces) as usize, table.row(i / pieces));
            key.encrypt(&plaintext, randomiser).to_bytes()
        });
        sealed.concat()
    }

    fn decrypt(&self, plan: &SlotPlan, answers: &[Ciphertext], first: u64, groups: &mut [Vec<&mut [u8]>]) {
        let key = &self.key;
        let opened = over_cores(self.threads, answers.iter().collect(), |answer| key.decrypt(answer));
        for (plaintext, i) in opened.into_iter().zip(first as usize..) {
            plan.unpack(i % plan.pieces(), &plaintext, &mut groups[i / plan.pieces()]);
        }
    }
}

/// The taker's half: shares of rows `map[0], map[1], ..` of the `rows_in` rows that the giver holds. Memory:
/// 512 bytes per ciphertext of a row that is in the map.
///
/// # Errors
/// `Malformed` for a key or rows that are none; `Channel` when the peer is gone; `Misuse` for a map that
/// points beyond the rows.
pub fn take(
    session: &mut Session,
    layout: &PayloadLayout,
    rows_in: u64,
    map: &[u32],
    threads: usize,
) -> Result<PayloadTable, Error> {
    let plan = SlotPlan::new(layout);
    let peer = session.me().other();
    if map.iter().any(|&row| u64::from(row) >= rows_in) {
        return Err(Error::misuse("the map of a taker points beyond the giver's rows"));
    }
    let mut shares = PayloadTable::zeros(layout.clone(), map.len() as u64)?;
    if map.is_empty() || plan.pieces() == 0 {
        return Ok(shares);
    }
    let key = session.step("key", |s| {
        let mut link = s.link(peer);
        let bytes = link.recv_array::<KEY_BYTES>()?;
        PublicKey::from_bytes(&bytes).map(Arc::new).map_err(|r| link.malformed(r.text()))
    })?;
    let seed = session.fork_seed("masks");
    let total = plan.answers(map.len() as u64);
    let of_peer = key.clone();
    let mut pool = RandomiserPool::start(&seed, total, threads, move |rng| of_peer.randomiser(rng));
    let kept = session.step("rows", |s| recv_rows(s, &key, &plan, rows_in, map))?;
    session.step("answers", |s| {
        let mut rng = seed.fork("masks").into_rng();
        let mut groups = shares_by_answer(&plan, &mut shares);
        for range in batches(total) {
            // Masks come from one generator, in order; the rest is spread over cores.
            let tasks = range.clone().map(|i| {
                let (group, piece) = (i as usize / plan.pieces(), i as usize % plan.pieces());
                (group, piece, plan.mask(piece, &mut rng, &mut groups[group]), pool.take())
            });
            let answers = over_cores(threads, tasks.collect(), |(group, piece, mask, randomiser)| {
                let rows = &map[group * plan.lanes()..];
                let lanes = rows.iter().take(plan.lanes()).map(|row| &kept.pieces(*row)[piece]);
                key.answer(lanes, plan.width(), &mask, randomiser).to_bytes()
            });
            let message = answers.concat();
            s.link(peer).send(&message)?;
            s.link(peer).flush()?;
            s.report(range.end, total);
        }
        Ok(())
    })?;
    Ok(shares)
}

/// The giver's ciphertexts of rows that are in the map.
struct Kept {
    /// For each row of the giver its place among those kept.
    places: Vec<u32>,
    ciphertexts: Vec<Ciphertext>,
    pieces: usize,
}

impl Kept {
    fn pieces(&self, row: u32) -> &[Ciphertext] {
        &self.ciphertexts[self.places[row as usize] as usize * self.pieces..][..self.pieces]
    }
}

/// Marks a row that is not in the map.
const UNUSED: u32 = u32::MAX;

fn recv_rows(
    session: &mut Session,
    key: &PublicKey,
    plan: &SlotPlan,
    rows_in: u64,
    map: &[u32],
) -> Result<Kept, Error> {
    let (peer, pieces) = (session.me().other(), plan.pieces() as u64);
    let mut places = vec![UNUSED; rows_in as usize];
    map.iter().for_each(|&row| places[row as usize] = 0);
    let mut used = 0;
    for place in places.iter_mut().filter(|place| **place == 0) {
        *place = used;
        used += 1;
    }
    let mut ciphertexts = Vec::with_capacity(used as usize * plan.pieces());
    for range in batches(rows_in * pieces) {
        let batch = recv(&mut session.link(peer), key, range.clone())?;
        let wanted = batch.into_iter().zip(range.clone());
        let wanted = wanted.filter(|(_, i)| places[(i / pieces) as usize] != UNUSED);
        ciphertexts.extend(wanted.map(|(ciphertext, _)| ciphertext));
        session.report(range.end, rows_in * pieces);
    }
    Ok(Kept { places, ciphertexts, pieces: plan.pieces() })
}

/// Receives and checks the ciphertexts numbered `range`.
fn recv(link: &mut StepLink<'_>, key: &PublicKey, range: Range<u64>) -> Result<Vec<Ciphertext>, Error> {
    let mut bytes = vec![0; (range.end - range.start) as usize * CIPHERTEXT_BYTES];
    link.recv(&mut bytes)?;
    key.read(&bytes).map_err(|refusal| link.malformed(refusal.text()))
}

/// The rows of a table in groups of those that share an answer.
fn shares_by_answer<'a>(plan: &SlotPlan, shares: &'a mut PayloadTable) -> Vec<Vec<&'a mut [u8]>> {
    let width = shares.layout().row_bytes();
    let mut rows = shares.bytes_mut().chunks_exact_mut(width).peekable();
    std::iter::from_fn(|| rows.peek().is_some().then(|| rows.by_ref().take(plan.lanes()).collect())).collect()
}

/// Messages of so many ciphertexts.
fn batches(count: u64) -> impl Iterator<Item = Range<u64>> {
    (0..count.div_ceil(BATCH)).map(move |i| i * BATCH..count.min((i + 1) * BATCH))
}

/// Does the tasks on several threads, results in their order.
fn over_cores<T: Send, R: Send>(threads: usize, tasks: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let piece = tasks.len().div_ceil(threads.max(1)).max(1);
    let (mut tasks, work) = (tasks.into_iter(), &work);
    std::thread::scope(|scope| {
        let pieces = std::iter::from_fn(|| Some(tasks.by_ref().take(piece).collect::<Vec<_>>()));
        let running: Vec<_> = pieces
            .take_while(|piece| !piece.is_empty())
            .map(|piece| scope.spawn(move || piece.into_iter().map(work).collect::<Vec<_>>()))
            .collect();
        let join = |t: std::thread::ScopedJoinHandle<'_, Vec<R>>| {
            t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().flat_map(join).collect()
    })
}

/// Seconds that a ciphertext takes to be made, answered or opened on one core; measured by
/// `cargo run --release -p matching --example paillier_rate`.
const CIPHERTEXT_S: f64 = 0.011;

/// Seconds of encryption in a conversation of this cost, of both parties one after the other.
#[must_use]
pub fn seconds(cost: &Cost) -> f64 {
    cost.bytes() as f64 / CIPHERTEXT_BYTES as f64 * CIPHERTEXT_S
}

/// Bytes of memory of a taker whose map has all of `rows_in` rows.
#[must_use]
pub fn memory(rows_in: u64, layout: &PayloadLayout) -> u64 {
    rows_in * (SlotPlan::new(layout).pieces() * CIPHERTEXT_BYTES + size_of::<u32>()) as u64
}

/// Books the conversation that moves `rows_out` of `rows_in` rows of `giver` into shares.
pub fn bill(bill: &mut TransferBill, giver: PartyId, rows_in: u64, rows_out: u64, layout: &PayloadLayout) {
    let (plan, taker) = (SlotPlan::new(layout), giver.other());
    if rows_out == 0 || plan.pieces() == 0 {
        return;
    }
    let bytes = |batch: Range<u64>| (batch.end - batch.start) * CIPHERTEXT_BYTES as u64;
    bill.say(giver, KEY_BYTES as u64);
    bill.hear(taker);
    for batch in batches(rows_in * plan.pieces() as u64) {
        bill.say(giver, bytes(batch));
        bill.hear(taker);
    }
    for batch in batches(plan.answers(rows_out)) {
        bill.say(taker, bytes(batch));
        bill.hear(giver);
    }
}
