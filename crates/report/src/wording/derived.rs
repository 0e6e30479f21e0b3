//! The words and numbers of what a program derives from its noised sums: groups that compare at a glance,
//! digits that the noise leaves, intervals whose ends may be open.

use super::told::misses;
use super::{label, noise, told_apart};
use crate::{DerivedView, ProgramOutput};
use base::clean;
use page::numbers;
use page::numbers::{fixed, p_value, percent, scientific};

/// What is said of an interval that is open, and of an end of one.
const NOT_DETERMINED: &str = "not determined by these sums";
/// The same of a value.
const UNKNOWN: &str = "not determined";
/// The same in brackets.
const OPEN: &str = "open";
/// Summary of the noised sums behind what is derived.
pub const BEHIND: &str = "Noised sums from which these are computed";
/// Longest name of a group.
const GROUP_CHARS: usize = 80;
/// Digits that the noise gets, and the interval at most.
const NOISE_DIGITS: i32 = 2;
const INTERVAL_DIGITS: i32 = 3;
/// Numbers whose last digit is beyond this decimal are written as a power of ten.
const MOST_DECIMALS: i32 = 9;

/// Numbers of one kind, which have an axis in common.
pub struct DerivedGroup<'a> {
    /// What labels have before their first comma.
    pub name: String,
    /// Its unit, or nothing.
    pub unit: String,
    /// In the order of the program.
    pub numbers: Vec<DerivedNumber<'a>>,
}

/// One number for a reader.
pub struct DerivedNumber<'a> {
    /// The number.
    pub of: &'a DerivedView,
    /// What its label has behind the first comma; empty of a number that is its group.
    pub name: String,
    /// The value without its unit, or that it is not determined.
    pub value: String,
    /// The interval, or what is said in place of it.
    pub interval: String,
    /// Value and interval on a figure.
    pub short: String,
    /// Half of the interval that noise alone would leave.
    pub noise: String,
    /// P-values of no difference or association: its own, and Holm's; none of a level.
    pub tests: Option<[String; 2]>,
}

impl DerivedGroup<'_> {
    /// `mean of spent, EUR`.
    pub fn title(&self) -> String {
        match &*self.unit {
            "" => self.name.clone(),
            unit => format!("{}, {unit}", self.name),
        }
    }

    /// Whether these are counts or sums: of no population, but of these rows.
    pub fn is_of_totals(&self) -> bool {
        self.numbers.iter().all(|number| is_total(number.of))
    }
}

impl DerivedNumber<'_> {
    /// The value with its unit.
    pub fn with_unit(&self) -> String {
        match (&self.of.value, &*self.of.unit) {
            (Some(_), unit) if !unit.is_empty() => format!("{} {}", self.value, label(unit)),
            _ => self.value.clone(),
        }
    }
}

fn is_total(view: &DerivedView) -> bool {
    view.statistic == "total"
}

/// Whether numbers are a number needed to treat: of no place on a line, since the largest is next to none.
pub fn is_needed_to_treat(view: &DerivedView) -> bool {
    view.statistic == "needed-to-treat"
}

/// Whether 1 stands for no difference.
pub fn is_ratio(view: &DerivedView) -> bool {
    ["ratio", "odds-ratio"].contains(&&*view.statistic)
}

/// A label before its first comma, and behind it.
fn parts(view: &DerivedView) -> (&str, Option<&str>) {
    view.label.split_once(", ").map_or((&view.label, None), |(head, rest)| (head, Some(rest)))
}

/// Numbers by what their labels have before the first comma, in the order of the program.
pub fn derived_groups(derived: &[DerivedView]) -> Vec<DerivedGroup<'_>> {
    let kind = |view: &DerivedView| (parts(view).0.to_owned(), view.unit.clone(), view.statistic.clone());
    let mut alike: Vec<Vec<&DerivedView>> = Vec::new();
    for view in derived {
        match alike.iter_mut().find(|group| kind(group[0]) == kind(view)) {
            Some(group) => group.push(view),
            None => alike.push(vec![view]),
        }
    }
    let heads: Vec<&str> = alike.iter().map(|group| parts(group[0]).0).collect();
    let heads = told_apart(&heads, GROUP_CHARS);
    heads.into_iter().zip(alike).map(|(name, of)| group(name, &of)).collect()
}

