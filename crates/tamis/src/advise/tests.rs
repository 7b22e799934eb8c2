//! Tests of the advice.

use super::*;

fn names(advice: &Advice) -> Vec<&str> {
    advice.choices.iter().map(|c| c.kind.name).collect()
}

#[test]
fn the_counts_are_those_of_the_documentation() {
    let docs = include_str!("../../../../docs/INSTRUCTIONS.md");
    // After its head; rivals follow.
    let table = format!("|---|---|---|---|---|---|\n{INSTRUCTIONS}\n");
    assert!(docs.contains(&table), "run `cargo xtask instructions`");
    let row = docs
        .lines()
        .find(|line| line.starts_with("| `split_block` "));
    let cells: Vec<&str> = row.unwrap().split('|').map(str::trim).collect();
    let (batch, insert) = (cells[4].parse().ok(), cells[5].parse().ok());
    assert!(batch.is_some() && insert.is_some(), "{cells:?}");
    assert_eq!(instructions("split_block"), [batch, insert]);
    assert_eq!(instructions("binary_fuse8")[1], None);
    assert_eq!(instructions("kind"), [None, None]);
}

#[test]
fn every_kind_is_chosen_or_refused_with_a_reason() {
    let mut needs = Needs::new(10_000, 0.01);
    let core = advise(&needs).unwrap();
    assert!(core.choices.iter().all(|c| c.kind.tier == Tier::Core));
    assert!(core.refused.iter().all(|c| c.kind.tier == Tier::Core));
    needs.all = true;
    let advice = advise(&needs).unwrap();
    assert_eq!(advice.choices.len() + advice.refused.len(), KINDS.len());
    assert!(advice.choices.iter().all(|c| !c.why.is_empty()));
    assert!(advice.refused.iter().all(|r| !r.why.is_empty()));
    for choice in &advice.choices {
        let built = choice
            .kind
            .build(&choice.config, &mut hashes(10_000))
            .unwrap();
        assert_eq!(built.size_in_bytes() as f64, choice.bytes, "{choice:?}");
        assert!(choice.exact && choice.kind.can.insert && !choice.kind.can.window);
    }
}

#[test]
fn what_is_needed_decides() {
    let mut needs = Needs::new(100_000, 0.01);
    assert_eq!(names(&advise(&needs).unwrap())[0], "split_block");
    needs.all = true;
    assert_eq!(names(&advise(&needs).unwrap())[0], "split_block_256");
    needs.fixed = true;
    let fixed = advise(&needs).unwrap();
    assert!(fixed.choices.iter().any(|c| !c.kind.can.insert));
    needs.remove = true;
    let removing = advise(&needs).unwrap();
    assert!(removing.choices.iter().all(|c| c.kind.can.remove));
    assert!(names(&removing).contains(&"cuckoo"));
    needs.copies = 9;
    let counting = advise(&needs).unwrap();
    assert!(!names(&counting).contains(&"cuckoo"));
    assert!(counting.choices.iter().all(|c| c.kind.copies >= 9));
    needs.copies = 1000;
    let wide = advise(&needs).unwrap();
    let asked: Vec<String> = wide.choices.iter().map(|c| c.config.to_string()).collect();
    // The first two count without limit; in the third 10 bits tell 1022 copies apart.
    let counting = [
        "multiset:capacity=100000,fpr=0.01",
        "quotient_counting:capacity=100000,fpr=0.01",
        "counting:capacity=100000,fpr=0.01,counter_bits=10",
    ];
    assert_eq!(asked, counting);
    needs.remove = false;
    assert!(names(&advise(&needs).unwrap()).contains(&"counting_minimal"));
    let mut needs = Needs::new(100_000, 0.01);
    needs.grow = true;
    assert!(names(&advise(&needs).unwrap()).contains(&"aleph"));
    let mut needs = Needs::new(100_000, 0.01);
    needs.window = true;
    assert!(
        advise(&needs)
            .unwrap()
            .choices
            .iter()
            .all(|c| c.kind.can.window)
    );
}

#[test]
fn the_smallest_and_the_fastest_are_balanced_and_a_lower_rate_counts() {
    let mut needs = Needs::new(100_000, 0.01);
    needs.fixed = true;
    needs.all = true;
    let advice = advise(&needs).unwrap();
    let balance = |name| {
        let choice = advice.choices.iter().find(|c| c.kind.name == name);
        choice.unwrap().balance(&needs).unwrap()
    };
    let (small, fast) = (balance("ribbon_bumped"), balance("split_block_256"));
    assert!((0.85..1.0).contains(&(small / fast)), "{small} {fast}");
    // The smallest two, and the fastest of all.
    let first = advice.choices.iter().take(3).map(|c| c.kind.name);
    assert!(first.eq(["ribbon_bumped", "ribbon_homogeneous", "split_block_256"]));
    // It takes a third more space than the smallest, but errs 2.56 times less than asked.
    assert!(balance("binary_fuse8") < 1.1 * small);
    let ranked = advice.choices.iter().filter_map(|c| c.balance(&needs));
    assert!(ranked.is_sorted());
}

