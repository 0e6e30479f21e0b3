//! One command opens the party file, the study and the key once each: what was checked is what runs.

use crate::support::{NAMES, Pair, Running, command};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Counts how often files are opened, by whatever process. The kernel tells an open file's end, too: without
/// it, two openings in a row would be told as one.
struct OpenCounter {
    events: OwnedFd,
    names: BTreeMap<i32, String>,
}

impl OpenCounter {
    fn on(folder: &Path, names: &[String]) -> Self {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let watch = |name: &String| {
            let watched =
                inotify::add_watch(&events, folder.join(name), WatchFlags::OPEN | WatchFlags::CLOSE);
            (watched.unwrap(), name.clone())
        };
        let names = names.iter().map(watch).collect();
        Self { events, names }
    }

    /// Openings so far, by name.
    fn count(self) -> BTreeMap<String, u32> {
        let mut counts: BTreeMap<String, u32> = self.names.values().map(|name| (name.clone(), 0)).collect();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.events, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::OPEN) => {
                    *counts.get_mut(&self.names[&event.wd()]).unwrap() += 1;
                }
                Ok(_) => {}
                Err(Errno::AGAIN) => return counts,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Two parties with a study file each, as on two machines.
fn pair() -> Pair {
    let pair = Pair::csv(300);
    for name in NAMES {
        std::fs::copy(pair.path("study.toml"), pair.path(&format!("{name}-study.toml"))).unwrap();
        pair.edit(&format!("{name}.toml"), "study.toml", &format!("{name}-study.toml"));
    }
    pair
}

/// What a party's command reads before anything else.
fn files(name: &str) -> [String; 3] {
    [".toml", "-study.toml", ".key"].map(|end| format!("{name}{end}"))
}

fn once(names: &[String]) -> BTreeMap<String, u32> {
    names.iter().map(|name| (name.clone(), 1)).collect()
}

#[test]
fn the_counter_sees_every_opening() {
    let pair = pair();
    let names = files(NAMES[0]);
    let counter = OpenCounter::on(pair.folder.path(), &names);
    for _ in 0..2 {
        std::fs::read(pair.path(&names[1])).unwrap();
    }
    let expected = [(names[0].clone(), 0), (names[1].clone(), 2), (names[2].clone(), 0)];
    assert_eq!(counter.count(), BTreeMap::from(expected));
}

#[test]
fn a_check_reads_each_file_once() {
    let pair = pair();
    let file = pair.path(&format!("{}.toml", NAMES[0]));
    let counter = OpenCounter::on(pair.folder.path(), &files(NAMES[0]));
    let words = ["check".as_ref(), file.as_os_str(), "--spend-anyway".as_ref()];
    Running::start(command(words)).end().fine();
    assert_eq!(counter.count(), once(&files(NAMES[0])));
}

#[test]
fn a_run_without_its_peer_reads_each_file_once() {
    let pair = pair();
    let counter = OpenCounter::on(pair.folder.path(), &files(NAMES[0]));
    Running::start(pair.run(NAMES[0], &["--deadline", "1s"])).end().failed(3, &[NAMES[1]]);
    assert_eq!(counter.count(), once(&files(NAMES[0])));
}

#[test]
fn a_whole_run_reads_each_file_once() {
    let pair = pair();
    let names = NAMES.map(files).concat();
    let counter = OpenCounter::on(pair.folder.path(), &names);
    pair.both([&[], &[]]).into_iter().for_each(|done| _ = done.fine());
    assert_eq!(counter.count(), once(&names));
}
