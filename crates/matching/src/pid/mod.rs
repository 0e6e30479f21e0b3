//! Private-ID (PID) for one unique identifier per row.
//!
//! * **Functionality.** Party 0 (`C`) holds identifiers `X`, party 1 (`P`) identifiers `Y`, each without repeats.
//!   Both get the spine: the sorted list of pseudorandom universal identifiers of the union, and each the positions of
//!   its own rows in it. Equal identifiers share a position.
//! * **Security.** Semi-honest, one party corrupted: DDH on Curve25519 (about 126 bits), `H` a random oracle. Peers
//!   that send malformed or repeated elements are caught by name; other deviations are not.
//! * **Who learns what.** Each: both sizes and the size of the union, hence of the intersection. Which rows are
//!   shared stays hidden, **except from crafted inputs**: who fills its list with fabricated identifiers and one
//!   target reads the target's membership off the exact size. `docs/protocols/pid.md` says what follows from that.
//! * **Paper.** Section 2.3 of the private randomised trials paper, protocol of its reference 8. Letters are theirs.
//!   Deviations: x-only group elements; `e_c` is sorted as a whole instead of shuffled as a whole (both hide the order
//!   of `u_c`; sorted, a repeat shows); u and v stream in both directions at once; a digest of the spine is compared
//!   at the end; during long multiplications of the difference a byte now and then says that a party is at work.
//! * **Cost.** Per party `2 (|X| + |Y|) + |X \ Y| + |Y \ X|` multiplications, besides hashing its own rows; 208 bytes
//!   per row in total at equal sizes and half overlap. [`price`] is exact and a test holds it to the ledger.
//!
//! ```text
//!    C: c1, c2                                                  P: p1, p2
//! u      u_c = shuffle{H(x)^c1}               ->                u_c
//!        u_p                                  <-                u_p = shuffle{H(y)^p1}
//! v      v_c                                  <-                t = u_c^p1, v_c = t^p2
//!        e_p = u_p^c1, v_p = e_p^c2           ->                v_p
//! e      e_c                                  <-                e_c = sort(t)
//! diff.  s_p = e_p \ e_c, s'_c = (e_c \ e_p)^c2 ->              s_p, s'_c
//!        s'_p                                 <-                s'_p = s_p^p2
//!        own: v_c^c2, others: s'_p^c2                           own: v_p^p2, others: s'_c^p2
//! ```

mod price;
mod steps;

pub use price::{CHUNK, multiplications, price, price_range};

use crate::group::{self, Element, Exponent};
use crate::identifiers::{self, Identifiers};
use base::{Error, Kind, PartyId, limits};
use net::{Link, Session};
use price::{Move, PULSE, chunks, stream};
use std::fmt;
use std::ops::Range;
use steps::{Fault, Row};

/// How this party runs the protocol. Nothing here changes a byte on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Cores to multiply on; at least 1.
    pub threads: usize,
    /// The most rows accepted from the peer.
    pub peer_rows_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads, peer_rows_max: limits::ROWS }
    }
}

/// The public sizes of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of party 0 and of party 1.
    pub rows: [u64; 2],
    /// Rows of the union: at least the larger of `rows`, at most their sum.
    pub union: u64,
}

impl Sizes {
    /// Rows of the intersection.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.rows[0] + self.rows[1] - self.union
    }

    /// Rows that only party 0 and only party 1 has.
    fn only(&self) -> [u64; 2] {
        self.rows.map(|rows| rows - self.shared())
    }
}

/// What a party learnt about the other beyond the spine: exact sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disclosed {
    /// Rows of this party, which the peer learnt.
    pub own: u64,
    /// Rows of the peer.
    pub peer: u64,
    /// Rows of the union, hence of the intersection; both learnt it.
    pub union: u64,
}

/// Where this party's rows lie in the spine of both.
#[derive(Clone, PartialEq, Eq)]
pub struct Spine {
    /// Rows of the spine: the size of the union.
    pub rows: u64,
    /// The position of each own row in the spine, in the order of the input.
    pub mine: Vec<u32>,
    /// What was disclosed.
    pub disclosed: Disclosed,
}

/// Positions are the data of this party: only sizes print.
impl fmt::Debug for Spine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spine").field("disclosed", &self.disclosed).finish_non_exhaustive()
    }
}

