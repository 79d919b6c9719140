//! No import cycles between the modules of a folder, direct or indirect.
//!
//! A module counts with everything below it: an import by any of its files is its import. A file
//! and its child modules may import from each other, since they are read together, and every file
//! may use items that the root declares. So a cycle of files is possible only within one module.
//!
//! Imports are `use` items; those through a re-export count for the file that declares the item.

use crate::{crates, read, root, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::{Item, UseTree, Visibility};

/// The path of a module or item within its crate.
type Names = Vec<String>;

/// The imports and declarations of a file.
#[derive(Default)]
struct Imports {
    private: Vec<Names>,
    /// Its re-exports, by their names in this file.
    public: BTreeMap<String, Names>,
    /// Modules that it re-exports with `*`.
    globs: Vec<Names>,
    /// Names of the items that it declares.
    items: BTreeSet<String>,
}

type Files = BTreeMap<Names, Imports>;

/// The files of `sources` below a crate's `src`.
fn files(src: &Path, sources: &[PathBuf]) -> Files {
    let mut found = BTreeMap::new();
    for path in sources {
        let Ok(module) = path.strip_prefix(src) else {
            continue;
        };
        let module: Names = module
            .with_extension("")
            .iter()
            .map(|name| name.to_str().expect("UTF-8").to_owned())
            .filter(|name| name != "lib" && name != "main")
            .collect();
        if !module.iter().any(|name| name == "tests") {
            found.insert(module, path);
        }
    }
    let modules: BTreeSet<Names> = found.keys().cloned().collect();
    found
        .into_iter()
        .map(|(module, path)| {
            let file = syn::parse_file(&read(path)).expect("a file that compiles");
            let mut imports = Imports::default();
            for item in &file.items {
                let Item::Use(item) = item else {
                    imports.items.extend(declared(item));
                    continue;
                };
                let is_public = !matches!(item.vis, Visibility::Inherited);
                for path in flattened(&item.tree) {
                    let Some(path) = in_crate(&module, path, &modules) else {
                        continue;
                    };
                    match (is_public, path.last()) {
                        (true, Some(name)) if name == "*" => {
                            imports.globs.push(path[..path.len() - 1].to_vec());
                        }
                        (true, Some(name)) => _ = imports.public.insert(name.clone(), path),
                        _ => imports.private.push(path),
                    }
                }
            }
            (module, imports)
        })
        .collect()
}

/// The name that an item declares, if any.
fn declared(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The paths of a `use` item, by their original names.
fn flattened(tree: &UseTree) -> Vec<Names> {
    let leaf = |name: String| vec![vec![name]];
    match tree {
        UseTree::Path(path) => {
            let mut below = flattened(&path.tree);
            for names in &mut below {
                names.insert(0, path.ident.to_string());
            }
            below
        }
        UseTree::Name(name) => leaf(name.ident.to_string()),
        UseTree::Rename(rename) => leaf(rename.ident.to_string()),
        UseTree::Glob(_) => leaf("*".into()),
        UseTree::Group(group) => group.items.iter().flat_map(flattened).collect(),
    }
}

/// A path relative to the crate's root; `None` for a path to another crate.
fn in_crate(module: &[String], path: Names, modules: &BTreeSet<Names>) -> Option<Names> {
    let mut base = module.to_vec();
    let mut rest = path.as_slice();
    match rest[0].as_str() {
        "crate" => base.clear(),
        "self" | "super" => {
            while rest[0] == "super" && rest.len() > 1 && rest[1] == "super" {
                base.pop();
                rest = &rest[1..];
            }
            if rest[0] == "super" {
                base.pop();
            }
        }
        child => {
            let child: Names = base.iter().cloned().chain([child.to_owned()]).collect();
            return modules.contains(&child).then(|| [base, path].concat());
        }
    }
    base.extend_from_slice(&rest[1..]);
    Some(base)
}

/// Whether a file declares or re-exports an item of that name.
fn has(file: &Imports, name: &String) -> bool {
    file.items.contains(name) || file.public.contains_key(name)
}

/// The file that declares the item at a path.
fn home(files: &Files, mut path: Names) -> Names {
    // Chains of re-exports are short.
    for _ in 0..8 {
        let place = (0..=path.len()).rfind(|end| files.contains_key(&path[..*end]));
        let place = place.expect("the root is a file");
        let (module, rest) = path.split_at(place);
        let Some(name) = rest.iter().find(|name| *name != "self") else {
            return module.to_vec();
        };
        let imports = &files[module];
        let mut globs = imports.globs.iter();
        if let Some(target) = imports.public.get(name) {
            path = [target.as_slice(), &rest[1..]].concat();
        } else if let Some(target) = globs.find(|glob| has(&files[*glob], name)) {
            path = [target.as_slice(), rest].concat();
        } else {
            return module.to_vec();
        }
    }
    panic!("cycle of re-exports: {path:?}");
}

/// The imports between modules of one folder: importing module, imported module, and the pair of
/// files of one such import.
type Imported = BTreeMap<Names, BTreeMap<Names, String>>;

/// The imports of a crate's files, as imports between modules of one folder.
fn between_siblings(files: &Files) -> Imported {
    let mut imported = Imported::new();
    for (module, imports) in files {
        let reexported = imports.public.values().chain(&imports.globs);
        for path in imports.private.iter().chain(reexported) {
            let home = home(files, path.clone());
            let common = module.iter().zip(&home).take_while(|(a, b)| a == b).count();
            // Otherwise one of them contains the other.
            if module.len() > common && home.len() > common {
                let names = format!("{} from {}", module.join("::"), home.join("::"));
                let others = imported.entry(module[..=common].to_vec()).or_default();
                others.insert(home[..=common].to_vec(), names);
            }
        }
    }
    imported
}

/// The shortest cycle through a module.
fn circle(imported: &Imported, start: &Names) -> Option<Vec<Names>> {
    let mut ways = vec![vec![start.clone()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for direction in ways {
            for next in imported
                .get(&direction[direction.len() - 1])
                .into_iter()
                .flatten()
            {
                if next.0 == start {
                    return Some(direction);
                }
                if seen.insert(next.0) {
                    longer.push([direction.as_slice(), std::slice::from_ref(next.0)].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

#[test]
fn no_modules_import_each_other_in_a_cycle() {
    let mut circles = BTreeSet::new();
    let mut imports_read = 0;
    let root = root();
    let sources: Vec<_> = rust_files().iter().map(|path| root.join(path)).collect();
    for (_, _, folder) in crates() {
        let src = folder.join("src");
        let imported = between_siblings(&files(&src, &sources));
        imports_read += imported.values().map(BTreeMap::len).sum::<usize>();
        for module in imported.keys() {
            if let Some(direction) = circle(&imported, module) {
                let next = direction.iter().cycle().skip(1);
                let mut imports: Vec<&str> = direction
                    .iter()
                    .zip(next)
                    .map(|(from, to)| imported[from][to].as_str())
                    .collect();
                imports.sort_unstable();
                circles.insert(format!("{}: {}", src.display(), imports.join(", ")));
            }
        }
    }
    assert!(imports_read > 500, "only {imports_read} imports were read");
    let circles: Vec<String> = circles.into_iter().collect();
    assert!(circles.is_empty(), "circles:\n{}", circles.join("\n"));
}
