//! The bodies of the fuzz targets. They need no fuzzer, so that tests on a stable toolchain can
//! replay the corpus through them: `tests/corpus.rs` of the library and of the program.

pub mod filters;
pub mod readers;
pub mod texts;
