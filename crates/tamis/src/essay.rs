//! The kinds' essays, for programs that show them: what the doc comments of their sources say,
//! and no second text.
//!
//! An essay is the first doc comment of a source that has a drawing. It is cut out while the crate
//! is compiled, so that no more than the essays goes into a program.

const DOC: &[u8] = b"///";
const DRAWING: &[u8] = b"/// ```text";

/// Where the essay begins and ends; nowhere, in a source that has none.
const fn place(source: &[u8]) -> (usize, usize) {
    let (mut line, mut start, mut drawn) = (0, 0, false);
    while line < source.len() {
        let is_doc = starts_with(source, line, DOC);
        if !is_doc && drawn {
            return (start, line);
        }
        drawn = drawn || starts_with(source, line, DRAWING);
        while line < source.len() && source[line] != b'\n' {
            line += 1;
        }
        line += 1;
        if !is_doc {
            start = line;
        }
    }
    (0, 0)
}

/// How long the essay of a source is, in bytes.
pub(crate) const fn len(source: &str) -> usize {
    let (start, end) = place(source.as_bytes());
    end - start
}

/// The essay of a source, which is so long.
pub(crate) const fn cut<const N: usize>(source: &str) -> [u8; N] {
    let (start, _) = place(source.as_bytes());
    let (mut essay, mut i) = ([0; N], 0);
    while i < N {
        essay[i] = source.as_bytes()[start + i];
        i += 1;
    }
    essay
}

/// Markdown, without the marks of a comment.
pub(crate) fn uncommented(essay: &[u8]) -> String {
    let text = String::from_utf8_lossy(essay);
    let lines = text.lines().map(|line| {
        let line = line.strip_prefix("///").unwrap_or(line);
        line.strip_prefix(' ').unwrap_or(line)
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

const fn starts_with(text: &[u8], at: usize, start: &[u8]) -> bool {
    let mut i = 0;
    while i < start.len() {
        if at + i >= text.len() || text[at + i] != start[i] {
            return false;
        }
        i += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_essay_is_the_comment_with_a_drawing() {
        const SOURCE: &str = "//! x\n/// no\nfn a() {}\n\n/// One\n///\n/// ```text\n///  ─\n/// ```\n\
                              #[x]\n/// two\n/// ```text\n";
        let essay = cut::<{ len(SOURCE) }>(SOURCE);
        assert_eq!(uncommented(&essay), "One\n\n```text\n ─\n```\n");
        for none in ["", "/// only\n", "/// ```text\n", "// ```text\n\n"] {
            assert_eq!(len(none), 0, "{none:?}");
        }
    }

    #[test]
    fn every_kind_has_an_essay_that_says_when_to_choose_it() {
        for kind in crate::KINDS {
            let essay = kind.essay();
            for part in ["```text", "# When to choose it", "# Bibliography"] {
                assert!(essay.contains(part), "{}: {part}", kind.name);
            }
            assert!(!essay.contains("///"), "{}", kind.name);
        }
    }
}
