//! What jobs say to each other around the protocols: the first words of a session, and the ceremony of a
//! release with the ledger underneath. As in [`crate::talks`] the peer says anything.

use crate::talk::Talk;
use crate::{Target, disk};
use base::{Error, PartyId};
use data::generate::{FileFormat, LiftOptions, lift, lift_study};
use engine::conformance::Table;
use engine::{Engine, OutputShares, outputs, run_rows};
use job::prepare::Checked;
use net::succession::{SUCCESSION_BYTES, Succession};
use net::{Identity, Session};
use privacy::cut_and_choose::CandidateNoise;
use privacy::fuzzing::{candidates, counts};
use privacy::ledger::{
    ChainHead, Debit, Ledger, PAID_BYTES, PaymentProof, STATEMENT_BYTES, Statement, release_id,
};
use program::Viewer;
use program::lower::ReleasePlan;
use release::choose::{CutAndChooseSide, NoiseContext, Setup};
use release::rational::ratio;
use std::fs;
use std::sync::{Arc, LazyLock, Mutex};
use study::party::PartySettings;
use yao::Yao;

static AGREE: LazyLock<Talk> = LazyLock::new(|| {
    let parties = checked(&KEYS);
    Talk::new(2, move |s| {
        let me = s.me().index();
        let ledger = fresh_ledger(&format!("agree-{me}"))?;
        job::run::fuzzing::agree(s, &parties[me], &KEYS[me], ledger)
    })
});

static CEREMONY: LazyLock<Talk> = LazyLock::new(|| Talk::new(2, release));

static HOLD: LazyLock<Talk> = LazyLock::new(|| Talk::new(2, hold));

pub(crate) const TARGETS: &[Target] = &[
    Target::new("agree", |data| AGREE.play(data), || AGREE.seeds())
        .least(20_000)
        .check(|| AGREE.check().map_err(|e| e.to_string())),
    Target::new("statement", statement, || vec![vec![7; STATEMENT_BYTES], signed()]).least(1_000_000),
    Target::new("succession", succession, || vec![vec![7; SUCCESSION_BYTES], succeeded()]).least(1_000_000),
    Target::new("paid", paid, || vec![vec![0; PAID_BYTES], paid_for()]).least(100_000),
    Target::new("ceremony", |data| CEREMONY.play(data), || CEREMONY.seeds())
        .least(5_000)
        .check(|| CEREMONY.check().map_err(|e| e.to_string())),
    Target::new("hold", |data| HOLD.play(data), || HOLD.seeds())
        .least(5_000)
        .check(|| HOLD.check().map_err(|e| e.to_string())),
];

/// What a peer signs about its ledger.
fn statement(data: &[u8]) {
    let Some(statement) = Statement::read(data) else { return };
    assert_eq!(&statement.bytes()[..], data, "a statement has one form");
    let [a, b] = &*KEYS;
    assert!(data == signed() || !statement.is_of(a.fingerprint(), b.fingerprint()), "a forged statement");
    let _ = (statement.date(), statement.rho(), statement.delta());
}

static KEYS: LazyLock<[Identity; 2]> =
    LazyLock::new(|| [(); 2].map(|()| Identity::generate().expect("a key can be made")));

fn signed() -> Vec<u8> {
    static SIGNED: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let (head, [a, b]) = (ChainHead { count: 3, hash: [5; 32] }, &*KEYS);
        let made =
            Statement::sign(a, b.fingerprint(), head, 1_700_000_000, (&ratio(1, 3), &ratio(1, 1 << 20)));
        made.expect("an identity signs").bytes().to_vec()
    });
    SIGNED.clone()
}

/// That one key takes the place of another, as a peer says it.
fn succession(data: &[u8]) {
    let Some(one) = Succession::read(data) else { return };
    assert_eq!(&one.bytes()[..], data, "a succession has one form");
    assert!(data == succeeded() || one.old() != KEYS[0].fingerprint() || !one.holds(), "a forged succession");
    let _ = Succession::lead_to(&[one.clone(), one], KEYS[1].fingerprint());
}

fn succeeded() -> Vec<u8> {
    static MADE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let made = Succession::sign(&KEYS[0], &KEYS[1]);
        made.expect("an identity signs").bytes().to_vec()
    });
    MADE.clone()
}

/// What a peer signs of a number that it pays for.
fn paid(data: &[u8]) {
    let Ok(said) = data.try_into() else { return };
    let terms = debit(VIEWER).terms("a b".into());
    let read = PaymentProof::read(said, &KEYS[0].fingerprint().to_string(), &terms, (&[9; 32], 0));
    if let Ok(Some(paid)) = read {
        assert_eq!(&paid.bytes()[..], data, "a payment has one form");
        assert!(data == paid_for(), "a forged payment");
    }
}

fn paid_for() -> Vec<u8> {
    static MADE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let made = PaymentProof::sign(&KEYS[0], &debit(VIEWER).terms("a b".into()), (&[9; 32], 0));
        made.expect("an identity signs").bytes().to_vec()
    });
    MADE.clone()
}

