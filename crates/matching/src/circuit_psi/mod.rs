//! Circuit-PSI: a join to shares that hides even the size of the intersection.
//!
//! * **Functionality.** Party 0 (receiver) and party 1 (sender) hold identifiers without repeats; the sender
//!   has a row of payload per identifier. The receiver lays its rows into bins, one or none in each. Per bin
//!   both get exclusive-or shares of the bit "the sender has this row too", and shares of that row of the
//!   sender's payload; where the bit is 0 they are shares of something random.
//! * **Security.** Semi-honest, one party corrupted, computational parameter 128, statistical 40: LPN (see
//!   [`ot::vole`]), the hash of OT, BLAKE3 as a random oracle, AES under public keys as an ideal cipher.
//! * **Who learns what.** Both: the number of rows of the other, noised where there are dummies, and nothing
//!   else. In particular no size of the intersection. The receiver knows which of its rows lies in which bin.
//! * **Paper.** Pinkas, Schneider, Tkachenko and Yanai, "Efficient circuit-based PSI with linear
//!   communication" (Eurocrypt 2019) with the OPRF and the key-value store of Raghuraman and Rindal, "Blazing
//!   fast PSI from improved OKVS and subfield VOLE" (ePrint 2022/320). Deviations: hash functions have a
//!   third of the bins each, and enough bins that rows fit by proof ([`cuckoo`]); a store with elimination
//!   instead of a failure by peeling ([`okvs`]); everything in pieces of bins, so that both parties work at
//!   once; payload masked by ring; tags compared by GMW.
//! * **Cost.** [`price`] is exact. Per row of equal sides about 30 B for the OPRF, 5 times payload plus tag
//!   for the programmed stores, and an AND tree per bin. One thread per party.
//!
//! ```text
//!    receiver                                                       sender
//! count     rows, layout, terms, salt               <->
//! bins      cuckoo hashing; attempt                  ->              simple hashing
//! vole      a, c = a Delta + b                                       Delta, b
//! pieces    P: x -> x;    a + P                      ->              K = b + Delta (a + P)
//!                                                                    F(y) = H(K(y) + Delta y, y)
//!           F(x) = H(c(x), x)                        <-              T: y -> F(y) + (tag of the bin,
//!                                                                        payload masked)
//!           tag', share = T(x) + F(x)                                tag, mask
//! equal     GMW: tag' = tag, shared                 <->
//! ```

pub mod cuckoo;
pub mod equal;
pub mod okvs;
pub mod oprf;
mod price;

pub use price::{memory, price};

use crate::begin::{by_party, peer_rows_max};
use crate::dummies::{self, ShownSizes};
use crate::identifiers::{self, IdentifierSource};
use crate::matcher::{
    MatchDisclosure, MatchEstimate, MatchFeatures, MatchInput, MatchOptions, MatchOutcome, MatchOutput,
    MatchSizes, Matcher, OutputForm, RowInfluence,
};
use crate::memory as room;
use crate::payload::{
    ABSENT, JoinedPart, JoinedShares, PayloadLayout, PayloadSource, PayloadTable, TableField, ValidEntries,
};
use crate::share_table::ShareTable;
use crate::spill::SpillRoom;
use base::{Cost, Error, PartyId, Rng, Seed, limits};
use cuckoo::{BinEntries, CuckooBins, EMPTY, FUNCTIONS};
use kernels::{Aes128, Block, gf_add_multiples, prg_fill, xor_into};
use net::Session;
use ot::{OtKind, VoleReceiver, VoleSender, fresh_delta, vole};
use price::PieceShapes;
use std::collections::VecDeque;
use zeroize::Zeroizing;

/// How often the receiver draws hash functions before it gives up.
const ATTEMPTS: u8 = 4;
/// Pieces that the receiver sends before it waits for the first answer, where the window has room.
const AHEAD: usize = 4;
const SALT_BYTES: usize = 32;

/// AES under a public key of this run and use.
fn key_cipher(seed: &[u8; 32], label: &str, number: u64) -> Aes128 {
    let key = Seed::from_bytes(*seed).fork(&format!("{label} {number}"));
    Aes128::new(Block::from_bytes(*key.expose().first_chunk().expect("a seed has 32 bytes")))
}

/// So many bytes, uniform.
fn random_bytes(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let mut blocks = vec![Block::ZERO; bytes.div_ceil(Block::BYTES)];
    prg_fill(Block::from_bytes(rng.bytes()), 0, &mut blocks);
    let mut random = Block::slice_to_bytes(&blocks);
    random.truncate(bytes);
    random
}

