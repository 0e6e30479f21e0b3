//! The match: which protocol brings the rows of the parties together, what it showed, and what it cost.

use super::agree::{Agreement, others_of};
use super::join::{self, Attached, Half, Shared};
use super::owner::{OwnerRun, total_of};
use super::spine::{self, Kept};
use super::{Event, aligned, outsourced};
use crate::align::{Aligned, Shard};
use crate::prepare::{Built, Checked, Rows};
use crate::stages::compute::UnitRows;
use base::{Cost, Error, PartyId};
use matching::dummies::Dummies;
use matching::{JoinedShares, circuit_psi, collecting, many, multi, pid, ps3i};
use num_traits::Zero;
use privacy::dummies;
use privacy::ledger::{Bytes32, Debit, MatchStart, begun_id, match_again_id, match_id};
use release::Rational;
use release::rational::small;
use report::{Disclosure, DummiesInfo, MatchCount};
use std::path::PathBuf;
use std::sync::Arc;
use study::TrialArm;
use study::{Backend, Contaminated, Protocol};

/// How many matches of one study on the same data may begin with the same dummies, on one charge: a run may
/// break off once.
const MATCHES_OF_ONE_CHARGE: u64 = 2;

/// What a match gives the computation, and what it told.
pub(crate) struct MatchedRows {
    pub rows: Placed,
    pub disclosed: Disclosure,
}

/// Rows of all parties, brought together.
pub(crate) enum Placed {
    /// This party's rows lie on a common spine.
    Spine(Arc<Aligned>),
    /// All hold shares of rows.
    Joined(Arc<join::Shared>),
    /// The same, of columns as they are: nothing is computed on them.
    Shares(Box<Attached>, Box<JoinedShares>),
}

impl Placed {
    /// How many there are; the same at all parties.
    pub fn count(&self) -> u64 {
        match self {
            Self::Spine(aligned) => aligned.union(),
            Self::Joined(shared) => shared.rows(),
            Self::Shares(_, joined) => joined.rows,
        }
    }

    /// What one unit of the computation gets of them: rows are dealt round-robin.
    pub fn unit(&self, built: &Built, me: PartyId, unit: u32, of: u32) -> Result<UnitRows, Error> {
        Ok(match self {
            Self::Spine(aligned) => UnitRows::Owned(Shard::new(aligned.clone(), built, me, unit, of)),
            Self::Joined(shared) => UnitRows::Joined(join::Dealt::new(shared.clone(), unit, of)?),
            Self::Shares(..) => {
                return Err(Error::misuse("nothing is computed on rows that are only matched"));
            }
        })
    }

    /// This party's rows by their places, where it knows them.
    pub fn aligned(&self) -> Option<&Aligned> {
        match self {
            Self::Spine(aligned) => Some(aligned),
            Self::Joined(_) | Self::Shares(..) => None,
        }
    }
}

/// Shares, and what that told and should have cost.
struct Join {
    joined: JoinedShares,
    disclosed: Disclosure,
    price: Cost,
}

/// Where own rows lie, and what that told and should have cost.
struct Spine {
    positions: Vec<u32>,
    union: u64,
    disclosed: Disclosure,
    price: Cost,
}

