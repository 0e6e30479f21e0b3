//! What it takes two people to do: one proposes it and another one confirms it. Here is what can be proposed,
//! in words, and who may confirm it; the store keeps it and makes the change.

use crate::roles::{Action, Asker, Grant, HouseRole, Subject, may};
use serde::{Deserialize, Serialize};

/// The file of the rules, as the subject of an act.
pub const RULES: &str = "service.toml";

/// What was proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposedChange {
    /// What somebody may do, or how somebody gets in.
    Access(AccessChange),
    /// What the organisation allows.
    Rules(RulesChange),
}

/// A text of `service.toml` in place of the one that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesChange {
    /// The text that holds, as it was proposed.
    pub before: String,
    /// The text.
    pub after: String,
    /// The names of the rules that differ, and whether each is looser.
    pub rules: Vec<(String, bool)>,
    /// The one data set that it is about; none: the organisation.
    pub data: Option<String>,
    /// Whether it was proposed as a steward; else as an operator.
    pub as_steward: bool,
}

/// A change of an account that has, or gets, a role of weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessChange {
    /// The account.
    pub account: String,
    /// Whether it is added with that.
    pub new: bool,
    /// The roles that it had when this was proposed: by them it was decided whether it takes a link.
    #[serde(default)]
    pub held: Vec<Grant>,
    /// A role that it gets.
    pub give: Option<Grant>,
    /// The hash of a link that it gets in place of its password, in hex digits.
    pub link: Option<String>,
}

/// A proposal that waits, or was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingChange {
    /// Its number.
    pub number: i64,
    /// When it was made, in seconds since 1970.
    pub at: u64,
    /// Who made it.
    pub by: String,
    /// What it is.
    pub change: ProposedChange,
    /// Until when it can be confirmed.
    pub until: u64,
    /// How it was decided, when and by whom.
    pub decided: Option<(ChangeDecision, u64, String)>,
}

/// How a proposal was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeDecision {
    /// It was made.
    Confirmed,
    /// Somebody who could have confirmed it did not.
    Refused,
    /// Who proposed it took it back.
    Withdrawn,
}

impl ChangeDecision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Confirmed, Self::Refused, Self::Withdrawn];

    /// Its name, as it is kept and shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refused => "refused",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// What a confirmation rests on, as it is when the change is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFacts {
    /// The roles of who proposed it; none where that account was ended.
    pub proposer: Option<Vec<Grant>>,
    /// What the account that it is about has.
    pub subject: AccountAccess,
}

/// What whoever gets into an account may do and read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountAccess {
    /// Its roles.
    pub grants: Vec<Grant>,
    /// The data sets of reports that were given to it; none: of a study that has no data set here.
    pub reports: Vec<Option<String>>,
}

impl AccountAccess {
    /// Whether a link into the account takes two people.
    #[must_use]
    pub fn takes_two(&self) -> bool {
        is_weighty(&self.grants) || !self.reports.is_empty()
    }
}

/// Whether somebody with these roles gets in only by two people.
#[must_use]
pub fn is_weighty(grants: &[Grant]) -> bool {
    grants.iter().any(|grant| grant.role.is_weighty())
}

impl ProposedChange {
    /// To whom or what it is done.
    #[must_use]
    pub fn subject(&self) -> &str {
        match self {
            Self::Access(change) => &change.account,
            Self::Rules(_) => RULES,
        }
    }

