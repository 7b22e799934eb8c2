//! One file per verb.

pub(crate) mod add;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod info;
pub(crate) mod kinds;
pub(crate) mod remove;
pub(crate) mod verify;
