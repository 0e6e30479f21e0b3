//! What one person should not do alone takes two.

use super::{Rooms, now};
use crate::roles::{Asker, Grant};
use crate::store::{Confirmed, RecordedAct};

/// The path of a link.
fn entrance(link: &str) -> String {
    link.strip_prefix("https://tacit.registry.example").expect("under our name").to_owned()
}

#[test]
fn an_operator_alone_lets_nobody_in_who_may_do_something() {
    let rooms = Rooms::begin("");
    let olga = rooms.guest("olga", &["operator"]);
    let add = [("name", "eve"), ("role", "operator")];
    // Nobody else could confirm it, so nothing is proposed.
    rooms.deed(&olga, "/accounts", "/accounts", &add).is(409).says("tacit service account");
    let stella = rooms.guest("stella", &["steward=trial"]);
    let sam = rooms.guest("sam", &["steward"]);
    let steward = [("name", "eve"), ("role", "steward"), ("data", "trial")];
    let proposed = rooms.deed(&olga, "/accounts", "/accounts", &steward).is(200).says("sam or stella");
    let enter = entrance(&proposed.told());
    // The link opens nothing yet, there is no account, and who proposed it does not confirm it.
    rooms.nobody(&enter).is(404);
    rooms.get(&olga, "/accounts").never_says("eve</a>");
    let page = rooms.get(&olga, "/confirmations").is(200).says("eve gets the role").says("Take it back");
    let page = page.never_says("/confirmations/1/confirm");
    let forged = page.word("/confirmations/1/refuse");
    rooms.send(Some(&olga), "/confirmations/1/confirm", &[("csrf", &forged)]).is(403);
    let own = olga.word("confirm", "1");
    rooms
        .send(Some(&olga), "/confirmations/1/confirm", &[("csrf", &own)])
        .is(403)
        .says("Not for your account");
    // A word for one proposal is none for another.
    let other = stella.word("confirm", "2");
    rooms.send(Some(&stella), "/confirmations/1/confirm", &[("csrf", &other)]).is(403);
    rooms.get(&stella, "/").says("olga proposes: account added: steward of trial, eve.");
    let code = rooms.deed(&stella, "/confirmations", "/confirmations/1/confirm", &[]).is(200).told();
    // Confirmed once.
    rooms.send(Some(&sam), "/confirmations/1/confirm", &[("csrf", &sam.word("confirm", "1"))]).is(409);
    // Who has the link alone is nobody.
    rooms.nobody(&enter).is(200).says("Code");
    let new = ("new", "wandering copper teapot eve");
    rooms.send(None, &enter, &[new]).is(422).says("The code is another one");
    rooms.send(None, &enter, &[new, ("code", "0000-0000-0000")]).is(422).says("The code is another one");
    let spoken = code.to_lowercase().replace('-', " ");
    let entered = rooms.send(None, &enter, &[new, ("code", &spoken)]).is(303);
    assert!(entered.cookie.is_some());
    rooms.send(None, &enter, &[new, ("code", &spoken)]).is(404);
    let acts = rooms.house.store.acts_of("eve", 9).expect("reads");
    let said: Vec<(&str, &str)> = acts.iter().map(|act| (act.by.as_str(), act.what.as_str())).collect();
    assert_eq!(
        said[2..],
        [
            ("stella", "confirmed for olga: account added: steward of trial"),
            ("olga", "proposed: account added: steward of trial"),
        ]
    );
}