fn group<'a>(name: String, of: &[&'a DerivedView]) -> DerivedGroup<'a> {
    let name_of = |view: &&DerivedView| match parts(view) {
        (_, Some(rest)) => rest.to_owned(),
        (_, None) if of.len() == 1 => String::new(),
        (_, None) => "all rows".to_owned(),
    };
    let names = told_apart(&of.iter().map(name_of).collect::<Vec<_>>(), GROUP_CHARS);
    let numbers = of.iter().zip(names).map(|(view, name)| number(view, name)).collect();
    DerivedGroup { name, unit: label(&of[0].unit), numbers }
}

fn number(of: &DerivedView, name: String) -> DerivedNumber<'_> {
    let digit = LastDigit::of(of);
    let noise = of.noise.map_or_else(|| UNKNOWN.to_owned(), LastDigit::of_noise);
    let tests = of.p_value.zip(of.holm).map(|(own, holm)| [own, holm].map(p_value));
    if is_needed_to_treat(of) {
        let value = of.value.map_or_else(|| UNKNOWN.to_owned(), LastDigit::needed);
        return DerivedNumber {
            of,
            name,
            interval: LastDigit::needed_between(of),
            short: value.clone(),
            value,
            noise,
            tests,
        };
    }
    let all = |one: fn(&LastDigit, &[Option<f64>; 2]) -> String| {
        of.intervals.iter().map(|ends| one(&digit, ends)).collect::<Vec<_>>().join(" or ")
    };
    let bounded = of.intervals.iter().flatten().any(Option::is_some);
    let interval = match (bounded, cut(of)) {
        (false, _) => NOT_DETERMINED.to_owned(),
        (true, [false, false]) => all(LastDigit::between),
        (true, [true, true]) => format!("{}, all that there can be", all(LastDigit::between)),
        (true, ends) => format!("{}, cut at {}", all(LastDigit::between), cut_end(of, ends, &digit)),
    };
    let value = of.value.map(|value| digit.show(value));
    let short = match (&value, bounded) {
        (None, false) => UNKNOWN.to_owned(),
        (value, _) => format!("{} {}", value.as_deref().unwrap_or(OPEN), all(LastDigit::brackets)),
    };
    let value = value.unwrap_or_else(|| UNKNOWN.to_owned());
    DerivedNumber { of, name, value, interval, short, noise, tests }
}

/// Whether the lower end of an interval is the least value that there can be, and its upper end the greatest:
/// there it was cut.
pub fn cut(view: &DerivedView) -> [bool; 2] {
    let ([ends], Some(range)) = (&view.intervals[..], view.range) else { return [false; 2] };
    // Of ends that are computed the last digits may differ.
    let near = 1e-9 * range.iter().flatten().fold(1e-300, |most: f64, end| most.max(end.abs()));
    let is_cut = |at: usize| ends[at].zip(range[at]).is_some_and(|(end, last)| (end - last).abs() <= near);
    [is_cut(0), is_cut(1)]
}

/// Whether half of a closed interval is less than noise alone would leave.
fn noise_is_wider(view: &DerivedView) -> bool {
    let ([[Some(low), Some(high)]], Some(noise)) = (&view.intervals[..], view.noise) else { return false };
    !is_needed_to_treat(view) && noise > 0.5 * (high - low) * (1.0 + 1e-6)
}

/// The one end that is cut.
fn cut_end(of: &DerivedView, [low, _]: [bool; 2], digit: &LastDigit) -> String {
    let end = of.intervals.first().and_then(|ends| ends[usize::from(!low)]);
    end.map_or_else(|| OPEN.to_owned(), |end| digit.show(end))
}

/// The power of ten of the last digit that is shown.
struct LastDigit {
    power: i32,
    /// Whether smaller numbers get more: a ratio of 0.02 says as much as one of 50.
    relative: bool,
}

/// The power of the last of so many digits of a number; none of 0.
fn last_of(size: f64, digits: i32) -> Option<i32> {
    let size = size.abs();
    (size > 0.0 && size.is_finite()).then(|| size.log10().floor() as i32 + 1 - digits)
}

