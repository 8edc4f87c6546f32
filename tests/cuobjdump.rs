//! The reader against NVIDIA's own: `cuobjdump -elf` (PyPI package nvidia-cuda-cuobjdump) on every committed cubin.
//!
//! Needs `cuobjdump` in `PATH`, or in the folder that `STRESS_TEST_CUDA_BIN` names; says so where it is skipped.

use cubin_image::{Cubin, Kernel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn tool() -> Option<PathBuf> {
    let named = std::env::var_os("STRESS_TEST_CUDA_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = named.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("cuobjdump")).find(|p| p.is_file())
}

fn cubins() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins");
    let folders = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    let files = folders.flat_map(|f| std::fs::read_dir(f).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>());
    let mut found: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "cubin")).collect();
    found.sort();
    found
}

/// What cuobjdump prints of a kernel.
#[derive(Debug, Default, PartialEq)]
struct Printed {
    /// Ordinal, offset, size.
    parameters: Vec<(u64, u64, u64)>,
    registers: Option<u64>,
    block: Vec<u64>,
    cbank_param_size: Option<u64>,
    param_base: Option<u64>,
}

fn number(text: &str) -> u64 {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap_or_else(|_| panic!("{text}")),
        None => text.parse().unwrap_or_else(|_| panic!("{text}")),
    }
}

/// The number of `name : number` in a line of such pairs, which tabs separate.
fn field(line: &str, name: &str) -> u64 {
    let pairs = line.split('\t').filter_map(|pair| pair.split_once(':'));
    let value = pairs.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value);
    number(value.unwrap_or_else(|| panic!("no {name} in {line}")))
}

fn numbers(line: &str) -> Vec<u64> {
    line.split([' ', '\t', ',']).filter(|w| w.starts_with("0x") || w.parse::<u64>().is_ok()).map(number).collect()
}

/// Attributes of `.nv.info.<kernel>` and the registers of `.nv.info`, from the tool's text.
fn parse(text: &str) -> BTreeMap<String, Printed> {
    let mut kernels: BTreeMap<String, Printed> = BTreeMap::new();
    let (mut section, mut attribute) = (String::new(), String::new());
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix(".nv.info") {
            section = name.trim_start_matches('.').to_owned();
        } else if line.starts_with('.') {
            section = "-".into();
        } else if let Some(name) = line.strip_prefix("Attribute:") {
            attribute = name.trim().to_owned();
        } else if let Some(value) = line.strip_prefix("Value:") {
            record(&mut kernels, &section, &attribute, value);
        }
    }
    kernels
}

fn record(kernels: &mut BTreeMap<String, Printed>, section: &str, attribute: &str, value: &str) {
    let attribute = attribute.trim_start_matches("EIATTR_");
    if section.is_empty() {
        if attribute == "REGCOUNT" {
            let name = value.split("function:").nth(1).unwrap().split('(').next().unwrap().trim().to_owned();
            let count = value.split("register count:").nth(1).map(number).unwrap();
            kernels.entry(name).or_default().registers = Some(count);
        }
        return;
    }
    let kernel = kernels.entry(section.to_owned()).or_default();
    match attribute {
        "KPARAM_INFO" | "KPARAM_INFO_V2" => {
            let parameter = (field(value, "Ordinal"), field(value, "Offset"), field(value, "Size"));
            kernel.parameters.push(parameter);
            kernel.parameters.sort();
        }
        "REQNTID" => kernel.block = numbers(value),
        "CBANK_PARAM_SIZE" => kernel.cbank_param_size = numbers(value).first().copied(),
        "PARAM_CBANK" => kernel.param_base = numbers(value).get(1).map(|word| word & 0xffff),
        _ => {}
    }
}

fn own(kernel: &Kernel) -> Printed {
    let parameters = kernel.parameters.iter().map(|p| (u64::from(p.ordinal), u64::from(p.offset), u64::from(p.size)));
    Printed {
        parameters: parameters.collect(),
        registers: kernel.registers.map(u64::from),
        block: kernel.required_block.iter().flatten().map(|&n| u64::from(n)).collect(),
        cbank_param_size: Some(u64::from(kernel.cbank_param_size)),
        param_base: kernel.param_base.map(u64::from),
    }
}

#[test]
fn parameters_registers_blocks_and_banks_equal_cuobjdumps() {
    let Some(tool) = tool() else {
        eprintln!("skipped: no cuobjdump in PATH nor in the folder that STRESS_TEST_CUDA_BIN names");
        return;
    };
    let cubins = cubins();
    assert!(cubins.len() > 20);
    for path in cubins {
        let output = Command::new(&tool).arg("-elf").arg(&path).output().unwrap();
        let printed = parse(&String::from_utf8_lossy(&output.stdout));
        let cubin = Cubin::parse(&std::fs::read(&path).unwrap()).unwrap();
        assert!(!cubin.kernels.is_empty());
        for kernel in &cubin.kernels {
            let theirs = printed.get(&kernel.name).unwrap_or_else(|| panic!("{}: {}", path.display(), kernel.name));
            assert_eq!(&own(kernel), theirs, "{}: {}", path.display(), kernel.name);
        }
    }
}
