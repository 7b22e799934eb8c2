//! Fourteen laws, each on every registered kind.
//!
//! A kind is tested because it is registered: trials are made by walking [`KINDS`]. A law that
//! does not apply is left out by what the kind can do, never by its name, and
//! [`the_number_of_trials`] knows how many there must be. Seeds are fixed; statistics err once in
//! 10⁹ honest runs. With `TAMIS_BRIEF` set, laws try small sizes and fewer steps, for emulators.
//!
//! | file | laws |
//! |---|---|
//! | `members` | 1 no false negatives, 2 the empty filter, 4 batches |
//! | `rates` | 5 the rate, 6 structured keys |
//! | `changes` | 3 full, 9 removal, 10 merging |
//! | `files` | 7 round trips, 8 damage, 11 golden files |
//! | `limits` | 12 bad parameters, 13 size, 14 names |
//! | `declared` | 14 what a kind is declared to do, it does |
//! | `documented` | 14 what the documentation lists is what there is |
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod changes;
mod declared;
mod documented;
mod files;
mod limits;
mod members;
mod rates;

use libtest_mimic::{Arguments, Trial};
use support::Choice;
use support::counting::Counting;
use tamis::{Capabilities, Config, KINDS, KindInfo};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a law asks of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Insert,
    /// Insertions that are refused at some point, as shown by trying.
    Fill,
    Remove,
    /// Insertions and removals.
    Exchange,
    Count,
    Merge,
    Halve,
    Map,
    Window,
    /// No insertions: all keys are known when it is built.
    Static,
}

type Law = (Needs, &'static str, fn(&'static KindInfo));

/// Every law, or the part of it that has one need.
const LAWS: &[Law] = {
    use Needs::{
        Count, Exchange, Fill, Halve, Insert, Map, Merge, Nothing, Remove, Static, Window,
    };
    &[
        (
            Nothing,
            "law_01_no_false_negatives",
            members::no_false_negatives,
        ),
        (
            Nothing,
            "law_01_after_load_map_clone",
            members::after_load_map_clone,
        ),
        (Insert, "law_01_after_insert", members::after_insert),
        (Static, "law_01_progress", members::progress),
        (Merge, "law_01_after_merge", members::after_merge),
        (
            Nothing,
            "law_02_empty_contains_nothing",
            members::empty_contains_nothing,
        ),
        (
            Fill,
            "law_03_full_changes_nothing",
            changes::full_changes_nothing,
        ),
        (Nothing, "law_04_batch_is_single", members::batch_is_single),
        (
            Insert,
            "law_04_insert_batch_is_single",
            members::insert_batch_is_single,
        ),
        (Nothing, "law_05_measured_rate", rates::measured_rate),
        (Nothing, "law_06_structured_keys", rates::structured_keys),
        (Static, "law_06_numbers_as_hashes", rates::numbers_as_hashes),
        (Nothing, "law_07_round_trip", files::round_trip),
        (Static, "law_08_forged_len", files::forged_len),
        (Insert, "law_07_copy_on_write", files::copy_on_write),
        (
            Nothing,
            "law_08_damage_is_refused",
            files::damage_is_refused,
        ),
        (Remove, "law_09_remove_all", changes::remove_all),
        (
            Exchange,
            "law_09_copies_are_removed",
            changes::copies_are_removed,
        ),
        (Exchange, "law_09_random_steps", changes::random_steps),
        (Count, "law_09_counts", changes::counts),
        (
            Count,
            "law_09_counts_reach_the_limit",
            changes::counts_reach_the_limit,
        ),
        (Merge, "law_10_merge_holds_both", changes::merge_holds_both),
        (
            Merge,
            "law_10_merge_is_the_union",
            changes::merge_is_the_union,
        ),
        (
            Merge,
            "law_10_mismatched_parameters",
            changes::mismatched_parameters,
        ),
        (Nothing, "law_10_refusals", changes::merge_refusals),
        (
            Nothing,
            "law_11_same_input_same_bytes",
            files::same_input_same_bytes,
        ),
        (Nothing, "law_11_golden", files::golden),
        (Nothing, "law_12_bad_parameters", limits::bad_parameters),
        (Nothing, "law_12_advised_rate", limits::advised_rate),
        (Insert, "law_12_capacity", limits::capacity),
        (
            Nothing,
            "law_13_size_is_the_truth",
            limits::size_is_the_truth,
        ),
        (Nothing, "law_13_size_by_formula", limits::size_by_formula),
        (Nothing, "law_14_names", limits::names),
        (Nothing, "law_14_declared_traits", declared::traits),
        (Nothing, "law_14_declared_growth", declared::growth),
        (Count, "law_14_declared_copies", declared::copies),
        (Halve, "law_14_declared_halves", declared::halves),
        (Map, "law_14_declared_maps", declared::maps),
        (Window, "law_14_declared_window", declared::forgets),
        (
            Nothing,
            "law_14_documented_parameters",
            documented::parameters,
        ),
        (Nothing, "law_14_documented_values", documented::values),
    ]
};

/// How many trials a kind has for each thing it can do: written down, so that a law that vanishes
/// is missed.
const TRIALS: [(Needs, usize); 11] = [
    (Needs::Nothing, 20),
    (Needs::Insert, 4),
    (Needs::Fill, 1),
    (Needs::Remove, 1),
    (Needs::Exchange, 2),
    (Needs::Count, 3),
    (Needs::Merge, 4),
    (Needs::Halve, 1),
    (Needs::Map, 1),
    (Needs::Window, 1),
    (Needs::Static, 3),
];