/// The paper's letters for party 0 and party 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    C,
    P,
}

/// One party's half of Private-ID with the other party of a two-party session. Memory: about 105 bytes per row of one
/// side when both have as many, besides the identifiers themselves.
///
/// # Errors
/// `Input` when an own identifier repeats; `Limit` when a size is over a bound; `Malformed` or `Deviated` when the peer
/// sends what the protocol does not; `Channel` when it is gone. All name party, peer and step.
pub fn run(session: &mut Session, own: &dyn Identifiers, options: &Options) -> Result<Spine, Error> {
    if session.roster().len() != 2 {
        return Err(Error::misuse("Private-ID is a protocol of two parties"));
    }
    session.step("pid", |session| {
        let mut rng = session.fork_seed("order and keys").into_rng();
        identifiers::check_unique(own, &mut rng)?;
        let role = if session.me() == PartyId(0) { Role::C } else { Role::P };
        let order = steps::secret_order(own.rows(), &mut rng);
        let mut party = Party {
            role,
            peer: session.me().other(),
            threads: options.threads,
            keys: [Exponent::random(&mut rng), Exponent::random(&mut rng)],
            rows: [own.rows(), 0],
        };
        party.rows[1] = session.step("count", |s| party.count(s, options))?;
        let (own, others) = party.columns(session, own, order)?;
        party.spine(session, own, others)
    })
}

/// What a party holds during a run. The keys are of this run only.
struct Party {
    role: Role,
    peer: PartyId,
    threads: usize,
    /// `c1, c2` or `p1, p2`.
    keys: [Exponent; 2],
    /// Own rows, the peer's rows.
    rows: [u64; 2],
}

impl Party {
    /// Both tell their sizes. Returns the peer's.
    fn count(&self, session: &mut Session, options: &Options) -> Result<u64, Error> {
        let [own, _] = self.rows;
        let mut link = session.link(self.peer);
        link.send(&own.to_le_bytes())?;
        let peer = link.recv_count("rows of the peer", options.peer_rows_max.min(limits::ROWS))?;
        // Positions in the spine are 32-bit numbers, whatever the overlap turns out to be.
        if own + peer > limits::ROWS {
            let (name, value) = ("limits::ROWS, rows of both sides", own + peer);
            return Err(Error::new(
                session.at(Some(self.peer)),
                Kind::Limit { name, value, cap: limits::ROWS },
            ));
        }
        Ok(peer)
    }

    /// Steps 1 to 6: the universal identifiers of own rows and of the rows that only the peer has.
    fn columns(
        &self,
        session: &mut Session,
        identifiers: &dyn Identifiers,
        order: Vec<u32>,
    ) -> Result<(Vec<Row>, Vec<Element>), Error> {
        let (own, mut e_peer) = self.stream(session, identifiers, &order)?;
        drop(order);
        // A peer that repeats an element could tell it apart later: nothing of `e` leaves before this check.
        session.step("e", |s| steps::sort_distinct(&mut e_peer).map_err(|f| fault(&s.link(self.peer), f)))?;
        let others = match self.role {
            Role::C => self.differences_of_c(session, e_peer)?,
            Role::P => self.differences_of_p(session, e_peer)?,
        };
        Ok((own, others))
    }

