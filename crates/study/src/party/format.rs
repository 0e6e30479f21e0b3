//! The form of a party's files: the section `[format]` of a party file.

use super::{FileKey, PartySettings, fill, names};
use crate::format::{
    ColumnDates, ColumnName, DateForm, DecimalSign, HEADER_LINES, TextEncoding, WallZone, check_forms,
    parse_separator,
};
use crate::reader::TomlItem;
use base::Error;
use std::path::Path;
use toml::de::DeValue;

const KEYS: &[FileKey] = &[
    ("encoding", |to, item, _| fill(&mut to.format.encoding, item.parsed(TextEncoding::parse))),
    // A tab is a control character, which other settings may not hold.
    ("separator", |to, item, _| fill(&mut to.format.separator, separator(item))),
    ("decimal", |to, item, _| fill(&mut to.format.decimal, item.parsed(DecimalSign::parse))),
    ("thousands", |to, item, _| fill(&mut to.format.thousands, item.parsed(DecimalSign::parse))),
    ("header_line", |to, item, _| fill(&mut to.format.header_line, item.integer(HEADER_LINES))),
    ("dates", |to, item, _| {
        let said = dates(item)?;
        if to.format.dates.is_empty() {
            to.format.dates = said;
        }
        Ok(())
    }),
    ("zone", |to, item, _| fill(&mut to.format.zone, item.parsed(WallZone::parse))),
    ("sheet", |to, item, _| fill(&mut to.format.sheet, item.text().map(str::to_owned))),
    ("columns", |to, item, _| {
        let said = columns(item)?;
        if to.format.columns.is_empty() {
            to.format.columns = said;
        }
        Ok(())
    }),
];

/// Reads the section `[format]`.
pub(super) fn read(to: &mut PartySettings, item: &TomlItem<'_, '_>, home: &Path) -> Result<(), Error> {
    let section = item.section(&names(KEYS))?;
    section.entries().into_iter().try_for_each(|(key, item)| to.read_value(KEYS, key, &item, home))
}

fn separator(item: &TomlItem<'_, '_>) -> Result<u8, Error> {
    let text = item.long_text()?;
    parse_separator(if text == "\t" { "tab" } else { text }).map_err(|rule| item.refuse(rule))
}

/// A table: study's name = file's name.
fn columns(item: &TomlItem<'_, '_>) -> Result<Vec<ColumnName>, Error> {
    let name = |(study, item): (&str, TomlItem<'_, '_>)| {
        Ok(ColumnName { study: study.to_owned(), file: item.text()?.to_owned() })
    };
    item.open_section()?.entries().into_iter().map(name).collect()
}

/// A form, a list of forms, or a table of either by column.
fn dates(item: &TomlItem<'_, '_>) -> Result<Vec<ColumnDates>, Error> {
    match item.value.get_ref() {
        DeValue::Table(_) => {
            let entries = item.open_section()?.entries();
            let of = |(column, item): (&str, TomlItem<'_, '_>)| {
                Ok(ColumnDates { column: Some(column.to_owned()), forms: forms(&item)? })
            };
            entries.into_iter().map(of).collect()
        }
        _ => Ok(vec![ColumnDates { column: None, forms: forms(item)? }]),
    }
}

fn forms(item: &TomlItem<'_, '_>) -> Result<Vec<DateForm>, Error> {
    let forms = match item.value.get_ref() {
        DeValue::Array(_) => {
            let list = item.list()?;
            if list.is_empty() {
                return Err(item.error("no form of dates: write one, or remove the line"));
            }
            list.iter().map(|item| item.parsed(DateForm::parse)).collect::<Result<Vec<_>, _>>()?
        }
        _ => vec![item.parsed(DateForm::parse)?],
    };
    check_forms(&forms).map_err(|rule| item.error(rule))?;
    Ok(forms)
}
