//! The plots of a report: which figures of which experiment are drawn, and how.
//!
//! Each is drawn twice, for a desk's and for a phone's width, since text that is scaled down with a
//! picture cannot be read. Colours are of Okabe and Ito's palette, which colour-blind readers tell
//! apart; lines differ in their marks besides, and bars carry their numbers.

mod bars;
mod lines;
mod paint;

use crate::Result;
use crate::results::{Experiment, Figure, Results, Row, Series, figure as f, number_of};
use bars::Bars;
use lines::{Axis, Line, Lines};
use paint::Stroke;
pub(crate) use paint::bytes;

/// A plot, at both widths.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The name of its file, without `.svg`.
    pub name: String,
    /// What it shows, for a reader who cannot see it.
    pub alt: String,
    /// The SVG for a wide page.
    pub desk: String,
    /// The SVG for a phone.
    pub phone: String,
}

/// Widths in pixels.
const DESK: u32 = 580;
const PHONE: u32 = 340;

/// The plots of one experiment; only what was measured is drawn.
pub fn plots(results: &Results, e: &Experiment) -> Result<Vec<Plot>> {
    let mut drawn = Vec::new();
    let servers: Vec<&str> = results.servers.iter().map(|s| s.label.as_str()).collect();
    let mut bars = |figure: Figure, title: &str| -> Result<()> {
        drawn.extend(bar_plot(e, &servers, figure.name, title)?);
        Ok(())
    };
    match e.name.as_str() {
        "ring" => {
            bars(f::WRITE_CALLS, "Data-file write calls by BUFFER_USAGE_LIMIT")?;
            bars(f::VACUUM_TIME, "VACUUM time by BUFFER_USAGE_LIMIT")?;
        }
        "sync" => {
            bars(f::VACUUM_TIME, "VACUUM time by BUFFER_USAGE_LIMIT")?;
            bars(f::WRITES, "Writes of VACUUM by BUFFER_USAGE_LIMIT")?;
            bars(f::WAL_SYNCS, "WAL syncs of VACUUM by BUFFER_USAGE_LIMIT")?;
        }
        "freeze" => {
            for (figure, title) in [
                (f::VACUUM_LENGTH, "Length of each vacuum"),
                (f::FROZEN_PAGES, "Pages frozen by each vacuum"),
                (f::BACKLOG, "Freeze backlog: all-visible pages not yet frozen"),
                (f::P99, "p99 latency of the load"),
            ] {
                drawn.extend(time_plot(e, &servers, figure.name, title)?);
            }
        }
        "index" => {
            let curves = [(f::INDEX_ON, "ON"), (f::INDEX_OFF, "OFF")];
            let title = "VACUUM by share of rows updated";
            drawn.extend(curve_plot(e, &servers, "index", title, &curves, Axis::Share)?);
        }
        "drop" => {
            let [live, redo] = ["live", "crash recovery"];
            for (name, title, curves) in [
                ("truncate", "TRUNCATEs", [(f::TRUNCATE_LIVE, live), (f::TRUNCATE_REDO, redo)]),
                ("vacuum", "VACUUMs", [(f::VACUUM_LIVE, live), (f::VACUUM_REDO, redo)]),
                (
                    "truncate-full",
                    "TRUNCATEs, pool full of another table",
                    [(f::TRUNCATE_LIVE_FULL, live), (f::TRUNCATE_REDO_FULL, redo)],
                ),
                (
                    "vacuum-full",
                    "VACUUMs, pool full of another table",
                    [(f::VACUUM_LIVE_FULL, live), (f::VACUUM_REDO_FULL, redo)],
                ),
            ] {
                let title = format!("{title}, by shared_buffers");
                let name = format!("drop-{name}");
                drawn.extend(curve_plot(e, &servers, &name, &title, &curves, Axis::Bytes)?);
            }
        }
        _ => {
            for series in distinct(e.series.iter().map(|s| s.figure.as_str())) {
                // Bars of the same figure come after, in a file of their own.
                let plot = time_plot(e, &servers, series, series)?;
                drawn.extend(plot.map(|p| Plot { name: format!("{}-over-time", p.name), ..p }));
            }
            for figure in distinct(e.rows.iter().map(|r| r.figure.as_str())) {
                drawn.extend(bar_plot(e, &servers, figure, figure)?);
            }
        }
    }
    Ok(drawn)
}