    /// Steps 1 to 3 in chunks: own rows as universal identifiers, and `e` of the peer's rows.
    fn stream(
        &self,
        session: &mut Session,
        identifiers: &dyn Identifiers,
        order: &[u32],
    ) -> Result<(Vec<Row>, Vec<Element>), Error> {
        let [first, second] = &self.keys;
        let [own_rows, peer_rows] = self.rows;
        let mut own: Vec<Row> = reserve("own rows", own_rows)?;
        let mut e_peer: Vec<Element> = reserve("rows of the peer", peer_rows)?;
        let mut buffer = [vec![[0; 32]; CHUNK as usize], vec![[0; 32]; CHUNK as usize]];
        let mut done = 0;
        for step in stream(own_rows, peer_rows) {
            let [once, twice] = &mut buffer;
            done += match step {
                Move::SendU(rows) => session.step("u", |s| {
                    let u = &mut once[..len(&rows)];
                    let order = &order[rows.start as usize..rows.end as usize];
                    let names = |i: usize, name: &mut Vec<u8>| {
                        identifiers.read(order[i], 0, name)?;
                        identifiers.domain(order[i]).mark(name);
                        Ok(())
                    };
                    group::hash_mul_batch(&names, first, u, self.threads)?;
                    s.link(self.peer).send(u.as_flattened())?;
                    Ok(len(&rows))
                })?,
                Move::AnswerV(rows) => {
                    let (e, v) = (&mut once[..len(&rows)], &mut twice[..len(&rows)]);
                    session.step("u", |s| {
                        let mut link = s.link(self.peer);
                        link.recv(e.as_flattened_mut())?;
                        group::mul_twice_batch(e, v, first, second, self.threads)
                            .map_err(|refusal| fault(&link, refusal.into()))
                    })?;
                    e_peer.extend_from_slice(e);
                    session.step("v", |s| s.link(self.peer).send(v.as_flattened()))?;
                    2 * len(&rows)
                }
                Move::TakeV(rows) => {
                    let uids = &mut once[..len(&rows)];
                    session.step("v", |s| {
                        let mut link = s.link(self.peer);
                        link.recv(uids.as_flattened_mut())?;
                        group::mul_batch(uids, second, self.threads).map_err(|r| fault(&link, r.into()))
                    })?;
                    let order = &order[rows.start as usize..rows.end as usize];
                    own.extend(uids.iter().copied().zip(order.iter().copied()));
                    len(&rows)
                }
            } as u64;
            session.report(done, 2 * (own_rows + peer_rows));
        }
        Ok((own, e_peer))
    }

    /// C's half of steps 2 and 4 to 6: the universal identifiers of the rows that only P has.
    fn differences_of_c(&self, session: &mut Session, mut e_p: Vec<Element>) -> Result<Vec<Element>, Error> {
        let [rows_c, _] = self.rows;
        let mut e_c = session.step("e", |s| {
            let mut link = s.link(self.peer);
            let e_c = recv_column(&mut link, "e_c", rows_c)?;
            steps::check_sorted(&e_c).map_err(|f| fault(&link, f))?;
            Ok(e_c)
        })?;
        steps::differences(&mut e_p, &mut e_c);
        let (mut s_p, mut s_c) = (e_p, e_c);
        s_p.shrink_to_fit();
        session.step("difference", |s| {
            let only_p = s_p.len() as u64;
            let mut link = s.link(self.peer);
            link.send(&only_p.to_le_bytes())?;
            send_column(&mut link, &s_p)?;
            self.mul(s, &mut s_c, only_p)?;
            // Elements of one product with a secret key: sorted, their order says nothing of e_c's.
            s_c.sort_unstable();
            let (mut link, only_c) = (s.link(self.peer), s_c.len() as u64);
            exchange(&mut link, &s_c, &mut s_p)?;
            drop(s_c);
            steps::check_canonical(&s_p).map_err(|f| fault(&link, f))?;
            self.mul(s, &mut s_p, only_c)?;
            Ok(s_p)
        })
    }

    /// P's half of steps 2 and 4 to 6: the universal identifiers of the rows that only C has.
    fn differences_of_p(&self, session: &mut Session, e_c: Vec<Element>) -> Result<Vec<Element>, Error> {
        let [rows_p, rows_c] = self.rows;
        session.step("e", |s| send_column(&mut s.link(self.peer), &e_c))?;
        drop(e_c);
        session.step("difference", |s| {
            let mut link = s.link(self.peer);
            let only_p = link.recv_count("rows that only we have", rows_p)?;
            let shared = rows_p - only_p;
            let only_c = rows_c
                .checked_sub(shared)
                .ok_or_else(|| link.blame("the intersection is not larger than its own set"))?;
            let mut s_p = recv_column(&mut link, "s_p", only_p)?;
            steps::check_sorted(&s_p).map_err(|f| fault(&link, f))?;
            self.mul(s, &mut s_p, only_c)?;
            let (mut link, mut s_c) = (s.link(self.peer), vec_of("s'_c", only_c)?);
            exchange(&mut link, &s_p, &mut s_c)?;
            drop(s_p);
            steps::check_sorted(&s_c).map_err(|f| fault(&link, f))?;
            self.mul(s, &mut s_c, only_p)?;
            Ok(s_c)
        })
    }

