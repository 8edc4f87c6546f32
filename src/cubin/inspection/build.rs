//! Fills an [`Inspection`] from bytes. No I/O, nothing is run: what callbacks do comes in from the caller's probe.

use super::{
    CallbackFacts, CompilerFacts, HostFacts, Inspection, KernelFacts, MemberFacts, MetadataFacts, ParameterFacts,
    SecondCopy, SectionFacts, SourceFacts,
};
use crate::cubin::image::hex;
use crate::cubin::probe::{HostProbe, ProbedCallback};
use cubin_image::{
    Compression, Cubin, Fatbin, HostObject, ImageError, ImageKind, Kernel, Pointer, Ptx, TileBytecode, embedded_fatbins,
};
use sha2::{Digest, Sha256};
use std::cell::Cell;

/// How deep containers are followed: an ELF file, its fat binaries, their images.
const DEPTH: u32 = 2;
/// Bytes that are hashed or unpacked for one file: this many times its size,
const WORK_FACTOR: u64 = 16;
/// and this many in any case.
const WORK_BASE: u64 = 64 << 20;

/// Reads an image of any form. `probe` is asked what a host object's callbacks write.
///
/// # Errors
/// Where the bytes are none, or are broken.
pub fn inspect(path: &str, data: &[u8], probe: &dyn HostProbe) -> Result<Inspection, ImageError> {
    let work = data.len() as u64 * WORK_FACTOR + WORK_BASE;
    Builder { probe, depth: DEPTH, work: &Cell::new(work) }.image(path, data)
}

#[derive(Clone, Copy)]
struct Builder<'a> {
    probe: &'a dyn HostProbe,
    depth: u32,
    /// Bytes that may still be hashed or unpacked: entries may overlap, and a packed one may stand for a million times its
    /// size.
    work: &'a Cell<u64>,
}

