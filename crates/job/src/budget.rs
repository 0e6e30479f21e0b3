//! What this party's ledger says of a study before anybody is met: whether these data are known under another
//! name, who sees them for the first time, and whether the budget pays.

use crate::prepare::Checked;
use crate::run::agree::own_tag;
use crate::run::ready;
use base::{BudgetShortfall, Error, PartyId};
use data::sketch::{ALIKE, PURPOSE, Sketch};
use num_traits::{Signed, Zero};
use page::numbers::power;
use privacy::dummies;
use privacy::ledger::{self, Bytes32, Ledger, PUBLIC};
use privacy::scales::{most_charged, most_seen};
use program::Viewer;
use release::Rational;
use release::rational::{shown, small};
use serde::Serialize;
use study::Participant;
use study::party::PartySetup;

/// What one other viewer has spent of its budget, and what a study takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Towards {
    /// The viewer: a party's name, or `public` where the study has a result that anybody may see.
    pub viewer: String,
    /// zCDP spent so far: a decimal where it is one, else `p/q`.
    pub spent: String,
    /// Most that it may come to.
    pub budget: String,
    /// Most that this study takes.
    pub takes: String,
    /// What of that is for the sizes of a match, which from the third match on are charged each time.
    pub sizes: String,
    /// What of that is for results of this study's other runs, which anybody may see.
    pub published: String,
    /// How many of the study's runs that is for.
    pub runs: usize,
    /// What of that was charged before and is not taken again, as long as the peer's data are those of the
    /// last run, too.
    pub charged: String,
    /// What of the budget is left when this study has taken what it takes; absent where that is not there.
    pub left: Option<String>,
    /// What of the bound of a period is spent, in words; absent where there is no such bound.
    pub period: Option<String>,
    /// Whether the rest is left.
    pub pays: bool,
}

/// What a ledger says of a study.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outlook {
    /// The lineage of this party's data, where the study charges anything.
    pub lineage: Option<String>,
    /// Whether the ledger is there; a run makes it.
    pub ledger_is_new: bool,
    /// By other viewer, in the order of the study; last, the public, over all runs of the study.
    pub towards: Vec<Towards>,
    /// Spent by all viewers of the lineage together.
    pub spent_by_all: String,
    /// Most that this may come to; absent: no bound but each viewer's.
    pub total: Option<String>,
    /// What the operator should know.
    pub notes: Vec<String>,
    /// Why a run would be refused.
    pub refusals: Vec<String>,
    /// The numbers of the first bound that does not allow it.
    #[serde(skip)]
    pub shortfall: Option<BudgetShortfall>,
}