impl LastDigit {
    /// Two digits of the noise, where the interval as a whole is not so wide that these would say nothing.
    fn of(view: &DerivedView) -> Self {
        let widths = view.intervals.iter().filter_map(|[low, high]| Some(0.5 * ((*high)? - (*low)?)));
        let noise = view.noise.and_then(|noise| last_of(noise, NOISE_DIGITS));
        let width = widths.filter_map(|width| last_of(width, INTERVAL_DIGITS)).max();
        let numbers = view.intervals.iter().flatten().chain([&view.value]).flatten();
        let size = numbers.filter_map(|number| last_of(*number, INTERVAL_DIGITS)).max();
        let power = noise.max(width).or(size).unwrap_or(0);
        // A count is whole, and a noise of 1 and more leaves no part of it.
        let whole = is_total(view) && view.unit.is_empty() && power == -1;
        Self { power: if whole { 0 } else { power }, relative: is_ratio(view) }
    }

    fn of_noise(noise: f64) -> String {
        written(noise, last_of(noise, NOISE_DIGITS).unwrap_or(0))
    }

    fn show(&self, value: f64) -> String {
        let own = last_of(value, INTERVAL_DIGITS).filter(|_| self.relative);
        written(value, own.map_or(self.power, |own| own.min(self.power)))
    }

    /// A number needed to treat, which has three digits: its noise is that of a difference.
    fn show_needed(value: f64) -> String {
        written(value.abs(), last_of(value, INTERVAL_DIGITS).unwrap_or(0))
    }

    fn between(&self, ends: &[Option<f64>; 2]) -> String {
        match ends.map(|end| end.map(|end| self.show(end))) {
            [Some(low), Some(high)] => format!("[{low}, {high}]"),
            [Some(low), None] => format!("from {low}, upper end {NOT_DETERMINED}"),
            [None, Some(high)] => format!("up to {high}, lower end {NOT_DETERMINED}"),
            [None, None] => NOT_DETERMINED.to_owned(),
        }
    }

    fn brackets(&self, ends: &[Option<f64>; 2]) -> String {
        let [low, high] = ends.map(|end| end.map_or_else(|| OPEN.to_owned(), |end| self.show(end)));
        format!("[{low}, {high}]")
    }

    /// `25 for one fewer`.
    fn needed(value: f64) -> String {
        let way = if value < 0.0 { "fewer" } else { "more" };
        format!("{} for one {way}", Self::show_needed(value))
    }

    /// From the fewest rows for one fewer with the outcome to the fewest for one more: no difference, for
    /// which no number is enough, lies between them.
    fn needed_between(view: &DerivedView) -> String {
        let fewer = view.intervals.iter().find(|[_, high]| high.is_some_and(|high| high < 0.0));
        let more = view.intervals.iter().find(|[low, _]| low.is_some_and(|low| low > 0.0));
        let side = |least: Option<f64>, most: Option<f64>| match (least, most) {
            (Some(least), Some(most)) => format!("{} to {}", Self::show_needed(least), Self::needed(most)),
            (Some(least), None) => format!("{}, or above", Self::needed(least)),
            (None, _) => NOT_DETERMINED.to_owned(),
        };
        match (fewer, more) {
            (Some([_, Some(fewer)]), Some([Some(more), _])) if *fewer < -1.0 || *more > 1.0 => {
                let [fewer, more] = [fewer, more].map(|least| Self::needed(*least));
                format!("from {fewer}, through no difference, to {more}")
            }
            (Some([most, least]), None) | (None, Some([least, most])) => side(*least, *most),
            _ => NOT_DETERMINED.to_owned(),
        }
    }
}

fn written(value: f64, power: i32) -> String {
    match power {
        1.. => {
            let step = 10f64.powi(power);
            fixed((value / step).round() * step, 0)
        }
        ..=0 if -power > MOST_DECIMALS => scientific(value),
        _ => fixed(value, power.unsigned_abs() as usize),
    }
}

/// Numbers whose labels are alike before the first comma, in the order in which they come.
pub struct AlikeLabels {
    /// What they have in common.
    pub name: String,
    /// What each has behind it, or nothing.
    pub groups: Vec<String>,
    /// Where they stand among all.
    pub places: Vec<usize>,
}

