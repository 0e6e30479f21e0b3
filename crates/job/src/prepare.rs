//! This side of a study before any protocol: files read and checked, the program built and verified, the cost
//! known.

use crate::check;
use crate::columns;
use crate::devices::{self, FoundDevice};
use crate::engines::StudyEngine;
use crate::joined_program::over_joined_rows;
use crate::kept::{self, KeptFound, KeptRun};
use crate::memory::{self, MatchNeeds};
use crate::small::too_small;
use crate::spool::{RowsKnown, check_room, spool_room, state_warning};
use base::{Error, PartyId, Roster, limits};
use data::{DataLocation, InputContent, InputReport, RowStore, RowStream, SpoolRoom, read_rows};
use matching::{ContaminatedRule, RowInfluence};
use net::Identity;
use num_traits::Zero;
use privacy::dummies;
use privacy::ledger::{Bytes32, Ledger};
use privacy::scales::{Scales, most_seen};
use program::{Audit, Class, Program, RowSet, Viewer};
use release::rational::{Rational, ratio, shown};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use studies::lift::{self, LiftLayout, LiftParameters};
use study::party::PartySetup;
use study::transport::ServerTransport;
use study::{self, MatchRule, NoiseFrom, Question, Study, StudyFile, StudyHash};

/// Most outputs of one study, over all cells and counts; the party's own policy caps cells.
pub(crate) const OUTPUTS: usize = 8192;

/// A study turned into a program.
pub struct Built {
    /// The program all parties will run.
    pub program: Program,
    /// What its columns and outputs mean, for a lift study.
    pub lift: Option<(LiftParameters, LiftLayout)>,
    /// What the verifier derived from it.
    pub audit: Audit,
    /// The noise of its releases. Where that hangs on group sizes which a run publishes, that of [`GROUPS`];
    /// none where even those have none.
    pub scales: Option<Arc<Scales>>,
}

/// Group sizes at which a study's noise is looked at before they are known: how far a draw may be from its
/// law hardly hangs on them.
const GROUPS: [u64; 2] = [500_000; 2];

impl Built {
    /// How far the noise of the release to a viewer may be from the law that its rho is of.
    #[must_use]
    pub fn distance_to(&self, viewer: Viewer) -> Rational {
        self.scales.as_ref().map_or_else(Rational::zero, |scales| scales.distance_to(viewer))
    }

    /// What anybody may see of it: rho, and the distance of its noise.
    fn published(&self) -> [Rational; 2] {
        let of = |scales: &Arc<Scales>| scales.charge(Viewer::Public).clone();
        let rho = self.scales.as_ref().map_or_else(Rational::zero, of);
        [rho, self.distance_to(Viewer::Public)]
    }
}

/// What a party file names and everything is checked against, read once.
pub struct Opened {
    /// The study file.
    pub file: StudyFile,
    /// Its text, for a comparison with the peer's.
    pub text: String,
    /// This party's key.
    pub identity: Arc<Identity>,
    /// Its rows, where they are handed over and lie in no file.
    pub stream: Option<RowStream>,
}

impl Opened {
    /// Reads a party's study and key.
    ///
    /// # Errors
    /// When either cannot be read, or the study names another key for this party.
    pub fn of(party: &PartySetup) -> Result<Self, Error> {
        Self::new(StudyFile::read(&party.study)?, &party.as_party, &party.identity)
    }

    /// A study file, and the key of one of its parties or servers.
    ///
    /// # Errors
    /// When the key cannot be read, or the study names another one.
    pub fn new((file, text): (StudyFile, String), name: &str, path: &Path) -> Result<Self, Error> {
        let identity = Arc::new(Identity::load(path)?);
        let own = identity.fingerprint().to_string();
        if let Some(successor) = identity.successor() {
            return Err(Error::refused(format!(
                "the key {own} in {} has named {successor} as its successor: use the file of that key \
                 (`identity`), and agree on a study with the line key = \"{successor}\"",
                path.display()
            )));
        }
        let named = match (file.member(name), file.server(name)) {
            (Some(member), _) => Some(("party", &member.key)),
            (None, server) => server.map(|server| ("server", &server.key)),
        };
        match named {
            Some((section, key)) if *key != own => Err(Error::input(format!(
                "the identity {} is {own}, but the study names {key} for {name}; check `identity`, or the \
                 line `key` under [{section}.{name}]",
                path.display()
            ))),
            // Whom the study does not name at all is refused in other words.
            _ => Ok(Self { file, text, identity, stream: None }),
        }
    }
}

