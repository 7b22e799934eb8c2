//! The library's own kinds: each that is registered, found by itself.
//!
//! A user who knows which filter they want holds its type, and so does the bench: [`TYPED`] makes the loops of single
//! calls for each kind's type. A kind that is registered but not yet listed here is measured all the same, through
//! [`AnyFilter`], whose single calls are dynamic; the report marks it.

use tamis::{
    AnyFilter, BinaryFuse8, BinaryFuse16, BinaryFuse32, Bloom, Config, Cuckoo, Filter, Full,
    Insert, KINDS, Kind, Remove, SplitBlock256, SplitBlock512, TinySet, TinySetRemovable,
};

use crate::subject::{Built, Calls, Contestant, Inserting, Subject};

/// The kinds whose loops are compiled for their type: one line each.
const TYPED: &[Maker] = &[
    Maker::of::<Bloom>(),
    Maker::of::<SplitBlock512>(),
    Maker::of::<SplitBlock256>(),
    Maker::of::<TinySet>(),
    Maker::of::<TinySetRemovable>(),
    Maker::of::<Cuckoo>(),
    Maker::of::<BinaryFuse8>(),
    Maker::of::<BinaryFuse16>(),
    Maker::of::<BinaryFuse32>(),
];

struct Maker {
    name: &'static str,
    build: fn(&Config, &mut [u64]) -> Built,
    insert: fn(&Config, &[u64]) -> Built,
}

impl Maker {
    const fn of<F: Kind>() -> Maker {
        Maker {
            name: F::NAME,
            build: |config, keys| Ok(Box::new(Typed(build::<F>(config, keys)?))),
            insert: |config, keys| {
                let mut filter = build::<F>(config, &mut [])?;
                insert_each(filter.as_insert(), keys)?;
                Ok(Box::new(Typed(filter)))
            },
        }
    }
}

fn build<F: Kind>(config: &Config, keys: &mut [u64]) -> Result<F, String> {
    F::build(config, keys).map_err(|e| e.to_string())
}

/// Inlined where the filter's type is known, so that the compiler sees through the trait object.
#[inline(always)]
fn insert_each(filter: Option<&mut dyn Insert>, keys: &[u64]) -> Result<(), String> {
    let filter = filter.ok_or("static: keys cannot be inserted")?;
    let insert = |&key: &u64| -> Result<(), Full> { filter.insert(key) };
    keys.iter().try_for_each(insert).map_err(|e| e.to_string())
}

pub(crate) fn contestants() -> Vec<Contestant> {
    // Beside the kinds as they size themselves, the cuckoo filter of 12 bits that papers compare with.
    let cuckoo = tamis::kind(Cuckoo::NAME).ok();
    KINDS
        .iter()
        .map(|info| (info, info.name, None))
        .chain(cuckoo.map(|info| (info, "cuckoo12", Some(12))))
        .map(|(info, name, bits)| {
            let typed = TYPED.iter().find(|maker| maker.name == info.name);
            let config = move |keys: &[u64], fpr| {
                let config = Config::new(keys.len() as u64).fpr(fpr);
                match bits {
                    Some(bits) => config.set("bits", bits),
                    None => config,
                }
            };
            let insert = move |keys: &mut [u64], fpr| match typed {
                Some(maker) => (maker.insert)(&config(keys, fpr), keys),
                None => {
                    let empty = info.build(&config(keys, fpr), &mut []);
                    let mut filter = empty.map_err(|e| e.to_string())?;
                    insert_each(filter.as_insert(), keys)?;
                    Ok(Box::new(Any(filter)) as Box<dyn Subject>)
                }
            };
            Contestant {
                name,
                ours: true,
                typed: typed.is_some(),
                build: Box::new(move |keys, fpr| match typed {
                    Some(maker) => (maker.build)(&config(keys, fpr), keys),
                    None => match info.build(&config(keys, fpr), keys) {
                        Ok(filter) => Ok(Box::new(Any(filter))),
                        Err(error) => Err(error.to_string()),
                    },
                }),
                insert: if info.capabilities().insert {
                    Inserting::By(Box::new(insert))
                } else {
                    Inserting::Never
                },
            }
        })
        .collect()
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
    fn remove(&mut self, key: u64) -> Option<bool> {
        remove(self.0.as_remove(), key)
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

    fn remove(&mut self, key: u64) -> Option<bool> {
        remove(self.0.as_remove(), key)
    }
}

#[inline(always)]
fn remove(filter: Option<&mut dyn Remove>, key: u64) -> Option<bool> {
    Some(filter?.remove(key))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(subject.contains_each(&keys), 99);
        let mut out = vec![false; 99];
        assert!(subject.contains_batch(&keys, &mut out));
        assert!(out.iter().all(|&found| found));
        assert_eq!(subject.remove_each(&keys), Some(99));
    }
}
