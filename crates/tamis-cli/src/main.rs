//! The program; all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tamis_cli::main(std::env::args_os()).0.into()
}
