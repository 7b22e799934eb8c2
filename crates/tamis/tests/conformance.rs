//! laws
fn main() {}
