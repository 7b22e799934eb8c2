//! Models of what threads do to the words of an atomic filter, whose every interleaving is tried.

use loom::sync::Arc;
use loom::sync::atomic as model;

use super::*;
use crate::bits::mix64;

/// The same protocol over words whose every interleaving is tried.
impl AtomicWord for model::AtomicU64 {
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    fn put(&self, word: u64) {
        self.store(word, Ordering::Relaxed);
    }

    fn or(&self, bits: u64) {
        self.fetch_or(bits, Ordering::Relaxed);
    }
}

/// What must not be done.
struct Torn(model::AtomicU64);

impl From<u64> for Torn {
    fn from(word: u64) -> Torn {
        Torn(word.into())
    }
}

impl AtomicWord for Torn {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn put(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }

    fn or(&self, bits: u64) {
        let word = self.0.load(Ordering::Relaxed);
        self.0.store(word | bits, Ordering::Relaxed);
    }
}

/// Two threads insert two keys each, of one bit in a word that all share.
fn two_threads_insert<A: AtomicWord + 'static>() {
    loom::model(|| {
        let words = Arc::new(Words::<A>::of(&[0]).unwrap());
        let keys = [[1, 2], [3, 4]].map(|pair| pair.map(mix64));
        let threads = keys.map(|pair| {
            let words = words.clone();
            loom::thread::spawn(move || {
                for key in pair {
                    words.set(Bloom::bits_of(key, 1, 1));
                    assert!(words.are_set(Bloom::bits_of(key, 1, 1)), "its own key");
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        for key in keys.concat() {
            assert!(words.are_set(Bloom::bits_of(key, 1, 1)), "a key is denied");
        }
    });
}

#[test]
fn no_interleaving_of_two_threads_loses_a_bit() {
    two_threads_insert::<model::AtomicU64>();
}

#[test]
#[should_panic(expected = "key")]
fn the_model_finds_the_bits_that_a_load_and_a_store_would_lose() {
    two_threads_insert::<Torn>();
}

/// Two threads write one line by loads and stores, while a third asks. With a lock, or without.
fn two_threads_write_a_line(lock: bool) {
    loom::model(move || {
        let words = Arc::new(Words::<model::AtomicU64>::of(&[0]).unwrap());
        let alone = Arc::new(loom::sync::Mutex::new(()));
        let threads = [1, 2].map(|bit| {
            let (words, alone) = (words.clone(), alone.clone());
            loom::thread::spawn(move || {
                let _alone = lock.then(|| alone.lock().unwrap());
                words.set_alone(0, [bit, 0, 0, 0, 0, 0, 0, 0]);
            })
        });
        let before = words.at(0).get();
        for thread in threads {
            thread.join().unwrap();
        }
        let after = words.at(0).get();
        assert_eq!((before & after, after), (before, 3), "a bit is lost");
    });
}

#[test]
fn no_bit_of_a_line_is_lost_under_its_lock() {
    two_threads_write_a_line(true);
}

#[test]
#[should_panic(expected = "a bit is lost")]
fn the_model_finds_the_bits_that_writing_a_line_without_its_lock_would_lose() {
    two_threads_write_a_line(false);
}

#[test]
fn whoever_learns_of_an_insertion_finds_the_key() {
    loom::model(|| {
        let words = Arc::new(Words::<model::AtomicU64>::of(&[0; 2]).unwrap());
        let told = Arc::new(model::AtomicBool::new(false));
        let inserter = {
            let (words, told) = (words.clone(), told.clone());
            loom::thread::spawn(move || {
                words.set(Bloom::bits_of(mix64(1), 2, 3));
                told.store(true, Ordering::Release);
                words.set(Bloom::bits_of(mix64(2), 2, 3));
            })
        };
        if told.load(Ordering::Acquire) {
            assert!(words.are_set(Bloom::bits_of(mix64(1), 2, 3)));
        }
        inserter.join().unwrap();
    });
}
