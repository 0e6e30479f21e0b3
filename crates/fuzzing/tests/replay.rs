//! Seeds and kept corpora through every decoder. A panic in whatever thread fails.

use fuzzing::{Target, corpus, targets};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// No input of a corpus may take longer; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// Panics so far, also of threads that a protocol swallows.
fn panics() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    static HOOK: OnceLock<()> = OnceLock::new();
    HOOK.get_or_init(|| {
        let shown = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            COUNT.fetch_add(1, Ordering::SeqCst);
            shown(info);
        }));
    });
    COUNT.load(Ordering::SeqCst)
}

fn replay(target: &Target) -> Result<(), String> {
    let name = target.name;
    (target.check)().map_err(|e| format!("{name}: {e}"))?;
    let kept = corpus::read(&corpus::path(name)).map_err(|e| format!("{name}: {e}"))?;
    let seeds = (target.seeds)();
    if seeds.is_empty() {
        return Err(format!("{name}: no seeds"));
    }
    for (i, input) in seeds.iter().chain(&kept).enumerate() {
        let (before, start) = (panics(), Instant::now());
        let ended = std::panic::catch_unwind(|| (target.run)(input));
        if ended.is_err() || panics() > before {
            return Err(format!(
                "{name}: input {i} of {} bytes panics: {:02x?}",
                input.len(),
                &input[..input.len().min(64)]
            ));
        }
        if start.elapsed() > PATIENCE {
            return Err(format!("{name}: input {i} takes {:?}", start.elapsed()));
        }
    }
    Ok(())
}

/// One after the other: panics are counted for the whole process.
#[test]
fn corpora_are_decoded_or_refused() {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let failed: Vec<String> = targets()
        .filter_map(|target| {
            let start = Instant::now();
            let done = replay(target).err();
            println!("{:20} {:6.2} s", target.name, start.elapsed().as_secs_f64());
            done
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn names_are_different_and_every_pack_has_a_target() {
    let mut names: Vec<&str> = targets().map(|t| t.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for entry in std::fs::read_dir(corpus::path("x").parent().unwrap()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = name.strip_suffix(".pack").is_some_and(|name| fuzzing::target(name).is_some());
        assert!(known || name == "README.md", "{name} belongs to no target");
    }
}

#[test]
fn packs_keep_inputs() {
    let path = fuzzing::disk::folder().join("a.pack");
    let inputs = vec![vec![3; 300], vec![], vec![1], vec![3; 300]];
    corpus::write(&path, inputs).unwrap();
    assert_eq!(corpus::read(&path).unwrap(), [vec![], vec![1], vec![3; 300]]);
    let torn = std::fs::read(&path).unwrap();
    std::fs::write(&path, &torn[..torn.len() - 1]).unwrap();
    assert!(corpus::read(&path).is_err());
}
