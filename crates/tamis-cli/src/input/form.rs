//! What a filter remembers of its keys, and what follows for those that it is asked with.
//!
//! `build` writes down how keys are written ([`InputArgs::form`]); whoever reads keys for that
//! filter later reads them so ([`AskedArgs::of`]).

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::{Value, json};
use tamis::{AnyFilter, KeyForm, Keyed};

use super::{Field, InputArgs, Source, csv};
use crate::failure::{self, Failure};

/// How keys lie in the input of a verb that has a filter, which may know itself.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct AskedArgs {
    #[command(flatten)]
    pub(crate) given: InputArgs,

    /// Read keys as these options say, whatever the filter remembers of its own
    #[arg(long, help_heading = "Where the keys are")]
    as_given: bool,
}

impl AskedArgs {
    /// How keys are read for the filter NAME: as it remembers them, where no option says how, and
    /// that is told in a line unless `quiet`. An option that contradicts it is refused.
    pub(crate) fn of(
        &self,
        name: &str,
        filter: &Keyed<AnyFilter>,
        quiet: bool,
    ) -> Result<InputArgs, Failure> {
        let mut input = self.given.clone();
        if self.as_given {
            return Ok(input);
        }
        if let Some(field) = filter.key_field() {
            let given = input.place().filter(|given| given != field && !quiet);
            if let Some(given) = given {
                failure::say(&format!(
                    "{name}: it was built from `{field}`; keys are read from `{given}`"
                ));
            }
            input.own = Some(OwnField {
                filter: name.to_string(),
                field: field.to_string(),
                said: Arc::new([quiet, quiet].map(AtomicBool::new)),
            });
        }
        let (given, own) = (input.form(), filter.key_form());
        let remark = match (given, own) {
            _ if given == own => return Ok(input),
            (KeyForm::Plain, _) => {
                input.set(own)?;
                format!("keys are read with {}, as it was built", option(own))
            }
            (KeyForm::Lowercase, KeyForm::Plain) => {
                let why = "its keys are in the case that they were written in, which -i cannot undo; build it with -i \
                           (or say --as-given, if they were in small letters)";
                return Err(Failure::usage(name, why));
            }
            (_, KeyForm::Plain) => {
                let option = option(given);
                format!(
                    "it was not built with {option}, or does not say so; keys are read with {option}"
                )
            }
            _ => {
                let (given, own) = (option(given), option(own));
                let why = format!(
                    "it was built with {own}, and {given} is asked for; leave {given} out (or say --as-given)"
                );
                return Err(Failure::usage(name, why));
            }
        };
        if !quiet {
            failure::say(&format!("{name}: {remark}"));
        }
        Ok(input)
    }
}

/// The field that a filter remembers: where its keys lay in their records.
#[derive(Clone, Debug)]
pub(crate) struct OwnField {
    /// What the filter is called in messages.
    filter: String,
    field: String,
    /// Whether it has been told that there is none, and that the field is read; of all clones.
    said: Arc<[AtomicBool; 2]>,
}

impl OwnField {
    /// Tells once that the field is read, or that it is not there.
    fn say(&self, is_there: bool, text: impl FnOnce() -> String) {
        if !self.said[usize::from(is_there)].swap(true, Relaxed) {
            failure::say(&text());
        }
    }

    /// Which field of CSV records it is, of which this is the first, and what stands between them.
    /// A name stands in the header. A number says nothing of the records, so their file's name
    /// must.
    fn of_records(&self, first: &[u8], by_name: Option<u8>) -> Option<(Field, u8)> {
        let Ok(field) = self.field.parse::<Field>();
        let is_there = |&delimiter: &u8| {
            let fields = csv::fields(first, delimiter);
            match &field {
                Field::Name(name) => {
                    (by_name.is_some() || fields.len() > 1) && fields.contains(name)
                }
                Field::Number(number) => by_name.is_some() && fields.len() >= *number.max(&2),
            }
        };
        let delimiter = by_name.into_iter().chain(*b",\t;|").find(is_there)?;
        Some((field, delimiter))
    }
}

impl InputArgs {
    /// Where in its record a key is said to be, in the words of the option.
    pub(crate) fn place(&self) -> Option<String> {
        let field = self.field.as_ref().map(Field::to_string);
        let path = || self.json_key.as_ref().map(ToString::to_string);
        field.or_else(path).or_else(|| self.column.clone())
    }