#[test]
fn roles_and_links_of_weight_are_confirmed_and_others_are_not() {
    let rooms = Rooms::begin("");
    let olga = rooms.guest("olga", &["operator"]);
    let oscar = rooms.guest("oscar", &["operator"]);
    rooms.guest("stella", &["steward=trial"]);
    let sam = rooms.guest("sam", &["steward"]);
    rooms.guest("vera", &["viewer"]);
    // A viewer sees their own account alone: one operator is enough.
    rooms.deed(&olga, "/accounts/vera", "/accounts/vera/link", &[]).is(200).says("A link for vera");
    rooms.deed(&olga, "/accounts", "/accounts", &[("name", "vito"), ("role", "viewer")]).is(200);
    // A steward's link is confirmed, by one who may say so of all that the steward may.
    let enter = entrance(&rooms.deed(&olga, "/accounts/stella", "/accounts/stella/link", &[]).is(200).told());
    rooms.nobody(&enter).is(404);
    assert!(rooms.house.store.password_of("stella").expect("reads").is_some(), "it holds until then");
    let stella = rooms.again("stella");
    rooms.get(&stella, "/confirmations").never_says("/confirmations/1/confirm");
    rooms.send(Some(&stella), "/confirmations/1/confirm", &[("csrf", &stella.word("confirm", "1"))]).is(403);
    rooms.get(&oscar, "/confirmations").says("It is for somebody else to confirm.");
    rooms.deed(&sam, "/confirmations", "/confirmations/1/confirm", &[]).is(200);
    rooms.nobody(&enter).is(200);
    rooms.get(&stella, "/").is(303);
    // Who was a viewer gets a new way in with the first role of weight; whoever had that account is out.
    let viewer = rooms.guest("anna", &["viewer"]);
    let give = [("role", "analyst"), ("data", "")];
    rooms.deed(&olga, "/accounts/anna", "/accounts/anna/give", &give).is(200).says("/enter/");
    rooms.get(&viewer, "/").is(200);
    rooms.deed(&sam, "/confirmations", "/confirmations/2/confirm", &[]).is(200).says("by telephone");
    rooms.get(&viewer, "/").is(303);
    assert_eq!(rooms.house.store.password_of("anna").expect("reads"), None);
    // Refused, taken back: both are decided, and stay so.
    let give = [("role", "operator"), ("data", "")];
    rooms
        .deed(&olga, "/accounts/oscar", "/accounts/oscar/give", &[("role", "steward"), ("data", "")])
        .is(200);
    rooms.deed(&sam, "/confirmations", "/confirmations/3/refuse", &[]).is(303);
    rooms.deed(&olga, "/accounts/vito", "/accounts/vito/give", &give).is(200);
    rooms.deed(&olga, "/confirmations", "/confirmations/4/refuse", &[]).is(303);
    rooms.send(Some(&sam), "/confirmations/4/confirm", &[("csrf", &sam.word("confirm", "4"))]).is(409);
    rooms
        .get(&sam, "/confirmations")
        .says("refused")
        .says("withdrawn")
        .says("Nothing waits to be confirmed.");
    // Who is no operator any more has proposed nothing.
    rooms.deed(&olga, "/accounts/vito", "/accounts/vito/give", &give).is(200);
    rooms.deed(&oscar, "/accounts/olga", "/accounts/olga/end", &[]).is(303);
    rooms.send(Some(&sam), "/confirmations/5/confirm", &[("csrf", &sam.word("confirm", "5"))]).is(403);
}

#[test]
fn a_proposal_falls_with_the_roles_that_it_was_made_by() {
    let rooms = Rooms::begin("");
    let olga = rooms.guest("olga", &["operator"]);
    let sam = rooms.guest("sam", &["steward"]);
    rooms.guest("eve", &["analyst"]);
    // An analyst got in by two people, so a further role takes no link.
    let steward = [("role", "steward"), ("data", "")];
    rooms.deed(&olga, "/accounts/eve", "/accounts/eve/give", &steward).is(200).never_says("/enter/");
    // Without that role one operator makes a link, and whoever opens it waits to become a steward.
    let analyst = [("role", "analyst"), ("data", "")];
    rooms.deed(&olga, "/accounts/eve", "/accounts/eve/take", &analyst).is(303);
    rooms.deed(&olga, "/accounts/eve", "/accounts/eve/link", &[]).is(200).says("A link for eve");
    let page = rooms.deed(&sam, "/confirmations", "/confirmations/1/confirm", &[]).is(409);
    page.says("the person got or lost a role since");
    let eve = rooms.house.store.account("eve", now()).expect("reads").expect("there");
    assert_eq!(eve.grants, []);
    // Proposed anew, it takes a link and a code.
    let proposed = rooms.deed(&olga, "/accounts/eve", "/accounts/eve/give", &steward).is(200).told();
    rooms.deed(&sam, "/confirmations", "/confirmations/2/confirm", &[]).is(200).says("by telephone");
    rooms.nobody(&entrance(&proposed)).is(200).says("Code");
}

