//! Charts as SVG: lines with their names at the end, and bars.

use std::fmt::Write;

/// Text that is no markup.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// A named run of points from left to right.
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    pub(super) colour: usize,
    pub(super) points: Vec<(f64, f64)>,
}

/// Colours in the style sheet.
pub(super) const COLOURS: usize = 10;

const WIDTH: f64 = 420.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = 262.0;
const TOP: f64 = 12.0;
/// What a label needs from the next.
const LINE: f64 = 13.0;

/// Lines over the rate `1 / 2^x`, with `least` as a broken line that none can be below.
pub(super) fn lines(title: &str, series: &[Series<'_>], least: impl Fn(f64) -> f64) -> String {
    let plot = (LINE * (series.len() as f64 + 1.0)).max(200.0);
    let bottom = TOP + plot;
    let all = series.iter().flat_map(|s| &s.points);
    let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut low, mut high) = (4.0f64, 8.0f64);
    for &(x, y) in all {
        (from, to) = (from.min(x), to.max(x));
        (low, high) = (low.min(least(x)).min(y), high.max(least(x)).max(y));
    }
    if !(from < to) {
        from = if from.is_finite() { from } else { 0.0 };
        to = from + 1.0;
    }
    // By powers of two: the largest kinds take hundreds of times what the smallest do.
    let (low, high) = (low.max(0.5).log2().floor(), high.log2().ceil());
    let at_x = |x: f64| LEFT + (x - from) / (to - from) * (RIGHT - LEFT);
    let at_y = |y: f64| bottom - (y.max(0.5).log2() - low) / (high - low) * plot;
    let mut out = format!(
        "<figure><figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\">\n",
        escape(title),
        bottom + 38.0,
        escape(title)
    );
    // Writing to memory does not fail.
    for power in low as i32..=high as i32 {
        let y = f64::from(power).exp2();
        let height = at_y(y);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{height:.1}\" y2=\"{height:.1}\"/>\
             <text class=\"tick end\" x=\"{}\" y=\"{:.1}\">{y}</text>",
            LEFT - 5.0,
            height + 4.0
        );
    }
    let mut x = (from / 4.0).ceil() * 4.0;
    while x <= to {
        let _ = writeln!(
            out,
            "<text class=\"tick middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            at_x(x),
            bottom + 15.0,
            short_rate((-x).exp2())
        );
        x += 4.0;
    }
    let _ = writeln!(
        out,
        "<text class=\"axis middle\" x=\"{:.1}\" y=\"{:.1}\">false-positive rate (bits per key above)</text>",
        (LEFT + RIGHT) / 2.0,
        bottom + 30.0
    );
    let limit: Vec<String> = (0..=20)
        .map(|i| from + f64::from(i) / 20.0 * (to - from))
        .map(|x| format!("{:.1} {:.1}", at_x(x), at_y(least(x))))
        .collect();
    let _ = writeln!(out, "<path class=\"limit\" d=\"M{}\"/>", limit.join("L"));
    let mut ends: Vec<(usize, (f64, f64))> = series
        .iter()
        .enumerate()
        .filter_map(|(i, s)| Some((i, *s.points.last()?)))
        .map(|(i, (x, y))| (i, (at_x(x), at_y(y))))
        .collect();
    ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
    // From the top down none closer than a line; then from below none beneath the plot.
    let mut places: Vec<f64> = Vec::new();
    for &(_, (_, y)) in &ends {
        let above = places.last().map_or(f64::NEG_INFINITY, |y| y + LINE);
        places.push(y.max(above));
    }
    let mut floor = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(floor);
        floor = *place - LINE;
    }
    for (&(i, (x, y)), place) in ends.iter().zip(places) {
        let Series {
            name,
            colour,
            points,
        } = &series[i];
        let path: Vec<String> = points
            .iter()
            .map(|&(x, y)| format!("{:.1} {:.1}", at_x(x), at_y(y)))
            .collect();
        let _ = writeln!(
            out,
            "<g style=\"--c: var(--c{})\"><path class=\"run\" d=\"M{}\"/>\
             <line class=\"leader\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{place:.1}\"/>\
             <text class=\"label\" x=\"{}\" y=\"{:.1}\">{}</text></g>",
            colour % COLOURS,
            path.join("L"),
            RIGHT + 10.0,
            RIGHT + 12.0,
            place + 4.0,
            escape(name)
        );
    }
    out + "</svg></figure>\n"
}

