//! `osprey trace show`.

use super::figures::{PlanFigures, TraceFigures, blocks};
use super::picture;
use base::Error;
use page::numbers::binary;
use std::path::Path;
use terminal::output::{print, print_json};

/// Prints the figures of a trace and draws it.
///
/// # Errors
/// When the file cannot be read or is not whole, or the picture cannot be written.
pub fn run(path: &Path, svg: Option<&Path>, json: bool) -> Result<(), Error> {
    let (header, mut source) = super::open(path)?;
    let (blocks, footer) = blocks(&mut source).map_err(Error::input)?;
    let file = std::fs::metadata(path).map_err(|e| Error::io(format!("reading {}", path.display()), &e))?;
    let figures = TraceFigures::of(&header, file.len(), &blocks, &footer).map_err(Error::misuse)?;
    if let Some(svg) = svg {
        std::fs::write(svg, picture::draw(&header, &blocks))
            .map_err(|e| Error::io(format!("writing {}", svg.display()), &e))?;
    }
    if json { print_json(&figures) } else { print(&words(&figures)) }
}

fn words(f: &TraceFigures) -> String {
    let percent = |share: f64| 100.0 * share;
    let reuse = f.reuse.map_or_else(
        || "nothing is touched twice".to_owned(),
        |(half, most)| format!("half within {half} touches, nine in ten within {most}"),
    );
    let mut lines = vec![
        format!("chunks of {}, blocks of {}, region {}", binary(f.chunk), f.microset, binary(f.region)),
        format!("key          {}", f.key),
        format!("file         {}, {:.2} bytes per touch", binary(f.file_bytes), f.bytes_per_entry),
        format!("touches      {} of chunks, in {} blocks, over {} events", f.entries, f.blocks, f.events),
        format!("             {:.0} % write, {:.0} % of empty chunks", percent(f.written), percent(f.fresh)),
        format!("working set  {} at once, {} in all", binary(f.peak_bytes), binary(f.touched_bytes)),
        format!("besides      {} outside the region", binary(f.other_bytes)),
        format!("reuse        {reuse}"),
        String::new(),
        "The least that any plan moves (MIN), by the share of the working set in memory:".into(),
        format!(
            "{:>6} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "share", "memory", "read", "written", "clean", "dead"
        ),
    ];
    lines.extend(f.plans.iter().map(row));
    lines.join("\n")
}

fn row(plan: &PlanFigures) -> String {
    let start = format!("{:>4} % {:>10}", plan.percent, binary(plan.memory));
    match plan.moves {
        None => format!("{start}  too little: two blocks of the trace do not fit"),
        Some(m) => {
            let [read, written, clean, dead] = [m.read, m.written, m.clean, m.dead].map(binary);
            format!("{start} {read:>10} {written:>10} {clean:>10} {dead:>10}")
        }
    }
}
