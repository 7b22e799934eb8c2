//! Tables and figures of published papers, beside formulas and measurements.

mod chart;
mod formula;
mod model;
pub(crate) mod optimal;
pub(crate) mod survey;
pub(crate) mod tinyset;
pub(crate) mod unknown_size;
