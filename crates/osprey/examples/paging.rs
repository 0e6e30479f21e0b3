//! Paging against memory without a limit: a known pattern over a region of `--size` MiB with `--memory` MiB,
//! about 10 us of AES per 4 KiB page, contents compared at every touch. Prints the ratio, the pager's CPU per
//! chunk moved, bytes, stalls.
//!
//! ```text
//! cargo run --release -p osprey --example paging -- [seq] [merge] [rand64]
//!     [--size 1024] [--memory 256] [--work 10]
//!     [--passes 2] [--engine move] [--chunk 64] [--spill DIR] [--keys] [--reactive]
//! ```
//! `--keys`: the program counts no events, so that the pager learns its place from chunks held back.
//! `--reactive`: without a trace.

use kernels::{Aes128, Block};
use osprey::{OspVec, PagingEngine, PassMode, ProcessSettings, Stats};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const PAGE: usize = 4096;
const CHILD: &str = "OSPREY_PAGING_EXAMPLE";

#[derive(Clone, Debug)]
struct Options {
    patterns: Vec<String>,
    size: usize,
    memory: u64,
    work: f64,
    passes: usize,
    keys: bool,
    reactive: bool,
    settings: ProcessSettings,
}

fn main() {
    if let Ok(task) = std::env::var(CHILD) {
        return child(&task);
    }
    let options = options().unwrap_or_else(|text| {
        eprintln!("{text}");
        std::process::exit(2);
    });
    let rounds = calibrate(options.work);
    println!("{} MiB in {} MiB, {rounds} AES passes per page", options.size, options.memory >> 20);
    for pattern in &options.patterns {
        compare(&options, pattern, rounds);
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        patterns: Vec::new(),
        size: 1024,
        memory: 256 << 20,
        work: 10.0,
        passes: 2,
        keys: false,
        reactive: false,
        settings: ProcessSettings { engine: PagingEngine::Move, ..ProcessSettings::default() },
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| text.parse::<usize>().map_err(|_| format!("{text} is no number"));
        match argument.as_str() {
            "seq" | "merge" | "rand64" => options.patterns.push(argument),
            "--size" => options.size = number(value()?)?,
            "--memory" => options.memory = (number(value()?)? as u64) << 20,
            "--work" => options.work = value()?.parse().map_err(|_| "--work needs microseconds")?,
            "--passes" => options.passes = number(value()?)?,
            "--engine" => options.settings.engine = value()?.parse()?,
            "--chunk" => options.settings.chunk = number(value()?)? << 10,
            "--spill" => options.settings.spill = value()?.into(),
            "--keys" => options.keys = true,
            "--reactive" => options.reactive = true,
            other => {
                return Err(format!("{other}: expected seq, merge, rand64 or an option; see the source"));
            }
        }
    }
    if options.patterns.is_empty() {
        options.patterns = ["seq", "merge", "rand64"].map(String::from).into();
    }
    options.settings.microset = osprey::settings::microset(options.settings.chunk);
    Ok(options)
}

/// AES passes over a page that take that many microseconds.
fn calibrate(microseconds: f64) -> usize {
    let (aes, mut page) = (Aes128::new(Block::ONE), vec![Block::ZERO; PAGE / 16]);
    let begun = Instant::now();
    (0..20_000).for_each(|_| aes.encrypt(&mut page));
    (microseconds * 20_000.0 / (begun.elapsed().as_secs_f64() * 1e6)).ceil() as usize
}

