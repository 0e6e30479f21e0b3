//! Files that programs read back or that come from elsewhere: data, identities, ledgers, traces, reports.

use crate::{Target, disk, text};
use base::PartyId;
use data::generate::{FileFormat, LiftOptions, lift, lift_study};
use data::{DataLocation, read_rows};
use matching::{MatchOptions, Matcher, PrivateId};
use net::Session;
use osprey::trace::{self, TraceFeed, TraceSource};
use privacy::ledger::{AnswerKey, Ledger, PeerLineage};
use release::choose::{CutAndChooseSide, Draw, Drawer, NoiseContext, Setup, Transcript, resume};
use release::gaussian::DiscreteGaussian;
use release::rational::ratio;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use study::Study;
use study::format::{ColumnDates, DateForm, DecimalSign, InputFormat, TextEncoding, WallZone};

pub(crate) const TARGETS: &[Target] = &[
    Target::new("csv", csv, csv_seeds).least(1_000_000),
    Target::new("form", form, form_seeds),
    Target::new("parquet", parquet, parquet_seeds),
    Target::new("identity", identity, identities),
    Target::new("salt", salt, || {
        vec![format!("tacit-salt-1 {}\n", "0f".repeat(32)).into_bytes(), made_salt()]
    }),
    Target::new("ledger", ledger, ledger_seeds).least(20_000),
    Target::new("transcript", transcript, transcripts).least(1_000_000),
    Target::new("report", report, reports),
    Target::new("stats", stats, || {
        vec![serde_json::to_vec(&osprey::Stats::default()).expect("statistics are JSON")]
    }),
    Target::new("trace", trace, traces).least(1_000_000),
    Target::new("spine", spine, spines),
    Target::new("journal", journal, journals).least(20_000),
];

const LIFT: &str = include_str!("../../../examples/lift.toml");
const IDENTIFIERS: &str = include_str!("../../../examples/lift-identifiers.toml");
const GENERATED: &str = include_str!("../../../examples/generated.toml");
const PROGRAM: &str = include_str!("../../../examples/program.toml");

/// Studies whose data are read: every normaliser, layout and type of cell is in one of them.
fn studies() -> &'static [Study] {
    static STUDIES: LazyLock<Vec<Study>> = LazyLock::new(|| {
        let every = "normalise = [\"nfkc\", \"single-spaces\", \"trim\", \"lowercase\"]";
        let wide = IDENTIFIERS
            .replace("normalise = [\"no-spaces\", \"lowercase\"]", every)
            .replace("[\"email-untagged\"]", "[\"email\"]")
            .replace("[\"phone:44\"]", "[\"phone\"]")
            .replace("duplicates   = \"error\"", "duplicates   = \"first\"")
            .replace("# breakdown", "breakdown");
        let merge =
            LIFT.replace("[\"trim\", \"lowercase\"]", "[\"digits\"]").replace("\"error\"", "\"merge\"");
        let [lift, identifiers, program, generated] =
            [LIFT, IDENTIFIERS, PROGRAM, GENERATED].map(str::to_owned);
        let net = generated.replace("unit = \"cent\"", "unit = \"EUR\", scale = 100, negative = \"net\"");
        let texts = [lift, identifiers, wide, merge, program, generated, net];
        let parse = |text: String| Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{e}"));
        texts.map(parse).into()
    });
    &STUDIES
}

/// Byte 0 names the study and who reads; the rest is the file.
fn data(data: &[u8], name: &str, format: &InputFormat) {
    let Some((which, bytes)) = data.split_first() else { return };
    let (path, study) = (disk::file(name, bytes), &studies()[usize::from(which >> 1) % studies().len()]);
    let place = DataLocation { format, ..path.as_path().into() };
    let _ = read_rows(place, study, base::PartyId(which & 1), None);
}

fn csv(bytes: &[u8]) {
    data(bytes, "rows.csv", &InputFormat::NONE);
}

fn parquet(bytes: &[u8]) {
    data(bytes, "rows.parquet", &InputFormat::NONE);
}