/// Labels by what they have before the first comma.
pub fn alike(labels: &[impl AsRef<str>]) -> Vec<AlikeLabels> {
    let mut all: Vec<AlikeLabels> = Vec::new();
    for (place, label) in labels.iter().enumerate() {
        let label = clean(label.as_ref());
        let (name, group) = label.split_once(", ").unwrap_or((&label, ""));
        let found = all.iter().position(|one| one.name == name).unwrap_or_else(|| {
            all.push(AlikeLabels { name: name.to_owned(), groups: Vec::new(), places: Vec::new() });
            all.len() - 1
        });
        all[found].groups.push(group.to_owned());
        all[found].places.push(place);
    }
    all
}

/// What a group is one of: `segment` of `segment = low`, `not segment`, `segment 0 to 10` and
/// `segment = low against segment = high`.
fn grouping(group: &str) -> &str {
    let group = group.strip_prefix("not ").unwrap_or(group);
    let end = group.find(" = ").or_else(|| group.find(' ')).unwrap_or(group.len());
    &group[..end]
}

/// By what groups differ, as far as all of them have that: `by dose and age`.
fn groupings(groups: &[String]) -> String {
    let of = |group: &String| group.split(", ").map(|one| grouping(one).to_owned()).collect::<Vec<_>>();
    let first = groups.first().map_or_else(Vec::new, of);
    match groups.iter().all(|group| of(group) == first) && !first.concat().is_empty() {
        true => format!(" by {}", first.join(" and ")),
        false => String::new(),
    }
}

/// Labels in a sentence, those alike once: `mean of cost, variance of cost by dose (3 groups)`.
pub fn alike_in_words(labels: &[impl AsRef<str>]) -> String {
    let mut said: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for AlikeLabels { name, groups, .. } in alike(labels) {
        match said.last_mut().filter(|(_, known)| *known == groups) {
            Some((names, _)) => names.push(name),
            None => said.push((vec![name], groups)),
        }
    }
    let words = said.into_iter().map(|(names, groups)| match &groups[..] {
        [only] if only.is_empty() => names.join(", "),
        groups => {
            let number = numbers::counted(groups.len() as u64, "group");
            format!("{}{} ({number})", names.join(", "), groupings(groups))
        }
    });
    words.collect::<Vec<_>>().join("; ")
}

