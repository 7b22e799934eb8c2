//! Families of hash functions with proofs.

use std::fmt;
use std::str::FromStr;

use crate::bits::mix64;

/// A family of hash functions of which something is proved, for
/// [`Hashing::universal`](crate::Hashing::universal).
///
/// A theorem about a filter speaks of functions that are drawn from a family at random: for any
/// two keys, few of its functions give both the same number. [`Multiset`](crate::Multiset) has
/// its rate for *any* keys then, whoever chose them before the function was drawn.
///
/// | family | hash of x, 64 bits | two keys agree in the top l bits with probability |
/// |---|---|---|
/// | [`MultiplyShift`](Family::MultiplyShift) | a·x mod 2⁶⁴, a odd | 2·2⁻ˡ at most: ask for half the rate |
/// | [`MultiplyAddShift`](Family::MultiplyAddShift) | the upper half of a·x + b mod 2¹²⁸ | 2⁻ˡ, and any two hashes are independent |
/// | [`PrimeField`](Family::PrimeField) | 8·(a·⌊x/2³²⌋ + a'·(x mod 2³²) + b mod p), p = 2⁶¹ − 1 | 2⁻ˡ + 2⁻⁶⁰, any two are independent |
/// | [`Tabulation`](Family::Tabulation) | T₀\[x₀\] ⊕ … ⊕ T₇\[x₇\], xᵢ the bytes of x | 2⁻ˡ, any three are independent |
/// | [`FourWise`](Family::FourWise) | 8·(f(hi) + g(lo) + h(hi + lo) mod p), cubic polynomials of the halves of x | 2⁻ˡ + 2⁻⁶⁰, any four are independent |
///
/// x is an integer key, or any other of 8 bytes. A key of another length is first made a number: a
/// polynomial modulo p in a random point, whose coefficients are the key's bytes, seven at a time,
/// and its length, and which has no constant term, so that no key is the same number at every
/// point. Two keys of up to m bytes agree there with probability (⌈m/7⌉ + 1)/2⁶¹.
///
/// # Averages, and single functions
///
/// The proofs are about the *mean over functions*. One function of a weak family can be terrible on
/// keys with a pattern, and a filter uses one function:
///
/// ```
/// use tamis::{Config, Family, Hashing, Keyed, Multiset};
///
/// // Multiples of a number: 4096 of them in, and as many others asked for, at 1/256.
/// let rate = |hashing: Hashing| {
///     let key = |i: u64| i << 20;
///     let config = Config::new(4096).fpr(1.0 / 256.0);
///     let set: Keyed<Multiset> = Keyed::build_with(&config, hashing, (0..4096).map(key))?;
///     let hits = (4096..8192).filter(|&i| set.contains(&key(i))).count();
///     Ok::<f64, tamis::BuildError>(hits as f64 / 4096.0)
/// };
/// let of_family = |family: Family| {
///     let rates = (0..400).map(|seed| rate(Hashing::universal(family, seed)));
///     rates.collect::<Result<Vec<f64>, _>>()
/// };
/// let shift = of_family(Family::MultiplyShift)?;
/// // The theorem holds on average, with room to spare …
/// assert!(shift.iter().sum::<f64>() / 400.0 < 2.0 / 256.0);
/// // … and for the worst of these 400 functions every fifth answer is wrong.
/// assert!(shift.iter().any(|&rate| rate > 0.2));
/// // A mixer proves nothing, and has no such keys that anybody knows.
/// assert!((0..400).all(|seed| rate(Hashing::fast(seed)).is_ok_and(|rate| rate < 0.01)));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// So [`Hashing::fast`](crate::Hashing::fast) is the default, and
/// [`Hashing::secret`](crate::Hashing::secret) the one for keys that strangers choose: they see
/// answers, and may find out which function it is. A family is for those who need the theorem. The
/// proof needs coefficients drawn at random, and these come from a seed of 64 bits by SplitMix64:
/// draw the seed at random, and each filter gets one of 2⁶⁴ functions.
///
/// The filters that choose by the top bits alone, and need no more than pairs, are those to use
/// them with: [`Multiset`](crate::Multiset), [`Quotient`](crate::Quotient),
/// [`Golomb`](crate::Golomb). Where keys are moved (cuckoo) or peeled, no theorem covers two or
/// four independent hashes; tabulation is known to serve linear probing and cuckoo hashing.
///
/// # Bibliography
///
/// - Carter, Wegman, *Universal classes of hash functions*, 1979: the idea, and the prime field.
/// - Dietzfelbinger, Hagerup, Katajainen, Penttonen, *A reliable randomized algorithm for the
///   closest-pair problem*, 1997: multiply and shift. Dietzfelbinger, *Universal hashing and k-wise
///   independent random variables via integer arithmetic without primes*, 1996: with an addition.
/// - Pătraşcu, Thorup, *The power of simple tabulation hashing*, 2012: three are independent, and
///   more is true than that says.
/// - Thorup, Zhang, *Tabulation based 4-universal hashing with applications to second moment
///   estimation*, 2004: the sum of the halves as a third part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// One multiplication: the cheapest.
    MultiplyShift,
    /// One multiplication of 128 bits and an addition; pairwise independent.
    MultiplyAddShift,
    /// Linear in two halves of the key modulo 2⁶¹ − 1; pairwise independent.
    PrimeField,
    /// Eight random words, one for each byte of the key; 3-independent. The tables are not kept: a
    /// word is computed where it is needed.
    Tabulation,
    /// Three cubic polynomials modulo 2⁶¹ − 1; 4-independent.
    FourWise,
}

