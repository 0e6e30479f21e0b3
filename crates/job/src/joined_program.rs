//! A user's program over rows that a match joins to shares.
//!
//! Such rows are those that both parties have, so the program has to be over these: each of its sums adds
//! nothing without either party. What both have, `present` says as over a spine: each party enters it with
//! its values, and a made-up row has none. Where a joined row may hold no match at all, what lies in it is
//! masked by a bit that the parties share.

use crate::engines::row_source;
use engine::RowSource;
use matching::RowInfluence;
use program::{CellForm, ColumnSource, Holder, Op, OpNode, Owners, Program, RowColumn, RowFold, ValueType};
use study::{Question, Study};

/// The program of a study over the rows that its match gives.
///
/// # Errors
/// What joined rows cannot be asked, and what to write.
pub(crate) fn over_joined_rows(
    study: &Study,
    program: Program,
    influence: &RowInfluence,
) -> Result<Program, String> {
    match (&study.kind, row_source(study)) {
        (Question::Program(_), RowSource::Joined(_)) => joined(program, influence),
        _ => Ok(program),
    }
}

fn joined(mut program: Program, influence: &RowInfluence) -> Result<Program, String> {
    // A row that several joined rows hold would change each of them.
    if influence.slots != 1 || influence.degree != [1; 2] || influence.spread != 1 {
        return Err(
            "a program runs over rows with one match each: use \"ps3i\", \"circuit-psi\" or \"pid\"".into()
        );
    }
    if program.folds.iter().any(|fold| !matches!(fold, RowFold::Sum { .. })) {
        return Err("over joined rows a program has sums alone: best rows and lists need \"pid\"".into());
    }
    let all = Owners::all(program.parties.len());
    if program.fold_demands().iter().any(|demanded| *demanded != all) {
        return Err(
            "joined rows are those that both parties have, and a sum of this program counts others too: \
                    remove `rows any` from its head, or match by \"pid\""
                .into(),
        );
    }
    if influence.masked {
        mask(&mut program);
    }
    Ok(program)
}

/// Masks every sum by a shared bit that is set in rows that hold a match.
fn mask(program: &mut Program) {
    let taken = |name: &str| program.columns.iter().any(|column| column.name == name);
    let name = (0..).map(|number| format!("valid{number}")).find(|name| !taken(name)).expect("one is free");
    // Behind the columns that a text declares, as the canonical text has it.
    let declared = program.columns.iter().position(RowColumn::is_built_in).unwrap_or(program.columns.len());
    let (ty, holder, cells) = (ValueType::BIT, Holder::Shared, CellForm::default());
    program.columns.insert(declared, RowColumn { name, ty, holder, source: ColumnSource::Present, cells });
    let column = declared as u32;
    for node in &mut program.row.nodes {
        if let Op::Column(number) = &mut node.op
            && *number >= column
        {
            *number += 1;
        }
    }
    let row = &mut program.row;
    let valid = row.push(OpNode { op: Op::Column(column), ty: ValueType::BIT });
    for fold in &mut program.folds {
        let RowFold::Sum { value, .. } = fold else { continue };
        let ty = row.ty(*value);
        let none = row.push(OpNode { op: Op::Const(0), ty });
        *value = row.push(OpNode { op: Op::Select(valid, *value, none), ty });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::{VerifierPolicy, verify};

    const HEAD: &str = "tacit-program/2\nname \"n\"\nclass exact\nparty a\nparty b\ncolumn x u8 a\ncolumn y \
     bit b\nrow\n\
                        x = column x\ny = column y\nnone = const 0 u8\nv = select y x none\ncombine\n";

    fn program(head: &str, rest: &str) -> Program {
        Program::parse(&format!("{}{rest}", HEAD.replace("class exact\n", head))).unwrap()
    }

    #[test]
    fn sums_are_masked_where_a_row_may_hold_no_match() {
        let text = "s = sum v u40\nc = sum y u40\nrelease\n";
        let own = program("class exact\n", text);
        let plain = RowInfluence::default();
        assert_eq!(joined(own.clone(), &plain).unwrap(), own);
        let masked = joined(own.clone(), &RowInfluence { masked: true, ..plain }).unwrap();
        masked.check().unwrap();
        assert_eq!(Program::parse(&masked.to_text()).unwrap(), masked);
        for (before, after) in own.folds.iter().zip(&masked.folds) {
            let node = masked.row.node(after.value());
            let read = |id: program::NodeId| match masked.row.node(id).op {
                Op::Column(column) => masked.columns[column as usize].source == ColumnSource::Present,
                _ => false,
            };
            assert!(matches!(node.op, Op::Select(c, v, _) if read(c) && v == before.value()));
        }
        let policy = VerifierPolicy { allow_exact: true, ..VerifierPolicy::default() };
        verify(&masked, &policy, 1000).unwrap();
    }

    #[test]
    fn what_joined_rows_cannot_be_asked_is_refused() {
        let refused = |program, influence: RowInfluence| joined(program, &influence).unwrap_err();
        let sums = "s = sum v u40\nrelease\n";
        let any = program("class exact\nrows any\n", "s = sum y u40\nrelease\n");
        assert!(refused(any, RowInfluence::default()).contains("remove `rows any`"));
        for several in [
            RowInfluence { slots: 2, ..RowInfluence::default() },
            RowInfluence { degree: [3, 1], ..RowInfluence::default() },
            RowInfluence { spread: 4, ..RowInfluence::default() },
        ] {
            assert!(refused(program("class exact\n", sums), several).contains("one match each"));
        }
        let best = program("class exact\n", "s = least x where y\nrelease\n");
        assert!(refused(best, RowInfluence::default()).contains("sums alone"));
    }
}