/// Byte 0 is what is said of the form of a CSV file.
fn form(bytes: &[u8]) {
    let Some((said, rest)) = bytes.split_first() else { return };
    let bits = |from: u8| usize::from(said >> from & 3);
    let encodings =
        [None, Some(TextEncoding::Utf8), Some(TextEncoding::Utf16), Some(TextEncoding::Windows1252)];
    let dates: [&[&str]; 4] =
        [&[], &["%d.%m.%Y"], &["spreadsheet", "%d.%m.%Y %H:%M"], &["%Y%m%d", "%d/%m/%y %H:%M:%S"]];
    let forms = dates[bits(5)].iter().map(|form| DateForm::parse(form).expect("a form"));
    let format = InputFormat {
        columns: Vec::new(),
        encoding: encodings[bits(0)],
        separator: [None, Some(b';'), Some(b'\t'), Some(b',')][bits(2)],
        decimal: (said & 16 != 0).then_some(DecimalSign::Comma),
        thousands: (said & 20 == 20).then_some(DecimalSign::Point),
        header_line: (said & 24 == 24).then_some(2),
        dates: vec![ColumnDates { column: None, forms: forms.collect() }],
        zone: (said & 128 != 0).then(|| WallZone::parse("America/New_York").expect("a zone")),
        sheet: None,
    };
    data(rest, "rows.csv", &format);
}

fn form_seeds() -> Vec<Vec<u8>> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let events = "id;bought;amount\r\na;01.02.1970;1.234,50\r\na;02.02.1970;-4,5\r\nb;03.02.1970;x\r\n";
    let registry = "\u{feff}child_id\tarm\tinjected\na\tvaccine\t19840.5\nb\tplacebo\t26.04.1954 10:00\n";
    vec![
        [&[0b0011_0011, 13], events.as_bytes()].concat(),
        [&[0b0011_0100, 13], events.as_bytes()].concat(),
        [&[0b1100_0000, 0], &wide(registry)[..]].concat(),
        [&[0b1110_0000, 0], "child_id,arm,injected\na,vaccine,19540426\n".as_bytes()].concat(),
    ]
}

fn csv_seeds() -> Vec<Vec<u8>> {
    let files: [(u8, &str); 9] = [
        (0, "child_id,arm,injected\n a1 ,vaccine,1954-05-01\nA2,placebo,1954-06-01\nb3,placebo,\n"),
        (1, "child_id,onset,severity\na1,1954-08-01,paralytic\na1,1954-09-01,mild\nA2,,\n"),
        (
            2,
            "customer,email,phone,arm,seen,impressions\n A b,x+y@z.org,020 7946 0000,test,7,2\nc,,+44 \
             1,control,,0\n",
        ),
        (3, "customer,email,phone,bought,amount\nab,X@z.org,0044 207 946 0000,9,100\n,q@r,,,\n"),
        (
            4,
            "customer,email,phone,arm,seen,impressions,region\n\u{ff21} b \
             ,x@z,+442079460000,test,1970-01-01T00:00:09Z,1,north\n",
        ),
        (6, "\u{feff}child_id,arm,injected\r\n\"a\"\"1\",vaccine,12\r\n\"2\n3\",placebo,1954-06-01\r\n"),
        (
            7,
            "child_id,onset,severity\n1,1954-08-01,paralytic\n01,1954-08-02,paralytic\n\
         1,1954-08-01,paralytic\n",
        ),
        (8, "person,diagnosis\n ann ,ill\nBOB,healthy\n"),
        (9, "person,exposed_days\nann,30\nbob,65535\ncid,-1\n"),
    ];
    files.map(|(which, file)| [&[which], file.as_bytes()].concat()).into()
}

fn parquet_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let folder = disk::folder().join("made");
    fs::create_dir_all(&folder).expect("a folder in a temporary one");
    for rows in [1, 8] {
        let options = LiftOptions {
            rows,
            overlap: 1.0,
            max_events: 2,
            clamp: 9,
            seed: 1,
            format: FileFormat::Parquet,
            files: 1,
        };
        let made = lift(&folder, &options, &|_, _| ()).expect("made-up data");
        let key = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11";
        assert!(Study::parse("s", &lift_study(&options, key, &key.replace('3', "4"), false)).is_ok());
        for (which, path) in [(0, made.publisher), (1, made.advertiser)] {
            seeds.push([&[10 + which], &fs::read(path).expect("it was written")[..]].concat());
        }
    }
    seeds
}

