//! Gives the shared library its name for the loader: the number changes when the C interface breaks.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libosprey.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
