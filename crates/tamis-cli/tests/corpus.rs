//! Replays the corpus of the fuzz target that reads keys.
#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../fuzz/src/readers.rs"]
#[allow(unreachable_pub, reason = "the fuzzer's package makes it public")]
mod readers;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn the_corpus_of_readers_holds() {
    replay::replay("readers", readers::readers);
}
