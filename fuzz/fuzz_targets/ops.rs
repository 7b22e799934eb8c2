//! `cargo +nightly fuzz run ops`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::filters::ops(data));