#[test]
fn each_reason_differs_and_the_runner_up_is_compared() {
    let needs = Needs::new(100_000, 0.01);
    let advice = advise(&needs).unwrap();
    let mut reasons: Vec<&str> = advice.choices.iter().map(|c| &*c.why).collect();
    assert!(reasons.len() >= 5, "{reasons:?}");
    reasons.sort_unstable();
    let told = reasons.len();
    reasons.dedup();
    assert_eq!(reasons.len(), told);
    let removing = advice.choices.iter().find(|c| c.kind.can.remove).unwrap();
    assert!(removing.why.contains("can also remove"), "{}", removing.why);
    let runner_up = advice.runner_up(&needs).unwrap();
    let [first, second] = [0, 1].map(|i| format!("`{}`", advice.choices[i].kind.name));
    assert!(
        runner_up.contains(&first) && runner_up.contains(&second),
        "{runner_up}"
    );
    assert!(runner_up.contains("% space"), "{runner_up}");
}

#[test]
fn a_preference_is_kept() {
    let mut needs = Needs::new(50_000, 0.001);
    needs.prefer = Prefer::Space;
    let space = advise(&needs).unwrap();
    let bits: Vec<f64> = space.choices.iter().map(|c| c.bits_per_key).collect();
    assert!(bits.is_sorted(), "{bits:?}");
    assert!(space.choices[0].why.contains("smallest"));
    needs.prefer = Prefer::Speed;
    let speed = advise(&needs).unwrap();
    assert!(speed.choices[0].why.contains("fewest"), "{speed:?}");
}

#[test]
fn sizes_of_many_keys_are_near_those_of_one_that_is_built() {
    for keys in [300_000, 1_000_000] {
        let mut needs = Needs::new(keys, 0.01);
        needs.fixed = true;
        for choice in advise(&needs).unwrap().choices {
            let built = choice
                .kind
                .build(&choice.config, &mut hashes(keys))
                .unwrap();
            let ratio = choice.bytes / built.size_in_bytes() as f64;
            let most = if choice.exact { 1e-9 } else { 0.06 };
            assert!((ratio - 1.0).abs() < most, "{} {ratio}", choice.kind.name);
        }
    }
}

#[test]
fn little_memory_gives_the_lowest_rate_that_fits() {
    let mut needs = Needs::new(100_000, 1e-4);
    needs.most_bytes = Some(100_000);
    let advice = advise(&needs).unwrap();
    assert!(matches!(
        advice.warnings[0],
        Warning::Memory { most: 100_000, .. }
    ));
    assert!(advice.choices.len() > 3, "{advice:?}");
    for choice in &advice.choices {
        let mut keys = hashes(100_000);
        let built = choice.kind.build(&choice.config, &mut keys).unwrap();
        assert!(built.size_in_bytes() <= 100_000, "{choice:?}");
        assert!(choice.fpr > 2f64.powi(-8), "no filter has less in 8 bits");
    }
    assert!(advice.choices[0].fpr < 0.03, "{advice:?}");
    needs.most_bytes = Some(1_000_000);
    assert_eq!(advise(&needs).unwrap().warnings, []);
    // There is no lowest rate to tell of where nothing fits.
    needs.most_bytes = Some(1);
    let none = Warning::NoRoom { most: 1 };
    assert_eq!(advise(&needs).unwrap().warnings, [none]);
}

#[test]
fn the_wrong_tool_is_called_so() {
    let mut needs = Needs::new(100_000, 0.01);
    for (hit_rate, warned) in [(0.5, false), (0.011, false), (0.009, true), (0.0, true)] {
        needs.hit_rate = Some(hit_rate);
        let warnings = advise(&needs).unwrap().warnings;
        assert_eq!(!warnings.is_empty(), warned, "{hit_rate}: {warnings:?}");
    }
    needs.hit_rate = Some(0.001);
    let Warning::Paradox {
        false_share,
        needed,
    } = advise(&needs).unwrap().warnings[0]
    else {
        panic!("no paradox");
    };
    assert!((false_share - 0.00999 / 0.01099).abs() < 1e-9);
    assert!((needed - 0.001 / 0.999).abs() < 1e-12);
    needs.miss_cost = 20.0;
    assert_eq!(advise(&needs).unwrap().warnings, []);
    needs.hit_rate = Some(0.95);
    let hits = Warning::MostlyHits { hit_rate: 0.95 };
    assert_eq!(advise(&needs).unwrap().warnings, [hits]);

    let few = advise(&Needs::new(100, 0.01)).unwrap().warnings;
    assert!(matches!(few[0], Warning::Few { bytes: 800.0 }), "{few:?}");
    let mut short = Needs::new(1_000_000, 0.01);
    short.key_bytes = Some(1.0);
    let short = advise(&short).unwrap().warnings;
    assert!(matches!(short[0], Warning::Exact { known: true, .. }));

    let floor = advise(&Needs::new(1 << 40, 1e-9)).unwrap();
    assert_eq!(
        floor.warnings[0],
        Warning::HashFloor {
            asked: 1e-9,
            least: 2f64.powi(-20)
        }
    );
    assert!(!floor.choices.is_empty());
    assert!(floor.warnings.iter().all(|w| !w.to_string().is_empty()));
}

