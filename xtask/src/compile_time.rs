//! `cargo xtask compile-time`: what a user waits for.

use std::fs;
use std::path::Path;

use crate::lint::FAMILIES;
use crate::{Failure, cargo, root, run};

/// What a user may ask for: all of it, or a family.
pub(crate) fn measure() -> Result<(), Failure> {
    let mut rows = vec![("everything", time(None)?)];
    for family in FAMILIES {
        rows.push((family, time(Some(family))?));
    }
    println!("processor time of the library alone, in release, by what is compiled:");
    for (name, seconds) in rows {
        println!("{seconds:>7.1} s  {name}");
    }
    Ok(())
}

/// Compiles a crate that depends on the library, its dependencies first, and times the rest.
fn time(family: Option<&str>) -> Result<f64, Failure> {
    let name = family.unwrap_or("everything");
    let user = root().join("target/compile-time").join(name);
    let features = match family {
        Some(family) => format!("default-features = false, features = [\"{family}\"]"),
        None => "default-features = true".into(),
    };
    let library = root().join("crates/tamis");
    let manifest = format!(
        "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\ntamis = {{ path = {library:?}, {features} }}\n"
    );
    write(&user.join("Cargo.toml"), &manifest)?;
    write(&user.join("src/main.rs"), "fn main() {}\n")?;
    let build = || {
        let mut build = cargo();
        run(build.args(["build", "--release"]).current_dir(&user))
    };
    build()?;
    let mut clean = cargo();
    run(clean
        .args(["clean", "--release", "--package", "tamis"])
        .current_dir(&user))?;
    let before = of_children()?;
    build()?;
    Ok(of_children()? - before)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e| format!("{}: {e}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    fs::write(path, text).map_err(failed)
}

/// Processor time of the processes that this one has waited for, as Linux tells it.
fn of_children() -> Result<f64, Failure> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|e| format!("needs Linux: {e}"))?;
    // The name of the program, in brackets, may hold blanks; after it come the fields from the
    // third.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}
