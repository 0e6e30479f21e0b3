//! What peers say at length is shown so much at a time.

use super::*;

#[test]
fn the_newest_hundred_statements_are_shown_and_a_link_to_older_ones() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        // As many notes as both may write, all later than the proposal.
        for number in 0..100 {
            let (store, speaker) = match number % 2 {
                0 => (&*pair.house.store, pair.we()),
                _ => (&pair.store, pair.they()),
            };
            let speaker = Speaker { at_ms: row_time() + 1 + number, ..speaker };
            store.say(speaker, &id, Said::Note(format!("It is question {number:03}."))).expect("said");
        }
        pair.meet();
        let anna = pair.person("anna", &["analyst"]);
        let shown =
            |page: &str| (0..100).filter(|number| page.contains(&format!("question {number:03}."))).count();
        let page = pair.ask(&anna, &path).await.is(200).body;
        assert!(shown(&page) == 100 && !page.contains("proposes the study"), "{page}");
        let link = page.split_once("?after=").expect("a link to older ones").1;
        let after = link.split_once('"').expect("ends").0;
        let older = pair.ask(&anna, &format!("{path}?after={after}")).await.is(200).body;
        assert!(shown(&older) == 0 && older.contains("proposes the study"), "{older}");
        assert!(!older.contains("Older ones"), "{older}");
    });
}