/// Parameters that change how a filter is laid out, each of which has its kind obey the laws again.
const CHOICES: &[(&str, Choice)] = &[("cuckoo", ("semi_sort", 1))];

/// Whether a law speaks of filters; the others speak of a kind and all its parameters.
fn is_of_filters(law: &str) -> bool {
    let of_kinds = ["law_10_refusals", "law_11_golden", "law_12_", "law_14_"];
    !of_kinds.iter().any(|prefix| law.starts_with(prefix))
}

/// The parts of a law that hold between kinds, not for one.
const OF_ALL: &[(&str, fn())] = &[
    ("law_11_golden_variants", files::golden_variants),
    ("law_11_golden_earlier", files::golden_earlier),
    ("law_11_golden_field", files::golden_field),
    ("law_11_golden_removed", files::golden_removed),
    ("law_11_golden_grown", files::golden_grown),
    ("law_11_golden_expanded", files::golden_expanded),
    ("law_11_golden_sealed", files::golden_sealed),
    ("law_11_golden_window", files::golden_window),
    ("law_11_golden_values", files::golden_values),
    ("law_14_ids_and_names_are_unique", limits::unique),
    ("law_14_the_readme_lists_every_kind", limits::readme),
    ("law_14_the_index_lists_every_kind", documented::index),
    ("law_14_the_sources_are_mapped", documented::sources),
];

fn main() {
    if limits::is_child() {
        return;
    }
    let mut trials = Vec::new();
    for info in KINDS {
        let can = info.can;
        for &(needs, name, law) in LAWS {
            if meets(info, can, needs) {
                let trial = |name: String, choice: Option<Choice>| {
                    Trial::test(name, move || {
                        support::choose(choice);
                        law(info);
                        Ok(())
                    })
                };
                trials.push(trial(format!("{}::{name}", info.name), None));
                let choices = CHOICES.iter().filter(|(kind, _)| *kind == info.name);
                for &(kind, choice) in choices.filter(|_| is_of_filters(name)) {
                    let (param, value) = choice;
                    let name = format!("{kind}:{param}={value}::{name}");
                    trials.push(trial(name, Some(choice)));
                }
            }
        }
    }
    for &(name, law) in OF_ALL {
        trials.push(Trial::test(format!("kinds::{name}"), move || {
            support::choose(None);
            law();
            Ok(())
        }));
    }
    let names: Vec<String> = trials.iter().map(|t| t.name().to_string()).collect();
    trials.push(Trial::test("kinds::the_number_of_trials", move || {
        the_number_of_trials(&names);
        Ok(())
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn meets(info: &KindInfo, can: Capabilities, needs: Needs) -> bool {
    match needs {
        Needs::Nothing => true,
        Needs::Insert => can.insert,
        Needs::Fill => can.insert && changes::fills(info),
        Needs::Remove => can.remove,
        Needs::Exchange => can.insert && can.remove,
        Needs::Count => can.count,
        Needs::Merge => can.merge,
        Needs::Halve => can.halve,
        Needs::Map => can.map,
        Needs::Window => can.window,
        Needs::Static => !can.insert,
    }
}

/// Every kind has exactly the trials that its capabilities call for, and every law has a kind
/// that it applies to.
fn the_number_of_trials(names: &[String]) {
    for info in KINDS {
        let can = info.can;
        let expected: usize = TRIALS
            .iter()
            .filter(|&&(needs, _)| meets(info, can, needs))
            .map(|&(_, trials)| trials)
            .sum();
        let prefix = format!("{}::", info.name);
        let got = names.iter().filter(|n| n.starts_with(&prefix)).count();
        assert_eq!(got, expected, "trials of {}, which can {can:?}", info.name);
    }
    for (kind, (param, value)) in CHOICES {
        let of = |prefix: &str, law: &str| names.contains(&format!("{prefix}::{law}"));
        let varied = format!("{kind}:{param}={value}");
        for (_, law, _) in LAWS.iter().filter(|(_, law, _)| is_of_filters(law)) {
            assert_eq!(of(&varied, law), of(kind, law), "{law} of {varied}");
        }
        assert!(of(&varied, "law_01_no_false_negatives"), "{varied}");
    }
    for (_, law, _) in LAWS {
        let suffix = format!("::{law}");
        assert!(
            names.iter().any(|n| n.ends_with(&suffix)),
            "{law} applies to no kind"
        );
    }
    for number in 1..=14 {
        let law = format!("law_{number:02}");
        assert!(names.iter().any(|n| n.contains(&law)), "{law} has no trial");
    }
}

/// Sizes at which arithmetic breaks: every small one, around the powers of two, and two large
/// ones; a larger one still where `TAMIS_LONG` is set.
fn sizes() -> Vec<u64> {
    let around = (7..20).flat_map(|i| [(1 << i) - 1, 1 << i, (1 << i) + 1]);
    // Between powers of two: where binary fuse filters of the published shape cannot be built.
    let named = [3548, 11_520, 12_340, 37_440, 100_000, 1_000_000];
    let long = std::env::var_os("TAMIS_LONG").map(|_| 10_000_000);
    support::tried((0..=100).chain(around).chain(named).chain(long)).collect()
}

/// Configurations of a kind at several rates, those that it offers.
fn rates_of(info: &KindInfo, n: u64) -> Vec<Config> {
    let rates = [0.5, 0.1, 0.01, 1.0 / 256.0, 0.001];
    let offered: Vec<Config> = rates
        .into_iter()
        .filter(|&fpr| support::reaches(info, n, fpr))
        .map(|fpr| support::asked(n).fpr(fpr))
        .collect();
    assert!(
        !offered.is_empty(),
        "{} offers no rate for {n} keys",
        info.name
    );
    offered
}
