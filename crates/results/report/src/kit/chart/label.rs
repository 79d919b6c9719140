//! Labels and their candidate places.

use super::area::{Area, Segment};
use super::font::Font;

/// Height of a line of a label.
const LABEL_LINE: f64 = 13.0;
/// Distance of a step in which labels give way, and the number of steps.
pub(super) const STEP: f64 = 4.0;
pub(super) const STEPS: u32 = 24;

/// Alignment of a text relative to its position.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A candidate place for a label.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) position: (f64, f64),
    pub(crate) anchor: Anchor,
    /// Turned to read upwards.
    pub(crate) is_turned: bool,
}

/// A text that is placed at the end.
pub(super) struct Label {
    /// Lines with their classes, the last one at the spot.
    pub(crate) lines: Vec<(String, String)>,
    pub(crate) spots: Vec<Spot>,
    /// Start of the leader, a line to a label that gave way.
    pub(crate) leader: Option<(f64, f64)>,
}

impl Spot {
    pub(crate) const fn at(position: (f64, f64), anchor: Anchor) -> Self {
        Self {
            position,
            anchor,
            is_turned: false,
        }
    }

    pub(crate) const fn start(position: (f64, f64)) -> Self {
        Self::at(position, Anchor::Start)
    }

    pub(crate) const fn middle(position: (f64, f64)) -> Self {
        Self::at(position, Anchor::Middle)
    }

    pub(crate) const fn end(position: (f64, f64)) -> Self {
        Self::at(position, Anchor::End)
    }

    pub(crate) const fn turned(position: (f64, f64)) -> Self {
        Self {
            is_turned: true,
            ..Self::start(position)
        }
    }

    /// Places around a point, the nearest first, for a text next to it or above it.
    pub(crate) fn around(point: (f64, f64)) -> Vec<Self> {
        let away = [0.0, 6.0, 12.0, 20.0, 32.0, 48.0].into_iter();
        away.flat_map(|away| Self::near(point, away)).collect()
    }

    /// Places around a point at about one distance.
    pub(crate) fn near((x, y): (f64, f64), away: f64) -> [Self; 6] {
        // A rising curve passes neither left above nor right below a point, so these places come
        // first.
        [
            Self::end((x - 6.0 - away / 2.0, y - 8.0 - away)),
            Self::start((x + 6.0 + away / 2.0, y + 15.0 + away)),
            Self::middle((x, y - 9.0 - away)),
            Self::middle((x, y + 18.0 + away)),
            Self::start((x + 6.0 + away / 2.0, y - 8.0 - away)),
            Self::end((x - 6.0 - away / 2.0, y + 15.0 + away)),
        ]
    }

    /// Places to the right of a point, in growing distance.
    pub(crate) fn rightward((x, y): (f64, f64)) -> Vec<Self> {
        let place = |step: u32| Self::start((x + STEP * f64::from(step), y));
        (0..STEPS).map(place).collect()
    }

    /// The place this many lines higher.
    pub(crate) fn above(self, lines: usize) -> Self {
        let away = LABEL_LINE * lines as f64;
        let (x, y) = self.position;
        // Turned text reads upwards, so its lines are stacked from right to left.
        let position = if self.is_turned {
            (x - away, y)
        } else {
            (x, y - away)
        };
        Self { position, ..self }
    }

    /// The bounding box of a text.
    pub(crate) fn area(self, class: &str, text: &str) -> Area {
        let font = Font::of(class);
        let (x, y) = self.position;
        let width = font.width(text);
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        // The ascent covers digits and capitals, the rest of the size descenders.
        let (ascent, height) = (0.78 * font.size, font.size);
        if self.is_turned {
            Area::new(x - ascent, y - width + before, height, width)
        } else {
            Area::new(x - before, y - ascent, width, height)
        }
    }
}

impl Label {
    pub(crate) fn area(&self, spot: Spot) -> Area {
        // The last line is at the spot, the others are stacked on top of it.
        let lines = self.lines.iter().rev().enumerate();
        let areas = lines.map(|(above, (class, text))| spot.above(above).area(class, text));
        areas
            .reduce(Area::with)
            .unwrap_or(Area::new(0.0, 0.0, 0.0, 0.0))
    }

    /// The leader to a place that is not next to the labelled point.
    pub(crate) fn leader(&self, spot: Spot) -> Option<Segment> {
        let (x, y) = self.leader?;
        let to = (spot.position.0 - 2.0, spot.position.1 - 4.0);
        // A name that moved by one step is still next to its line.
        ((to.1 - y).abs() > STEP).then_some([(x + 5.0, y), to])
    }
}

/// Vertical offsets: 0, then below and above in growing steps.
pub(super) fn ways() -> impl Iterator<Item = f64> {
    (0..2 * STEPS).map(|step| {
        // Steps 1, 2, 3 become -1, 1, -2: as y grows downwards, a label first moves up.
        let away = STEP * f64::from(step.div_ceil(2));
        if step % 2 == 0 { away } else { -away }
    })
}
