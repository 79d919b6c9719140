//! Line charts over packet length, drawn as SVG.

use maud::{Markup, html};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 40.0;

/// Points joined by a line, or single points.
pub(crate) struct Series {
    pub(crate) name: String,
    /// Length of an inner packet in bytes, and its figure; sorted by length.
    pub(crate) points: Vec<(f64, f64)>,
    /// Measurements, drawn as dots in addition to a fitted line.
    pub(crate) dots: Vec<(f64, f64)>,
}

/// A chart of figures over length, with two logarithmic axes.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// Quantity and unit of the figures.
    pub(crate) unit: &'static str,
    pub(crate) series: Vec<Series>,
    /// Lengths to mark.
    pub(crate) marks: Vec<usize>,
}

/// Maps values to positions by their logarithms.
#[derive(Clone, Copy)]
pub(crate) struct Axis {
    min: f64,
    max: f64,
}

impl Axis {
    /// The axis from one power of two to another that covers all values above 0.
    fn around(values: impl Iterator<Item = f64>) -> Self {
        // Others have no place on a logarithmic axis.
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let (min, max) = positive
            .map(f64::log2)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |ends, value| {
                (ends.0.min(value), ends.1.max(value))
            });
        // No value at all, which leaves the ends infinite.
        if min > max {
            return Self { min: 0.0, max: 1.0 };
        }
        Self {
            min: min.floor(),
            // At least one doubling: equal values would divide by zero in `share`.
            max: max.ceil().max(min.floor() + 1.0),
        }
    }

    /// Number of doublings from end to end.
    pub(crate) const fn doublings(self) -> usize {
        (self.max - self.min) as usize
    }

    /// Returns the value this number of halvings below the end.
    pub(crate) fn below_end(self, halvings: usize) -> f64 {
        (self.max - halvings as f64).exp2()
    }

    /// Position of a value on the axis: from 0 to 1.
    pub(crate) fn share(&self, value: f64) -> f64 {
        (value.log2() - self.min) / (self.max - self.min)
    }

    /// Tick marks: powers of two, at most a dozen.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        // A long axis has fewer ticks, else their labels would touch.
        let step = ((self.max - self.min) / 12.0).ceil().max(1.0) as usize;
        (self.min as i32..=self.max as i32)
            .step_by(step)
            .map(|power| f64::from(power).exp2())
    }
}

impl Chart {
    /// The axes of lengths and of figures, which cover all points.
    pub(crate) fn axes(&self) -> [Axis; 2] {
        let all = || {
            self.series
                .iter()
                .flat_map(|series| series.points.iter().chain(&series.dots))
        };
        [
            Axis::around(all().map(|(x, _)| *x)),
            Axis::around(all().map(|(_, y)| *y)),
        ]
    }

    pub(crate) fn draw(&self) -> Markup {
        let [x_axis, y_axis] = self.axes();
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let x = |value: f64| LEFT + (right - LEFT) * x_axis.share(value);
        let y = |value: f64| bottom - (bottom - TOP) * y_axis.share(value);
        let line = |points: &[(f64, f64)]| {
            let points = points
                .iter()
                // A tenth of a pixel is enough, and keeps the page small.
                .map(|(a, b)| format!("{:.1},{:.1}", x(*a), y(*b)));
            points.collect::<Vec<_>>().join(" ")
        };
        html! {
            figure {
                figcaption { (self.title) ", " (self.unit) }
                svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(self.title) {
                    @for tick in x_axis.ticks() {
                        line .grid x1=(x(tick)) x2=(x(tick)) y1=(TOP) y2=(bottom);
                        text .tick x=(x(tick)) y=(bottom + 16.0) text-anchor="middle" { (tick) }
                    }
                    text .tick x=(right) y=(bottom + 32.0) text-anchor="end" { "inner packet, B" }
                    @for tick in y_axis.ticks() {
                        line .grid x1=(LEFT) x2=(right) y1=(y(tick)) y2=(y(tick));
                        text .tick x=(LEFT - 6.0) y=(y(tick) + 4.0) text-anchor="end" { (tick) }
                    }
                    @for mark in &self.marks {
                        line .mark x1=(x(*mark as f64)) x2=(x(*mark as f64)) y1=(TOP) y2=(bottom);
                        text .tick x=(x(*mark as f64) + 3.0) y=(TOP + 10.0) { (mark) " B" }
                    }
                    @for (index, series) in self.series.iter().enumerate() {
                        polyline class={ "line s" (index) } points=(line(&series.points));
                        @for (a, b) in &series.dots {
                            circle class={ "dot s" (index) } cx=(format!("{:.1}", x(*a)))
                                cy=(format!("{:.1}", y(*b))) r="3";
                        }
                        text class={ "name s" (index) } x=(right + 10.0)
                            y=(TOP + 14.0 + 18.0 * index as f64) { (series.name) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_powers_of_two_around_its_values() {
        let axis = Axis::around([70.0, 0.0, f64::NAN, 900.0].into_iter());
        assert_eq!(
            axis.ticks().collect::<Vec<_>>(),
            [64.0, 128.0, 256.0, 512.0, 1024.0]
        );
        assert!(axis.share(64.0).abs() < 1e-9 && (axis.share(1024.0) - 1.0).abs() < 1e-9);
        let one = Axis::around([64.0].into_iter());
        assert!(one.share(64.0).is_finite());
        assert!(Axis::around(std::iter::empty()).share(1.0).is_finite());
    }

    #[test]
    fn a_chart_escapes_its_names() {
        let chart = Chart {
            title: "a < b".to_owned(),
            unit: "ns",
            series: vec![Series {
                name: "<script>".to_owned(),
                points: vec![(64.0, 30.0), (128.0, 60.0)],
                dots: vec![(64.0, 31.0)],
            }],
            marks: vec![96],
        };
        let text = chart.draw().into_string();
        assert!(
            !text.contains("<script>") && text.contains("&lt;script&gt;"),
            "{text}"
        );
        assert!(text.contains("96 B") && !text.contains("NaN"), "{text}");
    }
}