/// 2⁶¹ − 1.
const P: u64 = (1 << 61) - 1;

impl Family {
    /// Every family.
    pub const ALL: [Family; 5] = [
        Family::MultiplyShift,
        Family::MultiplyAddShift,
        Family::PrimeField,
        Family::Tabulation,
        Family::FourWise,
    ];

    /// Its name in options and files' descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            Family::MultiplyShift => "multiply-shift",
            Family::MultiplyAddShift => "multiply-add-shift",
            Family::PrimeField => "prime-field",
            Family::Tabulation => "tabulation",
            Family::FourWise => "four-wise",
        }
    }

    /// The probability that two different integer keys get the same of so many numbers, at most,
    /// where a function is drawn at random.
    pub fn collision_bound(self, numbers: u64) -> f64 {
        match self {
            Family::MultiplyShift => 2.0 / numbers as f64,
            Family::MultiplyAddShift | Family::Tabulation => 1.0 / numbers as f64,
            Family::PrimeField | Family::FourWise => 1.0 / numbers as f64 + (-60f64).exp2(),
        }
    }

    /// The hash of a number by the function of a seed.
    #[inline]
    pub(crate) fn hash_number(self, seed: u64, x: u64) -> u64 {
        let draw = Draw(seed);
        match self {
            Family::MultiplyShift => (draw.word(0) | 1).wrapping_mul(x),
            Family::MultiplyAddShift => {
                let wide = |i| u128::from(draw.word(i)) << 64 | u128::from(draw.word(i + 1));
                let sum = wide(0).wrapping_mul(u128::from(x)).wrapping_add(wide(2));
                (sum >> 64) as u64
            }
            Family::PrimeField => {
                let high = times(draw.residue(0), x >> 32);
                let low = times(draw.residue(1), x & u64::from(u32::MAX));
                plus(plus(high, low), draw.residue(2)) << 3
            }
            Family::Tabulation => {
                let bytes = x.to_le_bytes().into_iter().zip(0..);
                let words = bytes.map(|(byte, i)| draw.word(i << 8 | u64::from(byte)));
                words.fold(0, |hash, word| hash ^ word)
            }
            Family::FourWise => {
                let (high, low) = (x >> 32, x & u64::from(u32::MAX));
                let cubic = |first: u64, at: u64| {
                    let coefficients = (first..first + 3).map(|i| draw.residue(i));
                    coefficients.fold(draw.residue(first + 3), |sum, next| {
                        plus(times(sum, at), next)
                    })
                };
                plus(plus(cubic(0, high), cubic(4, low)), cubic(8, high + low)) << 3
            }
        }
    }

    /// The hash of a string of bytes by the function of a seed.
    #[inline]
    pub(crate) fn hash_bytes(self, seed: u64, bytes: &[u8]) -> u64 {
        let number = match bytes.first_chunk() {
            Some(word) if bytes.len() == 8 => u64::from_le_bytes(*word),
            _ => polynomial(Draw(!seed).residue(0), bytes),
        };
        self.hash_number(seed, number)
    }
}

