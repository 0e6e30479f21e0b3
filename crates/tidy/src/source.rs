//! Rust files: their functions and their public types.

use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, ItemEnum, ItemFn, ItemMod, ItemStruct, ItemTrait, ItemType, Visibility};

/// A file under `crates/`.
pub struct Source {
    /// Relative to the root of the workspace.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Functions that are no tests, in no module of tests.
    pub functions: Vec<Function>,
    /// Types that are visible outside their module, likewise.
    pub types: Vec<Type>,
}

/// A function.
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its first line.
    pub line: usize,
    /// From its first line to its last.
    pub lines: usize,
    /// Whether it says `pub` without a restriction.
    pub public: bool,
    /// Whether a trait asks for it.
    pub of_trait: bool,
}

/// A type that is visible outside its module.
pub struct Type {
    /// Its name.
    pub name: String,
    /// Its first line.
    pub line: usize,
}

impl Source {
    /// The crate it belongs to.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.path.iter().nth(1).and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Whether all of it is for tests, examples or measurements.
    #[must_use]
    pub fn is_aside(&self) -> bool {
        let aside = |part: &str| ["tests", "tests.rs", "examples", "benches", "samples.rs"].contains(&part);
        self.path.iter().any(|part| part.to_str().is_some_and(|p| aside(p) || p.ends_with("_tests.rs")))
    }
}

/// All Rust files of the workspace.
///
/// # Panics
/// When one is no Rust.
#[must_use]
pub fn sources() -> Vec<Source> {
    crate::files("crates", "rs").into_iter().map(|path| source(&path)).collect()
}

fn source(path: &Path) -> Source {
    let text = crate::read(path);
    let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut found = Found::default();
    found.visit_file(&file);
    Source { path: path.to_path_buf(), text, functions: found.functions, types: found.types }
}

#[derive(Default)]
struct Found {
    functions: Vec<Function>,
    types: Vec<Type>,
    of_trait: bool,
}

impl Found {
    fn function(
        &mut self,
        name: &syn::Ident,
        body: &syn::Block,
        attributes: &[Attribute],
        visibility: &Visibility,
    ) {
        if is_test(attributes) {
            return;
        }
        let (line, last) = (name.span().start().line, body.brace_token.span.close().end().line);
        let (public, of_trait) = (matches!(visibility, Visibility::Public(_)), self.of_trait);
        self.functions.push(Function {
            name: name.to_string(),
            line,
            lines: last - line + 1,
            public,
            of_trait,
        });
    }

    fn type_of(&mut self, name: &syn::Ident, visibility: &Visibility) {
        if !matches!(visibility, Visibility::Inherited) {
            self.types.push(Type { name: name.to_string(), line: name.span().start().line });
        }
    }
}

impl<'a> Visit<'a> for Found {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        self.function(&item.sig.ident, &item.block, &item.attrs, &item.vis);
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if is_test(&item.attrs) {
            return;
        }
        let before = std::mem::replace(&mut self.of_trait, item.trait_.is_some());
        visit::visit_item_impl(self, item);
        self.of_trait = before;
    }

    fn visit_impl_item_fn(&mut self, item: &'a ImplItemFn) {
        self.function(&item.sig.ident, &item.block, &item.attrs, &item.vis);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'a ItemStruct) {
        self.type_of(&item.ident, &item.vis);
    }

    fn visit_item_enum(&mut self, item: &'a ItemEnum) {
        self.type_of(&item.ident, &item.vis);
    }

    fn visit_item_trait(&mut self, item: &'a ItemTrait) {
        self.type_of(&item.ident, &item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'a ItemType) {
        self.type_of(&item.ident, &item.vis);
    }
}

/// Whether an item is compiled for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let cfg = || attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test");
        path.is_ident("test") || path.is_ident("cfg") && cfg()
    })
}
