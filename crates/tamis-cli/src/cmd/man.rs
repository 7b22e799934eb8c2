//! `tamis man`: the manual, as pages for `man`.

use crate::ExitCode;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::output;
use crate::target::Target;

/// Print the manual page of the program or of a verb, or write all of them
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis man | man -l -
  tamis man build | man -l -
  tamis man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The verb; the program itself without one
    #[arg(conflicts_with = "dir")]
    verb: Option<String>,

    /// Write all pages into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Print JSON: the pages by their names, or with --dir the files that were written
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, mut program: Command) -> Result<ExitCode, Failure> {
    program.build();
    if let Some(dir) = &args.dir {
        let mut files = Vec::new();
        for (name, page) in all_pages(&program)? {
            let path = dir.join(format!("{name}.1"));
            Target::of(&path, true, false)?.write_bytes(&page)?;
            files.push(path.display().to_string());
        }
        if args.json {
            output::json(&json!({ "files": files }))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.json && args.verb.is_none() {
        let pages: Map<String, Value> = all_pages(&program)?
            .into_iter()
            .map(|(name, page)| (name, String::from_utf8_lossy(&page).into()))
            .collect();
        output::json(&Value::Object(pages))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (name, page) = match &args.verb {
        None => page(&program)?,
        Some(verb) => match program.find_subcommand(verb) {
            Some(command) => page(command)?,
            None => {
                let known = program.get_subcommands().map(Command::get_name);
                let known: Vec<_> = known.collect();
                let why = format!("no such verb; there are {}", known.join(", "));
                return Err(Failure::usage(verb, why));
            }
        },
    };
    match args.json {
        true => output::json(&json!({ (name): String::from_utf8_lossy(&page) }))?,
        false => output::write(&page)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn all_pages(program: &Command) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let verbs = program
        .get_subcommands()
        .filter(|verb| verb.get_name() != "help");
    std::iter::once(program).chain(verbs).map(page).collect()
}

/// A page's name, and the page. What stands before the help, the examples, comes last there.
fn page(command: &Command) -> Result<(String, Vec<u8>), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let name = name.replace(' ', "-");
    let after = [command.get_after_help(), command.get_before_help()];
    let after: Vec<String> = after
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    let command = command.clone().after_long_help(after.join("\n\n"));
    let mut page = Vec::new();
    Man::new(command)
        .title(name.clone())
        .render(&mut page)
        .map_err(|e| Failure::io("the manual page", e))?;
    Ok((name, page))
}
