use super::*;

/// One line a question; then, for a viewer, an analyst, a steward and an operator, whether each of these may
/// who has the role for all data, for the data set `a`, for the data set `b`.
const TABLE: &str = "
see own      house         viewer +++  analyst +++  steward +++  operator +++
see own      data a        viewer ---  analyst ---  steward ---  operator ---
see own      account me    viewer +++  analyst +++  steward +++  operator +++
see own      account other viewer ---  analyst ---  steward ---  operator ---
see own      study new     viewer ---  analyst ---  steward ---  operator ---
see own      study of a    viewer ---  analyst ---  steward ---  operator ---
see own      study my a    viewer ---  analyst ---  steward ---  operator ---
see own      study given   viewer ---  analyst ---  steward ---  operator ---
check data   house         viewer ---  analyst ---  steward ---  operator ---
check data   data a        viewer ---  analyst ---  steward ++-  operator ++-
check data   account me    viewer ---  analyst ---  steward ---  operator ---
check data   account other viewer ---  analyst ---  steward ---  operator ---
check data   study new     viewer ---  analyst ---  steward ---  operator ---
check data   study of a    viewer ---  analyst ---  steward ---  operator ---
check data   study my a    viewer ---  analyst ---  steward ---  operator ---
check data   study given   viewer ---  analyst ---  steward ---  operator ---
see columns  house         viewer ---  analyst ---  steward ---  operator ---
see columns  data a        viewer ---  analyst ++-  steward ++-  operator ---
see columns  account me    viewer ---  analyst ---  steward ---  operator ---
see columns  account other viewer ---  analyst ---  steward ---  operator ---
see columns  study new     viewer ---  analyst ---  steward ---  operator ---
see columns  study of a    viewer ---  analyst ---  steward ---  operator ---
see columns  study my a    viewer ---  analyst ---  steward ---  operator ---
see columns  study given   viewer ---  analyst ---  steward ---  operator ---
see budget   house         viewer ---  analyst ---  steward ---  operator ---
see budget   data a        viewer ---  analyst ---  steward ++-  operator ++-
see budget   account me    viewer ---  analyst ---  steward ---  operator ---
see budget   account other viewer ---  analyst ---  steward ---  operator ---
see budget   study new     viewer ---  analyst ---  steward ---  operator ---
see budget   study of a    viewer ---  analyst ---  steward ---  operator ---
see budget   study my a    viewer ---  analyst ---  steward ---  operator ---
see budget   study given   viewer ---  analyst ---  steward ---  operator ---
see rules    house         viewer ---  analyst ---  steward +++  operator +--
see rules    data a        viewer ---  analyst ---  steward ---  operator ---
see rules    account me    viewer ---  analyst ---  steward ---  operator ---
see rules    account other viewer ---  analyst ---  steward ---  operator ---
see rules    study new     viewer ---  analyst ---  steward ---  operator ---
see rules    study of a    viewer ---  analyst ---  steward ---  operator ---
see rules    study my a    viewer ---  analyst ---  steward ---  operator ---
see rules    study given   viewer ---  analyst ---  steward ---  operator ---
accounts     house         viewer ---  analyst ---  steward ---  operator +--
accounts     data a        viewer ---  analyst ---  steward ---  operator ---
accounts     account me    viewer ---  analyst ---  steward ---  operator ---
accounts     account other viewer ---  analyst ---  steward ---  operator +--
accounts     study new     viewer ---  analyst ---  steward ---  operator ---
accounts     study of a    viewer ---  analyst ---  steward ---  operator ---
accounts     study my a    viewer ---  analyst ---  steward ---  operator ---
accounts     study given   viewer ---  analyst ---  steward ---  operator ---
propose      house         viewer ---  analyst +++  steward ---  operator ---
propose      data a        viewer ---  analyst ---  steward ---  operator ---
propose      account me    viewer ---  analyst ---  steward ---  operator ---
propose      account other viewer ---  analyst ---  steward ---  operator ---
propose      study new     viewer ---  analyst ---  steward ---  operator ---
propose      study of a    viewer ---  analyst ---  steward ---  operator ---
propose      study my a    viewer ---  analyst ---  steward ---  operator ---
propose      study given   viewer ---  analyst ---  steward ---  operator ---
see study    house         viewer ---  analyst ---  steward ---  operator ---
see study    data a        viewer ---  analyst ---  steward ---  operator ---
see study    account me    viewer ---  analyst ---  steward ---  operator ---
see study    account other viewer ---  analyst ---  steward ---  operator ---
see study    study new     viewer ---  analyst +++  steward +++  operator +--
see study    study of a    viewer ---  analyst ++-  steward ++-  operator ++-
see study    study my a    viewer ---  analyst ++-  steward ++-  operator ++-
see study    study given   viewer +-+  analyst +-+  steward +-+  operator +-+
note         house         viewer ---  analyst ---  steward ---  operator ---
note         data a        viewer ---  analyst ---  steward ---  operator ---
note         account me    viewer ---  analyst ---  steward ---  operator ---
note         account other viewer ---  analyst ---  steward ---  operator ---
note         study new     viewer ---  analyst +++  steward +++  operator ---
note         study of a    viewer ---  analyst ++-  steward ++-  operator ---
note         study my a    viewer ---  analyst ++-  steward ++-  operator ---
note         study given   viewer ---  analyst +-+  steward +-+  operator ---
read study   house         viewer ---  analyst ---  steward ---  operator ---
read study   data a        viewer ---  analyst ---  steward ---  operator ---
read study   account me    viewer ---  analyst ---  steward ---  operator ---
read study   account other viewer ---  analyst ---  steward ---  operator ---
read study   study new     viewer ---  analyst +++  steward +++  operator ---
read study   study of a    viewer ---  analyst ++-  steward ++-  operator ---
read study   study my a    viewer ---  analyst ++-  steward ++-  operator ---
read study   study given   viewer ---  analyst +-+  steward +-+  operator ---
decide       house         viewer ---  analyst ---  steward ---  operator ---
decide       data a        viewer ---  analyst ---  steward ---  operator ---
decide       account me    viewer ---  analyst ---  steward ---  operator ---
decide       account other viewer ---  analyst ---  steward ---  operator ---
decide       study new     viewer ---  analyst ---  steward +++  operator ---
decide       study of a    viewer ---  analyst ---  steward ++-  operator ---
decide       study my a    viewer ---  analyst ---  steward ---  operator ---
decide       study given   viewer ---  analyst ---  steward +-+  operator ---
withdraw     house         viewer ---  analyst ---  steward ---  operator ---
withdraw     data a        viewer ---  analyst ---  steward ---  operator ---
withdraw     account me    viewer ---  analyst ---  steward ---  operator ---
withdraw     account other viewer ---  analyst ---  steward ---  operator ---
withdraw     study new     viewer ---  analyst ---  steward +++  operator ---
withdraw     study of a    viewer ---  analyst ---  steward ++-  operator ---
withdraw     study my a    viewer ---  analyst ++-  steward ++-  operator ---
withdraw     study given   viewer ---  analyst ---  steward +-+  operator ---
run          house         viewer ---  analyst ---  steward ---  operator ---
run          data a        viewer ---  analyst ---  steward ---  operator ---
run          account me    viewer ---  analyst ---  steward ---  operator ---
run          account other viewer ---  analyst ---  steward ---  operator ---
run          study new     viewer ---  analyst ---  steward +++  operator +--
run          study of a    viewer ---  analyst ---  steward ++-  operator ++-
run          study my a    viewer ---  analyst ++-  steward ++-  operator ++-
run          study given   viewer ---  analyst ---  steward +-+  operator +-+
read report  house         viewer ---  analyst ---  steward ---  operator ---
read report  data a        viewer ---  analyst ---  steward ---  operator ---
read report  account me    viewer ---  analyst ---  steward ---  operator ---
read report  account other viewer ---  analyst ---  steward ---  operator ---
read report  study new     viewer ---  analyst ---  steward +++  operator ---
read report  study of a    viewer ---  analyst ---  steward ++-  operator ---
read report  study my a    viewer ---  analyst ++-  steward ++-  operator ---
read report  study given   viewer +-+  analyst ---  steward +-+  operator ---
give report  house         viewer ---  analyst ---  steward ---  operator ---
give report  data a        viewer ---  analyst ---  steward ---  operator ---
give report  account me    viewer ---  analyst ---  steward ---  operator ---
give report  account other viewer ---  analyst ---  steward ---  operator ---
give report  study new     viewer ---  analyst ---  steward +++  operator ---
give report  study of a    viewer ---  analyst ---  steward ++-  operator ---
give report  study my a    viewer ---  analyst ---  steward ++-  operator ---
give report  study given   viewer ---  analyst ---  steward +-+  operator ---
access       house         viewer ---  analyst ---  steward +--  operator ---
access       data a        viewer ---  analyst ---  steward ++-  operator ---
access       account me    viewer ---  analyst ---  steward ---  operator ---
access       account other viewer ---  analyst ---  steward ---  operator ---
access       study new     viewer ---  analyst ---  steward ---  operator ---
access       study of a    viewer ---  analyst ---  steward ---  operator ---
access       study my a    viewer ---  analyst ---  steward ---  operator ---
access       study given   viewer ---  analyst ---  steward ---  operator ---
operators    house         viewer ---  analyst ---  steward +--  operator +--
operators    data a        viewer ---  analyst ---  steward ---  operator ---
operators    account me    viewer ---  analyst ---  steward ---  operator ---
operators    account other viewer ---  analyst ---  steward ---  operator ---
operators    study new     viewer ---  analyst ---  steward ---  operator ---
operators    study of a    viewer ---  analyst ---  steward ---  operator ---
operators    study my a    viewer ---  analyst ---  steward ---  operator ---
operators    study given   viewer ---  analyst ---  steward ---  operator ---
as steward   house         viewer ---  analyst ---  steward +--  operator ---
as steward   data a        viewer ---  analyst ---  steward ++-  operator ---
as steward   account me    viewer ---  analyst ---  steward ---  operator ---
as steward   account other viewer ---  analyst ---  steward ---  operator ---
as steward   study new     viewer ---  analyst ---  steward ---  operator ---
as steward   study of a    viewer ---  analyst ---  steward ---  operator ---
as steward   study my a    viewer ---  analyst ---  steward ---  operator ---
as steward   study given   viewer ---  analyst ---  steward ---  operator ---
as operator  house         viewer ---  analyst ---  steward ---  operator +--
as operator  data a        viewer ---  analyst ---  steward ---  operator +--
as operator  account me    viewer ---  analyst ---  steward ---  operator ---
as operator  account other viewer ---  analyst ---  steward ---  operator ---
as operator  study new     viewer ---  analyst ---  steward ---  operator ---
as operator  study of a    viewer ---  analyst ---  steward ---  operator ---
as operator  study my a    viewer ---  analyst ---  steward ---  operator ---
as operator  study given   viewer ---  analyst ---  steward ---  operator ---
see audit    house         viewer ---  analyst ---  steward +++  operator +--
see audit    data a        viewer ---  analyst ---  steward ---  operator ---
see audit    account me    viewer ---  analyst ---  steward ---  operator ---
see audit    account other viewer ---  analyst ---  steward ---  operator ---
see audit    study new     viewer ---  analyst ---  steward ---  operator ---
see audit    study of a    viewer ---  analyst ---  steward ---  operator ---
see audit    study my a    viewer ---  analyst ---  steward ---  operator ---
see audit    study given   viewer ---  analyst ---  steward ---  operator ---
operate      house         viewer ---  analyst ---  steward ---  operator +--
operate      data a        viewer ---  analyst ---  steward ---  operator ---
operate      account me    viewer ---  analyst ---  steward ---  operator ---
operate      account other viewer ---  analyst ---  steward ---  operator ---
operate      study new     viewer ---  analyst ---  steward ---  operator ---
operate      study of a    viewer ---  analyst ---  steward ---  operator ---
operate      study my a    viewer ---  analyst ---  steward ---  operator ---
operate      study given   viewer ---  analyst ---  steward ---  operator ---
";

