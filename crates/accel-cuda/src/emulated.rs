//! The device on the emulator (`emulator/driver.cpp`): the kernels, the chunks and the calls of the driver
//! without a GPU.

use crate::driver::{NVRTC_NAMES, Runtime, emulator_counts};
use crate::{Cuda, memory};
use accel::{
    BlockHalf, Cpu, Device, DeviceCommand, DeviceQueue, LinearStage, MessagePiece, PIECE_BLOCKS,
    VectorMemory, VectorProduct, VectorRing, VouchBy, conformance,
};
use base::{Error, PartyId};
use fabric::{PlainTransport, upgrade_with};
use kernels::{Block, GfKey, Place, SharedMemory, gf_digest};
use net::cluster::Cluster;
use ring4::{Number, Planes, SeatParty, Settings};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Compiles the emulator; `None` where there is no C++ compiler.
fn build(folder: &Path) -> Option<PathBuf> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let library = folder.join("libemulator.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("emulator/driver.cpp");
    let mut command = Command::new(compiler);
    command.args([
        "-std=c++17",
        "-O2",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unknown-pragmas",
    ]);
    let run = match command.arg(source).arg("-o").arg(&library).output() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        run => run.unwrap(),
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Some(library)
}

struct Emulator {
    runtime: Arc<Runtime>,
    library: String,
    _folder: tempfile::TempDir,
}

/// The emulator, compiled once; `None` and a word where it cannot be.
fn emulator() -> Option<&'static Emulator> {
    static EMULATOR: OnceLock<Option<Emulator>> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        let library = build(folder.path())?.to_str().unwrap().to_owned();
        let runtime = Runtime::load(&[&library], &[&library]).unwrap();
        Some(Emulator { runtime, library, _folder: folder })
    };
    let emulator = EMULATOR.get_or_init(make).as_ref();
    if emulator.is_none() {
        println!("skipped: no C++ compiler");
    }
    emulator
}

/// Blocks from which on the emulated GPU is handed operations.
const LEAST_HANDED: usize = 128;

/// For tests whose devices lock memory of transports: the emulator counts for the whole process.
static LOCKS: Mutex<()> = Mutex::new(());

impl Emulator {
    fn device(&self, chunk: [usize; 3]) -> Result<Cuda, Error> {
        self.device_within(chunk, usize::MAX)
    }

    /// With so many bytes of memory.
    fn device_within(&self, chunk: [usize; 3], most: usize) -> Result<Cuda, Error> {
        // Short vectors are handed over too: long ones take the emulator minutes.
        let mut cuda = Cuda::on(self.runtime.clone(), 0, chunk, 4, most)?;
        cuda.least_handed = LEAST_HANDED;
        Ok(cuda)
    }
}

/// Chunks of all sizes, down to those that cut dot products within their terms, give the bits of the CPU;
/// nothing is left in memory that is given back.
#[test]
fn the_emulated_gpu_conforms() {
    let Some(emulator) = emulator() else { return };
    let _alone = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    for chunk in [[16, 32, 32], [64, 256, 128], [1 << 12; 3]] {
        conformance::check(&|| Ok(Box::new(emulator.device(chunk)?)))
            .unwrap_or_else(|e| panic!("chunks of {chunk:?}: {e}"));
    }
    // Three checks of four devices with five lanes of two buffers each, and what other tests did meanwhile.
    let [frees, unwiped, locked] = emulator_counts(&emulator.library);
    assert!(
        frees >= 3 * 4 * 3 * 2 && unwiped == 0,
        "{frees} buffers given back, {unwiped} of them not wiped"
    );
    assert_eq!(locked, 0, "memory of transports is page-locked as long as devices are there");
}

/// Operations over vectors that stay on the GPU have the shares and the messages of those of the host, and so
/// have those that hand long vectors to it.
#[test]
fn operations_on_the_emulated_gpu_conform() {
    let Some(emulator) = emulator() else { return };
    let _alone = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    for (chunk, lens) in [([16, 32, 1 << 12], &[300, 1, 512][..]), ([1 << 12; 3], &[5000])] {
        ring4::conformance::check(&|| Ok(DeviceQueue::new(vec![Box::new(emulator.device(chunk)?)])), lens)
            .unwrap_or_else(|e| panic!("chunks of {chunk:?}: {e}"));
    }
}