impl Builder<'_> {
    /// Takes `bytes` of the work that is left; whether there was enough.
    fn afford(&self, bytes: u64) -> bool {
        let left = self.work.get().checked_sub(bytes);
        left.is_some_and(|left| {
            self.work.set(left);
            true
        })
    }

    fn image(&self, path: &str, data: &[u8]) -> Result<Inspection, ImageError> {
        let mut facts = match ImageKind::detect(data) {
            ImageKind::Cubin => self.cubin(data)?,
            ImageKind::Fatbin => self.containers("fatbin", data, vec![(None, Fatbin::parse(data)?)]),
            ImageKind::Ptx => ptx(&Ptx::parse(data)?),
            ImageKind::TileBytecode => bytecode(&TileBytecode::parse(data)?),
            ImageKind::ElfExecutableOrObject => {
                let found = embedded_fatbins(data)?;
                self.containers("elf", data, found.into_iter().map(|(section, f)| (Some(section), f)).collect())
            }
            // Neither form is one: the cubin reader says so, with the place.
            ImageKind::Gzip | ImageKind::Empty | ImageKind::Unknown => {
                return Err(unknown(data));
            }
        };
        facts.path = path.to_owned();
        facts.bytes = data.len() as u64;
        facts.sha256 = hex(&Sha256::digest(data));
        Ok(facts)
    }

    fn cubin(&self, data: &[u8]) -> Result<Inspection, ImageError> {
        let cubin = Cubin::parse(data)?;
        let compiler = cubin.compiler();
        let target = cubin.tool.as_ref().and_then(|t| t.target()).map(str::to_owned);
        Ok(Inspection {
            kind: "cubin".into(),
            arch: Some(format!("sm_{}", cubin.arch)),
            runs_on: Some(runs_on(cubin.is_tile(), cubin.arch, target.as_deref())),
            target,
            compiler: Some(CompilerFacts {
                name: compiler.kind.word().into(),
                version: compiler.version,
                back_end: compiler.back_end,
                flags: cubin.tool.as_ref().map(|t| t.flags.clone()),
            }),
            languages: cubin.languages().iter().map(ToString::to_string).collect(),
            debug: Some(debug(cubin.debug)),
            tile: cubin.is_tile(),
            kernels: cubin.kernels.iter().map(|k| self.kernel(k, data)).collect(),
            host_object: cubin.host_object().map(|host| self.host(&cubin, host, data)),
            metadata: cubin.metadata.as_ref().map(|m| MetadataFacts {
                section: m.section.clone(),
                bytes: m.size,
                initialised: m.initialised,
                descriptors: m.descriptors.filter(|_| m.initialised),
                host_object_copy: m.host_copy.map(|c| c.1),
            }),
            embedded_ptx_bytes: cubin.embedded_ptx(data).map(|t| t.len() as u64),
            embedded_tile_ir_bytes: cubin.embedded_tile_ir(data).map(|t| t.len() as u64),
            source_paths: source_paths(&cubin),
            sections: cubin.sections.iter().skip(1).map(section).collect(),
            ..Inspection::default()
        })
    }

    fn kernel(&self, kernel: &Kernel, data: &[u8]) -> KernelFacts {
        let parameters = kernel.parameters.iter().map(|p| ParameterFacts {
            offset: u32::from(p.offset),
            size: p.size,
            pointer: pointer(p.pointer()),
            pointee_alignment: 1u32.checked_shl(u32::from(p.log2_alignment)).filter(|&a| a > 1),
            hidden: false,
        });
        let start = usize::try_from(kernel.text_offset).unwrap_or(usize::MAX);
        let code = start.checked_add(kernel.text_size as usize).and_then(|end| data.get(start..end));
        let code = code.filter(|code| self.afford(code.len() as u64));
        KernelFacts {
            name: kernel.name.clone(),
            parameters: Some(parameters.collect()),
            user_parameter_bytes: kernel.user_param_bytes(),
            cbank_param_size: kernel.cbank_param_size,
            hidden_parameter_bytes: kernel.hidden_bytes(),
            param_base: kernel.param_base,
            constant_bank_bytes: kernel.constant_size,
            required_block: kernel.required_block,
            max_block: kernel.max_block,
            cluster: kernel.cluster,
            blocks_are_clusters: kernel.blocks_are_clusters,
            registers: kernel.registers,
            shared_bytes: kernel.shared_size,
            frame_bytes: kernel.frame_size,
            min_stack_bytes: kernel.min_stack_size,
            code_bytes: kernel.text_size,
            code_sha256: code.map(|code| hex(&Sha256::digest(code))),
        }
    }

    fn host(&self, cubin: &Cubin, host: &HostObject, data: &[u8]) -> HostFacts {
        let probed = self.probe.probe(cubin, data);
        let entries = host.callbacks.iter().flat_map(|table| &table.entries);
        let callbacks: Vec<CallbackFacts> = entries
            .map(|entry| {
                let seen = probed.as_ref().ok().and_then(|p| p.iter().find(|p| p.kernel == entry.kernel));
                callback(entry, seen, cubin.kernel(&entry.kernel))
            })
            .collect();
        let has = |name: &str| callbacks.iter().any(|c| c.kernel == name && c.function.is_some());
        HostFacts {
            machine: host.machine.word(),
            native: host.machine.is_native(),
            offset: host.offset,
            bytes: host.size(),
            code_bytes: host.code_size(),
            relocations: host.relocations.len(),
            symbols: host.symbols.iter().filter(|s| !s.name.is_empty()).map(|s| s.name.clone()).collect(),
            api_version: host.callbacks.as_ref().map(|t| t.api_version),
            kernels_without_callback: cubin.kernels.iter().map(|k| k.name.clone()).filter(|n| !has(n)).collect(),
            callbacks,
            not_probed: probed.err(),
            second_copy: host.second_copy.map(|(offset, same_bytes)| SecondCopy { offset, same_bytes }),
        }
    }

    fn containers(&self, kind: &str, data: &[u8], found: Vec<(Option<String>, Fatbin)>) -> Inspection {
        let mut facts = Inspection { kind: kind.into(), ..Inspection::default() };
        for (section, fatbin) in found {
            for entry in &fatbin.entries {
                let inner = Builder { depth: self.depth.saturating_sub(1), ..*self };
                let (image, error) = match self.depth {
                    0 => (None, Some("containers inside containers are not followed further".into())),
                    _ if !self.afford(entry.unpacked_size) => (None, Some("too much to unpack".into())),
                    _ => match entry.unpack(data).and_then(|image| inner.image("", &image)) {
                        Ok(image) => (Some(Box::new(image)), None),
                        Err(error) => (None, Some(error.to_string())),
                    },
                };
                facts.tile |= image.as_ref().is_some_and(|i| i.tile);
                facts.members.push(MemberFacts {
                    section: section.clone(),
                    offset: entry.offset,
                    kind: entry.kind.describe(),
                    arch: format!("sm_{}", entry.arch),
                    compression: compression(entry.compression).into(),
                    packed_bytes: entry.payload.end - entry.payload.start,
                    image,
                    error,
                });
            }
        }
        facts
    }
}

fn unknown(data: &[u8]) -> ImageError {
    let kind = if data.is_empty() { cubin_image::ErrorKind::Empty } else { cubin_image::ErrorKind::WrongForm };
    ImageError {
        kind,
        offset: 0,
        expected: "a cubin, a fat binary, PTX text, Tile IR bytecode or an ELF file that holds them".into(),
        found: ImageKind::detect(data).describe().into(),
    }
}

