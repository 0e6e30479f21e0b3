//! `tacit report`: a report again, from its JSON.

use base::Error;
use clap::Args;
use report::{html, summary};
use std::path::PathBuf;
use terminal::output;

/// Shows a report again, or writes its page again.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit report out/registry/report.json\n  tacit report report.json --html \
                  report.html"
)]
pub struct ReportArgs {
    /// A report.json
    pub report: PathBuf,
    /// Write the page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Reads a report and shows it.
///
/// # Errors
/// When the file cannot be read or is no report, or the page cannot be written.
pub fn run(args: &ReportArgs) -> Result<(), Error> {
    let shown = args.report.display();
    let text =
        std::fs::read_to_string(&args.report).map_err(|e| Error::io(format!("cannot read {shown}"), &e))?;
    let reports = report::all_from_json(&text).map_err(|e| Error::input(format!("{shown}: {e}")))?;
    if let Some(page) = &args.html {
        let [report] = &reports[..] else {
            return Err(Error::input(format!(
                "{shown} holds {} reports; name the report.json in the folder of one advertiser",
                reports.len()
            )));
        };
        output::write_file(page, html::render(report).as_bytes())?;
        eprintln!("The page is in {}", page.display());
    }
    if args.json {
        return output::print(text.trim_end());
    }
    let shown: Vec<String> = reports.iter().map(summary::terminal).collect();
    output::print(shown.join("\n").trim_end())
}
