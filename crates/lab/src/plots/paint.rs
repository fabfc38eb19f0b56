//! What all plots share: colours, text, the legend, ticks, and the SVG made fit for both modes.

use crate::{Error, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The drawing area of an SVG.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Okabe and Ito's colours, in the order of servers; black is left to text.
const SERIES: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(240, 228, 66),
];
/// Text; a value of its own, so that it can be found again in the SVG.
const TEXT: RGBColor = RGBColor(0x21, 0x21, 0x22);
/// Lines of the grid.
const GRID: RGBColor = RGBColor(0xdc, 0xdd, 0xde);

/// The same in dark mode, lighter where the light one would drown.
const DARK: [(&str, &str); 4] = [
    ("#212122", "#e4e4e7"),
    ("#DCDDDE", "#3a3b3f"),
    ("#0072B2", "#56b4e9"),
    ("#D55E00", "#f0803c"),
];

/// Text of the labels, in pixels.
pub const SMALL: f64 = 12.0;
/// Text of the title.
pub const LARGE: f64 = 14.0;

/// The colour of a server.
pub fn colour(at: usize) -> RGBColor {
    SERIES[at % SERIES.len()]
}

/// The colour of lines of the grid.
pub fn grid() -> RGBColor {
    GRID
}

/// A drawing's error as ours.
pub fn failed<E: std::error::Error + Send + Sync>(e: DrawingAreaErrorKind<E>) -> Error {
    format!("drawing a plot: {e}").into()
}

/// Text of a height in pixels, anchored.
pub fn text(pixels: f64, h: HPos, v: VPos) -> TextStyle<'static> {
    // plotters divides what it is given by 1.24 when it writes SVG.
    ("sans-serif", pixels * 1.24).into_text_style(&(1, 1)).color(&TEXT).pos(Pos::new(h, v))
}

/// About how wide a text is; there are no fonts to ask.
pub fn width(text: &str, pixels: f64) -> i32 {
    whole(
        text.chars().map(|c| if "ijlt.,:;' 1()/".contains(c) { 0.38 } else { 0.62 }).sum::<f64>()
            * pixels,
    )
}

/// A pixel.
#[expect(clippy::cast_possible_truncation, reason = "pixels of a picture")]
pub fn whole(value: f64) -> i32 {
    value.round() as i32
}

/// One entry of a legend.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// Its text.
    pub label: &'a str,
    /// The server.
    pub colour: usize,
    /// How its line is drawn; none for a bar.
    pub stroke: Option<Stroke>,
}

/// Draws title and legend from the top, and says how high they are together.
pub fn heading(area: &Area<'_>, title: &str, keys: &[Key<'_>], draw: bool) -> Result<i32> {
    let (full, _) = area.dim_in_pixel();
    let full = full.cast_signed();
    let mut y = 6;
    for line in wrapped(title, full - 16) {
        if draw {
            area.draw(&Text::new(line, (8, y), text(LARGE, HPos::Left, VPos::Top)))
                .map_err(failed)?;
        }
        y += 18;
    }
    y += 4;
    let mut x = 8;
    for key in keys {
        let needs = 26 + width(key.label, SMALL) + 14;
        if x > 8 && x + needs > full {
            (x, y) = (8, y + 18);
        }
        if draw {
            let paint = colour(key.colour);
            let middle = y + 7;
            match key.stroke {
                None => area
                    .draw(&Rectangle::new([(x, middle - 5), (x + 18, middle + 5)], paint.filled()))
                    .map_err(failed)?,
                Some(stroke) => {
                    let spans: &[(i32, i32)] = match stroke {
                        Stroke::Solid => &[(0, 20)],
                        Stroke::Dashed => &[(0, 5), (15, 20)],
                        Stroke::Dotted => &[(0, 2), (5, 7), (13, 15), (18, 20)],
                    };
                    for (from, to) in spans {
                        let line = vec![(x + from, middle), (x + to, middle)];
                        area.draw(&PathElement::new(line, paint.stroke_width(2)))
                            .map_err(failed)?;
                    }
                    mark(area, (x + 10, middle), key.colour, stroke)?;
                }
            }
            let style = text(SMALL, HPos::Left, VPos::Center);
            area.draw(&Text::new(key.label.to_owned(), (x + 26, middle), style)).map_err(failed)?;
        }
        x += needs;
    }
    Ok(y + 18 + 6)
}

/// How a line is drawn: by which setting it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// With filled marks.
    Solid,
    /// With open marks.
    Dashed,
    /// With small marks.
    Dotted,
}

impl Stroke {
    /// In turn, for the first setting, the second and so on.
    pub fn nth(at: usize) -> Stroke {
        [Stroke::Solid, Stroke::Dashed, Stroke::Dotted][at % 3]
    }