    /// Multiplies a column by the second key, while the peer does so with `peer_rows` rows of its own. A byte after
    /// every piece keeps a peer with less to do from taking long work for silence.
    fn mul(&self, session: &mut Session, column: &mut [Element], peer_rows: u64) -> Result<(), Error> {
        let (mut done, total) = (0, column.len() as u64);
        for piece in column.chunks_mut(PULSE as usize) {
            let mut link = session.link(self.peer);
            group::mul_batch(piece, &self.keys[1], self.threads).map_err(|r| fault(&link, r.into()))?;
            link.send(&[0])?;
            // What is queued leaves with the next receive, so receive nothing.
            link.recv(&mut [])?;
            done += piece.len() as u64;
            session.report(done, total);
        }
        (0..peer_rows.div_ceil(PULSE)).try_for_each(|_| session.link(self.peer).recv(&mut [0]))
    }

    /// Sorts both columns into the spine and compares its digest with the peer's.
    fn spine(
        &self,
        session: &mut Session,
        mut own: Vec<Row>,
        mut others: Vec<Element>,
    ) -> Result<Spine, Error> {
        session.step("spine", |s| {
            let mut link = s.link(self.peer);
            let union = own.len() as u64 + others.len() as u64;
            let (mine, digest) = steps::spine(&mut own, &mut others).map_err(|f| fault(&link, f))?;
            link.send(&digest)?;
            if link.recv_array()? != digest {
                return Err(link.blame("both spines are the same"));
            }
            let disclosed = Disclosed { own: self.rows[0], peer: self.rows[1], union };
            Ok(Spine { rows: union, mine, disclosed })
        })
    }
}

fn fault(link: &Link<'_>, fault: Fault) -> Error {
    match fault {
        Fault::Malformed(what) => link.malformed(what),
        Fault::Deviated(check) => link.blame(check),
    }
}

fn len(rows: &Range<u64>) -> usize {
    (rows.end - rows.start) as usize
}

/// Room for `rows` items whose number a peer may have told: too many is an error, not an abort. Pages are touched only
/// as data arrives.
fn reserve<T>(name: &'static str, rows: u64) -> Result<Vec<T>, Error> {
    let mut column = Vec::new();
    match column.try_reserve_exact(rows as usize) {
        Ok(()) => Ok(column),
        Err(_) => Err(Error::new(
            base::At::default(),
            Kind::Io(format!(
                "no memory for {rows} elements ({name}); match fewer rows or use a larger machine"
            )),
        )),
    }
}

fn vec_of(name: &'static str, rows: u64) -> Result<Vec<Element>, Error> {
    let mut column = reserve(name, rows)?;
    column.resize(rows as usize, [0; 32]);
    Ok(column)
}

fn send_column(link: &mut Link<'_>, column: &[Element]) -> Result<(), Error> {
    column.chunks(CHUNK as usize).try_for_each(|piece| link.send(piece.as_flattened()))
}

/// Receives `rows` elements. Memory grows only as they arrive.
fn recv_column(link: &mut Link<'_>, name: &'static str, rows: u64) -> Result<Vec<Element>, Error> {
    let mut column: Vec<Element> = reserve(name, rows)?;
    for piece in chunks(rows) {
        column.resize(piece.end as usize, [0; 32]);
        link.recv(column[piece.start as usize..].as_flattened_mut())?;
    }
    Ok(column)
}

/// The chunks of two columns that travel against each other, in pairs; the shorter one ends in empty chunks.
fn pairs(send: u64, recv: u64) -> impl Iterator<Item = (Range<u64>, Range<u64>)> {
    let (mut out, mut into) = (chunks(send), chunks(recv));
    std::iter::from_fn(move || match (out.next(), into.next()) {
        (None, None) => None,
        (a, b) => Some((a.unwrap_or(0..0), b.unwrap_or(0..0))),
    })
}

/// Sends one column and receives another, chunk by chunk, so that neither side waits for the other's window.
fn exchange(link: &mut Link<'_>, send: &[Element], recv: &mut [Element]) -> Result<(), Error> {
    for (out, into) in pairs(send.len() as u64, recv.len() as u64) {
        if !out.is_empty() {
            link.send(send[out.start as usize..out.end as usize].as_flattened())?;
        }
        if !into.is_empty() {
            link.recv(recv[into.start as usize..into.end as usize].as_flattened_mut())?;
        }
    }
    Ok(())
}