/// Two bars a row, the second over the first, of one unit.
pub(super) fn bars(title: &str, rows: &[(&str, usize, f64, f64)]) -> String {
    const ROW: f64 = 17.0;
    const START: f64 = 150.0;
    const END: f64 = 316.0;
    let most = rows.iter().map(|row| row.2.max(row.3)).fold(1.0, f64::max);
    let mut out = format!(
        "<figure><figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\">\n",
        escape(title),
        ROW * rows.len() as f64 + 6.0,
        escape(title)
    );
    for (i, &(name, colour, single, batch)) in rows.iter().enumerate() {
        let top = ROW * i as f64;
        let width = |value: f64| (value / most * (END - START)).max(0.5);
        let _ = writeln!(
            out,
            "<g style=\"--c: var(--c{})\"><text class=\"label end\" x=\"{}\" y=\"{:.1}\">{}</text>\
             <rect class=\"single\" x=\"{START}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\"/>\
             <rect class=\"batch\" x=\"{START}\" y=\"{:.1}\" width=\"{:.1}\" height=\"6\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{single:.0} / {batch:.0}</text></g>",
            colour % COLOURS,
            START - 6.0,
            top + 12.0,
            escape(name),
            top + 2.0,
            width(single),
            top + 5.0,
            width(batch),
            START + width(single.max(batch)) + 5.0,
            top + 12.0
        );
    }
    out + "</svg></figure>\n"
}

/// A share as a bar; what is above 1 is cut off.
pub(super) fn meter(title: &str, share: f64) -> String {
    let width = 240.0 * share.clamp(0.0, 1.0);
    let colour = if share > 1.0 { 4 } else { 2 };
    format!(
        "<figure><figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} 22\" role=\"img\" aria-label=\"{}\">\
         <rect class=\"room\" x=\"0\" y=\"2\" width=\"240\" height=\"12\"/>\
         <rect class=\"batch\" style=\"--c: var(--c{colour})\" x=\"0\" y=\"2\" width=\"{width:.1}\" height=\"12\"/>\
         <text x=\"250\" y=\"12\">{:.1} %</text></svg></figure>\n",
        escape(title),
        escape(title),
        100.0 * share
    )
}

/// A rate in few characters.
pub(super) fn short_rate(rate: f64) -> String {
    match 100.0 * rate {
        percent if percent >= 9.5 => format!("{percent:.0}%"),
        percent if percent >= 0.095 => format!("{percent:.1}%"),
        percent if percent >= 0.000_95 => format!("{percent:.3}%"),
        _ => format!("{rate:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_stays_text() {
        let drawn = bars("<a>&\"", &[("<script>", 3, 1.0, 2.0)]);
        assert!(!drawn.contains("<a>") && !drawn.contains("<script>"));
        assert!(drawn.contains("&lt;script&gt;"));
    }

    #[test]
    fn labels_of_equal_lines_stand_apart() {
        let series: Vec<Series<'_>> = (0..30)
            .map(|colour| Series {
                name: "same",
                colour,
                points: vec![(3.0, 5.0), (9.0, 12.0)],
            })
            .collect();
        let drawn = lines("t", &series, |x| x);
        let mut heights: Vec<f64> = drawn
            .split("<text class=\"label\"")
            .skip(1)
            .map(|rest| {
                let y = rest.split("y=\"").nth(1).unwrap();
                y.split('"').next().unwrap().parse().unwrap()
            })
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 30);
        assert!(
            heights
                .windows(2)
                .all(|pair| pair[1] - pair[0] > LINE - 0.2)
        );
    }

    #[test]
    fn nothing_to_draw_draws_no_nonsense() {
        for drawn in [
            lines("none", &[], |x| x),
            bars("none", &[]),
            meter("none", f64::NAN),
        ] {
            assert!(!drawn.contains("inf"), "{drawn}");
        }
    }
}
