//! Redis and Valkey: the module in `crates/tamis-redis`, tested inside both.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python::{debian, environment, install};
use crate::{Failure, cargo, root, run, succeeds};

const TESTS: &str = "crates/tamis-redis/tests";

/// `cargo xtask redis`: builds the module as tests have it, optimised and with assertions, and
/// tests it in both servers.
pub(crate) fn test() -> Result<(), Failure> {
    test_in(&[("redis", redis_server()?), ("valkey", valkey_server()?)])
}

/// `cargo xtask redis debian forky`: the same tests in the servers of another release of Debian.
pub(crate) fn test_of(release: &str) -> Result<(), Failure> {
    let directory = root().join("target/debian").join(release);
    let programs = ["redis-server", "valkey-server"];
    if !programs.iter().all(|name| runs(&directory.join(name))) {
        let (mirror, _) = debian_mirror()?;
        unpack(&directory, &format!("{mirror} {release}"), &WITH_LIBRARIES)?;
        for name in programs {
            start_script(&directory, name)?;
        }
    }
    let [redis, valkey] = programs.map(|name| found(directory.join(name)));
    test_in(&[("redis", redis?), ("valkey", valkey?)])
}

fn test_in(servers: &[(&str, PathBuf)]) -> Result<(), Failure> {
    let module = build("dev")?;
    let python = python()?;
    let lint = |arguments: &[&str]| {
        let mut ruff = Command::new(&python);
        ruff.args(["-m", "ruff"]).args(arguments);
        run(ruff.current_dir(root().join(TESTS)))
    };
    lint(&["check"])?;
    lint(&["format", "--check"])?;
    let servers: Vec<String> = servers
        .iter()
        .map(|(name, path)| format!("{name}={}", path.display()))
        .collect();
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    pytest.env("TAMIS_MODULE", module);
    pytest.env("TAMIS_SERVERS", servers.join(","));
    pytest.env("PYTHONDONTWRITEBYTECODE", "1");
    run(pytest.current_dir(root().join(TESTS)))
}

/// `cargo xtask redis serve`: a server with the module on port 6379 of this machine, to try it.
pub(crate) fn serve() -> Result<(), Failure> {
    let server = redis_server()?;
    let module = build("release")?;
    let directory = root().join("target/redis-serve");
    fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut command = Command::new(server);
    command.args(["--bind", "127.0.0.1", "--save", ""]);
    command.arg("--dir").arg(directory);
    run(command.arg("--loadmodule").arg(module))
}

/// `cargo xtask redis bench`, `pauses` and `latency`: the figures of docs/REDIS.md, by the part of
/// `bench.py` of that name.
pub(crate) fn measure(part: &str, profile: &str) -> Result<(), Failure> {
    let servers = [redis_server()?, valkey_server()?];
    let module = build(profile)?;
    let python = python()?;
    for server in servers {
        let mut bench = Command::new(&python);
        bench.env("TAMIS_MODULE", &module);
        bench.env("PYTHONDONTWRITEBYTECODE", "1");
        bench.arg(root().join(TESTS).join("bench.py"));
        run(bench.arg(server).arg(part))?;
    }
    Ok(())
}

/// A Python with the clients that the tests use.
fn python() -> Result<PathBuf, Failure> {
    let python = environment("target/redis-tests", "python3")?;
    let requirements = format!("{TESTS}/requirements.txt");
    install(&python, &["--requirement", &requirements])?;
    Ok(python)
}

fn build(profile: &str) -> Result<PathBuf, Failure> {
    let package = ["--package", "tamis-redis", "--profile", profile];
    run(cargo().args(["build", "--quiet"]).args(package))?;
    let directory = if profile == "dev" { "debug" } else { profile };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    Ok(target.join(directory).join("libtamis_redis.so"))
}

fn redis_server() -> Result<PathBuf, Failure> {
    let program = PathBuf::from("redis-server");
    if !runs(&program) {
        debian(&["redis-server"])?;
    }
    found(program)
}