/// Everything one side has checked before it meets the other.
pub struct Checked {
    /// The study.
    pub study: Study,
    /// Its text, for a comparison with the peer's.
    pub text: String,
    /// Its hash.
    pub hash: StudyHash,
    /// The program.
    pub built: Built,
    /// What runs it.
    pub engines: StudyEngine,
    /// What computes, where this party is one of the servers.
    pub(crate) device: Option<FoundDevice>,
    /// This party's key.
    pub identity: Arc<Identity>,
    /// This party.
    pub me: PartyId,
    /// All parties by name.
    pub roster: Roster,
    /// This party's rows.
    pub rows: Arc<RowStore>,
    /// The least `memory` of this party with these rows in its state, in bytes.
    pub memory_least: u64,
    /// What reading them did.
    pub inputs: InputReport,
    /// What its owner should know before a run, and no other party.
    pub warnings: Vec<String>,
    /// Arms and cells of this party's rows that are too small to be shown, whatever the others have.
    pub too_small: Vec<String>,
    /// What this party's ledger says that belongs into the report: see [`crate::budget::check_consent`].
    pub notes: Vec<String>,
    /// The keys of all parties of the study, whichever of its runs they take part in; likewise.
    pub fellows: Vec<String>,
    /// What the data look like, to be kept when the parties have agreed to begin; likewise.
    pub likeness: Option<crate::budget::Likeness>,
    /// The version of the input, where rows may lie in state and a run goes on from there.
    pub(crate) input_version: Option<Bytes32>,
    /// What its files held as they were read, of such a run.
    pub(crate) input_content: Option<InputContent>,
    /// Whether an earlier process of this run has matched them.
    pub(crate) matched_before: bool,
    /// What [`Checked::data_tag`] found.
    tagged: OnceLock<Bytes32>,
}

impl Checked {
    /// What computes, in words, where this party is one of the servers.
    pub(crate) fn device_words(&self) -> Option<String> {
        self.device.as_ref().map(|device| device.words.clone())
    }

    /// The name that this party's data have in its ledger, for this study. All rows are read the first time.
    ///
    /// # Errors
    /// When the ledger or the rows cannot be read.
    pub fn data_tag(&self, ledger: &Ledger) -> Result<Bytes32, Error> {
        if let Some(tag) = self.tagged.get() {
            return Ok(*tag);
        }
        let tag = self.tag_of(ledger, &self.rows)?;
        Ok(*self.tagged.get_or_init(|| tag))
    }

    /// The name of some rows.
    pub(crate) fn tag_of(&self, ledger: &Ledger, rows: &RowStore) -> Result<Bytes32, Error> {
        let keys: Vec<&str> = self.study.parties.iter().map(|member| member.key.as_str()).collect();
        ledger.data_tag(self.hash.as_bytes(), &keys, rows)
    }

    /// The same is known already, from an earlier run on these rows.
    pub(crate) fn know_tag(&self, tag: Bytes32) {
        self.tagged.get_or_init(|| tag);
    }

    /// Whether a run of it charges something to the budget of this party's data, or records what it sees
    /// itself.
    ///
    /// # Errors
    /// When the study's dummies are out of range.
    pub fn charges(&self, party: &PartySetup) -> Result<bool, Error> {
        charges(party, &self.study, &self.built)
    }
}

