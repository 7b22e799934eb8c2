//! `texts`: numbers and configurations as people write them.

use tamis::number::{bytes, count, share};
use tamis::{Config, Filter, KINDS};

/// Any text is refused, or means the same once it is written anew.
pub fn texts(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    numbers(text);
    if let Ok(config) = text.parse::<Config>() {
        configuration(&config);
    }
}

fn numbers(text: &str) {
    if let Some(number) = count(text) {
        assert_eq!(count(&number.to_string()), Some(number));
        // Without a unit it is a number like any other.
        if text.ends_with(|last: char| last.is_ascii_digit()) {
            let real = share(text).expect("a whole number is a number");
            assert!((real - number as f64).abs() <= 1e-9 * real, "{real}");
        }
    }
    if let Some(number) = bytes(text) {
        assert_eq!(bytes(&number.to_string()), Some(number));
        assert_eq!(bytes(&format!("{number} B")), Some(number));
    }
    if let Some(real) = share(text).filter(|real| real.is_finite()) {
        assert_eq!(share(&real.to_string()), Some(real));
        assert_eq!(share(&format!("{real:e}")), Some(real));
    }
}

/// What a builder refuses without being asked to take memory, or makes a filter of.
fn configuration(config: &Config) {
    const KEYS: std::ops::Range<u64> = 0..20;
    let hash = |key: u64| (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    if config.fpr.is_finite() {
        let again: Config = config.to_string().parse().expect("it was written so");
        assert_eq!(again, *config);
    }
    let named = KINDS
        .iter()
        .find(|kind| Some(kind.name) == config.kind.as_deref());
    // A million keys at a rate of 10⁻¹⁹ need megabytes.
    if let Some(kind) = named.filter(|_| config.capacity <= 1000)
        && let Ok(filter) = kind.build(config, &mut KEYS.map(hash).collect::<Vec<_>>())
    {
        assert!(config.fpr.is_finite(), "a filter of rate {}", config.fpr);
        let forgets = kind.can.window && config.capacity < KEYS.end;
        let found = KEYS.filter(|&key| filter.contains(hash(key))).count();
        assert!(forgets || found as u64 == KEYS.end, "a member is denied");
    }
}