/// `n` zero blocks.
fn blocks(name: &'static str, n: u64) -> Result<Vec<Block>, Error> {
    let mut blocks = room::reserve(name, n)?;
    blocks.resize(n as usize, Block::ZERO);
    Ok(blocks)
}

/// Circuit-PSI.
pub struct CircuitJoin;

impl Matcher for CircuitJoin {
    fn name(&self) -> &'static str {
        "circuit-psi"
    }

    fn features(&self) -> MatchFeatures {
        // The receiver knows which of its rows lies in which bin.
        let form = OutputForm::Shares([false, true]);
        MatchFeatures { form, shown: ShownSizes::Rows, ..MatchFeatures::SHARES }
    }

    fn tells(&self, sizes: &str, _first: &str, _options: &MatchOptions) -> String {
        format!("both learn both set sizes, {sizes}, and nothing of the match, not even its size")
    }

    fn influence(&self, _keys: u64, _options: &MatchOptions) -> RowInfluence {
        RowInfluence { masked: true, ..RowInfluence::default() }
    }

    fn price(&self, sizes: &MatchSizes, options: &MatchOptions) -> Cost {
        price(sizes.pair().rows, &options.layouts[1], ot_of(options))
    }

    fn estimate(&self, rows: &[u64], _keys: u64, _options: &MatchOptions) -> MatchEstimate {
        let sizes = MatchSizes::apart(rows, 1);
        let places = CuckooBins::new(sizes.pair().rows).all();
        let why = "places for rows of the publisher".into();
        MatchEstimate { waits: 10.0, rows: places, why, ..MatchEstimate::apart(sizes) }
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let mut rng = session.fork_seed("bins and tables").into_rng();
        let MatchInput { rows: names, payload, options } = input;
        identifiers::check_unique(names, &mut rng)?;
        let layout = &options.layouts[1];
        let (rows, seed) = session.step("count", |s| count(s, names.rows(), options, &mut rng))?;
        room::check(memory(rows, layout, session.me()), options.memory)?;
        let bins = CuckooBins::new(rows);
        if bins.all() >= limits::ROWS {
            return Err(Error::limit("limits::ROWS, bins of the join", bins.all(), limits::ROWS - 1));
        }
        let keys = Zeroizing::new(oprf::keys(names, &seed)?);
        let shapes = PieceShapes::new(&bins, layout);
        shapes.check()?;
        let (peer, kind) = (session.me().other(), ot_of(options));
        let party = Party { bins, shapes, seed, layout, peer, kind };
        let joined = match payload {
            None => party.receive(session, &keys, names.real_rows(), rng),
            Some(payload) => party.send(session, &keys, &whole(*payload)?, rng),
        }?;
        let sizes = MatchSizes::apart(&rows, 1);
        let disclosed = MatchDisclosure { sizes, size_hidden: true, counts: Vec::new() };
        Ok(MatchOutcome { output: MatchOutput::Shares(joined), disclosed })
    }
}

/// All rows of the sender's payload: bins take them in any order.
fn whole(payload: &dyn PayloadSource) -> Result<PayloadTable, Error> {
    let mut table = PayloadTable::zeros(payload.layout().clone(), payload.rows())?;
    let width = payload.layout().row_bytes();
    payload.each(&mut |first, rows| {
        let start = first as usize * width;
        table.bytes_mut()[start..start + rows.bytes().len()].copy_from_slice(rows.bytes());
        Ok(())
    })?;
    Ok(table)
}

/// What makes the OTs.
fn ot_of(options: &MatchOptions) -> OtKind {
    options.ot.unwrap_or(OtKind::Ferret)
}

/// Both tell sizes and terms. Returns the rows of both, the receiver's first, and the seed of what is public.
fn count(
    session: &mut Session,
    own: u64,
    options: &MatchOptions,
    rng: &mut Rng,
) -> Result<([u64; 2], [u8; 32]), Error> {
    let (me, salt) = (session.me(), rng.bytes::<SALT_BYTES>());
    let terms = dummies::terms(options.dummies.as_ref(), ShownSizes::Rows);
    let shape = format!("{} {}", spelled(&options.layouts[1]), ot_of(options));
    let shape = blake3::derive_key("tacit 2026 circuit-PSI terms", shape.as_bytes());
    let mut link = session.link(me.other());
    link.send(&own.to_le_bytes())?;
    [&terms[..], &shape, &salt].into_iter().try_for_each(|part| link.send(part))?;
    let cap = peer_rows_max(options).min(limits::ROWS - 1);
    let peer = link.recv_count("rows of the peer", cap)?;
    dummies::check_terms(&mut link, &terms)?;
    if link.recv_array::<32>()? != shape {
        return Err(link.blame("it joins the same columns by the same OTs as we do"));
    }
    let theirs = link.recv_array::<SALT_BYTES>()?;
    let (rows, salts) = (by_party(me, own, peer), by_party(me, salt, theirs));
    let mut hash = blake3::Hasher::new_derive_key("tacit 2026 circuit-PSI names");
    Ok((rows, *hash.update(salts.as_flattened()).finalize().as_bytes()))
}

