//! The library's own kinds: all that are declared.
//!
//! A user who knows which filter they want holds its type, and so does the bench: the library
//! shows it the type of every declared kind, and the loops of single calls are compiled for each.

use tamis::{Config, Cuckoo, Declared, Kind, KindInfo, KindVisitor};

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
    let contestant = |(maker, name, bits): (&Maker, &'static str, Option<u32>)| {
        let &Maker { info, build } = maker;
        let config = move |n: usize, fpr| {
            let config = Config::new(n as u64).fpr(fpr);
            match bits {
                Some(bits) => config.set("bits", bits),
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
    // with.
    let is_cuckoo = |maker: &&Maker| maker.info.id == Cuckoo::INFO.id;
    let cuckoo = makers.0.iter().filter(is_cuckoo);
    let cuckoo12 = cuckoo.map(|maker| (maker, "cuckoo12", Some(12)));
    kinds.chain(cuckoo12).map(contestant).collect()
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
