//! Replays the corpus of the fuzz targets that need the library alone.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../fuzz/src/filters.rs"]
#[allow(dead_code, unreachable_pub, reason = "this test replays whole targets")]
mod filters;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/texts.rs"]
#[allow(unreachable_pub, reason = "the fuzzer's package makes it public")]
mod texts;

use replay::replay;

#[test]
fn the_corpus_of_ops_holds() {
    replay("ops", filters::ops);
}

#[test]
fn the_corpus_of_open_holds() {
    replay("open", filters::open);
}

#[test]
fn the_corpus_of_texts_holds() {
    replay("texts", texts::texts);
}