/// A ledger without a row, made anew.
fn fresh_ledger(name: &str) -> Result<Ledger, Error> {
    let path = disk::folder().join(name);
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(disk::folder().join(format!("{name}{end}")));
    }
    Ledger::open(&path)
}

/// Both parties of a small lift study, each with its data read.
fn checked(identities: &[Identity; 2]) -> [Checked; 2] {
    let folder = disk::folder().join("lift");
    fs::create_dir_all(&folder).expect("a folder in memory");
    let options = LiftOptions {
        rows: 8,
        overlap: 0.6,
        max_events: 2,
        clamp: 9,
        seed: 3,
        format: FileFormat::Csv,
        files: 1,
    };
    let made = lift(&folder, &options, &|_, _| ()).expect("made-up data");
    let keys = identities.each_ref().map(|identity| identity.fingerprint().to_string());
    let study = lift_study(&options, &keys[0], &keys[1], false);
    fs::write(folder.join("study.toml"), study).expect("a file in memory");
    for (name, identity) in ["publisher", "advertiser"].iter().zip(identities) {
        let key = folder.join(format!("{name}.key"));
        let _ = fs::remove_file(&key);
        identity.save(&key).expect("a file in memory");
    }
    let party = |name: &str, data: &std::path::Path| {
        let text = format!(
            "study = \"study.toml\"\nas = \"{name}\"\nidentity = \"{name}.key\"\nlisten = \
             \"127.0.0.1:7000\"\n\
             data = \"{}\"\nledger = \"{name}.ledger\"\nreport = \"out\"\nlineage = \"{name}\"\n",
            data.display()
        );
        let file = folder.join(format!("{name}.toml"));
        fs::write(&file, text).expect("a file in memory");
        let party = PartySettings::read(&file).and_then(PartySettings::complete).expect("a party file");
        job::run::check(&party).expect("a study and its data").remove(0)
    };
    [party("publisher", &made.publisher), party("advertiser", &made.advertiser)]
}

const VIEWER: PartyId = PartyId(0);
const DRAWER: PartyId = PartyId(1);
const STUDY: [u8; 32] = [1; 32];
const TAGS: [[u8; 32]; 2] = [[2; 32], [3; 32]];

fn plan_and_setup() -> Result<(ReleasePlan, Setup), Error> {
    let release = release_id(&STUDY, &TAGS, VIEWER.into());
    let context = NoiseContext {
        study: STUDY,
        release,
        session: release,
        data: TAGS.to_vec(),
        viewer: VIEWER,
        drawer: DRAWER,
    };
    candidates(3, context)
}

/// What this party's ledger books for the release.
fn debit(me: PartyId) -> Debit {
    Debit {
        lineage: "lineage".into(),
        viewer_key: "key".into(),
        peer_key: "key".into(),
        study: STUDY,
        my_tag: TAGS[me.index()],
        peer_tag: TAGS[me.other().index()],
        release_id: release_id(&STUDY, &TAGS, VIEWER.into()),
        rho: ratio(1, 200),
        budget: ratio(1, 200),
        total: None,
        period: None,
        delta: ratio(0, 1),
        most_delta: ratio(0, 1),
        tau: ratio(0, 1),
        agreed: None,
        protects: me == DRAWER,
    }
}

/// What both hold of a release to the public, opened.
fn hold(session: &mut Session) -> Result<(), Error> {
    let me = session.me();
    let (plan, _) = plan_and_setup()?;
    let plan = ReleasePlan { viewer: Viewer::Public, ..plan };
    let left = OutputShares::of_bytes(vec![me.0; outputs::share_bytes(&plan)]);
    let debit = Debit { protects: true, ..debit(me) };
    let ledger = fresh_ledger(&format!("hold-{}", me.0))?;
    let keys = KEYS.iter().take(plan.parties).map(|key| key.fingerprint().to_string()).collect();
    privacy::fuzzing::hold(session, &plan, left, (debit, &KEYS[me.index()]), keys, ledger)
}

/// Rows, then the release to the viewer.
fn release(session: &mut Session) -> Result<(), Error> {
    let me = session.me();
    let (plan, setup) = plan_and_setup()?;
    let side = if me == VIEWER { CutAndChooseSide::Checker } else { CutAndChooseSide::Drawer };
    let rng = session.fork_seed("noise").into_rng();
    let ledger = fresh_ledger(&format!("release-{}", me.0))?;
    let noise = CandidateNoise::new(side, setup, Arc::new(Mutex::new(ledger)), debit(me), rng);
    let (program, columns) = (counts(), [vec![1, 2, 0], vec![1, 0, 1]]);
    let engine = Yao::default();
    let totals = run_rows(&engine, &program, &mut Table::new(&program, &columns, 3, Some(me)), session)?;
    noise.run(&*engine.release(&Arc::new(plan))?, &totals, session).map(|_| ())
}
