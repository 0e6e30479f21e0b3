//! One request, by whom, and what stands in the way of an answer.

use super::House;
use crate::roles::{Action, Asker, Subject, may};
use crate::rules::RulesNow;
use crate::secrets::SecretToken;
use crate::settings::HouseSettings;
use crate::store::{OpenSession, RecordedAct, TokenScope};
use base::Error;
use net::{Identity, KeyFingerprint};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// One request.
pub struct Visit<'a> {
    /// The service.
    pub house: &'a Arc<House>,
    /// What holds.
    pub rules: RulesNow,
    /// Seconds since 1970.
    pub now: u64,
    /// Where it comes from.
    pub address: IpAddr,
    /// Whether it comes through the proxy, which signs people in.
    pub by_proxy: bool,
    /// Who it is, where somebody is signed in.
    pub signed: Option<SignedIn>,
    /// What the browser says of earlier sign-ins in it.
    pub device: Option<String>,
    /// The path as it was asked for.
    pub path: String,
    /// Whether another site sent the browser here.
    pub from_elsewhere: bool,
    /// The variable parts of the path.
    pub parts: HashMap<String, String>,
    /// The fields of the form, or what stands behind the question mark.
    pub form: Vec<(String, String)>,
}

/// Who is signed in.
pub struct SignedIn {
    /// The cookie.
    pub token: SecretToken,
    /// The session.
    pub session: OpenSession,
    /// Who, with what may be done.
    pub actor: Asker,
    /// What a program may use its token for; a person has none.
    pub scopes: Vec<TokenScope>,
}

/// Why there is no ordinary answer.
#[derive(Debug)]
pub enum Stop {
    /// Nothing is here, or nothing that this person may know of.
    Missing,
    /// The person may not do this.
    Denied,
    /// A form that came from somewhere else, or is too old.
    Stale,
    /// The password has to be given again first.
    Unproven,
    /// The person has to set up a second step first.
    OneStep,
    /// A password that had to be given was wrong.
    WrongPassword,
    /// More requests than a person makes.
    TooFast,
    /// More wrong passwords than a person gives.
    TooMany,
    /// All hands are full.
    Busy,
    /// As many pictures are drawn, and wait for that, as may.
    Drawing,
    /// Something failed here.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Visit<'_> {
    /// What `service.toml` says.
    pub fn settings(&self) -> &HouseSettings {
        &self.rules.settings
    }

    /// The key of this organisation; none where it has made none yet.
    pub fn us(&self) -> Option<KeyFingerprint> {
        self.house.identity().map(Identity::fingerprint)
    }

    /// Who is signed in; doors for people let nobody else in.
    pub fn signed(&self) -> Result<&SignedIn, Stop> {
        self.signed.as_ref().ok_or(Stop::Denied)
    }

    /// Whether the person may do something.
    pub fn may(&self, action: Action, subject: Subject<'_>) -> bool {
        self.signed.as_ref().is_some_and(|signed| may(&signed.actor, action, subject))
    }

    /// Stops who may not.
    pub fn must(&self, action: Action, subject: Subject<'_>) -> Result<&SignedIn, Stop> {
        let signed = self.signed()?;
        if self.may(action, subject) { Ok(signed) } else { Err(Stop::Denied) }
    }

    /// Whether a program may use its token for something.
    pub fn has_scope(&self, scope: TokenScope) -> bool {
        self.signed.as_ref().is_some_and(|signed| signed.scopes.contains(&scope))
    }

    /// A variable part of the path; empty where it has none.
    pub fn part(&self, name: &str) -> &str {
        self.parts.get(name).map_or("", String::as_str)
    }

    /// A field of the form; empty where it has none.
    pub fn field(&self, name: &str) -> &str {
        self.form.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.as_str())
    }

    /// The word for a form of this session.
    pub fn word(&self, action: &str, subject: &str) -> Option<String> {
        self.signed.as_ref().map(|signed| signed.token.form_word(action, subject))
    }

    /// An act of the person who is signed in.
    pub fn act<'b>(&'b self, what: &'b str, to: &'b str) -> Result<RecordedAct<'b>, Stop> {
        Ok(RecordedAct { by: &self.signed()?.session.account, what, to, at: self.now })
    }
}
