//! `tacit generate`: data with a known answer.

use crate::args::rows_pair;
use base::{Error, free_address};
use clap::{Args, ValueEnum};
use data::generate::{
    self, ArmTruth, FileFormat, Generated, GeneratedSeveral, LiftOptions, Truth, WritingProgress,
};
use net::Identity;
use page::numbers::{bytes, count};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use study::{Question, StudyFile};
use terminal::output;
use terminal::progress::{Board, ProgressLine, Working};
use terminal::values::share;

/// Makes up data with a known answer, and prints that answer; for a program of your own, files that it reads.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit generate polio --out trial\n  tacit generate lift --rows 1M --overlap \
                  0.3 --format parquet --out big\n  tacit generate lift --rows 500M --format parquet \
                  --files 256 --out large\n  tacit generate lift --advertisers 3 --out spring\n  \
                  tacit generate program study.toml --rows 5k --out trial"
)]
pub struct GenerateArgs {
    /// polio: the 1954 field trial, from its published counts; lift: a random trial of any size; program: a
    /// file for each party of a study of kind program
    pub what: GeneratedKind,
    /// program: the study file
    pub study: Option<PathBuf>,
    /// The folder for all files
    #[arg(long, value_name = "FOLDER", default_value = "generated")]
    pub out: PathBuf,
    /// lift: people on each side; program: of the first party, and of each other one; 10k unless told
    #[arg(long, value_name = "N[,M]", value_parser = rows_pair)]
    pub rows: Option<[u64; 2]>,
    /// lift: share of the publisher's people whom the advertiser knows; 0.5 unless told
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub overlap: Option<f64>,
    /// lift: K, events of one person that count; 4 unless told
    #[arg(long, value_name = "K")]
    pub events: Option<u8>,
    /// lift: R, most that one person adds; 100 unless told
    #[arg(long, value_name = "R")]
    pub clamp: Option<u32>,
    /// lift: how many advertisers, 1 unless told; from two on with keys, party files for all, to run on this
    /// machine, and a study of all of them together; the files do not fit a study of each apart
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=15))]
    pub advertisers: Option<u8>,
    /// lift: the format of all files; csv unless told
    #[arg(long)]
    pub format: Option<FileFormat>,
    /// lift: files of each side, 1 unless told; from two on, a folder of parts for each, written several at a
    /// time in little memory
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=data::FILES as i64))]
    pub files: Option<u32>,
    /// Everything is a function of it
    #[arg(long, value_name = "N", default_value_t = 1954)]
    pub seed: u64,
    /// Print one JSON object: files, rows, truth
    #[arg(long)]
    pub json: bool,
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GeneratedKind {
    /// The 1954 poliomyelitis field trial.
    Polio,
    /// A random trial.
    Lift,
    /// Columns of a study's own program.
    Program,
}

impl GenerateArgs {
    /// Refuses what changes nothing of the trial, whose people are those of the published counts, or of files
    /// for a program.
    fn expect_used(&self) -> Result<(), Error> {
        let Self { study, rows, overlap, events, clamp, advertisers, format, files, .. } = self;
        let given = [
            ("overlap", overlap.is_some()),
            ("events", events.is_some()),
            ("clamp", clamp.is_some()),
            ("advertisers", advertisers.is_some()),
            ("format", format.is_some()),
            ("files", files.is_some()),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, given)| self.what != GeneratedKind::Lift && *given) {
            return Err(Error::input(format!("--{flag} goes with lift; remove --{flag}")));
        }
        match (self.what, study, rows) {
            (GeneratedKind::Polio, _, Some(_)) => {
                Err(Error::input("--rows goes with lift and program; remove --rows"))
            }
            (GeneratedKind::Program, None, _) => {
                Err(Error::input("the study file is missing: tacit generate program study.toml --rows 5k"))
            }
            (GeneratedKind::Polio | GeneratedKind::Lift, Some(path), _) => {
                Err(Error::input(format!("a study goes with program; remove {}", path.display())))
            }
            (GeneratedKind::Lift, _, Some([first, second])) if first != second => {
                Err(Error::input("lift has as many people on each side; give --rows one number"))
            }
            _ => Ok(()),
        }
    }

    /// Files of each side.
    fn parts(&self) -> u32 {
        self.files.unwrap_or(1)
    }
}

