//! What a study and its program say of the same columns.

use program::{CellKind, Program, RowColumn, ValueType};
use study::{CellType, ProgramColumn, ProgramSource};

/// The columns of a program are the study's.
///
/// # Errors
/// What does not go together, and what to do.
pub(crate) fn check(study: &ProgramSource, program: &Program) -> Result<(), String> {
    for column in program.columns.iter().filter(|column| !column.is_built_in()) {
        let mapped = study.columns.iter().find(|c| c.name == column.name);
        let Some(owner) = column.holder.only().map(|p| &program.parties[p.index()]) else {
            return Err(format!(
                "column {:?} is public or shared; a study feeds columns of one owner",
                column.name
            ));
        };
        let Some(mapped) = mapped else {
            return Err(format!("column {:?} is not under [columns] of the study", column.name));
        };
        if mapped.party != *owner {
            return Err(format!(
                "column {:?} belongs to {owner} in the program and to {} in the study",
                column.name, mapped.party
            ));
        }
        check_cells(mapped, column)?;
    }
    Ok(())
}

/// One of the two says what a cell is. Labels are numbers from 1, which the column's type must hold.
fn check_cells(study: &ProgramColumn, column: &RowColumn) -> Result<(), String> {
    let ty = column.ty;
    let (count, word, remove) = match &study.cell {
        None => return Ok(()),
        Some(CellType::Integer) => (0, "integer", "`type`"),
        Some(CellType::Time) => (0, "time", "`type`"),
        Some(CellType::Label(values)) => (values.len() as u128, "label", "`type` and `values`"),
    };
    if column.cells.kind != CellKind::default() {
        let said = match column.cells.kind {
            CellKind::Number(scale) => format!("scale {scale}"),
            CellKind::Label(_) => "labels".to_owned(),
            CellKind::Date => "date".to_owned(),
        };
        return Err(format!(
            "column {:?} has `{said}` in the program and type = {word:?} under [columns] of the study; \
             remove {remove} there",
            column.name
        ));
    }
    if count <= ty.max() {
        return Ok(());
    }
    Err(format!(
        "column {:?} has {count} labels, which count from 1 (0: the row is absent), and its type {ty} goes \
         to {}; make it {}",
        column.name,
        ty.max(),
        ValueType::u((u128::BITS - count.leading_zeros()) as u8)
    ))
}
