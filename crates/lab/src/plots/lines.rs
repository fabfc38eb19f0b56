//! Lines: figures over time on plain axes, curves over a setting on logarithmic ones.

use super::paint::{self, Key, SMALL, Stroke, failed, heading, mark, text, whole, width};
use crate::Result;
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// What the horizontal axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Seconds since the start.
    Seconds,
    /// A share, as a percentage.
    Share,
    /// Bytes of memory.
    Bytes,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its text in the legend.
    pub label: String,
    /// The place of its server.
    pub colour: usize,
    /// Solid, dashed or dotted.
    pub stroke: Stroke,
    /// In the order of x.
    pub points: Vec<(f64, f64)>,
}

/// A line chart.
#[derive(Debug)]
pub struct Lines<'a> {
    /// What it shows.
    pub title: &'a str,
    /// The unit of y.
    pub unit: &'a str,
    /// What x is.
    pub x: Axis,
    /// Whether both axes are logarithmic.
    pub log: bool,
    /// The lines.
    pub lines: Vec<Line>,
}

impl Lines<'_> {
    /// The SVG at a width.
    pub fn draw(&self, full: u32) -> Result<String> {
        let title = if matches!(self.unit, "" | "bytes") {
            self.title.to_owned()
        } else {
            format!("{} ({})", self.title, self.unit)
        };
        let keys: Vec<Key<'_>> = self
            .lines
            .iter()
            .map(|l| Key { label: &l.label, colour: l.colour, stroke: Some(l.stroke) })
            .collect();
        let mut scratch = String::new();
        let top = {
            let area = SVGBackend::with_string(&mut scratch, (full, 100)).into_drawing_area();
            heading(&area, &title, &keys, false)?
        };
        let plot = if full < 500 { 210 } else { 270 };
        let height = (top + plot + 44).unsigned_abs();
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (full, height)).into_drawing_area();
            heading(&area, &title, &keys, true)?;
            self.plot(&area, top, plot, full)?;
            area.present().map_err(failed)?;
        }
        Ok(paint::finish(&svg, self.title))
    }

    fn plot(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        top: i32,
        plot: i32,
        full: u32,
    ) -> Result<()> {
        let narrow = full < 500;
        let ys = || self.lines.iter().flat_map(|l| l.points.iter().map(|p| p.1));
        let xs = || self.lines.iter().flat_map(|l| l.points.iter().map(|p| p.0));
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MIN, f64::max);
        let smallest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MAX, f64::min);
        let (x_max, y_max) = (largest(&mut xs()), largest(&mut ys()));
        let (x_min, y_min) = (smallest(&mut xs()), smallest(&mut ys()));
        let y_ticks = if self.log { decades(y_min, y_max) } else { paint::steps(y_max, 4.0) };
        let x_ticks = match self.x {
            Axis::Seconds => paint::steps(x_max, if narrow { 4.0 } else { 7.0 }),
            Axis::Share | Axis::Bytes => {
                let mut ticks: Vec<f64> = xs().collect();
                ticks.sort_by(f64::total_cmp);
                ticks.dedup();
                ticks
            }
        };
        let scale = |v: f64| if self.log { v.log10() } else { v };
        let y_labels: Vec<String> = y_ticks.iter().map(|t| paint::short(*t, self.unit)).collect();
        let left = 8 + y_labels.iter().map(|l| width(l, SMALL)).max().unwrap_or(0) + 8;
        let right = full.cast_signed() - 22;
        let bottom = top + plot;
        let ends = |ticks: &[f64], low: f64, high: f64| {
            let low = ticks.first().map_or(low, |t| t.min(low));
            (scale(low), scale(ticks.last().map_or(high, |t| t.max(high))))
        };
        let (y_low, y_high) = ends(&y_ticks, y_min, y_max);
        let (x_low, x_high) = match self.x {
            Axis::Seconds => (0.0, x_max.max(1e-9)),
            Axis::Share | Axis::Bytes => (scale(x_min), scale(x_max)),
        };
        // A single setting stands in the middle.
        let place = |v: f64, low: f64, high: f64| {
            if high > low { (scale(v) - low) / (high - low) } else { 0.5 }
        };
        let x_at = |v: f64| left + whole(place(v, x_low, x_high) * f64::from(right - left));
        let y_at = |v: f64| bottom - whole(place(v, y_low, y_high) * f64::from(plot));

        let line = |from: (i32, i32), to: (i32, i32)| {
            area.draw(&PathElement::new(vec![from, to], paint::grid().stroke_width(1)))
                .map_err(failed)
        };
        for (tick, label) in y_ticks.iter().zip(y_labels) {
            let y = y_at(*tick);
            line((left, y), (right, y))?;
            let style = text(SMALL, HPos::Right, VPos::Center);
            area.draw(&Text::new(label, (left - 6, y), style)).map_err(failed)?;
        }
        let mut free = i32::MIN;
        for tick in x_ticks {
            let x = x_at(tick);
            if x > right + 2 {
                continue;
            }
            line((x, top), (x, bottom))?;
            let label = self.x_label(tick);
            let half = width(&label, SMALL) / 2 + 2;
            // Labels that would touch the one before are left out.
            if x - half >= free {
                let style = text(SMALL, HPos::Center, VPos::Top);
                area.draw(&Text::new(label, (x, bottom + 6), style)).map_err(failed)?;
                free = x + half;
            }
        }
        let name = match self.x {
            Axis::Seconds => "seconds since the start",
            Axis::Share => "rows updated",
            Axis::Bytes => "shared_buffers",
        };
        let style = text(SMALL, HPos::Center, VPos::Top);
        area.draw(&Text::new(name, (i32::midpoint(left, right), bottom + 24), style))
            .map_err(failed)?;
        for curve in &self.lines {
            self.curve(area, curve, &x_at, &y_at)?;
        }
        Ok(())
    }

    fn curve(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        curve: &Line,
        x_at: &dyn Fn(f64) -> i32,
        y_at: &dyn Fn(f64) -> i32,
    ) -> Result<()> {
        let points: Vec<(i32, i32)> =
            curve.points.iter().map(|(x, y)| (x_at(*x), y_at(*y))).collect();
        let style = paint::colour(curve.colour).stroke_width(2);
        match curve.stroke.dashes() {
            None => area.draw(&PathElement::new(points.clone(), style)),
            Some((on, off)) => area.draw(&DashedPathElement::new(points.clone(), on, off, style)),
        }
        .map_err(failed)?;
        // Many points are a line of their own; a few are marked.
        let each = points.len().div_ceil(24);
        for at in points.iter().step_by(each.max(1)) {
            mark(area, *at, curve.colour, curve.stroke)?;
        }
        Ok(())
    }

    fn x_label(&self, value: f64) -> String {
        match self.x {
            Axis::Seconds => paint::digits(value),
            Axis::Share => format!("{} %", paint::digits(value * 100.0)),
            Axis::Bytes => paint::bytes(value),
        }
    }
}

/// Powers of ten around a range; twos and fives too when it is short.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor(), high.log10().ceil());
    let between: &[f64] = if last - first <= 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut ticks = Vec::new();
    let mut power = first;
    while power <= last && ticks.len() < 60 {
        ticks.extend(between.iter().map(|b| b * 10f64.powf(power)));
        power += 1.0;
    }
    // Only the ticks that close in on the range.
    let from = ticks.iter().rposition(|t| *t <= low * 1.0001).unwrap_or(0);
    let to = ticks.iter().position(|t| *t >= high * 0.9999).unwrap_or(ticks.len() - 1);
    ticks[from..=to.max(from)].to_vec()
}
