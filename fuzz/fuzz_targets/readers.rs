//! `cargo +nightly fuzz run readers`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::readers::readers(data));
