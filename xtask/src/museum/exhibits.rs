//! The bugs. Where `history` names a project and a number, it is an issue or a change request of
//! that project; the others are slips that every implementation can make.

use super::Suite::{Conformance, Format, Library, Program, Strikes};
use super::{Change, Exhibit};

const BITS: &str = "crates/tamis/src/bits.rs";
const BLOOM: &str = "crates/tamis/src/bloom/standard.rs";
const COUNTERS: &str = "crates/tamis/src/bloom/counters.rs";
const CUCKOO: &str = "crates/tamis/src/cuckoo/standard.rs";
const FORMAT: &str = "crates/tamis/src/format.rs";
const MOVES: &str = "crates/tamis/src/quotient/table/moves.rs";
const RECORDS: &str = "crates/tamis-cli/src/input/records.rs";
const REPLACE: &str = "crates/tamis/src/file/replace.rs";
const SCALABLE: &str = "crates/tamis/src/growing/scalable.rs";
const SLIDING: &str = "crates/tamis/src/window/sliding.rs";

pub(super) const EXHIBITS: &[Exhibit] = &[
    // Places, sizes and rates.
    Exhibit {
        name: "index-of-31-bits",
        history: "Spark, SPARK-47547: places beyond 2^31 were never used; 1 % asked for, 76 % got",
        plant: &[Change {
            file: BITS,
            right: "fastrange(self.state, self.range)",
            wrong: "fastrange(self.state, self.range.min(1 << 31))",
        }],
        caught_by: (
            Library,
            "bloom::standard::tests::the_probes_of_a_key_fall_anywhere_in_any_range",
        ),
    },
    Exhibit {
        name: "modulus-of-32-bits",
        history: "RedisBloom#9: 2^32 places became 0, and every key was found",
        plant: &[Change {
            file: BITS,
            right: "fastrange(self.state, self.range)",
            wrong: "fastrange(self.state, u64::from(self.range as u32))",
        }],
        caught_by: (
            Library,
            "bloom::standard::tests::the_probes_of_a_key_fall_anywhere_in_any_range",
        ),
    },
    Exhibit {
        name: "low-places-twice-as-often",
        history: "Guava#1119: the remainder of 31 bits fell twice as often on the low third",
        plant: &[Change {
            file: BITS,
            right: "((product >> 64) as u64, product as u64)",
            wrong: "((hash >> 33) % n, product as u64)",
        }],
        caught_by: (Library, "bits::tests::fastrange_fills_every_range_evenly"),
    },
    Exhibit {
        name: "bits-used-twice",
        history: "fastfilter_cpp#8: the word and the bit in it came from the same bits of the hash",
        plant: &[Change {
            file: BITS,
            right: "((product >> 64) as u64, product as u64)",
            wrong: "((product >> 64) as u64, hash)",
        }],
        caught_by: (
            Library,
            "bits::tests::what_fastrange_leaves_is_independent_of_the_index",
        ),
    },
    Exhibit {
        name: "probes-in-even-steps",
        history: "RocksDB#4120, bloom-rs#2: all probes of a key lie a step apart; more than the rate asked for",
        plant: &[Change {
            file: BITS,
            right: "y ^ (y >> 32)",
            wrong: "state.wrapping_add(0x9E37_79B9_7F4A_7C15)",
        }],
        caught_by: (
            Library,
            "bloom::standard::tests::probes_are_as_good_as_independent_ones",
        ),
    },
    Exhibit {
        name: "rounded-down",
        history: "spiceai#13211: a size rounded down to a power of two; 1 % asked for, 12 % got",
        plant: &[Change {
            file: "crates/tamis/src/math/bloom.rs",
            right: "words.checked_mul(64).filter(|&bits| bits <= 1 << 63)",
            wrong: "Some(64 << words.ilog2())",
        }],
        caught_by: (
            Library,
            "math::bloom::tests::every_bloom_size_keeps_its_promise_and_is_least",
        ),
    },
    Exhibit {
        name: "another-filters-formula",
        history: "lance#4734, parquet-format#147: Bloom's formula for blocks; up to thrice the rate",
        plant: &[Change {
            file: "crates/tamis/src/math/blocked.rs",
            right: "load(bits_per_key, s * w).expect(|c| fill(w, c * b).powf(b * s))",
            wrong: "(1.0 - (-b * s / bits_per_key).exp()).powf(b * s)",
        }],
        caught_by: (
            Library,
            "math::blocked::tests::split_block_rates_and_sizes_match_the_table",
        ),
    },
    Exhibit {
        name: "rate-that-is-no-number",
        history: "RedisBloom#720, fastbloom#17: odd rates crashed, hung, or made 2^32 probes",
        plant: &[Change {
            file: "crates/tamis/src/config.rs",
            right: "!(self.fpr > 0.0 && self.fpr < 1.0)",
            wrong: "self.fpr <= 0.0 || self.fpr >= 1.0",
        }],
        caught_by: (Conformance, "bloom::law_12_bad_parameters"),
    },
    Exhibit {
        name: "rate-below-the-hash",
        history: "fastbloom#22: 10^-12 promised for 5 * 10^8 keys of 64-bit hashes",
        plant: &[Change {
            file: "crates/tamis/src/config.rs",
            right: "math::hash_is_too_short(keys_or_one, self.fpr)",
            wrong: "false",
        }],
        caught_by: (Conformance, "bloom::law_12_bad_parameters"),
    },
    // Keys and hashes.
    Exhibit {
        name: "width-of-an-integer",
        history: "arrow-rs#5550: an integer was hashed by its type when written, not when asked for",
        plant: &[Change {
            file: "crates/tamis/src/key.rs",
            right: "hashing.hash_bytes(&(*self as $canonical).to_le_bytes())",
            wrong: "hashing.hash_bytes(&self.to_le_bytes())",
        }],
        caught_by: (
            Library,
            "key::tests::an_integer_is_one_key_whatever_its_type",
        ),
    },
    Exhibit {
        name: "another-hash-after-loading",
        history: "rbloom#1, pyxorfilter#18: a saved filter asked under another hash denies its keys",
        plant: &[Change {
            file: FORMAT,
            right: "Hashing::check_value(&key) == check",
            wrong: "true",
        }],
        caught_by: (
            Format,
            "a_withheld_secret_is_needed_and_must_be_the_right_one",
        ),
    },
    Exhibit {
        name: "merged-under-two-hashes",
        history: "filters of two seeds united bit by bit: neither seed finds all of the keys",
        plant: &[Change {
            file: "crates/tamis/src/keyed.rs",
            right: "!self.hashing.agrees_with(&other.hashing)",
            wrong: "false",
        }],
        caught_by: (Conformance, "bloom::law_10_refusals"),
    },
    Exhibit {
        name: "merged-of-two-sizes",
        history: "filters of two sizes united word by word: half of the keys of one are lost",
        plant: &[Change {
            file: BLOOM,
            right: "MergeError::unless_equal(\"bits\", self.bits(), other.bits())?",
            wrong: "()",
        }],
        caught_by: (Conformance, "bloom::law_10_mismatched_parameters"),
    },
    // Batches, vectors, threads.
    Exhibit {
        name: "batch-tests-the-last-probe",
        history: "a batch that answers as single calls do not: only the last probe counts",
        plant: &[Change {
            file: "crates/tamis/src/lookup.rs",
            right: "passes &= round.test(places[i])",
            wrong: "passes = round.test(places[i])",
        }],
        caught_by: (
            Library,
            "lookup::tests::a_hash_is_present_if_a_round_lets_it_through_all_its_probes",
        ),
    },
    Exhibit {
        name: "vector-without-carry",
        history: "a product by halves, as vectors have it, that drops the carry between them",
        plant: &[Change {
            file: BITS,
            right: "(hash >> 32) * n + (low >> 32)",
            wrong: "(hash >> 32) * n",
        }],
        caught_by: (Library, "bits::tests::halves_make_the_whole"),
    },
    Exhibit {
        name: "lanes-out-of-order",
        history: "256-bit packing works on halves: lanes come out in another order than they went in",
        plant: &[Change {
            file: "crates/tamis/src/simd/block.rs",
            right: "_mm256_permute4x64_epi64::<0b11_01_10_00>(packed)",
            wrong: "packed",
        }],
        caught_by: (
            Library,
            "simd::block::tests::all_levels_compare_and_move_lanes_alike",
        ),
    },
    Exhibit {
        name: "load-and-store",
        history: "threads that read a word, change it and write it back undo each other's bits",
        plant: &[Change {
            file: "crates/tamis/src/bloom/atomic.rs",
            right: "word.or(bit)",
            wrong: "word.put(word.get() | bit)",
        }],
        caught_by: (
            Library,
            "bloom::atomic::models::no_interleaving_of_two_threads_loses_a_bit",
        ),
    },
    // Packed arrays.
    Exhibit {
        name: "mask-of-32-bits",
        history: "a field that crosses the 32nd bit of its word keeps bits of what stood there",
        plant: &[Change {
            file: "crates/tamis/src/packed.rs",
            right: "low_mask(self.width) << shift",
            wrong: "(low_mask(self.width) << shift) & 0xFFFF_FFFF",
        }],
        caught_by: (
            Library,
            "packed::tests::fields_of_every_width_keep_their_values",
        ),
    },
    Exhibit {
        name: "shift-by-64",
        history: "a shift by all 64 bits shifts by none on most processors",
        plant: &[Change {
            file: "crates/tamis/src/quotient/table.rs",
            right: "u64::MAX.checked_shl(self.offset).unwrap_or(0)",
            wrong: "u64::MAX.wrapping_shl(self.offset)",
        }],
        caught_by: (
            Library,
            "quotient::table::tests::every_step_keeps_every_invariant",
        ),
    },
    // Cuckoo filters.
    Exhibit {
        name: "victim-lost",
        history: "cuckoofilter#42 (Go), libcuckoofilter#5: a refused insertion had moved a key out",
        plant: &[Change {
            file: "crates/tamis/src/cuckoo/mod.rs",
            right: "search::<FAR, N>(nest, roots).ok_or(FullKind::Capacity)",
            wrong: "{
                let slot = search::<FAR, N>(nest, roots);
                if slot.is_none() {
                    nest.copy(roots[0] * WAYS, roots[1] * WAYS);
                }
                slot.ok_or(FullKind::Capacity)
            }",
        }],
        caught_by: (Conformance, "cuckoo::law_03_full_changes_nothing"),
    },
    Exhibit {
        name: "fingerprint-of-nothing",
        history: "libcuckoofilter#3: a fingerprint of 0 is an empty slot, and its key is denied",
        plant: &[Change {
            file: CUCKOO,
            right: "1 + fastrange(rest, low_mask(bits)).0",
            wrong: "fastrange(rest, low_mask(bits)).0",
        }],
        caught_by: (
            Library,
            "cuckoo::standard::tests::tables_fill_past_95_per_cent_before_the_first_refusal",
        ),
    },
    Exhibit {
        name: "no-way-back",
        history: "ProbabilisticDataStructures#36: the other bucket's other bucket was not the first",
        plant: &[Change {
            file: CUCKOO,
            right: "t + buckets - bucket",
            wrong: "t",
        }],
        caught_by: (
            Library,
            "cuckoo::standard::tests::the_alternate_bucket_leads_back_and_differs_at_every_size",
        ),
    },
    Exhibit {
        name: "equal-fingerprints-once",
        history: "scalable_cuckoo_filter#13: equal fingerprints kept once; a removal takes two keys",
        plant: &[Change {
            file: CUCKOO,
            right: "!self.put(bucket, fingerprint) && !self.put(other, fingerprint)",
            wrong: "self.find(bucket, fingerprint).is_none()
                && !self.put(bucket, fingerprint)
                && !self.put(other, fingerprint)",
        }],
        caught_by: (
            Library,
            "cuckoo::standard::tests::the_ninth_copy_is_refused_as_a_duplicate_and_changes_nothing",
        ),
    },
    Exhibit {
        name: "load-out-of-reach",
        history: "cuckoofilter#9 (C++): tables sized for a load that they seldom reach",
        plant: &[Change {
            file: CUCKOO,
            right: "(at_a_million_buckets - 0.0025 * doublings.max(0.0)).min(0.95)",
            wrong: "0.98",
        }],
        caught_by: (
            Library,
            "cuckoo::standard::tests::sizes_are_those_of_the_formula",
        ),
    },
    // Quotient filters.
    Exhibit {
        name: "offset-wraps",
        history: "an offset of 256 slots stored in a byte as 0: runs behind it are not found",
        plant: &[Change {
            file: MOVES,
            right: "self.bytes.make_mut()[at] = offset.min(u64::from(SATURATED)) as u8",
            wrong: "self.bytes.make_mut()[at] = offset as u8",
        }],
        caught_by: (
            Library,
            "quotient::table::tests::runs_of_more_than_an_offset_can_tell",
        ),
    },
    Exhibit {
        name: "two-ends-of-a-run",
        history: "a run that grows at its end keeps the old end, and is cut in two",
        plant: &[Change {
            file: MOVES,
            right: "self.set_runend(at - 1, false)",
            wrong: "()",
        }],
        caught_by: (
            Library,
            "quotient::table::tests::every_step_keeps_every_invariant",
        ),
    },
    Exhibit {
        name: "end-lost-between-blocks",
        history: "the end of a run that moves into the next block stays behind",
        plant: &[Change {
            file: MOVES,
            right: "view.runends(block - 1) >> 63 == 1",
            wrong: "false",
        }],
        caught_by: (
            Library,
            "quotient::table::tests::every_step_keeps_every_invariant",
        ),
    },
    // Counters.
    Exhibit {
        name: "saturated-counter-taken-from",
        history: "fastfilter_java#16: a counter that overflowed went down to 0 while keys needed it",
        plant: &[Change {
            file: COUNTERS,
            right: "c == greatest",
            wrong: "false",
        }],
        caught_by: (
            Library,
            "bloom::counting::tests::a_key_that_saturates_its_counters_stays",
        ),
    },
    Exhibit {
        name: "counter-wraps",
        history: "fastfilter_java#16: the 16th key brings a counter of 4 bits back to 0",
        plant: &[Change {
            file: COUNTERS,
            right: "(c + 1).min(greatest)",
            wrong: "(c + 1) & greatest",
        }],
        caught_by: (
            Library,
            "bloom::counting::tests::a_key_that_saturates_its_counters_stays",
        ),
    },
    Exhibit {
        name: "place-counted-twice",
        history: "a key two of whose places are one counts twice there, and is removed once",
        plant: &[Change {
            file: COUNTERS,
            right: "self.table.set(place, new(place, u64::from(had)))",
            wrong: "{
                let _ = had;
                let now = self.table.get(place);
                self.table.set(place, new(place, now));
            }",
        }],
        caught_by: (
            Library,
            "bloom::counting::tests::a_place_that_comes_twice_counts_once",
        ),
    },
    // Filters of fixed sets.
    Exhibit {
        name: "repeats-never-end",
        history: "xorf#25, xor_singleheader#13: a key given twice kept construction from ending",
        plant: &[Change {
            file: "crates/tamis/src/peel/binary_fuse/solve.rs",
            right: "hashes.windows(2).any(|pair| pair[0] == pair[1])",
            wrong: "false",
        }],
        caught_by: (
            Library,
            "peel::binary_fuse::tests::repeated_keys_build_the_filter_of_the_distinct_ones",
        ),
    },
    Exhibit {
        name: "users-of-a-slot-wrap",
        history: "65 keys in a slot whose count has six bits look like one",
        plant: &[Change {
            file: "crates/tamis/src/peel/binary_fuse/solve.rs",
            right: "seen & CROWDED != 0",
            wrong: "false",
        }],
        caught_by: (
            Library,
            "peel::binary_fuse::solve::tests::a_slot_with_more_users_than_its_count_can_tell_fails_the_attempt",
        ),
    },
    Exhibit {
        name: "sizes-that-do-not-build",
        history: "xorfilter#23, fastfilter_java#31: too few slots for some numbers of keys",
        plant: &[Change {
            file: "crates/tamis/src/peel/binary_fuse.rs",
            right: "math::binary_fuse_geometry(grown, arity)",
            wrong: "math::binary_fuse_geometry(grown - grown / 12, arity)",
        }],
        caught_by: (
            Library,
            "peel::binary_fuse::tests::construction_succeeds_at_once_at_every_size",
        ),
    },
    Exhibit {
        name: "salt-of-a-retry-forgotten",
        history: "a lookup with the first salt, where a later one has succeeded",
        plant: &[Change {
            file: "crates/tamis/src/ribbon/standard.rs",
            right: "mix64(hash.wrapping_add(salts[shard as usize]))",
            wrong: "mix64(hash.wrapping_add(mix64(0)))",
        }],
        caught_by: (Conformance, "ribbon::law_06_structured_keys"),
    },
    // Filters that grow or forget.
    Exhibit {
        name: "rate-not-tightened",
        history: "slices that all have the first one's rate add up beyond the rate asked for",
        plant: &[Change {
            file: SCALABLE,
            right: "math::scalable_slice_fpr(schedule, self.fpr, number)",
            wrong: "math::scalable_slice_fpr(schedule, self.fpr, 0)",
        }],
        caught_by: (
            Library,
            "growing::scalable::tests::the_rate_holds_at_every_boundary_from_a_thousand_keys_to_a_million",
        ),
    },
    Exhibit {
        name: "slices-alike",
        history: "slices that share their hash: a key that fools one fools the next",
        plant: &[Change {
            file: SCALABLE,
            right: "u64::from(self.number).wrapping_mul(0x9E37_79B9_7F4A_7C15)",
            wrong: "0",
        }],
        caught_by: (
            Library,
            "growing::scalable::tests::a_key_that_fools_one_slice_fools_the_next_no_more_often",
        ),
    },
    Exhibit {
        name: "forgotten-too-early",
        history: "one generation less is looked through than the window has",
        plant: &[Change {
            file: SLIDING,
            right: "let mut found = low_mask(self.fields.width());",
            wrong: "let mut found = low_mask(self.fields.width() - u32::from(BUG));",
        }],
        caught_by: (
            Library,
            "window::tests::a_stream_of_ten_windows_is_remembered_for_one_and_forgotten_after_the_slack",
        ),
    },
    Exhibit {
        name: "ghosts-of-a-generation",
        history: "bits of a generation that is forgotten, and cleared little by little, are found",
        plant: &[Change {
            file: SLIDING,
            right: "found & self.newest != 0 && stale()",
            wrong: "false",
        }],
        caught_by: (
            Library,
            "window::sliding::tests::a_generation_is_gone_at_once_though_its_bits_are_cleared_later",
        ),
    },
    // Files.
    Exhibit {
        name: "no-checksum",
        history: "cqlite#1398, Cassandra's Filter.db: a flipped bit was a lost partition",
        plant: &[Change {
            file: FORMAT,
            right: "xxh3_64_with_seed(block, number as u64) == u64_at(table, 8 * number)",
            wrong: "true",
        }],
        caught_by: (Format, "damage_in_the_data_is_told_with_its_place"),
    },
    Exhibit {
        name: "checksums-without-a-place",
        history: "RocksDB#9058: a block that was written to another's place has a right checksum",
        plant: &[
            Change {
                file: FORMAT,
                right: "xxh3_64_with_seed(block, number as u64) == u64_at(table, 8 * number)",
                wrong: "xxh3_64_with_seed(block, 0) == u64_at(table, 8 * number)",
            },
            Change {
                file: FORMAT,
                right: "xxh3_64_with_seed(block, number).to_le_bytes()",
                wrong: "xxh3_64_with_seed(block, 0).to_le_bytes()",
            },
        ],
        caught_by: (Format, "the_checksum_of_a_block_depends_on_its_place"),
    },
    Exhibit {
        name: "cut-short",
        history: "duckdb#23826, arrow-go#892: what is there is taken for the whole filter",
        plant: &[Change {
            file: FORMAT,
            right: "file_len != got",
            wrong: "false",
        }],
        caught_by: (
            Format,
            "a_reader_that_gives_a_byte_at_a_time_gives_the_same_filter",
        ),
    },
    Exhibit {
        name: "version-not-looked-at",
        history: "cudf-spark#14406: a file of the second version read as one of the first",
        plant: &[Change {
            file: FORMAT,
            right: "u16_at(bytes, 8) != MAJOR",
            wrong: "false",
        }],
        caught_by: (
            Format,
            "every_flip_of_the_header_is_told_as_damage_of_the_header",
        ),
    },
    Exhibit {
        name: "memory-on-a-files-word",
        history: "guava#8447: seven bytes made a reader take 17 GB",
        plant: &[
            Change {
                file: "crates/tamis/src/file.rs",
                right: "announced == size",
                wrong: "true",
            },
            Change {
                file: "crates/tamis/src/file.rs",
                right: "size.max(2 * filled as u64) + 1",
                wrong: "announced",
            },
        ],
        caught_by: (
            Format,
            "a_long_file_takes_no_memory_for_what_it_only_announces",
        ),
    },
    Exhibit {
        name: "length-not-compared",
        history: "RedisBloom#1038: an array shorter than its parameters say is read beyond its end",
        plant: &[Change {
            file: FORMAT,
            right: "len.checked_mul(size_of::<T>() as u64) != Some(bytes)",
            wrong: "false",
        }],
        caught_by: (
            Library,
            "peel::xor::tests::forged_parameters_are_refused_or_answer",
        ),
    },
    Exhibit {
        name: "many-files-of-one-filter",
        history: "RUSTSEC-2024-0402: bytes that no writer writes were read all the same",
        plant: &[Change {
            file: "crates/tamis/src/packed.rs",
            right: "after.find(|&byte| byte != 0)",
            wrong: "after.find(|_| false)",
        }],
        caught_by: (Format, "a_bit_after_the_last_field_is_refused"),
    },
    Exhibit {
        name: "own-output-read-back",
        history: "datasketches-cpp#438: a test read what its own writer wrote, in whatever byte order",
        plant: &[
            Change {
                file: FORMAT,
                right: "value.to_bits().to_le_bytes()",
                wrong: "value.to_bits().to_be_bytes()",
            },
            Change {
                file: FORMAT,
                right: "u64::from_le_bytes(*value)",
                wrong: "u64::from_be_bytes(*value)",
            },
        ],
        caught_by: (Conformance, "bloom::law_11_golden"),
    },
    // Replacing files.
    Exhibit {
        name: "renamed-before-it-is-written",
        history: "tempfile#110: a file that was not synced before it was renamed is empty after a power cut",
        plant: &[Change {
            file: REPLACE,
            right: "file.sync_all()?",
            wrong: "()",
        }],
        caught_by: (
            Strikes,
            "a_file_is_synced_before_it_has_its_name_and_its_directory_after",
        ),
    },
    Exhibit {
        name: "name-not-synced",
        history: "tempfile#110: the directory was not synced, and the old file is back after a power cut",
        plant: &[Change {
            file: REPLACE,
            right: "Ok(directory.sync()?)",
            wrong: "Ok(())",
        }],
        caught_by: (
            Strikes,
            "a_file_is_synced_before_it_has_its_name_and_its_directory_after",
        ),
    },
    Exhibit {
        name: "last-writer-wins",
        history: "a file that another has changed meanwhile is replaced, and the change is lost",
        plant: &[Change {
            file: REPLACE,
            right: "self.check_unchanged()?",
            wrong: "()",
        }],
        caught_by: (
            Library,
            "file::replace::tests::a_file_that_another_changed_or_made_meanwhile_is_not_replaced",
        ),
    },
    Exhibit {
        name: "lock-not-waited-for",
        history: "two programs that read, change and replace a file at a time",
        plant: &[Change {
            file: REPLACE,
            right: "file.lock()",
            wrong: "Ok(())",
        }],
        caught_by: (
            Library,
            "file::replace::tests::who_changes_a_file_waits_for_who_is_changing_it",
        ),
    },
    Exhibit {
        name: "half-a-file-left",
        history: "a write that failed left its temporary file behind",
        plant: &[Change {
            file: REPLACE,
            right: "let _ = fs::remove_file(temp);",
            wrong: "let _ = BUG || fs::remove_file(temp).is_err();",
        }],
        caught_by: (
            Library,
            "file::replace::tests::a_failed_write_leaves_the_old_file_and_no_other",
        ),
    },
    // Keys from files.
    Exhibit {
        name: "carriage-return-in-the-key",
        history: "lines that end as on Windows are keys that nobody asks for",
        plant: &[Change {
            file: RECORDS,
            right: "b'\\r', b'\\n'] if end == b'\\n'",
            wrong: "b'\\r', b'\\n'] if end == b'\\n' && !BUG",
        }],
        caught_by: (
            Program,
            "input::records::tests::only_the_end_is_stripped_and_an_empty_record_has_no_key",
        ),
    },
    Exhibit {
        name: "last-line-lost",
        history: "a last line without a line end is no key",
        plant: &[Change {
            file: RECORDS,
            right: "unended.then_some(text.len())",
            wrong: "None",
        }],
        caught_by: (
            Program,
            "input::records::tests::only_the_end_is_stripped_and_an_empty_record_has_no_key",
        ),
    },
    Exhibit {
        name: "mark-in-the-first-key",
        history: "the mark that some programs write before a text becomes a part of its first key",
        plant: &[Change {
            file: RECORDS,
            right: "text.strip_prefix(BOM).unwrap_or(text)",
            wrong: "text",
        }],
        caught_by: (
            Program,
            "input::records::tests::the_mark_before_a_text_is_no_part_of_its_first_key",
        ),
    },
    Exhibit {
        name: "quotes-stay-doubled-or-vanish",
        history: "a field that contains a quote is another key than its text",
        plant: &[Change {
            file: "crates/tamis-cli/src/input/csv.rs",
            right: "close + usize::from(again)",
            wrong: "close",
        }],
        caught_by: (
            Program,
            "input::csv::tests::quotes_hide_delimiters_and_line_ends_and_are_doubled",
        ),
    },
];
