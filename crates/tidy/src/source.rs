//! Rust files: their functions, their public types, and what they name.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{
    Attribute, ImplItemFn, ItemEnum, ItemFn, ItemMod, ItemStruct, ItemTrait, ItemType, UseTree, Visibility,
};

/// A file under `crates/`.
pub struct RustFile {
    /// Relative to the root of the workspace.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Whether its module is compiled for tests only.
    test: bool,
    /// Files of such modules that it declares, without their extension.
    test_modules: Vec<PathBuf>,
    /// Functions that are no tests, in no module of tests.
    pub functions: Vec<Function>,
    /// Types that are visible outside their module, likewise.
    pub types: Vec<PublicType>,
    /// Imports that give a name of another crate another name, likewise: the line, the crate, the new name.
    pub renames: Vec<(usize, String, String)>,
    /// How often each identifier stands there outside tests, names in format strings included; but in
    /// imports.
    pub names: BTreeMap<String, usize>,
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
pub struct PublicType {
    /// Its name.
    pub name: String,
    /// Its first line.
    pub line: usize,
}

impl RustFile {
    /// The crate it belongs to.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.path.iter().nth(1).and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Whether all of it is for tests, examples or measurements.
    #[must_use]
    pub fn is_aside(&self) -> bool {
        let aside = ["tests", "examples", "benches", "fuzzing.rs"];
        self.test || self.path.iter().any(|part| aside.iter().any(|name| part == *name))
    }
}

/// All Rust files of the workspace.
///
/// # Panics
/// When one is no Rust.
#[must_use]
pub fn sources() -> Vec<RustFile> {
    let mut all: Vec<RustFile> = crate::files("crates", "rs").into_iter().map(|path| source(&path)).collect();
    let tests: Vec<PathBuf> = all.iter().flat_map(|source| source.test_modules.clone()).collect();
    for source in &mut all {
        let module = source.path.with_extension("");
        source.test = tests.iter().any(|test| module.starts_with(test));
    }
    all
}

fn source(path: &Path) -> RustFile {
    let text = crate::read(path);
    let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let beside = path.parent().unwrap_or(path).to_path_buf();
    let own = path.with_extension("");
    // Modules of `a.rs` lie in `a`, those of `mod.rs` and of a root beside it.
    let is_root = ["lib", "main", "mod"].iter().any(|name| own.ends_with(name));
    let folder = if is_root { beside.clone() } else { own };
    let mut found = Found { beside, folder, ..Found::default() };
    found.visit_file(&file);
    let Found { functions, types, renames, names, test_modules, .. } = found;
    RustFile { path: path.to_path_buf(), text, test: false, test_modules, functions, types, renames, names }
}

#[derive(Default)]
struct Found {
    functions: Vec<Function>,
    types: Vec<PublicType>,
    renames: Vec<(usize, String, String)>,
    names: BTreeMap<String, usize>,
    /// Where the file lies, and where files of its modules do.
    beside: PathBuf,
    folder: PathBuf,
    test_modules: Vec<PathBuf>,
    of_trait: bool,
}

impl Found {
    fn function(&mut self, name: &syn::Ident, body: &syn::Block, visibility: &Visibility) {
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
            self.types.push(PublicType { name: name.to_string(), line: name.span().start().line });
        }
    }

    /// What a tree of imports below the crate `root` renames.
    fn renames_of(&mut self, root: &str, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.renames_of(root, &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.renames_of(root, item)),
            UseTree::Rename(to) if to.rename != "_" => {
                self.renames.push((to.rename.span().start().line, root.to_owned(), to.rename.to_string()));
            }
            UseTree::Rename(_) | UseTree::Name(_) | UseTree::Glob(_) => {}
        }
    }

    fn name(&mut self, name: &proc_macro2::Ident) {
        *self.names.entry(name.to_string()).or_default() += 1;
    }

    fn names_of(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => self.name(&name),
                TokenTree::Group(group) => self.names_of(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl<'a> Visit<'a> for Found {
    fn visit_ident(&mut self, name: &'a proc_macro2::Ident) {
        self.name(name);
    }

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        self.names_of(item.tokens.clone());
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        if let UseTree::Path(path) = &item.tree {
            self.renames_of(&path.ident.to_string(), &path.tree);
        }
    }

    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.names_of(list.tokens.clone());
        }
    }

    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        } else if module.content.is_none() {
            let named = module.attrs.iter().find(|attribute| attribute.path().is_ident("path"));
            let file = named.and_then(path_of).map(|file| file.with_extension(""));
            self.test_modules.push(match file {
                Some(file) => self.beside.join(file),
                None => self.folder.join(module.ident.to_string()),
            });
        }
    }

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        if is_test(&item.attrs) {
            return;
        }
        self.function(&item.sig.ident, &item.block, &item.vis);
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
        if is_test(&item.attrs) {
            return;
        }
        self.function(&item.sig.ident, &item.block, &item.vis);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'a ItemStruct) {
        self.type_of(&item.ident, &item.vis);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'a ItemEnum) {
        self.type_of(&item.ident, &item.vis);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'a ItemTrait) {
        self.type_of(&item.ident, &item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'a ItemType) {
        self.type_of(&item.ident, &item.vis);
        visit::visit_item_type(self, item);
    }
}

/// The text of `#[path = ".."]`.
fn path_of(attribute: &Attribute) -> Option<PathBuf> {
    let syn::Expr::Lit(value) = &attribute.meta.require_name_value().ok()?.value else { return None };
    let syn::Lit::Str(text) = &value.lit else { return None };
    Some(text.value().into())
}

/// Whether an item is compiled for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let cfg = || attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test");
        path.is_ident("test") || path.is_ident("cfg") && cfg()
    })
}
