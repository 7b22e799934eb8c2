//! Merging quotient filters that memory does not hold: lists in order become one, from files to a
//! file.
//!
//! ```text
//!  a.tamis ──▶ block ──▶ entries ──┐
//!  b.tamis ──▶ block ──▶ entries ──┼──▶ the least first ──▶ blocks ──▶ c.tamis
//!  …                               │
//! ```
//!
//! It is the same list, read and written by the same code, as in memory. All that is held are the
//! blocks that a run reaches over.

use std::io::Write;

use super::counting::{self, Made, QuotientCounting};
use super::counts::{self, Counts, Sums, added};
use super::rank_select::{self, Fingerprints, Quotient, Sample};
use super::sequence::{Entries, Writer};
use super::table::{Shape, Table};
use super::{Merged, Split, Unwritten, doubled, fitting, merged};
use crate::error::{DecodeError, Full, FullKind, MergeError, MergeErrorKind, MergeFilesError};
use crate::file::{Files, MergeFiles, MergedFile, Output};
use crate::format::{Data, Decoder, Encoder};

/// A union that does not fit is the fault of the last file.
fn full(files: &Files<'_>, kind: FullKind) -> MergeFilesError {
    let held = files.lens().next().unwrap_or(0);
    let last = files.lens().count().saturating_sub(1);
    let error = MergeErrorKind::Full(Full::new(kind, held)).into();
    files.refused(last, error)
}

/// What all files have in common, as `common` says of two.
fn of_all<T: Copy>(
    files: &Files<'_>,
    each: &[T],
    common: impl Fn(T, T) -> Result<T, MergeError>,
) -> Result<T, MergeFilesError> {
    let [first, others @ ..] = each else {
        return Err(full(files, FullKind::Capacity));
    };
    let others = (1..).zip(others);
    others.into_iter().try_fold(*first, |ours, (i, &theirs)| {
        common(ours, theirs).map_err(|e| files.refused(i, e))
    })
}

/// A table in a file.
#[derive(Clone, Copy)]
struct Place {
    split: Split,
    start: u64,
}

impl Place {
    fn read(input: &mut Decoder<'_>, split: Split) -> Result<Place, DecodeError> {
        let bytes = Table::bytes(split.0, split.1)?;
        let start = input.place::<u8>("table", bytes)?.start;
        Ok(Place { split, start })
    }

    /// The entries of the table.
    fn entries<'a>(&self, mut data: Data<'a>) -> Entries<Data<'a>> {
        // What cannot be read is told when the entries end.
        data.go_to(self.start);
        Entries::new(data, Shape::new(self.split.0, self.split.1))
    }
}

