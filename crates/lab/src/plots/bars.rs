//! Bars that lie, so that their numbers and labels always have room: a group for each setting.

use super::paint::{self, Key, SMALL, failed, heading, text, whole, width};
use crate::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// A bar chart.
#[derive(Debug)]
pub struct Bars<'a> {
    /// What it shows.
    pub title: &'a str,
    /// The unit of all values.
    pub unit: &'a str,
    /// The labels of the groups.
    pub groups: &'a [&'a str],
    /// Place of the server, its label, and a value for each group.
    pub series: Vec<(usize, &'a str, Vec<Option<f64>>)>,
}

const BAR: i32 = 16;
const GAP: i32 = 14;

impl Bars<'_> {
    /// The SVG at a width.
    pub fn draw(&self, full: u32) -> Result<String> {
        let title = match self.unit {
            "" | "calls" | "syncs" | "writes" | "bytes" => self.title.to_owned(),
            unit => format!("{} ({unit})", self.title),
        };
        let keys: Vec<Key<'_>> = self
            .series
            .iter()
            .map(|(colour, label, _)| Key { label, colour: *colour, stroke: None })
            .collect();
        let one = i32::try_from(self.series.len()).unwrap_or(1) * BAR + GAP;
        let groups = i32::try_from(self.groups.len()).unwrap_or(1);
        // Once to learn how high the heading is, once to draw.
        let mut scratch = String::new();
        let top = {
            let area = SVGBackend::with_string(&mut scratch, (full, 100)).into_drawing_area();
            heading(&area, &title, &keys, false)? + 6
        };
        let bottom = top + one * groups;
        let height = bottom + 24;
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (full, height.unsigned_abs()))
                .into_drawing_area();
            heading(&area, &title, &keys, true)?;
            let values = || self.series.iter().flat_map(|(_, _, v)| v.iter().flatten().copied());
            let most = values().fold(0.0, f64::max);
            let longest =
                values().map(|v| width(&paint::short(v, self.unit), SMALL)).max().unwrap_or(0);
            let labels = self.groups.iter().map(|g| width(g, SMALL)).max().unwrap_or(0);
            let left = 8 + labels + 10;
            let right = full.cast_signed() - 8;
            // The longest bar ends where its number still fits.
            let room = f64::from((right - longest - 8 - left).max(40));
            let ticks = paint::steps(most, if full < 500 { 3.0 } else { 5.0 });
            let scale = if most > 0.0 { room / most } else { 0.0 };
            for tick in &ticks {
                let x = left + whole(tick * scale);
                if x <= right {
                    let line = vec![(x, top - 2), (x, bottom - GAP / 2 + 4)];
                    area.draw(&PathElement::new(line, paint::grid().stroke_width(1)))
                        .map_err(failed)?;
                    let label = paint::short(*tick, self.unit);
                    // A number that would leave the picture is left out; its line stays.
                    if x + width(&label, SMALL) / 2 <= full.cast_signed() {
                        let style = text(SMALL, HPos::Center, VPos::Top);
                        area.draw(&Text::new(label, (x, bottom), style)).map_err(failed)?;
                    }
                }
            }
            let mut y = top;
            for (at, group) in self.groups.iter().enumerate() {
                let middle = y + (one - GAP) / 2;
                let style = text(SMALL, HPos::Right, VPos::Center);
                area.draw(&Text::new((*group).to_owned(), (left - 8, middle), style))
                    .map_err(failed)?;
                for (which, (colour, _, values)) in self.series.iter().enumerate() {
                    let Some(value) = values.get(at).copied().flatten() else { continue };
                    let upper = y + i32::try_from(which).unwrap_or(0) * BAR;
                    let end = left + whole(value * scale).max(1);
                    let bar = [(left, upper + 1), (end, upper + BAR - 1)];
                    area.draw(&Rectangle::new(bar, paint::colour(*colour).filled()))
                        .map_err(failed)?;
                    let style = text(SMALL, HPos::Left, VPos::Center);
                    let label = paint::short(value, self.unit);
                    area.draw(&Text::new(label, (end + 5, upper + BAR / 2), style))
                        .map_err(failed)?;
                }
                y += one;
            }
            area.present().map_err(failed)?;
        }
        Ok(paint::finish(&svg, self.title))
    }
}