fn runs_on(tile: bool, arch: u32, target: Option<&str>) -> String {
    let (major, minor) = (arch / 10, arch % 10);
    match target.and_then(|t| t.chars().last()) {
        _ if tile => format!("compute capability {major}.{minor} exactly (Tile images need their exact architecture)"),
        Some('a') => format!("compute capability {major}.{minor} exactly (architecture-specific target)"),
        Some('f') => format!("the family of compute capability {major}.{minor} (family-specific target)"),
        _ => format!("compute capability {major}.{minor} and later minor versions of {major}"),
    }
}

fn debug(byte: u8) -> String {
    match byte {
        0x06 => "none".into(),
        0x09 => "line information".into(),
        0x0b => "-g, or line information from 13.4 on".into(),
        0x0f => "device debug".into(),
        other => format!("{other:#04x}"),
    }
}

fn compression(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "none",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
    }
}

fn pointer(pointer: Pointer) -> String {
    match pointer {
        Pointer::Sure => "yes",
        Pointer::Possible => "maybe",
        Pointer::Inside => "inside",
        Pointer::No => "no",
    }
    .into()
}

fn callback(
    entry: &cubin_image::CallbackEntry,
    seen: Option<&ProbedCallback>,
    kernel: Option<&Kernel>,
) -> CallbackFacts {
    let user_end = kernel.map_or(0, Kernel::user_param_bytes);
    CallbackFacts {
        kernel: entry.kernel.clone(),
        function: entry.on_arguments_change.clone(),
        code_bytes: entry.size,
        writes_descriptors: seen.map(|s| s.changed.is_some_and(|(_, last)| last >= user_end)),
        written: seen.and_then(|s| s.changed),
        written_bytes: seen.map(|s| s.changed_bytes),
        beyond_buffer: seen.is_some_and(|s| s.beyond_buffer),
    }
}

fn section(section: &cubin_image::Section) -> SectionFacts {
    SectionFacts {
        name: section.name.clone(),
        section_type: section.raw_type,
        offset: section.offset,
        bytes: section.size,
        in_file: section.in_file(),
    }
}

/// Each name once, with the sections that hold it.
fn source_paths(cubin: &Cubin) -> Vec<SourceFacts> {
    let mut found: Vec<SourceFacts> = Vec::new();
    for path in &cubin.source_paths {
        let kind = if path.is_folder { "folder" } else { "file" };
        let section = cubin.sections.get(path.section).map(|s| s.name.clone()).unwrap_or_default();
        let full = found.len() >= 256;
        match found.iter_mut().find(|f| f.kind == kind && f.name == path.text) {
            Some(known) if known.sections.contains(&section) => {}
            Some(known) => known.sections.push(section),
            // A hostile table of many names is shown in part.
            None if !full => {
                found.push(SourceFacts { kind: kind.into(), name: path.text.clone(), sections: vec![section] });
            }
            None => {}
        }
    }
    found
}

fn ptx(ptx: &Ptx) -> Inspection {
    let kernels = ptx.entries.iter().map(|entry| KernelFacts {
        name: entry.name.clone(),
        parameters: Some(
            entry
                .parameters
                .iter()
                .map(|p| ParameterFacts {
                    offset: p.offset,
                    size: p.size,
                    pointer: pointer(p.pointer),
                    pointee_alignment: None,
                    hidden: p.hidden,
                })
                .collect(),
        ),
        user_parameter_bytes: entry
            .parameters
            .iter()
            .filter(|p| !p.hidden)
            .map(|p| p.offset.saturating_add(p.size))
            .max()
            .unwrap_or(0),
        cbank_param_size: entry.param_bytes(),
        required_block: entry.required_block,
        max_block: entry.max_block,
        ..KernelFacts::default()
    });
    Inspection {
        kind: "ptx".into(),
        arch: ptx.arch().map(|a| format!("sm_{a}")),
        target: Some(ptx.target.clone()),
        runs_on: Some(format!("devices that the driver's PTX compiler can target from {} on", ptx.target)),
        languages: vec![format!("PTX {}.{}", ptx.version.0, ptx.version.1)],
        kernels: kernels.collect(),
        ..Inspection::default()
    }
}

fn bytecode(code: &TileBytecode) -> Inspection {
    let kernels = code.kernels.iter().map(|kernel| KernelFacts {
        name: kernel.name.clone(),
        parameters: kernel.parameters.as_ref().map(|list| {
            let facts = list.iter().map(|p| ParameterFacts {
                offset: p.offset,
                size: p.size,
                pointer: pointer(p.pointer),
                pointee_alignment: None,
                hidden: false,
            });
            facts.collect()
        }),
        user_parameter_bytes: kernel.user_param_bytes(),
        cbank_param_size: kernel.user_param_bytes(),
        ..KernelFacts::default()
    });
    Inspection {
        kind: "tile_bytecode".into(),
        runs_on: Some("devices that the driver's Tile IR compiler can target".into()),
        languages: vec![format!("Tile IR bytecode {}.{}", code.version.0, code.version.1)],
        tile: true,
        kernels: kernels.collect(),
        ..Inspection::default()
    }
}