#[test]
fn who_lost_the_role_while_the_request_waited_confirms_nothing() {
    let rooms = Rooms::begin("");
    let olga = rooms.guest("olga", &["operator"]);
    rooms.guest("sam", &["steward"]);
    rooms.guest("stella", &["steward"]);
    let add = [("name", "eve"), ("role", "analyst")];
    rooms.deed(&olga, "/accounts", "/accounts", &add).is(200);
    // What sam's request knows of sam, and what is so when it is sam's turn to write.
    let steward = Grant::parse("steward").expect("a role");
    let sam = Asker { name: "sam".into(), grants: vec![steward.clone()], separate: true };
    let store = &rooms.house.store;
    let act = RecordedAct { by: "olga", what: "role taken: steward", to: "sam", at: now() };
    store.take_role(&act, &steward).expect("taken");
    let confirmed = store.confirm_change(&sam, 1, now(), &|_| Ok(())).expect("reads");
    assert!(matches!(confirmed, Confirmed::Denied));
    assert!(!store.turn_down(&sam, 1, now()).expect("reads"));
    let stella = Asker { name: "stella".into(), ..sam };
    let confirmed = store.confirm_change(&stella, 1, now(), &|_| Ok(())).expect("writes");
    assert!(matches!(confirmed, Confirmed::Made(Some(_))));
}

#[test]
fn a_link_for_a_viewer_who_was_given_a_report_is_confirmed_by_who_answers_for_it() {
    let rooms = Rooms::begin("");
    let olga = rooms.guest("olga", &["operator"]);
    let oscar = rooms.guest("oscar", &["operator"]);
    let sam = rooms.guest("sam", &["steward"]);
    rooms.guest("vera", &["viewer"]);
    let store = &rooms.house.store;
    let held = store.access("vera").expect("reads");
    let act = RecordedAct { by: "sam", what: "report given", to: "vera", at: now() };
    store.give_report(&act, &statements::ProposalId([7; 16])).expect("given");
    // What was decided before the report was given makes no link after.
    let act = RecordedAct { by: "olga", what: "sign-in link made", to: "vera", at: now() };
    assert!(store.new_link(&act, Some(&held)).expect("reads").is_none());
    let page = rooms.deed(&olga, "/accounts/vera", "/accounts/vera/link", &[]).is(200);
    let enter = entrance(&page.says("A second person confirms this: sam.").told());
    rooms.nobody(&enter).is(404);
    rooms.send(Some(&oscar), "/confirmations/1/confirm", &[("csrf", &oscar.word("confirm", "1"))]).is(403);
    rooms.deed(&sam, "/confirmations", "/confirmations/1/confirm", &[]).is(200);
    rooms.nobody(&enter).is(200).says("Code");
}

#[test]
fn one_person_is_enough_where_that_was_said_and_every_page_says_so() {
    let rooms = Rooms::begin("[policy]\nseparate_duties = false\n");
    let olga = rooms.guest("olga", &["operator"]);
    let add = [("name", "stella"), ("role", "steward")];
    rooms.deed(&olga, "/accounts", "/accounts", &add).is(200).says("A link for stella").never_says("Code");
    rooms.deed(&olga, "/accounts/olga", "/accounts/olga/give", &[("role", "steward")]).is(303);
    let olga = rooms.again("olga");
    for path in ["/", "/accounts", "/accounts/stella", "/confirmations", "/rules", "/account"] {
        rooms.get(&olga, path).is(200).says("give roles and loosen rules");
    }
}
