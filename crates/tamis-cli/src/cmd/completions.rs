//! `tamis completions`: what a shell needs to complete the program's arguments.

use crate::ExitCode;

use clap::Command;
use clap_complete::{Shell, generate};
use serde_json::json;

use crate::failure::Failure;
use crate::output;

/// Print the script that lets a shell complete verbs and options
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis completions bash > ~/.local/share/bash-completion/completions/tamis
  tamis completions zsh > ~/.zfunc/_tamis
  tamis completions fish > ~/.config/fish/completions/tamis.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,

    /// Print JSON: the shell, and the script
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, mut program: Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    let name = program.get_name().to_string();
    generate(args.shell, &mut program, name, &mut script);
    if args.json {
        output::json(&json!({
            "shell": args.shell.to_string(),
            "script": String::from_utf8_lossy(&script),
        }))?;
    } else {
        output::write(&script)?;
    }
    Ok(ExitCode::SUCCESS)
}
