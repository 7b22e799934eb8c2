//! From records of a key and a value to a map.

use tamis::{AnyFilter, Config, Encoded, Hashed, Hashing, Keyed};

use crate::failure::Failure;
use crate::input::{Field, Files, InputArgs, Purpose};
use crate::progress::Progress;
use crate::target;

/// The kind that suits where none is named, and why.
pub(crate) const DEFAULT: (&str, &str) = (
    "bloomier",
    "it is the smallest map; the values of a `perfect` can be changed",
);

/// Reads all pairs, builds the map of them, and makes sure that it gives every value.
pub(crate) fn map(
    files: &Files<'_>,
    input: &InputArgs,
    value: &Field,
    config: &Config,
    hashing: Hashing,
    progress: &Progress,
    target: &str,
) -> Result<Encoded<AnyFilter>, Failure> {
    let pairs = read(files, input, value, hashing)?;
    let config = progress.building(config);
    let hashed = pairs.iter().map(|&(hash, value)| (Hashed(hash), value));
    let map = Keyed::<AnyFilter>::from_pairs_with(&config, hashing, hashed)
        .map_err(|e| Failure::build(target, &e))?;
    progress.stage("verifying");
    let map = map.with_key_form(input.form());
    let map = map.with_key_field(input.place().as_deref());
    let map = target::encoded(map, target)?;
    let gives = |&(hash, value): &(u64, u64)| map.get(&Hashed(hash)) == Ok(Some(value));
    match pairs.iter().all(gives) {
        true => Ok(map),
        false => Err(Failure::verification(target)),
    }
}

/// All pairs of hash and value, in their order.
fn read(
    files: &Files<'_>,
    input: &InputArgs,
    value: &Field,
    hashing: Hashing,
) -> Result<Vec<(u64, u64)>, Failure> {
    let mut pairs = Vec::new();
    for number in 0..files.number() {
        let source = files.open(number)?;
        let (name, mut column) = (source.name.clone(), input.column_of(value));
        let mut reader = input
            .with_header_for(value)
            .read(source, Purpose::keys(hashing))?;
        let mut records = 0u64;
        while let Some(batch) = reader.next_batch()? {
            records += u64::from(!batch.header().is_empty());
            column.read_header(batch.header(), &name)?;
            for (record, keys) in batch.records() {
                records += 1;
                let text = column.of(record).unwrap_or_default();
                let Some(&hash) = batch.hashes.get(keys.start).filter(|_| !keys.is_empty()) else {
                    continue;
                };
                let text = String::from_utf8_lossy(text);
                let value = text.trim().parse().map_err(|_| {
                    let shown: String = text.chars().take(80).collect();
                    let why = format!(
                        "record {records}: its value `{shown}` is no whole number from 0 to 2^64 - 1"
                    );
                    Failure::io(&name, why)
                })?;
                pairs.push((hash, value));
            }
        }
        reader.warn();
    }
    Ok(pairs)
}
