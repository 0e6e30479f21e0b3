use super::*;
use crate::{CellView, DerivedView};
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
        scale: 1,
        confidence: 0.95,
        lower_is_better: lower,
        cells: vec![CellView {
            family: "overall".into(),
            label: "overall".into(),
            column: None,
            refused: estimate.is_none().then(|| "the test group has too few rows".into()),
            estimate,
            holm: None,
            held_back: 0,
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
        (1e15, 1, "10¹⁵"),
        (-2.5e300, 1, "-2.5·10³⁰⁰"),
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
    assert_eq!([scientific(1e-6), scientific(1.234e-9), scientific(-5e20)], ["10⁻⁶", "1.23·10⁻⁹", "-5·10²⁰"]);
    assert_eq!(
        [short(0.1, 4), short(2.4512, 3), short(1.0, 3), short(100.0, 3), short(1e-7, 3)],
        ["0.1", "2.45", "1", "100", "10⁻⁷"]
    );
    let up = page::numbers::up;
    assert_eq!(
        [up(2.2561, 3), up(2.26, 3), up(1e-6, 3), up(1.001e-6, 3)],
        ["2.26", "2.26", "10⁻⁶", "1.01·10⁻⁶"]
    );
    assert_eq!([up(2.1419, 3), up(12.01, 3), up(0.0, 3)], ["2.15", "12.1", "0"]);
    assert_eq!(
        [percent(-0.72), percent(0.0041), percent(0.95), percent(f64::NAN)],
        ["-72 %", "0.4 %", "95 %", "n/a"]
    );
    assert_eq!(
        [p_value(1e-9), p_value(0.0384), p_value(1.0), p_value(f64::NAN)],
        ["< 0.0001", "0.038", "1.0", "n/a"]
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
    assert_eq!(scale(&tiny).show(1e-14), "10⁻⁹");
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

/// Two digits of the noise, no more than three of the interval; counts are whole; ratios by themselves.
#[test]
fn derived_numbers_are_rounded_to_what_their_noise_leaves() {
    let number = |statistic: &str, value: f64, noise: f64, half: f64| DerivedView {
        label: "x, all".into(),
        statistic: statistic.into(),
        unit: String::new(),
        value: Some(value),
        intervals: vec![[Some(value - half), Some(value + half)]],
        level: 0.95,
        noise: Some(noise),
        range: None,
        p_value: None,
        holm: None,
    };
    for (view, value, interval) in [
        (number("mean", 41.2371, 0.412, 1.1), "41.24", "[40.14, 42.34]"),
        (number("mean", 41.2371, 0.05, 10.04), "41.2", "[31.2, 51.3]"),
        (number("total", 123_456.0, 4_123.0, 4_123.0), "123,500", "[119,300, 127,600]"),
        (number("total", 1_234.0, 4.1, 4.1), "1,234", "[1,230, 1,238]"),
        (number("mean", 0.0, 0.0, 0.0), "0", "[0, 0]"),
        (number("mean", 3e-12, 1e-12, 1e-12), "3·10⁻¹²", "[2·10⁻¹², 4·10⁻¹²]"),
        (number("mean", 5e300, 1e299, 1e299), "5·10³⁰⁰", "[4.9·10³⁰⁰, 5.1·10³⁰⁰]"),
        (number("ratio", 2.0, 1.0, 1.98), "2.00", "[0.0200, 3.98]"),
        (number("ratio", 1.000_21, 0.000_05, 0.000_05), "1.000210", "[1.000160, 1.000260]"),
    ] {
        let groups = derived_groups(std::slice::from_ref(&view));
        let shown = &groups[0].numbers[0];
        assert_eq!((shown.value.as_str(), shown.interval.as_str()), (value, interval));
    }
}

/// Both sides of a number needed to treat are said in words, from its best to its worst.
#[test]
fn a_number_needed_to_treat_is_said_by_its_sign() {
    let said = |value: Option<f64>, intervals: &[[Option<f64>; 2]]| {
        let view = DerivedView {
            label: "needed-to-treat of ill".into(),
            statistic: "needed-to-treat".into(),
            unit: String::new(),
            value,
            intervals: intervals.to_vec(),
            level: 0.95,
            noise: None,
            range: None,
            p_value: None,
            holm: None,
        };
        let groups = derived_groups(std::slice::from_ref(&view));
        (groups[0].numbers[0].value.clone(), groups[0].numbers[0].interval.clone())
    };
    let both = [[None, Some(-25.3)], [Some(142.0), None]];
    for (value, intervals, words) in [
        (
            Some(-61.2),
            &both[..],
            ["61.2 for one fewer", "from 25.3 for one fewer, through no difference, to 142 for one more"],
        ),
        (Some(-18.4), &[[Some(-29.7), Some(-13.2)]], ["18.4 for one fewer", "13.2 to 29.7 for one fewer"]),
        (Some(18.4), &[[Some(13.2), Some(29.7)]], ["18.4 for one more", "13.2 to 29.7 for one more"]),
        (Some(50.0), &[[Some(25.0), None]], ["50.0 for one more", "25.0 for one more, or above"]),
        (None, &[[None, Some(-1.0)], [Some(1.0), None]], ["not determined", "not determined by these sums"]),
    ] {
        let (said, interval) = said(value, intervals);
        assert_eq!([said.as_str(), interval.as_str()], words);
    }
}

/// Labels that are alike but for their groups are one, and what the groups are of is said.
#[test]
fn labels_are_put_together_by_what_they_are() {
    let labels = [
        "rows, dose = low",
        "rows, dose = high",
        "mean of cost, dose = low, not ill",
        "mean of cost, dose = high, ill",
        "difference of cost, dose = high against dose = low",
        "rows of age 0 to 5",
        "median of age",
    ];
    let words = [
        "rows by dose (2 groups)",
        "mean of cost by dose and ill (2 groups)",
        "difference of cost by dose (1 group)",
        "rows of age 0 to 5, median of age",
    ];
    assert_eq!(alike_in_words(&labels), words.join("; "));
    let sums = [
        "rows of cost, noised, dose = low",
        "rows of cost, noised, dose = high",
        "sum of cost, centred, noised (2)",
    ];
    let sums = sums.map(str::to_owned);
    assert_eq!(sums_in_words(&sums), "3 noised sums: 3 of cost");
    let names = ["rows", "rows of a and b", "sum of a", "sum of b times b, centred", "sum of a times b"];
    let names = names.map(|name| format!("{name}, noised, dose = low"));
    assert_eq!(sums_in_words(&names), "5 noised sums: 1 of rows, 2 of a and b, 1 of a, 1 of b");
    let many: Vec<String> = (0..8).map(|i| format!("sum of c{i}, noised")).collect();
    assert_eq!(
        sums_in_words(&many),
        "8 noised sums: rows, sums, squares and products of c0, c1, c2, c3, c4, c5, c6, c7"
    );
    let outputs = sums.map(|label| ProgramOutput {
        label,
        value: "7".into(),
        sigma: Some("90645088379.123456".into()),
        noised: true,
        mixed: false,
        made_up: false,
        key: None,
        unit: String::new(),
        scale: 1,
    });
    let told = sums_told(&outputs);
    assert_eq!(told[0], ["rows of cost", "2", "90.6 G"]);
    assert_eq!(told[1], ["centred sum of cost", "1", "90.6 G"]);
}

/// A value says little without its column.
#[test]
fn a_cell_is_named_by_its_column() {
    let mut view = view(1, None, false, None);
    let cell = CellView { family: "breakdown".into(), label: "1".into(), ..view.cells[0].clone() };
    view.cells.push(CellView { column: Some("newbie".into()), ..cell.clone() });
    view.cells.push(cell);
    assert_eq!(cell_names(&view), ["all people", "newbie = 1", "1"]);
}

/// A mean that noise put where none is stands as it came out, and the reader is told whose it is.
#[test]
fn means_beyond_their_range_are_said() {
    let of = |means: [f64; 2]| {
        view(500, Some("EUR"), false, Some(estimate(means[0] - means[1], 0.9, Some(means))))
    };
    assert_eq!(means_beyond(&of([1.5, 0.1])), Vec::<String>::new());
    let said = means_beyond(&of([1.5, -0.2]));
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("Noise put the mean of placebo below 0, where no true mean is."), "{said:?}");
    let above = means_beyond(&of([501.0, 0.1]));
    assert!(above[0].starts_with("Noise put the mean of vaccine above the clamp"), "{above:?}");
    // The page says of an interval what the terminal does not show.
    assert!(ends_beyond(&of([1.5, 0.1])).is_some() && ends_beyond(&of([1.5, 1.1])).is_none());
    // Many cells are not all named.
    let mut many = of([1.5, -0.2]);
    let cell = many.cells[0].clone();
    many.cells.extend((0..6).map(|value| CellView {
        family: "breakdown".into(),
        label: value.to_string(),
        column: Some("newbie".into()),
        ..cell.clone()
    }));
    let said = means_beyond(&many);
    let names = "placebo, newbie = 0, placebo, newbie = 1, placebo, newbie = 2, placebo and 3 more";
    assert!(said[0].contains(&format!("the mean of {names} below 0")), "{said:?}");
    // Earlier versions wrote 0.
    let mut earlier = of([1.5, -0.2]);
    earlier.cells[0].estimate.as_mut().expect("it has one").rates.as_mut().expect("means")[1].mean = 0.0;
    let said = means_beyond(&earlier);
    assert!(
        said[0].starts_with("An earlier version wrote this report, and 0 for a mean below 0"),
        "{said:?}"
    );
    assert!(said[0].contains("the means of all people do not subtract"), "{said:?}");
}

/// The interval of a difference can be that of noise alone as well, and then nothing else is said of it.
#[test]
fn differences_of_noise_alone_are_said() {
    let all = |shown: &LiftView| noise_alone(shown).unwrap_or_default();
    let mut shown = view(500, Some("EUR"), false, Some(estimate(-0.107, 0.295, Some([-0.078, 0.029]))));
    assert_eq!(all(&shown), "");
    let of = shown.cells[0].estimate.as_mut().expect("it has one");
    of.noise_interval = of.interval;
    assert!(
        all(&shown).starts_with("1 interval of a difference is that of noise alone: "),
        "{}",
        all(&shown)
    );
    let of = shown.cells[0].estimate.as_mut().expect("it has one");
    of.rates.iter_mut().flatten().for_each(|rate| rate.noise_half_width = rate.half_width);
    let both = "2 intervals of means and 1 interval of a difference are those of noise alone: ";
    assert!(all(&shown).starts_with(both) && !all(&shown).contains("No interval"), "{}", all(&shown));
}

/// What a match of nobody looks like is said by the numbers alone, at all parties alike.
#[test]
fn means_that_noise_alone_gives_are_said() {
    let of = |means: [f64; 2]| {
        let shown = view(500, Some("EUR"), false, Some(estimate(means[0] - means[1], 0.8, Some(means))));
        lost_in_noise(&shown)
    };
    let why = of([-0.078, 0.19]).expect("noise alone is 0.2 to either side");
    assert!(why.contains("nobody in common") && why.contains("identifiers differently"), "{why}");
    assert_eq!(of([0.3, 0.1]), None);
    assert_eq!(lost_in_noise(&view(500, None, false, Some(estimate(0.1, 0.8, None)))), None);
}

/// Digits that do not subtract have a sentence; digits that do have none.
#[test]
fn digits_that_do_not_subtract_are_said() {
    let said = |means: [f64; 2]| {
        let shown = view(500, Some("EUR"), false, Some(estimate(means[0] - means[1], 1.5, Some(means))));
        means_beyond(&shown).concat()
    };
    // 12.51 - 5.86 = 6.64, as 12.505 - 5.864 is 6.641.
    let off = said([12.5051, 5.8641]);
    assert!(off.contains("may be off by one in the last digit"), "{off}");
    assert_eq!(said([12.51, 5.86]), "");
}

/// An interval that ends where its range does says so; one that does not, or an older report, says nothing.
#[test]
fn a_cut_interval_says_where() {
    let of = |ends: [f64; 2], range: Option<[Option<f64>; 2]>| {
        let view = DerivedView {
            label: "correlation of a with b".into(),
            statistic: "correlation".into(),
            unit: String::new(),
            value: Some(-0.62),
            intervals: vec![ends.map(Some)],
            level: 0.95,
            noise: Some(0.81),
            range,
            p_value: None,
            holm: None,
        };
        let shown = derived_groups(std::slice::from_ref(&view))[0].numbers[0].interval.clone();
        (shown, covered(&[view]).concat())
    };
    let whole = Some([Some(-1.0), Some(1.0)]);
    for (ends, range, said) in [
        ([-1.0, 0.13], whole, "[-1.00, 0.13], cut at -1.00"),
        ([-0.9, 1.0], whole, "[-0.90, 1.00], cut at 1.00"),
        ([-1.0, 1.0], whole, "[-1.00, 1.00], all that there can be"),
        ([-0.9, 0.13], whole, "[-0.90, 0.13]"),
        ([-1.0, 0.13], Some([None, Some(1.0)]), "[-1.00, 0.13]"),
        ([-1.0, 0.13], None, "[-1.00, 0.13]"),
    ] {
        let (shown, notes) = of(ends, range);
        assert_eq!(shown, said);
        let is_cut = said.contains("cut at") || said.contains("all that");
        assert_eq!(notes.contains("there can be is cut there"), is_cut);
        // Noise is 0.81 to either side.
        assert_eq!(notes.contains("it may be wider"), ends[1] - ends[0] < 1.62);
    }
}

/// Where a part of the control arm's mean is missing, the reader is told why.
#[test]
fn a_missing_relative_difference_has_a_reason() {
    let mut shown = view(1, None, true, Some(estimate(0.1, 0.05, Some([0.3, 0.2]))));
    assert_eq!(no_relative(&shown), None);
    shown.cells[0].estimate.as_mut().expect("it has one").relative = None;
    let why = no_relative(&shown).expect("a reason");
    let named =
        "No relative difference is given of all people: the interval of the mean of placebo reaches 0";
    assert!(why.starts_with(named), "{why}");
    // A mode without means has a sentence of its own.
    assert_eq!(no_relative(&view(1, None, true, Some(estimate(0.1, 0.05, None)))), None);
}
