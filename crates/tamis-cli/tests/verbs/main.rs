//! The verbs beside build and check, from outside: what each does, and each of its exit codes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod advise;
mod ask;
mod bench;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod dedup;
mod diff;
mod every;
mod form;
mod halve;
mod info;
mod json;
mod kinds;
mod manual;
mod merge;
mod report;
mod secret;
mod window;