    /// The same for a source that has the field which the filter remembers, where no option says
    /// where keys are. A plain list has none, and stays one.
    pub(super) fn remembered(&self, source: &mut Source) -> Result<Option<InputArgs>, Failure> {
        let own = self.own.as_ref().filter(|_| self.place().is_none());
        let Some(own) = own.filter(|_| !self.null && !self.many_keys()) else {
            return Ok(None);
        };
        let (name, by_name) = (source.name.clone(), source.delimiter());
        let first = source.first_line()?;
        let mut input = self.clone();
        let option = if first.starts_with(b"PAR1") && !self.text {
            input.column = Some(own.field.clone());
            "--column"
        } else if first.trim_ascii_start().starts_with(b"{\"")
            && let Ok(path) = own.field.parse()
        {
            input.json_key = Some(path);
            "--json-key"
        } else if let Some((field, delimiter)) = own.of_records(first, by_name) {
            (input.field, input.delimiter) = (Some(field), Some(delimiter));
            "-f"
        } else {
            if by_name.is_some_and(|delimiter| first.contains(&delimiter)) {
                own.say(false, || {
                    format!(
                        "{name}: no field is `{}`, from which {} was built; its keys are whole lines (-f names another field)",
                        own.field, own.filter
                    )
                });
            }
            return Ok(None);
        };
        own.say(true, || {
            format!(
                "{}: keys are read with {option} {}, as it was built",
                own.filter, own.field
            )
        });
        Ok(Some(input))
    }

    /// How keys are read, in JSON.
    pub(crate) fn in_json(&self) -> Value {
        let own = || Some(self.own.as_ref()?.field.clone());
        in_json(self.form(), self.place().or_else(own).as_deref())
    }

    /// What a filter of these keys remembers.
    pub(crate) fn form(&self) -> KeyForm {
        let kmer = self.kmer.and_then(NonZeroU16::new);
        match (self.ignore_case, self.hex, self.int, kmer) {
            (true, ..) => KeyForm::Lowercase,
            (_, true, ..) => KeyForm::Hex,
            (_, _, true, _) => KeyForm::Int,
            (.., Some(k)) => KeyForm::Kmer(k),
            _ => KeyForm::Plain,
        }
    }

    /// The same, where each record has one k-mer.
    pub(crate) fn of_single_kmers(self) -> InputArgs {
        InputArgs {
            one_kmer: true,
            ..self
        }
    }

    fn set(&mut self, form: KeyForm) -> Result<(), Failure> {
        match form {
            KeyForm::Plain => {}
            KeyForm::Lowercase => self.ignore_case = true,
            KeyForm::Hex => self.hex = true,
            KeyForm::Int => self.int = true,
            KeyForm::Kmer(k) => self.kmer = Some(k.get()),
            _ => {
                let why = format!("this tamis does not read {form}; use a newer one");
                return Err(Failure::usage("the filter's keys", why));
            }
        }
        Ok(())
    }
}

/// The option by which keys are read so.
fn option(form: KeyForm) -> String {
    match form {
        KeyForm::Lowercase => "-i".to_string(),
        KeyForm::Hex => "--hex".to_string(),
        KeyForm::Int => "--int".to_string(),
        KeyForm::Kmer(k) => format!("--kmer {k}"),
        _ => "no option".to_string(),
    }
}

/// A form for people, with the option that makes it, and the field.
pub(crate) fn in_words(form: KeyForm, field: Option<&str>) -> String {
    let form = match form {
        KeyForm::Plain => form.to_string(),
        _ => format!("{form} ({})", option(form)),
    };
    match field {
        Some(field) => format!("{form}, from `{field}`"),
        None => form,
    }
}

/// A form and a field in JSON.
pub(crate) fn in_json(form: KeyForm, field: Option<&str>) -> Value {
    let (name, k) = form.name();
    json!({ "name": name, "k": k, "field": field })
}

/// Text in small letters: each letter by itself, as Unicode has it. Bytes that are no UTF-8 stay
/// as they are.
pub(super) fn lowercase(text: &[u8], out: &mut Vec<u8>) {
    out.clear();
    if text.is_ascii() {
        out.extend(text.iter().map(u8::to_ascii_lowercase));
        return;
    }
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars().flat_map(char::to_lowercase) {
            out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        out.extend_from_slice(chunk.invalid());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_letters_are_those_of_unicode_and_other_bytes_stay() {
        for (text, small) in [
            (&b"MiXed 09-_"[..], &b"mixed 09-_"[..]),
            ("ÄÖÜ ẞ É".as_bytes(), "äöü ß é".as_bytes()),
            // Each letter by itself: a Σ at the end of a word is as any other.
            ("ΣΑΣ".as_bytes(), "σασ".as_bytes()),
            ("İ".as_bytes(), "i\u{307}".as_bytes()),
            (b"A\xFFB\xC3", b"a\xFFb\xC3"),
            ("Z\u{C9}".as_bytes(), "z\u{E9}".as_bytes()),
            (b"", b""),
        ] {
            let mut out = b"before".to_vec();
            lowercase(text, &mut out);
            assert_eq!(out, small, "{}", String::from_utf8_lossy(text));
        }
    }
}
