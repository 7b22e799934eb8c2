//! What stops the program: one line on standard error, and an exit code.

use crate::ExitCode;
use std::fmt::Display;
use std::io::{self, Write};

use tamis::{
    BuildError, BuildErrorKind, DecodeError, DecodeErrorKind, Full, FullKind, MergeError,
    MergeErrorKind,
};

const USAGE: u8 = 2;
const DAMAGED: u8 = 3;
pub(crate) const IO: u8 = 4;

/// Why a verb stopped early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody reads the output any more. That is the reader's choice, so nothing is said.
    Closed,
    /// Something to tell the user.
    Error {
        /// The exit code.
        code: u8,
        /// `<what>: <why>`.
        message: String,
    },
}

impl Failure {
    fn new(code: u8, what: impl Display, why: impl Display) -> Failure {
        let message = format!("{what}: {why}");
        Failure::Error { code, message }
    }

    /// An argument is wrong, or does not go with another.
    pub(crate) fn usage(what: impl Display, why: impl Display) -> Failure {
        Failure::new(USAGE, what, why)
    }

    /// Reading or writing `what` failed.
    pub(crate) fn io(what: impl Display, why: impl Display) -> Failure {
        Failure::new(IO, what, why)
    }

    /// The filter in `what` cannot be opened.
    pub(crate) fn decode(what: impl Display, why: &DecodeError) -> Failure {
        // What is called by its name here, which the library may not know.
        let why = why.kind();
        match why {
            DecodeErrorKind::Io(e) => Failure::io(what, e),
            DecodeErrorKind::Memory { .. } => Failure::io(what, why),
            DecodeErrorKind::SecretNeeded | DecodeErrorKind::WrongSecret => {
                Failure::usage(what, format!("{why} (--secret file:PATH or env:NAME)"))
            }
            _ => Failure::new(DAMAGED, what, why),
        }
    }

    /// The filter for `what` cannot be built.
    pub(crate) fn build(what: impl Display, why: &BuildError) -> Failure {
        match why.kind() {
            BuildErrorKind::Memory { .. } => Failure::io(what, why),
            BuildErrorKind::Disk { .. } => Failure::io(what, format!("{why} (--temp-dir)")),
            _ => Failure::usage(what, why),
        }
    }

    /// A filter takes no more keys.
    pub(crate) fn full(what: impl Display, why: &Full) -> Failure {
        match why.kind() {
            FullKind::Memory(_) => Failure::io(what, why),
            _ => Failure::usage(what, why),
        }
    }

    /// Another filter cannot be merged into `what`.
    pub(crate) fn merge(what: impl Display, why: &MergeError) -> Failure {
        match why.kind() {
            MergeErrorKind::Full(full) if matches!(full.kind(), FullKind::Memory(_)) => {
                Failure::io(what, why)
            }
            _ => Failure::usage(what, why),
        }
    }

    /// What was written does not hold what was put in.
    pub(crate) fn verification(what: impl Display) -> Failure {
        let why =
            "the filter does not hold every key, and was not written; please report this as a bug";
        Failure::new(DAMAGED, what, why)
    }

    /// Writing to standard output failed.
    pub(crate) fn stdout(e: &io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::io("standard output", e),
        }
    }

    /// Tells the user, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Failure::Closed => ExitCode::SUCCESS,
            Failure::Error { code, message } => {
                say(&message);
                ExitCode::from(code)
            }
        }
    }
}

/// Puts one line on standard error, whatever a file's name contains.
pub(crate) fn say(message: &str) {
    let mut line = String::from("tamis: ");
    for c in message.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    // Where standard error is closed there is nobody left to tell.
    let _ = io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lack_of_memory_is_no_fault_of_the_arguments_or_the_file() {
        let build: BuildError = BuildErrorKind::Memory { bytes: 1 }.into();
        let decode: DecodeError = DecodeErrorKind::Memory { bytes: 1 }.into();
        for failure in [Failure::build("f", &build), Failure::decode("f", &decode)] {
            assert!(
                matches!(failure, Failure::Error { code: IO, .. }),
                "{failure:?}"
            );
        }
    }
}
