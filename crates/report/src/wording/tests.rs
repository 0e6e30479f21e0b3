use super::*;
use crate::CellView;
use page::numbers::*;
use proptest::prelude::*;
use release::modes::ArmRate;

fn estimate(lift: f64, half: f64, means: Option<[f64; 2]>) -> LiftEstimate {
    LiftEstimate {
        lift,
        interval: [lift - half, lift + half],
        noise_interval: [lift - half / 4.0, lift + half / 4.0],
        standard_error: half / 2.0,
        p_value: 0.01,
        relative: means.map(|[_, control]| lift / control),
        rates: means
            .map(|means| means.map(|mean| ArmRate { mean, half_width: half, noise_half_width: half / 4.0 })),
    }
}

fn view(clamp: u64, unit: Option<&str>, lower: bool, estimate: Option<LiftEstimate>) -> LiftView {
    LiftView {
        test: "vaccine".into(),
        control: "placebo".into(),
        clamp,
        unit: unit.map(str::to_owned),
        confidence: 0.95,
        lower_is_better: lower,
        cells: vec![CellView {
            family: "overall".into(),
            label: "overall".into(),
            refused: estimate.is_none().then(|| "the test group has too few rows".into()),
            estimate,
            counts: vec![],
        }],
    }
}

#[test]
fn fixed_numbers() {
    for (value, decimals, shown) in [
        (-40.66, 1, "-40.7"),
        (-0.04, 1, "0.0"),
        (0.0, 0, "0"),
        (-0.0, 2, "0.00"),
        (1_234_567.891, 2, "1,234,567.89"),
        (-1234.5, 1, "-1,234.5"),
        (999.96, 1, "1,000.0"),
        (-123.0, 0, "-123"),
        (1e15, 1, "1e15"),
        (-2.5e300, 1, "-2.5e300"),
        (f64::NAN, 1, "n/a"),
        (f64::INFINITY, 1, "n/a"),
    ] {
        assert_eq!(fixed(value, decimals), shown);
    }
}

#[test]
fn other_numbers() {
    assert_eq!(grouped("340282366920938463463374607431768211455").len(), 39 + 12);
    assert_eq!(
        [grouped("-1000.25"), grouped("12-3"), grouped(""), grouped("7.")],
        ["-1,000.25", "12-3", "", "7."]
    );
    assert_eq!(
        ["200.000000", "14.10", "1000", "0.0", "x.0"].map(trimmed),
        ["200", "14.1", "1000", "0", "x.0"]
    );
    assert_eq!([rho("1/10", 0.1), rho("2", 2.0), rho("1/3", 1.0 / 3.0)], ["0.1 (1/10)", "2", "0.3333 (1/3)"]);
    assert_eq!([scientific(1e-6), scientific(1.234e-9), scientific(-5e20)], ["1e-6", "1.23e-9", "-5e20"]);
    assert_eq!(
        [short(0.1, 4), short(2.4512, 3), short(1.0, 3), short(100.0, 3), short(1e-7, 3)],
        ["0.1", "2.45", "1", "100", "1e-7"]
    );
    let up = page::numbers::up;
    assert_eq!(
        [up(2.2561, 3), up(2.26, 3), up(1e-6, 3), up(1.001e-6, 3)],
        ["2.26", "2.26", "1e-6", "1.01e-6"]
    );
    assert_eq!([up(2.1419, 3), up(12.01, 3), up(0.0, 3)], ["2.15", "12.1", "0"]);
    assert_eq!(
        [percent(-0.72), percent(0.0041), percent(0.95), percent(f64::NAN)],
        ["-72 %", "0.4 %", "95 %", "n/a"]
    );
    assert_eq!(
        [p_value(1e-9), p_value(0.0384), p_value(1.0), p_value(f64::NAN)],
        ["< 0.0001", "0.038", "1", "n/a"]
    );
    assert_eq!(
        [
            duration(0.04),
            duration(99.94),
            duration(99.95),
            duration(252.4),
            duration(11_100.0),
            duration(f64::NAN)
        ],
        ["0.04 s", "99.9 s", "1 min 40 s", "4 min 12 s", "3 h 05 min", "n/a"]
    );
    assert_eq!(
        [bytes(0), bytes(999), bytes(1000), bytes(68_400_000), bytes(999_700_000), bytes(u64::MAX)],
        ["0 B", "999 B", "1.00 kB", "68.4 MB", "1.00 GB", "18.4 EB"]
    );
}

#[test]
fn rates_have_three_digits() {
    let shown = [0.4, 999.0, 12_893.0, 9_949.0, 999_600.0, 2e7, f64::NAN].map(scaled);
    assert_eq!(shown, ["0.40", "999", "12.9 k", "9.95 k", "1.00 M", "20.0 M", "n/a"]);
    assert_eq!([0, 1, 1000].map(|n| counted(n, "bit")), ["0 bits", "1 bit", "1,000 bits"]);
    assert_eq!([0, 1024, 1536, 256 << 20].map(binary), ["0 B", "1 KiB", "1.5 KiB", "256 MiB"]);
}

