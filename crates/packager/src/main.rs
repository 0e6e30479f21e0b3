//! `make dist` after the build: packages, checksums, list of parts and licences. Everything that it writes
//! follows from the sources, the lock file, the binaries, the commit and its time, so two runs write the same
//! bytes.

mod debian;
mod licences;
mod parts;
mod sbom;
mod staged;
#[cfg(test)]
mod tests;

use clap::{Args, Parser};
use parts::LinkedParts;
use sha2::{Digest, Sha256};
use staged::StagedTree;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that are packaged.
const PROGRAMS: [&str; 2] = ["tacit", "osprey"];
/// The packages of the workspace that they are made of.
const SHIPPED: [&str; 2] = ["cli", "launcher"];
/// That of the Python package's module.
const MODULE: &str = "python";
/// The user of the container image, as its recipe and docs/install.md name it.
const IMAGE_USER: u64 = 65532;
const ELF_INTERPRETER: u32 = 3;

/// `make dist` and `make wheel`.
#[derive(Debug, Parser)]
enum PackagerArgs {
    /// Makes the packages of built programs
    Programs(ProgramArgs),
    /// Writes the licences and the list of parts of everything in the Python package
    Wheel(WheelArgs),
}

#[derive(Debug, Args)]
struct ProgramArgs {
    /// The folder with tacit and osprey
    built: PathBuf,
    /// The folder that gets the packages
    out: PathBuf,
    /// The target that they were built for
    #[arg(long)]
    target: String,
    /// The commit of the sources
    #[arg(long)]
    commit: String,
    /// The time of that commit, in seconds since 1970
    #[arg(long)]
    epoch: u64,
    /// A folder of the build machine that no program may name, else builds in two folders would differ
    #[arg(long = "unnamed")]
    unnamed: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct WheelArgs {
    /// The folder that gets them
    out: PathBuf,
    /// The target that it is built for
    #[arg(long)]
    target: String,
    /// The commit of the sources
    #[arg(long)]
    commit: String,
    /// The time of that commit, in seconds since 1970
    #[arg(long)]
    epoch: u64,
}

/// What one build is called.
struct PackagedBuild {
    version: String,
    commit: String,
    epoch: u64,
    target: String,
}

impl PackagedBuild {
    fn of(commit: String, epoch: u64, target: String) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), commit, epoch, target }
    }

    /// The CPU in the names of files.
    fn cpu(&self) -> &str {
        self.target.split('-').next().unwrap_or_default()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(".");
    match PackagerArgs::parse() {
        PackagerArgs::Programs(args) => packages(root, args),
        PackagerArgs::Wheel(args) => wheel(root, args),
    }
}

