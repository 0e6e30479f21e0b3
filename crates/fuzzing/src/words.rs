//! Messages of one piece: what a peer or a device says that a function of bytes decodes.

use crate::Target;
use crate::talk::Script;
use accel::{
    BlockHalf, Cpu, Device, DeviceCommand, FoldStage, LinearStage, MultiplyStage, Seat, SeatKeys, VectorRing,
    Vouch, check,
};
use base::{PartyId, Seed};
use fabric::{PairKeys, SealedChannel};
use kernels::{Aes128, Block};
use matching::circuit_psi::okvs;
use matching::paillier::key::{CIPHERTEXT_BYTES, KEY_BYTES, LIMBS, Plaintext, PublicKey, SecretKey};
use net::Channel;
use release::choose::{Checker, Debited, Draw, Drawer, NoiseContext, Setup};
use release::gaussian::DiscreteGaussian;
use release::rational::ratio;
use std::sync::{Arc, LazyLock};
use units::{
    ByeReason, FailureCause, FinishedAttempt, HeldResult, UnitAction, UnitEvent, UnitMachine, UnitRecord,
    UnitStanding, UnitsSetting, Word,
};

pub(crate) const TARGETS: &[Target] = &[
    Target::new("hello", hello, net::fuzzing::examples).least(10_000_000),
    Target::new("farewell", farewell, net::fuzzing::examples).least(10_000_000),
    Target::new("gate-word", net::fuzzing::gate_word, net::fuzzing::gate_words).least(1_000_000),
    Target::new("fabric-card", card, || vec![vec![1; fabric::fuzzing::CARD_BYTES]]).least(1_000_000),
    Target::new("fabric-frames", frames, frame_seeds).least(1_000_000),
    Target::new("accel-command", command, commands).least(1_000_000),
    Target::new("accel-answer", answer, answers).least(1_000_000),
    Target::new("paillier", paillier, ciphertexts),
    Target::new("elements", elements, || vec![[0; 32].into(), [255; 64].into(), (9..73).collect()]),
    Target::new("okvs", table, || vec![vec![3, 1], vec![200, 16, 7, 7, 7]]),
    Target::new("choose", choose, choose_seeds).least(10_000),
    Target::new("sealed-object", store::fuzzing::sealed, || store::fuzzing::seeds()[0].clone()),
    Target::new("log-object", store::fuzzing::log, || store::fuzzing::seeds()[1].clone()).least(1_000_000),
    Target::new("run-footer", store::fuzzing::footer, || store::fuzzing::seeds()[2].clone()).least(1_000_000),
    Target::new("coordinator-word", coordinator_word, coordinator_words).least(1_000_000),
    Target::new("unit-record", unit_record, unit_records).least(1_000_000),
    Target::new("proposal-statement", statements::fuzzing::statement, || {
        statements::fuzzing::seeds()[0].clone()
    })
    .least(1_000_000),
    Target::new("consent-request", statements::fuzzing::request, || statements::fuzzing::seeds()[1].clone())
        .least(1_000_000),
    Target::new("peer-coordinator", peer_coordinator, || vec![vec![1; 60], (0..200).collect()]),
];

/// A word between coordinators has one form.
fn coordinator_word(data: &[u8]) {
    if let Some(word) = Word::decode(data) {
        assert!(word.encode() == data, "another form of {word:?}");
    }
}

fn coordinator_words() -> Vec<Vec<u8>> {
    let (unit, attempt, lane) = (1, 2, 3);
    let (session, transcript) = ([8; 32], [9; 32]);
    let standing = UnitStanding { floor: 3, held: 2, session: [7; 8] };
    let address = "workers.example.org:7101".to_owned();
    let words = [
        Word::State { run: [5; 32], stage: 1, units: vec![standing; 3] },
        Word::Door { lane, generation: 4, fingerprint: [6; 16], address },
        Word::Open { unit, attempt, lane },
        Word::Have { unit, attempt, session, transcript },
        Word::Failed { unit, floor: 5, cause: FailureCause::Store },
        Word::Seal { root: [10; 32] },
        Word::Beat { rows: 12 },
        Word::Bye { reason: ByeReason::Done },
    ];
    words.iter().map(Word::encode).collect()
}

/// A record of a unit has one form. Byte 0 is its kind.
fn unit_record(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    if let Some(record) = UnitRecord::decode(*kind, bytes) {
        assert!(record.encode() == (*kind, bytes.to_vec()), "another form of {record:?}");
    }
}