    /// What the log says of it: a few words, at most 150 bytes.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Access(change) => change.words(),
            Self::Rules(change) => change.words(),
        }
    }

    /// More for the log: both texts of changed rules.
    #[must_use]
    pub fn detail(&self) -> serde_json::Value {
        match self {
            Self::Access(_) => serde_json::Value::Null,
            Self::Rules(change) => serde_json::json!({ "before": change.before, "after": change.after }),
        }
    }

    /// Whether somebody may confirm what `by` proposed: another person than that and than the one whom it is
    /// about, who may say so of each role that it opens; and who proposed it still may.
    #[must_use]
    pub fn may_be_confirmed(&self, by: &str, actor: &Asker, facts: &ChangeFacts) -> bool {
        let another = !actor.separate || actor.name != by;
        let proposer = facts.proposer.as_ref().is_some_and(|grants| {
            let (name, grants) = (by.to_owned(), grants.clone());
            self.may_be_proposed(&Asker { name, grants, separate: actor.separate })
        });
        another && proposer && self.is_for(actor, &facts.subject)
    }

    /// Whether somebody may propose it.
    #[must_use]
    pub fn may_be_proposed(&self, actor: &Asker) -> bool {
        match self {
            Self::Access(change) => may(actor, Action::ManageAccounts, Subject::Account(&change.account)),
            Self::Rules(change) => change.is_for(actor, change.as_steward),
        }
    }

    /// Whether what it was decided by is still so: the account has the roles that it had then.
    #[must_use]
    pub fn still_fits(&self, facts: &ChangeFacts) -> bool {
        match self {
            Self::Access(change) => change.held == facts.subject.grants,
            // Accepting a text compares the one before.
            Self::Rules(_) => true,
        }
    }

    /// Whether somebody's roles are the fitting ones, whoever proposed it; `held` is what the account has.
    #[must_use]
    pub fn is_for(&self, actor: &Asker, held: &AccountAccess) -> bool {
        match self {
            Self::Access(change) => {
                let other = !actor.separate || actor.name != change.account;
                let roles = change.opens(&held.grants).iter().all(|grant| may_open(actor, grant));
                let mut reports = held.reports.iter().filter(|_| change.link.is_some());
                other && roles && reports.all(|data| may_show(actor, data.as_deref()))
            }
            Self::Rules(change) => change.is_for(actor, change.as_steward != actor.separate),
        }
    }
}

impl RulesChange {
    /// The rules that differ, as far as they fit into a line of the log.
    fn words(&self) -> String {
        let mut names: Vec<&str> = self.rules.iter().map(|(rule, _)| rule.as_str()).collect();
        while names.iter().map(|name| name.len() + 2).sum::<usize>() > 100 {
            names.pop();
        }
        let more = match self.rules.len() - names.len() {
            0 => String::new(),
            more => format!(" and {}", page::numbers::counted(more as u64, "more rule")),
        };
        format!("rules changed: {}{more}", names.join(", "))
    }

    /// Whether somebody may change these rules in a role.
    fn is_for(&self, actor: &Asker, as_steward: bool) -> bool {
        let action = if as_steward { Action::RulesAsSteward } else { Action::RulesAsOperator };
        may(actor, action, self.data.as_deref().map_or(Subject::House, Subject::Data))
    }

    /// Whether any of it is looser, so that it takes two people.
    #[must_use]
    pub fn loosens(&self) -> bool {
        self.rules.iter().any(|(_, looser)| *looser)
    }
}

impl AccessChange {
    fn words(&self) -> String {
        match (&self.give, self.new) {
            (Some(grant), true) => format!("account added: {}", grant.words()),
            (Some(grant), false) => format!("role given: {}", grant.words()),
            (None, _) => "sign-in link made".to_owned(),
        }
    }

    /// The roles of weight that somebody else could get hold of by it: the one that is given, and with a link
    /// all that the account has.
    fn opens<'a>(&'a self, held: &'a [Grant]) -> Vec<&'a Grant> {
        let held = held.iter().filter(|_| self.link.is_some());
        self.give.iter().chain(held).filter(|grant| grant.role.is_weighty()).collect()
    }
}

/// Whether somebody may say that another person gets a role.
fn may_open(actor: &Asker, grant: &Grant) -> bool {
    match (grant.role, &grant.data) {
        (HouseRole::Operator, _) => may(actor, Action::ConfirmOperator, Subject::House),
        (_, data) => may_show(actor, data.as_deref()),
    }
}

