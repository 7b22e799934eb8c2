//! Charts as SVG, drawn for a page that needs nothing else: no script, no font, no network.
//!
//! The program's page (`tamis report`) and the bench's are drawn by the same hand: [`Scatter`],
//! [`Ranking`] and [`Lines`] over the scales, marks and labels of [`draw`], in the colours of
//! [`STYLE`], light or dark as the reader prefers. A chart is drawn for a size, so that a page can
//! hold one for a wide screen and one for a narrow one ([`Form`]).

mod charts;
pub mod draw;

pub use charts::{Form, Line, Lines, Point, Ranked, Ranking, Scatter};

/// The style sheet of a page with charts. Colours are `--c0` to `--c9`; what has one is drawn in
/// `--c`.
pub const STYLE: &str = include_str!("style.css");

/// Colours in the style sheet.
pub const COLOURS: usize = 10;

/// Patterns of lines in the style sheet, `d0` to `d4`.
pub const DASHES: usize = 5;