fn identity(data: &[u8]) {
    net::fuzzing::certificate(data);
    if let Ok(identity) = net::Identity::load(&disk::file("own.key", data)) {
        let _ = identity.fingerprint();
    }
}

/// A fixed identity, in both versions of PKCS #8, and its certificate alone.
fn identities() -> Vec<Vec<u8>> {
    let path = disk::folder().join("fresh.key");
    let _ = fs::remove_file(&path);
    let fresh = net::Identity::generate().and_then(|identity| identity.save(&path));
    fresh.expect("an identity can be made");
    vec![fs::read(path).expect("it was written")]
}

fn salt(data: &[u8]) {
    let _ = study::salt::load(&disk::file("owners.salt", data));
}

fn made_salt() -> Vec<u8> {
    let path = disk::folder().join("fresh.salt");
    let _ = fs::remove_file(&path);
    study::salt::create(&path).expect("a salt can be made");
    fs::read(path).expect("it was written")
}

/// An empty ledger, and copies of it.
fn empty_ledger() -> &'static [u8] {
    static EMPTY: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let path = disk::folder().join("empty.ledger");
        drop(Ledger::open(&path).expect("a ledger can be made"));
        let whole = Connection::open(&path).expect("it was made");
        whole.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("it is checkpointed");
        drop(whole);
        fs::read(path).expect("it was made")
    });
    &EMPTY
}

/// Rows of any content in every table, then everything that reads them. A row is a byte for the table and a
/// byte and value for each column: a number, one of the keys below, or text up to the next zero.
fn ledger(mut data: &[u8]) {
    let path = disk::file("rows.ledger", empty_ledger());
    for beside in ["-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(disk::folder().join(format!("rows.ledger{beside}")));
    }
    {
        let connection = Connection::open(&path).expect("a copy of a ledger opens");
        let tables = tables(&connection);
        let mut filled = 0;
        while let Some(which) = take(&mut data).filter(|_| filled < 16) {
            let (table, columns) = &tables[usize::from(which) % tables.len()];
            let values: Vec<Value> = columns.iter().map(|kind| value(kind, &mut data)).collect();
            let places = vec!["?"; values.len()].join(", ");
            let sql = format!("INSERT OR IGNORE INTO {table} VALUES ({places})");
            let _ = connection.execute(&sql, params_from_iter(values));
            filled += 1;
        }
    }
    let Ok(ledger) = Ledger::open(&path) else { return };
    let _ = (ledger.entries(), ledger.answers());
    let _ = (ledger.spent("lineage", "viewer"), ledger.spent_delta("lineage", "viewer"));
    let id = [1; 32];
    let towards = PeerLineage { peer: "viewer".into(), lineage: "lineage".into() };
    let own = net::KeyFingerprint::of_ed25519(&id);
    let _ = (ledger.outputs(&id), ledger.barred(&towards, &[(id, 0)]), ledger.next_attempt(&id));
    let _ = (ledger.broken_off("viewer"), ledger.peer_by("v"), ledger.noticed("viewer"));
    let _ = (ledger.chain("viewer"), ledger.held("viewer", own), ledger.hash_at("viewer", 1));
    let _ = (ledger.verify(), ledger.claims(), ledger.last_begun(&id));
    let _ = (ledger.spent_by_all("lineage"), ledger.viewers_of("lineage"), ledger.knows("lineage"));
    let _ = ledger.old_answer(&id, &id, PartyId(0));
    for side in [CutAndChooseSide::Drawer, CutAndChooseSide::Checker] {
        let _ = ledger.transcript(&id, side);
    }
    let key = AnswerKey { study: id, program: id, my_tag: id, peer_tag: id, party: PartyId(0) };
    if let Ok(Some(answer)) = ledger.answer(&key) {
        let _ = report::all_from_json(&answer);
    }
}

