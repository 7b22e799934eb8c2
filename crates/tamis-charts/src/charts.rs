//! The charts: points by two figures, a ranking, and lines.

use crate::draw::{Mark, Rect, Scale, Svg, place_labels, spread, text_width, tick_text};

/// The screen that a chart is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 900 pixels and more: class `wide`.
    Wide,
    /// A phone's: class `narrow`.
    Narrow,
}

impl Form {
    /// The width of a drawing.
    pub fn width(self) -> f64 {
        match self {
            Form::Wide => 900.0,
            Form::Narrow => 360.0,
        }
    }

    /// The class that hides a drawing on other screens.
    pub fn class(self) -> &'static str {
        match self {
            Form::Wide => "wide",
            Form::Narrow => "narrow",
        }
    }
}

const FONT: f64 = 12.0;

/// A thing with two figures.
#[derive(Clone, Debug)]
pub struct Point {
    /// The figure from left to right.
    pub x: f64,
    /// The figure from below to above.
    pub y: f64,
    /// Its name in the chart; empty for none.
    pub label: String,
    /// Told to who points at it.
    pub title: String,
    /// Of the style sheet.
    pub class: String,
    /// How it is marked.
    pub mark: Mark,
}

/// Points by two figures on logarithmic scales; less is better of both. A broad line joins those
/// than which none is better in both.
#[derive(Clone, Copy, Debug)]
pub struct Scatter<'a> {
    /// What it shows, for who cannot see it.
    pub title: &'a str,
    /// The screen.
    pub form: Form,
    /// What `x` is, and the least that is told apart from nothing.
    pub x: (&'a str, f64),
    /// What `y` is, likewise.
    pub y: (&'a str, f64),
    /// A `y` below which none can be, and why.
    pub floor: Option<(f64, &'a str)>,
}

impl Scatter<'_> {
    /// The drawing.
    pub fn draw(&self, points: &[Point]) -> String {
        let width = self.form.width();
        let height = match self.form {
            Form::Wide => 600.0,
            Form::Narrow => 460.0,
        };
        let area = Rect {
            left: 46.0,
            top: 34.0,
            right: width - 10.0,
            bottom: height - 46.0,
        };
        let floor = self.floor.map(|floor| floor.0);
        let x = points.iter().map(|p| p.x.max(self.x.1));
        let x = Scale::over(x, self.x.1, area.left, area.right);
        let y = points.iter().map(|p| p.y).chain(floor);
        let y = Scale::over(y, self.y.1, area.bottom, area.top);

        let mut svg = Svg::default();
        axes(&mut svg, &area, (&x, self.x.0), (&y, self.y.0));
        if let Some((floor, why)) = self.floor {
            let at = y.at(floor);
            svg.line("limit", (area.left, at), (area.right, at));
            svg.text("note end", (area.right - 4.0, at + 14.0), why);
        }
        svg.polyline("frontier", &frontier(points, &x, &y));

        // Those with a name come first, and are drawn last, over the others.
        let mut sorted: Vec<&Point> = points.iter().collect();
        sorted.sort_by_key(|point| point.label.is_empty());
        let places: Vec<(f64, f64)> = sorted.iter().map(|p| (x.at(p.x), y.at(p.y))).collect();
        let named = sorted.iter().filter(|point| !point.label.is_empty());
        let labels: Vec<String> = named.map(|point| point.label.clone()).collect();
        let room = Rect {
            left: area.left + 2.0,
            top: 16.0,
            ..area
        };
        let boxes = place_labels(&places, &labels, FONT, &room);
        for (i, (point, place)) in sorted.iter().zip(&places).enumerate().rev() {
            svg.group(&point.class, &point.title, |svg| {
                let label = boxes.get(i);
                if let Some(label) = label {
                    let near = (
                        place.0.clamp(label.left, label.right),
                        place.1.clamp(label.top, label.bottom),
                    );
                    if (near.0 - place.0).hypot(near.1 - place.1) > 12.0 {
                        svg.line("leader", *place, near);
                    }
                }
                svg.mark(point.mark, *place);
                if let Some(label) = label {
                    let at = (label.left, label.bottom - 0.25 * FONT);
                    svg.text("label", at, &point.label);
                }
            });
        }
        svg.finish(width, height, self.title)
    }
}

fn axes(svg: &mut Svg, area: &Rect, x: (&Scale, &str), y: (&Scale, &str)) {
    grid(svg, area, x.0, x.1);
    for tick in y.0.ticks() {
        let at = y.0.at(tick);
        svg.line("grid", (area.left, at), (area.right, at));
        svg.text("tick end", (area.left - 6.0, at + 4.0), &tick_text(tick));
    }
    svg.text("axis", (area.left - 40.0, area.top - 12.0), y.1);
}

/// The lines of a horizontal scale.
fn grid(svg: &mut Svg, area: &Rect, scale: &Scale, label: &str) {
    for tick in scale.ticks() {
        let at = scale.at(tick);
        svg.line("grid", (at, area.top), (at, area.bottom));
    }
    for tick in scale.legible_ticks(FONT) {
        let at = (scale.at(tick), area.bottom + 16.0);
        svg.text("tick middle", at, &tick_text(tick));
    }
    if !label.is_empty() {
        let middle = f64::midpoint(area.left, area.right);
        svg.text("axis middle", (middle, area.bottom + 36.0), label);
    }
}

/// Those than which none is better in both figures, as steps.
fn frontier(points: &[Point], x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let mut sorted: Vec<(f64, f64)> = points.iter().map(|p| (p.x, p.y)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (mut steps, mut best) = (Vec::new(), f64::INFINITY);
    for (across, up) in sorted {
        if up < best {
            if best.is_finite() {
                steps.push((x.at(across), y.at(best)));
            }
            steps.push((x.at(across), y.at(up)));
            best = up;
        }
    }
    steps
}

/// A thing in a ranking.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// Its name.
    pub name: String,
    /// Told to who points at it.
    pub title: String,
    /// Of the style sheet.
    pub class: String,
    /// How it is marked.
    pub mark: Mark,
    /// What it is ranked by: a solid mark.
    pub value: f64,
    /// A second figure: a hollow mark.
    pub second: Option<f64>,
    /// From where to where the first was measured.
    pub range: Option<(f64, f64)>,
}

/// A line for each thing, the least first, on one logarithmic scale.
#[derive(Clone, Copy, Debug)]
pub struct Ranking<'a> {
    /// What it shows, for who cannot see it.
    pub title: &'a str,
    /// The screen.
    pub form: Form,
    /// What the marks mean; stands below.
    pub legend: &'a str,
    /// What solid and hollow marks say to who points at them.
    pub marks: [&'a str; 2],
}

impl Ranking<'_> {
    /// The drawing.
    pub fn draw(&self, things: &[Ranked]) -> String {
        const STEP: f64 = 19.0;
        let mut sorted: Vec<&Ranked> = things.iter().collect();
        sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
        let name = |thing: &Ranked| match self.form {
            Form::Wide => thing.name.clone(),
            Form::Narrow => shortened(&thing.name, 21),
        };
        let names = sorted.iter().map(|thing| text_width(&name(thing), FONT));
        let (width, widest) = (self.form.width(), names.fold(0.0, f64::max));
        let area = Rect {
            left: widest + 12.0,
            top: 8.0,
            right: width - 44.0,
            bottom: 16.0 + STEP * sorted.len() as f64,
        };
        let values = things
            .iter()
            .flat_map(|t| t.second.into_iter().chain([t.value]));
        let x = Scale::over(values, 0.01, area.left, area.right);
        let mut svg = Svg::default();
        grid(&mut svg, &area, &x, "");
        let below = (width / 2.0, area.bottom + 36.0);
        svg.text("axis middle", below, self.legend);
        for (i, thing) in sorted.iter().enumerate() {
            let at = area.top + STEP * (i as f64 + 0.75);
            svg.group(&thing.class, &thing.title, |svg| {
                svg.text("label end", (area.left - 8.0, at + 4.0), &name(thing));
                svg.line("rail", (area.left, at), (x.at(thing.value), at));
                if let Some((low, high)) = thing.range {
                    svg.line("range", (x.at(low), at), (x.at(high), at));
                }
                if let Some(second) = thing.second {
                    svg.group("hollow", self.marks[1], |svg| {
                        svg.mark(thing.mark, (x.at(second), at));
                    });
                }
                svg.group("solid", self.marks[0], |svg| {
                    svg.mark(thing.mark, (x.at(thing.value), at));
                });
                let value = thing.value;
                let text = if value < 99.5 {
                    format!("{value:.1}")
                } else {
                    format!("{value:.0}")
                };
                svg.text("value", (area.right + 6.0, at + 4.0), &text);
            });
        }
        svg.finish(width, area.bottom + 48.0, self.title)
    }
}

