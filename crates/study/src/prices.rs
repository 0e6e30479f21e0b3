//! A list of prices: what a core and a byte cost, and on which day. It is nobody's secret and no part of a
//! study; `docs/prices-2026.toml` is one, with the source of every number.

use crate::read_text;
use crate::reader::{TomlItem, TomlSection, TomlSource};
use base::Error;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::Path;

/// Most US dollars that an hour of a core, or a gigabyte, may cost.
const MOST_USD: f64 = 1000.0;
/// The least share of one: of a price, or of the time of a core.
const LEAST_SHARE: f64 = 0.01;
/// Cores of the largest machine.
const MACHINE_CORES: u64 = 4096;

/// What computing and sending cost. All prices are finite and at least 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PriceList {
    /// The day on which the prices were those: `2026-11-26`.
    pub date: String,
    /// US dollars for an hour of one core, on demand.
    pub core_hour_usd: f64,
    /// What of it a core costs that may be taken back at any time, 0.01 to 1.
    pub spot_share: f64,
    /// How much of the core time that is paid computes, 0.01 to 1.
    pub share_used: f64,
    /// Cores of a machine.
    pub machine_cores: u32,
    /// US dollars for 10^9 bytes between two zones of a region, both sides' charges together.
    pub gb_between_zones_usd: f64,
    /// The same for what goes out to the internet.
    pub gb_internet_usd: f64,
}

/// Between what the parties' bytes go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BytePath {
    /// Machines of one zone: bytes are free.
    Zone,
    /// Two zones of a region.
    #[default]
    Zones,
    /// Any two places.
    Internet,
}

impl BytePath {
    /// The cheapest first.
    pub const ALL: [Self; 3] = [Self::Zone, Self::Zones, Self::Internet];

    /// As a command line names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zone => "zone",
            Self::Zones => "zones",
            Self::Internet => "internet",
        }
    }

    /// # Errors
    /// What to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|path| path.name() == text);
        named.ok_or_else(|| format!("unknown place '{text}'; use zone, zones or internet"))
    }

    /// Where it is, for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Zone => "in one zone",
            Self::Zones => "between zones",
            Self::Internet => "over the internet",
        }
    }
}

const KEYS: [&str; 7] = [
    "date",
    "core_hour_usd",
    "spot_share",
    "share_used",
    "machine_cores",
    "gb_between_zones_usd",
    "gb_internet_usd",
];

impl PriceList {
    /// Reads a file of prices.
    ///
    /// # Errors
    /// When it cannot be read, or as [`Self::parse`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Reads the text of a file of prices; `file` is its name in messages.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let source = TomlSource { file, text };
        let table = source.table()?;
        let root = TomlSection::root(source, &table, &KEYS)?;
        let usd = |key, example| number(&root.need(key, example)?, 0.0..=MOST_USD);
        let share = |key, example| number(&root.need(key, example)?, LEAST_SHARE..=1.0);
        let cores = root.need("machine_cores", "machine_cores = 32")?.integer(1..=MACHINE_CORES)?;
        Ok(Self {
            date: day(&root.need("date", "date = 2026-11-26")?)?,
            core_hour_usd: usd("core_hour_usd", "core_hour_usd = 0.05")?,
            spot_share: share("spot_share", "spot_share = 0.4")?,
            share_used: share("share_used", "share_used = 0.7")?,
            machine_cores: cores as u32,
            gb_between_zones_usd: usd("gb_between_zones_usd", "gb_between_zones_usd = 0.02")?,
            gb_internet_usd: usd("gb_internet_usd", "gb_internet_usd = 0.09")?,
        })
    }

    /// US dollars for 10^9 bytes.
    #[must_use]
    pub fn gb_usd(&self, path: BytePath) -> f64 {
        match path {
            BytePath::Zone => 0.0,
            BytePath::Zones => self.gb_between_zones_usd,
            BytePath::Internet => self.gb_internet_usd,
        }
    }
}

