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
//!   for the programmed stores, and an AND tree per bin. One thread per party. What does not fit the memory
//!   lies by pieces in sealed files without a name; [`memory`] says what has to fit.
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
mod pieces;
mod price;
mod receiver;
mod sender;

pub use price::{memory, price};

use crate::begin::{by_party, peer_rows_max};
use crate::dummies::{self, ShownSizes};
use crate::identifiers::{self, IdentifierSource};
use crate::matcher::{
    MatchDisclosure, MatchDisk, MatchEstimate, MatchFeatures, MatchInput, MatchOptions, MatchOutcome,
    MatchOutput, MatchSizes, Matcher, OutputForm, PlannedRows, RowInfluence, pair_of,
};
use crate::memory::check;
use crate::payload::{PayloadLayout, TableField};
use crate::spill::SpillRoom;
use base::{Cost, Error, PartyId, Rng, Seed, limits};
use cuckoo::CuckooBins;
use kernels::{Aes128, Block, prg_fill};
use net::Session;
use ot::OtKind;
use price::PieceShapes;

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

/// Circuit-PSI.
pub struct CircuitJoin;

impl Matcher for CircuitJoin {
    fn name(&self) -> &'static str {
        "circuit-psi"
    }

    fn features(&self) -> MatchFeatures {
        // The receiver knows which of its rows lies in which bin.
        let form = OutputForm::Shares([false, true]);
        let bytes_per_row = price::HELD_PER_ROW;
        MatchFeatures { form, shown: ShownSizes::Rows, streams: true, bytes_per_row, ..MatchFeatures::SHARES }
    }

    fn memory(&self, rows: &[u64], me: PartyId, _keys: u64, options: &MatchOptions) -> u64 {
        memory(pair_of(rows), &options.layouts[1], me)
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

    fn estimate(&self, planned: &PlannedRows<'_>, _options: &MatchOptions) -> MatchEstimate {
        let places = CuckooBins::new(pair_of(planned.rows)).all();
        let why = "places for rows of the publisher, however many are in both".into();
        MatchEstimate { waits: 10.0, rows: places, why, ..MatchEstimate::of(planned) }
    }

    fn disk(&self, rows: &[u64], me: PartyId, options: &MatchOptions) -> Option<MatchDisk> {
        Some(price::disk(pair_of(rows), &options.layouts, me))
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let mut rng = session.fork_seed("bins and tables").into_rng();
        let MatchInput { rows: names, payload, options, room } = input;
        identifiers::fingerprint(names, rng.bytes(), room)?;
        let (layout, me) = (&options.layouts[1], session.me());
        let (rows, seed) = session.step("count", |s| count(s, names.rows(), options, &mut rng))?;
        check(memory(rows, layout, me), options.memory)?;
        input.expect_disk(&rows, price::disk(rows, &options.layouts, me), 0)?;
        let bins = CuckooBins::new(rows);
        if bins.all() >= limits::ROWS {
            return Err(Error::limit("limits::ROWS, bins of the join", bins.all(), limits::ROWS - 1));
        }
        let shapes = PieceShapes::new(&bins, layout);
        shapes.check()?;
        let (peer, kind, room) = (me.other(), ot_of(options), room.without(price::held(rows, layout, me)));
        let party = Party { bins, shapes, seed, layout, peer, kind, room };
        let joined = match payload {
            None => party.receive(session, names, rng),
            Some(payload) => party.send(session, names, *payload, rng),
        }?;
        let sizes = MatchSizes::apart(&rows, 1);
        let disclosed = MatchDisclosure { sizes, size_hidden: true, counts: Vec::new() };
        Ok(MatchOutcome { output: MatchOutput::Shares(joined), disclosed })
    }
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

/// What both parties know of a run, and where this one keeps its columns.
struct Party<'a> {
    bins: CuckooBins,
    shapes: PieceShapes,
    seed: [u8; 32],
    layout: &'a PayloadLayout,
    peer: PartyId,
    kind: OtKind,
    room: SpillRoom,
}

impl Party<'_> {
    /// Elements of the VOLE: an entry of the receiver's store each.
    fn elements(&self) -> u64 {
        self.shapes.elements(&self.bins)
    }
}
