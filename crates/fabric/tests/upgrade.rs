//! From TLS to plain transports: who refuses, who falls back, what it costs.

mod common;

use base::{Error, PartyId};
use common::{P0, P1};
use fabric::{PlainTransport, UpgradeOutcome, upgrade, upgrade_bytes, upgrade_with};
use net::Session;
use net::cluster::Cluster;
use std::time::Duration;

#[test]
fn it_starts_only_on_a_trusted_network() {
    let error =
        Cluster::new(2, 1).run(|s| upgrade(s, &[s.me().other()], &PlainTransport::Shm, false)).remove(0);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("set trusted_network = true"), "{error}");
}

#[test]
fn all_of_several_parties_change_at_once_and_the_ledger_goes_on() {
    let done = Cluster::new(4, 1).run(|s| {
        let peers = s.peers();
        s.step("before", |s| peers.iter().try_for_each(|peer| s.link(*peer).send(&[1; 10])))?;
        s.step("before", |s| peers.iter().try_for_each(|peer| s.link(*peer).recv(&mut [0; 10])))?;
        let private: Vec<bool> = peers.iter().map(|peer| s.link(*peer).is_private()).collect();
        assert_eq!(private, [true; 3]);
        assert_eq!(
            upgrade_with(s, &peers, &PlainTransport::Shm, true, 4096)?,
            UpgradeOutcome::Upgraded(PlainTransport::Shm)
        );
        let expected: u64 = peers.iter().map(|peer| upgrade_bytes(s.me(), *peer, &PlainTransport::Shm)).sum();
        assert_eq!(s.traffic().sent("upgrade"), expected);
        s.step("after", |s| {
            for peer in &peers {
                let (mine, mut theirs) = (vec![s.me().0; 50_000], vec![0; 50_000]);
                s.link(*peer).exchange(&mine, &mut theirs)?;
                assert!(theirs.iter().all(|byte| *byte == peer.0) && !s.link(*peer).is_private());
            }
            Ok(())
        })?;
        assert_eq!((s.traffic().sent("before"), s.traffic().sent("after")), (30, 150_000));
        Ok(())
    });
    done.into_iter().for_each(|party| party.unwrap());
}

/// Party 1 plays one that does not find the socket, as on another host: both keep their private channel.
#[test]
fn parties_on_two_hosts_keep_tls() {
    let done = Cluster::new(2, 1).deadline(Duration::from_secs(60)).run(|s| {
        if s.me() == P0 {
            let outcome = upgrade(s, &[P1], &PlainTransport::Shm, true)?;
            let UpgradeOutcome::Kept(why) = outcome else { panic!("{outcome:?}") };
            assert_eq!(why, "p1 is on another host or in another container");
            assert!(s.link(P1).is_private());
            return s.link(P1).send(&[9]);
        }
        elsewhere(s)?;
        assert_eq!(s.link(P0).recv_array()?, [9]);
        Ok(())
    });
    done.into_iter().for_each(|party| party.unwrap());
}

fn elsewhere(s: &mut Session) -> Result<(), Error> {
    s.link(P0).exchange(&[1; 32], &mut [0; 32])?;
    let offer: [u8; 81] = s.link(P0).recv_array()?;
    assert_eq!(offer[0], 1, "p0 offers");
    s.link(P0).send(&[0, 0])?;
    s.link(P0).send(&[0])?;
    assert_eq!(s.link(P0).recv_array()?, [0], "p0 has no channel");
    Ok(())
}

/// Keys that were agreed in plain text would be worth nothing.
#[test]
fn it_wants_a_private_channel() {
    for kind in [PlainTransport::Shm, PlainTransport::Fabric { provider: "tcp".into() }] {
        let done = Cluster::new(2, 1).run(|s| {
            let peer = PartyId(1 - s.me().0);
            // A sealed channel is authentic, but plain.
            upgrade_with(s, &[peer], &PlainTransport::Shm, true, 4096)?;
            upgrade_with(s, &[peer], &kind, true, 4096)
        });
        for party in done {
            let error = party.unwrap_err().to_string();
            assert!(error.contains("keys for plain channels are agreed over TLS"), "{error}");
        }
    }
}

#[test]
fn windows_are_bounded() {
    for window in [100, 1 << 30] {
        let done = Cluster::new(2, 1)
            .run(|s| upgrade_with(s, &[s.me().other()], &PlainTransport::Shm, true, window));
        assert!(done[0].as_ref().unwrap_err().to_string().contains("4 KiB to 64 MiB"));
    }
}

/// Who keeps to private channels says in the open what is fit for it, and nothing else.
#[test]
fn a_session_that_keeps_private_uses_both_channels() {
    let done = Cluster::new(2, 1).run(|s| {
        let peer = s.me().other();
        upgrade(s, &[peer], &PlainTransport::Shm, true)?;
        s.keep_private();
        let say = |s: &mut Session, private: bool, round: u8| {
            assert_eq!(s.link(peer).is_private(), private);
            let (mine, mut theirs) = (vec![s.me().0 ^ round; 70_000], vec![0; 70_000]);
            s.link(peer).exchange(&mine, &mut theirs)?;
            assert!(theirs.iter().all(|byte| *byte == peer.0 ^ round), "round {round}");
            // Queued and not handed over: it must not stay behind on the channel that is left.
            s.link(peer).send(&[round])?;
            Ok(())
        };
        let hear = |s: &mut Session, round: u8| {
            assert_eq!(s.link(peer).recv_array()?, [round]);
            Ok(())
        };
        for round in [1, 2] {
            say(s, true, 10 + round)?;
            s.openly(|s| say(s, false, round))?;
            hear(s, 10 + round)?;
            s.openly(|s| hear(s, round))?;
        }
        s.finish()
    });
    done.into_iter().for_each(|party| party.unwrap());
}
