//! Line charts as SVG: one file that needs nothing else, on white wherever it is shown.

use std::fmt::Write;

use crate::html::escape;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 736.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 418.0;
const INK: &str = "#1f2937";
const FAINT: &str = "#6b7280";

pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) log: bool,
    pub(crate) ticks: &'static [f64],
}

impl Axis {
    /// Where a value lies between the ends, as a share.
    fn share(&self, value: f64) -> f64 {
        let scale = |x: f64| if self.log { x.ln() } else { x };
        (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Mark {
    Line,
    Dashes,
    Dots,
    Diamonds,
}

pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) colour: &'static str,
    pub(crate) mark: Mark,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Text beside a point: right and down of it by so many units, before it if `to_left`.
pub(crate) struct Note {
    pub(crate) at: (f64, f64),
    pub(crate) by: (f64, f64),
    pub(crate) to_left: bool,
    pub(crate) text: String,
}

pub(crate) struct Chart {
    pub(crate) title: &'static str,
    pub(crate) subtitle: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// Vertical lines.
    pub(crate) guides: Vec<f64>,
    pub(crate) notes: Vec<Note>,
    /// Left upper corner of the legend.
    pub(crate) legend: (f64, f64),
}

impl Chart {
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            LEFT + self.x.share(x) * (RIGHT - LEFT),
            BOTTOM - self.y.share(y) * (BOTTOM - TOP),
        )
    }

    pub(crate) fn svg(&self) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" role=\"img\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n\
             <title>{}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n",
            escape(self.title)
        );
        text(
            &mut out,
            LEFT,
            30.0,
            "start",
            INK,
            "font-size=\"17\" font-weight=\"bold\"",
            self.title,
        );
        text(&mut out, LEFT, 50.0, "start", FAINT, "", &self.subtitle);
        self.axes(&mut out);
        for &x in &self.guides {
            let at = self.place((x, self.y.low)).0;
            line(
                &mut out,
                (at, TOP),
                (at, BOTTOM),
                FAINT,
                "stroke-dasharray=\"2 4\"",
            );
        }
        for series in &self.series {
            let points: Vec<_> = series.points.iter().map(|&p| self.place(p)).collect();
            draw(&mut out, series, &points);
        }
        for note in &self.notes {
            let (x, y) = self.place(note.at);
            let anchor = if note.to_left { "end" } else { "start" };
            text(
                &mut out,
                x + note.by.0,
                y + note.by.1,
                anchor,
                INK,
                "",
                &note.text,
            );
        }
        self.draw_legend(&mut out);
        out + "</svg>\n"
    }

    fn axes(&self, out: &mut String) {
        for &tick in self.y.ticks {
            let y = self.place((self.x.low, tick)).1;
            line(out, (LEFT, y), (RIGHT, y), "#e5e7eb", "");
            text(out, LEFT - 8.0, y + 4.5, "end", INK, "", &format!("{tick}"));
        }
        line(out, (LEFT, BOTTOM), (RIGHT, BOTTOM), INK, "");
        for &tick in self.x.ticks {
            let x = self.place((tick, self.y.low)).0;
            line(out, (x, BOTTOM), (x, BOTTOM + 5.0), INK, "");
            text(out, x, BOTTOM + 20.0, "middle", INK, "", &format!("{tick}"));
        }
        text(
            out,
            f64::midpoint(LEFT, RIGHT),
            HEIGHT - 18.0,
            "middle",
            INK,
            "",
            self.x.label,
        );
        let middle = f64::midpoint(TOP, BOTTOM);
        let turned = format!("transform=\"rotate(-90 20 {middle:.1})\"");
        text(out, 20.0, middle, "middle", INK, &turned, self.y.label);
    }

    fn draw_legend(&self, out: &mut String) {
        let (x, mut y) = self.legend;
        let longest = self.series.iter().map(|s| s.name.chars().count()).max();
        let width = 52.0 + 6.6 * longest.unwrap_or(0) as f64;
        let height = 20.0 * self.series.len() as f64 + 10.0;
        // The curves and the grid do not run through the words.
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#ffffff\"/>"
        );
        y += 15.0;
        for series in &self.series {
            let sample = match series.mark {
                Mark::Line | Mark::Dashes => vec![(x + 8.0, y), (x + 34.0, y)],
                Mark::Dots | Mark::Diamonds => vec![(x + 21.0, y)],
            };
            draw(out, series, &sample);
            text(out, x + 42.0, y + 4.5, "start", INK, "", series.name);
            y += 20.0;
        }
    }
}

fn draw(out: &mut String, series: &Series, points: &[(f64, f64)]) {
    let colour = series.colour;
    let dashes = match series.mark {
        Mark::Dashes => " stroke-dasharray=\"7 4\"",
        _ => "",
    };
    // Writing to a string cannot fail, here and below.
    let _ = match series.mark {
        Mark::Line | Mark::Dashes => {
            let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
                path.join(" ")
            )
        }
        Mark::Dots => points.iter().try_for_each(|(x, y)| {
            writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\" stroke=\"#ffffff\"/>"
            )
        }),
        Mark::Diamonds => points.iter().try_for_each(|(x, y)| {
            writeln!(
                out,
                "<path d=\"M{x:.1} {:.1}l7 7l-7 7l-7 -7z\" fill=\"#ffffff\" fill-opacity=\"0.6\" stroke=\"{colour}\" \
                 stroke-width=\"2\"/>",
                y - 7.0
            )
        }),
    };
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, more: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" {more}/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, colour: &str, more: &str, text: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\" {more}>{}</text>",
        escape(text)
    );
}
