//! The machine and the time, as the records name them.

use crate::store::Host;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a run's records say of this machine: nothing that names it or its users.
pub fn describe() -> Host {
    let uname = rustix::system::uname();
    let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    Host {
        kernel: format!("{} {}", text(uname.sysname()), text(uname.release())),
        machine: text(uname.machine()),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        distribution: distribution(),
        memory_bytes: rustix::system::sysinfo().totalram as u64,
    }
}

fn distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

fn since_epoch() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Now, RFC 3339 in UTC, to the second.
pub fn now() -> String {
    let seconds = since_epoch().as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}Z")
}

/// The time since 1970 of a date and time as [`now`] writes them; none for anything else.
pub fn since_1970(rfc3339: &str) -> Option<std::time::Duration> {
    let fields = rfc3339.strip_suffix('Z')?.split(['-', 'T', ':']).map(str::parse::<u64>);
    let fields: Vec<u64> = fields.collect::<Result<_, _>>().ok()?;
    let &[year @ 1970..10_000, month @ 1..=12, day @ 1..=31, h @ 0..24, m @ 0..60, s @ 0..=60] = fields.as_slice()
    else {
        return None;
    };
    // From the first of March on, so that the leap day is a year's last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    Some(std::time::Duration::from_secs(days * 86_400 + h * 3600 + m * 60 + s))
}

/// Days since 1970-01-01 to year, month, day (Hinnant's `civil_from_days`, for days not before 1970).
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// A folder's name for a run begun at `started`: sortable, and apart from others of the same second.
pub fn run_id(started: &str, seed: u64) -> String {
    let compact: String = started.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let apart = seed ^ u64::from(std::process::id()) << 32 ^ u64::from(since_epoch().subsec_nanos());
    let mixed = crate::random::SplitMix::new(apart).next();
    format!("{compact}-{:08x}", mixed >> 32)
}

/// A seed that differs from run to run.
pub fn seed_from_clock() -> u64 {
    // Small enough to be read over a telephone.
    crate::random::SplitMix::new(since_epoch().as_nanos() as u64).below(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_days_again() {
        for days in (0..60_000).step_by(17) {
            let (year, month, day) = civil(days);
            let text = format!("{year:04}-{month:02}-{day:02}T01:02:03Z");
            assert_eq!(since_1970(&text).unwrap().as_secs(), days * 86_400 + 3723, "{text}");
        }
        assert_eq!(since_1970("yesterday"), None);
        assert_eq!(since_1970("1969-12-31T00:00:00Z"), None);
        let seconds = since_1970(&now()).unwrap().as_secs();
        assert!(since_epoch().as_secs() - seconds <= 1);
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_787), (2026, 11, 30));
    }
}