/// A party's rows, read now, or by an earlier process of a run that goes on.
struct ReadInput {
    rows: RowStore,
    inputs: InputReport,
    /// Where a run of these rows may go on.
    input_version: Option<Bytes32>,
    input_content: Option<InputContent>,
    /// Whether an earlier process read them.
    taken_up: bool,
    /// Whether one has matched them, too.
    matched: bool,
    /// What is to be said of a run that was kept, whose input was written again.
    rewritten: Option<String>,
}

impl ReadInput {
    fn of(
        (party, stream): (&PartySetup, Option<&RowStream>),
        study: &Study,
        runs: usize,
    ) -> Result<Self, Error> {
        let (data, me) = (
            DataLocation { path: &party.data, store: &party.store, format: &party.format, stream },
            place(study, party),
        );
        // What is handed over cannot be looked at again.
        let may = stream.is_none() && kept::may_be_kept(party, study, runs);
        let input_version = may.then(|| data::input_version(data)).transpose()?;
        let found = input_version.map(|version| KeptRun::find(party, study, (data, &version))).transpose()?;
        if let Some(KeptFound::Run(run)) = found {
            let (rows, inputs) = run.rows(study, me)?;
            let matched = run.matched();
            let rewritten = run.touched.then(|| {
                "the input was written again since this run began, and holds the same: it goes on".to_owned()
            });
            let (input_content, taken_up) = (None, true);
            return Ok(Self { rows, inputs, input_version, input_content, taken_up, matched, rewritten });
        }
        let rewritten = found.and_then(begins_anew);
        let room = spool_room(party, study, runs)?.map(|room| room.keeping_content(may));
        let (rows, inputs) = read_rows(data, study, me, room.as_ref())?;
        let mut input_content = room.as_ref().and_then(SpoolRoom::content);
        if input_content.is_some() && input_version != Some(data::input_version(data)?) {
            // Who wrote meanwhile may have written behind what was read.
            input_content = None;
        }
        let [taken_up, matched] = [false; 2];
        Ok(Self { rows, inputs, input_version, input_content, taken_up, matched, rewritten })
    }
}

/// Why a run begins anew though `state` keeps some.
fn begins_anew(found: KeptFound) -> Option<String> {
    match found {
        KeptFound::Nothing | KeptFound::Run(_) => None,
        KeptFound::OtherInput => Some(
            "`state` keeps a run of this study that broke off, and the input was changed since: this run \
             begins anew, and takes that one's place"
                .to_owned(),
        ),
        KeptFound::Unreadable(places) => Some(format!(
            "`state` keeps what this party cannot open: {}. It is another party's, or was written with \
             another ledger or key, or its files were changed since; if it is this study's, this run begins \
             anew all the same; `tacit state drop` removes it",
            places.join(", ")
        )),
    }
}