/// Looks into this party's ledger and changes nothing; a ledger that is not there yet is empty.
///
/// # Errors
/// When the ledger is none, is empty or damaged, or its folder is not there.
pub fn outlook(party: &PartySetup, runs: &[Checked]) -> Result<Outlook, Error> {
    let mut ledger = Ledger::look(&party.ledger)?;
    // In this copy alone: a run writes it down.
    let line = runs.first().map_or(&[][..], |run| run.identity.line());
    line.iter().try_for_each(|one| ledger.succeed(one).map(|_| ()))?;
    let mut outlook = Outlook { ledger_is_new: ledger.is_new(), ..Outlook::default() };
    outlook.refuse(too_small(party, runs).err());
    outlook.refuse(stopped(party, runs, &ledger).err());
    if !charging(party, runs)? {
        return Ok(outlook);
    }
    let lineage = party.lineage()?;
    outlook.lineage = Some(lineage.to_owned());
    outlook.notes = runs
        .iter()
        .map(|run| strangers(&ledger, lineage, (run, &fellows(runs)), KeyKnowledge::Ledger))
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    match liken(party, runs, &ledger) {
        Ok(likeness) => outlook.notes.extend(stray(lineage, likeness.as_ref(), &ledger)?),
        Err(error) => outlook.refuse(Some(error)),
    }
    let before = ledger.spent_by_all(lineage)?;
    outlook.spent_by_all = shown(&before);
    let mut all = before.clone();
    let known = runs.iter().map(|run| KnownRun::of(run, &ledger, lineage)).collect::<Result<Vec<_>, _>>()?;
    let public = known.iter().map(KnownRun::public).collect::<Result<Vec<_>, _>>()?;
    let published = public.iter().fold(RunCharges::default(), |all, run| all.and(run));
    for (known, shared) in known.iter().zip(&public) {
        let run = known.run;
        let mut to_all = shared.takes.clone();
        for (i, member) in others(run) {
            let own = known.charges(party, (PartyId(i as u8), member))?;
            let rest = own.rest();
            // What everybody sees counts once.
            all += &rest - to_all.clone().min(rest.clone());
            to_all = to_all.min(rest);
            if own.charged.is_zero() {
                let spent = ledger.spent_delta(lineage, &member.key)?;
                outlook.refuse(delta(party, run, &spent, (lineage, member))?);
            }
            let elsewhere = published.without(shared);
            outlook.account(party, &ledger, (&member.name, &member.key), &own, &elsewhere)?;
        }
        all += to_all;
    }
    if !published.takes.is_zero() {
        outlook.account(party, &ledger, (PUBLIC, PUBLIC), &published, &RunCharges::default())?;
    }
    outlook.readers(party, runs, &ledger, &published)?;
    if let Some(total) = &party.policy.total {
        outlook.bound_by(total, [&before, &all], lineage);
    }
    Ok(outlook)
}

impl Outlook {
    /// Notes what a run would be refused for, if it would.
    fn refuse(&mut self, refusal: Option<Error>) {
        if let Some(error) = refusal {
            self.shortfall = self.shortfall.take().or_else(|| error.shortfall().cloned());
            self.refusals.push(error.to_string());
        }
    }

    /// What a viewer has spent of its budget, and whether that pays for its `own` charges and for what it
    /// can read of other runs.
    fn account(
        &mut self,
        party: &PartySetup,
        ledger: &Ledger,
        (viewer, key): (&str, &str),
        own: &RunCharges,
        elsewhere: &RunCharges,
    ) -> Result<(), Error> {
        let lineage = party.lineage()?;
        let budget = party.policy.budget.clone();
        let spent = ledger.spent(lineage, key)?;
        let RunCharges { takes, charged, sizes, runs, .. } = own.and(elsewhere);
        let rest = own.rest() + elsewhere.rest();
        self.bears(ledger, (lineage, key), (&rest, &(own.distance.clone() + &elsewhere.distance)));
        let pays = &spent + &rest <= budget;
        let left = pays.then(|| shown(&(&budget - &spent - &rest)));
        let mut within = None;
        if let Some(period) = party.policy.period() {
            let before = ledger.spent_within(lineage, key, &period)?;
            within = Some(format!("{} of {}", shown(&before), period.words()));
            if rest.is_positive() {
                self.refuse(ledger.check_period((lineage, key), &rest, &period).err());
            }
        }
        if !pays {
            self.overspent([&spent, &budget, &rest], lineage, &format!("{viewer}; this study takes"));
        }
        let [spent, budget] = [&spent, &budget].map(shown);
        let [takes, charged, sizes, published] = [&takes, &charged, &sizes, &elsewhere.takes].map(shown);
        let viewer = viewer.to_owned();
        self.towards.push(Towards {
            viewer,
            spent,
            budget,
            takes,
            sizes,
            published,
            runs,
            charged,
            left,
            period: within,
            pays,
        });
        Ok(())
    }

    /// Refuses noise that could be told from its law beside what a viewer has seen: what a run would be
    /// refused for when it pays.
    fn bears(&mut self, ledger: &Ledger, towards: (&str, &str), noise: (&Rational, &Rational)) {
        self.refuse(ledger.check_noise(towards, noise).err());
    }

