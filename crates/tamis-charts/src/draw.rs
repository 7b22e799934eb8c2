//! What charts are made of: scales, marks, and labels that do not overlap.

use std::fmt::Write;

/// Text as it stands in markup.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// A logarithmic scale from values to places.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Holds all values that are positive, with a little room on both sides; `least` is the
    /// lowest end that is shown.
    pub fn over(values: impl Iterator<Item = f64>, least: f64, from: f64, to: f64) -> Scale {
        let held = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = held.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = if low <= high {
            (low, high)
        } else {
            (1.0, 10.0)
        };
        let low = (low / 1.25).max(least);
        Scale {
            low,
            // So wide that a tick is in it.
            high: (high * 1.25).max(low * 2.6),
            from,
            to,
        }
    }

    /// Where a value lies; one beyond an end lies on it.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.from + share.min(1.0) * (self.to - self.from)
    }

    /// 1, 2 and 5 times the powers of ten; only those where there are many.
    pub fn ticks(&self) -> Vec<f64> {
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let wide = self.high / self.low > 2000.0;
        let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let ticks = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        ticks
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }

    /// The ticks of a horizontal scale whose texts have room beside each other, from the left.
    pub fn legible_ticks(&self, size: f64) -> Vec<f64> {
        let mut taken = f64::NEG_INFINITY;
        let mut ticks = self.ticks();
        ticks.retain(|&tick| {
            let half = text_width(&tick_text(tick), size) / 2.0;
            let has_room = self.at(tick) - half >= taken;
            if has_room {
                taken = self.at(tick) + half + size / 4.0;
            }
            has_room
        });
        ticks
    }
}

/// A number without needless zeros.
pub fn tick_text(value: f64) -> String {
    let powers = [
        "10⁰", "10¹", "10²", "10³", "10⁴", "10⁵", "10⁶", "10⁷", "10⁸", "10⁹",
    ];
    let power = value.log10();
    if value >= 1e5 && power.fract() == 0.0 {
        return powers
            .get(power as usize)
            .map_or(format!("{value}"), ToString::to_string);
    }
    format!("{}", (value * 1000.0).round() / 1000.0)
}

/// A rectangle; `top` is above `bottom`, and so the lesser.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "its sides")]
pub struct Rect {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Rect {
    fn overlaps(&self, other: &Rect) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn inside(&self, outer: &Rect) -> bool {
        self.left >= outer.left
            && self.right <= outer.right
            && self.top >= outer.top
            && self.bottom <= outer.bottom
    }

    fn around((x, y): (f64, f64), half: f64) -> Rect {
        Rect {
            left: x - half,
            top: y - half,
            right: x + half,
            bottom: y + half,
        }
    }
}

/// The width of a text in a sans-serif font, on the safe side.
pub fn text_width(text: &str, size: f64) -> f64 {
    0.62 * size * text.chars().count() as f64
}

/// Half the side of a square that holds a mark.
const MARK: f64 = 5.5;

/// A box for each label, near its point, on no mark and no other label. The points beyond the
/// last label have none. Boxes lie in `area`. Those in a crowd are placed first, since they have
/// the fewest places to choose from.
pub fn place_labels(points: &[(f64, f64)], labels: &[String], size: f64, area: &Rect) -> Vec<Rect> {
    let marks: Vec<Rect> = points
        .iter()
        .map(|&point| Rect::around(point, MARK))
        .collect();
    let crowd = |i: usize| {
        let (x, y) = points[i];
        let near = |&&(a, b): &&(f64, f64)| (a - x).hypot(b - y) < 60.0;
        points.iter().filter(near).count()
    };
    let mut order: Vec<usize> = (0..labels.len().min(points.len())).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(crowd(i)));
    let mut placed: Vec<Option<Rect>> = vec![None; order.len()];
    for i in order {
        let (width, height) = (text_width(&labels[i], size), size * 1.1);
        let collisions = |candidate: &Rect| {
            let labels = placed
                .iter()
                .flatten()
                .filter(|other| candidate.overlaps(other));
            let on_marks = marks.iter().filter(|mark| candidate.overlaps(mark));
            let outside = usize::from(!candidate.inside(area));
            2 * labels.count() + on_marks.count() + 100 * outside
        };
        let candidates = places(points[i], width, height);
        let free = candidates
            .iter()
            .find(|candidate| collisions(candidate) == 0);
        let least = || {
            candidates
                .iter()
                .min_by_key(|candidate| collisions(candidate))
        };
        placed[i] = free.or_else(least).copied();
    }
    placed.into_iter().flatten().collect()
}