fn tables(connection: &Connection) -> Vec<(String, Vec<String>)> {
    let sql = "SELECT m.name, group_concat(c.type) FROM sqlite_master m, pragma_table_info(m.name) c \
               WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' GROUP BY m.name ORDER BY m.name";
    let mut query = connection.prepare(sql).expect("SQL");
    let row = |row: &rusqlite::Row<'_>| {
        let types: String = row.get(1)?;
        Ok((row.get(0)?, types.split(',').map(str::to_owned).collect()))
    };
    let rows = query.query_map([], row).expect("tables are listed");
    rows.collect::<Result<_, _>>().expect("tables are listed")
}

fn take(data: &mut &[u8]) -> Option<u8> {
    let (first, rest) = data.split_first()?;
    *data = rest;
    Some(*first)
}

fn value(kind: &str, data: &mut &[u8]) -> Value {
    let how = take(data).unwrap_or(0);
    match kind {
        "INTEGER" if how < 16 => Value::Integer(how.into()),
        "INTEGER" => {
            let (bytes, rest) = data.split_at(data.len().min(8));
            *data = rest;
            let mut number = [0; 8];
            number[..bytes.len()].copy_from_slice(bytes);
            Value::Integer(i64::from_le_bytes(number))
        }
        "BLOB" if how < 200 => Value::Blob(vec![how.max(1); 32]),
        "TEXT" if how == 1 => Value::Text("lineage".into()),
        "TEXT" if how == 2 => Value::Text("viewer".into()),
        "TEXT" if how == 3 => Value::Text("drawer".into()),
        "TEXT" if how == 4 => Value::Text("1/10".into()),
        "TEXT" if how == 5 => Value::Text(transcript_json(2)),
        _ => {
            let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
            let (bytes, rest) = data.split_at(end);
            *data = rest.get(1..).unwrap_or(&[]);
            match kind {
                "BLOB" => Value::Blob(bytes.to_vec()),
                _ => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            }
        }
    }
}

fn ledger_seeds() -> Vec<Vec<u8>> {
    // One row of each table, by number; more columns than any has.
    let row = |table: u8, how: u8| [vec![table], vec![how; 24]].concat();
    let mut seeds: Vec<Vec<u8>> =
        (0..12).flat_map(|t| [row(t, 1), row(t, 4), row(t, 3), row(t, 5)]).collect();
    seeds.push((0..12).flat_map(|t| row(t, 1)).collect());
    seeds
}

fn setup() -> Setup {
    let sigma2 = ratio(10_000, 1);
    let width = DiscreteGaussian::new(&sigma2).expect("a variance").width();
    let context = NoiseContext {
        study: [1; 32],
        release: [2; 32],
        session: [3; 32],
        data: vec![[4; 32], [5; 32]],
        viewer: PartyId(1),
        drawer: PartyId(0),
    };
    Setup::new(context, vec![Draw { sigma2, width }], 2).expect("a setup")
}

/// The record of a drawer (even) or of a viewer (odd), at three stages.
fn transcript_json(stage: usize) -> String {
    let rng = |seed: u8| base::Seed::from_bytes([seed; 32]).into_rng();
    let (drawer, commitments) = Drawer::commit(setup(), &mut rng(1));
    let (checker, seeds) =
        release::choose::Checker::new(setup(), &commitments, &mut rng(2)).expect("its own commitments");
    let written = match stage {
        0 => serde_json::to_string(drawer.transcript()),
        1 => serde_json::to_string(checker.transcript()),
        2 => serde_json::to_string(drawer.draw(&seeds).expect("its own seeds").transcript()),
        _ => {
            let debited = release::choose::Debited::committed(&setup(), 7);
            let chosen = checker.entered([9; 32]).choose(debited, &mut rng(3)).expect("an index");
            serde_json::to_string(chosen.transcript())
        }
    };
    written.expect("a transcript is JSON")
}

fn transcripts() -> Vec<Vec<u8>> {
    (0..4).map(|stage| transcript_json(stage).into_bytes()).collect()
}

fn transcript(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(record) = serde_json::from_str::<Transcript>(text) else { return };
    let _ = (record.side(), record.index(), record.outcome(), record.is_seeded());
    let _ = resume(record, &setup());
}

fn reports() -> Vec<Vec<u8>> {
    let made = [include_str!("../seeds/report-lift.json"), include_str!("../seeds/report-program.json")];
    made.map(|text| text.as_bytes().to_vec()).into()
}