/// What was amiss with a list or, before that, with the file that it comes from.
fn end((data, list): (Data<'_>, Result<(), DecodeError>)) -> Result<(), DecodeError> {
    data.finish().and(list)
}

impl MergeFiles for Quotient {
    fn merge_files(files: &mut Files<'_>, out: &Output<'_>) -> Result<MergedFile, MergeFilesError> {
        let places = files.shapes(|input| {
            let split = rank_select::read_split(input)?;
            Place::read(input, split)
        })?;
        let splits: Vec<Split> = places.iter().map(|place| place.split).collect();
        let split = of_all(files, &splits, rank_select::common)?;
        let len = files.lens().fold(0, u64::saturating_add);
        let union = fitting(0..=split.1 - 1, |doublings| {
            let split = doubled(split, doublings);
            if len > Table::most_used(split.0) {
                return Err(Unwritten::Full(FullKind::Capacity));
            }
            let mut parts = Encoder::default();
            rank_select::encode_split(split, &mut parts);
            parts.announce(Table::bytes(split.0, split.1).map_err(MergeFilesError::from)?);
            let mut sample = Sample::default();
            out.write(len, &parts, |out| {
                let mut writer = Writer::to(out, split.0, split.1);
                let written = read_fingerprints(files, &places, |union| {
                    let union = union.inspect(|&fingerprint| sample.add(fingerprint));
                    rank_select::write(&mut writer, union)
                })?;
                writer.finish(written)
            })?;
            Ok(out.written((len, len), &parts, sample.fpr(len, split)))
        });
        union.map_err(|e| match e {
            Unwritten::Files(e) => e,
            // A file whose number of keys is forged is refused as that.
            e => read_fingerprints(files, &places, |_| ())
                .map_or_else(|e| e, |()| full(files, e.into_kind())),
        })
    }
}

/// Reads all files once, and gives `take` the fingerprints of all.
fn read_fingerprints<R>(
    files: &mut Files<'_>,
    places: &[Place],
    take: impl FnOnce(Merged<&mut Fingerprints<Data<'_>>>) -> R,
) -> Result<R, MergeFilesError> {
    let lens: Vec<u64> = files.lens().collect();
    let data = files.data()?.into_iter().zip(places);
    let lists = data.map(|(data, place)| Fingerprints::new(place.entries(data)));
    let mut lists: Vec<_> = lists.collect();
    let taken = take(merged(&mut lists));
    let lists = lists.into_iter().zip(lens);
    let read: Vec<_> = lists.map(|(list, len)| end(list.finish(len))).collect();
    files.check(read)?;
    Ok(taken)
}

/// A file of counts.
#[derive(Clone, Copy)]
struct CountsFile {
    made: Made,
    /// Where its sums stand.
    sums: u64,
    table: Place,
    /// The sum of its counts.
    len: u64,
}

impl CountsFile {
    fn read(input: &mut Decoder<'_>) -> Result<CountsFile, DecodeError> {
        let made = Made::decode(input)?;
        let sums = input.place::<u64>("sums", 2)?.start;
        let table = Place::read(input, doubled(made.split, made.doublings))?;
        Ok(CountsFile {
            made,
            sums,
            table,
            len: input.len(),
        })
    }

    /// What it says of its counts, and the counts.
    fn counts<'a>(&self, mut data: Data<'a>) -> (Sums, Counts<Data<'a>>) {
        let mut sums = [[0; 8]; 2];
        data.go_to(self.sums);
        data.read(sums.as_flattened_mut());
        let [used, distinct] = sums.map(u64::from_le_bytes);
        let len = self.len;
        let sums = Sums {
            used,
            distinct,
            len,
        };
        (sums, Counts::new(self.table.entries(data)))
    }
}

/// Reads all files once, and gives `take` the counts of all, added up.
fn read_counts<R>(
    files: &mut Files<'_>,
    each: &[CountsFile],
    take: impl FnOnce(&mut dyn Iterator<Item = (u64, u64)>) -> R,
) -> Result<R, MergeFilesError> {
    let data = files.data()?.into_iter().zip(each);
    let (sums, mut lists): (Vec<Sums>, Vec<_>) = data.map(|(data, file)| file.counts(data)).unzip();
    let taken = take(&mut added(merged(&mut lists)));
    let lists = lists.into_iter().zip(sums);
    let read: Vec<_> = lists.map(|(list, sums)| end(list.finish(sums))).collect();
    files.check(read)?;
    Ok(taken)
}

impl MergeFiles for QuotientCounting {
    fn merge_files(files: &mut Files<'_>, out: &Output<'_>) -> Result<MergedFile, MergeFilesError> {
        let each = files.shapes(CountsFile::read)?;
        let made: Vec<Made> = each.iter().map(|file| file.made).collect();
        let made = of_all(files, &made, counting::common)?;
        let Some(len) = files.lens().try_fold(0u64, u64::checked_add) else {
            read_counts(files, &each, |_| ())?;
            return Err(full(files, FullKind::Duplicates(u64::MAX)));
        };
        // The sums stand before the table, so they are found first.
        files.expect_passes(2);
        let merged = fitting(made.possible(), |doublings| {
            let made = Made { doublings, ..made };
            let (slots, bits) = doubled(made.split, doublings);
            let (distinct, used) = read_counts(files, &each, |counts| {
                counts.fold((0, 0u64), |(distinct, used), (fingerprint, count)| {
                    (
                        distinct + 1,
                        used.saturating_add(counts::slots(fingerprint, count, bits)),
                    )
                })
            })?;
            if distinct > made.most() {
                return Err(full(files, FullKind::Capacity).into());
            }
            if used > Table::most_used(slots) {
                return Err(Unwritten::Full(FullKind::Capacity));
            }
            let mut parts = Encoder::default();
            made.encode(used, distinct, &mut parts);
            parts.announce(Table::bytes(slots, bits).map_err(MergeFilesError::from)?);
            out.write(len, &parts, |out: &mut dyn Write| {
                let mut writer = Writer::to(out, slots, bits);
                let written =
                    read_counts(files, &each, |counts| counts::write(&mut writer, counts))?;
                writer.finish(written)
            })?;
            Ok(out.written(
                (len, distinct),
                &parts,
                counting::fpr(distinct, (slots, bits)),
            ))
        });
        merged.map_err(|e| match e {
            Unwritten::Files(e) => e,
            e => full(files, e.into_kind()),
        })
    }
}

#[cfg(test)]
mod tests;
