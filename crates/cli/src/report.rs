//! `tacit report`: a report again, from its JSON.

use base::Error;
use clap::Args;
use report::{PublicReport, RunReport, html, summary};
use std::path::{Path, PathBuf};
use terminal::output;

/// Shows a report again, or writes its page again; or what of it may be passed on.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit report out/registry/report.json\n  tacit report report.json --html \
                  report.html\n  tacit report --public report.json --html public.html\n  tacit report \
                  --public report.json --json > public.json"
)]
pub struct ReportArgs {
    /// A report.json
    pub report: PathBuf,
    /// The public result alone, which may be passed on: the same at all parties, without anything of one
    /// party's own
    #[arg(long)]
    pub public: bool,
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
/// When the file cannot be read or is no report, or has no public result where that is asked for, or the page
/// cannot be written.
pub fn run(args: &ReportArgs) -> Result<(), Error> {
    let shown = args.report.display();
    if args.report.is_dir() {
        return Err(Error::input(format!("{shown} is a folder: name the report.json in it")));
    }
    let text = std::fs::read_to_string(&args.report)
        .map_err(|e| Error::reading(format!("cannot read {shown}"), &e))?;
    let reports = report::all_from_json(&text).map_err(|e| Error::input(format!("{shown}: {e}")))?;
    if args.html.as_ref().is_some_and(|page| is_same_file(page, &args.report)) {
        return Err(Error::input(format!(
            "the page would take the place of the report {shown}: name another file"
        )));
    }
    if args.public {
        let report = only(&reports, &args.report)?;
        return public(&PublicReport::of(report).map_err(|e| Error::input(format!("{shown}: {e}")))?, args);
    }
    if let Some(page) = &args.html {
        write_page(page, &html::render(only(&reports, &args.report)?))?;
    }
    if args.json {
        return output::print(text.trim_end());
    }
    let shown: Vec<String> = reports.iter().map(summary::terminal).collect();
    output::print(shown.join("\n").trim_end())
}

/// Whether two paths lead to one file that is there.
fn is_same_file(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

/// The public result, in the form that was asked for.
fn public(public: &PublicReport, args: &ReportArgs) -> Result<(), Error> {
    if let Some(page) = &args.html {
        write_page(page, &html::render_public(public))?;
    }
    match args.json {
        true => output::print(&report::public_to_json(public)?),
        false => output::print(summary::public(public).trim_end()),
    }
}

fn write_page(page: &Path, text: &str) -> Result<(), Error> {
    output::write_file(page, text.as_bytes())?;
    eprintln!("The page is in {}", page.display());
    Ok(())
}

/// The report, where a file holds one.
fn only<'r>(reports: &'r [RunReport], file: &Path) -> Result<&'r RunReport, Error> {
    match reports {
        [report] => Ok(report),
        _ => Err(Error::input(format!(
            "{} holds {} reports; name the report.json in the folder of one advertiser",
            file.display(),
            reports.len()
        ))),
    }
}
