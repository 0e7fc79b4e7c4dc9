//! Charts as SVG.
//!
//! No series hides another: lines differ in their dashes, so that one shows through the gaps of another on top of it; dots are
//! rings, crosses and points, which can all be seen in one place.

use std::io;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{BoldPoints, Ranged};
use plotters::element::{DashedPathElement, DynElement};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::scale::{LABELS, Scale, number, shown};
use super::{Chart, Mark};

const SIZE: (u32, u32) = (760, 380);
/// Room right of the plot, for the names of series and levels.
const NAMES: u32 = 150;
/// A digit's width.
const DIGIT: f64 = 7.5;
/// The library draws text smaller than requested, by this factor.
const TEXT: f64 = 1.24;
const MESH: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
const AXIS: RGBColor = RGBColor(0x33, 0x33, 0x33);
const LEVEL: RGBColor = RGBColor(0x66, 0x66, 0x66);

/// Colours that colour-blind readers can tell apart (Okabe and Ito). Dashes and gaps tell lines apart without colours.
const STYLES: [(RGBColor, Option<(i32, i32)>); 6] = [
    (RGBColor(0xd5, 0x5e, 0x00), None),
    (RGBColor(0x00, 0x72, 0xb2), Some((9, 6))),
    (RGBColor(0x00, 0x9e, 0x73), Some((2, 5))),
    (RGBColor(0xcc, 0x79, 0xa7), Some((12, 3))),
    (RGBColor(0xe6, 0x9f, 0x00), Some((4, 4))),
    (RGBColor(0x56, 0xb4, 0xe9), Some((18, 5))),
];

type Backend<'a> = SVGBackend<'a>;
type Page<'a> = DrawingArea<Backend<'a>, Shift>;
type Plot<'a, 'b> = ChartContext<'a, Backend<'b>, Cartesian2d<Scale, Scale>>;
type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;

impl Chart {
    /// Returns the chart as an SVG document.
    pub fn to_svg(&self) -> String {
        let mut svg = String::new();
        let page = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        self.draw(&page).expect("a string takes everything");
        drop(page);
        svg
    }

    fn draw(&self, page: &Page) -> Drawn {
        page.fill(&WHITE)?;
        name(page, &self.title, (12, 18), 15.0, &BLACK)?;
        let (x, y) = self.scales();
        let labels = y.key_points(BoldPoints(LABELS)).into_iter().map(number);
        let longest = labels.map(|label| label.len()).max().unwrap_or(0);
        let mut plot = ChartBuilder::on(page)
            .margin_top(40)
            .margin_right(NAMES)
            .margin_left(4)
            .margin_bottom(4)
            .x_label_area_size(42)
            .y_label_area_size(34 + (DIGIT * longest as f64) as u32)
            .build_cartesian_2d(x, y)?;
        plot.configure_mesh()
            .x_labels(LABELS)
            .y_labels(LABELS)
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .label_style(text(12.0))
            .axis_style(AXIS)
            .bold_line_style(MESH)
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(3)
            .draw()?;
        self.draw_levels(page, &mut plot)?;
        self.draw_series(page, &mut plot)?;
        page.present()
    }

    fn draw_levels(&self, page: &Page, plot: &mut Plot) -> Drawn {
        let ends = plot.x_range();
        for level in &self.levels {
            let line = [(ends.start, level.height), (ends.end, level.height)];
            plot.draw_series(DashedLineSeries::new(line, 3, 3, LEVEL.into()))?;
            let (right, height) = plot.backend_coord(&(ends.end, level.height));
            name(page, &level.name, (right + 6, height), 11.0, &LEVEL)?;
        }
        Ok(())
    }

    /// Draws the series, and their names beside the plot.
    fn draw_series(&self, page: &Page, plot: &mut Plot) -> Drawn {
        let (across, down) = plot.plotting_area().get_pixel_range();
        for (at, series) in self.series.iter().enumerate() {
            let points = shown(series, plot.as_coord_spec());
            let (left, height) = (across.end + 10, down.start + 10 + 20 * at as i32);
            match series.mark {
                Mark::Line => {
                    plot.draw_series([line(at, points)])?;
                    page.draw(&line(at, vec![(left, height), (left + 28, height)]))?;
                }
                Mark::Dots => {
                    plot.draw_series(points.into_iter().map(|point| dot(at, point)))?;
                    page.draw(&dot(at, (left + 12, height)))?;
                }
            }
            name(page, &series.name, (left + 36, height), 12.0, &BLACK)?;
        }
        Ok(())
    }
}

fn text(size: f64) -> TextStyle<'static> {
    ("sans-serif", size * TEXT).into_font().color(&BLACK)
}

/// Draws a name that begins at a place.
fn name(page: &Page, of: &str, place: (i32, i32), size: f64, colour: &RGBColor) -> Drawn {
    let style = text(size).color(colour);
    let style = style.pos(Pos::new(HPos::Left, VPos::Center));
    page.draw(&Text::new(of.to_owned(), place, style))
}

/// Draws a series' line.
fn line<'a, C: Clone + 'static>(at: usize, places: Vec<C>) -> DynElement<'static, Backend<'a>, C> {
    let (colour, dashes) = STYLES[at % STYLES.len()];
    // The first line is wide enough to be seen on both sides of another one on top of it.
    let style = colour.stroke_width(if at == 0 { 4 } else { 2 });
    match dashes {
        None => PathElement::new(places, style).into_dyn(),
        Some((dash, gap)) => DashedPathElement::new(places, dash, gap, style).into_dyn(),
    }
}

/// Draws a point of a series of dots.
fn dot<'a, C: Clone + 'static>(at: usize, place: C) -> DynElement<'static, Backend<'a>, C> {
    let (colour, _) = STYLES[at % STYLES.len()];
    match at % 3 {
        0 => Circle::new(place, 3, colour).into_dyn(),
        1 => Cross::new(place, 3, colour).into_dyn(),
        _ => Circle::new(place, 2, colour.filled()).into_dyn(),
    }
}