/// A name cut to so many letters.
fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.into();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// A thing whose figure changes with another.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name, at the end of the line.
    pub name: String,
    /// Told to who points at it.
    pub title: String,
    /// Of the style sheet.
    pub class: String,
    /// How its points are marked; `None` where a line is enough.
    pub mark: Option<Mark>,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// Lines on logarithmic scales: small, with names at the end of each.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// What it shows, for who cannot see it.
    pub title: &'a str,
    /// What the height is.
    pub unit: &'a str,
    /// What is told apart from left to right, with its text.
    pub ticks: &'a [(f64, String)],
    /// The least height that is told apart from nothing.
    pub least: f64,
    /// A place from left to right that is the reader's own, and what is said of it.
    pub here: Option<(f64, &'a str)>,
}

impl Lines<'_> {
    /// The drawing.
    pub fn draw(&self, lines: &[Line]) -> String {
        const GAP: f64 = 13.0;
        let names = lines.iter().map(|line| shortened(&line.name, 22));
        let names: Vec<String> = names.collect();
        let widths = names.iter().map(|name| text_width(name, 11.0));
        let margin = widths.fold(0.0, f64::max) + 18.0;
        let (width, height) = (360.0, (GAP * lines.len() as f64 + 60.0).max(190.0));
        let area = Rect {
            left: 42.0,
            top: 26.0,
            right: width - margin,
            bottom: height - 26.0,
        };
        let across = self.ticks.iter().map(|tick| tick.0);
        let across = across.chain(self.here.map(|here| here.0));
        let x = Scale::over(across, f64::MIN_POSITIVE, area.left, area.right);
        let values = lines
            .iter()
            .flat_map(|line| line.points.iter().map(|p| p.1));
        let y = Scale::over(
            values.map(|y| y.max(self.least)),
            self.least,
            area.bottom,
            area.top,
        );
        let mut svg = Svg::default();
        for tick in y.ticks() {
            let at = y.at(tick);
            svg.line("grid", (area.left, at), (area.right, at));
            svg.text("tick end", (area.left - 6.0, at + 4.0), &tick_text(tick));
        }
        let mut taken = f64::NEG_INFINITY;
        for (tick, text) in self.ticks {
            let at = x.at(*tick);
            svg.line("grid", (at, area.top), (at, area.bottom));
            let half = text_width(text, FONT) / 2.0;
            if at - half >= taken {
                svg.text("tick middle", (at, area.bottom + 16.0), text);
                taken = at + half + 3.0;
            }
        }
        svg.text("axis", (4.0, 14.0), self.unit);
        if let Some((here, text)) = self.here {
            let at = x.at(here);
            svg.line("here", (at, area.top), (at, area.bottom));
            svg.text("note", (at + 3.0, area.top + 9.0), text);
        }
        let place = |&(a, b): &(f64, f64)| (x.at(a), y.at(b));
        let ends: Vec<Option<(f64, f64)>> = lines
            .iter()
            .map(|line| line.points.last().map(place))
            .collect();
        let wanted = ends.iter().flatten().map(|end| end.1 + 4.0);
        let wanted: Vec<f64> = wanted.collect();
        let heights = spread(&wanted, GAP, area.top + 4.0, area.bottom + 6.0);
        let drawn = lines.iter().zip(&names).zip(&ends);
        let drawn = drawn.filter_map(|((line, name), end)| Some((line, name, (*end)?)));
        for ((line, name, end), height) in drawn.zip(&heights) {
            let places: Vec<_> = line.points.iter().map(place).collect();
            svg.group(&line.class, &line.title, |svg| {
                svg.polyline("run", &places);
                if let Some(mark) = line.mark {
                    places.iter().for_each(|&place| svg.mark(mark, place));
                }
                let text = (area.right + 16.0, *height);
                svg.line("leader", (end.0 + 5.0, end.1), (text.0 - 2.0, text.1 - 4.0));
                svg.text("label small", text, name);
            });
        }
        svg.finish(width, height, self.title)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCATTER: Scatter<'static> = Scatter {
        title: "t",
        form: Form::Wide,
        x: ("bits", 0.1),
        y: ("ns", 0.01),
        floor: None,
    };
    const RANKING: Ranking<'static> = Ranking {
        title: "t",
        form: Form::Narrow,
        legend: "l",
        marks: ["a", "b"],
    };

    fn point(x: f64, y: f64, label: &str) -> Point {
        Point {
            x,
            y,
            label: label.into(),
            title: label.into(),
            class: String::new(),
            mark: Mark::Dot,
        }
    }

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        Line {
            name: name.into(),
            title: name.into(),
            class: "d1".into(),
            mark: None,
            points: points.to_vec(),
        }
    }

    /// The numbers of an attribute of all elements that start like this.
    fn numbers(drawn: &str, element: &str, attribute: &str) -> Vec<f64> {
        let parts = drawn.split(element).skip(1);
        let number = |part: &str| {
            let value = part.split(&format!("{attribute}=\"")).nth(1)?;
            value.split('"').next()?.parse().ok()
        };
        parts.filter_map(number).collect()
    }

    #[test]
    fn markup_in_a_name_stays_text() {
        let bad = "<script>&\"";
        let ranked = Ranked {
            name: bad.into(),
            title: bad.into(),
            class: String::new(),
            mark: Mark::Dot,
            value: 3.0,
            second: None,
            range: None,
        };
        let lines = Lines {
            title: bad,
            unit: bad,
            ticks: &[(1.0, bad.to_string())],
            least: 0.1,
            here: Some((1.0, bad)),
        };
        for drawn in [
            SCATTER.draw(&[point(1.0, 2.0, bad)]),
            RANKING.draw(&[ranked]),
            lines.draw(&[line(bad, &[(1.0, 2.0)])]),
        ] {
            assert!(!drawn.contains("<script>"), "{drawn}");
            assert!(drawn.contains("&lt;script&gt;"));
        }
    }

    #[test]
    fn labels_of_equal_lines_stand_apart() {
        let same = line("same", &[(3.0, 5.0), (9.0, 12.0)]);
        let lines = Lines {
            title: "t",
            unit: "u",
            ticks: &[],
            least: 0.1,
            here: None,
        };
        let drawn = lines.draw(&vec![same; 30]);
        let mut heights = numbers(&drawn, "<text class=\"label small\"", " y");
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 30);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] > 12.8));
    }

    #[test]
    fn a_line_without_points_moves_no_name() {
        let lines = Lines {
            title: "t",
            unit: "u",
            ticks: &[],
            least: 0.1,
            here: None,
        };
        let (low, high) = ([(1.0, 1.0), (2.0, 1.0)], [(1.0, 90.0), (2.0, 90.0)]);
        let drawn = lines.draw(&[line("none", &[]), line("low", &low), line("high", &high)]);
        assert!(!drawn.contains(">none</text>"));
        let heights = numbers(&drawn, "<text class=\"label small\"", " y");
        // A greater figure stands above.
        assert!(heights[0] > heights[1], "{heights:?}");
    }

    #[test]
    fn a_ranking_starts_with_the_least_and_all_are_on_one_scale() {
        let ranked = |name: &str, value, second| Ranked {
            name: name.into(),
            title: name.into(),
            class: String::new(),
            mark: Mark::Dot,
            value,
            second: Some(second),
            range: None,
        };
        let drawn = RANKING.draw(&[ranked("slow", 90.0, 200.0), ranked("fast", 2.0, 90.0)]);
        assert!(drawn.find(">fast<") < drawn.find(">slow<"));
        let across = numbers(&drawn, "<circle class=\"mark\"", " cx");
        // The hollow mark of a line comes first.
        let [fast_second, fast, slow_second, slow] = across[..] else {
            panic!("{across:?}");
        };
        assert_eq!(fast_second, slow, "both are 90");
        assert!(fast < slow && slow < slow_second);
    }

    #[test]
    fn nothing_to_draw_draws_no_nonsense() {
        let lines = Lines {
            title: "t",
            unit: "u",
            ticks: &[],
            least: 0.1,
            here: None,
        };
        for drawn in [SCATTER.draw(&[]), RANKING.draw(&[]), lines.draw(&[])] {
            assert!(!drawn.contains("inf") && !drawn.contains("NaN"), "{drawn}");
        }
    }
}
