//! Hours in which no run begins: `Mon-Fri 08:00-18:00 +01:00`. The offset is fixed, since names of zones need
//! a database of them.

use std::fmt;
use std::str::FromStr;

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const RULE: &str = "write days, hours and offset: \"Mon-Fri 08:00-18:00 +01:00\"";

/// Some hours of some days of every week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuietHours {
    /// From this day to that one, Monday being 0.
    days: (usize, usize),
    /// Minutes of the day; the second one is larger.
    minutes: (u16, u16),
    /// Minutes ahead of UTC.
    offset: i16,
}

impl FromStr for QuietHours {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [days, hours, offset] = parts[..] else { return Err(RULE) };
        let day = |name: &str| DAYS.iter().position(|day| *day == name).ok_or(RULE);
        let (first, last) = days.split_once('-').unwrap_or((days, days));
        let (from, to) = hours.split_once('-').ok_or(RULE)?;
        let (from, to) = (minutes(from, 24)?, minutes(to, 24)?);
        if from >= to {
            return Err("the first hour must be before the second one; write two lines around midnight");
        }
        let (sign, ahead) = match offset.split_at_checked(1) {
            Some(("+", ahead)) => (1, ahead),
            Some(("-", ahead)) => (-1, ahead),
            _ => return Err(RULE),
        };
        let ahead = i16::try_from(minutes(ahead, 14)?).map_err(|_| RULE)?;
        Ok(Self { days: (day(first)?, day(last)?), minutes: (from, to), offset: sign * ahead })
    }
}

impl QuietHours {
    /// Whether a time, in seconds since 1970, lies within.
    #[must_use]
    pub fn contains(&self, at: u64) -> bool {
        let local = i64::try_from(at / 60).unwrap_or(i64::MAX).saturating_add(i64::from(self.offset));
        // 1 January 1970 was a Thursday.
        let day = (local.div_euclid(1_440) + 3).rem_euclid(7).unsigned_abs();
        let minute = local.rem_euclid(1_440).unsigned_abs();
        let (first, last) = (self.days.0 as u64, self.days.1 as u64);
        let on = if first <= last { (first..=last).contains(&day) } else { day >= first || day <= last };
        on && (u64::from(self.minutes.0)..u64::from(self.minutes.1)).contains(&minute)
    }
}

/// Minutes of `08:30`, at most `hours`.
fn minutes(text: &str, hours: u16) -> Result<u16, &'static str> {
    let two = |part: &str| (part.len() == 2).then(|| part.parse::<u16>().ok()).flatten().ok_or(RULE);
    let (hour, minute) = text.split_once(':').ok_or(RULE)?;
    let (hour, minute) = (two(hour)?, two(minute)?);
    let all = hour * 60 + minute;
    if minute < 60 && all <= hours * 60 { Ok(all) } else { Err(RULE) }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let days = match self.days {
            (first, last) if first == last => DAYS[first].to_owned(),
            (first, last) => format!("{} to {}", DAYS[first], DAYS[last]),
        };
        let sign = if self.offset < 0 { '-' } else { '+' };
        let (from, to) = (clock(self.minutes.0), clock(self.minutes.1));
        write!(f, "{days} {from} to {to} (UTC{sign}{})", clock(self.offset.unsigned_abs()))
    }
}
