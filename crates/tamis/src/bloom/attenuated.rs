//! The attenuated Bloom filter: which neighbour leads to an object, and how far it is.
//!
//! The essay is at [`Attenuated`].

use std::collections::BTreeMap;

use crate::bits::{low_mask, positions};
use crate::bloom::Bloom;
use crate::config::Config;
use crate::error::{BuildError, Full, MergeError};
use crate::filter::{Filter, Insert, Kind};
use crate::math;

/// A node's view of a network: its own objects, and what lies beyond each neighbour, by distance.
///
/// ```
/// use tamis::Attenuated;
///
/// // Up to 1000 objects at a distance, at 1 % of false positives; four hops are told apart.
/// let mut nodes: Vec<Attenuated> = vec![Attenuated::new(1000, 0.01, 4)?; 3];
/// nodes[2].insert_local(0x5eed_c0ff_ee15_900d)?;
///
/// // A line of three nodes: 0 – 1 – 2. Each edge is named by the neighbour's number.
/// for _round in 0..4 {
///     for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
///         let message = nodes[from].message(to as u64);
///         nodes[to].receive(from as u64, &message)?;
///     }
/// }
/// assert_eq!(nodes[0].nearest(0x5eed_c0ff_ee15_900d), Some((1, 2)), "by way of 1, two hops");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// Every node of a network keeps, for each neighbour, D Bloom filters: level i holds what lies i
/// hops beyond that neighbour. Level 0 is the neighbour's own set; deeper levels unite ever more
/// sets, so their answers grow weaker with distance: they are *attenuated*.
///
/// ```text
///                x₀          x₁               x₂          the same k places in every level
///                 ↓           ↓                ↓
///   an edge  … │00101101│01100100│00000000│00110101│ …    a byte for each place,
///                                                         a bit for each level
///              & all k  →  00100100                       found at levels 2 and 5:
///                                                         believed 3 hops away
/// ```
///
/// One byte holds all levels of a place, so a lookup reads k bytes for an edge, whatever the
/// depth.
///
/// # Spreading
///
/// A node tells a neighbour what it has and what it heard from its *other* neighbours, one level
/// deeper, cut at D: [`message`](Attenuated::message) and [`receive`](Attenuated::receive). After
/// D rounds every object within D hops is found at no more than its true distance, because a
/// shortest path never turns back. Loops and false positives can make an object seem nearer,
/// never farther.
///
/// Bits cannot be taken back. To remove objects, [`replace_local`](Attenuated::replace_local) the
/// node's own set by one without them; messages replace what they sent before, so the change
/// spreads like an insertion.
///
/// # Cost
///
/// m bytes for each edge, whatever the depth: at D = 8 the D·m bits of the levels, at D = 4 twice
/// those. A message has 16 bytes more, which tell its shape. A level of fill φ errs with φᵏ, and
/// some level of an edge with 1 − Π(1 − φᵢᵏ) (`math::attenuated_fpr`). Level i unites up to
/// degreeⁱ sets, so size the filter for the deepest level that is to be believed, and look at
/// [`overfull`](Attenuated::overfull).
///
/// # When to choose it
///
/// To route requests in a network without a directory: most objects that are wanted are near. It
/// is no set and no file, so it is not among the [`KINDS`](crate::KINDS).
///
/// # Bibliography
///
/// - Rhea, Kubiatowicz, *Probabilistic location and routing*, 2002: the idea, for the storage
///   network of Berkeley.
#[derive(Clone, Debug)]
pub struct Attenuated {
    local: Bloom,
    /// For each neighbour a byte for each place, bit i of it for level i.
    edges: BTreeMap<u64, Vec<u8>>,
    depth: u32,
}

/// Bytes that tell a message's shape.
const HEAD: usize = 16;

impl Attenuated {
    /// A level as full as this answers too often: at k = 7, with 2.8 % instead of 0.8 %.
    pub const CROWDED: f64 = 0.6;

    /// A node without objects and neighbours, whose levels hold `keys` objects at a rate of
    /// `fpr`; `depth` levels, 1 to 8.
    ///
    /// Nodes exchange messages only when all three are the same.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the depth or the size is not possible.
    pub fn new(keys: u64, fpr: f64, depth: u32) -> Result<Attenuated, BuildError> {
        if !(1..=8).contains(&depth) {
            return Err(BuildError::parameter(
                "depth",
                depth,
                "a whole number from 1 to 8",
            ));
        }
        Ok(Attenuated {
            local: Bloom::build(&Config::new(keys).fpr(fpr), &mut [])?,
            edges: BTreeMap::new(),
            depth,
        })
    }

    /// How many levels an edge has.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The node's own objects.
    pub fn local(&self) -> &Bloom {
        &self.local
    }

