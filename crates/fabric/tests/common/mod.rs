//! Two parties as processes of their own that meet over TLS on loopback: the program starts itself again.
#![allow(dead_code, reason = "tests and the example use parts of their own")]

use base::{Error, PartyId, Roster, Seed};
use fabric::{PlainTransport, UpgradeOutcome, upgrade_with};
use net::{ChannelSecurity, Identity, Meet, Rendezvous, Session};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

pub const P0: PartyId = PartyId(0);
pub const P1: PartyId = PartyId(1);

/// What a process of a party is told in its environment.
const PARTY: &str = "TACIT_TEST_PARTY";

/// What one party is to do.
pub struct Party {
    pub me: PartyId,
    pub task: String,
    pub transport: String,
    pub window: usize,
    address: String,
    folder: String,
}

/// The party that this process is, if it is one.
pub fn party() -> Option<Party> {
    let text = std::env::var(PARTY).ok()?;
    let mut fields = text.split('|').map(str::to_owned);
    let mut next = || fields.next().expect("six fields");
    let me = PartyId(next().parse().expect("a number"));
    let (task, transport, window) = (next(), next(), next().parse().expect("a number"));
    Some(Party { me, task, transport, window, address: next(), folder: next() })
}

pub fn kind(transport: &str) -> Option<PlainTransport> {
    match transport.split_once('-') {
        Some(("fabric", provider)) => Some(PlainTransport::Fabric { provider: provider.into() }),
        _ if transport == "shm" => Some(PlainTransport::Shm),
        _ => None,
    }
}

impl Party {
    /// Meets the other one.
    pub fn meet(&self, deadline: Duration) -> Result<Session, Error> {
        let folder = Path::new(&self.folder);
        let load = |i: u8| Identity::load(&folder.join(format!("{i}.key")));
        let identities = [load(0)?, load(1)?];
        let keys = identities.iter().map(Identity::fingerprint).collect();
        let [a, b] = identities;
        let transport = match &self.transport[..] {
            "tcp" => ChannelSecurity::Tcp,
            _ => ChannelSecurity::Tls { identity: Arc::new(if self.me == P0 { a } else { b }), keys },
        };
        let endpoint = match self.me {
            P0 => Rendezvous::Listen(self.address.clone()),
            _ => Rendezvous::Dial(self.address.clone()),
        };
        let roster = Roster::new(["p0", "p1"]);
        let meet = Meet::new(self.me, roster.clone(), endpoint, transport, [1; 32]).deadline(deadline);
        let control = meet.patience(Duration::from_secs(60)).meet(0)?.control;
        Ok(Session::new(self.me, roster, control, Seed::from_system()))
    }

    /// Meets the other one and changes to the transport of this party, where it is a plain one.
    pub fn upgraded(&self, deadline: Duration) -> Result<Session, Error> {
        let mut session = self.meet(deadline)?;
        if let Some(kind) = kind(&self.transport) {
            let outcome = upgrade_with(&mut session, &[self.me.other()], &kind, true, self.window)?;
            assert_eq!(outcome, UpgradeOutcome::Upgraded(kind));
        }
        Ok(session)
    }
}

/// The two processes of a run, ended with it.
pub struct Run {
    pub children: Vec<Child>,
    _folder: tempfile::TempDir,
}

/// Starts both parties of `task`: this program again with `arguments`. `change` may alter what party i gets.
pub fn start(
    arguments: &[&str],
    task: &str,
    transport: &str,
    window: usize,
    change: impl Fn(usize, &mut Command),
) -> Run {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..2 {
        Identity::generate().unwrap().save(&folder.path().join(format!("{i}.key"))).unwrap();
    }
    let address = base::free_address().unwrap();
    let child = |i: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let folder = folder.path().display();
        command.args(arguments).env(PARTY, format!("{i}|{task}|{transport}|{window}|{address}|{folder}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        change(i, &mut command);
        command.spawn().unwrap()
    };
    Run { children: vec![child(0), child(1)], _folder: folder }
}

impl Run {
    /// Waits for both and gives, for each, whether it ended well and what it printed.
    pub fn outputs(mut self) -> [(bool, String); 2] {
        let ids: Vec<u32> = self.children.iter().map(Child::id).collect();
        let outputs = std::mem::take(&mut self.children).into_iter().map(|child| {
            let output = child.wait_with_output().unwrap();
            let text = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8_lossy(&text).into_owned())
        });
        let outputs: Vec<_> = outputs.collect();
        ids.into_iter().for_each(sweep);
        outputs.try_into().expect("two parties")
    }
}

/// Whether a file of /dev/shm is of an endpoint of this process.
pub fn shm_file_of(name: &str, id: u32) -> bool {
    let process = name.strip_prefix("tacit-").and_then(|rest| rest.split_once('-'));
    process.is_some_and(|(_, rest)| rest.starts_with(&format!("{id}:")))
}

/// Removes what libfabric's shm provider leaves of a process that was killed.
fn sweep(id: u32) {
    for file in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if shm_file_of(&file.file_name().to_string_lossy(), id) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
