//! Compiles each program of `programs/` with the machine's own C, C++ or Rust compiler.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=programs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let entries = std::fs::read_dir("programs").expect("the folder of programs is there");
    for source in entries.map(|entry| entry.expect("a readable folder").path()) {
        match source.extension().and_then(|extension| extension.to_str()) {
            Some("c") => compile(&source, &out, false),
            Some("cc") => compile(&source, &out, true),
            Some("rs") => compile_rust(&source, &out),
            _ => {}
        }
    }
}

/// With the compiler that builds all the rest.
fn compile_rust(source: &Path, out: &Path) {
    let rustc = std::env::var_os("RUSTC").expect("cargo sets RUSTC");
    let name = source.file_stem().expect("a source has a name");
    let crate_name = name.to_string_lossy().replace('-', "_");
    let mut command = std::process::Command::new(rustc);
    command
        .args(["--edition", "2024", "-O", "-g", "--crate-name", &crate_name])
        .arg(source)
        .arg("-o")
        .arg(out.join(name));
    let status = command.status().expect("the compiler runs");
    assert!(status.success(), "{} does not compile", source.display());
}

/// Optimised a little, with unwind tables and without frame pointers, as distributions build.
fn compile(source: &Path, out: &Path, cpp: bool) {
    let mut build = cc::Build::new();
    build.cpp(cpp).opt_level(1).debug(true).warnings(false).cargo_metadata(false);
    let mut command = build.get_compiler().to_command();
    let name = source.file_stem().expect("a source has a name");
    command.args(["-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-pthread", "-w"]);
    let library = name.to_string_lossy().starts_with("lib");
    let output = if library { format!("{}.so.1", name.to_string_lossy()).into() } else { name.to_owned() };
    if library {
        let soname = format!("-Wl,-soname,{}", output.to_string_lossy());
        command.args(["-shared", "-fPIC", "-s", &soname]);
    }
    command.arg(source).arg("-o").arg(out.join(output)).arg("-ldl");
    let status = command.status().expect("a C compiler is there");
    assert!(status.success(), "{} does not compile", source.display());
}
