//! Marks of devices, which distinguish devices with the colour or without it.

use super::number;
use crate::layout::{DEVICE_STYLES, GREY_STYLES};

/// Styles from here on repeat the colours of the first ones and are hatched, so that fills without
/// a mark differ too.
const HATCHED_FROM: usize = 8;

/// Corners of the marks by style, as shares of the radius. Empty means a circle.
const CORNERS: [&[(f64, f64)]; 1 + DEVICE_STYLES + GREY_STYLES.len() - 1] = [
    // Grey: a triangle to the right.
    &[(-0.8, -1.0), (1.0, 0.0), (-0.8, 1.0)],
    &[],
    &[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
    &[(0.0, -1.1), (1.05, 0.8), (-1.05, 0.8)],
    &[(0.0, -1.2), (1.0, 0.0), (0.0, 1.2), (-1.0, 0.0)],
    &[(-1.05, -0.8), (1.05, -0.8), (0.0, 1.1)],
    // Plus.
    &[
        (-0.35, -1.1),
        (0.35, -1.1),
        (0.35, -0.35),
        (1.1, -0.35),
        (1.1, 0.35),
        (0.35, 0.35),
        (0.35, 1.1),
        (-0.35, 1.1),
        (-0.35, 0.35),
        (-1.1, 0.35),
        (-1.1, -0.35),
        (-0.35, -0.35),
    ],
    // Cross.
    &[
        (-1.0, -0.5),
        (-0.5, -1.0),
        (0.0, -0.5),
        (0.5, -1.0),
        (1.0, -0.5),
        (0.5, 0.0),
        (1.0, 0.5),
        (0.5, 1.0),
        (0.0, 0.5),
        (-0.5, 1.0),
        (-1.0, 0.5),
        (-0.5, 0.0),
    ],
    // Star.
    &[
        (0.0, -1.25),
        (0.3, -0.4),
        (1.2, -0.39),
        (0.48, 0.16),
        (0.74, 1.02),
        (0.0, 0.5),
        (-0.74, 1.02),
        (-0.48, 0.16),
        (-1.2, -0.39),
        (-0.3, -0.4),
    ],
    // Hourglass.
    &[(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)],
    // Bow tie.
    &[(-1.0, -1.0), (1.0, 1.0), (1.0, -1.0), (-1.0, 1.0)],
    // Upright bar.
    &[(-0.4, -1.15), (0.4, -1.15), (0.4, 1.15), (-0.4, 1.15)],
    // Lying bar.
    &[(-1.15, -0.4), (1.15, -0.4), (1.15, 0.4), (-1.15, 0.4)],
    // Grey: a triangle to the left.
    &[(0.8, -1.0), (-1.0, 0.0), (0.8, 1.0)],
];

/// Whether fills of a style are hatched.
pub(crate) const fn is_hatched(style: usize) -> bool {
    style >= HATCHED_FROM && style <= DEVICE_STYLES
}

/// The outline of a style's mark, as path data.
pub(super) fn outline(style: usize, (x, y): (f64, f64), radius: f64) -> String {
    // Styles are bounded, but an index out of bounds would end the report.
    match CORNERS[style % CORNERS.len()] {
        [] => {
            // An arc that ends at its start is not drawn, so the circle consists of two halves.
            let (left, r, across) = (number(x - radius), number(radius), number(2.0 * radius));
            let y = number(y);
            format!("M{left} {y}a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 -{across} 0Z")
        }
        corners => {
            let corner = |(dx, dy): &(f64, f64)| {
                let (x, y) = (number(x + dx * radius), number(y + dy * radius));
                format!("{x} {y}")
            };
            let corners: Vec<String> = corners.iter().map(corner).collect();
            format!("M{}Z", corners.join("L"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The style sheet's palette: light, dark, print.
    const STYLE: &str = include_str!("style.css");

    /// Values of a style sheet variable, in order.
    fn values(name: &str) -> Vec<String> {
        let name = format!("--{name}: #");
        let found = STYLE.match_indices(&name);
        let value = |(at, _): (usize, &str)| STYLE[at + name.len()..][..6].to_owned();
        found.map(value).collect()
    }

    fn luminance(color: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
            // The transfer function of sRGB (IEC 61966-2-1).
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
    }

    /// Contrast of two colours by WCAG 2.
    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_style_has_its_own_mark_and_pair_of_colour_and_hatching() {
        let styles = 0..CORNERS.len();
        let marks: BTreeSet<String> = styles
            .clone()
            .map(|style| outline(style, (0.0, 0.0), 5.0))
            .collect();
        assert_eq!(marks.len(), CORNERS.len());
        let looks: BTreeSet<(Vec<String>, bool)> = styles
            .map(|style| (values(&format!("c{style}")), is_hatched(style)))
            .collect();
        assert_eq!(looks.len(), CORNERS.len());
    }

    #[test]
    fn colours_stand_out_from_light_paper_dark_paper_and_print() {
        let papers = ["ffffff", "14171b", "ffffff"];
        for style in 0..CORNERS.len() {
            let colors = values(&format!("c{style}"));
            assert_eq!(colors.len(), papers.len(), "c{style}");
            for (paper, color) in papers.iter().zip(colors) {
                let found = contrast(paper, &color);
                // WCAG 2.1, 1.4.11: graphical objects need a contrast of 3.
                assert!(found >= 3.0, "c{style} {color} on {paper}: {found:.2}");
            }
        }
    }

    #[test]
    fn figures_in_a_grid_can_be_read_on_every_shade() {
        for shade in 0..super::super::grid::SHADES {
            let (grounds, inks) = (
                values(&format!("h{shade}")),
                values(&format!("on-h{shade}")),
            );
            assert_eq!((grounds.len(), inks.len()), (3, 3), "h{shade}");
            for (ground, ink) in grounds.iter().zip(&inks) {
                let found = contrast(ground, ink);
                // WCAG 2.1, 1.4.3: text needs a contrast of 4.5.
                assert!(found >= 4.5, "h{shade} {ink} on {ground}: {found:.2}");
            }
        }
    }
}