/// A noised sum's name without what every one of them is and the number of a further one, and with `centred`
/// in front.
fn sum_name(label: &str) -> String {
    let numbered = label.rsplit_once(" (").filter(|(_, number)| {
        number.strip_suffix(')').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let plain = numbered.map_or(label, |(plain, _)| plain).replacen(", noised", "", 1);
    match plain.contains(", centred") {
        true => format!("centred {}", plain.replacen(", centred", "", 1)),
        false => plain,
    }
}

/// Most families of sums that are counted one by one.
const FAMILIES: usize = 6;

/// How many noised sums there are, by the columns that they are of.
pub fn sums_in_words(labels: &[String]) -> String {
    let mut all: Vec<(Vec<String>, u64)> = Vec::new();
    for label in labels {
        let of = columns_of(&sum_name(label));
        match all.iter_mut().find(|(known, _)| *known == of) {
            Some((_, sums)) => *sums += 1,
            None => all.push((of, 1)),
        }
    }
    let number = numbers::counted(labels.len() as u64, "noised sum");
    let named = |of: &[String]| if of.is_empty() { "rows".to_owned() } else { of.join(" and ") };
    if all.len() <= FAMILIES {
        let each = all.iter().map(|(of, sums)| format!("{} of {}", numbers::count(*sums), named(of)));
        return format!("{number}: {}", each.collect::<Vec<_>>().join(", "));
    }
    let mut columns: Vec<&String> = Vec::new();
    all.iter().flat_map(|(of, _)| of).for_each(|name| {
        if !columns.contains(&name) {
            columns.push(name);
        }
    });
    let columns: Vec<&str> = columns.into_iter().map(String::as_str).collect();
    format!("{number}: rows, sums, squares and products of {}", columns.join(", "))
}

/// The columns that a sum is of, by its name; none of a number of rows.
fn columns_of(name: &str) -> Vec<String> {
    let name = name.split_once(", ").map_or(name, |(name, _)| name);
    let Some((_, of)) = name.split_once(" of ") else { return Vec::new() };
    let of = of.split_once(" less ").map_or(of, |(of, _)| of);
    let mut columns: Vec<String> = Vec::new();
    for name in of.split(" and ").flat_map(|of| of.split(" times ")) {
        if !columns.iter().any(|known| known == name) {
            columns.push(name.to_owned());
        }
    }
    columns
}

/// What is said of noised sums that are alike but for their group: their name, how many, and the deviations
/// of the noise in them.
pub fn sums_told(sums: &[ProgramOutput]) -> Vec<[String; 3]> {
    let names: Vec<String> = sums.iter().map(|sum| sum_name(&sum.label)).collect();
    let told = |AlikeLabels { name, places, .. }: AlikeLabels| {
        let mut sigmas: Vec<String> = Vec::new();
        for place in &places {
            let sigma = sums[*place].sigma.as_ref().and_then(|sigma| sigma.parse().ok());
            let noise = sigma.map_or_else(|| noise(&sums[*place]), numbers::scaled);
            if !sigmas.contains(&noise) {
                sigmas.push(noise);
            }
        }
        [name, numbers::count(places.len() as u64), sigmas.join(" and ")]
    };
    alike(&names).into_iter().map(told).collect()
}

/// The noised sums behind what is derived, and the other outputs; all are others where nothing is.
pub fn behind(
    outputs: &[ProgramOutput],
    derived: &[DerivedView],
) -> (Vec<ProgramOutput>, Vec<ProgramOutput>) {
    outputs.iter().cloned().partition(|output| !derived.is_empty() && output.sigma.is_some())
}

/// `95 % interval`.
pub fn level(derived: &[DerivedView]) -> String {
    format!("{} interval", percent(derived.first().map_or(0.95, |view| view.level)))
}

/// What the intervals are of, a sentence each.
pub fn covered(derived: &[DerivedView]) -> Vec<String> {
    let (totals, others): (Vec<&DerivedView>, Vec<_>) = derived.iter().partition(|view| is_total(view));
    let name = level(derived);
    let mut said = Vec::new();
    if !others.is_empty() {
        said.push(format!(
            "The {name} covers sampling and noise together: it is for the population that the rows are a \
             sample of."
        ));
    }
    if !totals.is_empty() {
        let of = if others.is_empty() {
            format!("The {name} of counts and sums")
        } else {
            "Of counts and sums it".into()
        };
        said.push(format!("{of} covers noise alone: it is for the rows that there are."));
    }
    if others.iter().any(|view| is_needed_to_treat(view)) {
        said.push(
            "A number needed to treat is for one fewer or one more with the outcome: fewer is the benefit \
             where the outcome is bad, and the harm where it is good."
                .to_owned(),
        );
    }
    let is_open = |view: &&DerivedView| {
        view.value.is_none() || view.noise.is_none() || view.intervals.iter().flatten().any(Option::is_none)
    };
    if derived.iter().any(|view| is_open(&view)) {
        said.push("Where a number is not determined, the sums with their noise do not tell it.".to_owned());
    }
    if derived.iter().any(|view| cut(view) != [false; 2]) {
        let cut = "An interval, or a value, that reaches the least or the greatest that there can be is cut";
        said.push(format!("{cut} there."));
    }
    if others.iter().any(|view| noise_is_wider(view)) {
        said.push(
            "What noise alone would leave is said around the value and is not cut: beside an interval that \
             is, or whose parts are, it may be wider."
                .to_owned(),
        );
    }
    if derived
        .iter()
        .any(|view| is_total(view) && view.unit.is_empty() && view.value.is_some_and(|n| n < 0.0))
    {
        said.push("A count below 0 is what noise made of a small one.".to_owned());
    }
    if derived.iter().any(|view| view.holm.is_some()) {
        said.push(
            "A p-value is of no difference or no association, two-sided, by the same interval. Those named \
             Holm are adjusted for all such hypotheses of this view, where several statistics of the same \
             groups are one: who calls those real that are at most 5 % is wrong about any of them with a \
             chance of at most 5 %."
                .to_owned(),
        );
    }
    let sure = derived.first().map_or(0.95, |view| view.level);
    said.extend(misses(derived.len(), sure).map(|text| format!("{text}.")));
    said
}
