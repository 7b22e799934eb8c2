use super::*;
use crate::bits::mix64;

#[test]
fn widths_fill_the_array_and_never_grow() {
    for array in 1..=512 {
        let width = |slot, slots| {
            let (width, longer) = widths(array, slots);
            width + u32::from(slot < longer)
        };
        for slots in 1..=array {
            let sum: u32 = (0..slots).map(|slot| width(slot, slots) + 1).sum();
            assert!(sum == array || widths(array, slots) == (CAP, 0) && sum < array);
            for slot in 0..slots {
                let law = ((array - slot).div_ceil(slots) - 1).min(CAP);
                assert!(
                    width(slot, slots) == law,
                    "slot {slot} of {slots} in {array}"
                );
                assert!(slot == 0 || width(slot, slots) <= width(slot - 1, slots));
                assert!(slots == array || width(slot, slots + 1) <= width(slot, slots));
            }
        }
    }
}

/// Random additions and removals of members, with repeats, against an exact multiset.
fn follow_a_multiset<const N: usize>(chains: u32, removable: bool, high: usize, seed: u64) {
    let shape = Shape::<N> { chains, removable };
    let mut block = [0u8; N];
    let mut members: Vec<(u32, u64)> = Vec::new();
    let mut draw = seed;
    let mut random = || {
        draw += 1;
        mix64(draw)
    };
    let mut growing = true;
    for step in 0..3000 {
        let x = random();
        if members.len() >= high {
            growing = false;
        } else if members.is_empty() {
            growing = true;
        }
        let add = if removable {
            x % 8 < if growing { 5 } else { 3 }
        } else {
            true
        };
        if add || members.is_empty() {
            let repeat = x >> 8 & 7 == 0 && !members.is_empty();
            let key = if repeat {
                members[x as usize / 4096 % members.len()]
            } else {
                ((x >> 20) as u32 % chains, mix64(x))
            };
            let before = block;
            match shape.inserted(&block, key.0, key.1) {
                Some(next) => {
                    block = next;
                    members.push(key);
                }
                None => {
                    assert_eq!(members.len(), shape.array() as usize);
                    assert_eq!(block, before);
                    if !removable {
                        break;
                    }
                }
            }
        } else {
            let key = members.swap_remove(x as usize / 4096 % members.len());
            // The short way writes what a rewrite without the slot would.
            let layout = shape.layout(&block).expect("written by us");
            let first = shape.matches(&block, layout, key.0, key.1).next();
            let mut slots = Vec::new();
            shape.read(&block, &mut slots);
            slots.remove(first.expect("a member is found") as usize);
            let cut = if slots.is_empty() { 0 } else { layout.slots };
            let rewritten = shape.write(&slots, cut).expect("fewer fit");
            block = shape
                .removed(&block, key.0, key.1)
                .expect("a member is found");
            assert_eq!(block, rewritten, "at step {step}");
        }
        let layout = shape
            .layout(&block)
            .expect("a block that was written is read");
        assert_eq!(layout.live as usize, members.len(), "at step {step}");
        if step % 7 == 0 {
            for &(chain, remainder) in &members {
                assert!(shape.contains(&block, chain, remainder), "at step {step}");
            }
        }
        let mut slots = Vec::new();
        shape.read(&block, &mut slots);
        let again = shape.write(&slots, layout.slots).expect("it was there");
        assert_eq!(again, block, "at step {step}");
    }
    if removable {
        for key in members.drain(..) {
            block = shape
                .removed(&block, key.0, key.1)
                .expect("a member is found");
        }
        assert_eq!(block, [0; N], "an empty block starts anew");
    }
}

#[test]
fn members_of_a_block_are_found_whatever_comes_and_goes() {
    for seed in 0..4 {
        let seed = mix64(seed);
        for removable in [false, true] {
            for share in [6, 2, 1] {
                let high = |bits: usize| bits / share;
                follow_a_multiset::<8>(8, removable, high(64), seed);
                follow_a_multiset::<16>(16, removable, high(128), seed);
                follow_a_multiset::<32>(32, removable, high(256), seed);
                follow_a_multiset::<64>(64, removable, high(512), seed);
                follow_a_multiset::<64>(100, removable, high(512), seed);
                follow_a_multiset::<64>(16, removable, high(300), seed);
                follow_a_multiset::<128>(128, removable, high(700), seed);
            }
        }
    }
}