/// Reads and checks this side: study, policy, program, data. Nothing is sent. One entry per run: the
/// publisher of a study with several advertisers has one with each, all on the same rows.
///
/// # Errors
/// Whatever is wrong, with file, line and column; or the rule of the verifier or of the policy that refuses
/// the study.
pub fn check(party: &PartySetup, opened: &Opened) -> Result<Vec<Checked>, Error> {
    let Opened { file, text, identity, stream } = opened;
    let study = file.first();
    party.policy.admit(file, &party.as_party)?;
    study.refuse_clear()?;
    check_member(party, file)?;
    check_spine(party, study)?;
    check_servers(party, study)?;
    let mut built = Vec::new();
    for (run, checked) in build_all(file.runs_of(&party.as_party), &policy(party)?)? {
        within_policy(party, run, &checked)?;
        if charges(party, run, &checked)? {
            party.lineage()?;
        }
        let engine = StudyEngine::of(run, &checked.program)?;
        built.push((run, engine, checked));
    }
    let mut device = None;
    for (run, engine, _) in &mut built {
        device = devices::found(party.device, &party.as_party, run, engine)?;
        *engine = device.as_ref().map_or_else(|| engine.clone(), |device| engine.on(device));
    }
    let Some((first, engine, checked)) = built.first() else {
        return Err(Error::misuse("a member takes part in a run"));
    };
    let ReadInput { rows, inputs, input_version, input_content, taken_up, matched, rewritten } =
        ReadInput::of((party, stream.as_ref()), first, built.len())?;
    // The peer's are not known yet: as many.
    let me = place(first, party);
    let needs = MatchNeeds::of((first, checked), engine, (me, party.memory), [rows.len(); 2])?;
    let held = rows.spool().is_none().then_some(inputs.memory);
    memory::check_held(party, (rows.len(), held), (first, built.len()), &needs)?;
    if rows.spool().is_some() && !taken_up {
        let rows = vec![rows.len(); first.parties.len()];
        check_room(party, first, (me, &rows), &needs, RowsKnown::Read)?;
    }
    let said = [work_warning(party, first), state_warning(party, first, built.len()), rewritten];
    let warnings: Vec<String> = said.into_iter().flatten().chain(doubtful(&inputs, &built)).collect();
    let mut small: Vec<String> = Vec::new();
    for (run, ..) in &built {
        small.extend(too_small(run, &rows)?);
    }
    small.dedup();
    let rows = Arc::new(rows);
    let checked = |(run, engines, built): (&Study, StudyEngine, Built)| Checked {
        study: run.clone(),
        text: text.clone(),
        hash: run.hash(),
        built,
        engines,
        device: device.clone(),
        identity: identity.clone(),
        me: place(run, party),
        roster: Roster::new(run.parties.iter().map(|m| m.name.clone())),
        rows: rows.clone(),
        memory_least: needs.beside_state(),
        inputs: inputs.clone(),
        warnings: warnings.clone(),
        too_small: small.clone(),
        notes: Vec::new(),
        fellows: Vec::new(),
        likeness: None,
        input_version,
        input_content,
        matched_before: matched,
        tagged: OnceLock::new(),
    };
    Ok(built.into_iter().map(checked).collect())
}

/// This party's place in a run that it takes part in.
pub(crate) fn place(run: &Study, party: &PartySetup) -> PartyId {
    let at = run.parties.iter().position(|member| member.name == party.as_party);
    PartyId(at.unwrap_or_default() as u8)
}

fn check_member(party: &PartySetup, file: &StudyFile) -> Result<(), Error> {
    if file.member(&party.as_party).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = file.parties.iter().map(|m| m.name.as_str()).collect();
    Err(Error::input(format!(
        "this party is {:?}, but the study {} names {}; check `as` in the party file",
        party.as_party,
        party.study.display(),
        names.join(", ")
    )))
}

/// Only a match that ends in a common spine has one to keep.
fn check_spine(party: &PartySetup, study: &Study) -> Result<(), Error> {
    let MatchRule { matcher, contaminated, .. } = study.matching;
    if party.spine.is_none() && party.keep_spine.is_none() {
        return Ok(());
    }
    if !matcher.features().keeps_spine {
        return Err(Error::input(format!(
            "match.protocol \"{}\" leaves no spine to keep or to use again; remove `spine` and `keep_spine`",
            matcher.name()
        )));
    }
    if contaminated != ContaminatedRule::Ignore {
        return Err(Error::input(format!(
            "match.contaminated = \"{}\" looks at arms when rows are matched, and a kept spine would hold \
             what it found \
             after arms have changed: remove `spine` and `keep_spine`, or agree on contaminated = \"ignore\"",
            contaminated.name()
        )));
    }
    Ok(())
}