/// Whether somebody may say that another person sees what concerns some data, or all.
fn may_show(actor: &Asker, data: Option<&str>) -> bool {
    may(actor, Action::ConfirmAccess, data.map_or(Subject::House, Subject::Data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(text: &str) -> Grant {
        Grant::parse(text).expect("a role")
    }

    fn asker(name: &str, role: &str) -> Asker {
        Asker { name: name.into(), grants: vec![grant(role)], separate: true }
    }

    fn access(give: Option<&str>, link: bool) -> ProposedChange {
        let (account, link) = ("eve".to_owned(), link.then(|| "00".repeat(32)));
        let (held, give) = (Vec::new(), give.map(grant));
        ProposedChange::Access(AccessChange { account, new: false, held, give, link })
    }

    fn facts(proposer: Option<&str>, subject: &[&str]) -> ChangeFacts {
        let proposer = proposer.map(|role| vec![grant(role)]);
        let grants = subject.iter().map(|role| grant(role)).collect();
        ChangeFacts { proposer, subject: AccountAccess { grants, reports: Vec::new() } }
    }

    #[test]
    fn another_person_of_the_fitting_role_confirms() {
        let held = facts(Some("operator"), &["viewer"]);
        let confirms = |change: &ProposedChange, name, role, held: &ChangeFacts| {
            change.may_be_confirmed("olga", &asker(name, role), held)
        };
        let steward = access(Some("steward=a"), true);
        assert!(confirms(&steward, "sam", "steward=a", &held) && confirms(&steward, "sam", "steward", &held));
        for (name, role) in [
            ("olga", "operator"),
            ("oscar", "operator"),
            ("sam", "steward=b"),
            ("olga", "steward"),
            ("eve", "steward"),
            ("anna", "analyst"),
        ] {
            assert!(!confirms(&steward, name, role, &held), "{name}, {role}");
        }
        let operator = access(Some("operator"), true);
        assert!(confirms(&operator, "oscar", "operator", &held));
        assert!(confirms(&operator, "sam", "steward", &held));
        assert!(!confirms(&operator, "sam", "steward=a", &held));
        // A link opens all that the account has; a role alone opens that role.
        let of_both = facts(Some("operator"), &["steward=a", "operator"]);
        assert!(!confirms(&access(None, true), "sam", "steward=a", &of_both));
        assert!(confirms(&access(None, true), "sam", "steward", &of_both));
        assert!(confirms(&access(Some("analyst=a"), false), "sam", "steward=a", &of_both));
        // So does it open the reports that were given to it.
        let mut of_reader = facts(Some("operator"), &["viewer"]);
        of_reader.subject.reports = vec![Some("a".to_owned())];
        assert!(confirms(&access(None, true), "sam", "steward=a", &of_reader));
        assert!(!confirms(&access(None, true), "sam", "steward=b", &of_reader));
        assert!(!confirms(&access(None, true), "oscar", "operator", &of_reader));
        assert!(!confirms(&access(Some("operator"), true), "oscar", "operator", &of_reader));
        assert!(confirms(&access(Some("operator"), false), "oscar", "operator", &of_reader));
        // Who proposed it must still be allowed to.
        assert!(!confirms(&steward, "sam", "steward", &facts(None, &[])));
        assert!(!confirms(&steward, "sam", "steward", &facts(Some("viewer"), &[])));
        let rules = |data: Option<&str>, as_steward| {
            let (before, after, rules) = (String::new(), String::new(), vec![("x".to_owned(), true)]);
            let data = data.map(str::to_owned);
            ProposedChange::Rules(RulesChange { before, after, rules, data, as_steward })
        };
        // Rules: the other role, of the data set that alone they are about or of all.
        assert!(confirms(&rules(Some("a"), false), "sam", "steward=a", &held));
        assert!(!confirms(&rules(None, false), "sam", "steward=a", &held));
        assert!(confirms(&rules(None, false), "sam", "steward", &held));
        assert!(!confirms(&rules(Some("a"), false), "oscar", "operator", &held));
        let by_steward = facts(Some("steward"), &[]);
        assert!(confirms(&rules(None, true), "oscar", "operator", &by_steward));
        assert!(!confirms(&rules(None, true), "sam", "steward", &by_steward));
        assert!(!confirms(&rules(None, true), "oscar", "operator", &held), "no steward any more");
        let alone = Asker { separate: false, ..asker("olga", "operator") };
        assert!(operator.may_be_confirmed("olga", &alone, &held), "where duties are not separate");
    }
}
