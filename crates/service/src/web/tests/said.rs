//! What a peer says without end is shown so much at a time.

use super::*;

#[test]
fn the_newest_hundred_statements_are_shown_and_a_link_to_older_ones() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        for number in 0..130 {
            pair.store
                .say(pair.they(), &id, Said::Note(format!("It is question {number:03}.")))
                .expect("said");
        }
        // As many as a link sends at once, twice.
        pair.meet();
        pair.meet();
        let anna = pair.person("anna", &["analyst"]);
        let shows = |page: &str, numbers: std::ops::Range<u32>| {
            let shown = (0..130).filter(|number| page.contains(&format!("question {number:03}.")));
            assert!(shown.eq(numbers), "{page}");
        };
        let page = pair.ask(&anna, &path).await.is(200).body;
        shows(&page, 30..130);
        let link = page.split_once("?after=").expect("a link to older ones").1;
        let after = link.split_once('"').expect("ends").0;
        let older = pair.ask(&anna, &format!("{path}?after={after}")).await.is(200).body;
        shows(&older, 0..30);
        assert!(older.contains("proposes the study") && !older.contains("Older ones"), "{older}");
    });
}