/// A day, without quotes.
fn day(item: &TomlItem<'_, '_>) -> Result<String, Error> {
    let rule = "write the day of the prices without quotes: 2026-11-26";
    let toml::de::DeValue::Datetime(date) = item.value.get_ref() else { return Err(item.refuse(rule)) };
    let text = date.to_string();
    match base::days_of_date(&text) {
        Some(_) => Ok(text),
        None => Err(item.refuse(rule)),
    }
}

fn number(item: &TomlItem<'_, '_>, range: RangeInclusive<f64>) -> Result<f64, Error> {
    let value = item.number_text()?.parse::<f64>().ok().filter(|value| range.contains(value));
    value.ok_or_else(|| item.refuse(format!("use a number from {} to {}", range.start(), range.end())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = include_str!("../../../docs/prices-2026.toml");

    fn refused(from: &str, to: &str) -> String {
        assert!(SHIPPED.contains(from), "{from}");
        PriceList::parse("prices.toml", &SHIPPED.replacen(from, to, 1)).unwrap_err().to_string()
    }

    #[test]
    fn the_shipped_list_is_read() {
        let prices = PriceList::parse("prices.toml", SHIPPED).unwrap();
        assert_eq!((prices.date.as_str(), prices.machine_cores), ("2026-11-26", 32));
        assert_eq!(BytePath::ALL.map(|path| prices.gb_usd(path)), [0.0, 0.02, 0.09]);
        assert_eq!([prices.core_hour_usd, prices.spot_share, prices.share_used], [0.0513, 0.4, 0.7]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_what_to_write() {
        let line = 1 + SHIPPED.lines().position(|line| line.starts_with("spot_share")).unwrap();
        let text = refused("spot_share           = 0.4", "spot_share           = 1.5");
        assert!(text.contains(&format!("prices.toml, line {line}, column 24: spot_share is 1.5")), "{text}");
        assert!(text.contains("use a number from 0.01 to 1"), "{text}");
        for (from, to, what) in [
            ("date                 = 2026-11-26", "date = \"2026-11-26\"", "without quotes: 2026-11-26"),
            ("date                 = 2026-11-26", "date = 2026-02-30", "invalid date"),
            ("date                 = 2026-11-26", "date = 2026-11-26T06:00:00Z", "without quotes"),
            ("core_hour_usd        = 0.0513", "core_hour_usd = 1001", "from 0 to 1000"),
            ("core_hour_usd        = 0.0513", "core_hour_usd = -1", "from 0 to 1000"),
            ("core_hour_usd        = 0.0513", "core_hour_usd = nan", "core_hour_usd is nan"),
            ("core_hour_usd        = 0.0513", "core_hour_usd = inf", "core_hour_usd is inf"),
            ("core_hour_usd        = 0.0513", "core_hours_usd = 0.05", "did you mean \"core_hour_usd\"?"),
            ("core_hour_usd        = 0.0513", "", "add: core_hour_usd = 0.05"),
            ("share_used           = 0.7", "share_used = 0", "from 0.01 to 1"),
            ("machine_cores        = 32", "machine_cores = 0", "from 1 to 4096"),
            ("machine_cores        = 32", "machine_cores = 4097", "from 1 to 4096"),
            ("gb_internet_usd      = 0.09", "gb_internet_usd = \"free\"", "a decimal number"),
        ] {
            let text = refused(from, to);
            assert!(text.starts_with("prices.toml, line ") && text.contains(what), "{to}: {text}");
        }
        let most = SHIPPED.replace("gb_internet_usd      = 0.09", "gb_internet_usd = 1000");
        assert_eq!(PriceList::parse("f", &most).unwrap().gb_internet_usd, MOST_USD);
    }

    #[test]
    fn a_place_has_a_name() {
        assert!(BytePath::ALL.iter().all(|path| BytePath::parse(path.name()) == Ok(*path)));
        assert!(BytePath::parse("moon").unwrap_err().contains("use zone, zones or internet"));
    }
}