fn report(data: &[u8]) {
    let Some(text) = text(data) else { return };
    for report in report::all_from_json(text).into_iter().flatten() {
        let _ = report::summary::terminal(&report, report::summary::USUAL_COLUMNS);
        let _ = report::html::render(&report);
    }
}

fn stats(data: &[u8]) {
    let _ = serde_json::from_slice::<osprey::Stats>(data);
}

fn header() -> trace::Header {
    trace::Header { chunk: 65_536, region: 1 << 30, microset: 4, key: 7 }
}

/// A trace in a file. Byte 0: whether checksums are set right, without which few inputs get past the first
/// frame.
fn trace(data: &[u8]) {
    let Some((fix, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if fix & 1 == 1 {
        seal_trace(&mut bytes);
    }
    let path = disk::file("made.trace", &bytes);
    let _ = TraceSource::open(&path, &header());
    if let Ok((_, mut source)) = TraceSource::inspect(&path) {
        while let Ok(TraceFeed::Block(_)) = source.next() {}
    }
}

/// Sets the checksums of the header and of every frame.
fn seal_trace(bytes: &mut [u8]) {
    const HEADER: usize = 52;
    let Some((header, mut frames)) = bytes.split_at_mut_checked(HEADER) else { return };
    let crc = crc32c(0, &header[..HEADER - 4]);
    header[HEADER - 4..].copy_from_slice(&crc.to_le_bytes());
    for number in 0u64.. {
        let (low, high) = (frames.first().copied().unwrap_or(0), frames.get(1).copied().unwrap_or(0));
        let long = low >> 7 == 1;
        let body = usize::from(low & 0x7f) | usize::from(if long { high & 0x7f } else { 0 }) << 7;
        let end = 1 + usize::from(long) + body;
        if frames.len() < end + 4 {
            return;
        }
        let (frame, rest) = frames.split_at_mut(end + 4);
        let crc = crc32c(crc32c(0, &number.to_le_bytes()), &frame[..end]);
        frame[end..].copy_from_slice(&crc.to_le_bytes());
        frames = rest;
    }
}

/// CRC-32C, bit by bit: not the reader's own.
fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
    !bytes.iter().fold(!crc, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

fn traces() -> Vec<Vec<u8>> {
    let path = disk::folder().join("good.trace");
    let mut writer = trace::Writer::create(&path, &header()).expect("a trace can be made");
    let entry = |chunk| trace::TraceEntry { chunk, written: chunk % 2 == 0, fresh: chunk % 3 == 0 };
    let mut entries = 0;
    for block in 0..3u64 {
        let touched: Vec<trace::TraceEntry> = [1, 2, 900, 3].map(|c| entry(c + block as u32)).into();
        entries += touched.len() as u64;
        let block = trace::TraceBlock { events: block * 5, hash: block / 2, entries: touched };
        writer.block(&block).expect("it is written");
    }
    let footer = trace::Footer { entries, peak_chunks: 12, other_bytes: 1 << 20 };
    writer.finish(&footer).expect("it is written");
    let good = fs::read(path).expect("it was made");
    vec![[&[0], &good[..]].concat(), [&[1], &good[..]].concat()]
}

/// A kept spine. Byte 0: whether its digest is set right.
fn spine(data: &[u8]) {
    let Some((fix, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if fix & 1 == 1 {
        seal_spine(&mut bytes);
    }
    job::run::fuzzing::spine(disk::file("kept.spine", &bytes), &studies()[0]);
}

/// Sets the hash of what the study says of its match, and the digest of all.
fn seal_spine(bytes: &mut [u8]) {
    let Some(end) = bytes.len().checked_sub(32).filter(|end| *end >= 78) else { return };
    bytes[46..78].copy_from_slice(studies()[0].matching_hash().as_bytes());
    let digest = *blake3::hash(&bytes[..end]).as_bytes();
    bytes[end..].copy_from_slice(&digest);
}

fn spines() -> Vec<Vec<u8>> {
    let made = job::run::fuzzing::made_spine(&disk::folder().join("made.spine"), &studies()[0]);
    vec![[&[0], &made[..]].concat(), [&[1], &made[..]].concat()]
}

/// The folder of a match that was cut. The first byte says which file is changed; then come places (2 bytes)
/// and bytes to XOR there. Its digests are not set right: that it lies damaged on disk is what must be
/// noticed.
fn journal(data: &[u8]) {
    let Some((which, edits)) = data.split_first() else { return };
    let cut = cut_match();
    let folder = disk::folder().join("work");
    restore(&folder, &cut.files);
    if !cut.files.is_empty() {
        let (name, bytes) = &cut.files[usize::from(*which) % cut.files.len()];
        let mut bytes = bytes.clone();
        for edit in edits.as_chunks::<3>().0 {
            let at = usize::from(u16::from_le_bytes([edit[0], edit[1]]));
            match bytes.len() {
                0 => bytes.push(edit[2]),
                len if edit[2] == 0 => bytes.truncate(at % len),
                len => bytes[at % len] ^= edit[2],
            }
        }
        fs::write(folder.join(name), bytes).expect("a file in memory");
    }
    let _ = cut.go_on(&folder);
}

/// A match that was cut: what lay in the folder, and what the peer says when it goes on.
struct Cut {
    files: Vec<(String, Vec<u8>)>,
    heard: Vec<u8>,
}

fn restore(folder: &Path, files: &[(String, Vec<u8>)]) {
    use std::os::unix::fs::DirBuilderExt;
    let _ = fs::remove_dir_all(folder);
    fs::DirBuilder::new().mode(0o700).create(folder).expect("a folder in memory");
    for (name, bytes) in files {
        let path = disk::file("one", bytes);
        fs::rename(path, folder.join(name)).expect("within one file system");
    }
}

impl Cut {
    fn go_on(&self, folder: &Path) -> Result<(), base::Error> {
        let mut session = lone(self.heard.clone());
        half(&mut session, folder.to_owned())
    }
}

fn lone(heard: Vec<u8>) -> Session {
    let roster = base::Roster::new(["p0", "p1"]);
    let peer: Box<dyn net::Channel> = Box::new(crate::talk::Script::new(heard));
    let seed = base::Seed::from_bytes([9; 32]).fork("0");
    Session::new(PartyId(0), roster, vec![(PartyId(1), peer)], seed)
}

fn half(session: &mut Session, folder: PathBuf) -> Result<(), base::Error> {
    let rows = crate::talks::column(if session.me() == PartyId(0) { 0..6 } else { 3..8 });
    let options =
        MatchOptions { threads: 1, peer_rows_max: 100, resume: Some(folder), ..MatchOptions::default() };
    PrivateId.run(session, &rows.flat(), None, &options).map(|_| ())
}

/// Party 0 of an honest match whose peer leaves near its end.
fn cut_match() -> &'static Cut {
    static CUT: LazyLock<Cut> = LazyLock::new(|| {
        let folders = [0, 1].map(|i| disk::folder().join(format!("whole-{i}")));
        folders.iter().for_each(|folder| restore(folder, &[]));
        let named = folders.clone();
        let whole = crate::talk::Talk::new(2, move |s| half(s, named[s.me().index()].clone()));
        let heard = whole.heard(0);
        let folder = disk::folder().join("cut");
        restore(&folder, &[]);
        let begun = lone_until(&heard, &folder);
        assert!(begun.is_err(), "a match that was cut ends with an error");
        let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(&folder)
            .expect("it was made")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.file_name().is_some_and(|name| name != "lock"))
            .map(|path| {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                (name, fs::read(path).expect("it is there"))
            })
            .collect();
        files.sort();
        Cut { files, heard }
    });
    &CUT
}

fn lone_until(heard: &[u8], folder: &Path) -> Result<(), base::Error> {
    half(&mut lone(heard[..heard.len() - 40].to_vec()), folder.to_owned())
}

fn journals() -> Vec<Vec<u8>> {
    let cut = cut_match();
    let files = 0..cut.files.len() as u8;
    files
        .flat_map(|which| [0u16, 20, 60, 200].map(|at| [&[which][..], &at.to_le_bytes(), &[1]].concat()))
        .collect()
}