impl OwnerRun<'_> {
    /// Brings this party's rows in line with the others', after the ledger was charged for what that shows.
    pub(super) fn match_rows(&mut self, agreement: &Agreement) -> Result<MatchedRows, Error> {
        let rows = self.checked.rows.clone();
        self.log.begin("match", rows.len());
        let (placed, disclosed, price) = match &self.kept {
            Some(kept) => {
                let Spine { positions, union, disclosed, price } = self.reuse(kept)?;
                (Placed::Spine(Arc::new(Aligned::new(rows, &positions, union)?)), disclosed, price)
            }
            None => {
                let begun = self.begin_match(agreement)?;
                let dummies = self.dummies(agreement, &begun)?;
                self.place(dummies, agreement)?
            }
        };
        self.log.end(self.session.ledger(), "match", placed.count(), price);
        let disclosed = Disclosure {
            protocol: self.checked.study.matching.protocol.name().into(),
            uncovered: dummies::uncovered(&self.checked.study),
            dummies: dummies::charge(&self.checked.study, self.checked.me)?.map(|charge| DummiesInfo {
                epsilon: charge.epsilon.to_string(),
                rho: charge.rho.to_string(),
                delta: small(&charge.delta),
            }),
            ..disclosed
        };
        Ok(MatchedRows { rows: placed, disclosed })
    }

    fn place(
        &mut self,
        dummies: Option<Dummies>,
        agreement: &Agreement,
    ) -> Result<(Placed, Disclosure, Cost), Error> {
        let spine = match self.checked.study.matching.protocol {
            Protocol::Pid if self.checked.roster.len() > 2 => self.match_many(dummies),
            Protocol::Pid => self.match_pair(dummies, agreement),
            Protocol::MultiPid { contaminated } => self.match_multi(dummies, contaminated),
            Protocol::Aligned => self.align_by_key(),
            Protocol::SaltedKey => return self.place_by_servers(agreement),
            Protocol::Ps3i { .. } | Protocol::Collecting { .. } | Protocol::CircuitPsi => {
                return self.join(dummies);
            }
        }?;
        self.keep_spine(&spine, agreement)?;
        let Spine { positions, union, disclosed, price } = spine;
        let aligned = Aligned::new(self.checked.rows.clone(), &positions, union)?;
        Ok((Placed::Spine(Arc::new(aligned)), disclosed, price))
    }

    /// Shares of the rows that both have.
    fn join(&mut self, dummies: Option<Dummies>) -> Result<(Placed, Disclosure, Cost), Error> {
        let Checked { study, built, me, rows, engines, .. } = &self.checked;
        let (me, rows, protocol) = (*me, rows.clone(), study.matching.protocol);
        if let (true, Rows::Program(columns)) = (study.only_matches(), &*rows) {
            let attached = Attached::columns(&built.program, columns, me, dummies.is_some())?;
            let Join { joined, disclosed, price } = self.join_by(&attached, &Arms::default(), dummies)?;
            return Ok((Placed::Shares(Box::new(attached), Box::new(joined)), disclosed, price));
        }
        let plan = engines.joined().ok_or_else(|| Error::misuse("the engine of a study fits its match"))?;
        let lists = matches!(protocol, Protocol::Collecting { contaminated: Contaminated::Drop, .. });
        let order = if lists { arms(&rows) } else { Arms::default() };
        let half = Half::new(built, &rows, me, &order.rows, plan.clone())?;
        let Join { joined, disclosed, price } = self.join_by(&half.attached, &order, dummies)?;
        Ok((Placed::Joined(Arc::new(Shared::new(half, joined)?)), disclosed, price))
    }

    /// Shares by the study's protocol, of rows in the order of `order`.
    fn join_by(
        &mut self,
        attached: &Attached,
        order: &Arms,
        dummies: Option<Dummies>,
    ) -> Result<Join, Error> {
        match self.checked.study.matching.protocol {
            Protocol::Collecting { slots, degree, .. } => {
                self.collect(attached, order, [slots, degree], dummies)
            }
            Protocol::CircuitPsi => self.join_hidden(attached, dummies),
            Protocol::Ps3i { backend } => self.join_pairs(attached, backend, dummies),
            Protocol::Pid | Protocol::MultiPid { .. } | Protocol::Aligned | Protocol::SaltedKey => {
                Err(Error::misuse("a spine is no join"))
            }
        }
    }

    /// PS3I: pairs of rows, all shared.
    fn join_pairs(
        &mut self,
        attached: &Attached,
        backend: Backend,
        dummies: Option<Dummies>,
    ) -> Result<Join, Error> {
        let (me, rows) = (self.checked.me, self.checked.rows.clone());
        let layouts = &attached.layouts;
        let backend = match backend {
            Backend::PermuteShare => ps3i::ShareBackend::PermuteShare,
            Backend::Paillier => ps3i::ShareBackend::Paillier,
        };
        let options = ps3i::Options {
            memory: Some(self.match_memory()),
            dummies,
            blank: Some(attached.blank().to_vec()),
            ot: self.checked.study.compute.ot.unwrap_or_default(),
            backend,
            ..ps3i::Options::default()
        };
        let (own, peer) = (attached.own()?, &layouts[me.other().index()]);
        let identifiers = Spelled(rows.identifiers());
        let done = self.session.step("match", |s| ps3i::run(s, &identifiers, &own, peer, &options))?;
        let rows = self.by_party(done.disclosed.own, done.disclosed.peer);
        let matched = done.disclosed.matched;
        let price = ps3i::price(ps3i::Sizes { rows, matched }, layouts, options.backend, options.ot);
        let disclosed = sizes(&rows, rows[0] + rows[1] - matched);
        Ok(Join { joined: done.joined, disclosed, price })
    }

    /// Collecting PS3I: rows of the publisher with a number of slots each, all shared.
    fn collect(
        &mut self,
        attached: &Attached,
        order: &Arms,
        [slots, degree]: [u32; 2],
        dummies: Option<Dummies>,
    ) -> Result<Join, Error> {
        let (me, rows) = (self.checked.me, self.checked.rows.clone());
        let keys = [rows.identifiers().keys() as u64; 2];
        let layouts = &attached.layouts;
        let options = collecting::Options {
            memory: Some(self.match_memory()),
            slots,
            degree,
            test: order.test,
            dummies,
            blank: Some(attached.blank().to_vec()),
            ot: self.checked.study.compute.ot.unwrap_or_default(),
            ..collecting::Options::default()
        };
        let (own, peer) = (attached.own()?, &layouts[me.other().index()]);
        let identifiers = Ordered { own: Spelled(rows.identifiers()), order: &order.rows };
        let done = self.session.step("match", |s| collecting::run(s, &identifiers, &own, peer, &options))?;
        let rows = self.by_party(done.disclosed.own, done.disclosed.peer);
        let sizes = collecting::Sizes { rows, keys, slots, degree };
        let price = collecting::price(sizes, layouts, options.backend, options.ot);
        let mut disclosed = unseen(&rows);
        let mut count =
            |what: &str, count: u64| disclosed.counts.push(MatchCount { what: what.into(), count });
        if let Some(graph) = &done.disclosed.graph {
            count("pairs of rows that share an identifier", graph.pairs);
            count("of these left out: over the slots of a row or its degree", graph.capped);
            count("rows of this party with a match", graph.anchors);
            if let Some(found) = graph.contamination {
                count("rows of the other party that match the test arm", found.test);
                count("rows of the other party that match the control arm", found.control);
                count(
                    "contaminated rows of the other party: they match both arms, and were dropped",
                    found.both,
                );
            }
        }
        if let Some(test) = done.disclosed.test {
            count("rows of the publisher's test arm, known to both", test);
        }
        if done.lost > 0 {
            count("own identifiers left out: more rows have them than can match", done.lost);
        }
        Ok(Join { joined: done.joined, disclosed, price })
    }

    /// Circuit-PSI: the publisher's rows in bins, the advertiser's shared where they match.
    fn join_hidden(&mut self, attached: &Attached, dummies: Option<Dummies>) -> Result<Join, Error> {
        let (me, rows) = (self.checked.me, self.checked.rows.clone());
        let layout = &attached.layouts[1];
        let usual = circuit_psi::Options::default();
        let options = circuit_psi::Options {
            memory: Some(self.match_memory()),
            dummies,
            ot: self.checked.study.compute.ot.unwrap_or(usual.ot),
            ..usual
        };
        let own = if me == PartyId(1) { Some(attached.own()?) } else { None };
        let identifiers = Spelled(rows.identifiers());
        let done = self
            .session
            .step("match", |s| circuit_psi::run(s, &identifiers, own.as_ref(), layout, &options))?;
        let price = circuit_psi::price(done.rows, layout, options.ot);
        Ok(Join { joined: done.joined, disclosed: unseen(&done.rows), price })
    }

    /// Whether a match that was cut may begin afresh with its dummies, because the peer says that it has lost
    /// its half: counted as any beginning, as often as one charge allows.
    fn afresh(&self, agreement: &Agreement) -> Result<Option<pid::RestartPermit>, Error> {
        let id = self.begun_id(agreement);
        let Some(last) = self.lock()?.last_begun(&id)? else { return Ok(None) };
        let (debits, over) = (self.debits_of(agreement, last.number + 1)?, self.is_afresh(last.number + 1));
        let ledger = self.ledger.clone();
        Ok(Some(pid::RestartPermit(Arc::new(move || {
            if over {
                return Err(Error::refused(
                    "the peer does not have its half of the match that was cut, and the made-up rows of this \
                     match have served before: this side has dropped its half; run again, and a match begins \
                     with others",
                ));
            }
            let mut ledger = ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))?;
            let debits = |_| Ok(debits.iter().map(|(_, debit)| debit.clone()).collect());
            ledger.begin_match(&id, &debits).map(|_| ())
        }))))
    }

    /// Private-ID of two parties.
    fn match_pair(&mut self, dummies: Option<Dummies>, agreement: &Agreement) -> Result<Spine, Error> {
        let rows = self.checked.rows.clone();
        let options = pid::Options {
            memory: Some(self.match_memory()),
            resume: self.journal(),
            scratch: self.party.work.clone(),
            dummies,
            afresh: if self.goes_on() { self.afresh(agreement)? } else { None },
            ..pid::Options::default()
        };
        let resumed = options.resume.as_ref().is_some_and(|folder| folder.exists());
        let spine = self.session.step("match", |s| pid::run(s, &Spelled(rows.identifiers()), &options))?;
        let rows = self.by_party(spine.disclosed.own, spine.disclosed.peer);
        let price = pid::price(pid::Sizes { rows, union: spine.rows });
        // A match that goes on sends what is left: the price is then the most that it can cost.
        let price = if resumed { self.spent_on("match", price) } else { price };
        Ok(Spine { positions: spine.mine, union: spine.rows, disclosed: sizes(&rows, spine.rows), price })
    }

    /// What was said under a step, where a price is only an upper bound of it.
    fn spent_on(&self, name: &str, most: Cost) -> Cost {
        let said = self.session.ledger();
        let me = self.checked.me.index();
        let mut sent = said.received_by_peer(name, most.sent.len());
        sent[me] = said.sent(name);
        let within = sent.iter().zip(&most.sent).all(|(sent, most)| sent <= most);
        if within { Cost { sent, ..most } } else { most }
    }

    /// Private-ID of two parties by several identifiers.
    fn match_multi(&mut self, dummies: Option<Dummies>, contaminated: Contaminated) -> Result<Spine, Error> {
        let rows = self.checked.rows.clone();
        let matching = &self.checked.study.matching;
        let keys = matching.identifiers.len() as u64;
        let contaminated = match contaminated {
            Contaminated::Ignore => multi::ContaminatedRule::Ignore,
            Contaminated::Count => multi::ContaminatedRule::Count,
            Contaminated::Drop => multi::ContaminatedRule::Drop,
        };
        let lists = contaminated != multi::ContaminatedRule::Ignore;
        let order = if lists { arms(&rows) } else { Arms::default() };
        let options = multi::Options {
            memory: Some(self.match_memory()),
            weights: matching.identifiers.iter().map(|identifier| identifier.weight).collect(),
            contaminated,
            lists: order.test,
            dummies,
            ..multi::Options::default()
        };
        let identifiers = Ordered { own: Spelled(rows.identifiers()), order: &order.rows };
        let done = self.session.step("match", |s| multi::run(s, &identifiers, &options))?;
        let rows = self.by_party(done.spine.disclosed.own, done.spine.disclosed.peer);
        let union = done.spine.rows;
        let price = multi::price(multi::Sizes { rows, keys: [keys; 2], union });
        let mut disclosed = sizes(&rows, union);
        let mut count =
            |what: &str, count: u64| disclosed.counts.push(MatchCount { what: what.into(), count });
        if let Some(graph) = &done.graph {
            count("rows of this party that share an identifier with a row of the other", graph.candidates[0]);
            count("rows of the other party that share an identifier with one of this", graph.candidates[1]);
            count("rows of this party that share identifiers with several rows", graph.conflicts[0]);
            count("rows of the other party that share identifiers with several rows", graph.conflicts[1]);
            if let Some(contaminated) = graph.contaminated {
                count("contaminated rows of the other party: they match both arms", contaminated);
            }
        }
        if let Some([test, other]) = done.lists {
            count("rows of the publisher's test arm, known to both", test);
            count("rows of the publisher's control arm, known to both", other);
        }
        Ok(Spine { positions: order.back(done.spine.mine), union, disclosed, price })
    }

    /// Private-ID of three parties or more.
    fn match_many(&mut self, dummies: Option<Dummies>) -> Result<Spine, Error> {
        let rows = self.checked.rows.clone();
        let options =
            many::Options { memory: Some(self.match_memory()), dummies, ..many::Options::default() };
        let done = self.session.step("match", |s| many::run(s, &Spelled(rows.identifiers()), &options))?;
        let union = done.spine.rows;
        let price = many::price(&many::Sizes { rows: done.rows.clone(), union });
        let mut disclosed = sizes(&done.rows, union);
        disclosed.matched_upper_bound = disclosed.matched_upper_bound.min(union);
        for (set, count) in done.overlaps.iter().flatten().enumerate().filter(|(set, _)| set.count_ones() > 1)
        {
            let of = self.checked.roster.parties().filter(|party| set >> party.0 & 1 == 1);
            let names: Vec<String> = of.map(|party| self.checked.roster.name(party)).collect();
            let what = format!("identifiers that exactly {} have", names.join(", "));
            disclosed.counts.push(MatchCount { what, count: *count });
        }
        Ok(Spine { positions: done.spine.mine, union, disclosed, price })
    }

    /// Rows that all parties have, in the order of their public keys.
    fn align_by_key(&mut self) -> Result<Spine, Error> {
        let (rows, peers) = (self.checked.rows.clone(), others_of(self.checked));
        let positions = self.session.step("match", |s| aligned::run(s, &peers, rows.identifiers()))?;
        let (count, parties) = (rows.len(), self.checked.roster.len());
        self.tell_rows(count)?;
        let study = &self.checked.study;
        let disclosed = outsourced::disclosed(study, &vec![count; parties], count);
        let price = outsourced::price_match(study, &[])?;
        Ok(Spine { positions, union: count, disclosed, price })
    }

    /// Own number and the peer's, in the order of the parties.
    fn by_party(&self, own: u64, peer: u64) -> [u64; 2] {
        if self.checked.me == PartyId(0) { [own, peer] } else { [peer, own] }
    }

    /// What `memory` leaves to the columns of a match.
    fn match_memory(&self) -> u64 {
        self.party.memory.saturating_sub(self.checked.inputs.memory).max(matching::spill::MEMORY_MIN)
    }

    /// This run's dummies: the same in the first two matches of the same study on the same data of all
    /// parties, so that a run which broke off shows nothing new; from the third on, and by policy always,
    /// drawn for this one.
    fn dummies(&self, agreement: &Agreement, begun: &MatchStart) -> Result<Option<Dummies>, Error> {
        let Some(rule) = &self.checked.study.matching.dummies else { return Ok(None) };
        let afresh = self.is_afresh(begun.number).then_some(begun);
        let seed = self.lock()?.dummies_seed(self.checked.hash.as_bytes(), &agreement.tags, afresh)?;
        dummies::dummies(rule, &seed).map(Some)
    }

    /// Whether the match of this number has dummies of its own, and is charged for them.
    fn is_afresh(&self, number: u64) -> bool {
        number > MATCHES_OF_ONE_CHARGE || self.party.policy.fresh_dummies
    }

    /// What the sizes of the match are charged towards each peer when it begins, or goes on, in this run.
    /// Nothing without dummies, when no guarantee covers them, and nothing on a kept spine, which was charged
    /// when it was made.
    pub(super) fn match_debits(&self, agreement: &Agreement) -> Result<Vec<(PartyId, Debit)>, Error> {
        let last = self.lock()?.last_begun(&self.begun_id(agreement))?.map_or(0, |last| last.number);
        let number = if self.goes_on() { last.max(1) } else { last + 1 };
        self.debits_of(agreement, number)
    }

    fn begun_id(&self, agreement: &Agreement) -> Bytes32 {
        begun_id(self.checked.hash.as_bytes(), &agreement.tags)
    }

    /// Where a match that goes on after a cut keeps what it has done.
    fn journal(&self) -> Option<PathBuf> {
        self.party.work.as_ref().map(|folder| folder.join(self.checked.hash.full()))
    }

    /// Whether this party has its half of a match that was cut.
    fn goes_on(&self) -> bool {
        self.journal().is_some_and(|folder| pid::is_cut(&folder))
    }

    fn debits_of(&self, agreement: &Agreement, number: u64) -> Result<Vec<(PartyId, Debit)>, Error> {
        let me = self.checked.me;
        let Some(charge) = dummies::charge(&self.checked.study, me)? else { return Ok(Vec::new()) };
        if self.party.spine.is_some() {
            return Ok(Vec::new());
        }
        let study = *self.checked.hash.as_bytes();
        let peers = self.checked.roster.parties().filter(|peer| *peer != me);
        let debit = |peer: PartyId| {
            let id = match_id(&study, &agreement.tags, peer);
            let again = self.is_afresh(number);
            let debit = Debit {
                lineage: self.party.lineage()?.to_owned(),
                viewer_key: self.checked.study.parties[peer.index()].key.clone(),
                peer_key: self.checked.study.parties[peer.index()].key.clone(),
                study,
                my_tag: agreement.tags[me.index()],
                peer_tag: agreement.answer.peer_tag,
                release_id: if again { match_again_id(&id, number) } else { id },
                rho: charge.rho.clone(),
                budget: self.party.policy.budget.rational(),
                total: total_of(self.party),
                period: self.party.policy.period(),
                delta: charge.delta.clone(),
                most_delta: Rational::new(
                    1.into(),
                    num_bigint::BigInt::from(10).pow(self.party.policy.delta_places.into()),
                ),
                tau: Rational::zero(),
                protects: true,
            };
            Ok((peer, debit))
        };
        peers.map(debit).collect()
    }

    /// Counts the match and charges it, unless it goes on after a cut with the dummies that it began with.
    fn begin_match(&self, agreement: &Agreement) -> Result<MatchStart, Error> {
        let id = self.begun_id(agreement);
        if self.goes_on()
            && let Some(last) = self.lock()?.last_begun(&id)?
        {
            return Ok(last);
        }
        let of_number = |number| -> Result<Vec<Debit>, Error> {
            Ok(self.debits_of(agreement, number)?.into_iter().map(|(_, debit)| debit).collect())
        };
        let charges = !of_number(1)?.is_empty();
        if charges && self.goes_on() {
            // Its rows are not these: it could not go on, and nothing is charged for that.
            return Err(pid::other_rows());
        }
        let begun = self.lock()?.begin_match(&id, &of_number)?;
        if charges && self.is_afresh(begun.number) {
            (self.watch.events)(Event::Note(format!(
                "match {} of this study on these data: its made-up rows are drawn anew, and charged again",
                begun.number
            )));
        }
        Ok(begun)
    }

    /// Own rows on a kept spine; that all parties use the same was agreed on before.
    fn reuse(&self, kept: &Kept) -> Result<Spine, Error> {
        let disclosed = Disclosure { kept_spine: true, ..kept.disclosed() };
        let positions = kept.positions(self.checked.rows.identifiers())?;
        Ok(Spine {
            positions,
            union: disclosed.union,
            disclosed,
            price: Cost::zero(self.checked.roster.len()),
        })
    }

    fn keep_spine(&self, spine: &Spine, agreement: &Agreement) -> Result<(), Error> {
        let Some(path) = &self.party.keep_spine else { return Ok(()) };
        let study = &self.checked.study;
        let identifiers = self.checked.rows.identifiers();
        let path = spine::file(path, study);
        let kept = Kept::new(path, agreement.name, &spine.disclosed, identifiers, &spine.positions);
        kept.write(study, self.checked.me)
    }
}

