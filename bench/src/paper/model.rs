//! A TinySet of any geometry: what it answers, without its bits.
//!
//! The shipped filter has blocks of 32, 64 and 128 bytes; the paper's tables have others. This
//! model places keys and cuts blocks by the same rules, so that at a geometry which both offer it
//! gives the same answers to all queries.

use tamis::testing::math;

/// Size of a block, its chains, and the flags in its header, in bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) bits: u32,
    pub(crate) chains: u32,
    pub(crate) flags: u32,
}

impl Geometry {
    fn array(self) -> u32 {
        self.bits - self.chains - self.flags
    }
}

struct Slot {
    fingerprint: u32,
    width: u32,
}

/// Blocks that were filled at once.
pub(crate) struct Model {
    geometry: Geometry,
    blocks: u64,
    /// For each chain of each block, where its slots start.
    starts: Vec<u32>,
    slots: Vec<Slot>,
}

impl Model {
    /// `None` if a block has more keys than bits.
    pub(crate) fn build(geometry: Geometry, blocks: u64, hashes: &mut [u64]) -> Option<Model> {
        // Block, chain and remainder are the leading digits of a hash: in its order, all are in
        // order.
        hashes.sort_unstable();
        let chains = geometry.chains;
        let mut model = Model {
            geometry,
            blocks,
            starts: vec![0; blocks as usize * chains as usize + 1],
            slots: Vec::with_capacity(hashes.len()),
        };
        let block_of = |hash| fastrange(hash, blocks).0;
        for keys in hashes.chunk_by(|&a, &b| block_of(a) == block_of(b)) {
            let (width, longer) = math::tinyset_widths(geometry.array(), keys.len() as u32)?;
            for (i, &key) in keys.iter().enumerate() {
                let (chain, remainder) = model.place(key);
                let width = width + u32::from((i as u32) < longer);
                model.starts[chain + 1] += 1;
                model.slots.push(Slot {
                    fingerprint: prefix(remainder, width),
                    width,
                });
            }
        }
        let mut sum = 0;
        for start in &mut model.starts {
            sum += *start;
            *start = sum;
        }
        Some(model)
    }

    /// Number of the chain among all, and the remainder.
    #[inline(always)]
    fn place(&self, hash: u64) -> (usize, u64) {
        let (block, rest) = fastrange(hash, self.blocks);
        let (chain, rest) = fastrange(rest, u64::from(self.geometry.chains));
        let chains = self.geometry.chains as usize;
        (block as usize * chains + chain as usize, rest)
    }

    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let (chain, remainder) = self.place(hash);
        let slots = self.starts[chain] as usize..self.starts[chain + 1] as usize;
        self.slots[slots]
            .iter()
            .any(|slot| prefix(remainder, slot.width) == slot.fingerprint)
    }
}

fn fastrange(hash: u64, n: u64) -> (u64, u64) {
    let product = u128::from(hash) * u128::from(n);
    ((product >> 64) as u64, product as u64)
}

/// The first bits of a remainder, of which a slot keeps 25 at most.
fn prefix(remainder: u64, bits: u32) -> u32 {
    (remainder >> 1 >> (63 - bits)) as u32
}
