//! The library's own kinds: each that is registered, found by itself.
//!
//! A user who knows which filter they want holds its type, and so does the bench: [`TYPED`] makes the loops of single
//! calls for each kind's type. A kind that is registered but not yet listed here is measured all the same, through
//! [`AnyFilter`], whose single calls are dynamic; the report marks it.

use tamis::{AnyFilter, Config, Cuckoo, Filter, KINDS, Kind, KindInfo};

use crate::subject::{Built, Calls, Contestant, Inserting};

/// The kinds whose loops are compiled for their type: one line each.
const TYPED: &[Maker] = &[
    Maker::of::<tamis::Bloom>(),
    Maker::of::<tamis::BloomG>(),
    Maker::of::<tamis::Blocked>(),
    Maker::of::<tamis::SplitBlock512>(),
    Maker::of::<tamis::SplitBlock256>(),
    Maker::of::<tamis::Balanced>(),
    Maker::of::<tamis::TwoChoice>(),
    Maker::of::<tamis::Counting>(),
    Maker::of::<tamis::VariableIncrement>(),
    Maker::of::<tamis::DLeft>(),
    Maker::of::<tamis::CountingMinimal>(),
    Maker::of::<tamis::SpectralRecurring>(),
    Maker::of::<tamis::Scalable>(),
    Maker::of::<tamis::Folded>(),
    Maker::of::<tamis::Compressed>(),
    Maker::of::<tamis::Sliding>(),
    Maker::of::<tamis::AgePartitioned>(),
    Maker::of::<tamis::TinySet>(),
    Maker::of::<tamis::TinySetRemovable>(),
    Maker::of::<tamis::RankIndexed>(),
    Maker::of::<tamis::Cuckoo>(),
    Maker::of::<tamis::HashCompaction>(),
    Maker::of::<tamis::Golomb>(),
    Maker::of::<tamis::BinaryFuse8>(),
    Maker::of::<tamis::BinaryFuse16>(),
    Maker::of::<tamis::BinaryFuse32>(),
    Maker::of::<tamis::Compacting>(),
    Maker::of::<tamis::Xor8>(),
    Maker::of::<tamis::Xor16>(),
    Maker::of::<tamis::XorPlus8>(),
    Maker::of::<tamis::XorPlus16>(),
    Maker::of::<tamis::Bloomier>(),
    Maker::of::<tamis::Perfect>(),
    Maker::of::<tamis::Ribbon>(),
    Maker::of::<tamis::RibbonHomogeneous>(),
    Maker::of::<tamis::RibbonBumped>(),
];

struct Maker {
    name: &'static str,
    build: fn(&Config, &mut [u64]) -> Built,
}

impl Maker {
    const fn of<F: Kind>() -> Maker {
        Maker {
            name: F::NAME,
            build: |config, keys| match F::build(config, keys) {
                Ok(filter) => Ok(Box::new(Typed(filter))),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

/// A filter of a kind, as its type if that is listed.
fn build(info: &KindInfo, config: &Config, keys: &mut [u64]) -> Built {
    if let Some(maker) = TYPED.iter().find(|maker| maker.name == info.name) {
        return (maker.build)(config, keys);
    }
    match info.build(config, keys) {
        Ok(filter) => Ok(Box::new(Any(filter))),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn contestants() -> Vec<Contestant> {
    let contestant = |(info, name, bits): (&'static KindInfo, &'static str, Option<u32>)| {
        let config = move |n: usize, fpr| {
            let config = Config::new(n as u64).fpr(fpr);
            match bits {
                Some(bits) => config.set("bits", bits),
                None => config,
            }
        };
        Contestant {
            name,
            family: info.source.split('/').next().unwrap_or(info.source),
            ours: true,
            typed: TYPED.iter().any(|maker| maker.name == info.name),
            build: Box::new(move |keys, fpr| build(info, &config(keys.len(), fpr), keys)),
            insert: if info.capabilities().insert {
                Inserting::Into(Box::new(move |n, fpr| {
                    build(info, &config(n, fpr), &mut [])
                }))
            } else {
                Inserting::Never
            },
            threaded: Some(Box::new(move |keys, fpr, threads| {
                build(info, &config(keys.len(), fpr).threads(threads), keys)
            })),
            // Ribbons take 30 at the most.
            peak: 32,
        }
    };
    // Beside the kinds as they size themselves, the cuckoo filter of 12 bits that papers compare with.
    let cuckoo = tamis::kind(Cuckoo::NAME).ok();
    let kinds = KINDS.iter().map(|info| (info, info.name, None));
    let cuckoo12 = cuckoo.map(|info| (info, "cuckoo12", Some(12)));
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
        Some(self.0.as_count()?.count(key))
    }

    // The filter's type is known, so the compiler sees through the trait objects.
    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        Some(self.0.as_insert()?.insert(key).is_ok())
    }

    fn insert_batch(&mut self, keys: &[u64]) -> Option<bool> {
        Some(self.0.as_insert()?.insert_batch(keys).is_ok())
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.0.as_remove()?.remove(key))
    }

    fn expected_fpr(&self) -> Option<f64> {
        Some(self.0.fpr())
    }
}

/// A filter of a kind that [`TYPED`] does not list.
struct Any(AnyFilter);

impl Calls for Any {
    fn contains(&self, key: u64) -> bool {
        self.0.contains(key)
    }

    fn contains_batch(&self, keys: &[u64], out: &mut [bool]) -> bool {
        self.0.contains_batch(keys, out);
        true
    }

    fn count(&self, key: u64) -> Option<u64> {
        Some(self.0.as_count()?.count(key))
    }

    fn insert(&mut self, key: u64) -> Option<bool> {
        Some(self.0.as_insert()?.insert(key).is_ok())
    }

    fn insert_batch(&mut self, keys: &[u64]) -> Option<bool> {
        Some(self.0.as_insert()?.insert_batch(keys).is_ok())
    }

    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.0.as_remove()?.remove(key))
    }

    fn expected_fpr(&self) -> Option<f64> {
        Some(self.0.fpr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Ask;
    use crate::subject::Subject;

    #[test]
    fn every_listed_type_is_registered() {
        for maker in TYPED {
            assert!(KINDS.iter().any(|info| info.name == maker.name));
        }
    }

    #[test]
    fn a_kind_that_is_not_listed_is_measured_through_any_filter() {
        let info = tamis::kind("cuckoo").unwrap();
        let mut keys: Vec<u64> = (1..100).map(crate::keys::mix).collect();
        let filter = info.build(&Config::new(100), &mut keys).unwrap();
        let mut subject: Box<dyn Subject> = Box::new(Any(filter));
        assert_eq!(subject.contains_each(Ask::Words(&keys)), 99);
        let mut out = vec![false; 99];
        assert!(subject.contains_batch(Ask::Words(&keys), &mut out));
        assert!(out.iter().all(|&found| found));
        assert_eq!(subject.remove_each(&keys), Some(99));
        assert_eq!(subject.insert_each(Ask::Words(&keys)), Some(true));
        assert_eq!(subject.count_each(&keys), Some(99));
    }
}