/// The salt is there where rows are matched by it, and nowhere else; only servers are told to begin, and have
/// a transport.
fn check_servers(party: &PartySetup, study: &Study) -> Result<(), Error> {
    if let (true, None) = (party.trigger, &study.servers) {
        return Err(Error::input("this study names no servers to tell to begin: remove `trigger`"));
    }
    if party.transport != ServerTransport::Tls && study.server(&party.as_party).is_none() {
        return Err(Error::input(format!(
            "{} is none of the four servers that compute this study, and keeps TLS: remove `transport` and \
             `trusted_network`",
            party.as_party
        )));
    }
    if study.server(&party.as_party).is_some() {
        party.transport.admit(study)?;
    }
    let matcher = study.matching.matcher;
    match (matcher.features().salted, &party.salt) {
        (true, None) => Err(Error::input(
            "no salt: match.protocol is \"salted-key\"; one owner makes the file with `tacit keygen --salt \
             FILE`, gives it to the others in private, and each adds salt = \"FILE\" to its party file, or \
             --salt to the command",
        )),
        (true, Some(path)) => study::salt::load(path).map(|_| ()),
        (false, Some(_)) => {
            Err(Error::input(format!("match.protocol \"{}\" uses no salt: remove `salt`", matcher.name())))
        }
        (false, None) => Ok(()),
    }
}

/// Whether noise is released, or the sizes of a match are charged.
fn charges(party: &PartySetup, study: &Study, built: &Built) -> Result<bool, Error> {
    let sizes = party.spine.is_none() && dummies::charge(study, place(study, party))?.is_some();
    Ok(sizes || !built.program.mechanisms.is_empty())
}

/// Holds the local caps against the study: what another viewer can truly be charged, which may be more than
/// the study states, by its release and by the sizes that the match shows; and how many candidates of noise
/// there are at least.
fn within_policy(party: &PartySetup, study: &Study, built: &Built) -> Result<(), Error> {
    let least = party.policy.candidates;
    if let NoiseFrom::CutAndChoose(asked) = study.noise()
        && !built.program.mechanisms.is_empty()
        && asked < least
    {
        return Err(Error::refused(format!(
            "the study has {asked} noise candidates: a party that bends its noise goes unnoticed once in \
             {asked} times; \
             this party's policy.candidates is {least}. Agree on more in [release] candidates, or allow fewer"
        )));
    }
    let cap = party.policy.max_rho.clone();
    for (i, member) in study.parties.iter().enumerate().filter(|(_, member)| member.name != party.as_party) {
        let viewer = PartyId(i as u8);
        let sizes = if party.spine.is_some() { Zero::zero() } else { dummies::rho(study, viewer)? };
        let most = most_seen(study, &built.audit, viewer) + &sizes;
        if most > cap {
            let of = if sizes.is_zero() { "" } else { ", the sizes of the match included" };
            return Err(Error::refused(format!(
                "the study can charge up to rho {:.6} to {}{of}; {}",
                release::rational::to_f64(&most),
                member.name,
                party.policy.cap()
            )));
        }
    }
    Ok(())
}

/// Columns of times whose cells look as if they meant something else, and noise that nobody sees.
fn doubtful(inputs: &InputReport, built: &[(&Study, StudyEngine, Built)]) -> Vec<String> {
    let times = inputs.times.iter().map(ToString::to_string);
    times.chain(check::unrevealed(built.iter().map(|(_, _, built)| built))).collect()
}

/// A folder for a match that goes on after a cut does nothing for most protocols.
fn work_warning(party: &PartySetup, study: &Study) -> Option<String> {
    let matcher = study.matching.matcher;
    (party.work.is_some() && !matcher.features().resumes).then(|| {
        format!(
            "`work` serves \"pid\" by one identifier between two parties; this match (\"{}\") begins anew if \
             it breaks off",
            matcher.name()
        )
    })
}

/// What the verifier holds a program to; rho is held to the policy by [`within_policy`], viewer by viewer.
fn policy(party: &PartySetup) -> Result<program::VerifierPolicy, Error> {
    Ok(program::VerifierPolicy {
        max_rho: ratio(u128::from(study::MAX_RHO), 1),
        max_outputs: OUTPUTS,
        allow_exact: party.policy.allow_exact,
    })
}

