//! What a bucket needs to be told: the section `[store]` of a party file.

use super::{FileKey, PartySettings, fill, names};
use crate::reader::TomlItem;
use base::Error;
use clap::{ArgAction, Args};
use std::path::{Path, PathBuf};
use store::{InputStore, StoreOptions, is_url};

/// Of a place in a bucket. Credentials are none of it: those come from the environment or the machine's role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct StoreSettings {
    /// Of a bucket: the address of a service that is not the provider's own, such as MinIO
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// The region of an S3 bucket; else AWS_REGION, else us-east-1
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// The account of an Azure container; else AZURE_STORAGE_ACCOUNT_NAME
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// Take an endpoint without TLS: for a service on this machine
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub allow_http: Option<bool>,
}

impl StoreSettings {
    /// As the store is told.
    #[must_use]
    pub fn options(&self) -> StoreOptions {
        let Self { endpoint, region, account, allow_http } = self.clone();
        StoreOptions { endpoint, region, account, allow_http: allow_http.unwrap_or_default() }
    }
}

const KEYS: &[FileKey] = &[
    ("endpoint", |to, item, _| fill(&mut to.store.endpoint, endpoint(item))),
    ("region", |to, item, _| fill(&mut to.store.region, item.text().map(str::to_owned))),
    ("account", |to, item, _| fill(&mut to.store.account, item.text().map(str::to_owned))),
    ("allow_http", |to, item, _| fill(&mut to.store.allow_http, item.boolean())),
];

/// Reads the section `[store]`.
pub(super) fn read(to: &mut PartySettings, item: &TomlItem<'_, '_>, home: &Path) -> Result<(), Error> {
    let section = item.section(&names(KEYS))?;
    section.entries().into_iter().try_for_each(|(key, item)| to.read_value(KEYS, key, &item, home))
}

fn endpoint(item: &TomlItem<'_, '_>) -> Result<String, Error> {
    let text = item.text()?;
    if text.contains(['@', '?']) {
        // Not shown: it may hold a password.
        return Err(item.error(
            "store.endpoint holds a name, a password or a query: credentials come from the environment or \
             the machine's role; write https://HOST:PORT",
        ));
    }
    match is_url(text) {
        true => Ok(text.to_owned()),
        false => Err(item.refuse("write https://HOST:PORT")),
    }
}

/// The path of the data, relative to the folder; a URL is relative to nothing.
pub(super) fn data(item: &TomlItem<'_, '_>, home: &Path) -> Result<PathBuf, Error> {
    let text = item.text()?;
    if !is_url(text) {
        return Ok(super::beside(home, text));
    }
    InputStore::check(text).map_err(|wrong| item.error(wrong))?;
    Ok(text.into())
}

/// Refuses a URL that a flag gave and that names no bucket, before anybody shows it.
pub(super) fn check_data(data: &Path) -> Result<(), Error> {
    match data.to_str().filter(|text| is_url(text)) {
        Some(url) => InputStore::check(url),
        None => Ok(()),
    }
}