/// What two sizes and the union's tell.
pub(super) fn sizes(rows: &[u64], union: u64) -> Disclosure {
    let all: u64 = rows.iter().sum();
    Disclosure { rows: rows.to_vec(), union, matched_upper_bound: all - union, ..Disclosure::default() }
}

/// What two sizes tell where nobody learns how many rows matched.
fn unseen(rows: &[u64; 2]) -> Disclosure {
    let [a, b] = *rows;
    let matched_upper_bound = a.min(b);
    Disclosure {
        rows: rows.to_vec(),
        union: a + b,
        matched_upper_bound,
        size_hidden: true,
        ..Disclosure::default()
    }
}

/// Rows by arm: those of the test arm before the others.
#[derive(Default)]
struct Arms {
    /// Own row by place; empty for the order of the file.
    rows: Vec<u32>,
    /// How many are of the test arm, at the party that knows.
    test: Option<u64>,
}

impl Arms {
    /// Results by place, in the order of the file.
    fn back(&self, by_place: Vec<u32>) -> Vec<u32> {
        if self.rows.is_empty() {
            return by_place;
        }
        let mut by_row = vec![0; by_place.len()];
        self.rows.iter().zip(by_place).for_each(|(row, value)| by_row[*row as usize] = value);
        by_row
    }
}