/// Writes the files and prints the truth.
///
/// # Errors
/// When an option is out of range, the disk has too little room, or a file cannot be written.
pub fn run(args: &GenerateArgs) -> Result<(), Error> {
    args.expect_used()?;
    let made = match args.what {
        GeneratedKind::Program => return program(args),
        GeneratedKind::Polio => {
            let _working = Working::on(format!("writing to {}", args.out.display()));
            generate::polio(&args.out, args.seed)?
        }
        GeneratedKind::Lift if args.advertisers > Some(1) => return Several::write(args)?.tell(args),
        GeneratedKind::Lift => {
            let options = options(args)?;
            watched(args, &options, |progress| generate::lift(&args.out, &options, progress))?
        }
    };
    if args.json { output::print_json(&as_json(&made, args)) } else { output::print(&text(&made, args)?) }
}

/// People where nobody says how many.
const ROWS: [u64; 2] = [10_000; 2];

/// A file for each party of a study.
fn program(args: &GenerateArgs) -> Result<(), Error> {
    let path = args.study.as_deref().unwrap_or(Path::new(""));
    study::expect_study(path)?;
    let (study, _) = StudyFile::read(path)?;
    if let Question::Lift(_) = &study.first().kind {
        return Err(Error::input(format!(
            "{} is a lift study: `tacit generate lift` makes data with a known answer, and `tacit simulate \
             {0} --made-up 10k` makes up files for the columns of this one",
            path.display()
        )));
    }
    let parties: Vec<String> = study.parties.iter().map(|member| member.name.clone()).collect();
    let made = {
        let _working = Working::on(format!("writing to {}", args.out.display()));
        generate::for_study(&args.out, &study, &parties, args.rows.unwrap_or(ROWS), args.seed)?
    };
    if args.json {
        let party = |made: &generate::MadeUpFile| {
            let file = made.path.display().to_string();
            json!({ "party": made.party, "file": file, "rows": made.lines })
        };
        return output::print_json(&json!({ "parties": made.iter().map(party).collect::<Vec<_>>() }));
    }
    let mut lines: Vec<String> = made.iter().map(|made| file(&made.path, made.lines, args)).collect();
    let data = made.iter().map(|made| format!(" --data {}={}", made.party, made.path.display()));
    lines.push("Try it:".to_owned());
    lines.push(format!("  tacit simulate {}{}", path.display(), data.collect::<String>()));
    output::print(&lines.join("\n"))
}

fn options(args: &GenerateArgs) -> Result<LiftOptions, Error> {
    let [rows, _] = args.rows.unwrap_or(ROWS);
    Ok(LiftOptions {
        rows: u32::try_from(rows).map_err(|_| Error::limit("rows", rows, 1 << 31))?,
        overlap: args.overlap.unwrap_or(0.5),
        max_events: args.events.unwrap_or(4),
        clamp: args.clamp.unwrap_or(100),
        seed: args.seed,
        format: args.format.unwrap_or(FileFormat::Csv),
        files: args.parts(),
    })
}

