//! A C header from the `extern "C"` functions and `repr(C)` structures of a Rust file, in their order, with
//! their comments. What it does not know (another type, a generic, an attribute) is an error, not a guess.

use std::fmt::Write;
use syn::{Attribute, Expr, ExprLit, FnArg, Item, ItemFn, ItemStruct, Lit, Meta, Pat, ReturnType, Type};

/// Columns of the header.
const WIDTH: usize = 110;

const OPENING: &str = "\
/* Osprey: memory programming. Generated from crates/osprey-c/src/lib.rs; do not edit.
 *
 * Data that never decides an address or a branch (labels, shares, ciphertexts) lives in the \
 content-oblivious region,
 * which `osprey run` pages by a trace of a speculative pass. Without the launcher the region is ordinary \
 memory. One
 * thread computes on it; docs/osprey/c-api.md has the rules. Functions that fail return null or -1, with \
 errno set. */
#ifndef OSPREY_H
#define OSPREY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern \"C\" {
#endif
";

const CLOSING: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// The header of a Rust source.
///
/// # Errors
/// Source that does not parse, or says something that has no translation here, by its name.
pub fn header(source: &str) -> Result<String, String> {
    let file = syn::parse_file(source).map_err(|e| e.to_string())?;
    let mut out = OPENING.to_string();
    for item in &file.items {
        let text = match item {
            Item::Struct(item) if has(&item.attrs, "repr") => structure(item)?,
            Item::Fn(item) if item.sig.abi.is_some() => function(item)?,
            _ => continue,
        };
        out.push('\n');
        out.push_str(&text);
    }
    out.push_str(CLOSING);
    Ok(out)
}

fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|a| a.path().is_ident(name))
}

fn structure(item: &ItemStruct) -> Result<String, String> {
    let name = &item.ident;
    let mut out = format!("{}struct {name} {{\n", comment(&item.attrs, ""));
    for field in &item.fields {
        let field_name = field.ident.as_ref().ok_or(format!("{name}: fields need names"))?;
        let declaration = declare(&field.ty, &field_name.to_string())?;
        writeln!(out, "{}    {declaration};", comment(&field.attrs, "    ")).expect("strings take all");
    }
    out.push_str("};\n");
    Ok(out)
}

fn function(item: &ItemFn) -> Result<String, String> {
    let name = item.sig.ident.to_string();
    if !has(&item.attrs, "unsafe") {
        return Err(format!("{name} is extern \"C\" without no_mangle"));
    }
    let mut parameters = Vec::new();
    for input in &item.sig.inputs {
        let FnArg::Typed(input) = input else { return Err(format!("{name} takes self")) };
        let Pat::Ident(parameter) = &*input.pat else { return Err(format!("{name}: parameters need names")) };
        parameters.push(declare(&input.ty, &parameter.ident.to_string())?);
    }
    if parameters.is_empty() {
        parameters.push("void".into());
    }
    let head = match &item.sig.output {
        ReturnType::Default => format!("void {name}"),
        ReturnType::Type(_, ty) => declare(ty, &name)?,
    };
    Ok(format!("{}{head}({});\n", comment(&item.attrs, ""), parameters.join(", ")))
}

/// A declarator: the type with the name at its place.
fn declare(ty: &Type, name: &str) -> Result<String, String> {
    match ty {
        // `const` belongs to what is pointed at: before the name of a type, after the star of a pointer.
        Type::Ptr(pointer) => {
            let constant = if pointer.const_token.is_some() { "const " } else { "" };
            match &*pointer.elem {
                inner @ Type::Ptr(_) => declare(inner, &format!("{constant}*{name}")),
                inner => Ok(format!("{constant}{}", declare(inner, &format!("*{name}"))?)),
            }
        }
        Type::Path(path) => {
            let last = path.path.segments.last().ok_or("an empty path")?;
            let rust = last.ident.to_string();
            let c = match rust.as_str() {
                "c_char" => "char",
                "c_int" => "int",
                "c_void" => "void",
                "size_t" | "usize" => "size_t",
                "ssize_t" | "isize" => "ssize_t",
                "u32" => "uint32_t",
                "u64" => "uint64_t",
                "f64" => "double",
                "FILE" => "FILE",
                own if own.starts_with("osp_") => return Ok(format!("struct {own} {name}")),
                other => return Err(format!("{name}: the type {other} has no translation")),
            };
            Ok(format!("{c} {name}"))
        }
        _ => Err(format!("{name}: its type has no translation")),
    }
}

/// The doc comment as one C comment, filled anew to the width.
fn comment(attributes: &[Attribute], indent: &str) -> String {
    let mut text = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &pair.value
        {
            text.push(line.value());
        }
    }
    let mut out = String::new();
    let mut line = format!("{indent}/*");
    for word in text.join(" ").split_whitespace() {
        if line.len() + 1 + word.len() + " */".len() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = format!("{indent} *");
        }
        line.push(' ');
        line.push_str(word);
    }
    format!("{out}{line} */\n")
}