    /// The names of the edges that something was received from, in order.
    pub fn edges(&self) -> impl Iterator<Item = u64> {
        self.edges.keys().copied()
    }

    /// Adds an object of this node.
    ///
    /// # Errors
    ///
    /// None today; a Bloom filter is never [`Full`].
    pub fn insert_local(&mut self, hash: u64) -> Result<(), Full> {
        self.local.insert(hash)
    }

    /// Replaces the node's own set, to be rid of objects.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when it has another shape than the one before.
    pub fn replace_local(&mut self, local: Bloom) -> Result<(), MergeError> {
        MergeError::unless_equal("bits", self.local.bits(), local.bits())?;
        MergeError::unless_equal("k", u64::from(self.local.k()), u64::from(local.k()))?;
        self.local = local;
        Ok(())
    }

    /// What a message begins with: the bits as 8 bytes, `k` and the depth as 4 each, the lowest
    /// first.
    fn head(&self) -> [u8; HEAD] {
        let [bits, k, depth] = [
            self.local.bits(),
            u64::from(self.local.k()),
            u64::from(self.depth),
        ];
        u128::to_le_bytes(u128::from(bits) | u128::from(k) << 64 | u128::from(depth) << 96)
    }

    /// What to send to a neighbour: the shape, then this node's set, and what the other edges
    /// told, a level deeper. A byte for each place.
    pub fn message(&self, edge: u64) -> Vec<u8> {
        let mut whole = self.head().to_vec();
        whole.resize(HEAD + self.local.bits() as usize, 0);
        let message = &mut whole[HEAD..];
        for (_, levels) in self.edges.iter().filter(|(name, _)| **name != edge) {
            for (byte, heard) in message.iter_mut().zip(levels) {
                *byte |= heard;
            }
        }
        // Truncated: what was at the last level is now out of sight.
        let seen = u8::MAX >> (8 - self.depth);
        let bits = self.local.words.iter();
        let bits = bits.flat_map(|word| (0..64).map(move |bit| (word >> bit & 1) as u8));
        for (byte, own) in message.iter_mut().zip(bits) {
            *byte = (*byte << 1 | own) & seen;
        }
        whole
    }

    /// Takes a neighbour's [`message`](Attenuated::message) in place of its last one.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when it is from a node of another shape, or no message; nothing has changed
    /// then.
    pub fn receive(&mut self, edge: u64, message: &[u8]) -> Result<(), MergeError> {
        let expected = self.local.bits() + HEAD as u64;
        let bytes = message.len() as u64;
        let Some((head, levels)) = message.split_first_chunk::<HEAD>() else {
            return MergeError::unless_equal("the message's bytes", expected, bytes);
        };
        let [ours, theirs] = [self.head(), *head].map(u128::from_le_bytes);
        for (name, from, width) in [("bits", 0, 64), ("k", 64, 32), ("depth", 96, 32)] {
            let field = |head: u128| (head >> from) as u64 & low_mask(width);
            MergeError::unless_equal(name, field(ours), field(theirs))?;
        }
        MergeError::unless_equal("the message's bytes", expected, bytes)?;
        let deepest = levels.iter().fold(0, |all, byte| all | byte);
        let depth = u8::BITS - deepest.leading_zeros();
        MergeError::unless_equal(
            "depth",
            u64::from(self.depth),
            u64::from(depth.max(self.depth)),
        )?;
        self.edges.insert(edge, levels.to_vec());
        Ok(())
    }

    /// Forgets what a neighbour told; `false` where there was nothing.
    pub fn disconnect(&mut self, edge: u64) -> bool {
        self.edges.remove(&edge).is_some()
    }

    /// The levels of an edge that have all bits of a hash.
    #[inline(always)]
    fn levels(&self, edge: &[u8], hash: u64) -> u8 {
        let mut found = u8::MAX;
        for place in positions(hash, self.local.bits(), self.local.k()) {
            found &= edge[place as usize];
            if found == 0 {
                break;
            }
        }
        found
    }

    /// The edges that an object may be reached by, with the distance in hops that each believes,
    /// 1 to `depth`; never more than the true one.
    pub fn distances(&self, hash: u64) -> impl Iterator<Item = (u64, u32)> {
        self.edges.iter().filter_map(move |(&name, edge)| {
            let levels = self.levels(edge, hash);
            (levels != 0).then(|| (name, levels.trailing_zeros() + 1))
        })
    }

    /// The edge of the least distance, and that distance; of equal ones the edge of the lowest
    /// name. `None` where no edge knows the object. Ask [`local`](Attenuated::local) first.
    pub fn nearest(&self, hash: u64) -> Option<(u64, u32)> {
        self.distances(hash).min_by_key(|&(_, distance)| distance)
    }

