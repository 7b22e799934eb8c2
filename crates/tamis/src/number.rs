//! Numbers as people write them: the one parser of the library's texts, the program and the
//! bindings.
//!
//! | what | forms |
//! |---|---|
//! | any | `1000`, `1_000_000`, `1e6`, `2.5`, `2^20` |
//! | a [`count`] | `10k`, `10M`, `2.5G`, `1T`: thousands |
//! | [`bytes`] | `64K`, `64M`, `2GiB`, `1TB`: powers of 1024 |
//! | a [`share`] | `1%`, `1/256`, `2^-8` |

/// A whole number, `10M` or `1e6`; `None` for anything else, for a fraction, and from 2⁶⁴ on.
///
/// ```
/// use tamis::number::count;
///
/// assert_eq!(count("10M"), Some(10_000_000));
/// assert_eq!(count("1_000"), Some(1000));
/// assert_eq!(count("1.5"), None);
/// ```
pub fn count(text: &str) -> Option<u64> {
    whole(text.trim(), &["", "k", "M", "G", "T"], 1000.0, false)
}

/// A number of bytes, `64M` or `2GiB`. Of `1.1K` the part of a byte is left out.
///
/// ```
/// assert_eq!(tamis::number::bytes("64M"), Some(64 << 20));
/// assert_eq!(tamis::number::bytes("1.1K"), Some(1126));
/// ```
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let short = text.strip_suffix("iB").or(text.strip_suffix('B'));
    let text = short.unwrap_or(text).trim_end();
    whole(text, &["", "K", "M", "G", "T"], 1024.0, true)
}

/// A rate or another share of a whole, `0.01`, `1%`, `1/256` or `2^-8`. Whether it lies between 0
/// and 1 is the caller's to ask.
///
/// ```
/// use tamis::number::share;
///
/// assert_eq!(share("1%"), Some(0.01));
/// assert_eq!(share("1/256"), share("2^-8"));
/// ```
pub fn share(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some(percent) = text.strip_suffix('%') {
        return Some(real(percent.trim_end())? / 100.0);
    }
    match text.split_once('/') {
        Some((part, all)) => Some(real(part.trim_end())? / real(all.trim_start())?),
        None => real(text),
    }
}

/// A number with a unit: so many powers of `step`. With `cut` one that has a unit need not be
/// whole, and loses its fraction.
fn whole(text: &str, units: &[&str], step: f64, cut: bool) -> Option<u64> {
    if let Some(Ok(exact)) = digits(text).map(|digits| digits.parse()) {
        return Some(exact);
    }
    let number = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = &text[number.len()..];
    let power = units.iter().position(|u| u.eq_ignore_ascii_case(unit))?;
    let value = real(number.trim_end())? * step.powi(power as i32);
    if !(value >= 0.0 && value < 2f64.powi(64)) {
        return None;
    }
    // A decimal fraction times its unit, such as 2.01M, is whole but for rounding.
    let nearest = value.round();
    if (value - nearest).abs() <= 4.0 * f64::EPSILON * value {
        return Some(nearest as u64);
    }
    (cut && power > 0 && value >= 1.0).then_some(value as u64)
}

/// A number, or a power of one.
fn real(text: &str) -> Option<f64> {
    match text.split_once('^') {
        Some((base, power)) => Some(plain(base)?.powf(plain(power)?)),
        None => plain(text),
    }
}

/// A decimal number, maybe with an exponent. Words such as `inf` are none.
fn plain(text: &str) -> Option<f64> {
    let text = digits(text)?;
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    text.chars().all(numeric).then(|| text.parse().ok())?
}

/// The text without the `_` that stand between digits; `None` where one stands elsewhere.
fn digits(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |i: Option<usize>| i.and_then(|i| bytes.get(i)).is_some_and(u8::is_ascii_digit);
    let mut places = (0..bytes.len()).filter(|&i| bytes[i] == b'_');
    places
        .all(|i| is_digit(i.checked_sub(1)) && is_digit(Some(i + 1)))
        .then(|| text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        for (text, value) in [
            ("0", 0),
            ("1000", 1000),
            ("+7", 7),
            ("1_000_000", 1_000_000),
            ("1e6", 1_000_000),
            ("1E6", 1_000_000),
            ("2.5M", 2_500_000),
            ("2.01M", 2_010_000),
            ("1.001k", 1001),
            ("0.07G", 70_000_000),
            ("8.2e1", 82),
            ("10 k", 10_000),
            ("1_000k", 1_000_000),
            ("2^20", 1 << 20),
            (" 5 ", 5),
        ] {
            assert_eq!(count(text), Some(value), "{text}");
        }
        let most = u64::MAX.to_string();
        assert_eq!(
            (count(&most), bytes(&most)),
            (Some(u64::MAX), Some(u64::MAX))
        );
        for text in [most.clone() + "B", most + " iB"] {
            assert_eq!(bytes(&text), Some(u64::MAX), "{text}");
        }
        for (text, value) in [
            ("4096", 4096),
            ("9007199254740993 B", (1 << 53) + 1),
            ("64K", 65_536),
            ("1.5MiB", 1_572_864),
            ("2GB", 2 << 30),
            ("2.01M", 2_107_637),
            ("0.1GiB", 107_374_182),
        ] {
            assert_eq!(bytes(text), Some(value), "{text}");
        }
    }

    #[test]
    fn shares_are_read_as_people_write_them() {
        for (text, value) in [
            ("0.01", 0.01),
            ("1e-6", 1e-6),
            ("1%", 0.01),
            ("0.1 %", 0.001),
            ("1/256", 0.00390625),
            ("3 / 4", 0.75),
            ("2^-8", 0.00390625),
            ("2^-8%", 0.0000390625),
            ("-1", -1.0),
            ("5e-324", 5e-324),
        ] {
            assert_eq!(share(text), Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        let bad = [
            "", " ", "M", "1X", "NaN", "nan", "inf", "infinity", "ten", "1 M!", "_1", "1_", "1__0",
            "0x10", "1e", "--1", "1^", "^2", "1/", "/2", "%", "1%%", "½", "1,5",
        ];
        for text in bad {
            assert_eq!(
                (count(text), bytes(text), share(text)),
                (None, None, None),
                "{text}"
            );
        }
        for text in [
            "-1",
            "1.5",
            "1e30",
            "1e-1",
            "18446744073709551616",
            "1%",
            "1/2",
            "0.0001k",
        ] {
            assert_eq!((count(text), bytes(text)), (None, None), "{text}");
        }
        assert_eq!((count("1.2345k"), count("2.0000001M")), (None, None));
        assert_eq!(share("1/0"), Some(f64::INFINITY));
    }
}
