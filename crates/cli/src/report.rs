//! `tacit report`: a report again, from its JSON.

use base::Error;
use clap::Args;
use report::{NumberTable, PublicReport, ReportFigure, RunReport, html, summary};
use std::path::{Path, PathBuf};
use terminal::output;
use terminal::width::columns;

/// Shows a report again, or writes its page, its numbers or its figures; or what of it may be passed on.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit report out/registry/report.json\n  tacit report report.json --html \
                  report.html\n  tacit report --public report.json --html public.html\n  tacit report \
                  --public report.json --json > public.json\n  tacit report report.json --csv numbers.csv \
                  --excel numbers.xlsx\n  tacit report report.json --figures figures/"
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
    /// Write its numbers to this file, a line each, as comma-separated values
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write its numbers to this Excel file (.xlsx), a row each
    #[arg(long, value_name = "FILE")]
    pub excel: Option<PathBuf>,
    /// Write its figures into this folder, each as PNG and as SVG
    #[arg(long, value_name = "FOLDER")]
    pub figures: Option<PathBuf>,
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
    let written = [("page", &args.html), ("CSV file", &args.csv), ("Excel file", &args.excel)];
    for (what, file) in written {
        if file.as_ref().is_some_and(|file| is_same_file(file, &args.report)) {
            return Err(Error::input(format!(
                "the {what} would take the place of the report {shown}: name another file"
            )));
        }
    }
    if args.public {
        let report = only(&reports, &args.report)?;
        return public(&PublicReport::of(report).map_err(|e| Error::input(format!("{shown}: {e}")))?, args);
    }
    if let Some(page) = &args.html {
        write_page(page, &html::render(only(&reports, &args.report)?))?;
    }
    if args.csv.is_some() || args.excel.is_some() {
        write_numbers(&NumberTable::of(only(&reports, &args.report)?), args)?;
    }
    if let Some(folder) = &args.figures {
        write_figures(folder, &ReportFigure::of(only(&reports, &args.report)?, None)?)?;
    }
    if args.json {
        return output::print(text.trim_end());
    }
    let shown: Vec<String> = reports.iter().map(|report| summary::terminal(report, columns())).collect();
    output::print(shown.join("\n").trim_end())?;
    let pass_on = if let [report] = &reports[..] { pass_on(report, &args.report) } else { None };
    pass_on.map_or(Ok(()), |pass_on| output::print(&format!("\n{pass_on}")))
}

/// The command that makes what may be passed on of a report in a file, to be pasted; nothing where it has no
/// public result.
pub fn pass_on(report: &RunReport, file: &Path) -> Option<String> {
    report.public.as_ref()?;
    let [from, to] = [file.to_owned(), file.with_file_name("public.html")].map(|path| pasted(&path));
    Some(format!("What may be passed on is made by:\n  tacit report --public {from} --html {to}"))
}

/// A path as a shell takes it.
fn pasted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
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
    write_numbers(&NumberTable::of_public(public), args)?;
    if let Some(folder) = &args.figures {
        write_figures(folder, &ReportFigure::of_public(public)?)?;
    }
    match args.json {
        true => output::print(&report::public_to_json(public)?),
        false => output::print(summary::public(public, columns()).trim_end()),
    }
}

fn write_page(page: &Path, text: &str) -> Result<(), Error> {
    output::write_file(page, text.as_bytes())?;
    eprintln!("The page is in {}", page.display());
    Ok(())
}

/// Writes the table in the forms that were asked for.
fn write_numbers(numbers: &NumberTable, args: &ReportArgs) -> Result<(), Error> {
    if let Some(file) = &args.csv {
        output::write_file(file, numbers.csv().as_bytes())?;
        eprintln!("The numbers are in {}", file.display());
    }
    if let Some(file) = &args.excel {
        output::write_file(file, &numbers.excel()?)?;
        eprintln!("The numbers are in {}", file.display());
    }
    Ok(())
}

/// Writes each figure in both forms.
fn write_figures(folder: &Path, figures: &[ReportFigure]) -> Result<(), Error> {
    if figures.is_empty() {
        return Err(Error::input("the report has no figures: nothing in it can be drawn"));
    }
    for figure in figures {
        output::write_file(&folder.join(format!("{}.svg", figure.name)), figure.svg.as_bytes())?;
        match figure.fits_picture() {
            true => output::write_file(&folder.join(format!("{}.png", figure.name)), &figure.png()?)?,
            false => eprintln!("{} has too many rows for a picture: it is there as SVG alone", figure.name),
        }
    }
    let names: Vec<&str> = figures.iter().map(|figure| &*figure.name).collect();
    eprintln!("The figures are in {}, as PNG and SVG: {}", folder.display(), names.join(", "));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted() {
        for (path, shown) in [
            ("out/shop-report/report.json", "out/shop-report/report.json"),
            ("my reports/report.json", "'my reports/report.json'"),
            ("it's/$x", "'it'\\''s/$x'"),
        ] {
            assert_eq!(pasted(Path::new(path)), shown);
        }
    }
}
