//! A consent that takes the signature of a steward's own key: what is to be signed, and the signature.

use super::course::password;
use super::decide::{decides, not_done, sets, with_proof};
use super::studies::{StudySeen, acted_on, seen};
use crate::agree::seal;
use crate::settings::RulesFile;
use crate::store::SealRequest;
use crate::web::answer::Answer;
use crate::web::shell::section;
use crate::web::visit::{Stop, Visit};
use base::Fault;
use net::KeyFingerprint;
use page::form::{button, lines_field};
use page::markup::{Markup, element, text, words};
use statements::{ConsentFile, StewardSeal};

/// What waits to be signed, for who decides on the data that it is about.
fn waiting(visit: &Visit<'_>, study: &StudySeen) -> Result<Option<SealRequest>, Stop> {
    let found = visit.house.store.request(&study.row.id, visit.now)?;
    Ok(found.filter(|found| {
        let all = sets(visit, study);
        let set = all.into_iter().find(|(name, _)| **name == found.own.data);
        set.is_some_and(|(name, set)| decides(visit, study, (name, set)))
    }))
}

/// The form for the signature.
pub fn parts(visit: &Visit<'_>, study: &StudySeen) -> Result<Option<Markup>, Stop> {
    let Some(waiting) = waiting(visit, study)? else { return Ok(None) };
    let title = "A steward's own key";
    if waiting.own.by != visit.signed()?.session.account {
        let said = format!("{} has asked to consent, and signs with a key of their own.", waiting.own.by);
        return Ok(Some(section(title, [words("p", "", said)])));
    }
    let called = |key: &KeyFingerprint| {
        let place = study.record.parties().iter().position(|party| party == key);
        place.map_or_else(|| key.short(), |place| study.names[place].clone())
    };
    let path = format!("{}/request.json", study.path());
    let file = element("a", &[("href", &path), ("download", "")], [text("Take the request along")]);
    let tacit = "tacit consent sign request.json --key steward.key";
    let ssh =
        format!("printf %s '{}' | ssh-keygen -Y sign -n tacit-consent -f KEY", waiting.request.ssh_words());
    let code = |text_of: &str| element("pre", &[("tabindex", "0")], [text(text_of)]);
    let line = "The line tacit-seal1:.., or all lines from BEGIN SSH SIGNATURE to END.";
    let fields = [lines_field("seal", "Signature", ("", 4), line)].into_iter();
    let fields = fields.chain(password(visit, "seal-password")).chain([button("Consent with it", "")]);
    let parts = [
        words("p", "", "Nothing stands against it. It is signed when your own key has signed these terms:"),
        element("blockquote", &[], [element("bdi", &[], [text(waiting.request.words(&called))])]),
        element("p", &[], [file, text(", and sign it where your key is. It shows what it signs:")]),
        code(tacit),
        words("p", "", "With a key of SSH, also one that an agent or a token holds:"),
        code("tacit consent sign request.json --ssh KEY"),
        words("p", "", "Without tacit there; then this page alone has shown what is signed:"),
        code(&ssh),
        study.form(visit, "seal", "sign consent", fields),
    ];
    Ok(Some(section(title, parts)))
}

/// The request as a file.
pub fn request(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = seen(visit)?;
    let waiting = waiting(visit, &study)?.ok_or(Stop::Missing)?;
    let text = ConsentFile::text(&waiting.request, &waiting.own.words, &study.record.proposed().text);
    Ok(Answer::file("application/json", "request.json", text.into_bytes()))
}

/// Consents with the signature.
pub fn sign(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    if waiting(visit, &study)?.is_none() {
        return Ok(not_done(visit, &study, "Nothing waits for a signature: consent again."));
    }
    with_proof(visit, "seal-password", || {
        let given = match StewardSeal::parse(visit.field("seal")) {
            Ok(given) => given,
            Err(error) => return Ok(not_done(visit, &study, &error.to_string())),
        };
        let store = &visit.house.store;
        // By the rules that hold, whatever the file says by now.
        let accepted = store.accepted()?.ok_or(Stop::Missing)?;
        let settings = RulesFile::parse(&visit.house.path, &accepted.text)?;
        let by = &visit.signed()?.session.account;
        match seal(store, &settings, by, &study.row.id, given) {
            Ok(_) => Ok(Answer::go(&study.path())),
            Err(error) if matches!(error.kind(), Fault::Refused(_) | Fault::Input(_)) => {
                Ok(not_done(visit, &study, &error.to_string()))
            }
            Err(error) => Err(Stop::Failed(error)),
        }
    })
}
