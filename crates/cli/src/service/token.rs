//! `tacit service token`: tokens of accounts for programs, by who has the machine.

use base::Error;
use clap::Subcommand;
use serde_json::json;
use service::{ApiToken, COMMAND_LINE, NewApiToken, RecordedAct, RulesFile, Store, TOKEN_RULE, TokenScope};
use std::path::PathBuf;
use terminal::output;

const DAY: u64 = 24 * 3600;

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Make a token of an account, and print it: it is not shown again
    Add {
        /// The organisation's service.toml
        file: PathBuf,
        /// The account whose roles it has
        account: String,
        /// What it is called: 1 to 40 of a-z, 0-9, ".", "_" and "-"
        #[arg(value_parser = token_name)]
        name: String,
        /// What for: studies, propose, consent, run, reports, data, budget, audit, operate
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
        scopes: Vec<TokenScope>,
        /// With this data set alone; more than once: with these
        #[arg(long, value_name = "DATA")]
        data: Vec<String>,
        /// Days that it holds
        #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=365))]
        days: u64,
    },
    /// List tokens, the newest first
    List {
        /// The organisation's service.toml
        file: PathBuf,
    },
    /// End a token
    End {
        /// The organisation's service.toml
        file: PathBuf,
        /// The account
        account: String,
        /// What the token is called
        name: String,
    },
}

fn token_name(text: &str) -> Result<String, &'static str> {
    if service::is_account_name(text) { Ok(text.to_owned()) } else { Err(TOKEN_RULE) }
}

fn scope(text: &str) -> Result<TokenScope, &'static str> {
    TokenScope::named(text)
        .ok_or("write studies, propose, consent, run, reports, data, budget, audit or operate")
}

/// Does it.
///
/// # Errors
/// When there is no such account or token, or the store cannot be written.
pub fn run(action: &TokenAction, as_json: bool) -> Result<(), Error> {
    let now = service::now();
    let act = |what, to| RecordedAct { by: COMMAND_LINE, what, to, at: now };
    match action {
        TokenAction::Add { file, account, name, scopes, data, days } => {
            let settings = RulesFile::read(file)?.settings;
            if let Some(other) = data.iter().find(|name| !settings.data.contains_key(*name)) {
                return Err(Error::input(format!("there is no [data.{other}] for a token")));
            }
            let data = Some(data.clone()).filter(|data| !data.is_empty());
            let (name, scopes) = (name.clone(), scopes.clone());
            let new = NewApiToken { name, scopes, data, until: now + days * DAY };
            let what = format!("token made: {}", new.name);
            let made = Store::open(&settings.store)?.add_token(&act(&what, account), &new)?;
            let taken = || {
                let name = &new.name;
                Error::input(format!("{account} has a token {name} already, or 50: end one first"))
            };
            let token = made.ok_or_else(taken)?;
            match as_json {
                true => output::print_json(&json!({ "account": account, "name": new.name, "token": token })),
                false => {
                    eprintln!("A token of {account}, shown this once; who has it can do what it is for:");
                    output::print(&token)
                }
            }
        }
        TokenAction::List { file } => list(&open(file)?.tokens_of(None)?, now, as_json),
        TokenAction::End { file, account, name } => {
            let store = open(file)?;
            let all = store.tokens_of(Some(account))?;
            let token = all.iter().find(|token| token.name == *name && token.holds(now));
            let none = || Error::input(format!("{account} has no token {name} that holds"));
            store.end_token(&act("token ended", account), token.ok_or_else(none)?.id)?;
            match as_json {
                true => output::print_json(&json!({ "account": account, "name": name, "now": "ended" })),
                false => output::print(&format!("The token {name} of {account} is ended.")),
            }
        }
    }
}

fn open(file: &std::path::Path) -> Result<Store, Error> {
    Store::open(&RulesFile::read(file)?.settings.store)
}

fn list(all: &[ApiToken], now: u64, as_json: bool) -> Result<(), Error> {
    if as_json {
        return output::print_json(&json!({ "tokens": all }));
    }
    if all.is_empty() {
        return output::print("There is no token: tacit service token add");
    }
    let line = |token: &ApiToken| {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
        let holds = if token.holds(now) { "holds" } else { "ended" };
        format!("{:20}  {:20}  {holds}  {}", token.account, token.name, scopes.join(", "))
    };
    output::print(&all.iter().map(line).collect::<Vec<_>>().join("\n"))
}