#[test]
fn the_scale_follows_the_rates() {
    let scale = |view: &LiftView| MeanScale::of([view]);
    let polio = view(1, None, true, Some(estimate(-0.000407, 0.000124, Some([0.000159, 0.000567]))));
    assert_eq!((scale(&polio).per(), scale(&polio).show(-0.000407)), ("per 100,000 people", "-40.7".into()));
    let shop = view(1, None, false, Some(estimate(0.002, 0.0011, Some([0.052, 0.05]))));
    assert_eq!((scale(&shop).per(), scale(&shop).show(0.002)), ("per 1,000 people", "2.00".into()));
    let money = view(500, Some("cent"), false, Some(estimate(0.2, 0.04, Some([0.9, 0.7]))));
    assert_eq!((scale(&money).per(), scale(&money).show(0.2)), ("per person", "0.2000".into()));
    let large = view(1_000_000, None, false, Some(estimate(12_345.6, 1500.0, None)));
    assert_eq!((scale(&large).per(), scale(&large).show(12_345.6)), ("per person", "12,346".into()));
    let tiny = view(1, None, false, Some(estimate(1e-14, 3e-14, None)));
    assert_eq!(scale(&tiny).show(1e-14), "1e-9");
    let none = view(1, None, false, None);
    assert_eq!(scale(&none).show(0.0), "0.0");
    let odd = view(1, None, false, Some(estimate(f64::NAN, f64::NAN, None)));
    assert_eq!(scale(&odd).show(f64::NAN), "n/a");
}

#[test]
fn sentences() {
    let say = |view: &LiftView| headline(view, &MeanScale::of([view])).join(" ");
    let rates = Some([0.000159, 0.000567]);
    assert_eq!(
        say(&view(1, None, true, Some(estimate(-0.000407, 0.000124, rates)))),
        "The vaccine group had 40.7 fewer cases per 100,000 people than the placebo group (72 % fewer). \
         95 % interval, from chance and privacy noise: 28.3 fewer to 53.1 fewer."
    );
    assert_eq!(
        say(&view(1, None, false, Some(estimate(0.000407, 0.000524, None)))),
        "No clear difference between vaccine and placebo: 40.7 more conversions per 100,000 people. \
         95 % interval, from chance and privacy noise: 11.7 fewer to 93.1 more; no difference at all is \
         inside it."
    );
    assert_eq!(
        say(&view(900, Some("cent"), false, Some(estimate(12.0, 4.0, Some([112.0, 100.0]))))),
        "The mean of the vaccine group was 12.00 cent per person higher than that of the placebo group (12 % \
         higher). 95 % interval, from chance and privacy noise: 8.00 higher to 16.00 higher."
    );
    assert_eq!(
        say(&view(1, None, true, None)),
        "There is no overall result for vaccine against placebo. Refused: the test group has too few rows."
    );
}

#[test]
fn verdicts_follow_the_studys_idea_of_better() {
    let read = |lower, lift, half| {
        let estimate = estimate(lift, half, None);
        verdict(&view(1, None, lower, Some(estimate)), &estimate)
    };
    assert_eq!(read(true, -2.0, 1.0), IntervalVerdict::Test);
    assert_eq!(read(true, 2.0, 1.0), IntervalVerdict::Control);
    assert_eq!(read(false, 2.0, 1.0), IntervalVerdict::Test);
    assert_eq!(read(false, -2.0, 1.0), IntervalVerdict::Control);
    assert_eq!(read(false, 1.0, 1.0), IntervalVerdict::Unclear);
    assert_eq!(read(true, f64::NAN, 1.0), IntervalVerdict::Unclear);
}

#[test]
fn labels_cannot_steer_a_terminal() {
    assert_eq!(label("a\u{1b}[31mb\n\u{202e}c"), "a\u{fffd}[31mb\u{fffd}\u{fffd}c");
    assert_eq!(label(&"x".repeat(41)), "x".repeat(38) + "..");
    assert_eq!(label(&"é".repeat(40)), "é".repeat(40));
}

proptest! {
    #[test]
    fn no_number_is_shown_as_nan_or_negative_zero(bits: u64, decimals in 0usize..8) {
        let value = f64::from_bits(bits);
        let texts = [
            fixed(value, decimals),
            scientific(value),
            significant(value, 3),
            percent(value),
            duration(value),
            p_value(value),
        ];
        for text in texts {
            prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            prop_assert!(text.len() < 40, "{text}");
        }
    }

    /// Reading back what is shown gives the value to half a unit of the last digit.
    #[test]
    fn fixed_reads_back(value in -1e9f64..1e9, decimals in 0usize..6) {
        let shown = fixed(value, decimals);
        let back: f64 = shown.replace(',', "").parse().unwrap();
        // Reading back rounds to a double again: one spacing of the value.
        let room = 0.5 * 10f64.powi(-(decimals as i32)) * (1.0 + 1e-6) + value.abs() * f64::EPSILON;
        prop_assert!((back - value).abs() <= room);
        prop_assert!(!(back == 0.0 && shown.starts_with('-')));
    }
}