/// Distinct values in the order in which they came.
pub(crate) fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

fn file_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    name.trim_matches('-').to_owned()
}

/// Bars of one figure, a group for each setting.
fn bar_plot(e: &Experiment, servers: &[&str], figure: &str, title: &str) -> Result<Option<Plot>> {
    let rows: Vec<&Row> =
        e.rows.iter().filter(|r| r.figure == figure && r.median.is_finite()).collect();
    let Some(first) = rows.first() else { return Ok(None) };
    let mut groups = distinct(rows.iter().map(|r| r.x.as_str()));
    by_size(&mut groups);
    let value = |server: &str, x: &str| e.median(server, x, figure);
    let bars = Bars {
        title,
        unit: &first.unit,
        groups: &groups,
        series: servers
            .iter()
            .enumerate()
            .map(|(at, server)| (at, *server, groups.iter().map(|x| value(server, x)).collect()))
            .filter(|(_, _, values): &(usize, &str, Vec<Option<f64>>)| {
                values.iter().any(Option::is_some)
            })
            .collect(),
    };
    let name = format!("{}-{}", e.name, file_name(figure));
    Ok(Some(Plot { name, alt: title.into(), desk: bars.draw(DESK)?, phone: bars.draw(PHONE)? }))
}

/// Settings by the numbers in them; 0, no limit, is the largest. Those without a number come after, as they came.
pub(crate) fn by_size(settings: &mut [&str]) {
    let size = |x: &str| match x {
        "no limit" => Some(f64::INFINITY),
        x => number_of(x).map(|n| if n == 0.0 { f64::INFINITY } else { n }),
    };
    let key = |x: &str| size(x).map_or((true, 0.0), |n| (false, n));
    settings.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
}

/// Lines of one figure over time, one for each server and setting.
fn time_plot(e: &Experiment, servers: &[&str], figure: &str, title: &str) -> Result<Option<Plot>> {
    let series: Vec<&Series> =
        e.series.iter().filter(|s| s.figure == figure && !s.points.is_empty()).collect();
    let Some(first) = series.first() else { return Ok(None) };
    // Of all the experiment's series, so that a setting is drawn alike in each plot.
    let settings = distinct(e.series.iter().map(|s| s.x.as_str()));
    let label = |s: &Series| match s.x.as_str() {
        "" => s.server.clone(),
        x => format!("{}, {x}", s.server),
    };
    let lines = Lines {
        title,
        unit: &first.unit,
        x: Axis::Seconds,
        log: false,
        lines: series
            .iter()
            .map(|s| Line {
                label: label(s),
                colour: servers.iter().position(|l| *l == s.server).unwrap_or(servers.len()),
                stroke: Stroke::nth(settings.iter().position(|x| *x == s.x).unwrap_or(0)),
                points: s.points.clone(),
            })
            .collect(),
    };
    let name = format!("{}-{}", e.name, file_name(figure));
    Ok(Some(Plot { name, alt: title.into(), desk: lines.draw(DESK)?, phone: lines.draw(PHONE)? }))
}

/// Curves over the setting, both axes logarithmic; the second kind of curve is dashed.
fn curve_plot(
    e: &Experiment,
    servers: &[&str],
    name: &str,
    title: &str,
    curves: &[(Figure, &str)],
    axis: Axis,
) -> Result<Option<Plot>> {
    let mut lines = Vec::new();
    for (colour, server) in servers.iter().enumerate() {
        for (at, (figure, word)) in curves.iter().enumerate() {
            let of = |r: &&Row| r.server == *server && r.figure == figure.name;
            let mut points: Vec<(f64, f64)> = e
                .rows
                .iter()
                .filter(of)
                .filter_map(|r| number_of(&r.x).filter(|x| *x > 0.0).map(|x| (x, r.median)))
                .filter(|(_, y)| *y > 0.0)
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if !points.is_empty() {
                lines.push(Line {
                    label: format!("{server}, {word}"),
                    colour,
                    stroke: Stroke::nth(at),
                    points,
                });
            }
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let lines = Lines { title, unit: "s", x: axis, log: true, lines };
    Ok(Some(Plot {
        name: name.into(),
        alt: title.into(),
        desk: lines.draw(DESK)?,
        phone: lines.draw(PHONE)?,
    }))
}
