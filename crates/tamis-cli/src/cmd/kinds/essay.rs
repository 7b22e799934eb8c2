//! An essay for a terminal: its Markdown as plain text.

/// Without the examples in Rust, the table of parameters, and the marks of links, headings and
/// drawings.
pub(super) fn plain(essay: &str) -> String {
    let (mut out, mut prose) = (String::new(), String::new());
    let mut block = Block::Prose;
    for line in essay.lines() {
        block = match (block, line) {
            (Block::Prose | Block::Skipped, "```text") => Block::Drawing,
            (Block::Prose | Block::Skipped, _) if line.starts_with("```") => Block::Example,
            (Block::Drawing | Block::Example, "```") => Block::Prose,
            (Block::Prose | Block::Skipped, _) if line.starts_with("# ") => {
                flush(&mut prose, &mut out);
                match line {
                    "# Parameters" => Block::Skipped,
                    _ => {
                        out.push_str(&line[2..]);
                        out.push('\n');
                        Block::Prose
                    }
                }
            }
            (Block::Drawing, _) => {
                flush(&mut prose, &mut out);
                out.push_str("    ");
                out.push_str(line);
                out.push('\n');
                Block::Drawing
            }
            (Block::Prose, _) => {
                prose.push_str(line);
                prose.push('\n');
                Block::Prose
            }
            (other, _) => other,
        };
    }
    flush(&mut prose, &mut out);
    // What was left out leaves a gap.
    while out.contains("\n\n\n") {
        out = out.replace("\n\n\n", "\n\n");
    }
    with_columns(out.trim_end())
}

/// Tables with their cells below each other, and without the rule under the heading.
fn with_columns(text: &str) -> String {
    let (mut out, mut rows) = (String::new(), Vec::<Vec<&str>>::new());
    for line in text.lines().map(Some).chain([None]) {
        let row = line.filter(|line| line.starts_with('|'));
        if let Some(row) = row {
            if !row.starts_with("|---") {
                let cells = row.trim_matches('|').split('|');
                rows.push(cells.map(str::trim).collect());
            }
            continue;
        }
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in rows.drain(..) {
            let cells = row.iter().zip(&widths);
            let cells = cells.map(|(cell, width)| format!("  {cell:width$}"));
            out.push_str(cells.collect::<String>().trim_end());
            out.push('\n');
        }
        if let Some(line) = line {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// What lines stand in.
#[derive(Clone, Copy)]
enum Block {
    Prose,
    Drawing,
    /// Code, which is left out.
    Example,
    /// A section that is left out.
    Skipped,
}

/// Appends prose without the marks of its links: `[text](target)` is `text`.
fn flush(prose: &mut String, out: &mut String) {
    let mut rest = prose.as_str();
    while let Some((before, link)) = rest.split_once('[') {
        out.push_str(before);
        let Some((text, after)) = link.split_once(']') else {
            out.push('[');
            rest = link;
            continue;
        };
        let target = after.strip_prefix('(').and_then(|a| a.split_once(')'));
        match target {
            Some((_, after)) => {
                out.push_str(text);
                rest = after;
            }
            None if text.starts_with('`') => {
                out.push_str(text);
                rest = after;
            }
            None => {
                out.push('[');
                rest = link;
            }
        }
    }
    out.push_str(rest);
    prose.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_essay_reads_well_without_its_marks() {
        let essay = "One [`Kind`](crate::Kind) and [some\ntext](x), [`That`], a range [0, 1).\n\n```\nlet x = 1;\n```\n\n\
                     # The idea\n\n```text\n  [box] ─\n```\n\nMore.\n\n# Parameters\n\n| a |\n\n# Cost\n\nLittle.\n\n| keys | ε |\n|---|---|\n| 1 | 2 |\n";
        let told = "One `Kind` and some\ntext, `That`, a range [0, 1).\n\nThe idea\n\n      [box] ─\n\nMore.\n\n\
                    Cost\n\nLittle.\n\n  keys  ε\n  1     2\n";
        assert_eq!(plain(essay), told);
    }

    #[test]
    fn no_mark_is_left_in_any_essay() {
        for kind in tamis::KINDS {
            let told = plain(&kind.essay());
            for mark in ["```", "](", "\n# ", "|---"] {
                assert!(!told.contains(mark), "{}: {mark}", kind.name);
            }
            assert!(told.contains("When to choose it"), "{}", kind.name);
        }
    }
}
