//! Ranges of rows at once, over TLS: where one of them meets a wrong tag, the whole study ends, soon, and
//! everybody names who accuses whom.

use accel::DeviceQueue;
use base::{ChannelError, Error, Fault, PartyId, Roster, Seed, free_address};
use engine::{PreparedRows as _, RowInput, run_lanes};
use net::{Channel, ChannelSecurity, Channels, Farewell, Identity, Meet, RangeHalt, Session};
use ring4::{Ring4, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use studies::lift::{BenchRows, LiftParameters, build};

const NAMES: [&str; 4] = ["publisher", "advertiser", "server-2", "server-3"];
const RANGES: u32 = 3;
/// So many that two cores have work for minutes.
const ROWS: u64 = 20_000_000;
/// Who deviates, in which range, towards whom.
const BENDS: (usize, u32, PartyId) = (2, 1, PartyId(1));
/// Bytes that it sends in order there: some chunks of rows.
const HONEST_BYTES: usize = 4 << 20;
const SOON: Duration = Duration::from_secs(30);

/// Changes one byte of what it sends, after so many.
struct BentChannel {
    inner: Box<dyn Channel>,
    honest: usize,
    bent: Arc<AtomicBool>,
}

impl Channel for BentChannel {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let before = self.honest;
        self.honest = before.saturating_sub(bytes.len());
        if before == 0 || self.honest > 0 {
            return self.inner.send(bytes);
        }
        let mut bytes = bytes.to_vec();
        bytes[0] ^= 1;
        self.bent.store(true, SeqCst);
        self.inner.send(&bytes)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.inner.recv(into)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.inner.finish()
    }

    fn private(&self) -> bool {
        self.inner.private()
    }

    fn halts_with(&mut self, halt: &RangeHalt) {
        self.inner.halts_with(halt);
    }
}

/// Meets the others: a session for every range, and the lane for farewells.
fn meet(
    me: usize,
    (identities, addresses): (&[Arc<Identity>], &[String]),
    bent: &Arc<AtomicBool>,
) -> Result<(Vec<Session>, Farewell), Error> {
    let (id, roster) = (PartyId(me as u8), Roster::new(NAMES));
    let keys = identities.iter().map(|identity| identity.fingerprint()).collect();
    let security = ChannelSecurity::Tls { identity: identities[me].clone(), keys };
    let dial = (0..me).map(|i| (PartyId(i as u8), addresses[i].clone())).collect();
    let meet = Meet::all(id, roster.clone(), Some(addresses[me].clone()), dial, security, [7; 32]);
    let mut meeting =
        meet.patience(Duration::from_secs(60)).deadline(Duration::from_secs(60)).meet(RANGES)?;
    let farewell = meeting.farewell()?;
    let session = |(range, mut channels): (u32, Channels)| {
        if (me, range) == (BENDS.0, BENDS.1) {
            let bend = |(peer, inner): (PartyId, Box<dyn Channel>)| match peer == BENDS.2 {
                false => (peer, inner),
                true => {
                    (peer, Box::new(BentChannel { inner, honest: HONEST_BYTES, bent: bent.clone() }) as _)
                }
            };
            channels = channels.into_iter().map(bend).collect();
        }
        let seed = Seed::from_bytes([me as u8 + 16 * range as u8; 32]);
        Session::new(id, roster.clone(), channels, seed).with_id([range as u8; 32])
    };
    Ok(((0..).zip(meeting.workers).map(session).collect(), farewell))
}

#[test]
fn a_wrong_tag_in_one_range_ends_the_study() {
    let identities: Vec<_> = NAMES.map(|_| Arc::new(Identity::generate().unwrap())).into();
    let addresses: Vec<_> = NAMES.map(|_| free_address().unwrap()).into();
    let (program, layout) = build(&LiftParameters::bench(4)).unwrap();
    let lift = LiftParameters::bench(4);
    let engine = Ring4::new(Settings::default(), [0, 1, 2, 3].map(PartyId), || Ok(DeviceQueue::default()));
    let stage = engine.prepare(&program);
    let bent = Arc::new(AtomicBool::new(false));
    let start = Instant::now();
    let party = |me: usize| -> Error {
        let (mut sessions, farewell) = meet(me, (&identities, &addresses), &bent).unwrap();
        let (first, lanes) = sessions.split_first_mut().unwrap();
        let own = Some(PartyId(me as u8));
        let rows = |range| BenchRows::new(&lift, &layout, own, ROWS, 7).shard(range, RANGES);
        let run = |mut rows: BenchRows, session: &mut Session| stage.run(RowInput::Owned(&mut rows), session);
        let stop = |error| farewell.stop(error);
        let done = run_lanes(&program, (first, lanes), (0..RANGES).map(rows).collect(), run, stop);
        done.map(drop).unwrap_err()
    };
    let errors: Vec<Error> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..NAMES.len()).map(|me| scope.spawn(move || party(me))).collect();
        threads.into_iter().map(|party| party.join().unwrap()).collect()
    });
    assert!(bent.load(SeqCst), "a byte was changed: {errors:?}");
    assert!(start.elapsed() < SOON, "{:?}: {errors:?}", start.elapsed());
    for (me, error) in errors.iter().enumerate() {
        let told = error.accusation().unwrap_or_else(|| panic!("{} names nobody: {error}", NAMES[me]));
        assert!(matches!(error.kind(), Fault::Deviated(_)), "{error}");
        assert_eq!(told.by, NAMES[BENDS.2.index()], "who saw it accuses: {error}");
        assert!(told.accused.contains(&NAMES[BENDS.0].to_owned()), "{error}");
        assert!(told.step.starts_with("rows"), "{error}");
    }
}