/// Debian's Valkey. Where this release has none, it is unpacked from the backports, which need not
/// be among the machine's sources.
fn valkey_server() -> Result<PathBuf, Failure> {
    let program = PathBuf::from("valkey-server");
    let unpacked = root().join("target/valkey/root/usr/bin/valkey-server");
    for program in [&program, &unpacked] {
        if runs(program) {
            return Ok(program.clone());
        }
    }
    if succeeds(Command::new("apt-cache").args(["show", "--quiet=2", "valkey-server"])) {
        debian(&["valkey-server"])?;
        return found(program);
    }
    let (mirror, release) = debian_mirror()?;
    unpack(
        &root().join("target/valkey"),
        &format!("{mirror} {release}-backports"),
        &["valkey-server", "valkey-tools"],
    )?;
    found(unpacked)
}

fn runs(program: &Path) -> bool {
    succeeds(Command::new(program).arg("--version"))
}

fn found(program: PathBuf) -> Result<PathBuf, Failure> {
    match runs(&program) {
        true => Ok(program),
        false => Err(format!("`{} --version` fails", program.display())),
    }
}

/// Both servers, and all that they load: another release has another C library.
const WITH_LIBRARIES: [&str; 14] = [
    "redis-server",
    "redis-tools",
    "valkey-server",
    "valkey-tools",
    "libatomic1",
    "libc6",
    "libcap2",
    "libgcc-s1",
    "libjemalloc2",
    "liblzf1",
    "libssl3t64",
    "libstdc++6",
    "libsystemd0",
    "libzstd1",
];

/// Writes a script that starts an unpacked program with the loader and libraries beside it.
fn start_script(directory: &Path, program: &str) -> Result<(), Failure> {
    let script = directory.join(program);
    let root = directory.join("root");
    let root = root.display();
    let libraries = format!("{root}/usr/lib/x86_64-linux-gnu");
    let text = format!(
        "#!/bin/sh\nexec '{libraries}/ld-linux-x86-64.so.2' --library-path '{libraries}' \
         '{root}/usr/bin/{program}' \"$@\"\n"
    );
    let executable = fs::Permissions::from_mode(0o755);
    fs::write(&script, text)
        .and_then(|()| fs::set_permissions(&script, executable))
        .map_err(|e| format!("{}: {e}", script.display()))
}

/// Downloads packages of a mirror and suite of Debian, and unpacks them in a directory.
fn unpack(directory: &Path, suite: &str, packages: &[&str]) -> Result<(), Failure> {
    let error = |e: std::io::Error| format!("{}: {e}", directory.display());
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(directory.join(part)).map_err(error)?;
    }
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let source = format!("deb [signed-by={keys}] {suite} main\n");
    fs::write(directory.join("sources.list"), source).map_err(error)?;
    let apt = || {
        let place = |part: &str| directory.join(part).display().to_string();
        let mut apt = Command::new("apt-get");
        apt.arg("--quiet").current_dir(directory);
        for option in [
            format!("Dir::Etc::sourcelist={}", place("sources.list")),
            "Dir::Etc::sourceparts=-".to_string(),
            format!("Dir::State::lists={}", place("lists")),
            format!("Dir::Cache={}", place("cache")),
        ] {
            apt.args(["-o", &option]);
        }
        apt
    };
    run(apt().arg("update"))?;
    run(apt().arg("download").args(packages))?;
    for entry in fs::read_dir(directory).map_err(error)?.flatten() {
        let file = entry.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg")
                .arg("-x")
                .arg(&file)
                .arg(directory.join("root")))?;
        }
    }
    Ok(())
}

/// Where this machine's Debian comes from, and what it is called.
fn debian_mirror() -> Result<(String, String), Failure> {
    let os = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = os
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let release = codename.ok_or("this is no Debian: install Valkey by hand")?;
    let format = "$(REPO_URI) $(RELEASE)";
    let targets = Command::new("apt-get")
        .args(["indextargets", "--format", format])
        .output();
    let targets = targets.map_err(|e| format!("`apt-get indextargets`: {e}"))?;
    let targets = String::from_utf8_lossy(&targets.stdout).into_owned();
    let mut pairs = targets.lines().filter_map(|line| line.split_once(' '));
    let found = pairs.find(|(_, name)| *name == release);
    let (mirror, _) = found.ok_or(format!("no source of {release} is known to apt"))?;
    Ok((mirror.to_string(), release.to_string()))
}