fn arms(rows: &Rows) -> Arms {
    let Rows::Publisher(publisher) = rows else { return Arms::default() };
    let of =
        |arm: TrialArm| (0..).zip(&publisher.arm).filter(move |(_, met)| **met == arm).map(|(row, _)| row);
    let mut rows: Vec<u32> = of(TrialArm::Test).collect();
    let test = Some(rows.len() as u64);
    rows.extend(of(TrialArm::Control));
    Arms { rows, test }
}

/// Normalised identifiers as matching reads them.
pub(super) struct Spelled<'a>(pub &'a data::RowKeys);

impl matching::IdentifierSource for Spelled<'_> {
    fn rows(&self) -> u64 {
        self.0.len() as u64
    }

    fn keys(&self) -> usize {
        self.0.keys()
    }

    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        into.extend_from_slice(self.0.get(row as usize, key));
        Ok(())
    }
}

/// Identifiers in another order; an empty one is that of the file.
pub(super) struct Ordered<'a> {
    pub own: Spelled<'a>,
    pub order: &'a [u32],
}

impl matching::IdentifierSource for Ordered<'_> {
    fn rows(&self) -> u64 {
        self.own.rows()
    }

    fn keys(&self) -> usize {
        self.own.keys()
    }

    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let row = self.order.get(row as usize).copied().unwrap_or(row);
        self.own.read(row, key, into)
    }
}
