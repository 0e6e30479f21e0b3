//! Pictures of a report, where others are being drawn.

use super::super::drawing::{AT_ONCE, WAITING};
use super::*;
use std::time::{Duration, Instant};

#[test]
fn no_page_waits_for_pictures_and_who_finds_all_places_taken_is_told_to_try_again() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        pair.answered(&id);
        let stella = pair.person("stella", &["steward=trial"]);
        let picture = format!("{path}/report/forest.png");
        let drawn: Vec<_> = (0..AT_ONCE).map(|_| pair.house.drawing.take("olga").expect("a place")).collect();
        let waits = |one: usize| {
            let house = pair.house.clone();
            std::thread::spawn(move || house.drawing.take(&format!("person {one}")).is_ok())
        };
        let waits: Vec<_> = (0..WAITING).map(waits).collect();
        let begun = Instant::now();
        while pair.house.drawing.waiting() < WAITING && begun.elapsed() < Duration::from_secs(5) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let told = pair.ask(&stella, &picture).await.is(429);
        told.says("Other pictures are being drawn").says("try again");
        pair.ask(&stella, &format!("{path}/report")).await.is(200);
        pair.ask(&stella, &format!("{path}/report/forest.svg")).await.is(200);
        let drawing = pair.ask(&stella, &format!("{path}/report/forest.svg")).await.is(200);
        let report: serde_json::Value = serde_json::from_slice(REPORT).expect("a report");
        let (title, name) = (&report["study"]["title"], report["study"]["name"].as_str().expect("a name"));
        let drawing = drawing.says(title.as_str().expect("a title")).says(name).says("seen by");
        drawing.says(&study::time::date(super::super::now().cast_signed()));
        drop(drawn);
        assert!(waits.into_iter().all(|one| one.join().expect("ends")), "who waited is served");
        let shown = pair.raw(&stella, "GET", &picture, String::new()).await;
        assert_eq!(shown.headers()[header::CONTENT_TYPE], "image/png");
        let hash = &path.trim_start_matches("/studies/")[..12];
        let kept = format!("attachment; filename=\"{name}-{hash}-forest.png\"");
        assert_eq!(shown.headers()[header::CONTENT_DISPOSITION], kept);
    });
}