#[test]
fn a_block_errs_as_published_up_to_twice_its_load() {
    let shape = Shape::<48> {
        chains: 64,
        removable: false,
    };
    let blocks = 8000u64;
    let mut table = vec![[0u8; 48]; blocks as usize];
    let mut keys = 0;
    for (load, percent) in [(38, 0.52), (54, 3.24), (80, 15.5)] {
        while keys < load * blocks {
            let x = mix64(keys);
            let block = &mut table[(x % blocks) as usize];
            let (chain, remainder) = ((x >> 20) as u32 % 64, mix64(x));
            *block = shape.inserted(block, chain, remainder).expect("never full");
            keys += 1;
        }
        let mut slots = Vec::new();
        let sum: f64 = table.iter().map(|b| shape.coverage(b, &mut slots)).sum();
        let got = 100.0 * sum / (64 * blocks) as f64;
        assert!(
            (got / percent - 1.0).abs() < 0.05,
            "{got} % at {load} a block"
        );
    }
}

#[test]
fn a_block_without_room_is_refused() {
    let shape = Shape::<64> {
        chains: 64,
        removable: false,
    };
    let mut block = [0; 64];
    for _ in 0..448 {
        block = shape.inserted(&block, 5, 77).expect("there is room");
    }
    assert_eq!(shape.inserted(&block, 5, 77), None);
    assert_eq!(shape.inserted(&block, 6, 77), None);
    assert_eq!(
        shape.count(&block, 5, 1),
        448,
        "no bit of a fingerprint is left"
    );
    assert!(!shape.contains(&block, 4, 77) && !shape.contains(&block, 6, 77));
}

/// The rule that removal rests on: taking out the least specific match instead loses members.
#[test]
fn removing_another_match_than_the_first_would_lose_members() {
    let shape = Shape::<32> {
        chains: 32,
        removable: true,
    };
    let mut lost = [0, 0];
    for last in [false, true] {
        let mut draw = 9;
        let mut block = [0; 32];
        let mut members: Vec<(u32, u64)> = Vec::new();
        for step in 0..20_000 {
            draw += 1;
            let x = mix64(draw);
            if members.len() < 40 + step % 30 {
                let key = ((x >> 20) as u32 % 32, mix64(x));
                block = shape.inserted(&block, key.0, key.1).expect("there is room");
                members.push(key);
                continue;
            }
            let (chain, remainder) = members.swap_remove(x as usize % members.len());
            let layout = shape.layout(&block).expect("written by us");
            let found = shape.matches(&block, layout, chain, remainder).last();
            match found {
                None => lost[usize::from(last)] += 1,
                Some(slot) if last => {
                    // As `removed` would, had the longer slots before it not matched.
                    let mut slots = Vec::new();
                    shape.read(&block, &mut slots);
                    slots.remove(slot as usize);
                    block = shape.write(&slots, layout.slots).expect("fewer fit");
                }
                Some(_) => {
                    block = shape.removed(&block, chain, remainder).expect("it matches");
                }
            }
            let missing = |m: &&(u32, u64)| !shape.contains(&block, m.0, m.1);
            lost[usize::from(last)] += members.iter().filter(missing).count();
        }
    }
    assert_eq!(lost[0], 0);
    assert!(lost[1] > 0, "the control must fail");
}

#[test]
fn bits_that_no_operation_writes_are_refused() {
    let shape = Shape::<64> {
        chains: 64,
        removable: true,
    };
    let block = |bits: &[usize]| {
        let mut block = [0u8; 64];
        for bit in bits {
            block[bit / 8] |= 1 << (bit % 8);
        }
        block
    };
    assert!(shape.layout(&block(&[])).is_some());
    assert!(shape.layout(&block(&[3, 66])).is_some(), "one slot of 0");
    for (bits, why) in [
        (&[3][..], "a chain without an end"),
        (&[70], "end marks without a chain"),
        (&[64], "free slots without a chain"),
        (&[64, 66], "only free slots"),
        (&[3, 64, 66], "free slots that do not end"),
        (&[3, 66, 67 + 25], "a bit after the last fingerprint"),
        (&[3, 65, 66], "a mark of longer slots where none can be"),
    ] {
        assert_eq!(shape.layout(&block(bits)), None, "{why}");
    }
    // A mark that says what the slots alone imply.
    let mut refused = 0;
    let mut block = [0; 64];
    for i in 0..60u64 {
        block = shape.inserted(&block, i as u32, mix64(i)).expect("room");
        // The last slot is a short one, unless all are.
        let fewer = shape.removed(&block, i as u32, mix64(i)).expect("a member");
        let Some(layout) = shape.layout(&fewer).filter(|l| l.extended > 0) else {
            continue;
        };
        let mut marked = fewer;
        set(&mut marked, 65, true);
        set(
            &mut marked,
            shape.header() + layout.offset_of(layout.live),
            true,
        );
        assert_eq!(shape.layout(&marked), None, "{i}");
        refused += 1;
    }
    assert!(refused > 30, "{refused}");
}