/// Where a label could be, the best first: right, left, above and below, and then further and
/// further away.
fn places((x, y): (f64, f64), width: f64, height: f64) -> Vec<Rect> {
    let mut places = Vec::new();
    for ring in 0..44 {
        let distance = MARK + 2.5 + 9.0 * f64::from(ring);
        let directions = if ring == 0 { 8 } else { 24 };
        for turn in 0..directions {
            // To the right first, then to either side of it, then the left.
            let step = if turn % 2 == 0 {
                turn / 2
            } else {
                -(turn + 1) / 2
            };
            let angle = f64::from(step) / f64::from(directions) * std::f64::consts::TAU;
            let (cos, sin) = (angle.cos(), angle.sin());
            let (at_x, at_y) = (x + distance * cos, y + distance * sin);
            let left = at_x - width * (0.5 - 0.5 * cos);
            let top = at_y - height * (0.5 - 0.5 * sin);
            places.push(Rect {
                left,
                top,
                right: left + width,
                bottom: top + height,
            });
        }
    }
    places
}

/// Heights for labels in a column: each near the wanted one, none closer than `gap` to another,
/// all in `top..bottom` if they fit there.
pub fn spread(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut heights = wanted.to_vec();
    let mut least = top;
    for &i in &order {
        heights[i] = heights[i].max(least);
        least = heights[i] + gap;
    }
    let mut most = bottom;
    for &i in order.iter().rev() {
        heights[i] = heights[i].min(most);
        most = heights[i] - gap;
    }
    heights
}

/// How a point is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// One of ours.
    Dot,
    /// One of others.
    Diamond,
    /// The reader's own.
    Ring,
}

/// Markup that is written piece by piece.
#[derive(Debug, Default)]
pub struct Svg(pub String);

