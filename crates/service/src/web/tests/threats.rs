//! What the table of threats in `docs/security.md` names and no other test has.

use super::{Pair, asking};
use study::StudyFile;

/// The text of a page's element that begins with `tag`, as a browser shows it.
fn shown(page: &str, tag: &str) -> String {
    let rest = page.split_once(tag).unwrap_or_else(|| panic!("no {tag} in {page}")).1;
    let rest = rest.split_once('>').expect("the tag ends").1;
    let text = rest.split_once("</pre>").expect("the element ends").0;
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn a_study_is_shown_as_it_is_hashed() {
    asking(async {
        let pair = Pair::new("");
        let stella = pair.person("stella", &["steward"]);
        let tag = "<pre tabindex=\"0\" aria-label=\"Study file\"";
        let (id, path) = pair.proposed("<b>Plain</b> & \\\"quoted\\\"", "");
        let record = pair.house.store.standing(&id).expect("reads").expect("there");
        let page = pair.ask(&stella, &path).await.is(200).body;
        let text = shown(&page, tag);
        assert_eq!(text, record.proposed().text.trim_end(), "to the letter");
        assert_eq!(StudyFile::parse("the page", &text).expect("a study").hash(), record.study());
        // What would reorder or hide letters is seen: it stands there as a mark or as its number.
        let (_, path) = pair.proposed("Paid \u{202e}oN\u{2066} \u{200b}yes", "");
        let page = pair.ask(&stella, &path).await.is(200).body;
        let text = shown(&page, tag);
        assert!(!text.lines().any(|line| line.contains(base::is_deceptive)), "{text}");
        let title = text.lines().find(|line| line.starts_with("title")).expect("a title");
        let marks = title.matches('\u{fffd}').count() + title.matches("\\u").count();
        assert_eq!(marks, 3, "{title}");
    });
}
