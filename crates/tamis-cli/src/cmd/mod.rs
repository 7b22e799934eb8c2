//! One file per verb.

pub(crate) mod add;
pub(crate) mod advise;
pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod count;
pub(crate) mod dedup;
pub(crate) mod diff;
pub(crate) mod get;
pub(crate) mod halve;
pub(crate) mod info;
pub(crate) mod kinds;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod remove;
pub(crate) mod report;
pub(crate) mod verify;