fn unit_records() -> Vec<Vec<u8>> {
    let held = HeldResult { attempt: 1, session: [2; 32], transcript: [0; 32], object: [3; 32], bytes: 4 };
    let records = [
        UnitRecord::Floor { unit: 1, attempt: 2 },
        UnitRecord::Held { unit: 1, held },
        UnitRecord::Seal { root: [5; 32] },
    ];
    records.iter().map(UnitRecord::encode).map(|(kind, bytes)| [&[kind][..], &bytes].concat()).collect()
}

/// A peer says whatever it likes to the coordinator of three units, which leads or follows (byte 0). Each
/// word is a byte of length and so many bytes; own workers finish what they are told to begin.
fn peer_coordinator(data: &[u8]) {
    let Some((leads, mut left)) = data.split_first() else { return };
    let setting = UnitsSetting { run: [5; 32], stage: 1, units: 3, lanes: 2, leads: leads & 1 == 1 };
    let mut state = UnitMachine::new(setting, &[]);
    let mut events = vec![UnitEvent::LaneUp(1), UnitEvent::LaneUp(0), UnitEvent::Met];
    let mut sealed = 0;
    loop {
        while let Some(event) = events.pop() {
            let Ok(actions) = state.step(event) else { return };
            for action in actions {
                match action {
                    UnitAction::Start { unit, attempt, .. } => {
                        let held = HeldResult {
                            attempt,
                            session: [8; 32],
                            transcript: [9; 32],
                            object: [0; 32],
                            bytes: 0,
                        };
                        events.push(UnitEvent::Finished(FinishedAttempt { unit, held }));
                    }
                    UnitAction::Sealed { root } => {
                        sealed += 1;
                        assert!(sealed == 1 && state.root() == Some(root));
                    }
                    UnitAction::End(_) => return,
                    _ => {}
                }
            }
        }
        let Some((len, rest)) = left.split_first() else { return };
        let (word, rest) = rest.split_at(rest.len().min((*len).into()));
        left = rest;
        events.extend(Word::decode(word).map(UnitEvent::Heard));
    }
}

/// The first bytes of an array, zeros where there are none.
fn padded<const N: usize>(data: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let n = data.len().min(N);
    bytes[..n].copy_from_slice(&data[..n]);
    bytes
}

fn hello(data: &[u8]) {
    net::fuzzing::hello(&padded(data));
}

fn farewell(data: &[u8]) {
    net::fuzzing::farewell(&padded(data));
}

fn card(data: &[u8]) {
    fabric::fuzzing::card(&padded(data));
}

/// What comes on a sealed channel. Byte 0 is how much is asked for at once.
fn frames(data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    let keys = PairKeys::derive(PartyId(1), PartyId(0), &[5; 32], &[3; 32]);
    let mut channel = SealedChannel::new(Script::new(bytes.to_vec()), keys, "the channel");
    let mut into = vec![0; usize::from(*piece) + 1];
    while channel.recv(&mut into).is_ok() {}
}

/// A channel into a vector.
#[derive(Clone, Default)]
struct Sink(Arc<std::sync::Mutex<Vec<u8>>>);

impl Channel for Sink {
    fn send(&mut self, bytes: &[u8]) -> Result<(), base::ChannelError> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(())
    }
    fn recv(&mut self, into: &mut [u8]) -> Result<(), base::ChannelError> {
        if into.is_empty() { Ok(()) } else { Err(base::ChannelError::Cut) }
    }
    fn finish(&mut self) -> Result<(), base::ChannelError> {
        Ok(())
    }
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let sink = Sink::default();
    let keys = PairKeys::derive(PartyId(0), PartyId(1), &[3; 32], &[5; 32]);
    let mut sealed = SealedChannel::new(sink.clone(), keys, "the channel");
    for message in [&[7u8; 40][..], &[1], &[0; 16]] {
        sealed.send(message).and_then(|()| sealed.recv(&mut [])).expect("a vector takes all");
    }
    let wire = sink.0.lock().expect("nobody panicked").clone();
    vec![[&[0], &wire[..]].concat(), [&[15], &wire[..]].concat(), [&[90], &wire[..]].concat()]
}

