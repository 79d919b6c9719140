//! Combinations of the values of axes.

use plan::{Axis, Coordinate, Value};
use yaml::{Place, Spanned};

/// More cells than this take weeks.
pub(crate) const CELLS_MAX: usize = 10_000;

/// A coordinate with the place of its value in the campaign.
pub(crate) type Placed<'a> = (Coordinate, &'a Place);

/// The combinations of the axes so far, the last axis varying fastest.
pub(crate) struct Grid<'a, T> {
    /// The points and their coordinates. Empty above [`CELLS_MAX`].
    points: Vec<(T, Vec<Placed<'a>>)>,
    /// How many points there are; saturates.
    count: usize,
    /// The trial: the place of values without one.
    trial: &'a Place,
}

impl<'a, T: Clone> Grid<'a, T> {
    /// One point without a coordinate.
    pub(crate) fn new(trial: &'a Place, start: T) -> Self {
        Self {
            points: vec![(start, Vec::new())],
            count: 1,
            trial,
        }
    }

    /// Multiplies by the values of an axis; `set` puts a value into a point.
    pub(crate) fn over<V: Clone + Into<Value>>(
        self,
        axis: Axis,
        values: &'a [Spanned<V>],
        set: impl Fn(&mut T, V),
    ) -> Self {
        self.multiply(values.len(), |mut point, at, coordinates| {
            let Spanned { value, place } = &values[at];
            set(&mut point, value.clone());
            coordinates.push((axis.at(value.clone()), place));
            point
        })
    }

    /// Multiplies by values that make several coordinates each.
    pub(crate) fn over_each<V, U>(
        self,
        values: &[V],
        make: impl Fn(T, &V) -> (U, Vec<Coordinate>),
    ) -> Grid<'a, U> {
        let trial = self.trial;
        self.multiply(values.len(), |point, at, coordinates| {
            let (point, found) = make(point, &values[at]);
            coordinates.extend(found.into_iter().map(|one| (one, trial)));
            point
        })
    }

    /// Adds a coordinate that all points of the trial share.
    pub(crate) fn with(self, axis: Axis, value: impl Into<Value>) -> Self {
        let coordinate = axis.at(value);
        self.over_each(&[()], |point, ()| (point, vec![coordinate.clone()]))
    }

    /// Converts the points.
    pub(crate) fn map<U>(self, change: impl Fn(T) -> U) -> Grid<'a, U> {
        self.over_each(&[()], |point, ()| (change(point), Vec::new()))
    }

    fn multiply<U>(
        mut self,
        factor: usize,
        make: impl Fn(T, usize, &mut Vec<Placed<'a>>) -> U,
    ) -> Grid<'a, U> {
        let count = self.count.saturating_mul(factor);
        // The points are dropped, not the count: the message names the size that the lists have.
        if count > CELLS_MAX {
            self.points.clear();
        }
        let mut points = Vec::with_capacity(self.points.len() * factor);
        for (point, coordinates) in self.points {
            // The value varies fastest, so the cells of one value of an earlier axis stay
            // together.
            for at in 0..factor {
                let mut coordinates = coordinates.clone();
                points.push((make(point.clone(), at, &mut coordinates), coordinates));
            }
        }
        Grid {
            points,
            count,
            trial: self.trial,
        }
    }

    /// How many points there are; saturates.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Returns all points; none if there are more than [`CELLS_MAX`].
    pub(crate) fn into_points(self) -> Vec<(T, Vec<Placed<'a>>)> {
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yaml::Node;

    fn spanned(values: &[u16]) -> Vec<Spanned<u16>> {
        let document = yaml::parse("test.yaml", "a: 1").unwrap();
        let place = document.decode(|node: Node<'_>| Ok(node.place())).unwrap();
        let spanned = |&value| Spanned {
            value,
            place: place.clone(),
        };
        values.iter().map(spanned).collect()
    }

    fn grid<'a>(
        trial: &'a Place,
        mtu: &'a [Spanned<u16>],
        cores: &'a [Spanned<u16>],
    ) -> Grid<'a, [u16; 2]> {
        Grid::new(trial, [0; 2])
            .over(Axis::Mtu, mtu, |point, mtu| point[0] = mtu)
            .over(Axis::Cores, cores, |point, cores| point[1] = cores)
    }

    #[test]
    fn the_last_axis_varies_fastest() {
        let (mtu, cores) = (spanned(&[1500, 9000]), spanned(&[1, 2, 3]));
        let grid = grid(&mtu[0].place, &mtu, &cores);
        assert_eq!(grid.count(), 6);
        let points: Vec<_> = grid.into_points();
        let values: Vec<_> = points.iter().map(|(point, _)| *point).collect();
        assert_eq!(values[..4], [[1500, 1], [1500, 2], [1500, 3], [9000, 1]]);
        let id: Vec<_> = points[5].1.iter().map(|(at, _)| at.to_string()).collect();
        assert_eq!(id, ["mtu=9000", "cores=3"]);
    }

    #[test]
    fn more_points_than_a_campaign_may_have_are_counted_and_not_made() {
        let many = spanned(&[1; 200]);
        let grid = grid(&many[0].place, &many, &many);
        assert_eq!(grid.count(), 40_000);
        assert!(grid.into_points().is_empty());
    }
}
