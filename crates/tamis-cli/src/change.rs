//! Changing a filter file: read, changed in memory, verified, and replaced.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use tamis::{AnyFilter, Encoded, Keyed, Place};

use crate::failure::Failure;
use crate::input::{AskedArgs, InputArgs, Source};
use crate::secret::SecretArgs;
use crate::{interrupt, target};

/// What `add` and `remove` are given.
#[derive(clap::Args)]
pub(crate) struct ChangeArgs {
    /// The filter file
    pub(crate) filter: PathBuf,

    /// The files of keys; - or nothing for standard input
    #[arg(value_name = "KEYS")]
    pub(crate) keys: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,

    /// Tell what was done also where standard error is no terminal
    #[arg(long)]
    pub(crate) verbose: bool,

    /// Say nothing of how keys are read, nor what was done
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Tell what was done as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) input: AskedArgs,
}

impl ChangeArgs {
    /// Whether what was done is told.
    pub(crate) fn talks(&self) -> bool {
        self.verbose || (!self.quiet && io::stderr().is_terminal())
    }
}

/// A filter file that no other `tamis` changes meanwhile.
pub(crate) struct Change {
    place: Place,
    /// What to call it in messages.
    pub(crate) name: String,
}

impl Change {
    /// Waits for whoever is changing the file, and opens the filter in it.
    pub(crate) fn open(args: &ChangeArgs) -> Result<(Change, Keyed<AnyFilter>), Failure> {
        let path = args.filter.as_path();
        if path == Path::new("-") {
            let why = "a filter is changed in its file; give the file's name";
            return Err(Failure::usage("standard input", why));
        }
        let name = path.display().to_string();
        let secret = args.secret.known()?;
        let meta = fs::metadata(path).map_err(|e| Failure::io(&name, e))?;
        if !meta.is_file() {
            return Err(Failure::io(&name, "not a regular file"));
        }
        let place = target::lock(path)?;
        let mut source = Source::open(Some(path))?;
        if source.is_compressed()? {
            let why = "the filter is compressed; decompress it before you change it";
            return Err(Failure::usage(&name, why));
        }
        let filter = source.filter(secret.as_ref())?;
        Ok((Change { place, name }, filter))
    }

    /// How the keys are read that the filter is changed by.
    pub(crate) fn input(
        &self,
        args: &ChangeArgs,
        filter: &Keyed<AnyFilter>,
    ) -> Result<InputArgs, Failure> {
        let quiet = args.quiet || args.json;
        args.input.of(&self.name, filter, quiet)
    }

    /// Puts a filter in the place of the old one.
    pub(crate) fn replace(&self, filter: &Encoded<AnyFilter>) -> Result<(), Failure> {
        interrupt::save(filter, &self.place).map_err(|e| Failure::io(&self.name, e))
    }
}