    /// The share of set bits in each level of an edge; `None` where nothing was received from it.
    pub fn fills(&self, edge: u64) -> Option<Vec<f64>> {
        let levels = self.edges.get(&edge)?;
        let ones = |level: u32| levels.iter().filter(|&byte| byte >> level & 1 == 1).count();
        let fill = |level| ones(level) as f64 / levels.len() as f64;
        Some((0..self.depth).map(fill).collect())
    }

    /// The false-positive rate of each level of an edge, φᵏ.
    pub fn fprs(&self, edge: u64) -> Option<Vec<f64>> {
        let k = self.local.k() as i32;
        Some(self.fills(edge)?.iter().map(|fill| fill.powi(k)).collect())
    }

    /// How often an edge claims an object that none of its levels has.
    pub fn fpr(&self, edge: u64) -> Option<f64> {
        Some(math::attenuated_fpr(&self.fills(edge)?, self.local.k()))
    }

    /// The edges and levels that are fuller than `limit`, such as
    /// [`CROWDED`](Attenuated::CROWDED): build larger filters, or believe these levels less.
    pub fn overfull(&self, limit: f64) -> Vec<(u64, u32)> {
        let of_edge = |edge| {
            let fills = self.fills(edge).unwrap_or_default();
            (0..)
                .zip(fills)
                .filter(move |&(_, fill)| fill > limit)
                .map(move |(level, _)| (edge, level))
        };
        self.edges().flat_map(of_edge).collect()
    }

