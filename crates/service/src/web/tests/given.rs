//! A report that somebody was given, and what of it.

use super::*;

#[test]
fn a_report_is_read_by_whom_it_was_given_and_every_reading_is_written_down() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        let (olga, vic) = (pair.person("olga", &["operator"]), pair.person("vic", &["viewer"]));
        let stella = pair.person("stella", &["steward=trial"]);
        pair.ask(&stella, &format!("{path}/report")).await.is(404);
        pair.answered(&id);
        pair.ask(&stella, &path)
            .await
            .is(200)
            .says("Answered: all parties have the result.")
            .says("The report");
        let sent = r#"{"event":"stage-done","name":"match","seconds":1.5,"rows":200,"bytes":57400}"#;
        pair.house.store.keep_line(&id, 1, row_time(), sent).expect("kept");
        let run = pair.ask(&stella, &format!("{path}/run")).await.is(200).says("Stage 1, match");
        run.says(">Rows</th>").says("57.4 kB");
        let report = pair.ask(&stella, &format!("{path}/report")).await.is(200);
        let report = report.says("all its parties have the same number").says("Shown to stella at registry.");
        let report = report.says("numbers.xlsx").says("<svg xmlns").says("Disclosed beyond the result");
        report.says("What is seen on it").says("One row per group: the difference");
        pair.ask(&olga, &format!("{path}/report")).await.is(403);
        pair.ask(&vic, &format!("{path}/report")).await.is(404);
        let give = format!("{path}/report/give");
        let give_to = [("reader", "vic"), ("password", "wrong")];
        pair.act(&stella, &format!("{path}/report"), &give, &give_to).await.is(403);
        let password = format!("stella {PASSWORD}");
        let give_to = [give_to[0], ("password", password.as_str())];
        pair.act(&stella, &format!("{path}/report"), &give, &give_to).await.is(303);
        // How many rows there are, and what the process said, is not in what was given.
        let run = pair.ask(&vic, &format!("{path}/run")).await.is(200).says("Stage 1, match");
        run.never_says(">Rows</th>").never_says("What the process said").never_says("57.4 kB");
        let shown = pair.ask(&vic, &format!("{path}/report")).await.is(200);
        let shown = shown.never_says("Given to").says("This is the public result of the study");
        let shown = shown.never_says("Reading of your own files").never_says("report.json");
        pair.ask(&vic, "/").await.is(200).says("Reports for you").says(&format!("{path}/report"));
        let stella = pair.again("stella");
        for (file, begins) in [("report.json", "{"), ("numbers.csv", "viewer,"), ("public.json", "{")] {
            let got = pair.ask(&stella, &format!("{path}/report/{file}")).await.is(200);
            assert!(got.body.starts_with(begins), "{file}: {}", &got.body[..40]);
        }
        // Nor are they for who has another role, in which they could not read it.
        let ana = pair.person("ana", &["analyst", "viewer"]);
        let give_to = [("reader", "ana")];
        pair.act(&stella, &format!("{path}/report"), &give, &give_to).await.is(303);
        pair.ask(&ana, &format!("{path}/report/public.json")).await.is(200);
        pair.ask(&ana, &format!("{path}/report/report.json")).await.is(404);
        // Rows that were read and what is spent of budgets are not in what was given.
        for file in ["report.json", "report.html", "numbers.csv", "numbers.xlsx", "time.svg", "bytes.png"] {
            pair.ask(&vic, &format!("{path}/report/{file}")).await.is(404);
        }
        for (file, begins) in [("public.json", "{"), ("public.csv", "viewer,"), ("public.html", "<!DOCTYPE")]
        {
            let got = pair.ask(&vic, &format!("{path}/report/{file}")).await.is(200);
            assert!(got.body.starts_with(begins), "{file}: {}", &got.body[..40]);
        }
        for name in ["time", "bytes"] {
            let drawing = pair.ask(&stella, &format!("{path}/report/{name}.svg")).await.is(200);
            assert!(drawing.body.contains("the run of registry"), "{name}: {}", drawing.body);
        }
        for name in ["forest", "means"] {
            let drawing = pair.ask(&vic, &format!("{path}/report/{name}.svg")).await.is(200);
            assert!(drawing.body.starts_with("<svg xmlns"), "{name}");
            let picture = pair.raw(&vic, "GET", &format!("{path}/report/{name}.png"), String::new()).await;
            assert_eq!(picture.headers()[header::CONTENT_TYPE], "image/png");
            let picture = axum::body::to_bytes(picture.into_body(), 1 << 24).await.expect("whole");
            assert!(picture.starts_with(b"\x89PNG"), "{name}");
            assert!(shown.body.contains(&format!("{path}/report/{name}.png")), "{name}");
        }
        for name in ["none.png", "forest.gif", "forest"] {
            pair.ask(&vic, &format!("{path}/report/{name}")).await.is(404);
        }
        pair.ask(&vic, &format!("{path}/report/..%2fservice.toml")).await.is(404);
        let read = pair.house.store.acts_of("vic", 50).expect("reads");
        let read: Vec<&str> = read.iter().map(|act| act.what.as_str()).collect();
        assert!(
            read.contains(&"report read") && read.contains(&"report taken along as public.json"),
            "{read:?}"
        );
        // Which report it was stands in the entry, where the subject is who reads it.
        let given = format!("report given: {}", path.trim_start_matches("/studies/"));
        assert!(read.contains(&given.as_str()), "{read:?}");
        let take = format!("{path}/report/take");
        pair.act(&stella, &format!("{path}/report"), &take, &[("reader", "vic")]).await.is(303);
        pair.ask(&vic, &format!("{path}/report")).await.is(404);
    });
}
