//! The library's own kinds: all that are declared, and the exact set.
//!
//! A user who knows which filter they want holds its type, and so does the bench: the library
//! shows it the type of every declared kind, and the loops of single calls are compiled for each.

use tamis::{Config, Cuckoo, Declared, Dictionary, Kind, KindInfo, KindVisitor, option};

use crate::subject::{Built, Calls, Contestant, Inserting};

/// Builds a filter of one kind, whose loops are compiled for its type.
struct Maker {
    info: &'static KindInfo,
    build: fn(&Config, &mut [u64]) -> Built,
}

/// Every kind that is declared, in the library's order.
struct Makers(Vec<Maker>);

impl KindVisitor for Makers {
    fn visit<F: Kind>(&mut self) {
        self.0.push(Maker {
            info: F::INFO,
            build: |config, keys| match F::build(config, keys) {
                Ok(filter) => Ok(Box::new(Typed(filter))),
                Err(error) => Err(error.to_string()),
            },
        });
    }
}

pub(crate) fn contestants() -> Vec<Contestant> {
    type Choice = Option<(&'static str, u32)>;
    let contestant = |(maker, name, choice): (&Maker, &'static str, Choice)| {
        let &Maker { info, build } = maker;
        let config = move |n: usize, fpr| {
            let config = Config::new(n as u64).fpr(fpr);
            match choice {
                Some((param, value)) => config.set(param, value),
                None => config,
            }
        };
        Contestant {
            name,
            family: info.family(),
            ours: true,
            build: Box::new(move |keys, fpr| build(&config(keys.len(), fpr), keys)),
            insert: if info.can.insert {
                Inserting::Into(Box::new(move |n, fpr| build(&config(n, fpr), &mut [])))
            } else {
                Inserting::Never
            },
            threaded: Some(Box::new(move |keys, fpr, threads| {
                build(&config(keys.len(), fpr).threads(threads), keys)
            })),
            // Ribbons take 30 at the most.
            peak: 32,
        }
    };
    let mut makers = Makers(Vec::new());
    tamis::for_each_kind(&mut makers);
    let kinds = makers.0.iter().map(|maker| (maker, maker.info.name, None));
    // Beside the kinds as they size themselves, the cuckoo filter of 12 bits that papers compare
    // with, and the one with semi-sorted buckets.
    let is_cuckoo = |maker: &&Maker| maker.info.id == Cuckoo::INFO.id;
    let cuckoos = makers.0.iter().filter(is_cuckoo).flat_map(|maker| {
        [
            (maker, "cuckoo12", Some((option::BITS.name, 12))),
            (
                maker,
                "cuckoo_semi_sorted",
                Some((option::SEMI_SORT.name, 1)),
            ),
        ]
    });
    let filters = kinds.chain(cuckoos).map(contestant);
    filters.chain([dictionary()]).collect()
}

/// The exact set, of keys of eight bytes: what filters save is measured from here.
fn dictionary() -> Contestant {
    let build = |keys: &mut [u64], _| {
        let mut set = Dictionary::new();
        for key in keys {
            set.insert(key.to_le_bytes()).map_err(|e| e.to_string())?;
        }
        Ok(Box::new(set) as _)
    };
    Contestant {
        name: "dictionary",
        family: "exact",
        ours: true,
        build: Box::new(build),
        insert: Inserting::AsBuild(Box::new(|_, _| Ok(Box::new(Dictionary::new())))),
        threaded: None,
        // Slots and keys, old and new while they grow.
        peak: 64,
    }
}

impl Calls for Dictionary {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains(key.to_le_bytes())
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        Some(self.insert(key.to_le_bytes()).is_ok())
    }

    // No removals: they give memory back, and what is held is asked after them.

    fn expected_fpr(&self) -> Option<f64> {
        Some(0.0)
    }
}

/// A filter of a known kind.
struct Typed<F>(F);

impl<F: Kind> Calls for Typed<F> {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(key)
    }

    fn contains_batch(&self, keys: &[u64], out: &mut [bool]) -> bool {
        self.0.contains_batch(keys, out);
        true
    }

    #[inline(always)]
    fn count(&self, key: u64) -> Option<u64> {
        Some(F::INFO.as_count(&self.0)?.count(key))
    }

    // The filter's type is known, so the compiler sees through the trait objects.
    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        Some(F::INFO.as_insert(&mut self.0)?.insert(key).is_ok())
    }

    fn insert_batch(&mut self, keys: &[u64]) -> Option<bool> {
        Some(F::INFO.as_insert(&mut self.0)?.insert_batch(keys).is_ok())
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(F::INFO.as_remove(&mut self.0)?.remove(key))
    }

    fn expected_fpr(&self) -> Option<f64> {
        Some(self.0.fpr())
    }
}