/// A polynomial in `point` modulo p: the highest coefficient is the length and one, so that strings
/// of two lengths are two polynomials; the lowest is 0, so that none is a number of 8 bytes.
fn polynomial(point: u64, bytes: &[u8]) -> u64 {
    let length = (bytes.len() as u64).wrapping_add(1) % P;
    let sum = bytes.chunks(7).fold(length, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        plus(times(sum, point), u64::from_le_bytes(word))
    });
    times(sum, point)
}

/// What a seed draws: the words of SplitMix64, by number.
#[derive(Clone, Copy)]
struct Draw(u64);

impl Draw {
    #[inline(always)]
    fn word(self, i: u64) -> u64 {
        let step = 0x9E37_79B9_7F4A_7C15u64;
        mix64(mix64(self.0 ^ step).wrapping_add((i + 1).wrapping_mul(step)))
    }

    /// A number below p, as even as 64 bits allow.
    #[inline(always)]
    fn residue(self, i: u64) -> u64 {
        ((u128::from(self.word(i)) * u128::from(P)) >> 64) as u64
    }
}

/// Modulo p, of numbers of which one is below 2⁶¹ and the other below 2⁶⁴.
#[inline(always)]
fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    // Twice 61 bits and what is above: 2⁶¹ is 1.
    let low = product as u64 & P;
    let middle = (product >> 61) as u64 & P;
    let high = (product >> 122) as u64;
    reduced(low + middle + high)
}

#[inline(always)]
fn plus(a: u64, b: u64) -> u64 {
    reduced(a + b)
}

