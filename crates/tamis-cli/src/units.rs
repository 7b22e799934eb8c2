//! Numbers of arguments, as people write them, and how they are told.

use std::ops::RangeInclusive;

use tamis::{BuildError, BuildErrorKind, number};

/// A number of keys: a whole number, 1e6, or with k, M, G or T for thousands.
pub(crate) fn keys(text: &str) -> Result<u64, String> {
    let form = "expected a number of keys, such as 1000000, 1e6 or 10M";
    number::count(text).ok_or_else(|| form.to_string())
}

/// As [`keys`], and one at least.
pub(crate) fn some_keys(text: &str) -> Result<u64, String> {
    match keys(text)? {
        0 => Err("expected one at least".to_string()),
        number => Ok(number),
    }
}

/// A whole number within these bounds.
pub(crate) fn within<T: TryFrom<u64>>(
    bounds: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = number::count(text).filter(|number| bounds.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        let (least, most) = (bounds.start(), bounds.end());
        number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

/// A number of bytes: a whole number, or with K, M, G or T (and iB or B) for powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let form = "expected a number of bytes, such as 65536, 64M or 2GiB";
    number::bytes(text).ok_or_else(|| form.to_string())
}

/// A share, from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = number::share(text).filter(|p| (0.0..=1.0).contains(p));
    share.ok_or_else(|| "expected a number from 0 to 1, such as 0.5, 50% or 1/2".to_string())
}

/// A number that is no share of a whole.
pub(crate) fn ratio(text: &str) -> Result<f64, String> {
    number::share(text).ok_or_else(|| "expected a number, such as 16, 2.5 or 1e3".to_string())
}

/// A false-positive rate, above 0 and below 1.
pub(crate) fn fpr(text: &str) -> Result<f64, String> {
    match number::share(text) {
        Some(fpr) if fpr > 0.0 && fpr < 1.0 => Ok(fpr),
        Some(fpr) => Err(BuildError::from(BuildErrorKind::Fpr(fpr)).to_string()),
        None => Err("expected a rate such as 0.01, 1%, 1/256 or 2^-8".to_string()),
    }
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
    fn what_does_not_fit_is_told_with_an_example() {
        assert_eq!(keys("10M"), Ok(10_000_000));
        assert!(keys("ten").unwrap_err().contains("1e6"));
        assert!(bytes("ten").unwrap_err().contains("64M"));
        assert!(some_keys("0").is_err());
        let few = within::<u16>(1..=u16::MAX.into());
        assert_eq!((few("1e3"), few("2^4")), (Ok(1000), Ok(16)));
        for bad in ["0", "65536", "1.5", "few"] {
            assert!(few(bad).unwrap_err().contains("from 1 to 65535"), "{bad}");
        }
        assert_eq!((ratio("1e3"), ratio("2.5")), (Ok(1000.0), Ok(2.5)));
        assert!(ratio("much").unwrap_err().contains("2.5"));
        assert_eq!((share("50%"), fpr("1/256")), (Ok(0.5), Ok(1.0 / 256.0)));
        for bad in ["150%", "-0.1", "few"] {
            assert!(share(bad).is_err() && fpr(bad).is_err(), "{bad}");
        }
        assert!(fpr("0").is_err() && fpr("1").is_err());
    }

    #[test]
    fn bytes_read_well_at_every_size() {
        let shown = [0.0, 1023.0, 1024.0, 1.5 * 1024.0 * 1024.0, 1e30].map(show_bytes);
        assert_eq!(shown[..4], ["0 B", "1023 B", "1.0 KiB", "1.5 MiB"]);
        assert!(shown[4].ends_with("EiB"));
    }
}