    /// Every byte held on the heap for bits: the node's own set, and the levels of its edges.
    pub fn size_in_bytes(&self) -> usize {
        self.local.size_in_bytes() + self.edges.values().map(Vec::capacity).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    /// Object number `i` of a node.
    fn object(node: usize, i: u64) -> u64 {
        mix64((node as u64) << 32 | i)
    }

    /// A random graph with so many objects at each node, told about for as many rounds as there
    /// are levels.
    fn network(nodes: usize, objects: u64, depth: u32) -> (Vec<Attenuated>, Vec<Vec<usize>>) {
        let mut neighbours = vec![Vec::new(); nodes];
        let mut join = |a: usize, b: usize| {
            if a != b && !neighbours[a].contains(&b) {
                neighbours[a].push(b);
                neighbours[b].push(a);
            }
        };
        for node in 1..nodes {
            join(node, (mix64(node as u64) % node as u64) as usize);
            if node % 3 == 0 {
                join(node, (mix64(!(node as u64)) % nodes as u64) as usize);
            }
        }
        let mut all = vec![Attenuated::new(60 * objects, 0.01, depth).unwrap(); nodes];
        for (node, filter) in all.iter_mut().enumerate() {
            (0..objects).for_each(|i| filter.insert_local(object(node, i)).unwrap());
        }
        for _ in 0..depth {
            let before = all.clone();
            for (node, filter) in all.iter_mut().enumerate() {
                for &from in &neighbours[node] {
                    let message = before[from].message(node as u64);
                    filter.receive(from as u64, &message).unwrap();
                }
            }
        }
        (all, neighbours)
    }

    /// Hops from a node to all.
    fn hops(neighbours: &[Vec<usize>], from: usize) -> Vec<u32> {
        let mut hops = vec![u32::MAX; neighbours.len()];
        let mut queue = std::collections::VecDeque::from([from]);
        hops[from] = 0;
        while let Some(node) = queue.pop_front() {
            for &next in &neighbours[node] {
                if hops[next] == u32::MAX {
                    hops[next] = hops[node] + 1;
                    queue.push_back(next);
                }
            }
        }
        hops
    }

    #[test]
    fn every_object_within_reach_is_found_at_no_more_than_its_distance() {
        for depth in [1, 4, 8] {
            let (all, neighbours) = network(60, 20, depth);
            let (mut exact, mut asked) = (0u32, 0u32);
            for (node, filter) in all.iter().enumerate() {
                let hops = hops(&neighbours, node);
                for (owner, &hops) in hops
                    .iter()
                    .enumerate()
                    .filter(|(_, hops)| (1..=depth).contains(hops))
                {
                    for i in 0..20 {
                        let (edge, distance) = filter.nearest(object(owner, i)).unwrap();
                        assert!(distance <= hops && neighbours[node].contains(&(edge as usize)));
                        exact += u32::from(distance == hops);
                        asked += 1;
                    }
                }
            }
            assert!(
                exact * 10 > asked * 9,
                "{depth} levels: {exact} of {asked} exact"
            );
        }
    }

    #[test]
    fn each_level_errs_as_its_fill_says() {
        let (all, neighbours) = network(60, 200, 4);
        let (mut hits, mut expected, mut any) = ([0u64; 4], [0.0; 4], (0u64, 0.0));
        let queries = 20_000u64;
        for (node, filter) in all.iter().enumerate() {
            let edge = neighbours[node][0] as u64;
            for (sum, fpr) in expected.iter_mut().zip(filter.fprs(edge).unwrap()) {
                *sum += fpr;
            }
            any.1 += filter.fpr(edge).unwrap();
            for i in 0..queries {
                let found = filter.levels(&filter.edges[&edge], object(1 << 20 | node, i));
                (0..4).for_each(|level| hits[level] += u64::from(found >> level & 1));
                any.0 += u64::from(found != 0);
            }
        }
        let check = |hits: u64, expected: f64, what: &str| {
            let (low, high) = math::binomial_interval(60 * queries, expected / 60.0, 1e-9);
            assert!(
                (low..=high).contains(&hits),
                "{what}: {hits}, {low} to {high}"
            );
        };
        for level in 0..4 {
            check(hits[level], expected[level], &format!("level {level}"));
        }
        // Levels that share keys err together, so the sum over levels is a bound.
        let (_, high) = math::binomial_interval(60 * queries, any.1 / 60.0, 1e-9);
        assert!(
            any.0 <= high && any.0 >= hits[3],
            "{} of at most {high}",
            any.0
        );
    }

    #[test]
    fn what_leaves_a_node_leaves_the_network() {
        let (mut all, _) = network(2, 5, 2);
        assert_eq!(all[0].nearest(object(1, 0)), Some((1, 1)));
        let empty = Attenuated::new(300, 0.01, 2).unwrap().local;
        all[1].replace_local(empty).unwrap();
        let message = all[1].message(0);
        all[0].receive(1, &message).unwrap();
        assert_eq!(all[0].nearest(object(1, 0)), None);
        assert!(all[0].disconnect(1) && !all[0].disconnect(1) && all[0].fills(1).is_none());
    }

    #[test]
    fn nodes_that_differ_in_one_thing_refuse_each_other_by_its_name() {
        // The first three have 64 bits; the second has another k, the third also another depth.
        let nodes = [(40, 0.5, 4), (2, 1e-4, 4), (2, 1e-4, 3), (1000, 0.5, 4)]
            .map(|(keys, fpr, depth)| Attenuated::new(keys, fpr, depth).unwrap());
        let shape = |node: &Attenuated| (node.local.bits(), node.local.k(), node.depth);
        for (a, ours) in nodes.iter().enumerate() {
            for (b, theirs) in nodes.iter().enumerate() {
                let mut node = ours.clone();
                let answer = node.receive(1, &theirs.message(0));
                let (x, y) = (shape(ours), shape(theirs));
                let name = match () {
                    () if x.0 != y.0 => "in bits (",
                    () if x.1 != y.1 => "in k (",
                    () if x.2 != y.2 => "in depth (",
                    () => {
                        assert!(a == b && answer.is_ok());
                        continue;
                    }
                };
                let error = answer.unwrap_err().to_string();
                assert!(error.contains(name) && node.edges.is_empty(), "{error}");
            }
        }
        assert_eq!([0, 1, 2].map(|i| shape(&nodes[i]).0), [64; 3]);
    }

    #[test]
    fn crowded_levels_are_named_and_foreign_messages_refused() {
        let mut node = Attenuated::new(100, 0.01, 2).unwrap();
        let places = node.local.bits() as usize;
        let message = |levels: Vec<u8>| [node.head().to_vec(), levels].concat();
        let mut levels = vec![0b10; places];
        levels[..places / 4].fill(0b01);
        let (good, long, deep) = (
            message(levels),
            message(vec![0; places + 64]),
            message(vec![0b100; places]),
        );
        node.receive(7, &good).unwrap();
        assert_eq!(
            node.fills(7),
            Some(vec![
                (places / 4) as f64 / places as f64,
                1.0 - (places / 4) as f64 / places as f64
            ])
        );
        assert_eq!(node.overfull(Attenuated::CROWDED), [(7, 1)]);
        for (foreign, what) in [
            (long, "the message's bytes"),
            (deep, "depth"),
            (Vec::new(), "the message's bytes"),
            (good[..HEAD - 1].to_vec(), "the message's bytes"),
            (good[..good.len() - 1].to_vec(), "the message's bytes"),
        ] {
            let error = node.receive(7, &foreign).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        assert_eq!(&node.edges[&7], &good[HEAD..], "nothing has changed");
        assert!(
            node.replace_local(Attenuated::new(1000, 0.01, 2).unwrap().local)
                .is_err()
        );
        for depth in [0, 9, u32::MAX] {
            assert!(
                Attenuated::new(100, 0.01, depth)
                    .unwrap_err()
                    .to_string()
                    .contains("depth")
            );
        }
    }
}
