use super::*;

/// One line a question; then, for a viewer, an analyst, a steward and an operator, whether each of these may
/// who has the role for all data, for the data set `a`, for the data set `b`.
const TABLE: &str = "
see own      house         viewer +++  analyst +++  steward +++  operator +++
see own      data a        viewer ---  analyst ---  steward ---  operator ---
see own      account me    viewer +++  analyst +++  steward +++  operator +++
see own      account other viewer ---  analyst ---  steward ---  operator ---
check data   house         viewer ---  analyst ---  steward ---  operator ---
check data   data a        viewer ---  analyst ---  steward ++-  operator ++-
check data   account me    viewer ---  analyst ---  steward ---  operator ---
check data   account other viewer ---  analyst ---  steward ---  operator ---
see columns  house         viewer ---  analyst ---  steward ---  operator ---
see columns  data a        viewer ---  analyst ++-  steward ++-  operator ---
see columns  account me    viewer ---  analyst ---  steward ---  operator ---
see columns  account other viewer ---  analyst ---  steward ---  operator ---
see budget   house         viewer ---  analyst ---  steward ---  operator ---
see budget   data a        viewer ---  analyst ---  steward ++-  operator ++-
see budget   account me    viewer ---  analyst ---  steward ---  operator ---
see budget   account other viewer ---  analyst ---  steward ---  operator ---
see rules    house         viewer ---  analyst ---  steward +++  operator +--
see rules    data a        viewer ---  analyst ---  steward ---  operator ---
see rules    account me    viewer ---  analyst ---  steward ---  operator ---
see rules    account other viewer ---  analyst ---  steward ---  operator ---
accounts     house         viewer ---  analyst ---  steward ---  operator +--
accounts     data a        viewer ---  analyst ---  steward ---  operator ---
accounts     account me    viewer ---  analyst ---  steward ---  operator ---
accounts     account other viewer ---  analyst ---  steward ---  operator +--
access       house         viewer ---  analyst ---  steward +--  operator ---
access       data a        viewer ---  analyst ---  steward ++-  operator ---
access       account me    viewer ---  analyst ---  steward ---  operator ---
access       account other viewer ---  analyst ---  steward ---  operator ---
operators    house         viewer ---  analyst ---  steward +--  operator +--
operators    data a        viewer ---  analyst ---  steward ---  operator ---
operators    account me    viewer ---  analyst ---  steward ---  operator ---
operators    account other viewer ---  analyst ---  steward ---  operator ---
as steward   house         viewer ---  analyst ---  steward +--  operator ---
as steward   data a        viewer ---  analyst ---  steward ++-  operator ---
as steward   account me    viewer ---  analyst ---  steward ---  operator ---
as steward   account other viewer ---  analyst ---  steward ---  operator ---
as operator  house         viewer ---  analyst ---  steward ---  operator +--
as operator  data a        viewer ---  analyst ---  steward ---  operator +--
as operator  account me    viewer ---  analyst ---  steward ---  operator ---
as operator  account other viewer ---  analyst ---  steward ---  operator ---
see audit    house         viewer ---  analyst ---  steward +++  operator +--
see audit    data a        viewer ---  analyst ---  steward ---  operator ---
see audit    account me    viewer ---  analyst ---  steward ---  operator ---
see audit    account other viewer ---  analyst ---  steward ---  operator ---
operate      house         viewer ---  analyst ---  steward ---  operator +--
operate      data a        viewer ---  analyst ---  steward ---  operator ---
operate      account me    viewer ---  analyst ---  steward ---  operator ---
operate      account other viewer ---  analyst ---  steward ---  operator ---
";

const ACTIONS: [(&str, Action); 12] = [
    ("see own", Action::SeeOwn),
    ("check data", Action::CheckData),
    ("see columns", Action::SeeColumns),
    ("see budget", Action::SeeBudget),
    ("see rules", Action::SeeRules),
    ("accounts", Action::ManageAccounts),
    ("access", Action::ConfirmAccess),
    ("operators", Action::ConfirmOperator),
    ("as steward", Action::RulesAsSteward),
    ("as operator", Action::RulesAsOperator),
    ("see audit", Action::SeeAudit),
    ("operate", Action::Operate),
];

const SUBJECTS: [(&str, Subject<'static>); 4] = [
    ("house", Subject::House),
    ("data a", Subject::Data("a")),
    ("account me", Subject::Account("me")),
    ("account other", Subject::Account("other")),
];

fn who(grants: &[Grant], separate: bool) -> Asker {
    Asker { name: "me".into(), grants: grants.to_vec(), separate }
}

fn grant(role: HouseRole, data: Option<&str>) -> Grant {
    Grant { role, data: data.map(str::to_owned) }
}

#[test]
fn roles_are_a_table() {
    let mut lines = vec![String::new()];
    for (action_name, action) in ACTIONS {
        for (subject_name, subject) in SUBJECTS {
            let mut line = format!("{action_name:12} {subject_name:13}");
            for role in HouseRole::ALL {
                let one = |data| may(&who(&[grant(role, data)], true), action, subject);
                let marks = [None, Some("a"), Some("b")].map(|data| if one(data) { '+' } else { '-' });
                line += &format!(" {} {} ", role.name(), marks.iter().collect::<String>());
            }
            lines.push(line.trim_end().to_owned());
        }
    }
    assert_eq!(lines.join("\n") + "\n", TABLE);
}

#[test]
fn roles_add_up_and_include_nothing() {
    for (_, action) in ACTIONS {
        for (_, subject) in SUBJECTS {
            let own = Action::SeeOwn == action;
            assert!(own || !may(&who(&[], true), action, subject), "nobody may {action:?} {subject:?}");
            let both = [grant(HouseRole::Analyst, None), grant(HouseRole::Operator, None)];
            let each = both.iter().any(|one| may(&who(std::slice::from_ref(one), true), action, subject));
            assert_eq!(may(&who(&both, true), action, subject), each);
        }
    }
}

#[test]
fn one_person_may_change_own_roles_where_duties_are_not_separate() {
    let operator = [grant(HouseRole::Operator, None)];
    assert!(may(&who(&operator, false), Action::ManageAccounts, Subject::Account("me")));
}
