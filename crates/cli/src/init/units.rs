//! The unit of amounts: by the name of their column, or asked.

use super::ask::Answering;
use super::guess;
use base::Error;
use data::survey::ColumnSurvey;

/// What stands for no unit.
const NONE: &str = "none";

/// A unit of numbers, and why it is that.
pub struct ColumnUnit {
    /// Its name; none where numbers have no unit.
    pub name: Option<String>,
    pub why: &'static str,
}

/// The unit of a column's numbers: what `flag` said, or what the column's name says; of what looks like
/// amounts it is asked.
///
/// # Errors
/// When nobody can be asked, or the unit is none that a study can have.
pub fn unit(
    how: Answering,
    column: &ColumnSurvey,
    said: Option<&str>,
    flag: &str,
) -> Result<ColumnUnit, Error> {
    let name = &column.name;
    if let Some(said) = said {
        let name = read(said).map_err(|rule| Error::input(format!("{flag}: {said:?}: {rule}")))?;
        return Ok(ColumnUnit { name, why: "as it was said" });
    }
    if let Some(known) = guess::unit(name) {
        return Ok(ColumnUnit { name: Some(known), why: "the name of the column says so" });
    }
    if guess::money(column) == 0 {
        return Ok(ColumnUnit { name: None, why: "nothing says that these are amounts" });
    }
    let question = format!(
        "In which unit are the amounts of \"{name}\" (EUR, USD, kWh, ..; {NONE}: without a unit)? The study \
         names it, and reports show it."
    );
    let name = how.words(flag, &question, Some(NONE), read)?;
    Ok(ColumnUnit { name, why: how.why() })
}

fn read(text: &str) -> Result<Option<String>, String> {
    match text.trim() {
        NONE => Ok(None),
        unit if (1..=20).contains(&unit.chars().count())
            && !unit.contains(['"', '\\', '='])
            && base::clean(unit) == unit =>
        {
            Ok(Some(unit.to_owned()))
        }
        _ => Err("a unit has 1 to 20 characters, without quotes".to_owned()),
    }
}
