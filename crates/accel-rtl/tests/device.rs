//! The simulated core as a device, and the tests of its blocks. Everything is built by `rtl/build.sh`, as by
//! `make rtl`. Skipped with a reason where there is no Verilator.

use accel::{
    BlockHalf, Cpu, Device, DeviceCommand, DeviceQueue, FoldStage, LinearStage, MultiplyStage, Seat,
    VectorRing, Vouch, conformance,
};
use accel_rtl::Rtl;
use kernels::{Aes128, Block};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rtl")
}

/// One compiler run at a time.
static BUILDING: Mutex<()> = Mutex::new(());

/// Builds one of what `rtl/build.sh` knows; `None`, with the reason printed, where there is no Verilator.
fn built(what: &str, program: &str) -> Option<PathBuf> {
    if Command::new("verilator").arg("--version").output().is_err() {
        eprintln!("skipped: no verilator");
        return None;
    }
    let exe = std::env::current_exe().expect("this executable");
    // A test executable lies in TARGET/PROFILE/deps.
    let target = exe.ancestors().nth(3).expect("a target folder");
    let _one = BUILDING.lock().expect("builds do not panic");
    let done = Command::new("sh").arg(sources().join("build.sh")).arg(target).arg(what).output();
    let done = done.expect("a shell runs");
    assert!(done.status.success(), "{what} does not build:\n{}", said(&done));
    Some(target.join("rtl").join(program))
}

fn simulator() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| built("simulator", accel_rtl::PROGRAM)).as_deref()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
}

/// Runs a program of tests to its success.
fn passes(program: &Path, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().expect("it starts");
    assert!(done.status.success(), "{} {arguments:?}:\n{}", program.display(), said(&done));
    said(&done)
}

fn random(label: u64, n: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; n];
    kernels::stream(&Aes128::new(Block(0xacce1)), label, 0, &mut out);
    out
}

#[test]
fn it_conforms() {
    let Some(program) = simulator() else { return };
    conformance::check(&|| Ok(Box::new(Rtl::at(program)?))).unwrap();
}

/// Operations over vectors: products and sums are the core's, the rest is done by the host.
#[test]
fn operations_conform() {
    let Some(program) = simulator() else { return };
    let queue = || Ok(DeviceQueue::new(vec![Box::new(Rtl::at(program)?)]));
    ring4::conformance::check(&queue, &[3]).unwrap();
}

/// What a stage 1 and a stage 2 with digests give on a device.
fn both_stages(device: &mut dyn Device, seat: Seat, n: usize, terms: usize) -> Vec<Vec<Block>> {
    let half = BlockHalf::Second;
    let [x, y] = [0, 3].map(|from| [0, 1, 2].map(|k| random(from + k, n * terms)));
    let mut z = [0, 1, 2].map(|_| vec![Block::ZERO; n]);
    let (mut a, mut c) = (vec![Block::ZERO; n], vec![Block::ZERO; if half.sends(seat) { n } else { 0 }]);
    let mut digests = [[Block(1), Block(2)], [Block(3), Block(4)]];
    let [z0, z1, z2] = &mut z;
    let mut command = DeviceCommand::Multiply(MultiplyStage {
        ring: VectorRing::Z64,
        round: (1 << 48) - 1,
        first: 1 << 40,
        half,
        terms,
        x: x.each_ref().map(|part| &**part),
        y: y.each_ref().map(|part| &**part),
        z: [z0, z1, z2],
        a: &mut a,
        c: &mut c,
        masked: true,
        vouch: Vouch::Digest(&mut digests[0]),
    });
    device.run(&mut command).unwrap();
    let [from_a, from_c] = [random(6, n), random(7, if half.receives(seat) { n } else { 0 })];
    let [_, z1, z2] = &mut z;
    let mut command = DeviceCommand::Fold(FoldStage {
        ring: VectorRing::Z64,
        round: 9,
        first: 0,
        half,
        z: [z1, z2],
        a: &from_a,
        c: &from_c,
        masked: true,
        digests: Some(&mut digests[1]),
    });
    device.run(&mut command).unwrap();
    let [z0, z1, z2] = z;
    vec![z0, z1, z2, a, c, digests.concat()]
}

/// Commands that go to the simulator in several requests, and a sum of no terms, are those of the CPU.
#[test]
fn long_commands_go_in_parts() {
    let Some(program) = simulator() else { return };
    for (seat, keys) in Seat::ALL.into_iter().zip(conformance::keys()).skip(1).take(2) {
        let (mut rtl, mut cpu) = (Rtl::at(program).unwrap(), Cpu::default());
        rtl.configure(keys.clone()).unwrap();
        cpu.configure(keys).unwrap();
        for (n, terms) in [((1 << 14) + 5, 1), (5, 1 << 13), (3, 0)] {
            let mine = both_stages(&mut rtl, seat, n, terms);
            assert!(mine == both_stages(&mut cpu, seat, n, terms), "{n} blocks of {terms} terms at {seat:?}");
        }
    }
}