fn compare(options: &Options, pattern: &str, rounds: usize) {
    let directory = std::env::temp_dir().join(format!("osprey-paging-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let pass = |mode: PassMode, memory: u64| run(options, pattern, rounds, mode, memory, &directory);
    let (free, _) = pass(PassMode::Off, 0);
    let mode = if options.reactive { PassMode::Reactive } else { PassMode::Programmed };
    let speculation = (!options.reactive).then(|| pass(PassMode::Speculate, 0).0);
    let (paged, stats) = pass(mode, options.memory);
    std::fs::remove_dir_all(&directory).expect("removed");
    let chunk = stats.chunk as f64;
    let pairs = (stats.bytes_read + stats.bytes_written) as f64 / chunk / 2.0;
    println!(
        "{pattern:7} {} {:.2} s, unbounded {free:.2} s, ratio {:.3}; speculation {:.2} s; pager {:.1} us per \
         chunk out and in; read {} MiB, written {} MiB, dead {}, clean {}; stalls {}, keys {}; plan {:.3} s, \
         {} entries, {} frames; {:?}",
        options.settings.engine,
        paged,
        paged / free,
        speculation.unwrap_or(0.0),
        stats.pager_cpu_s * 1e6 / pairs.max(1.0),
        stats.bytes_read >> 20,
        stats.bytes_written >> 20,
        stats.dropped_dead,
        stats.dropped_clean,
        stats.stalls,
        stats.key_faults,
        stats.plan_s,
        stats.trace_entries,
        stats.frames,
        stats.warnings,
    );
}

/// One pass in a child: seconds between its marks, and its counters.
fn run(
    options: &Options,
    pattern: &str,
    rounds: usize,
    mode: PassMode,
    memory: u64,
    directory: &Path,
) -> (f64, Stats) {
    let report = directory.join("report");
    let settings = ProcessSettings {
        mode,
        memory,
        trace: (mode != PassMode::Reactive).then(|| directory.join("trace")),
        report: Some(report.clone()),
        ..options.settings.clone()
    };
    let task = format!("{pattern} {} {} {rounds} {}", options.size, options.passes, options.keys);
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(CHILD, task);
    settings.apply_to(&mut command);
    let output = command.stderr(Stdio::inherit()).output().expect("a child");
    assert!(output.status.success(), "{mode} pass: {}", output.status);
    let mut stats: Stats =
        serde_json::from_slice(&std::fs::read(report).expect("a report")).expect("a report in JSON");
    // What was counted before the first mark does not belong to what is measured.
    let before: Stats = serde_json::from_slice(&output.stdout).expect("counters in JSON");
    stats.stalls -= before.stalls;
    stats.key_faults -= before.key_faults;
    stats.pager_cpu_s -= before.pager_cpu_s;
    stats.bytes_read -= before.bytes_read;
    stats.bytes_written -= before.bytes_written;
    let at = |name| stats.marks.iter().find(|mark| mark.name == name).expect("the program's marks").at_s;
    (at("stop") - at("start"), stats)
}

fn child(task: &str) {
    let words: Vec<&str> = task.split(' ').collect();
    let [pattern, size, passes, rounds, keys] = words[..] else { panic!("{task}") };
    let number = |word: &str| word.parse::<usize>().expect("a number");
    let pages = number(size) << 20 >> 12;
    let (passes, rounds, keys) = (number(passes), number(rounds), keys == "true");
    osprey::init().expect("the runtime");
    let mut data: OspVec<Block> = OspVec::zeroed(pages * (PAGE / 16));
    let aes = Aes128::new(Block::ONE);
    let mut counts = vec![0u64; pages];
    let mut touch = |page: usize, counts: &mut [u64]| {
        let blocks = &mut data[page * (PAGE / 16)..][..PAGE / 16];
        let expected = Block(u128::from(counts[page]) << 64 | page as u128);
        counts[page] += 1;
        if osprey::speculating() {
            blocks[0] = Block::ZERO;
        } else {
            assert!(counts[page] == 1 || blocks[255] == expected, "page {page} is not as it was left");
            (0..rounds).for_each(|_| aes.encrypt(blocks));
            blocks[255] = Block(u128::from(counts[page]) << 64 | page as u128);
        }
        if !keys && page.is_multiple_of(16) {
            osprey::tick();
        }
    };
    (0..pages).for_each(|page| touch(page, &mut counts));
    println!("{}", serde_json::to_string(&osprey::stats()).expect("counters"));
    osprey::mark("start");
    for pass in 0..passes {
        order(pattern, pages, pass).for_each(|page| touch(page, &mut counts));
    }
    osprey::mark("stop");
}

/// The pages in the order of a pass.
fn order(pattern: &str, pages: usize, pass: usize) -> Box<dyn Iterator<Item = usize>> {
    match pattern {
        "seq" => Box::new(0..pages),
        "merge" => {
            let half = pages >> (pass + 1);
            Box::new((0..pages).map(move |i| {
                let (pair, side) = (i / 2, i % 2);
                pair / half * 2 * half + pair % half + side * half
            }))
        }
        _ => {
            // Groups of 16 pages, shuffled.
            let groups = pages / 16;
            let mut order: Vec<usize> = (0..groups).collect();
            let mut state = 12_345 + pass as u64;
            for i in (1..groups).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                order.swap(i, (state >> 33) as usize % (i + 1));
            }
            Box::new(order.into_iter().flat_map(|group| group * 16..group * 16 + 16))
        }
    }
}