/// A command whose slices are of any lengths, checked and, where it fits, run on the CPU: 4 bytes for
/// operation, ring, seat and half; terms; round and first; then the lengths.
fn command(data: &[u8]) {
    let bytes: [u8; 40] = padded(data);
    let ring = [VectorRing::Z128, VectorRing::Z64, VectorRing::Z2][usize::from(bytes[1]) % 3];
    let seat = Seat::new(usize::from(bytes[2]) % 4);
    let half = [BlockHalf::First, BlockHalf::Second][usize::from(bytes[3] & 1)];
    let masked = bytes[3] & 2 != 0;
    let terms = usize::from(bytes[4]);
    let number = |at: usize| u64::from_le_bytes(padded(&bytes[at..at + 8]));
    let (round, first) = (number(5), number(13));
    let mut lengths = bytes[21..].iter().map(|len| usize::from(*len) % 33);
    // Equal lengths are likely: a length of 32 stands for that of the first.
    let base = lengths.next().unwrap_or(0);
    let mut vector = || vec![Block(7); lengths.next().map_or(base, |n| if n == 32 { base } else { n })];
    let (x, y) = ([vector(), vector(), vector()], [vector(), vector(), vector()]);
    let (mut z, [mut a, mut c, mut va, mut vc]) =
        ([vector(), vector(), vector()], [vector(), vector(), vector(), vector()]);
    let (x, y) = (x.each_ref().map(|v| &v[..]), y.each_ref().map(|v| &v[..]));
    let mut digests = [Block(1), Block(2)];
    let [z0, z1, z2] = &mut z;
    let mut command = match bytes[0] % 6 {
        0 => DeviceCommand::Add(LinearStage { ring, x, y, z: [z0, z1, z2] }),
        1 => DeviceCommand::Sub(LinearStage { ring, x, y, z: [z0, z1, z2] }),
        which @ 2..=4 => {
            let vouch = match which {
                2 => Vouch::Nothing,
                3 => Vouch::Digest(&mut digests),
                _ => Vouch::Expose { a: &mut va, c: &mut vc },
            };
            let z = [&mut z0[..], &mut z1[..], &mut z2[..]];
            DeviceCommand::Multiply(MultiplyStage {
                ring,
                round,
                first,
                half,
                terms,
                x,
                y,
                z,
                a: &mut a,
                c: &mut c,
                masked,
                vouch,
            })
        }
        _ => {
            let digests = (bytes[3] & 4 != 0).then_some(&mut digests);
            DeviceCommand::Fold(FoldStage {
                ring,
                round,
                first,
                half,
                z: [z1, z2],
                a: &a,
                c: &c,
                masked,
                digests,
            })
        }
    };
    let fits = check(&command, seat).is_ok();
    let mut device = Cpu::default();
    device.configure(Arc::new(SeatKeys::new(seat, [Block(3); 3], [Block(5); 3]))).expect("keys of a seat");
    let ran = device.run(&mut command).is_ok();
    assert!(fits || !ran, "what does not fit is not run");
}

fn commands() -> Vec<Vec<u8>> {
    let of = |operation: u8| {
        let mut bytes = vec![operation, operation, 1, 2, 1];
        bytes.extend([0; 16]);
        bytes.push(4);
        bytes.extend([32; 18]);
        bytes
    };
    (0..6).map(of).collect()
}

/// A simulator's answer to a command of as many blocks as byte 0 says.
fn answer(data: &[u8]) {
    let Some((blocks, bytes)) = data.split_first() else { return };
    accel_rtl::fuzzing::answer(bytes, usize::from(*blocks));
}

fn answers() -> Vec<Vec<u8>> {
    let of = |streams: u8| {
        let mut bytes = vec![2];
        bytes.extend([9; 40]);
        bytes.push(streams);
        bytes.extend(vec![4; 32 * streams.count_ones() as usize]);
        bytes
    };
    vec![of(0), of(7), of(31)]
}

/// Where edits of a message begin with what is right: byte 0 says what, then places (2 bytes) and a byte to
/// XOR.
fn edited(mut right: Vec<u8>, edits: &[u8]) -> Vec<u8> {
    for edit in edits.as_chunks::<3>().0 {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % right.len().max(1);
        if let Some(byte) = right.get_mut(at) {
            *byte ^= edit[2];
        }
    }
    right
}

fn secret() -> &'static SecretKey {
    static KEY: LazyLock<SecretKey> =
        LazyLock::new(|| SecretKey::generate(&mut Seed::from_bytes([4; 32]).into_rng()));
    &KEY
}