impl Svg {
    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        // Writing into a string does not fail; here and below.
        let _ = writeln!(
            self.0,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    /// A text that starts at this place, or as its class says.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        let _ = writeln!(
            self.0,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#
        );
    }

    /// A mark at a point.
    pub fn mark(&mut self, mark: Mark, (x, y): (f64, f64)) {
        let _ = match mark {
            Mark::Dot => writeln!(
                self.0,
                r#"<circle class="mark" cx="{x:.1}" cy="{y:.1}" r="4.5"/>"#
            ),
            Mark::Diamond => {
                let top = y - 5.0;
                writeln!(
                    self.0,
                    r#"<path class="mark" d="M{x:.1} {top:.1}l5 5l-5 5l-5 -5z"/>"#
                )
            }
            Mark::Ring => writeln!(
                self.0,
                r#"<circle class="ring" cx="{x:.1}" cy="{y:.1}" r="6.5"/><circle class="mark" cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#
            ),
        };
    }

    /// A line through points.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            self.0,
            r#"<polyline class="{class}" points="{}"/>"#,
            points.join(" ")
        );
    }

    /// What belongs to one subject: it can be hidden with its family, and tells its name to who
    /// points at it.
    pub fn group(&mut self, class: &str, title: &str, draw: impl FnOnce(&mut Svg)) {
        let _ = writeln!(
            self.0,
            r#"<g class="{class}"><title>{}</title>"#,
            escape(title)
        );
        draw(self);
        self.0 += "</g>\n";
    }

    /// A whole drawing of this size.
    pub fn finish(self, width: f64, height: f64, title: &str) -> String {
        let title = escape(title);
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\">\n{}</svg>\n",
            self.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look drawn by chance, the same on every day.
    fn mix(seed: u64) -> u64 {
        let x = (seed ^ seed >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    const AREA: Rect = Rect {
        left: 60.0,
        top: 20.0,
        right: 840.0,
        bottom: 520.0,
    };

    #[test]
    fn labels_of_a_crowd_do_not_overlap() {
        // 44 points, most of them in a corner of a quarter of the width and height.
        let unit = |seed: u64| mix(seed) as f64 / 2f64.powi(64);
        for round in 0..20 {
            let point = |i: u64| {
                let crowded = if i.is_multiple_of(4) { 1.0 } else { 0.25 };
                let (x, y) = (unit(round << 32 | i << 1), unit(round << 32 | i << 1 | 1));
                (100.0 + crowded * 700.0 * x, 50.0 + crowded * 440.0 * y)
            };
            let points: Vec<_> = (0..44).map(point).collect();
            let labels: Vec<_> = (0..44).map(|i| format!("some_kind_of_bloom_{i}")).collect();
            let boxes = place_labels(&points, &labels, 11.0, &AREA);
            assert_eq!(boxes.len(), 44);
            for (i, a) in boxes.iter().enumerate() {
                assert!(a.inside(&AREA), "{a:?}");
                for b in &boxes[..i] {
                    assert!(!a.overlaps(b), "round {round}: {a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn a_label_keeps_off_the_marks_of_points_that_have_none() {
        // To the right, where it would stand, and above there is one without a label.
        let points = [(400.0, 300.0), (420.0, 300.0), (420.0, 288.0)];
        let boxes = place_labels(&points, &["bloom".into()], 12.0, &AREA);
        assert_eq!(boxes.len(), 1);
        for &point in &points {
            assert!(!boxes[0].overlaps(&Rect::around(point, MARK)), "{boxes:?}");
        }
    }

    #[test]
    fn a_lone_label_stands_to_the_right_of_its_point() {
        let boxes = place_labels(&[(400.0, 300.0)], &["bloom".into()], 12.0, &AREA);
        assert!(boxes[0].left > 400.0 && boxes[0].left < 410.0);
        assert!(boxes[0].top < 300.0 && boxes[0].bottom > 300.0);
    }

    #[test]
    fn a_column_of_labels_keeps_its_gaps_and_its_order() {
        let heights = spread(&[50.0, 10.0, 51.0, 52.0, 300.0], 12.0, 0.0, 100.0);
        assert_eq!(heights[1], 10.0);
        assert_eq!(heights[4], 100.0);
        let order = [1, 0, 2, 3, 4];
        for pair in order.windows(2) {
            assert!(
                heights[pair[1]] - heights[pair[0]] >= 12.0 - 1e-9,
                "{heights:?}"
            );
        }
    }

    #[test]
    fn texts_of_a_narrow_scale_do_not_overlap() {
        let values = [2.0, 500.0];
        for width in [10.0, 100.0, 160.0, 300.0, 900.0] {
            let scale = Scale::over(values.into_iter(), 0.1, 40.0, 40.0 + width);
            let ticks = scale.legible_ticks(12.0);
            assert!(!ticks.is_empty());
            for pair in ticks.windows(2) {
                let room = scale.at(pair[1]) - scale.at(pair[0]);
                let wide = |tick| text_width(&tick_text(tick), 12.0);
                assert!(
                    room >= f64::midpoint(wide(pair[0]), wide(pair[1])),
                    "{ticks:?}"
                );
            }
            if width == 900.0 {
                assert_eq!(ticks, scale.ticks(), "there is room for all");
            }
        }
    }

    #[test]
    fn a_scale_holds_its_values_and_has_ticks() {
        let scale = Scale::over([3.0, 700.0, f64::NAN, 0.0].into_iter(), 0.1, 0.0, 100.0);
        assert!(scale.at(3.0) > 0.0 && scale.at(700.0) < 100.0);
        assert_eq!(scale.at(1e-9), 0.0);
        assert_eq!(scale.ticks(), [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert!(
            !Scale::over([].into_iter(), 0.1, 0.0, 1.0)
                .ticks()
                .is_empty()
        );
        assert_eq!(tick_text(1e6), "10⁶");
        assert_eq!(tick_text(0.2), "0.2");
    }
}
