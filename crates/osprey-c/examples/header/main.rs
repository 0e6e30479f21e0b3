//! Writes `include/osprey.h` from `src/lib.rs`: `cargo run --release -p osprey-c --example header`.

mod generate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = generate::header(&std::fs::read_to_string(root.join("src/lib.rs"))?)?;
    std::fs::write(root.join("include/osprey.h"), header)?;
    Ok(())
}
