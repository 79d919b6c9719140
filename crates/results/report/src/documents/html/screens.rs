//! Selects the content shown without unfolding: for each section that answers the campaign's
//! question its chart, its table or both, within a few screens for the whole page.

use crate::kit::section::{Block, Section};
use crate::kit::table::Table;
use maud::Markup;

/// Total height of the page's unfolded sections in pixels, at a width of 1300 px.
const ALL_MAX: i64 = 3750;
/// Maximum height in pixels of the first block that a section shows.
const ONE_MAX: i64 = 1000;
/// Height of a section's heading and of the line of its fold.
const AROUND: i64 = 90;
/// Height of a table without its rows, and of a row.
const HEAD: i64 = 130;
const ROW: i64 = 30;
/// Height of a chart's caption.
const CAPTION: i64 = 80;

/// The shown and the folded blocks of a section.
pub(super) type Parts<'b> = (Vec<&'b Block>, Vec<&'b Block>);

/// Chooses the blocks of every section, in order.
pub(super) fn chosen<'b>(sections: &'b [(&'static Section, Vec<Block>)]) -> Vec<Parts<'b>> {
    let candidates: Vec<[Option<usize>; 2]> = sections
        .iter()
        .map(|(_, blocks)| candidates(blocks))
        .collect();
    let height = |section: usize, block: usize| height(&sections[section].1[block]);
    let mut shown: Vec<Vec<usize>> = vec![Vec::new(); sections.len()];
    let mut left = ALL_MAX;
    // Show one block of each section first, then the second block if there is room.
    for (section, found) in candidates.iter().enumerate() {
        if !sections[section].0.answers {
            continue;
        }
        // The smaller block leaves more room to other sections.
        let smallest = found.iter().flatten().copied();
        let smallest = smallest.min_by_key(|block| height(section, *block));
        // Even a section without a shown block has a heading and a fold.
        left -= AROUND;
        if let Some(block) = smallest.filter(|block| height(section, *block) <= ONE_MAX) {
            shown[section].push(block);
            left -= height(section, block);
        }
    }
    for (section, found) in candidates.iter().enumerate() {
        for block in found.iter().flatten() {
            // A section without a first block, as both are too tall, does not get a second one.
            let is_first = shown[section].is_empty() || shown[section].contains(block);
            if !is_first && height(section, *block) <= left {
                shown[section].push(*block);
                left -= height(section, *block);
            }
        }
    }
    let parts = sections.iter().zip(shown).map(|((_, blocks), shown)| {
        let all = blocks.iter().enumerate();
        // `partition` keeps the order, so a chart stays above its table even if chosen second.
        let (main, more): (Vec<_>, Vec<_>) = all.partition(|(index, block)| match block {
            // Only these have a height that counts.
            Block::Chart { .. } | Block::Table(_) => shown.contains(index),
            Block::Details { .. } => false,
            Block::Html(_) | Block::Warnings | Block::Cells | Block::Prose(_) => true,
        });
        let blocks = |found: Vec<(usize, &'b Block)>| found.into_iter().map(|(_, block)| block);
        (blocks(main).collect(), blocks(more).collect())
    });
    parts.collect()
}

/// The first chart and the first table.
fn candidates(blocks: &[Block]) -> [Option<usize>; 2] {
    let is_chart = |block: &Block| matches!(block, Block::Chart { folded: false, .. });
    let is_table = |block: &Block| matches!(block, Block::Table(_));
    [
        blocks.iter().position(is_chart),
        blocks.iter().position(is_table),
    ]
}

/// The approximate height of a block.
fn height(block: &Block) -> i64 {
    match block {
        Block::Chart { drawing, .. } => CAPTION + drawn_height(drawing),
        Block::Table(Table { rows, .. }) => HEAD + ROW * rows.len() as i64,
        _ => 0,
    }
}

/// The height of a drawing at the width of its view box.
fn drawn_height(drawing: &Markup) -> i64 {
    let text = drawing.0.as_str();
    let view_box = text.split_once("viewBox=\"").map(|(_, rest)| rest);
    let view_box = view_box.and_then(|rest| rest.split('"').next());
    // A view box is x, y, width and height.
    let height = view_box.and_then(|numbers| numbers.split(' ').nth(3)?.parse::<f64>().ok());
    height.map_or(0, |height| height as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use maud::html;

    #[test]
    fn a_drawing_is_as_tall_as_its_view_box() {
        let drawing = html! { svg viewBox="0 0 960 402" { text { "a" } } };
        assert_eq!(drawn_height(&drawing), 402);
        assert_eq!(drawn_height(&html! { p {} }), 0);
    }
}
