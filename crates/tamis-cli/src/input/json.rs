//! The value at a path of a JSON object per line.
//!
//! A path is names with dots between, `user.id`, or a JSON pointer, `/user/id`, in which names
//! may hold dots; a number counts the elements of a list from 0. A string's text is the key; a
//! number, `true` and `false` are keys as they are written, so that `1` and `1.0` are two. There
//! is no key where the path leads nowhere, to `null`, a list or an object.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Keys;
use super::records::{Shape, content, ends, unmarked};
use crate::failure::Failure;

/// The names on the way to a value.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    names: Vec<String>,
    /// As it was given.
    text: String,
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Path, String> {
        let names = match text.strip_prefix('/') {
            _ if text.is_empty() => return Err("expected a path such as user.id".to_string()),
            Some(pointer) => pointer
                .split('/')
                .map(|name| name.replace("~1", "/").replace("~0", "~"))
                .collect(),
            None => text.split('.').map(str::to_string).collect(),
        };
        let text = text.to_string();
        Ok(Path { names, text })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// A JSON value per line.
pub(super) struct JsonLines {
    path: Path,
    end: u8,
}

impl JsonLines {
    pub(super) fn new(path: Path, end: u8) -> JsonLines {
        JsonLines { path, end }
    }
}

impl Shape for JsonLines {
    fn end(&self) -> u8 {
        self.end
    }

    fn take(&mut self, text: &[u8], last: bool, keys: &mut Keys) -> Result<usize, Failure> {
        let mut start = 0;
        for end in ends(text, self.end, last) {
            let line = unmarked(content(&text[start..end], self.end));
            if !line.trim_ascii().is_empty() {
                match value(line, &self.path) {
                    Ok(Some(key)) => keys.push(key.as_bytes())?,
                    Ok(None) => keys.missing("value at that path"),
                    Err(e) => keys.malformed(|| format!("this is not JSON: {e}"))?,
                }
            }
            keys.end_record(end);
            start = end;
        }
        Ok(start)
    }
}

/// The key at a path. The whole line is checked to be JSON, but for the bytes of strings that are
/// passed over, which need not be UTF-8.
fn value<'a>(line: &'a [u8], path: &Path) -> Result<Option<Cow<'a, str>>, serde_json::Error> {
    let mut input = serde_json::Deserializer::from_slice(line);
    let found = At(&path.names).deserialize(&mut input)?;
    input.end()?;
    let Some(found) = found.map(RawValue::get) else {
        return Ok(None);
    };
    match found.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Text<'_>>(found).map(|text| Some(text.0)),
        Some(b'{' | b'[' | b'n') | None => Ok(None),
        _ => Ok(Some(found.into())),
    }
}

/// A string, borrowed where no escape is in it.
struct Text<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Text<'de>, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(text.into()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(text.to_string().into()))
            }
        }
        input.deserialize_str(Borrow)
    }
}

/// What is at the end of these names. Everything else is passed over.
struct At<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        match self.0 {
            [] => serde::Deserialize::deserialize(input).map(Some),
            _ => input.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<Text<'de>>()? {
            if name.0 == self.0[0] {
                // Of a name that comes twice the last counts, as for most readers.
                found = map.next_value_seed(At(&self.0[1..]))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let wanted: Option<usize> = self.0[0].parse().ok();
        let mut found = None;
        for index in 0.. {
            if wanted == Some(index) {
                match list.next_element_seed(At(&self.0[1..]))? {
                    Some(value) => found = value,
                    None => break,
                }
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, line: &str) -> Option<String> {
        value(line.as_bytes(), &path.parse().unwrap())
            .unwrap()
            .map(Cow::into_owned)
    }

    #[test]
    fn a_path_leads_through_objects_and_lists() {
        let line =
            r#"{"a": 1, "user": {"id": "x7", "tags": ["p", 2.50, {"b": true}]}, "a.b/c": "odd"}"#;
        for (path, value) in [
            ("a", Some("1")),
            ("user.id", Some("x7")),
            ("/user/id", Some("x7")),
            ("user.tags.0", Some("p")),
            ("user.tags.1", Some("2.50")),
            ("user.tags.2.b", Some("true")),
            ("/a.b~1c", Some("odd")),
            ("user", None),
            ("user.tags", None),
            ("user.tags.9", None),
            ("user.id.x", None),
            ("a.b", None),
            ("none", None),
        ] {
            assert_eq!(at(path, line).as_deref(), value, "{path}");
        }
    }

    #[test]
    fn a_key_is_text_with_its_escapes_undone_or_a_number_as_it_is_written() {
        for (line, value) in [
            (r#"{"k":"a\"\u00e9\n"}"#, Some("a\"é\n")),
            (r#"{"\u006b":"é"}"#, Some("é")),
            (r#"{"k":-0.10e5}"#, Some("-0.10e5")),
            (
                r#"{"k":12345678901234567890123}"#,
                Some("12345678901234567890123"),
            ),
            (r#"{"k":false}"#, Some("false")),
            (r#"{"k":null}"#, None),
            (r#"{"k":1,"k":2}"#, Some("2")),
            ("[1]", None),
            ("7", None),
        ] {
            assert_eq!(at("k", line).as_deref(), value, "{line}");
        }
        let path = "k".parse().unwrap();
        for bad in [
            &b"{"[..],
            b"{}{}",
            b"{\"k\":\"\xFF\"}",
            b"nul",
            b"{\"k\":01}",
        ] {
            assert!(
                value(bad, &path).is_err(),
                "{}",
                String::from_utf8_lossy(bad)
            );
        }
    }
}