/// A card that is full leaves vectors, and commands, to the host: shares and messages are the same.
#[test]
fn a_full_card_leaves_the_rest_to_the_host() {
    let Some(emulator) = emulator() else { return };
    let _alone = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let chunk = [16, 32, 1 << 12];
    // All of a product, whatever comes in and goes out having one lane.
    let buffers = memory::buffers((1 << 12, 32), 1, 4);
    for vectors in [0, 40_000] {
        let queue =
            || Ok(DeviceQueue::new(vec![Box::new(emulator.device_within(chunk, buffers + vectors)?)]));
        ring4::conformance::check(&queue, &[300]).unwrap_or_else(|e| panic!("{vectors} bytes: {e}"));
    }
    let [keys, ..] = conformance::keys();
    let mut full = DeviceQueue::new(vec![Box::new(emulator.device_within(chunk, buffers).unwrap())]);
    full.configure(&keys).unwrap();
    full.make(VectorRing::Z128, 300).unwrap();
    assert_eq!(full.work().spilled, 1);
    // Not even a lane: who has a CPU beside it goes on, else the error names the card.
    let mut none = DeviceQueue::new(vec![Box::new(emulator.device_within(chunk, 1 << 13).unwrap())]);
    none.configure(&keys).unwrap();
    let x = [vec![Block::ONE; 1 << 18], vec![Block::ONE; 1 << 18], vec![Block::ONE; 1 << 18]];
    let mut z = x.clone();
    let run = |queue: &mut DeviceQueue, z: &mut [Vec<Block>; 3]| {
        let [z0, z1, z2] = z;
        let x = x.each_ref().map(Vec::as_slice);
        queue.run(&mut DeviceCommand::Add(LinearStage { ring: VectorRing::Z128, x, y: x, z: [z0, z1, z2] }))
    };
    let error = run(&mut none, &mut z).unwrap_err().to_string();
    assert!(error.contains("the memory of cuda:0 (host, 1024 MiB) is full"), "{error}");
    let mut beside = none.with_cpu();
    beside.configure(&keys).unwrap();
    run(&mut beside, &mut z).unwrap();
    assert_eq!((z[2][77], beside.work().taken_over), (Block(2), 1));
}

/// Whether a vector is handed over is decided by its length, not by that of all operands and planes together.
#[test]
fn short_vectors_stay_with_the_host_however_many_there_are() {
    let Some(emulator) = emulator() else { return };
    let settings = Settings { masked: true, ..Settings::default() };
    let _alone = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    for (len, wanted) in [(LEAST_HANDED - 1, [0; 4]), (LEAST_HANDED, [1, 2, 3, 4])] {
        let counts = Cluster::new(4, 5).run(|session| {
            let queue = DeviceQueue::new(vec![Box::new(emulator.device([1 << 12; 3])?)]);
            let mut party = SeatParty::new(session, [0, 1, 2, 3].map(PartyId), settings, queue)?;
            let [x, y] = [0; 2].map(|_| party.random(VectorRing::Z128, len));
            let mut counts = [0; 4];
            let below = party.less(session, &x, &y, Number::unsigned(128))?;
            counts[0] = party.queue().work().handed_over;
            party.select_by_bit(session, &below, &x, &y)?;
            counts[1] = party.queue().work().handed_over;
            party.multiply_fixed(session, (&x, &y), 20, 5)?;
            counts[2] = party.queue().work().handed_over;
            party.word_to_ring(session, VectorRing::Z128, &Planes::new(vec![below; 128])?)?;
            counts[3] = party.queue().work().handed_over;
            Ok(counts)
        });
        counts.into_iter().for_each(|counts| assert_eq!(counts.unwrap(), wanted, "{len} elements"));
    }
}

