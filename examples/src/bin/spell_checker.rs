//! A spell checker: the dictionary is fixed, so it is a static filter, and words of the user's
//! own go to a dynamic one.
//!
//! A word that the filters do not contain is certainly misspelt; a misspelt word passes with
//! probability 0.39 %.
//!
//! `cargo run -p tamis-examples --bin spell_checker`

use std::error::Error;

use tamis::{BinaryFuse8, Config, Keyed, SplitBlock512};

fn main() -> Result<(), Box<dyn Error>> {
    // Every word over these syllables up to three of them: a made-up language of some size.
    let syllables = [
        "ta", "mis", "ra", "lo", "ken", "si", "vu", "dor", "el", "an", "pri", "go",
    ];
    let mut dictionary: Vec<String> = syllables.iter().map(ToString::to_string).collect();
    let mut last = dictionary.clone();
    for _ in 0..3 {
        last = last
            .iter()
            .flat_map(|word| syllables.iter().map(move |s| format!("{word}{s}")))
            .collect();
        dictionary.extend(last.iter().cloned());
    }
    let words: Keyed<BinaryFuse8> = Keyed::build(&Config::default(), &dictionary)?;
    let mut own: Keyed<SplitBlock512> = Keyed::new(&Config::new(1000))?;
    own.insert("Zwicky")?;

    let known = |word: &str| words.contains(word) || own.contains(word);
    for word in "tamis rakensi Zwicky tqmis".split(' ') {
        println!("{word:10} {}", if known(word) { "ok" } else { "misspelt" });
    }

    assert!(
        dictionary.iter().all(|word| known(word)),
        "a dictionary word is never flagged"
    );
    let misspelt: Vec<String> = dictionary.iter().map(|word| format!("{word}q")).collect();
    let passed = misspelt.iter().filter(|word| known(word)).count();
    println!(
        "{} words in {} bytes; {passed} of {} misspellings pass ({:.2} %)",
        words.len(),
        words.size_in_bytes(),
        misspelt.len(),
        100.0 * passed as f64 / misspelt.len() as f64,
    );
    Ok(())
}