const ACTIONS: [(&str, Action); 21] = [
    ("see own", Action::SeeOwn),
    ("check data", Action::CheckData),
    ("see columns", Action::SeeColumns),
    ("see budget", Action::SeeBudget),
    ("see rules", Action::SeeRules),
    ("accounts", Action::ManageAccounts),
    ("propose", Action::Propose),
    ("see study", Action::SeeStudy),
    ("note", Action::Note),
    ("read study", Action::ReadStudy),
    ("decide", Action::Decide),
    ("withdraw", Action::Withdraw),
    ("run", Action::Run),
    ("read report", Action::ReadReport),
    ("give report", Action::GiveReport),
    ("access", Action::ConfirmAccess),
    ("operators", Action::ConfirmOperator),
    ("as steward", Action::RulesAsSteward),
    ("as operator", Action::RulesAsOperator),
    ("see audit", Action::SeeAudit),
    ("operate", Action::Operate),
];

const SUBJECTS: [(&str, Subject<'static>); 8] = [
    ("house", Subject::House),
    ("data a", Subject::Data("a")),
    ("account me", Subject::Account("me")),
    ("account other", Subject::Account("other")),
    ("study new", study("", None, false)),
    ("study of a", study("other", Some("a"), false)),
    ("study my a", study("me", Some("a"), false)),
    ("study given", study("", Some("b"), true)),
];

const fn study(by: &'static str, data: Option<&'static str>, given: bool) -> Subject<'static> {
    Subject::Study(StudySubject { by, data, given })
}

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