/// Builds a study's program and verifies it against a policy, for as many rows as any study may have.
///
/// # Errors
/// Where the study or its program breaks a rule.
pub fn build(study: &Study, policy: &program::VerifierPolicy) -> Result<Built, Error> {
    let (program, lift) = match &study.kind {
        Question::Lift(_) => {
            let lift = lift_of(study)?;
            let (program, layout) = lift::build(&lift)?;
            (program, Some((lift, layout)))
        }
        Question::Program(own) => (own_program(study, &own.source, own.text_line)?, None),
        Question::Match(columns) => (own_program(study, columns, 1)?, None),
    };
    let audit = program::verify(&program, policy, limits::ROWS).map_err(|error| match &study.kind {
        Question::Program(own) => placed(own.text_line, error),
        _ => error,
    })?;
    check_rho(study, &program, &audit)?;
    if study.servers.is_some()
        && matches!(study.noise(), NoiseFrom::CutAndChoose(_))
        && !audit.charges.is_empty()
    {
        return Err(Error::input(
            "release.noise: cut-and-choose is for two parties who compute themselves; where servers compute, \
             write noise = \"inside\", or leave it out",
        ));
    }
    let scales = noise(study, &program, lift.as_ref().map(|(_, layout)| layout), &audit)?;
    Ok(Built { program, lift, audit, scales })
}

/// Builds all runs of a study that a side can see, to be run: what is only looked at may have more rho than
/// any ledger bears.
///
/// # Errors
/// Those of [`build`]; and where the noise of all that a party sees could be told from its law: before
/// anything is sent, and not when it is paid for.
pub fn build_all<'a>(
    runs: impl IntoIterator<Item = &'a Study>,
    policy: &program::VerifierPolicy,
) -> Result<Vec<(&'a Study, Built)>, Error> {
    let built =
        runs.into_iter().map(|run| Ok((run, build(run, policy)?))).collect::<Result<Vec<_>, Error>>()?;
    let published = built.iter().map(|(_, built)| built.published());
    let all = published.fold([Rational::zero(), Rational::zero()], |[rho, tau], [r, t]| [rho + r, tau + t]);
    for (run, built) in &built {
        let [rho, tau] = built.published();
        let elsewhere = (&(&all[0] - rho), &(&all[1] - tau));
        built.scales.iter().try_for_each(|scales| scales.bear(run, elsewhere))?;
    }
    Ok(built)
}

