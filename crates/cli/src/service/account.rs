//! `tacit service account`: for who can write the store's file, and so is trusted with it.

use base::Error;
use clap::Subcommand;
use serde_json::json;
use service::{ACCOUNT_RULE, COMMAND_LINE, Grant, HouseSettings, RecordedAct, RulesFile, SecretToken, Store};
use std::path::{Path, PathBuf};
use terminal::output;

/// What to do with accounts.
#[derive(Debug, Subcommand)]
pub enum AccountAction {
    /// Add an account, and print the link with which its person sets a password
    Add {
        /// The organisation's service.toml
        file: PathBuf,
        /// The name: 1 to 40 of a-z, 0-9, ".", "_" and "-"
        #[arg(value_parser = account_name)]
        name: String,
        /// A role, for all data sets or one: viewer, analyst, steward, operator, steward=DATA
        #[arg(long = "role", value_name = "ROLE", required = true, value_parser = role)]
        roles: Vec<Grant>,
    },
    /// List all accounts
    List {
        /// The organisation's service.toml
        file: PathBuf,
    },
    /// Print a link in place of a lost password; the password until now no longer holds
    Link {
        /// The organisation's service.toml
        file: PathBuf,
        /// The account
        name: String,
    },
    /// Give a role; the person is signed out
    Give {
        /// The organisation's service.toml
        file: PathBuf,
        /// The account
        name: String,
        /// The role, as for add
        #[arg(value_parser = role)]
        role: Grant,
    },
    /// Take a role; the person is signed out
    Take {
        /// The organisation's service.toml
        file: PathBuf,
        /// The account
        name: String,
        /// The role, as for add
        #[arg(value_parser = role)]
        role: Grant,
    },
    /// End an account for good
    End {
        /// The organisation's service.toml
        file: PathBuf,
        /// The account
        name: String,
    },
}

fn account_name(text: &str) -> Result<String, &'static str> {
    if service::is_account_name(text) { Ok(text.to_owned()) } else { Err(ACCOUNT_RULE) }
}

fn role(text: &str) -> Result<Grant, &'static str> {
    Grant::parse(text).ok_or("write viewer, analyst, steward or operator, for one data set steward=DATA")
}

/// Does it.
///
/// # Errors
/// When there is no such account, its name was taken, or the store cannot be written.
pub fn run(action: &AccountAction, as_json: bool) -> Result<(), Error> {
    let now = service::now();
    let act = |what, to| RecordedAct { by: COMMAND_LINE, what, to, at: now };
    match action {
        AccountAction::Add { file, name, roles } => {
            let (settings, store) = open(file)?;
            roles.iter().try_for_each(|role| known(&settings, role))?;
            match store.add_account(&act("account added", name), roles)? {
                Some(link) => print_link(&settings, name, &link, as_json),
                None => Err(Error::input(format!(
                    "there is or was an account {name}, and names are not given twice: take another one"
                ))),
            }
        }
        AccountAction::List { file } => list(&open(file)?.1, now, as_json),
        AccountAction::Link { file, name } => {
            let (settings, store) = open(file)?;
            match store.new_link(&act("sign-in link made", name), None)? {
                Some(link) => print_link(&settings, name, &link, as_json),
                None => Err(Error::misuse("a link that nothing stands against was not made")),
            }
        }
        AccountAction::Give { file, name, role } => {
            let (settings, store) = open(file)?;
            known(&settings, role)?;
            store.give_role(&act(&format!("role given: {}", role.words()), name), role)?;
            done(name, &format!("has the role {}", role.words()), as_json)
        }
        AccountAction::Take { file, name, role } => {
            let what = format!("role taken: {}", role.words());
            open(file)?.1.take_role(&act(&what, name), role)?;
            done(name, &format!("does not have the role {}", role.words()), as_json)
        }
        AccountAction::End { file, name } => {
            open(file)?.1.end_account(&act("account ended", name))?;
            done(name, "is ended", as_json)
        }
    }
}

fn open(file: &Path) -> Result<(HouseSettings, Store), Error> {
    let settings = RulesFile::read(file)?.settings;
    let store = Store::open(&settings.store)?;
    Ok((settings, store))
}

/// Refuses a role for data that are not there: a misspelt name would give nothing.
fn known(settings: &HouseSettings, role: &Grant) -> Result<(), Error> {
    match &role.data {
        Some(data) if !settings.data.contains_key(data) => {
            Err(Error::input(format!("there is no [data.{data}] for the role {}", role.words())))
        }
        _ => Ok(()),
    }
}

fn print_link(settings: &HouseSettings, name: &str, link: &SecretToken, as_json: bool) -> Result<(), Error> {
    let url = format!("{}/enter/{}", settings.web.url(), link.text());
    if as_json {
        return output::print_json(&json!({ "account": name, "link": url }));
    }
    eprintln!("A link for {name}, for one use within 24 hours; who has it becomes {name}:");
    output::print(&url)
}

fn list(store: &Store, now: u64, as_json: bool) -> Result<(), Error> {
    let all = store.accounts(now)?;
    if as_json {
        return output::print_json(&json!({ "accounts": all }));
    }
    if all.is_empty() {
        return output::print("There is no account yet: tacit service account add");
    }
    let line = |account: &service::Account| {
        let roles: Vec<String> = account.grants.iter().map(Grant::words).collect();
        format!("{:20}  {:28}  {}", account.name, account.state.words(), roles.join(", "))
    };
    output::print(&all.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn done(name: &str, what: &str, as_json: bool) -> Result<(), Error> {
    match as_json {
        true => output::print_json(&json!({ "account": name, "now": what })),
        false => output::print(&format!("{name} {what}.")),
    }
}