/// A thousand products cost a thousand cycles and the way through the pipeline.
#[test]
fn cycles_are_counted() {
    let Some(program) = simulator() else { return };
    let mut rtl = Rtl::at(program).unwrap();
    rtl.configure(conformance::keys()[2].clone()).unwrap();
    assert_eq!(rtl.cycles(), 0);
    let before = [1000, 2000].map(|n| {
        let start = rtl.cycles();
        let parts = [0, 1, 2].map(|k| random(k, n));
        let parts = parts.each_ref().map(|part| &**part);
        let mut z = [0, 1, 2].map(|_| vec![Block::ZERO; n]);
        let [z0, z1, z2] = &mut z;
        let sum = LinearStage { ring: VectorRing::Z128, x: parts, y: parts, z: [z0, z1, z2] };
        rtl.run(&mut DeviceCommand::Add(sum)).unwrap();
        rtl.cycles() - start
    });
    assert!((1000..1100).contains(&before[0]), "{} cycles", before[0]);
    assert_eq!(before[1] - before[0], 1000, "one cycle per block");
}

#[test]
fn misuse_and_a_lost_simulator_are_errors_that_say_so() {
    let Some(program) = simulator() else { return };
    let mut none = [0; 3].map(|_| vec![Block::ZERO; 2]);
    let mut add = |device: &mut Rtl| {
        let [z0, z1, z2] = &mut none;
        let x = [&[Block::ONE; 2][..]; 3];
        let sum = LinearStage { ring: VectorRing::Z2, x, y: x, z: [z0, z1, z2] };
        device.run(&mut DeviceCommand::Add(sum)).map_err(|e| e.to_string())
    };
    let mut rtl = Rtl::at(program).unwrap();
    assert!(add(&mut rtl).unwrap_err().contains("no keys yet"));
    rtl.configure(conformance::keys()[0].clone()).unwrap();
    add(&mut rtl).unwrap();

    let nowhere = Rtl::at(Path::new("/nonexistent/tacit-rtl-sim")).err().unwrap().to_string();
    assert!(nowhere.contains("starting /nonexistent/tacit-rtl-sim"), "{nowhere}");
    // A program that ends at once instead of answering.
    let mut ended = Rtl::at(Path::new("true")).unwrap();
    let text = ended.configure(conformance::keys()[0].clone()).unwrap_err().to_string();
    assert!(text.contains("ended; start the device again"), "{text}");
    // One that announces an answer of 175 million bytes.
    let mut echo = Rtl::at(Path::new("yes")).unwrap();
    let text = echo.configure(conformance::keys()[0].clone()).unwrap_err().to_string();
    assert!(text.contains("an answer longer than any"), "{text}");
}

#[test]
fn bounds_have_errors() {
    let Some(program) = simulator() else { return };
    let mut rtl = Rtl::at(program).unwrap();
    rtl.configure(conformance::keys()[0].clone()).unwrap();
    let factors = vec![Block::ONE; (1 << 20) + 1];
    let mut multiply = |terms: usize, round: u64, first: u64| {
        let x = [&factors[..terms]; 3];
        let mut out = [[Block::ZERO]; 5];
        let [z0, z1, z2, a, c] = &mut out;
        let command = MultiplyStage {
            ring: VectorRing::Z2,
            round,
            first,
            half: BlockHalf::First,
            terms,
            x,
            y: x,
            z: [z0, z1, z2],
            a,
            c,
            masked: false,
            vouch: Vouch::Nothing,
        };
        rtl.run(&mut DeviceCommand::Multiply(command)).map_err(|e| e.to_string())
    };
    multiply(1, (1 << 48) - 1, u64::MAX - 1).unwrap();
    assert!(multiply(1, 1 << 48, 0).unwrap_err().contains("2^48 rounds"));
    assert!(multiply(1, 0, u64::MAX).unwrap_err().contains("2^64 blocks"));
    let many = multiply((1 << 20) + 1, 0, 0).unwrap_err();
    assert!(many.contains("terms of a dot product on the device rtl"), "{many}");
    multiply(1 << 10, 0, 0).unwrap();
}

#[test]
fn blocks_do_what_the_standards_say() {
    for what in ["mul", "aes", "gf"] {
        let Some(program) = built(what, &format!("test-{what}")) else { return };
        println!("{}", passes(&program, &[]));
    }
}

#[test]
fn commands_survive_stalls_on_every_stream() {
    let Some(program) = simulator() else { return };
    println!("{}", passes(program, &["test"]));
}

/// The goal: a product per cycle, malicious as fast as semi-honest.
#[test]
fn one_product_per_cycle() {
    let Some(program) = simulator() else { return };
    let bench: Value = serde_json::from_str(&passes(program, &["bench"])).unwrap();
    let batches = bench["batches"].as_array().unwrap();
    let of = |security: &str| {
        let batch = batches.iter().rfind(|b| b["security"] == security).unwrap();
        ["products", "stage1_cycles", "stage2_cycles"].map(|name| batch[name].as_u64().unwrap())
    };
    let [products, stage1, stage2] = of("malicious");
    assert!(stage1 * 99 < products * 100 && stage2 * 99 < products * 100, "{stage1} and {stage2} cycles");
    assert_eq!([products, stage1, stage2], of("semi-honest"));
}

#[test]
fn it_is_free_of_lint() {
    let linted = Command::new("sh").arg(sources().join("lint.sh")).output();
    if Command::new("verilator").arg("--version").output().is_err() {
        eprintln!("skipped: no verilator");
        return;
    }
    let linted = linted.expect("a shell runs");
    assert!(linted.status.success() && linted.stderr.is_empty(), "{}", said(&linted));
}
