//! ex
fn main() {}
