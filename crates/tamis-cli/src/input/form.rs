//! What a filter remembers of its keys, and what follows for those that it is asked with.
//!
//! `build` writes down how keys are written ([`InputArgs::form`]); whoever reads keys for that
//! filter later reads them so ([`AskedArgs::of`]).

use std::num::NonZeroU16;

use serde_json::{Value, json};
use tamis::KeyForm;

use super::InputArgs;
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
    pub(crate) fn of(&self, name: &str, own: KeyForm, quiet: bool) -> Result<InputArgs, Failure> {
        let mut input = self.given.clone();
        if self.as_given {
            return Ok(input);
        }
        let given = input.form();
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

impl InputArgs {
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

/// A form for people, with the option that makes it.
pub(crate) fn in_words(form: KeyForm) -> String {
    match form {
        KeyForm::Plain => form.to_string(),
        _ => format!("{form} ({})", option(form)),
    }
}

/// A form in JSON.
pub(crate) fn in_json(form: KeyForm) -> Value {
    let (name, k) = form.name();
    json!({ "name": name, "k": k })
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
