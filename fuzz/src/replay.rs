//! Replays what the fuzzer has found worth keeping, without the fuzzer.

use std::fs;
use std::path::Path;

/// Runs a target on every input of its corpus.
pub(crate) fn replay(target: &str, body: fn(&[u8])) {
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
    inputs.retain(|input| {
        let data = fs::read(input).unwrap();
        std::panic::catch_unwind(|| body(&data)).is_err()
    });
    assert!(inputs.is_empty(), "these fail: {inputs:#?}");
}
