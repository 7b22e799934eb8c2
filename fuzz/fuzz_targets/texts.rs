//! `cargo +nightly fuzz run texts`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::texts::texts(data));
