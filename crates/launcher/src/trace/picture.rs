//! A trace as a picture: time to the right, chunks upwards, darker where more is touched.

use osprey::trace::{Header, TraceBlock};
use page::markup::{Markup, element};
use page::numbers::binary;
use page::picture::{BLUES, INK, RULE, label, picture};
use std::fmt::Write;

/// Cells across and up, and the side of one.
const ACROSS: usize = 360;
const UP: usize = 180;
const CELL: usize = 2;
/// Margins.
const LEFT: usize = 90;
const RIGHT: usize = 16;
const TOP: usize = 34;
const BELOW: usize = 40;
/// From few touches to many.
const SHADES: [&str; 4] = BLUES;

/// Draws a trace.
pub fn draw(header: &Header, blocks: &[TraceBlock]) -> String {
    let chunks: Vec<u32> = blocks.iter().flat_map(|block| &block.entries).map(|entry| entry.chunk).collect();
    let top = chunks.iter().max().map_or(1, |&chunk| chunk as usize + 1);
    let (width, height) = (ACROSS * CELL, UP * CELL);
    let frame = format!("M{LEFT} {TOP}h{width}v{height}h-{width}z");
    let mut parts = vec![element("path", &[("fill", "none"), ("stroke", RULE), ("d", &frame)], [])];
    for (shade, path) in SHADES.iter().zip(paths(&cells(&chunks, top))) {
        if !path.is_empty() {
            parts.push(element("path", &[("fill", shade), ("d", &path)], []));
        }
    }
    parts.extend([
        words(LEFT, TOP - 12, "start", "Place in the region (chunks by number), over touches"),
        words(LEFT - 6, TOP + 12, "end", &binary(top as u64 * header.chunk)),
        words(LEFT - 6, TOP + height, "end", "0"),
        words(LEFT, TOP + height + 18, "start", "0"),
        words(LEFT + width, TOP + height + 18, "end", &format!("{} touches", chunks.len())),
    ]);
    let size = ((LEFT + width + RIGHT) as f64, (TOP + height + BELOW) as f64);
    picture("Chunks touched over time", size, parts).into_string()
}

fn words(x: usize, y: usize, anchor: &str, shown: &str) -> Markup {
    label((x as f64, y as f64), anchor, &[("fill", INK)], shown)
}

/// Touches by row from above and column.
fn cells(chunks: &[u32], top: usize) -> Vec<[u32; ACROSS]> {
    let mut cells = vec![[0; ACROSS]; UP];
    for (i, &chunk) in chunks.iter().enumerate() {
        let row = UP - 1 - (chunk as usize * UP / top).min(UP - 1);
        cells[row][i * ACROSS / chunks.len()] += 1;
    }
    cells
}

/// One path per shade: runs of cells as flat boxes.
fn paths(cells: &[[u32; ACROSS]]) -> [String; SHADES.len()] {
    let most = cells.iter().flatten().copied().max().unwrap_or(0).max(1);
    let shade = |touches: u32| {
        let level = (f64::from(touches) / f64::from(most)).sqrt() * SHADES.len() as f64;
        (touches > 0).then(|| (level.ceil() as usize).clamp(1, SHADES.len()) - 1)
    };
    let mut paths: [String; SHADES.len()] = Default::default();
    for (row, cells) in cells.iter().enumerate() {
        let mut column = 0;
        for run in cells.chunk_by(|&one, &other| shade(one) == shade(other)) {
            if let Some(shade) = shade(run[0]) {
                let (x, y, wide) = (LEFT + column * CELL, TOP + row * CELL, run.len() * CELL);
                let _ = write!(paths[shade], "M{x} {y}h{wide}v{CELL}h-{wide}z");
            }
            column += run.len();
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use osprey::trace::TraceEntry;

    #[test]
    fn a_line_is_drawn_as_a_diagonal() {
        let entry = |chunk| TraceEntry { chunk, written: true, fresh: false };
        let blocks: Vec<TraceBlock> = (0..ACROSS as u32)
            .map(|i| TraceBlock { entries: vec![entry(i)], ..TraceBlock::default() })
            .collect();
        let header = Header { chunk: 65536, region: 1 << 30, microset: 2, key: 0 };
        let svg = draw(&header, &blocks);
        let last = SHADES[3];
        let path = svg.split("/>").find(|element| element.contains(last)).expect("one shade");
        assert_eq!(path.matches('M').count(), UP, "a box in every row");
        let bottom = format!("M{LEFT} {}h{}", TOP + (UP - 1) * CELL, 2 * CELL);
        assert!(path.contains(&bottom), "it begins below on the left: {path}");
        assert!(svg.contains("22.5 MiB") && svg.ends_with("</svg>\n"));
        assert!(draw(&header, &[]).contains("0 touches"));
    }
}
