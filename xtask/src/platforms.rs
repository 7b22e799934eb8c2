//! Other machines: the library's tests under qemu, which runs the programs of another processor.

use std::path::Path;
use std::process::Command;

use crate::python::debian;
use crate::{Failure, cargo, run, succeeds};

/// A kind of machine, and what Debian and qemu call it.
struct Platform {
    name: &'static str,
    debian: &'static str,
    qemu: &'static str,
}

/// One that is not x86, one of 32 bits, and a big-endian one.
const PLATFORMS: [Platform; 3] = [
    Platform {
        name: "aarch64",
        debian: "arm64",
        qemu: "qemu-aarch64",
    },
    Platform {
        name: "i686",
        debian: "i386",
        qemu: "qemu-i386",
    },
    Platform {
        name: "s390x",
        debian: "s390x",
        qemu: "qemu-s390x",
    },
];

/// Laws that start a process of their own, of a program that this machine cannot run.
const ALONE: [&str; 2] = ["law_12_bad_parameters", "law_13_size_is_the_truth"];
/// Models search all interleavings, which are the same everywhere.
const MODELS: &str = "models::";
/// The law that tells most about a machine: the same keys make the bytes of the golden files, and
/// those are read as they were written.
const BRIEF: &str = "law_11";

/// `cargo xtask platforms [TARGET…]`: all tests of the library on other machines.
pub(crate) fn all(names: &[String]) -> Result<(), Failure> {
    let known = |name: &String| PLATFORMS.iter().any(|platform| platform.name == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let known = PLATFORMS.map(|platform| platform.name).join(", ");
        return Err(format!(
            "`{unknown}` is no platform that is tried: {known} are"
        ));
    }
    let chosen =
        |platform: &&Platform| names.is_empty() || names.iter().any(|n| n == platform.name);
    for platform in PLATFORMS.iter().filter(chosen) {
        platform.tools()?;
        let mut test = platform.test();
        test.args(["--tests", "--no-fail-fast", "--"]);
        run(skip(skip(&mut test, &ALONE), &[MODELS]))?;
    }
    Ok(())
}

/// Sets up what [`brief`] needs.
pub(crate) fn tools() -> Result<(), Failure> {
    PLATFORMS.iter().try_for_each(Platform::tools)
}

/// Golden files, formats, and laws at small sizes on all platforms: a part of `cargo xtask test`.
pub(crate) fn brief() -> Result<(), Failure> {
    for platform in &PLATFORMS {
        let test = |program: &str, filter: &[&str]| {
            let mut test = platform.test();
            test.args(["--test", program, "--"]).args(filter);
            run(&mut test)
        };
        test("conformance", &[BRIEF])?;
        test("format", &[])?;
    }
    Ok(())
}

fn skip<'a>(test: &'a mut Command, names: &[&str]) -> &'a mut Command {
    for name in names {
        test.args(["--skip", name]);
    }
    test
}

impl Platform {
    /// What the compiler calls it.
    fn triple(&self) -> String {
        format!("{}-unknown-linux-gnu", self.name)
    }

    /// What the linker and the directory of its libraries are called after.
    fn gnu(&self) -> String {
        format!("{}-linux-gnu", self.name)
    }

    fn linker(&self) -> String {
        format!("{}-gcc", self.gnu())
    }

    /// `cargo test` of the library for this platform, run by qemu, with laws at small sizes.
    fn test(&self) -> Command {
        let mut test = cargo();
        test.env("TAMIS_BRIEF", "1");
        // Most of the time goes to compiling.
        test.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        test.env("CARGO_PROFILE_DEV_DEBUG", "false");
        test.env("CARGO_INCREMENTAL", "0");
        test.args(["test", "--quiet", "--package", "tamis", "--target"]);
        test.arg(self.triple());
        let variable = |what: &str| {
            let triple = self.triple().replace('-', "_").to_uppercase();
            format!("CARGO_TARGET_{triple}_{what}")
        };
        test.env(variable("LINKER"), self.linker());
        let runner = format!("{} -L /usr/{}", self.qemu, self.gnu());
        test.env(variable("RUNNER"), runner);
        test
    }

    /// Compiler, libraries and emulator, installed where they are missing.
    fn tools(&self) -> Result<(), Failure> {
        let runs = |program: &str| succeeds(Command::new(program).arg("--version"));
        let is_there = || runs(&self.linker()) && runs(self.qemu) && self.has_libc();
        if !is_there() {
            let compiler = format!("gcc-{}", self.gnu());
            let libc = format!("libc6-dev-{}-cross", self.debian);
            debian(&[&compiler, &libc, "qemu-user"])?;
        }
        if !is_there() {
            return Err(format!(
                "no {}, {} or C library for {} could be installed",
                self.linker(),
                self.qemu,
                self.name
            ));
        }
        run(Command::new("rustup").args(["target", "add", &self.triple()]))
    }

    fn has_libc(&self) -> bool {
        Path::new("/usr")
            .join(self.gnu())
            .join("lib/libc.so.6")
            .exists()
    }
}