/// Below p, of a number below 2⁶³.
#[inline(always)]
fn reduced(sum: u64) -> u64 {
    let folded = (sum & P) + (sum >> 61);
    if folded >= P { folded - P } else { folded }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = String;

    /// By its name.
    fn from_str(name: &str) -> Result<Family, String> {
        let found = Family::ALL.into_iter().find(|family| family.name() == name);
        let known = || Family::ALL.map(Family::name).join(", ");
        found.ok_or_else(|| format!("no family is called `{name}`; there are {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bits::fastrange;

    type KeyOf = fn(u64) -> u64;

    /// Keys with which to try a family: at random, in a row, in steps, and apart in high bits
    /// alone.
    const KEYS: [(&str, KeyOf); 4] = [
        ("random", mix64),
        ("consecutive", |i| i),
        ("strided", |i| i << 32 | 7),
        ("high bits", |i| i << 56),
    ];

    #[test]
    fn arithmetic_modulo_the_prime_is_exact() {
        let near = [0, 1, 2, P - 1, P - 2, 1 << 60, P / 2];
        let random = (0..200).map(|i| mix64(i) % P);
        let numbers: Vec<u64> = near.into_iter().chain(random).collect();
        let exact = |x: u128| (x % u128::from(P)) as u64;
        for &a in &numbers {
            for &b in &numbers {
                assert_eq!(times(a, b), exact(u128::from(a) * u128::from(b)));
                assert_eq!(plus(a, b), exact(u128::from(a) + u128::from(b)));
            }
            assert_eq!(
                times(a, u64::MAX),
                exact(u128::from(a) * u128::from(u64::MAX))
            );
        }
    }

    /// The mean over 100 000 functions of the rate of 64 keys in 4096 numbers is within the bound,
    /// by five standard errors.
    #[test]
    fn each_family_keeps_its_bound_in_the_mean() {
        const FUNCTIONS: u64 = 100_000;
        let (n, numbers) = (64, 4096);
        for family in Family::ALL {
            for (name, key) in KEYS {
                let (mut sum, mut squares) = (0.0, 0.0);
                for seed in 0..FUNCTIONS {
                    let seed = mix64(seed);
                    let number = |i| fastrange(family.hash_number(seed, key(i)), numbers).0;
                    let mut held = [0u64; 64];
                    (0..n).for_each(|i| held[(number(i) / 64) as usize] |= 1 << (number(i) % 64));
                    let asked = (n..n + 16).map(number);
                    let hits = asked.filter(|x| held[(x / 64) as usize] >> (x % 64) & 1 == 1);
                    let rate = hits.count() as f64 / 16.0;
                    (sum, squares) = (sum + rate, squares + rate * rate);
                }
                let mean = sum / FUNCTIONS as f64;
                let error = ((squares / FUNCTIONS as f64 - mean * mean) / FUNCTIONS as f64).sqrt();
                let bound = n as f64 * family.collision_bound(numbers);
                println!("{family}, {name}: {mean:.4} ± {error:.4}, {bound:.4} at most");
                assert!(
                    mean <= bound + 5.0 * error,
                    "{family}, {name}: {mean}, {bound}"
                );
                let is_random = name == "random";
                assert!(
                    !is_random || mean > 0.9 / 64.0,
                    "{family}: {mean} is no rate"
                );
            }
        }
    }

    /// Families of more than pairs: a million keys in 2³² numbers collide as often as chance has
    /// it.
    #[test]
    fn a_million_keys_collide_as_chance_has_it() {
        for family in [Family::Tabulation, Family::FourWise] {
            for (name, key) in &KEYS[..2] {
                let numbers = (0..1_000_000).map(|i| family.hash_number(7, key(i)) >> 32);
                let distinct = numbers.collect::<HashSet<_>>().len();
                let collisions = (1_000_000 - distinct) as f64;
                assert!(
                    (collisions - 116.4).abs() < 4.0 * 116.4f64.sqrt(),
                    "{family}, {name}: {collisions}"
                );
            }
        }
    }

    #[test]
    fn a_single_function_of_a_weak_family_can_be_terrible() {
        // As in the documentation; a mixer on the same keys is not.
        let worst = |hash: &dyn Fn(u64, u64) -> u64| {
            let rate = |seed: u64| {
                let number = |i: u64| fastrange(hash(seed, i << 20), 4096 * 256).0;
                let held: HashSet<u64> = (0..4096).map(number).collect();
                (4096..8192).filter(|&i| held.contains(&number(i))).count() as f64 / 4096.0
            };
            (0..400).map(rate).fold(0.0, f64::max)
        };
        for family in [
            Family::MultiplyShift,
            Family::MultiplyAddShift,
            Family::PrimeField,
        ] {
            let worst = worst(&|seed, x| family.hash_number(seed, x));
            println!("{family}: {worst:.3} at worst");
            assert!(worst > 0.1, "{family}: {worst}");
        }
        let mixer = worst(&|seed, x| mix64(mix64(x) ^ seed));
        assert!(mixer < 0.01, "{mixer}");
    }

    #[test]
    fn strings_of_bytes_are_told_apart() {
        // Zeros of all lengths, which a polynomial without the length takes for one, and words that
        // differ in one bit.
        let mut strings: Vec<Vec<u8>> = (0..100).map(|n| vec![0; n]).collect();
        for bit in 0..8 * 40 {
            let mut string = vec![0; 40];
            string[bit / 8] ^= 1 << (bit % 8);
            strings.push(string);
        }
        // Eight bytes are the number itself: no constant may stand for another string.
        strings.extend((1..100u64).map(|number| number.to_le_bytes().to_vec()));
        for family in Family::ALL {
            for seed in 0..100 {
                let hashes: HashSet<u64> =
                    strings.iter().map(|s| family.hash_bytes(seed, s)).collect();
                assert_eq!(hashes.len(), strings.len(), "{family}, seed {seed}");
            }
        }
        assert!(polynomial(5, b"1234567") == 5 * (8 * 5 + u64::from_le_bytes(*b"1234567\0")));
    }

    #[test]
    fn names_are_read_back() {
        for family in Family::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
        }
        let told = "xxh3".parse::<Family>().unwrap_err();
        assert!(
            told.contains("xxh3") && told.contains("four-wise"),
            "{told}"
        );
    }
}
