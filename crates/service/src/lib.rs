//! The party service: one daemon per organisation with a page for its people. This crate has their accounts,
//! what each may do, what `service.toml` allows, and pages for data and budgets. It decides nothing about
//! protocols: the privacy ledger stays the last word on what is spent.
//!
//! With its web server it is one of the edges where code is asynchronous (decision 001); what pages do runs
//! on threads that may wait.

mod agree;
mod backup;
mod budget;
mod changes;
mod devices;
mod findings;
mod lift_form;
mod link;
mod names;
mod notices;
mod passwords;
mod policy;
mod program_form;
mod reckoned;
mod rehearsal;
mod roles;
mod rules;
mod schedule;
mod secrets;
mod serving;
mod settings;
mod store;
mod told;
mod totp;
mod web;
mod weigh;

pub use agree::{AgreeOrder, ConsentStep, agree, seal, stands_against, taken_tag};
pub use backup::{ServiceBackup, back_up};
pub use findings::{DataFindings, check, version as data_version};
pub use names::{ACCOUNT_RULE, TOKEN_RULE, is_account_name};
pub use policy::may_propose;
pub use rehearsal::rehearse;
pub use roles::Grant;
pub use rules::RulesStanding;
pub use schedule::OTHERWISE;
pub use secrets::{SecretToken, SpokenCode};
pub use serving::strangers;
pub use settings::{HouseSettings, RulesFile, words};
pub use store::{
    Absorbed, Account, ApiToken, COMMAND_LINE, ConsentRight, HELD, NewApiToken, OutboxRow, OwnConsent,
    PeerSender, ProposalFilter, ProposalRow, RUN_STOPPED, RecordedAct, RunLeft, RunRow, STOPPED, Speaker,
    Store, TokenScope, UNHEARD, kind_of,
};
pub use web::{House, Listening, listen, now};
pub use weigh::{WeighedStudy, weigh};