/// Writes where there is room, and shows how far it is.
fn watched<T>(
    args: &GenerateArgs,
    options: &LiftOptions,
    write: impl FnOnce(WritingProgress<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    expect_room(&args.out, options.bytes()?)?;
    let board = Board::stderr();
    board.show(&ProgressLine::Note { text: format!("writing to {}", args.out.display()) });
    let written = write(&|done, total| board.progress("generate", done, total));
    board.end();
    written
}

/// One part in so many is wanted besides: folders, and what others write meanwhile.
const MARGIN: u64 = 32;

/// Refuses what the disk of a folder, which need not be there yet, cannot hold.
fn expect_room(folder: &Path, needed: u64) -> Result<(), Error> {
    let needed = needed.saturating_add(needed / MARGIN);
    // A disk that does not tell its room may have it.
    let Some(free) = store::free_bytes(folder).filter(|free| *free < needed) else { return Ok(()) };
    Err(Error::input(format!(
        "{}: the files may take {}, and its disk has {} left; write fewer --rows, or to another --out",
        folder.display(),
        bytes(needed),
        bytes(free)
    )))
}

/// A study of several advertisers with all that its parties need on one machine.
struct Several {
    made: GeneratedSeveral,
    folder: PathBuf,
}

impl Several {
    fn write(args: &GenerateArgs) -> Result<Self, Error> {
        let (options, folder) = (options(args)?, args.out.clone());
        let shops = usize::from(args.advertisers.unwrap_or(1));
        let made =
            watched(args, &options, |progress| generate::lift_several(&folder, &options, shops, progress))?;
        let key = |party: &str| {
            let file = folder.join(format!("{party}.key"));
            // Data may be made anew; an identity never is.
            if !file.exists() {
                Identity::generate()?.save(&file)?;
            }
            Ok(Identity::load(&file)?.fingerprint().to_string())
        };
        let keys = made.files.iter().map(|(party, ..)| key(party)).collect::<Result<Vec<_>, Error>>()?;
        let study = generate::several_study(&options, &keys);
        output::write_file(&folder.join("study.toml"), study.as_bytes())?;
        let addresses = made.files.iter().map(|_| free_address()).collect::<Result<Vec<_>, _>>()?;
        for (at, (party, data, _)) in made.files.iter().enumerate() {
            let data = data.file_name().unwrap_or_default().display();
            // The report has a folder of its own beside the one of the parts.
            let (data, report) = match args.parts() {
                1 => (data.to_string(), party.clone()),
                _ => (format!("{data}/"), format!("out-{party}")),
            };
            // A party goes to all that are named before it.
            let before = made.files[..at].iter().zip(&addresses);
            let peers: String = before.map(|((peer, ..), to)| format!("{peer} = \"{to}\"\n")).collect();
            let text = format!(
                "study = \"study.toml\"\nas = \"{party}\"\nidentity = \"{party}.key\"\ndata = \
                 \"{data}\"\nlisten = \"{}\"\n\
                 ledger = \"{party}.ledger\"\nlineage = \"{party}\"\nreport = \"{report}\"\ndeadline = \
                 \"2m\"\n\n[peers]\n{peers}",
                addresses[at]
            );
            let text = text.trim_end().trim_end_matches("[peers]").trim_end();
            output::write_file(&folder.join(format!("{party}.toml")), format!("{text}\n").as_bytes())?;
        }
        Ok(Self { made, folder })
    }

    /// Why a run would be refused: the publisher's arms are too small.
    fn too_small(&self) -> Result<Option<String>, Error> {
        let (study, _) = StudyFile::read(&self.folder.join("study.toml"))?;
        let Question::Lift(lift) = &study.first().kind else { return Ok(None) };
        let least = lift.release.minimum_group;
        let smallest = self.made.truth.overall.iter().map(|arm| arm.rows).min().unwrap_or_default();
        Ok((smallest < least).then(|| {
            format!(
                "An arm has {} people, and the study's minimum_group is {}: the publisher will refuse the \
                 run, and the others are not told why. Generate more --rows",
                count(smallest),
                count(least)
            )
        }))
    }

    fn tell(&self, args: &GenerateArgs) -> Result<(), Error> {
        let (files, truth_of) = (&self.made.files, &self.made.truth);
        let party_file = |party: &str| self.folder.join(format!("{party}.toml")).display().to_string();
        if args.json {
            let party = |(party, data, rows): &(String, PathBuf, u64)| {
                let (file, own) = (data.display().to_string(), party_file(party));
                json!({
                    "party": party, "file": file, "files": args.parts(), "rows": rows, "party_file": own,
                })
            };
            let study = self.folder.join("study.toml").display().to_string();
            let parties: Vec<Value> = files.iter().map(party).collect();
            return output::print_json(&json!({ "study": study, "parties": parties, "truth": truth_of }));
        }
        let mut lines: Vec<String> = files.iter().map(|(_, path, rows)| file(path, *rows, args)).collect();
        lines.extend(lines_of(truth_of, truth_for(&options(args)?)));
        lines.extend(self.too_small()?);
        lines.push("Run it, each in a terminal of its own:".to_owned());
        lines.extend(files.iter().map(|(party, ..)| format!("  tacit run {}", party_file(party))));
        output::print(&lines.join("\n"))
    }
}

fn file(path: &Path, rows: u64, args: &GenerateArgs) -> String {
    let parts = match args.parts() {
        1 => String::new(),
        files => format!(" in {} files", count(files.into())),
    };
    format!("  {}: {} rows{parts}", path.display(), count(rows))
}

fn as_json(made: &Generated, args: &GenerateArgs) -> Value {
    let side = |path: &Path, rows: u64| {
        let file = path.display().to_string();
        json!({ "file": file, "files": args.parts(), "rows": rows })
    };
    json!({
        "publisher": side(&made.publisher, made.publisher_rows),
        "advertiser": side(&made.advertiser, made.advertiser_rows),
        "truth": made.truth,
    })
}

/// For which events and clamp a truth is: another study of the same files has another one.
fn truth_for(options: &LiftOptions) -> String {
    format!(
        "The truth, for the earliest {0} events of a person and a clamp of {1} (tacit init lift \
         --max-events {0} --clamp {1}; a study with others has another one):",
        options.max_events, options.clamp
    )
}

/// The truth in lines.
fn lines_of(truth: &Truth, heading: String) -> Vec<String> {
    let [control, test] = &truth.overall;
    let line = |name: &str, arm: &ArmTruth| {
        format!(
            "  {name:8} {:>12} people   {:>12} converters   value {}",
            count(arm.rows),
            count(arm.converters),
            arm.sum
        )
    };
    vec![
        heading,
        line("test", test),
        line("control", control),
        format!("  lift     {:.9} per person", truth.lift()),
    ]
}

fn text(made: &Generated, args: &GenerateArgs) -> Result<String, Error> {
    let sides = [(&made.publisher, made.publisher_rows), (&made.advertiser, made.advertiser_rows)];
    let mut lines: Vec<String> = sides.iter().map(|(path, rows)| file(path, *rows, args)).collect();
    let heading = match args.what {
        GeneratedKind::Polio => "The truth:".to_owned(),
        _ => truth_for(&options(args)?),
    };
    lines.extend(lines_of(&made.truth, heading));
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_disk_cannot_hold_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let later = folder.path().join("not/there");
        expect_room(&later, 1).expect("a byte has room");
        let told = expect_room(&later, u64::MAX).expect_err("no disk is that large").to_string();
        assert!(told.contains("may take 18.4 EB") && told.contains("B left"), "{told}");
    }

    #[test]
    fn a_truth_says_for_which_events_and_clamp_it_is() {
        let options = LiftOptions {
            rows: 10,
            overlap: 0.5,
            max_events: 3,
            clamp: 250,
            seed: 1,
            format: FileFormat::Csv,
            files: 1,
        };
        let lines = lines_of(&Truth::default(), truth_for(&options));
        assert!(lines[0].contains("earliest 3 events of a person and a clamp of 250"), "{lines:?}");
        assert!(lines[0].contains("--max-events 3 --clamp 250"), "{lines:?}");
    }
}
