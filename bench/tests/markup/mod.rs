//! What markup must be, for the tests of pages and pictures.

/// Elements of a page that are never closed.
const VOID: [&str; 3] = ["!DOCTYPE", "meta", "input"];

/// Every tag is closed, in order, and every attribute is quoted.
pub(crate) fn assert_well_formed(markup: &str) {
    let mut open = Vec::new();
    for piece in markup.split('<').skip(1) {
        let (tag, between) = piece.split_once('>').expect("a tag ends");
        assert!(!between.contains('>'), "{between}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.trim_matches('/').split(' ').next().unwrap_or(tag);
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag}");
    }
    assert!(open.is_empty(), "{open:?}");
}