/// A layout as both spell it where they compare terms.
fn spelled(layout: &PayloadLayout) -> String {
    let field = |field: &TableField| format!("Field {{ ring: {:?}, bytes: {} }}", field.ring, field.bytes);
    let fields: Vec<String> = layout.fields().iter().map(field).collect();
    let starts: Vec<usize> = (0..fields.len()).map(|field| layout.range(field).start).collect();
    let bytes = layout.row_bytes();
    format!("Layout {{ fields: [{}], starts: {starts:?}, bytes: {bytes} }}", fields.join(", "))
}

/// What both parties know of a run.
struct Party<'a> {
    bins: CuckooBins,
    shapes: PieceShapes,
    seed: [u8; 32],
    layout: &'a PayloadLayout,
    peer: PartyId,
    kind: OtKind,
}

/// A piece whose answer the receiver waits for.
struct Pending {
    bins: Vec<usize>,
    keys: Zeroizing<Vec<Block>>,
    inputs: Zeroizing<Vec<Block>>,
}

impl Party<'_> {
    /// The receiver's half.
    fn receive(
        &self,
        session: &mut Session,
        keys: &[Block],
        own: u64,
        mut rng: Rng,
    ) -> Result<JoinedShares, Error> {
        let held = session.step("bins", |s| self.lay(s, keys))?;
        let [a, c] = session.step("vole", |s| {
            let total = self.elements();
            let ot = self.kind.receiver(s, self.peer, vole::expected_ots(total))?;
            let mut vole = VoleReceiver::new(ot, total)?;
            let column = || Ok::<_, Error>(Zeroizing::new(room::reserve("VOLE", total)?));
            let mut columns = [column()?, column()?];
            let [a, c] = &mut columns;
            vole.take(s, total as usize, [a, c])?;
            Ok(columns)
        })?;
        let all = self.bins.all();
        let mut shares = PayloadTable::zeros(self.layout.clone(), all)?;
        let mut tags = Zeroizing::new(blocks("tags", all)?);
        session.step("pieces", |s| {
            let entries = self.shapes.keys.entries();
            let (mut waiting, mut elements) = (VecDeque::new(), a.chunks(entries).zip(c.chunks(entries)));
            let ahead = (s.link(self.peer).window() / 2 / self.shapes.key_bytes()).min(AHEAD);
            for piece in 0..self.bins.pieces() + ahead as u64 {
                if let Some((a, c)) = elements.next() {
                    waiting.push_back(self.ask(s, piece, keys, &held, (a, c), &mut rng)?);
                }
                if piece >= ahead as u64 {
                    let pending = waiting.pop_front().expect("a piece is under way for every answer");
                    self.take_answer(s, &pending, &mut shares, &mut tags)?;
                    s.report(piece + 1 - ahead as u64, self.bins.pieces());
                }
            }
            Ok(())
        })?;
        drop((a, c));
        let valid = session.step("equal", |s| equal::shared(s, self.kind, &tags))?;
        // A dummy row of ours is no row of the caller's.
        let mine = held.into_iter().map(|row| if u64::from(row) < own { row } else { ABSENT }).collect();
        Ok(JoinedShares {
            rows: all,
            slots: 1,
            parts: [
                JoinedPart::Mine(mine),
                JoinedPart::Shared(ShareTable::of(&shares, &SpillRoom::new(None, None))?),
            ],
            valid: ValidEntries::Shared(valid),
        })
    }

    /// Elements of the VOLE: an entry of the receiver's store each.
    fn elements(&self) -> u64 {
        self.shapes.elements(&self.bins)
    }

    /// Lays the receiver's keys into bins; tells which attempt at hash functions did it.
    fn lay(&self, session: &mut Session, keys: &[Block]) -> Result<Vec<u32>, Error> {
        for attempt in 0..ATTEMPTS {
            if let Some(held) = self.bins.place(&self.bins.all_places(&self.seed, attempt, keys)) {
                let mut link = session.link(self.peer);
                link.send(&[attempt])?;
                link.flush()?;
                return Ok(held);
            }
        }
        Err(Error::misuse("rows do not fit their bins, a matter of chance; run again"))
    }

    /// The receiver's message for a piece: its keys' store under the VOLE's mask.
    fn ask(
        &self,
        session: &mut Session,
        piece: u64,
        keys: &[Block],
        held: &[u32],
        (a, c): (&[Block], &[Block]),
        rng: &mut Rng,
    ) -> Result<Pending, Error> {
        let range = self.bins.range(piece);
        let piece_bins = self.bins.piece_bins() as usize;
        let (mut bins, mut own) = (Vec::new(), Zeroizing::new(Vec::with_capacity(piece_bins)));
        for function in 0..FUNCTIONS {
            for bin in range.clone().map(|place| self.bins.bin(function, place as u32)) {
                let key = match held[bin] {
                    EMPTY => oprf::whole(Block::from_bytes(rng.bytes())),
                    row => keys[row as usize],
                };
                bins.push(bin);
                own.push(oprf::with_function(key, function));
            }
        }
        let (shape, mut rows) = (self.shapes.keys, Vec::new());
        okvs::rows(&self.shapes.cipher(&self.seed, 0), shape, &own, &mut rows);
        let store = Zeroizing::new(okvs::encode(shape, &rows, Block::bytes_of(&own), Block::BYTES, rng)?);
        let mut message = vec![Block::ZERO; shape.entries()];
        Block::read_slice(&store, &mut message);
        xor_into(&mut message, a);
        let mut link = session.link(self.peer);
        link.send(Block::bytes_of(&message))?;
        link.flush()?;
        let mut inputs = Zeroizing::new(vec![Block::ZERO; own.len()]);
        okvs::decode(shape, Block::bytes_of(c), Block::BYTES, &rows, Block::bytes_of_mut(&mut inputs));
        Ok(Pending { bins, keys: own, inputs })
    }

    /// The sender's answer for a piece: tag and share of the payload per bin.
    fn take_answer(
        &self,
        session: &mut Session,
        pending: &Pending,
        shares: &mut PayloadTable,
        tags: &mut [Block],
    ) -> Result<(), Error> {
        let Pending { bins, keys, inputs } = pending;
        let (shape, width, tag) = (self.shapes.values, self.shapes.width, self.shapes.tag);
        let mut table = room::reserve("bytes of a table", (shape.entries() * width) as u64)?;
        table.resize(shape.entries() * width, 0);
        session.link(self.peer).recv(&mut table)?;
        let (mut rows, mut values) = (Vec::new(), Zeroizing::new(vec![0; bins.len() * width]));
        okvs::rows(&self.shapes.cipher(&self.seed, 1), shape, keys, &mut rows);
        okvs::decode(shape, &table, width, &rows, &mut values);
        oprf::add_pads(&self.seed, inputs, keys, width, &mut values);
        for (&bin, value) in bins.iter().zip(values.chunks_exact(width)) {
            let mut word = [0; Block::BYTES];
            word[..tag].copy_from_slice(&value[..tag]);
            tags[bin] = Block::from_bytes(word);
            shares.row_mut(bin as u64).copy_from_slice(&value[tag..]);
        }
        Ok(())
    }

    /// The sender's half.
    fn send(
        &self,
        session: &mut Session,
        keys: &[Block],
        payload: &PayloadTable,
        mut rng: Rng,
    ) -> Result<JoinedShares, Error> {
        let attempt = session.step("bins", |s| {
            let mut link = s.link(self.peer);
            let [attempt] = link.recv_array()?;
            if attempt < ATTEMPTS {
                Ok(attempt)
            } else {
                Err(link.malformed("there is no such attempt at bins"))
            }
        })?;
        let places = self.bins.all_places(&self.seed, attempt, keys);
        let entries = BinEntries::new(&self.bins, &places)?;
        let (delta, b) = session.step("vole", |s| {
            let total = self.elements();
            let delta = Zeroizing::new(fresh_delta(&mut s.fork_seed("Delta").into_rng()));
            let ot = self.kind.sender(s, self.peer, *delta, vole::expected_ots(total))?;
            let mut b = Zeroizing::new(room::reserve("VOLE", total)?);
            VoleSender::new(s, ot, total)?.take(s, total as usize, &mut b)?;
            Ok((delta, b))
        })?;
        let all = self.bins.all();
        // The masks are the sender's shares.
        let (mut shares, mut tags) =
            (PayloadTable::zeros(self.layout.clone(), all)?, Zeroizing::new(blocks("tags", all)?));
        session.step("pieces", |s| {
            for (piece, b) in (0..).zip(b.chunks(self.shapes.keys.entries())) {
                let mut store = vec![Block::ZERO; b.len()];
                s.link(self.peer).recv(Block::bytes_of_mut(&mut store))?;
                let mut sums = Zeroizing::new(b.to_vec());
                gf_add_multiples(*delta, &store, &mut sums);
                self.draw(piece, &mut shares, &mut tags, &mut rng);
                let work = Work {
                    keys,
                    places: &places,
                    entries: &entries,
                    payload: oprf::SenderPayload::new(payload),
                };
                let table = self.answer(piece, &work, *delta, &sums, (&shares, &tags), &mut rng)?;
                let mut link = s.link(self.peer);
                link.send(&table)?;
                link.flush()?;
                s.report(piece + 1, self.bins.pieces());
            }
            Ok(())
        })?;
        drop((b, places, entries));
        let valid = session.step("equal", |s| equal::shared(s, self.kind, &tags))?;
        Ok(JoinedShares {
            rows: all,
            slots: 1,
            parts: [
                JoinedPart::Theirs,
                JoinedPart::Shared(ShareTable::of(&shares, &SpillRoom::new(None, None))?),
            ],
            valid: ValidEntries::Shared(valid),
        })
    }

    /// Draws the tags and masks of a piece.
    fn draw(&self, piece: u64, masks: &mut PayloadTable, tags: &mut [Block], rng: &mut Rng) {
        for function in 0..FUNCTIONS {
            let bins = self.bins.range(piece);
            let [start, end] = [bins.start, bins.end].map(|place| self.bins.bin(function, place as u32));
            prg_fill(Block::from_bytes(rng.bytes()), 0, &mut tags[start..end]);
            let width = self.layout.row_bytes();
            let random = random_bytes(rng, (end - start) * width);
            masks.bytes_mut()[start * width..end * width].copy_from_slice(&random);
        }
    }

    /// The table of tags and masked payload of a piece.
    fn answer(
        &self,
        piece: u64,
        work: &Work<'_>,
        delta: Block,
        sums: &[Block],
        (masks, tags): (&PayloadTable, &[Block]),
        rng: &mut Rng,
    ) -> Result<Vec<u8>, Error> {
        let (width, tag) = (self.shapes.width, self.shapes.tag);
        let count = work.entries.piece(piece).map(|(rows, _)| rows.len()).sum();
        let mut keys = Zeroizing::new(Vec::with_capacity(count));
        for (rows, function) in work.entries.piece(piece) {
            keys.extend(rows.iter().map(|&row| oprf::with_function(work.keys[row as usize], function)));
        }
        let mut values = Zeroizing::new(vec![0; keys.len() * width]);
        let mut slots = values.chunks_exact_mut(width);
        for (rows, function) in work.entries.piece(piece) {
            for (&row, value) in rows.iter().zip(slots.by_ref()) {
                let bin = self.bins.bin(function, work.places[row as usize][function]);
                value[..tag].copy_from_slice(&tags[bin].to_bytes()[..tag]);
                oprf::mask_row(self.layout, work.payload.row(row), masks.row(bin as u64), &mut value[tag..]);
            }
        }
        let (mut rows, mut inputs) = (Vec::new(), Zeroizing::new(vec![Block::ZERO; keys.len()]));
        okvs::rows(&self.shapes.cipher(&self.seed, 0), self.shapes.keys, &keys, &mut rows);
        let decoded = Block::bytes_of_mut(&mut inputs);
        okvs::decode(self.shapes.keys, Block::bytes_of(sums), Block::BYTES, &rows, decoded);
        oprf::lift(delta, &keys, &mut inputs);
        oprf::add_pads(&self.seed, &inputs, &keys, width, &mut values);
        okvs::rows(&self.shapes.cipher(&self.seed, 1), self.shapes.values, &keys, &mut rows);
        okvs::encode(self.shapes.values, &rows, &values, width, rng)
    }
}

/// The sender's columns.
struct Work<'a> {
    keys: &'a [Block],
    places: &'a [[u32; FUNCTIONS]],
    entries: &'a BinEntries,
    payload: oprf::SenderPayload<'a>,
}
