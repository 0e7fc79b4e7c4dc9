//! The imports between the modules of a crate.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

/// A module's path from the root of its crate.
type Module = Vec<String>;

/// A module's use of an item of another module.
pub struct Import {
    pub from: Module,
    pub to: Module,
    /// The path, as it reads from the crate's root.
    pub path: String,
}

/// The modules of a crate, one a file.
pub struct Crate {
    imports: Vec<Import>,
    modules: BTreeMap<Module, ()>,
}

impl Crate {
    /// Reads every file below a folder.
    pub fn read(source: &Path) -> io::Result<Crate> {
        let mut files = Vec::new();
        collect(source, &Vec::new(), &mut files)?;
        Crate::new(&files).map_err(io::Error::other)
    }

    /// Makes a crate of modules and their text.
    pub fn of(files: &[(&str, &str)]) -> Crate {
        let module = |path: &str| path.split("::").map(str::to_owned).collect();
        let files: Vec<(Module, String)> = files
            .iter()
            .map(|(path, text)| (module(path), (*text).to_owned()))
            .collect();
        Crate::new(&files).expect("good code")
    }

    fn new(files: &[(Module, String)]) -> Result<Crate, String> {
        let modules: BTreeMap<Module, ()> = files
            .iter()
            .map(|(module, _)| (module.clone(), ()))
            .collect();
        let mut imports = Vec::new();
        for (module, text) in files {
            let file =
                syn::parse_file(text).map_err(|error| format!("{}: {error}", module.join("::")))?;
            let mut paths = Paths::default();
            paths.visit_file(&file);
            for path in paths.found {
                let Some(path) = absolute(module, &path) else {
                    continue;
                };
                let to = (0..=path.len())
                    .rev()
                    .map(|length| path[..length].to_vec())
                    .find(|prefix| prefix.is_empty() || modules.contains_key(prefix));
                let to = to.unwrap_or_default();
                if to != *module {
                    imports.push(Import {
                        from: module.clone(),
                        to,
                        path: format!("crate::{}", path.join("::")),
                    });
                }
            }
        }
        Ok(Crate { imports, modules })
    }

    pub fn imports(&self) -> impl Iterator<Item = &Import> {
        self.imports.iter()
    }

    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.modules.keys()
    }

    /// Tells whether a module has others inside.
    pub fn is_folder(&self, module: &[String]) -> bool {
        self.modules
            .keys()
            .any(|other| other.len() > module.len() && other.starts_with(module))
    }
}

fn collect(folder: &Path, module: &Module, files: &mut Vec<(Module, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy().into_owned();
        let mut inner = module.clone();
        if entry.file_type()?.is_dir() {
            // Unit tests in files of their own may import from anywhere, like those inside other files.
            if name != "tests" {
                inner.push(name);
                collect(&path, &inner, files)?;
            }
        } else if let Some(name) = name.strip_suffix(".rs") {
            if !matches!(name, "mod" | "lib" | "main" | "tests") {
                inner.push(name.to_owned());
            }
            if name != "tests" {
                files.push((inner, fs::read_to_string(path)?));
            }
        }
    }
    Ok(())
}

/// Converts a path that begins with `crate`, `self` or `super` to one from the crate's root. (One of these words alone is a
/// visibility.)
fn absolute(module: &Module, path: &[String]) -> Option<Module> {
    if path.len() < 2 {
        return None;
    }
    let mut path = path.iter();
    let mut base = match path.next()?.as_str() {
        "crate" => Vec::new(),
        "self" => module.clone(),
        "super" => module.split_last().map(|(_, above)| above.to_vec())?,
        _ => return None,
    };
    for name in path {
        match name.as_str() {
            "super" => {
                base.pop();
            }
            "self" => {}
            name => base.push(name.to_owned()),
        }
    }
    Some(base)
}

/// Collects paths, except for those of tests.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl Paths {
    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let mut path = before.to_vec();
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.tree(&path, &part.tree);
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.tree(&path, tree))
            }
            syn::UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.found.push(path);
            }
            syn::UseTree::Rename(name) => {
                path.push(name.ident.to_string());
                self.found.push(path);
            }
            syn::UseTree::Glob(_) => self.found.push(path),
        }
    }

    /// Collects paths in a macro's input: `crate :: a :: b`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.found.push(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.found.push(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.found.push(path);
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|name| name == "test")
    })
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            self.tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter();
        self.found
            .push(segments.map(|part| part.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        syn::visit::visit_macro(self, call);
    }
}