/// Long messages in shared memory have the tags of digests that the GPU makes of what it has: seats with and
/// without a GPU, each beside one of its kind and one of the other, understand each other.
#[test]
fn messages_in_shared_memory_are_digested_by_who_has_them() {
    let Some(emulator) = emulator() else { return };
    let settings = Settings { masked: true, ..Settings::default() };
    let _alone = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    // Of one seed, so shares are the same whoever computes them.
    let run = |with_gpus: bool, len: usize, terms: usize| -> Vec<[Vec<Block>; 3]> {
        let done = Cluster::new(4, 5).run(|session| {
            let device: Box<dyn Device> = match session.me().0 {
                0 | 1 if with_gpus => Box::new(emulator.device([64, 256, 1 << 14])?),
                _ => Box::new(Cpu::default()),
            };
            let queue = DeviceQueue::new(vec![device]);
            let mut party = SeatParty::new(session, [0, 1, 2, 3].map(PartyId), settings, queue)?;
            upgrade_with(session, &session.peers(), &PlainTransport::Shm, true, 1 << 20)?;
            let mut kept = Vec::new();
            for _ in 0..2 * terms {
                let some = party.random(VectorRing::Z128, len);
                kept.push(party.keep(&some)?);
            }
            let (x, y) = kept.split_at(terms);
            let [x, y] = [x, y].map(|some| some.iter().collect::<Vec<_>>());
            let z = party.dot_on_device(session, &x, &y)?;
            Ok(party.fetch(&z)?.parts().map(<[Block]>::to_vec))
        });
        done.into_iter().map(|party| party.unwrap()).collect()
    };
    // More than half a window, in chunks that end within a piece; both halves in one chunk, whose terms are
    // summed in slices; as long as what one chunk holds of both halves, and one more; nothing.
    for (len, terms) in [(70_001, 1), (512, 3), (2_048, 1), (2_049, 1), (0, 1)] {
        let products = run(true, len, terms);
        assert!(len == 0 || products.iter().flatten().all(|part| part.iter().any(|b| *b != Block::ZERO)));
        assert!(products == run(false, len, terms), "{len}: a product is one wherever it was made");
    }
}

/// Digests of pieces as long as they come, and of a shorter one behind them, are those of what was copied.
#[test]
fn long_pieces_are_digested_as_they_are_copied() {
    let Some(emulator) = emulator() else { return };
    let _alone = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let [_, seat, ..] = conformance::keys();
    let mut queue = DeviceQueue::new(vec![Box::new(emulator.device([64, 256, 1 << 14]).unwrap())]);
    queue.configure(&seat).unwrap();
    let blocks = 2 * (2 * PIECE_BLOCKS + 700);
    let [x, z] = [0; 2].map(|_| queue.make(VectorRing::Z128, blocks).unwrap());
    let content: Vec<Block> = (0..blocks).map(|i| Block(u128::MAX / (3 + i as u128))).collect();
    queue.write(&x, [&content; 3]).unwrap();
    let (half, at) = (BlockHalf::First, 0..blocks / 2);
    let key = Arc::new(GfKey::new(Block(0x1357_9bdf_0246_8ace << 50 | 3)));
    let (masked, vouch, factors, keys) = (true, VouchBy::Nothing, &[[&x, &x]], [Some(&key), Some(&key)]);
    let product = VectorProduct { round: 1, at, factors, z: &z, masked, vouch, keys };
    queue.start(0, &product).unwrap();
    let with_c = half.sends(seat.seat());
    let mut pieces = Vec::new();
    for from in (0..blocks / 2).step_by(PIECE_BLOCKS) {
        let blocks = from..(blocks / 2).min(from + PIECE_BLOCKS);
        let parts = [false, true].into_iter().take(1 + usize::from(with_c));
        pieces.extend(parts.map(|of_c| MessagePiece { of_c, blocks: blocks.clone() }));
    }
    let bytes: usize = pieces.iter().map(MessagePiece::bytes).sum();
    let (memory, mut end) = (Arc::new(SharedMemory::own(bytes).unwrap()), 0);
    let mut place = |piece: &MessagePiece| {
        end += piece.bytes();
        vec![memory.place(end - piece.bytes(), piece.bytes())]
    };
    let places: Vec<_> = pieces.iter().map(&mut place).collect();
    let copied: Vec<Vec<Block>> =
        places.iter().map(|places| vec![Block::ZERO; places[0].bytes() / 16]).collect();
    let expected = |copied: &mut Vec<Vec<Block>>| -> Vec<Block> {
        let of = |(places, copied): (&Vec<Place>, &mut Vec<Block>)| {
            Place::read_all(places, Block::bytes_of_mut(copied));
            assert!(copied.iter().any(|block| *block != Block::ZERO));
            gf_digest(&key, Block::ZERO, copied)
        };
        places.iter().zip(copied).map(of).collect()
    };
    let mut copied = copied;
    let mut outbox = queue.outbox(0).unwrap();
    let digests = outbox.copy(&pieces, &places).unwrap().wait().unwrap();
    assert!(*digests == expected(&mut copied), "of what is sent, in the order of its pieces");
    // What comes back to this seat in the other half has as many pieces, or those of A alone.
    let mut inbox = queue.inbox(0).unwrap();
    assert!(inbox.digests());
    let with_c = half.receives(seat.seat());
    let arriving: Vec<usize> = (0..pieces.len()).filter(|&i| with_c || !pieces[i].of_c).collect();
    let (some, from): (Vec<_>, Vec<_>) =
        arriving.iter().map(|&i| (pieces[i].clone(), places[i].clone())).unzip();
    drop(inbox.copy(&some, &from).unwrap());
    queue.fold(0).unwrap();
    let digests = queue.arrived_digests(0).unwrap();
    let all = expected(&mut copied);
    let of = |of_c: bool| {
        let these = arriving.iter().filter(|&&i| pieces[i].of_c == of_c);
        these.map(|&i| all[i]).collect::<Vec<_>>()
    };
    assert!(*digests == [of(false), of(true)].concat(), "of what arrived, A and then C");
    queue.settle(0).unwrap();
}

