//! The header in the repository is the one that its source gives, and the generator refuses what it cannot
//! say in C.

#[path = "../examples/header/generate.rs"]
mod generate;

use generate::header;

#[test]
fn the_header_is_that_of_the_source() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("a file of this crate");
    let expected = header(&read("src/lib.rs")).expect("the source has a header");
    let current = read("include/osprey.h");
    let line = expected.lines().zip(current.lines()).position(|(a, b)| a != b);
    assert!(
        expected == current,
        "include/osprey.h is not that of src/lib.rs from line {:?} on: cargo run --release -p osprey-c \
         --example header",
        line.map(|n| n + 1)
    );
}

#[test]
fn declarations_are_translated() {
    let source = r#"
        /// A pair.
        #[repr(C)]
        pub struct osp_pair { /// One.
            pub one: u64, pub two: *const c_char }
        /// Does it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn osp_do(
            pair: *mut osp_pair, names: *const *const c_char, n: size_t,
        ) -> *mut c_void {}
        /// Nothing.
        #[unsafe(no_mangle)]
        pub extern "C" fn osp_nothing() {}
        fn private(_: Vec<u8>) {}
    "#;
    let text = header(source).expect("translates");
    for expected in [
        "/* A pair. */\nstruct osp_pair {\n    /* One. */\n    uint64_t one;\n",
        "    const char *two;\n};\n",
        "void *osp_do(struct osp_pair *pair, const char *const *names, size_t n);\n",
        "/* Nothing. */\nvoid osp_nothing(void);\n",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    assert!(!text.contains("private"));
}

#[test]
fn what_has_no_translation_is_an_error() {
    for (source, expected) in [
        (
            "#[unsafe(no_mangle)] pub extern \"C\" fn osp_f(v: Vec<u8>) {}",
            "v: the type Vec has no translation",
        ),
        ("#[unsafe(no_mangle)] pub extern \"C\" fn osp_f(v: &u8) {}", "v: its type has no translation"),
        ("pub extern \"C\" fn osp_f() {}", "osp_f is extern \"C\" without no_mangle"),
        ("#[unsafe(no_mangle)] pub extern \"C\" fn osp_f(_: c_int) {}", "osp_f: parameters need names"),
        ("#[repr(C)] struct osp_s(u64);", "osp_s: fields need names"),
        ("fn", "expected identifier"),
    ] {
        let error = header(source).expect_err(source);
        assert!(error.contains(expected), "{source}: {error}");
    }
}
