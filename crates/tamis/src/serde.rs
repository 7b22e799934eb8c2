//! Filters of keys in serde's formats: as the bytes of their file, verified when they are read.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::any::Held;
use crate::keyed::Keyed;

/// The file's bytes; an error where they withhold the secret. A format of text, as JSON, writes
/// them as a list of numbers; a binary one keeps them as they are.
impl<F: Held> Serialize for Keyed<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.hashing().seed().is_none() && !self.hashing().is_in_files() {
            let why = "the filter's secret is withheld from its file, so nobody could read it back";
            return Err(serde::ser::Error::custom(why));
        }
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de, F: Held> Deserialize<'de> for Keyed<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keyed<F>, D::Error> {
        let bytes = deserializer.deserialize_byte_buf(FileBytes)?;
        Keyed::open(bytes).map_err(D::Error::custom)
    }
}

/// Takes bytes in whatever form a format has them.
struct FileBytes;

impl<'de> Visitor<'de> for FileBytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a filter's file")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::{AnyFilter, Config, Keyed};

    #[test]
    fn a_filter_survives_a_format_of_text_and_damage_is_refused() {
        let config: Config = "cuckoo:capacity=100".parse().unwrap();
        let filter: Keyed<AnyFilter> = Keyed::build(&config, ["alice", "bob"]).unwrap();
        let text = serde_json::to_string(&filter).unwrap();
        let again: Keyed<AnyFilter> = serde_json::from_str(&text).unwrap();
        assert!(again.contains("alice") && again.contains("bob"));
        assert_eq!(again.to_bytes(), filter.to_bytes());
        let damaged = text.replacen("137", "138", 1);
        let error = serde_json::from_str::<Keyed<AnyFilter>>(&damaged).unwrap_err();
        assert!(error.to_string().contains("filter"), "{error}");
    }
}
