//! Who may do what: one function, which pages and commands ask and nothing else decides. Roles do not include
//! each other; each is for all data sets or for named ones.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

/// What an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HouseRole {
    /// Sees nothing that was not given.
    Viewer,
    /// Knows what studies could ask.
    Analyst,
    /// Answers for data.
    Steward,
    /// Runs the machine, and does not see what is in the data.
    Operator,
}

impl HouseRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Analyst, Self::Steward, Self::Operator];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Analyst => "analyst",
            Self::Steward => "steward",
            Self::Operator => "operator",
        }
    }

    /// The role of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether it takes two people to give it: whoever has it may do more than look at their own account.
    #[must_use]
    pub fn is_weighty(self) -> bool {
        self != Self::Viewer
    }

    /// What who has it may do, in a sentence for a form.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Viewer => "reads the reports that were given to them",
            Self::Analyst => "proposes studies and reads their reports; sees which columns our data have",
            Self::Steward => "answers for data: decides on studies, checks files, sees columns and budgets",
            Self::Operator => {
                "runs the machine: accounts, rules, checks, runs; sees no columns and no results"
            }
        }
    }
}

/// A role for all data sets or for one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    /// The role.
    pub role: HouseRole,
    /// The data set; none: all of them.
    pub data: Option<String>,
}

impl Grant {
    /// Reads `steward`, `steward=admissions`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (role, data) = text.split_once('=').map_or((text, None), |(role, data)| (role, Some(data)));
        let named = data.is_none_or(study::reader::is_name);
        Some(Self { role: HouseRole::named(role)?, data: data.map(str::to_owned) }).filter(|_| named)
    }

    /// In words: `steward of admissions`.
    #[must_use]
    pub fn words(&self) -> String {
        let data = self.data.as_ref().map_or_else(String::new, |data| format!(" of {data}"));
        format!("{}{data}", self.role.name())
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The account.
    pub name: String,
    /// Its roles, as they are now.
    pub grants: Vec<Grant>,
    /// Whether `separate_duties` holds.
    pub separate: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// See one's own list of things to do, one's own account, and help.
    SeeOwn,
    /// Run a check of data, and see how many rows there are.
    CheckData,
    /// See column names and value lists of own data.
    SeeColumns,
    /// See budgets.
    SeeBudget,
    /// See what `service.toml` allows.
    SeeRules,
    /// Add accounts, give and take roles, make sign-in links.
    ManageAccounts,
    /// Confirm that somebody becomes a steward or an analyst, or gets into such an account.
    ConfirmAccess,
    /// The same of operators.
    ConfirmOperator,
    /// Tighten rules; propose to loosen them, and confirm what an operator proposes.
    RulesAsSteward,
    /// Tighten rules; propose to loosen them, and confirm what a steward proposes.
    RulesAsOperator,
    /// See the whole audit log, verify and export it.
    SeeAudit,
    /// End sessions of others, see the machine, back up.
    Operate,
    /// Draft, preview and propose studies.
    Propose,
    /// See that a study is there, what it would reveal, and where it stands.
    SeeStudy,
    /// Read the file of a study, which names columns and values.
    ReadStudy,
    /// Write a note to the other parties of a study.
    Note,
    /// Consent to a study, or refuse it.
    Decide,
    /// Take back what was proposed or consented to.
    Withdraw,
    /// Begin a run early, or stop one.
    Run,
    /// Read the report of a study.
    ReadReport,
    /// Give the report of a study to somebody.
    GiveReport,
}

/// What it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The organisation as a whole.
    House,
    /// A data set.
    Data(&'a str),
    /// An account.
    Account(&'a str),
    /// A study.
    Study(StudySubject<'a>),
}

/// What of a study decides who may do what with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StudySubject<'a> {
    /// The account of this organisation that proposed it; empty: another organisation did.
    pub by: &'a str,
    /// The data set that it reads here; none: nobody has said which yet.
    pub data: Option<&'a str>,
    /// Whether its report was given to who asks.
    pub given: bool,
}

/// Whether somebody may do something.
#[must_use]
pub fn may(actor: &Asker, action: Action, subject: Subject<'_>) -> bool {
    let is = |role: HouseRole| actor.grants.iter().any(|grant| grant.role == role && covers(grant, subject));
    let any = |roles: &[HouseRole]| roles.iter().any(|role| is(*role));
    let of_all = |role| actor.grants.iter().any(|grant| grant.role == role && grant.data.is_none());
    match (action, subject) {
        (Action::SeeOwn, Subject::House) => true,
        (Action::SeeOwn, Subject::Account(name)) => name == actor.name,
        (Action::CheckData, Subject::Data(_)) => any(&[HouseRole::Steward, HouseRole::Operator]),
        (Action::SeeColumns, Subject::Data(_)) => any(&[HouseRole::Analyst, HouseRole::Steward]),
        (Action::SeeBudget, Subject::Data(_)) => any(&[HouseRole::Steward, HouseRole::Operator]),
        (Action::SeeRules, Subject::House) => any(&[HouseRole::Steward, HouseRole::Operator]),
        (Action::ManageAccounts, Subject::House) => is(HouseRole::Operator),
        (Action::ManageAccounts, Subject::Account(name)) => {
            is(HouseRole::Operator) && (!actor.separate || name != actor.name)
        }
        (Action::ConfirmAccess | Action::RulesAsSteward, Subject::Data(_)) => is(HouseRole::Steward),
        (Action::ConfirmAccess | Action::RulesAsSteward, Subject::House) => of_all(HouseRole::Steward),
        (Action::ConfirmOperator, Subject::House) => {
            of_all(HouseRole::Steward) || of_all(HouseRole::Operator)
        }
        (Action::RulesAsOperator, Subject::House | Subject::Data(_)) => of_all(HouseRole::Operator),
        (Action::SeeAudit, Subject::House) => any(&[HouseRole::Steward, HouseRole::Operator]),
        (Action::Operate, Subject::House) => of_all(HouseRole::Operator),
        (Action::Propose, Subject::House) => is(HouseRole::Analyst),
        (action, Subject::Study(study)) => may_with(actor, action, study, &is),
        _ => false,
    }
}

/// What concerns one study; `is` says whether somebody has a role for it. Who runs the machine neither
/// decides nor sees results.
fn may_with(actor: &Asker, action: Action, study: StudySubject<'_>, is: &dyn Fn(HouseRole) -> bool) -> bool {
    let own = study.by == actor.name && is(HouseRole::Analyst);
    let answers = is(HouseRole::Steward);
    let given = study.given && is(HouseRole::Viewer);
    match action {
        Action::SeeStudy => own || answers || is(HouseRole::Analyst) || is(HouseRole::Operator) || given,
        Action::ReadStudy | Action::Note => own || answers || is(HouseRole::Analyst),
        Action::Decide => answers && (!actor.separate || study.by != actor.name),
        Action::Withdraw => own || answers,
        Action::Run => own || answers || is(HouseRole::Operator),
        Action::ReadReport => own || answers || given,
        Action::GiveReport => answers,
        _ => false,
    }
}

/// Whether a role for some data says something about a subject. What concerns the whole organisation asks for
/// the role alone, but to an operator for all data.
fn covers(grant: &Grant, subject: Subject<'_>) -> bool {
    match (&grant.data, subject) {
        (None, _) => true,
        (Some(own), Subject::Data(data)) => own == data,
        (Some(own), Subject::Study(study)) => match study.data {
            Some(data) => own == data,
            None => grant.role != HouseRole::Operator,
        },
        (Some(_), Subject::House | Subject::Account(_)) => grant.role != HouseRole::Operator,
    }
}
