//! Rectangles: parts of a chart, and boxes around texts.

/// A rectangle; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A straight line between two points.
pub(super) type Segment = [(f64, f64); 2];

impl Area {
    pub(crate) const fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// A bar of this width and height from the left edge, with its top at `y`.
    pub(crate) const fn bar(self, y: f64, width: f64, height: f64) -> Self {
        Self::new(self.x, y, width, height)
    }

    pub(crate) fn right(self) -> f64 {
        self.x + self.width
    }

    pub(crate) fn bottom(self) -> f64 {
        self.y + self.height
    }

    pub(crate) fn middle(self) -> f64 {
        self.x + self.width / 2.0
    }

    /// The x coordinate of a share, from 0 at the left to 1 at the right.
    pub(crate) fn x_at(self, share: f64) -> f64 {
        self.x + self.width * share
    }

    /// The y coordinate of a share, from 0 at the bottom to 1 at the top.
    pub(crate) fn y_at(self, share: f64) -> f64 {
        self.bottom() - self.height * share
    }

    /// Whether two areas overlap.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.x < other.right()
            && other.x < self.right()
            && self.y < other.bottom()
            && other.y < self.bottom()
    }

    /// Whether a line passes through the area (Liang-Barsky).
    pub(crate) fn is_crossed_by(self, [(x1, y1), (x2, y2)]: Segment) -> bool {
        let (dx, dy) = (x2 - x1, y2 - y1);
        // Each side of the area bounds the part of the line inside it, from 0 at its first point to
        // 1 at its second one.
        let (mut enters, mut leaves) = (0.0_f64, 1.0_f64);
        for (toward, room) in [
            (-dx, x1 - self.x),
            (dx, self.right() - x1),
            (-dy, y1 - self.y),
            (dy, self.bottom() - y1),
        ] {
            // A line parallel to a side is entirely inside or outside of it. One along the edge
            // does not count as a crossing.
            if toward == 0.0 {
                if room <= 0.0 {
                    return false;
                }
            } else if toward < 0.0 {
                enters = enters.max(room / toward);
            } else {
                leaves = leaves.min(room / toward);
            }
        }
        // The line is inside all four sides between the last entry and the first exit.
        enters < leaves
    }

    /// The area enlarged by `by` on each side.
    pub(crate) fn grown(self, by: f64) -> Self {
        let (width, height) = (self.width + 2.0 * by, self.height + 2.0 * by);
        Self::new(self.x - by, self.y - by, width, height)
    }

    /// The smallest area that contains both.
    pub(crate) fn with(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let right = self.right().max(other.right());
        let bottom = self.bottom().max(other.bottom());
        Self::new(x, y, right - x, bottom - y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_that_only_touch_do_not_overlap() {
        let area = Area::new(0.0, 0.0, 10.0, 10.0);
        assert!(area.overlaps(Area::new(9.0, 9.0, 5.0, 5.0)));
        assert!(!area.overlaps(Area::new(10.0, 0.0, 5.0, 5.0)));
        assert_eq!(
            area.with(Area::new(12.0, -1.0, 1.0, 1.0)),
            Area::new(0.0, -1.0, 13.0, 11.0)
        );
    }

    #[test]
    fn a_line_crosses_where_it_passes_through() {
        let area = Area::new(0.0, 0.0, 10.0, 10.0);
        for (line, crosses) in [
            ([(-5.0, 5.0), (15.0, 5.0)], true),
            ([(5.0, -5.0), (5.0, 2.0)], true),
            ([(-5.0, -1.0), (15.0, -1.0)], false),
            ([(-5.0, 0.0), (15.0, 0.0)], false),
            ([(-4.0, 3.0), (3.0, -4.0)], false),
            ([(-1.0, 3.0), (3.0, -1.0)], true),
            ([(2.0, 2.0), (3.0, 3.0)], true),
            ([(12.0, 2.0), (13.0, 3.0)], false),
        ] {
            assert_eq!(area.is_crossed_by(line), crosses, "{line:?}");
        }
    }
}
