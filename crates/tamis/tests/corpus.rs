//! Replays what the fuzzer has found worth keeping, without the fuzzer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../fuzz/src/lib.rs"]
#[allow(dead_code, unreachable_pub, reason = "this test replays whole targets")]
mod fuzz;

use std::fs;
use std::path::Path;

fn replay(target: &str, body: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut inputs: Vec<_> = fs::read_dir(corpus.join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(
        inputs.len() >= 10,
        "only {} inputs for {target}",
        inputs.len()
    );
    for input in inputs {
        let data = fs::read(&input).unwrap();
        let result = std::panic::catch_unwind(|| body(&data));
        assert!(result.is_ok(), "{} fails", input.display());
    }
}

#[test]
fn the_corpus_of_ops_holds() {
    replay("ops", fuzz::ops);
}

#[test]
fn the_corpus_of_open_holds() {
    replay("open", fuzz::open);
}