    /// Viewers of these data who take no part can read what becomes public: their budgets bound it as well.
    fn readers(
        &mut self,
        party: &PartySetup,
        runs: &[Checked],
        ledger: &Ledger,
        published: &RunCharges,
    ) -> Result<(), Error> {
        let (lineage, rest) = (party.lineage()?, published.rest());
        if !rest.is_positive() {
            return Ok(());
        }
        let part = |key: &str| runs.iter().flat_map(|run| &run.study.parties).any(|member| member.key == key);
        for key in ledger.viewers_of(lineage)?.iter().filter(|key| *key != PUBLIC && !part(key)) {
            let spent = ledger.spent(lineage, key)?;
            self.bears(ledger, (lineage, key), (&rest, &published.distance));
            if &spent + &rest > party.policy.budget {
                let budget = &party.policy.budget;
                let who = "who takes no part and can read what becomes public; this study publishes";
                self.overspent([&spent, budget, &rest], lineage, &format!("{key}, {who}"));
            }
        }
        Ok(())
    }

    /// A budget does not pay for the rest; `who` is its viewer and what the study does.
    fn overspent(&mut self, [spent, budget, rest]: [&Rational; 3], lineage: &str, who: &str) {
        let refused = Error::refused(format!(
            "budget: {} of {} spent on lineage {lineage} by {who} up to {} more: {}",
            shown(spent),
            shown(budget),
            shown(rest),
            ledger::MORE_BUDGET
        ));
        let shortfall = ledger::shortfall("policy.budget", spent, budget, rest);
        self.refuse(Some(refused.falling_short(shortfall)));
    }

    /// Compares what all viewers together would have spent with the most that they may.
    fn bound_by(&mut self, most: &Rational, [before, all]: [&Rational; 2], lineage: &str) {
        let most_shown = shown(most);
        if all > most {
            let refused = Error::refused(format!(
                "policy.total: {} of {most_shown} spent on lineage {lineage} by all viewers together; with \
                 this study it would be up to {}",
                self.spent_by_all,
                shown(all)
            ));
            let shortfall = ledger::shortfall("policy.total", before, most, &(all - before));
            self.refuse(Some(refused.falling_short(shortfall)));
        }
        self.total = Some(most_shown);
    }
}

/// What runs of a study charge towards a viewer.
#[derive(Clone, Debug, Default)]
struct RunCharges {
    /// At most.
    takes: Rational,
    /// Of that, what was charged before and is not taken again on the same data at both sides.
    charged: Rational,
    /// Of that, for the sizes of a match.
    sizes: Rational,
    /// How many runs charge anything.
    runs: usize,
    /// How far the noise that is still to be charged may be from its law.
    distance: Rational,
}

impl RunCharges {
    fn and(&self, other: &Self) -> Self {
        let Self { takes, charged, sizes, runs, distance } = self;
        Self {
            takes: takes + &other.takes,
            charged: charged + &other.charged,
            sizes: sizes + &other.sizes,
            runs: runs + other.runs,
            distance: distance + &other.distance,
        }
    }

    /// The others of a sum.
    fn without(&self, one: &Self) -> Self {
        let Self { takes, charged, sizes, runs, distance } = self;
        Self {
            takes: takes - &one.takes,
            charged: charged - &one.charged,
            sizes: sizes - &one.sizes,
            runs: runs - one.runs,
            distance: distance - &one.distance,
        }
    }

    /// What is still to be charged.
    fn rest(&self) -> Rational {
        (&self.takes - &self.charged).max(Rational::zero())
    }
}

/// A run beside what this party's ledger has of it.
struct KnownRun<'a> {
    run: &'a Checked,
    ledger: &'a Ledger,
    lineage: &'a str,
    /// Of this party's data: made once, of all rows.
    data_tag: Bytes32,
}

