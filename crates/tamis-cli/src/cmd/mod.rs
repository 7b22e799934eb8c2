//! One file per verb.

pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod info;
pub(crate) mod kinds;