/// A modulus or a ciphertext of a known key, edited or anything.
fn paillier(data: &[u8]) {
    static CIPHERTEXT: LazyLock<[u8; CIPHERTEXT_BYTES]> = LazyLock::new(|| {
        let randomiser = secret().randomiser(&mut Seed::from_bytes([6; 32]).into_rng());
        secret().encrypt(&Plaintext::from_limbs([5; LIMBS]), randomiser).to_bytes()
    });
    let Some((which, edits)) = data.split_first() else { return };
    let public = secret().public();
    let read = |bytes: &[u8]| {
        for ciphertext in public.read(bytes).into_iter().flatten() {
            let _ = secret().decrypt(&ciphertext);
        }
    };
    match which % 4 {
        0 => _ = PublicKey::from_bytes(&padded::<KEY_BYTES>(&edited(public.to_bytes().into(), edits))),
        1 => _ = PublicKey::from_bytes(&padded(edits)),
        2 => read(&edited(CIPHERTEXT.to_vec(), edits)),
        _ => read(&padded::<CIPHERTEXT_BYTES>(edits)),
    }
}

fn ciphertexts() -> Vec<Vec<u8>> {
    vec![vec![0], vec![0, 0, 0, 1], vec![1, 255], vec![2], vec![2, 9, 0, 1], vec![3, 1], vec![3, 0]]
}

/// Elements of the group, one and many at a time.
fn elements(data: &[u8]) {
    let mut column: Vec<matching::group::GroupElement> = data.as_chunks::<32>().0.to_vec();
    let exponent = matching::group::Exponent::from_bytes([7; 32]).expect("not zero");
    let _ = matching::group::mul_batch(&mut column, &exponent, 1);
}

/// A table of a key-value store that a peer sent, looked up: byte 0 is how many keys, byte 1 the width.
fn table(data: &[u8]) {
    let [keys, width, rest @ ..] = data else { return };
    let (keys, width) = (u64::from(*keys), usize::from(*width) % 32 + 1);
    let shape = okvs::StoreShape::new(keys.max(1), keys.max(1) * 2);
    let mut bytes = rest.to_vec();
    bytes.resize(shape.entries() * width, 1);
    let names: Vec<Block> = (0..keys).map(|i| Block(u128::from(i) << 70 | 3)).collect();
    let mut rows = Vec::new();
    okvs::rows(&Aes128::new(Block(11)), shape, &names, &mut rows);
    let mut out = vec![0; rows.len() * width];
    okvs::decode(shape, &bytes, width, &rows, &mut out);
}

fn setup() -> &'static Setup {
    static SETUP: LazyLock<Setup> = LazyLock::new(|| {
        let draw = |sigma2: release::Rational| {
            let width = DiscreteGaussian::new(&sigma2).expect("a variance").width();
            Draw { sigma2, width }
        };
        let context = NoiseContext {
            study: [1; 32],
            release: [2; 32],
            session: [3; 32],
            data: vec![[4; 32], [5; 32]],
            viewer: PartyId(1),
            drawer: PartyId(0),
        };
        Setup::new(context, vec![draw(ratio(17, 3)), draw(ratio(10_000, 1))], 3).expect("a setup")
    });
    &SETUP
}

/// Cut-and-choose without a network: byte 0 says which message is edited, and who has deviated by that.
fn choose(data: &[u8]) {
    let Some((which, edits)) = data.split_first() else { return };
    let rng = |seed: u8| Seed::from_bytes([seed; 32]).into_rng();
    let message = |number: u8, right: Vec<u8>| match which % 8 {
        n if n == number => edited(right, edits),
        n if n == number + 4 => edits.to_vec(),
        _ => right,
    };
    let (drawer, commitments) = Drawer::commit(setup().clone(), &mut rng(1));
    let Ok((checker, seeds)) = Checker::new(setup().clone(), &message(0, commitments), &mut rng(2)) else {
        return;
    };
    let Ok(drawn) = drawer.draw(&message(1, seeds)) else { return };
    let entered: Vec<Vec<i128>> = drawn.candidates().iter().map(|c| c.expose().clone()).collect();
    let (drawer, checker) = (drawn.entered([9; 32]), checker.entered([9; 32]));
    let Ok(chosen) = checker.choose(Debited::committed(setup(), 7), &mut rng(3)) else { return };
    let Ok(named) = drawer.named(Debited::committed(setup(), 3), &message(2, chosen.message().into())) else {
        return;
    };
    let (_, openings) = named.open();
    let mut others = entered;
    others.remove(chosen.index());
    let _ = chosen.check(&message(3, openings), &others);
}

fn choose_seeds() -> Vec<Vec<u8>> {
    (0..8).flat_map(|which| [vec![which], vec![which, 0, 0, 1], vec![which, 200, 0, 128]]).collect()
}