/// What `make wheel` puts into the wheel besides what maturin does.
fn wheel(root: &Path, args: WheelArgs) -> Result<(), Box<dyn Error>> {
    let build = PackagedBuild::of(args.commit, args.epoch, args.target);
    let parts = LinkedParts::of_workspace(root, &build.target, &[MODULE])?;
    let copyright = licences::text(root, &format!("tacit {} for Python", build.version), &parts)?;
    let list = sbom::document(&build, &parts, &[MODULE])?;
    for (name, bytes) in [("COPYRIGHT", copyright), ("tacit.cdx.json", list)] {
        let path = args.out.join(name);
        fs::write(&path, bytes).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

/// All of `make dist`.
fn packages(root: &Path, args: ProgramArgs) -> Result<(), Box<dyn Error>> {
    let build = PackagedBuild::of(args.commit, args.epoch, args.target);
    let mut programs = Vec::new();
    for name in PROGRAMS {
        let bytes = read(&args.built.join(name))?;
        fit_to_ship(&bytes, &args.unnamed).map_err(|why| format!("{name} {why}"))?;
        programs.push((name, bytes));
    }
    let parts = LinkedParts::of_workspace(root, &build.target, &SHIPPED)?;
    let copyright = licences::text(root, &format!("tacit {} and osprey", build.version), &parts)?;
    let mut tree = usr(root, &programs, &copyright)?;
    for (shell, path) in [
        ("bash", "usr/share/bash-completion/completions/tacit"),
        ("zsh", "usr/share/zsh/vendor-completions/_tacit"),
        ("fish", "usr/share/fish/vendor_completions.d/tacit.fish"),
    ] {
        tree.file(path, 0o644, completions(&args.built.join("tacit"), shell)?);
    }
    manual(&args.built, &mut tree)?;
    let (version, cpu) = (&build.version, build.cpu());
    let whole = format!("tacit-{version}-{cpu}-linux");
    let files = [
        ("tacit".to_owned(), programs[0].1.clone()),
        (format!("{whole}.tar.gz"), tree.tar_gz(&whole, "usr", build.epoch)?),
        (debian::file_name(&build)?, debian::package(&tree, &build)?),
        (
            format!("tacit-{version}-{cpu}-rootfs.tar.gz"),
            image(&programs, &copyright).tar_gz("", "", build.epoch)?,
        ),
        (format!("tacit-{version}.cdx.json"), sbom::document(&build, &parts, &SHIPPED)?),
        ("COPYRIGHT".to_owned(), copyright),
    ];
    write(&args.out, &files)
}

/// What is installed below /usr, but what the program says of itself: programs, documentation, the unit of
/// systemd.
fn usr(root: &Path, programs: &[(&str, Vec<u8>)], copyright: &[u8]) -> Result<StagedTree, Box<dyn Error>> {
    let mut tree = StagedTree::default();
    for (name, bytes) in programs {
        tree.file(&format!("usr/bin/{name}"), 0o755, bytes.clone());
    }
    let doc = "usr/share/doc/tacit";
    for page in ["README.md", "CHANGELOG.md"] {
        tree.file(&format!("{doc}/{page}"), 0o644, read(&root.join(page))?);
    }
    tree.below(root, "docs", doc)?;
    tree.below(root, "examples", doc)?;
    tree.file(&format!("{doc}/copyright"), 0o644, copyright.to_vec());
    for unit in ["tacit-serve@.service", "tacit-service.service"] {
        let text = read(&root.join("docs/deploy").join(unit))?;
        tree.file(&format!("usr/lib/systemd/system/{unit}"), 0o644, text);
    }
    Ok(tree)
}

/// The root of the container image, for `docs/deploy/Containerfile`: the program, folders that it may write,
/// and nothing else.
fn image(programs: &[(&str, Vec<u8>)], copyright: &[u8]) -> StagedTree {
    let mut tree = StagedTree::default();
    tree.file("usr/bin/tacit", 0o755, programs[0].1.clone());
    tree.file("usr/share/doc/tacit/copyright", 0o644, copyright.to_vec());
    tree.file(
        "etc/passwd",
        0o644,
        format!("tacit:x:{IMAGE_USER}:{IMAGE_USER}::/state:/usr/bin/tacit\n").into_bytes(),
    );
    tree.folder("state", 0o700, IMAGE_USER);
    tree.folder("tmp", 0o1777, 0);
    tree
}

fn completions(tacit: &Path, shell: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let done = Command::new(tacit).args(["completions", shell]).output()?;
    if !done.status.success() {
        return Err(format!("tacit completions {shell}: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(done.stdout)
}

/// The pages of man, which the program writes beside itself.
fn manual(built: &Path, tree: &mut StagedTree) -> Result<(), Box<dyn Error>> {
    let folder = built.join("man1");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let done = Command::new(built.join("tacit")).args(["manual", "--out"]).arg(&folder).output()?;
    if !done.status.success() {
        return Err(format!("tacit manual: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    let pages: Result<Vec<_>, _> = std::fs::read_dir(&folder)?.collect();
    let mut pages: Vec<PathBuf> = pages?.into_iter().map(|page| page.path()).collect();
    pages.sort();
    for page in pages {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        tree.file(&format!("usr/share/man/man1/{name}"), 0o644, read(&page)?);
    }
    Ok(())
}

/// A program runs on any Linux of its CPU, and its bytes do not depend on the folder where it was built.
fn fit_to_ship(program: &[u8], unnamed: &[PathBuf]) -> Result<(), String> {
    if !is_static(program).ok_or("is no ELF file of 64 bits")? {
        return Err("needs a dynamic linker; build it for a target that links statically".to_owned());
    }
    for folder in unnamed {
        let name = folder.as_os_str().as_encoded_bytes();
        if !name.is_empty() && program.windows(name.len()).any(|at| at == name) {
            return Err(format!(
                "names the folder {}, so it would have other bytes when built elsewhere; packaging/same.sh \
                 must map this folder to another name",
                folder.display()
            ));
        }
    }
    Ok(())
}

/// Whether a little-endian ELF file of 64 bits names no dynamic linker.
fn is_static(elf: &[u8]) -> Option<bool> {
    let number = |at: usize, bytes: usize| {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(elf.get(at..at.checked_add(bytes)?)?);
        usize::try_from(u64::from_le_bytes(wide)).ok()
    };
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (first, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut kinds = (0..count).map(|i| number(first.checked_add(i * size)?, 4));
    kinds.try_fold(true, |fixed, kind| Some(fixed && kind? != ELF_INTERPRETER as usize))
}

/// Writes the files and their checksums, and removes packages of an earlier build; other files stay.
fn write(out: &Path, files: &[(String, Vec<u8>)]) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    for entry in fs::read_dir(out)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ours = name.starts_with("tacit_") && name.ends_with(".deb")
            || name.starts_with("tacit-") && (name.ends_with(".tar.gz") || name.ends_with(".cdx.json"));
        if ours {
            fs::remove_file(&path)?;
        }
    }
    let mut sums = String::new();
    for (name, bytes) in files {
        let path = out.join(name);
        fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
        writeln!(sums, "{}  {name}", hex(&Sha256::digest(bytes)))?;
        println!("{:>12}  {}", bytes.len(), path.display());
    }
    executable(&out.join("tacit"))?;
    fs::write(out.join("SHA256SUMS"), sums)?;
    Ok(())
}

fn executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}