impl<'a> KnownRun<'a> {
    fn of(run: &'a Checked, ledger: &'a Ledger, lineage: &'a str) -> Result<Self, Error> {
        Ok(Self { run, ledger, lineage, data_tag: run.data_tag(ledger)? })
    }

    /// What it charges for what anybody may see.
    fn public(&self) -> Result<RunCharges, Error> {
        let run = self.run;
        let takes = most_charged(&run.study, &run.built.audit, Viewer::Public);
        if takes.is_zero() || others(run).next().is_none() {
            return Ok(RunCharges::default());
        }
        let [charged, before] = self.charged_before(PUBLIC)?;
        let distance = run.built.distance_to(Viewer::Public);
        let distance = (distance - before).max(Rational::zero());
        Ok(RunCharges { takes, charged, sizes: Rational::zero(), runs: 1, distance })
    }

    /// What it charges towards another of its parties, what everybody sees included.
    fn charges(
        &self,
        party: &PartySetup,
        (viewer, member): (PartyId, &Participant),
    ) -> Result<RunCharges, Error> {
        let run = self.run;
        let sizes = match party.spine.is_some() {
            true => Rational::zero(),
            false => dummies::charge(&run.study, run.me)?.map_or_else(Rational::zero, |charge| charge.rho),
        };
        let takes = most_seen(&run.study, &run.built.audit, viewer) + &sizes;
        let [charged, before] = self.charged_before(&member.key)?;
        let distance = run.built.distance_to(viewer.into()) + run.built.distance_to(Viewer::Public);
        let distance = (distance - before).max(Rational::zero());
        Ok(RunCharges { takes, charged, sizes, runs: 1, distance })
    }

    /// What of a study was charged before towards a viewer with this key, and would not be taken again on the
    /// same data at both sides: rho, and distance of its noise.
    fn charged_before(&self, viewer: &str) -> Result<[Rational; 2], Error> {
        let tag = own_tag(self.run, &self.data_tag);
        self.ledger.charged_before(self.run.hash.as_bytes(), self.lineage, viewer, &tag)
    }
}

/// What stops a run before it is charged: a ledger that is not the one of before, or a peer that broke off.
fn stopped(party: &PartySetup, runs: &[Checked], ledger: &Ledger) -> Result<(), Error> {
    ready::forgotten(party)?;
    for run in runs {
        ready::in_place(ledger, &run.study)?;
        ready::in_time(ledger, party, run)?;
    }
    ready::unclaimed(ledger, runs)?;
    ledger.verify()?;
    let lineage = party.lineage.clone().unwrap_or_default();
    runs.iter().try_for_each(|run| met_another(party, run, ledger, &lineage))?;
    for run in runs.iter().filter(|run| !run.built.program.mechanisms.is_empty()) {
        for (_, member) in others(run) {
            let towards = ledger::PeerLineage { peer: member.key.clone(), lineage: lineage.clone() };
            if let Some(reason) = ledger.barred(&towards, &[])? {
                return Err(ledger::barred_error(&party.ledger, &towards, &reason));
            }
        }
    }
    Ok(())
}

/// Refuses a peer whose ledger was not the one that it signed for when it was met last.
fn met_another(party: &PartySetup, run: &Checked, ledger: &Ledger, lineage: &str) -> Result<(), Error> {
    for (_, member) in others(run) {
        let Some(bar) = ledger.was_another(&member.key)? else { continue };
        let towards = ledger::PeerLineage { peer: member.key.clone(), lineage: lineage.to_owned() };
        return Err(Error::refused(format!(
            "{} ({}). A run is refused unless {} has put back its newest copy or taken over what it signed; \
             to go on with its ledger as it is: {}",
            bar.reason.replace("this peer", &member.name),
            bar.at,
            member.name,
            ledger::allow_command(&party.ledger, &towards)
        )));
    }
    Ok(())
}