/// The noise of a study's releases.
fn noise(
    study: &Study,
    program: &Program,
    layout: Option<&LiftLayout>,
    audit: &Audit,
) -> Result<Option<Arc<Scales>>, Error> {
    let groups = layout.and_then(|layout| layout.published.as_ref()).map(|_| GROUPS);
    match Scales::new(study, program, audit, groups) {
        Ok(scales) => Ok(Some(Arc::new(scales))),
        Err(_) if groups.is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A refusal of a study's program, whose lines count from its first one.
fn placed(line: usize, error: Error) -> Error {
    match error.kind() {
        base::Fault::Refused(text) => Error::refused(format!("{}{text}", place_of(line))),
        base::Fault::Input(text) => Error::input(format!("{}{text}", place_of(line))),
        _ => error,
    }
}

fn place_of(line: usize) -> String {
    format!("the program that begins at line {line} of the study: ")
}

/// A fault of a program's text with its line in the study, where an editor finds it.
fn in_study(begins: usize, fault: &str) -> String {
    let own = fault.strip_prefix("line ").and_then(|rest| rest.split_once(',')?.0.parse::<usize>().ok());
    match own {
        Some(own) => format!("{fault} (line {} of the study)", begins + own - 1),
        None => fault.to_owned(),
    }
}

/// A user's own program: its parties and columns must be the study's.
fn own_program(study: &Study, own: &study::ProgramSource, line: usize) -> Result<Program, Error> {
    let place = |text: String| Error::input(place_of(line) + &text);
    let program = Program::parse(&own.text).map_err(|e| place(in_study(line, &e.to_string())))?;
    let RowInfluence { spread, alone, .. } = influence(&study.matching);
    if let (Class::Dp, Some(party)) =
        (program.class, program.degrees.iter().position(|degree| u64::from(*degree) < spread))
    {
        let name = &program.parties[party];
        return Err(place(format!(
            "matched by several identifiers, one row of {name} can change {spread} rows: write `degree \
             {name} {spread}`"
        )));
    }
    if let (Class::Dp, Some(party)) =
        (program.class, program.alone.iter().position(|rows| u64::from(*rows) < alone))
    {
        let name = &program.parties[party];
        return Err(place(format!(
            "with duplicates = \"first\" one line of {name} can take identifiers from others and change \
             {alone} of its own rows: write `alone {name} {alone}`"
        )));
    }
    let names: Vec<&String> = study.parties.iter().map(|m| &m.name).collect();
    if program.parties.iter().ne(names.iter().copied()) {
        return Err(place(format!(
            "it names the parties {:?}; the study's parties, in this order, are {names:?}",
            program.parties
        )));
    }
    if program.rows == RowSet::Aligned && !study.matching.matcher.features().public_identifiers {
        return Err(place(format!(
            "it says `rows aligned`, and match.protocol \"{}\" gives rows that some parties do not have; \
             leave the line out (then the rows are those that all parties have), or write `rows any`",
            study.matching.matcher.name()
        )));
    }
    columns::check(own, &program).map_err(place)?;
    over_joined_rows(study, program, &influence(&study.matching)).map_err(place)
}

/// The charge that the verifier derived may not be above what the study says it spends.
fn check_rho(study: &Study, program: &Program, audit: &Audit) -> Result<(), Error> {
    if program.class == Class::Exact {
        return Ok(());
    }
    for viewer in program.viewers() {
        let charged = viewer.only().map_or(&audit.public, |party| &audit.rho[party.index()]);
        let stated = study.stated(viewer).cloned().unwrap_or(ratio(0, 1));
        if *charged > stated {
            let (who, section) = match viewer.only() {
                Some(party) => {
                    let party = &program.parties[party.index()];
                    (party.clone(), format!("[release.to.{party}]"))
                }
                None => ("everybody".to_owned(), "[release.public]".to_owned()),
            };
            return Err(Error::input(format!(
                "the program spends rho {charged} on what {who} sees, the study states {}; raise \
                 {section} rho or spend less",
                shown(&stated)
            )));
        }
    }
    Ok(())
}

/// The parameters of a lift study's program.
fn lift_of(study: &Study) -> Result<LiftParameters, Error> {
    let Question::Lift(own) = &study.kind else {
        return Err(Error::misuse("only a lift study has a lift program"));
    };
    // All ones means "no opportunity", so the span must end below it.
    let Some(codes) = own.clock.span().checked_add(1) else {
        return Err(Error::input(format!(
            "[time] span = {}: at most {} in a lift study",
            u32::MAX,
            u32::MAX - 1
        )));
    };
    let values = |c: &Option<study::Categories>| c.as_ref().map_or_else(Vec::new, |c| c.values.clone());
    let rho = |viewer: Viewer| study.stated(viewer).cloned().unwrap_or(ratio(0, 1));
    Ok(LiftParameters {
        publisher: study.parties[0].name.clone(),
        advertisers: study.parties[1..].iter().map(|member| member.name.clone()).collect(),
        time_bits: bit_length(codes),
        max_events: own.advertisers.iter().map(|advertiser| advertiser.max_events).max().unwrap_or(1),
        value_bits: own.advertisers.iter().map(value_bits).max().unwrap_or(1),
        clamp: u128::from(own.rule.clamp),
        within: own.rule.within,
        impressions: own.publisher.impressions.is_some(),
        arms: [own.publisher.test.clone(), own.publisher.control.clone()],
        breakdown: values(&own.publisher.breakdown),
        cohorts: values(&own.advertisers.iter().find_map(|advertiser| advertiser.cohort.clone())),
        mode: own.release.mode,
        rho: (0..study.parties.len()).map(|p| rho(PartyId(p as u8).into())).collect(),
        public: rho(Viewer::Public),
        also: own.release.also.clone(),
        matching: lift_matching(&study.matching),
    })
}

fn value_bits(advertiser: &study::Advertiser) -> u8 {
    match advertiser.value {
        study::EventValue::Constant(value) => bit_length(value.max(1)),
        study::EventValue::Columns { .. } => 32,
    }
}

/// What a lift study's program must know of the match: where rows may hold none, and how many rows one row
/// can change.
fn lift_matching(matching: &MatchRule) -> lift::JoinShape {
    let RowInfluence { degree, alone, slots, masked, .. } = influence(matching);
    let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    lift::JoinShape { degree: degree.map(count), alone: [count(alone); 2], slots: slots as u8, masked }
}

/// What one row of data can change in what is computed on the matched rows.
fn influence(matching: &MatchRule) -> RowInfluence {
    matching.matcher.influence(matching.identifiers.len() as u64, &matching.options())
}

/// The bit length of a value, at least 1. Callers add 1 to the last time, so that all ones stays free.
fn bit_length(value: u32) -> u8 {
    (u32::BITS - value.leading_zeros()).max(1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a spine are those of either party: a pair that comes apart is one row less and two more.
    #[test]
    fn a_program_over_several_identifiers_states_what_one_row_can_change() {
        const PROGRAM: &str = include_str!("../../../examples/program.toml");
        let of = |rule: &str, degree: u32| {
            let list = "[ { name = \"person\", normalise = [\"trim\", \"lowercase\"] } ]";
            let text = PROGRAM.replacen(list, "[ \"person\", \"mail\" ]", 1);
            let text = text.replacen("= \"error\"", &format!("= \"{rule}\""), 1);
            let party = "party works\n";
            let alone = if rule == "first" { "alone clinic 3\nalone works 3\n" } else { "" };
            let degrees = format!("{party}degree clinic {degree}\ndegree works {degree}\n{alone}");
            let text = text.replacen(party, &degrees, 1);
            let study = Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{e}"));
            build(&study, &program::VerifierPolicy::default())
                .map(|built| [0, 1].map(|output| built.audit.charges[0].sensitivity(output).unwrap()))
        };
        assert_eq!(of("error", 4).unwrap(), [4, 4]);
        assert_eq!(of("first", 7).unwrap(), [7, 7]);
        for (rule, degree, wanted) in [("error", 3, "degree clinic 4"), ("first", 6, "degree clinic 7")] {
            let text = of(rule, degree).unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }

    /// What the ledgers refuse when a release is paid for, of all that a party sees, is refused of the study.
    #[test]
    fn noise_that_could_be_told_from_its_law_is_refused_with_the_study() {
        const LIFT: &str = include_str!("../../../examples/lift.toml");
        let of = |public: u32, registry: Option<u32>| {
            let tenths = |rho: u32| format!("rho = {}.{}", rho / 10, rho % 10);
            let own = registry.map(|rho| format!("[release.to.registry]\n{}\n", tenths(rho)));
            let text = LIFT.replacen("rho = 0.1", &tenths(public), 1);
            let text = text.replacen("[release.public]", &(own.unwrap_or_default() + "[release.public]"), 1);
            let study = Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{e}"));
            let policy = program::VerifierPolicy { max_rho: ratio(1000, 1), ..Default::default() };
            build_all([&study], &policy).map(|_| ()).map_err(|error| error.to_string())
        };
        let most = (20..100).find(|rho| of(*rho, None).is_err()).expect("some rho is too much") - 1;
        let text = of(most + 1, None).unwrap_err();
        assert!(text.contains("that of all that registry sees could be told from exact noise"), "{text}");
        of(most, None).unwrap();
        of(5, Some(most - 10)).unwrap();
        // Each by itself would do.
        let text = of(most, Some(5)).unwrap_err();
        assert!(text.contains("agree on less rho"), "{text}");
    }

    #[test]
    fn the_code_of_no_opportunity_is_above_the_span() {
        for span in [1u32, 2, 3, 6, 7, 14, 15, 365, 510, 511, 65_534] {
            let bits = bit_length(span + 1);
            assert!(u64::from(span) <= (1u64 << bits) - 2, "span {span} in {bits} bits");
        }
    }
}
