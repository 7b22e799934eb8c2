//! A multiset for reading alone: a set for each column of its counts.

use std::fmt;

use crate::bits::fastrange;
use crate::coded::Golomb;
use crate::error::BuildError;

/// The static multiset of Pagh, Pagh and Rao, of a [`Multiset`](crate::Multiset) that is frozen.
///
/// ```text
///  number      4        9           23                   counts in plain binary
///  S₁         4·2+1    9·2+0       23·2+1                4: 1 = 1        once
///  S₂                  9·2+1       23·2+1                9: 10           twice
///  S₃                                                    23: 11          three times
/// ```
///
/// A number x below u whose count has the bit d in column i is the element 2x + d of Sᵢ₊₁, a set
/// below 2u, if the count reaches that column. So a lookup asks S₁ for two neighbours, and a count
/// asks one set for each of its columns. Each set is a [`Golomb`] code, which needs
/// log₂(2u/n) + 1.6 bits an element and decodes half a chunk for a lookup. A digit costs a whole
/// bit this way even where it is a 1, as nearly all are: r + 2.7 bits for a rate of 2⁻ʳ. From 2⁻⁹
/// on that is less than the (r + 2.125)/0.95 of the tables that can be changed.
///
/// It has no file of its own: save the multiset, and freeze it where it is read.
#[derive(Clone)]
pub struct FrozenMultiset {
    range: u64,
    len: u64,
    columns: Vec<Golomb>,
}

/// Elements of a chunk of code.
const CHUNK: u64 = 128;

impl FrozenMultiset {
    /// Of these counts, which come in order.
    pub(super) fn new<I: Iterator<Item = (u64, u64)> + Clone>(
        range: u64,
        len: u64,
        counts: impl Fn() -> I,
    ) -> Result<FrozenMultiset, BuildError> {
        let most = counts().map(|(_, count)| count).max().unwrap_or(0);
        let mut columns = Vec::new();
        for column in 0..u64::BITS - most.leading_zeros() {
            let reaches = move |&(_, count): &(u64, u64)| count >> column > 0;
            let element = move |(number, count): (u64, u64)| 2 * number + (count >> column & 1);
            let set = counts().filter(reaches).map(element);
            columns.push(Golomb::of_values(2 * range, CHUNK, len, set)?);
        }
        Ok(FrozenMultiset {
            range,
            len,
            columns,
        })
    }

    /// The digit that a column has of a number, if its count reaches it.
    fn digit(&self, column: usize, number: u64) -> Option<u64> {
        let set = self.columns.get(column)?;
        let element = set.first_from(2 * number)?;
        (element / 2 == number).then_some(element % 2)
    }

    /// Whether the hash may have been inserted, as the multiset would say.
    pub fn contains(&self, hash: u64) -> bool {
        self.digit(0, fastrange(hash, self.range).0).is_some()
    }

    /// How many copies of the hash are held, as the multiset would say.
    pub fn count(&self, hash: u64) -> u64 {
        let number = fastrange(hash, self.range).0;
        let digits = (0..).map_while(|column| self.digit(column, number));
        digits.zip(0..).map(|(digit, column)| digit << column).sum()
    }

    /// The sum of all counts.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Every byte held on the heap.
    pub fn size_in_bytes(&self) -> usize {
        use crate::filter::Filter;
        let sets: usize = self.columns.iter().map(Golomb::size_in_bytes).sum();
        sets + self.columns.capacity() * size_of::<Golomb>()
    }
}

impl fmt::Debug for FrozenMultiset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrozenMultiset of {} in {}", self.len, self.range)
    }
}