/// Why the sizes that a match tells cannot be charged, if so.
fn delta(
    party: &PartySetup,
    run: &Checked,
    spent: &Rational,
    (lineage, member): (&str, &Participant),
) -> Result<Option<Error>, Error> {
    let charge = if party.spine.is_some() { None } else { dummies::charge(&run.study, run.me)? };
    let Some(charge) = charge else { return Ok(None) };
    let most = party.policy.most_delta();
    let [said, bound, needs] = [spent, &most, &charge.delta].map(|delta| power(&small(delta)));
    Ok((spent + &charge.delta > most).then(|| {
        let text = format!(
            "delta: {said} of {bound} spent on lineage {lineage} by {}; this match needs {needs}",
            member.name
        );
        let shortfall = ledger::shortfall("policy.delta", spent, &most, &charge.delta);
        Error::refused(text).falling_short(shortfall)
    }))
}

/// The other parties of a run, with their places.
fn others(run: &Checked) -> impl Iterator<Item = (usize, &Participant)> {
    run.study.parties.iter().enumerate().filter(|(i, _)| *i != run.me.index())
}

/// What the data of a lineage look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Likeness {
    /// One per column that has enough.
    sketches: Vec<Sketch>,
    /// The lineage that they resemble and are not, as the operator says.
    unlike: Option<String>,
}

impl Likeness {
    /// Keeps it: something is about to be charged under this name.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn keep(&self, lineage: &str, ledger: &mut Ledger) -> Result<(), Error> {
        self.sketches
            .iter()
            .try_for_each(|sketch| ledger.keep_sketch(lineage, sketch, self.unlike.as_deref()))
    }
}

/// Refuses what would spend without a word: rho on cells that cannot be shown, or the budget of data under
/// another name. Puts into [`Checked::notes`] what the operator should know, and what the data look like into
/// [`Checked::likeness`]. Makes no ledger where there is none.
///
/// # Errors
/// The refusal; or when the ledger cannot be read.
pub fn check_consent(party: &PartySetup, runs: &mut [Checked]) -> Result<(), Error> {
    too_small(party, runs)?;
    if !charging(party, runs)? {
        return Ok(());
    }
    let fellows = fellows(runs);
    runs.iter_mut().for_each(|run| run.fellows.clone_from(&fellows));
    let (lineage, ledger) = (party.lineage()?, &Ledger::look(&party.ledger)?);
    let likeness = liken(party, runs, ledger)?;
    let stray = stray(lineage, likeness.as_ref(), ledger)?;
    for run in runs {
        run.likeness.clone_from(&likeness);
        run.notes.extend(run.too_small.iter().chain(&stray).cloned());
    }
    Ok(())
}

fn charging(party: &PartySetup, runs: &[Checked]) -> Result<bool, Error> {
    runs.iter().try_fold(false, |any, run| Ok(any | run.charges(party)?))
}

fn too_small(party: &PartySetup, runs: &[Checked]) -> Result<(), Error> {
    const SHOWN: usize = 4;
    let small = runs.first().map_or(&[][..], |run| &run.too_small);
    if small.is_empty() || party.consent.spend_anyway {
        return Ok(());
    }
    let more = match small.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let some: Vec<&str> = small.iter().take(SHOWN).map(String::as_str).collect();
    Err(Error::refused(format!(
        "rho would be spent on what cannot be shown: {}{more}. Agree on fewer cells, wait for more data, or \
         say --spend-anyway; a stored answer is not charged again",
        some.join("; ")
    )))
}

