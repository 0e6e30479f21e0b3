//! What a service says, and does not say, once a copy of its store is used.

use super::super::watch;
use super::*;

const DAY: u64 = 24 * 3_600;

/// The same organisation, with a copy of its store.
fn restored(pair: &Pair, copy: &std::path::Path) -> House {
    let at = |name: &str| pair.path("restored").join(name);
    std::fs::create_dir_all(at("data")).expect("made");
    for name in ["service.toml", "registry.key", "data/trial.csv"] {
        std::fs::copy(pair.path(name), at(name)).expect("copied");
    }
    std::fs::copy(copy, at("service.db")).expect("copied");
    let store = Store::open(&at("service.db")).expect("opens");
    store.use_copy("today", super::super::now() + 1).expect("restored");
    drop(store);
    House::open(&at("service.toml")).expect("opens")
}

/// Chains of what is over are compared with nobody, so what was said there since the copy was made comes back
/// from nobody.
#[test]
fn nothing_is_signed_twice_on_a_study_that_is_over() {
    let pair = Pair::new("");
    let (open, _) = pair.proposed("A question", "");
    let (over, _) = pair.proposed("Another question", "");
    let reason = ClosingReason { code: ClosingCode::Other, text: "Not so.".to_owned() };
    pair.store.say(pair.they(), &over, Said::Withdraw(reason)).expect("withdrawn");
    pair.meet();
    let copy = pair.path("copy.db");
    pair.house.store.copy_to(&copy, super::super::now()).expect("copied");
    let (own, peer) = (pair.own.fingerprint(), pair.peer.fingerprint());
    let said = |house: &House, id: &ProposalId| house.store.said_by(id, own, 0).expect("reads").len();
    pair.house.links().pretend_log(peer, 5);
    watch::look(&pair.house, super::super::now());
    assert_eq!((said(&pair.house, &over), said(&pair.house, &open)), (1, 0), "on the newest one");
    pair.meet();
    let again = restored(&pair, &copy);
    again.links().pretend_log(peer, 6);
    again.store.hear_anew(&[peer]).expect("begins");
    for heard in [0, 1] {
        watch::look(&again, super::super::now() + 2 * DAY);
        let both = (said(&again, &over), said(&again, &open));
        assert_eq!(both, (0, heard), "on one that is compared, once it was");
        again.store.heard(peer, &[], &[]).expect("written");
    }
}
