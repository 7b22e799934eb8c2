//! Where the secret comes from, for filters whose keys strangers choose.

use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use tamis::Hashing;

use crate::failure::Failure;
use crate::input::from_hex;

const BYTES: usize = 16;
/// No file of a secret is longer.
const LONGEST: u64 = 1024;
const FORM: &str = "a secret is 32 hexadecimal digits, or a file of 16 bytes";

/// The option of every verb that opens filter files.
#[derive(clap::Args)]
pub(crate) struct SecretArgs {
    /// The filter's secret, where it is not in its file: `file:PATH` or `env:NAME`
    #[arg(long, value_name = "SOURCE")]
    secret: Option<Secret>,
}

impl SecretArgs {
    /// The hashing under the secret, if one is given. A filter that exists has its secret, so
    /// none can be drawn.
    pub(crate) fn known(&self) -> Result<Option<Hashing>, Failure> {
        match &self.secret {
            Some(Secret::Random) => {
                let why = "a filter that exists has its secret; give file:PATH or env:NAME";
                Err(Failure::usage("--secret random", why))
            }
            secret => secret.as_ref().map(Secret::hashing).transpose(),
        }
    }
}

/// Where to find a secret of 128 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    /// Drawn from the system, and kept in the filter's file.
    Random,
    /// In a file; kept out of the filter's file.
    File(PathBuf),
    /// In a variable of the environment; kept out of the filter's file.
    Env(String),
    /// None of these, and perhaps the secret itself, which must not be shown.
    Unclear,
}

impl FromStr for Secret {
    /// An error would be told with the text.
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Secret, Infallible> {
        Ok(match text.split_once(':') {
            None if text == "random" => Secret::Random,
            Some(("file", path)) if !path.is_empty() => Secret::File(path.into()),
            Some(("env", name)) if !name.is_empty() => Secret::Env(name.to_string()),
            _ => Secret::Unclear,
        })
    }
}

impl Secret {
    /// The hashing under the secret.
    pub(crate) fn hashing(&self) -> Result<Hashing, Failure> {
        let key = match self {
            Secret::Random => return random().map(Hashing::secret),
            Secret::Unclear => {
                let why = "expected file:PATH, env:NAME or random; a secret on the command line is \
                           seen by others";
                return Err(Failure::usage("--secret", why));
            }
            Secret::File(path) => {
                // A secret has an end, though not every file has one.
                let mut bytes = Vec::new();
                File::open(path)
                    .and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
                    .map_err(|e| Failure::io(path.display(), e))?;
                key(&bytes).ok_or_else(|| Failure::usage(path.display(), FORM))?
            }
            Secret::Env(name) => {
                let text = std::env::var_os(name)
                    .ok_or_else(|| Failure::usage(format!("--secret env:{name}"), "not set"))?;
                key(text.as_encoded_bytes())
                    .ok_or_else(|| Failure::usage(format!("--secret env:{name}"), FORM))?
            }
        };
        Ok(Hashing::secret(key).withheld())
    }
}

/// Never anything but what the system gives.
pub(crate) fn random() -> Result<[u8; BYTES], Failure> {
    let mut key = [0; BYTES];
    getrandom::fill(&mut key).map_err(|e| Failure::io("the system's random numbers", e))?;
    Ok(key)
}

fn key(bytes: &[u8]) -> Option<[u8; BYTES]> {
    if let Ok(key) = bytes.try_into() {
        return Some(key);
    }
    let mut key = Vec::new();
    let text = bytes.trim_ascii();
    (from_hex(text, &mut key)).then(|| key.try_into().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_sixteen_bytes_or_their_digits() {
        let bytes = *b"0123456789abcdef";
        let digits = b"30313233343536373839616263646566";
        assert_eq!(key(&bytes), Some(bytes));
        assert_eq!(key(digits), Some(bytes));
        assert_eq!(key(&[digits, &b"\r\n"[..]].concat()), Some(bytes));
        for bad in [
            &b""[..],
            b"short",
            &digits[1..],
            &[digits, &b"00"[..]].concat(),
        ] {
            assert_eq!(key(bad), None);
        }
    }

    #[test]
    fn a_drawn_secret_is_never_drawn_again() {
        assert_ne!(random().unwrap(), random().unwrap());
    }

    #[test]
    fn a_source_is_named() {
        assert_eq!("env:X".parse(), Ok(Secret::Env("X".into())));
        assert_eq!("file:a:b".parse(), Ok(Secret::File("a:b".into())));
        assert_eq!("random".parse(), Ok(Secret::Random));
        for bad in ["", "env:", "file:", "0123", "system"] {
            assert_eq!(bad.parse(), Ok(Secret::Unclear), "{bad}");
        }
    }
}
