//! Tells the program which processor it was compiled for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // Given as `-Ctarget-cpu=X`, or as `-C` and `target-cpu=X`; the last one counts, as it does
    // for the compiler.
    let given = flags.split('\u{1f}').rev().find_map(|flag| {
        let flag = flag.strip_prefix("-C").unwrap_or(flag).trim_start();
        flag.strip_prefix("target-cpu=")
    });
    println!("cargo::rustc-env=TARGET_CPU={}", given.unwrap_or("default"));
}