/// What these data look like, unless they are those of another lineage; with the one that they resemble and
/// are not, as the operator says.
fn liken(party: &PartySetup, runs: &[Checked], ledger: &Ledger) -> Result<Option<Likeness>, Error> {
    let lineage = party.lineage()?;
    let Some(first) = runs.first() else { return Ok(None) };
    if first.matched_before && ledger.knows(lineage)? {
        // An earlier process of this run has kept it, before it matched.
        return Ok(None);
    }
    let key = first.identity.secret_for(PURPOSE)?;
    let sketches = Sketch::all(&key, &first.rows)?;
    if sketches.is_empty() {
        return Ok(None);
    }
    if ledger.knows(lineage)? {
        return Ok(Some(Likeness { sketches, unlike: None }));
    }
    let alike = ledger.most_alike(lineage, &sketches)?.filter(|(_, alike)| *alike >= ALIKE);
    let (other, why) = match alike {
        Some((other, alike)) => {
            let why = format!(
                "its data are, to about {:.0} %, the rows of lineage {other} under another name",
                100.0 * alike
            );
            (other, why)
        }
        None => match ledger.without_sketch(lineage)? {
            Some(other) => {
                let why = format!(
                    "this ledger does not know what the data of lineage {other} look like (it was recovered, \
                     charged by an older tacit, or has few rows): they may be these"
                );
                (other, why)
            }
            None => return Ok(Some(Likeness { sketches, unlike: None })),
        },
    };
    if party.consent.new_lineage {
        return Ok(Some(Likeness { sketches, unlike: Some(other) }));
    }
    Err(Error::refused(format!(
        "lineage {lineage} is new, and {why}: use lineage = \"{other}\", whose budget they have, or say \
         --new-lineage, which is kept in the ledger"
    )))
}

/// Whether the data of a lineage in use look more like those of another one.
fn stray(lineage: &str, likeness: Option<&Likeness>, ledger: &Ledger) -> Result<Option<String>, Error> {
    let Some(Likeness { sketches, unlike: None }) = likeness else { return Ok(None) };
    if !ledger.knows(lineage)? {
        return Ok(None);
    }
    let own = ledger.alike(lineage, sketches)?;
    let other = ledger.most_alike(lineage, sketches)?.filter(|(_, alike)| *alike >= ALIKE && *alike > own);
    Ok(other.map(|(other, alike)| {
        format!(
            "these data are, to about {:.0} %, the rows of lineage {other}, and to {:.0} % those of lineage \
             {lineage}, under which they are charged: is `lineage` right?",
            100.0 * alike,
            100.0 * own
        )
    }))
}

/// What is known of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyKnowledge {
    /// What the ledger has.
    Ledger,
    /// That, and what peers of this run signed with earlier keys.
    Peers,
}

/// The keys of all parties of a study, whichever of its runs they take part in.
fn fellows(runs: &[Checked]) -> Vec<String> {
    runs.iter().flat_map(|run| &run.study.parties).map(|member| member.key.clone()).collect()
}

/// Viewers whose key a lineage has not met, where it has met others than `fellows`, who are parties of the
/// same study: each line of keys has a budget of its own.
///
/// # Errors
/// When the ledger cannot be read.
pub fn strangers(
    ledger: &Ledger,
    lineage: &str,
    (run, fellows): (&Checked, &[String]),
    known: KeyKnowledge,
) -> Result<Vec<String>, Error> {
    let viewers = ledger.viewers_of(lineage)?;
    let before = viewers.iter().filter(|key| *key != PUBLIC && !fellows.contains(key)).count();
    if before == 0 {
        return Ok(Vec::new());
    }
    let new = others(run).map(|(_, member)| member).filter(|member| !viewers.contains(&member.key));
    let successor = match known {
        KeyKnowledge::Ledger => {
            "If it takes the place of one of these, the run is told so, and both have one budget; else"
        }
        KeyKnowledge::Peers => {
            "If it is one of these viewers with a new key, its old one has to say so (tacit keygen \
             --succeeds), else"
        }
    };
    let note = |member: &Participant| {
        format!(
            "the key {} of {} sees lineage {lineage} for the first time, with a budget of its own; other \
             keys that saw it: {before}. {successor} both budgets add up: policy.total bounds all",
            member.key, member.name
        )
    };
    Ok(new.map(note).collect())
}
