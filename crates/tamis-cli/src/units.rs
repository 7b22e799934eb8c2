//! Numbers as people write them: 1000000, 1e6, 10M, 64MiB.

/// A number of keys: a whole number, 1e6, or with k, M, G or T for thousands.
pub(crate) fn keys(text: &str) -> Result<u64, String> {
    let form = "expected a number of keys, such as 1000000, 1e6 or 10M";
    scaled(text, &["", "k", "M", "G", "T"], 1000.0).ok_or_else(|| form.to_string())
}

/// As [`keys`], and one at least.
pub(crate) fn some_keys(text: &str) -> Result<u64, String> {
    match keys(text)? {
        0 => Err("expected one at least".to_string()),
        number => Ok(number),
    }
}

/// A number of bytes: a whole number, or with K, M, G or T (and iB or B) for powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let form = "expected a number of bytes, such as 65536, 64M or 2GiB";
    let short = text.strip_suffix("iB").or(text.strip_suffix('B'));
    let short = short.unwrap_or(text);
    scaled(short, &["", "K", "M", "G", "T"], 1024.0).ok_or_else(|| form.to_string())
}

/// A share, from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|p| (0.0..=1.0).contains(p));
    share.ok_or_else(|| "expected a number from 0 to 1".to_string())
}

fn scaled(text: &str, units: &[&str], step: f64) -> Option<u64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = &text[number.len()..];
    let power = units.iter().position(|u| u.eq_ignore_ascii_case(unit))?;
    let value = number.parse::<f64>().ok()? * step.powi(power as i32);
    (value >= 0.0 && value < 2f64.powi(64)).then_some(value.round() as u64)
}

/// A number of bytes for people.
pub(crate) fn show_bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (bytes.max(1.0).log2() / 10.0).floor() as usize;
    let power = power.min(units.len() - 1);
    let value = bytes / 1024f64.powi(power as i32);
    let decimals = if power == 0 { 0 } else { 1 };
    format!("{value:.decimals$} {}", units[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, value) in [
            ("0", 0),
            ("1000", 1000),
            ("1e6", 1_000_000),
            ("2.5M", 2_500_000),
        ] {
            assert_eq!(keys(text), Ok(value));
        }
        assert_eq!(keys(&u64::MAX.to_string()), Ok(u64::MAX));
        for (text, value) in [
            ("4096", 4096),
            ("64K", 65_536),
            ("1.5MiB", 1_572_864),
            ("2GB", 2 << 30),
        ] {
            assert_eq!(bytes(text), Ok(value));
        }
        for bad in ["", "-1", "M", "1X", "NaN", "inf", "1e30", "ten", "1 M!"] {
            assert!(keys(bad).is_err() && bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(share("0.5"), Ok(0.5));
        assert!(share("1.5").is_err() && share("NaN").is_err());
    }

    #[test]
    fn bytes_read_well_at_every_size() {
        let shown = [0.0, 1023.0, 1024.0, 1.5 * 1024.0 * 1024.0, 1e30].map(show_bytes);
        assert_eq!(shown[..4], ["0 B", "1023 B", "1.0 KiB", "1.5 MiB"]);
        assert!(shown[4].ends_with("EiB"));
    }
}
