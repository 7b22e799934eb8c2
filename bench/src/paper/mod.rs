//! Tables and figures of published papers, beside formulas and measurements.

mod chart;
mod formula;
mod model;
pub(crate) mod tinyset;
