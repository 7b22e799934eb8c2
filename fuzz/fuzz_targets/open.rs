//! `cargo +nightly fuzz run open`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::filters::open(data));