    /// Pixels on and off; none for a solid line.
    pub fn dashes(self) -> Option<(i32, i32)> {
        match self {
            Stroke::Solid => None,
            Stroke::Dashed => Some((7, 4)),
            Stroke::Dotted => Some((2, 3)),
        }
    }
}

/// A mark of a line: its shape tells the server, its filling and size the kind of line.
pub fn mark(area: &Area<'_>, at: (i32, i32), server: usize, stroke: Stroke) -> Result<()> {
    let open = stroke == Stroke::Dashed;
    let size = if stroke == Stroke::Dotted { 2 } else { 4 };
    let paint = colour(server);
    let style = if open { paint.stroke_width(2) } else { paint.filled() };
    let drawn = match server % 3 {
        0 => area.draw(&Circle::new(at, size, style)),
        1 => {
            let (x, y) = at;
            area.draw(&Rectangle::new([(x - size, y - size), (x + size, y + size)], style))
        }
        _ => {
            let (x, y) = at;
            let corners =
                vec![(x, y - size - 2), (x + size + 1, y + size), (x - size - 1, y + size)];
            if open {
                let round = [corners.clone(), vec![corners[0]]].concat();
                area.draw(&PathElement::new(round, style))
            } else {
                area.draw(&Polygon::new(corners, style))
            }
        }
    };
    drawn.map_err(failed)
}

/// Lines of a title that fit.
fn wrapped(title: &str, full: i32) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in title.split(' ') {
        let last = lines.last_mut().map(std::mem::take).unwrap_or_default();
        let longer = if last.is_empty() { word.to_owned() } else { format!("{last} {word}") };
        lines.pop();
        if width(&longer, LARGE) > full && !last.is_empty() {
            lines.push(last);
            lines.push(word.to_owned());
        } else {
            lines.push(longer);
        }
    }
    lines
}

/// Round steps from 0 to at least `top`, about `count` of them.
pub fn steps(top: f64, count: f64) -> Vec<f64> {
    if !(top.is_finite() && top > 0.0) {
        return vec![0.0, 1.0];
    }
    let rough = top / count;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|s| *s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let mut ticks = vec![0.0];
    while ticks.last().is_some_and(|t| *t < top * 0.999) && ticks.len() < 50 {
        #[expect(clippy::cast_precision_loss, reason = "a few ticks")]
        ticks.push(ticks.len() as f64 * step);
    }
    ticks
}

/// A value for a label, in few characters: `1.2 M`, `340 k`, `0.05`.
pub fn short(value: f64, unit: &str) -> String {
    if unit == "bytes" {
        return bytes(value);
    }
    let (scaled, suffix) = match value.abs() {
        v if v >= 999.5e6 => (value / 1e9, " G"),
        v if v >= 999.5e3 => (value / 1e6, " M"),
        v if v >= 9_999.5 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    format!("{}{suffix}", digits(scaled))
}

/// Three significant digits, without needless zeros.
pub fn digits(value: f64) -> String {
    let text = match value.abs() {
        0.0 => return "0".into(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.0995 => format!("{value:.3}"),
        v if v >= 0.001 => format!("{value:.4}"),
        v if v >= 0.000_01 => format!("{value:.6}"),
        _ => return format!("{value:.1e}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// Bytes as a person says them.
pub fn bytes(value: f64) -> String {
    let units =
        [(1024f64.powi(4), "TB"), (1024f64.powi(3), "GB"), (1024f64.powi(2), "MB"), (1024.0, "kB")];
    match units.iter().find(|(size, _)| value.abs() >= *size * 0.9995) {
        Some((size, unit)) => format!("{} {unit}", digits(value / size)),
        None => format!("{} B", digits(value)),
    }
}

/// The SVG with a class on everything that changes its colour with the mode.
pub fn finish(svg: &str, alt: &str) -> String {
    let mut svg = svg.to_owned();
    let mut style = String::from(".ebb-plot text{font-family:system-ui,sans-serif}");
    let mut dark = String::new();
    for (at, (light, dark_colour)) in DARK.iter().enumerate() {
        for (attribute, letter) in [("fill", 'f'), ("stroke", 's')] {
            let plain = format!("{attribute}=\"{light}\"");
            svg = svg.replace(&plain, &format!("class=\"ebb-{letter}{at}\" {plain}"));
            dark.push_str(&format!(".ebb-{letter}{at}{{{attribute}:{dark_colour}}}"));
        }
    }
    style.push_str(&format!("@media (prefers-color-scheme:dark){{{dark}}}"));
    let alt = alt.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let open = format!("<svg class=\"ebb-plot\" role=\"img\" aria-label=\"{alt}\" ");
    let svg = svg.replacen("<svg ", &open, 1);
    match svg.find('>') {
        Some(end) => {
            let (head, rest) = svg.split_at(end + 1);
            format!("{head}\n<style>{style}</style>{rest}")
        }
        None => svg,
    }
}