#[test]
fn numbers_that_are_none_are_named() {
    let with = |change: fn(&mut Needs)| {
        let mut needs = Needs::new(10, 0.01);
        change(&mut needs);
        advise(&needs).map(|_| ()).map_err(|e| e.to_string())
    };
    for (change, at_fault) in [
        ((|n| n.fpr = f64::NAN) as fn(&mut Needs), "NaN"),
        (|n| n.hit_rate = Some(1.5), "hit_rate"),
        (|n| n.key_bytes = Some(0.0), "key_bytes"),
        (|n| n.miss_cost = -1.0, "miss_cost"),
    ] {
        let message = with(change).unwrap_err();
        assert!(message.contains(at_fault), "{message}");
    }
    assert_eq!(with(|n| n.keys = 0), Ok(()));
    assert_eq!(with(|n| n.keys = u64::MAX), Ok(()));
}

#[test]
fn no_choice_has_a_higher_rate_than_was_asked_for() {
    for (keys, fpr) in [
        (1000, 0.01),
        (20_000, 0.01),
        (1_000_000, 0.01),
        (20_000, 0.001),
    ] {
        let mut needs = Needs::new(keys, fpr);
        needs.all = true;
        for choice in advise(&needs).unwrap().choices {
            assert!(choice.fpr <= fpr, "{}: {}", choice.kind.name, choice.fpr);
        }
    }
}

#[test]
fn maps_and_halves_can_be_asked_for() {
    let mut needs = Needs::new(10_000, 0.01);
    (needs.map, needs.all) = (true, true);
    let maps = advise(&needs).unwrap().choices;
    assert!(!maps.is_empty() && maps.iter().all(|choice| choice.kind.can.map));
    (needs.map, needs.halve) = (false, true);
    let halves = advise(&needs).unwrap().choices;
    let halved = |choice: &Choice| choice.kind.can.halve && choice.kind.can.insert;
    assert!(!halves.is_empty() && halves.iter().all(halved));
}

#[test]
fn the_usual_kind_comes_first_and_is_near_the_best() {
    for fixed in [true, false] {
        for fpr in [0.1, 0.01, 1.0 / 256.0, 0.001, 1e-4] {
            let mut needs = Needs::new(100_000, fpr);
            needs.fixed = fixed;
            let choices = advise(&needs).unwrap().choices;
            let usual = usual(fpr, fixed);
            assert_eq!(choices[0].kind.name, usual.kind, "{fixed} {fpr}");
            assert!(choices[0].why.contains(usual.why), "{}", choices[0].why);
            let balances = choices.iter().map(|c| c.balance(&needs).unwrap());
            let best = balances.reduce(f64::min).unwrap();
            let ours = choices[0].balance(&needs).unwrap();
            assert!(ours <= 1.1 * best, "{} {fpr}: {ours} {best}", usual.kind);
            // Where more is needed, or another ranking is asked for, the ranking alone decides.
            needs.merge = true;
            let ranked = advise(&needs).unwrap().choices;
            assert!(ranked.iter().filter_map(|c| c.balance(&needs)).is_sorted());
        }
    }
}

#[test]
fn many_copies_are_counted_by_what_can_and_the_others_say_how_many_they_are_sure_of() {
    let mut needs = Needs::new(10_000, 0.01);
    (needs.copies, needs.remove) = (1000, true);
    let advice = advise(&needs).unwrap();
    assert_eq!(names(&advice), ["quotient_counting"]);
    assert!(advice.choices[0].why.contains("the only one"));
    needs.all = true;
    let advice = advise(&needs).unwrap();
    let counting = advice.choices.iter().find(|c| c.kind.name == "counting");
    // 2¹⁰ − 1 stands for more as well.
    assert!(
        counting
            .unwrap()
            .config
            .to_string()
            .contains("counter_bits=10")
    );
    let of = |name| advice.refused.iter().find(|r| r.kind.name == name).unwrap();
    assert!(of("rank_indexed").why.contains("sure to tell only 300"));
    needs.copies = 10_000_000;
    let advice = advise(&needs).unwrap();
    let counting = advice.choices.iter().find(|c| c.kind.name == "counting");
    assert!(
        counting
            .unwrap()
            .config
            .to_string()
            .contains("counter_bits=24")
    );
}

#[test]
fn memory_that_holds_no_filter_is_called_too_small() {
    let mut needs = Needs::new(1_000_000, 0.01);
    (needs.remove, needs.most_bytes) = (true, Some(1000));
    let advice = advise(&needs).unwrap();
    assert!(advice.choices.is_empty());
    assert!(matches!(
        advice.warnings[..],
        [Warning::NoRoom { most: 1000 }]
    ));
}