/// Where there is an NVRTC, with or without a GPU, it makes an image of the kernels.
#[test]
fn the_compiler_takes_the_kernels() {
    let Some(emulator) = emulator() else { return };
    let runtime = Runtime::load(&[&emulator.library], &NVRTC_NAMES).unwrap();
    match Cuda::on(runtime.clone(), 0, [1; 3], 1, usize::MAX) {
        Err(e) if e.to_string().contains("no NVRTC") => println!("skipped: {e}"),
        made => {
            let capability = made.unwrap().gpu().capability;
            assert!(runtime.image(capability).unwrap().starts_with(b"\x7fELF"), "an image of the GPU");
        }
    }
}

/// What stays on the GPU keeps within its buffers; the emulator ends the process where a kernel does not.
#[test]
fn resident_products_run() {
    let Some(emulator) = emulator() else { return };
    let mut device = emulator.device([64; 3]).unwrap();
    assert!(device.resident(VectorRing::Z128, 64, true, true).is_err(), "no keys yet");
    let [keys, ..] = conformance::keys();
    device.configure(keys).unwrap();
    for ring in VectorRing::ALL {
        for (masked, digests) in [(false, false), (true, true)] {
            device.resident(ring, 64, masked, digests).unwrap().run(3).unwrap();
        }
    }
    assert!(device.resident(VectorRing::Z128, 65, false, false).is_err());
    assert!(device.resident(VectorRing::Z128, 0, false, false).is_err());
}

/// What is missing is named, with what to install.
#[test]
fn errors_say_what_is_missing() {
    let text = |e: Option<Error>| e.expect("an error").to_string();
    let none = text(Runtime::load(&["libno-such-driver.so"], &[]).err());
    assert!(none.contains("no CUDA driver; install") && none.contains("libno-such-driver.so"), "{none}");
    let Some(emulator) = emulator() else { return };
    let runtime = Runtime::load(&[&emulator.library], &["libno-such-compiler.so"]).unwrap();
    let none = text(Cuda::on(runtime, 0, [1; 3], 1, usize::MAX).err());
    assert!(none.contains("no NVRTC") && none.contains("LD_LIBRARY_PATH"), "{none}");
    let none = text(Cuda::on(emulator.runtime.clone(), 7, [1; 3], 1, usize::MAX).err());
    assert!(none.contains("there is no GPU 7; this machine has 1"), "{none}");
    let mut device = emulator.device([1; 3]).unwrap();
    assert_eq!((device.name(), device.gpu().name.as_str()), ("cuda", "host"));
    let command =
        LinearStage { ring: VectorRing::Z2, x: [&[]; 3], y: [&[]; 3], z: [&mut [], &mut [], &mut []] };
    assert!(text(device.run(&mut DeviceCommand::Add(command)).err()).contains("no keys yet"));
}
