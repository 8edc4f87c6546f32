//! An [`Inspection`] for people.

use super::{HostFacts, Inspection, KernelFacts, MemberFacts, ParameterFacts};
use std::fmt::{Result, Write};

/// Prints everything about one image.
///
/// # Errors
/// What `out` answers.
pub fn print_image(image: &Inspection, out: &mut dyn Write) -> Result {
    writeln!(out, "{}", image.path)?;
    Page { out, indent: 2 }.image(image)
}

/// Prints one image as one line.
///
/// # Errors
/// What `out` answers.
pub fn print_line(image: &Inspection, out: &mut dyn Write) -> Result {
    let compiler = image.compiler.as_ref();
    let name = compiler.map_or(image.kind.as_str(), |c| c.name.as_str());
    let version = compiler.and_then(|c| c.version.as_deref()).unwrap_or("");
    let host = image.host_object.as_ref().map_or("no host object".into(), |h| format!("host object {}", h.machine));
    let kernels: Vec<&str> = image.kernels.iter().map(|k| k.name.as_str()).collect();
    let arch = image.arch.as_deref().unwrap_or("-");
    writeln!(out, "{}: {arch} {name} {version}, {host}, {}", image.path, kernels.join(" "))
}

struct Page<'a> {
    out: &'a mut dyn Write,
    indent: usize,
}

impl Page<'_> {
    fn row(&mut self, name: &str, value: impl std::fmt::Display) -> Result {
        let indent = self.indent;
        writeln!(self.out, "{:indent$}{name:<22} {value}", "")
    }

    fn row_if<T: std::fmt::Display>(&mut self, name: &str, value: Option<T>) -> Result {
        value.map_or(Ok(()), |value| self.row(name, value))
    }

    fn image(&mut self, image: &Inspection) -> Result {
        let form = if image.tile { format!("{} (Tile IR)", kind(&image.kind)) } else { kind(&image.kind).to_owned() };
        self.row("form", format!("{form}, {} bytes, sha256 {}", image.bytes, image.sha256))?;
        let target = image.target.as_ref().map(|t| format!(", target {t}")).unwrap_or_default();
        self.row_if("architecture", image.arch.as_ref().map(|a| format!("{a}{target}")))?;
        self.row_if("runs on", image.runs_on.as_ref())?;
        if let Some(compiler) = &image.compiler {
            let version = compiler.version.as_deref().unwrap_or("of unknown version");
            self.row("compiler", format!("{} {version}", compiler.name))?;
            self.row_if("back end", compiler.back_end.as_ref().map(|v| format!("ptxas {v}")))?;
            self.row_if("back end flags", compiler.flags.as_ref())?;
        }
        if !image.languages.is_empty() {
            self.row("language", image.languages.join(", "))?;
        }
        self.row_if("debug information", image.debug.as_ref())?;
        for kernel in &image.kernels {
            self.kernel(kernel)?;
        }
        if let Some(host) = &image.host_object {
            self.host(host)?;
        }
        self.extras(image)?;
        self.sections(image)?;
        image.members.iter().enumerate().try_for_each(|(index, member)| self.member(index, member))
    }

    fn kernel(&mut self, kernel: &KernelFacts) -> Result {
        self.row("kernel", &kernel.name)?;
        self.indent += 2;
        let three = |dims: [u32; 3]| format!("{}x{}x{}", dims[0], dims[1], dims[2]);
        self.row_if("required block", kernel.required_block.map(three))?;
        self.row_if("largest block", kernel.max_block.map(three))?;
        let unit = if kernel.blocks_are_clusters { ", and a grid counts clusters" } else { "" };
        self.row_if("cluster", kernel.cluster.map(|c| format!("{} blocks{unit}", three(c))))?;
        self.row_if("registers", kernel.registers)?;
        self.row("shared memory", format!("{} bytes", kernel.shared_bytes))?;
        if let (Some(frame), Some(stack)) = (kernel.frame_bytes, kernel.min_stack_bytes) {
            self.row("stack", format!("frame {frame}, at least {stack} bytes"))?;
        }
        let base = kernel.param_base.map(|b| format!(", parameters from {b:#x}")).unwrap_or_default();
        self.row("constant bank 0", format!("{} bytes{base}", kernel.constant_bank_bytes))?;
        self.row("code", format!("{} bytes", kernel.code_bytes))?;
        match &kernel.parameters {
            Some(list) => self.parameters(kernel, list)?,
            None => self.row("parameters", "not told by this form of image")?,
        }
        self.indent -= 2;
        Ok(())
    }

    fn parameters(&mut self, kernel: &KernelFacts, list: &[ParameterFacts]) -> Result {
        let hidden = match kernel.hidden_parameter_bytes {
            0 => "none hidden".to_owned(),
            bytes => format!("{bytes} of them hidden, for the host object to fill"),
        };
        let (count, size) = (list.len(), kernel.cbank_param_size);
        self.row("parameters", format!("{count}, in a buffer of {size} bytes ({size:#x}), {hidden}"))?;
        for (ordinal, parameter) in list.iter().enumerate() {
            let indent = self.indent + 2;
            let alignment = parameter.pointee_alignment.map(|a| format!(", aligned to {a}")).unwrap_or_default();
            let what = match parameter.pointer.as_str() {
                "yes" => format!("pointer{alignment}"),
                "maybe" => "pointer or number: the image does not say".into(),
                "inside" => "structure, which may hold pointers".into(),
                _ => "number".into(),
            };
            let filled = if parameter.hidden { ", hidden" } else { "" };
            let (offset, size) = (parameter.offset, parameter.size);
            writeln!(self.out, "{:indent$}{ordinal:>3}  at {offset:#06x}  {size:>4} bytes  {what}{filled}", "")?;
        }
        Ok(())
    }

    fn host(&mut self, host: &HostFacts) -> Result {
        let foreign = if host.native { "" } else { ", which this machine is not: it cannot be run here" };
        self.row("host object", format!("{}{foreign}", host.machine))?;
        self.indent += 2;
        let interface = host.api_version.map(|v| format!(", interface version {v}")).unwrap_or_default();
        let (bytes, code, relocations) = (host.bytes, host.code_bytes, host.relocations);
        self.row("size", format!("{bytes} bytes, {code} of code, {relocations} relocations{interface}"))?;
        self.row("symbols", host.symbols.join(" "))?;
        for callback in &host.callbacks {
            let effect = match (callback.writes_descriptors, callback.written) {
                (None, _) => "not called".to_owned(),
                (Some(_), None) => "writes nothing".to_owned(),
                (Some(writes), Some((first, last))) => {
                    let what = if writes { "writes descriptors" } else { "writes the caller's parameters" };
                    let bytes = callback.written_bytes.unwrap_or(0);
                    let beyond = if callback.beyond_buffer { ", BEYOND THE BUFFER" } else { "" };
                    format!("{what}: {bytes} bytes in {first:#x}..={last:#x}{beyond}")
                }
            };
            let function = callback.function.as_deref().unwrap_or("no function");
            self.row("callback", format!("{}: {effect} ({function}, {} bytes)", callback.kernel, callback.code_bytes))?;
        }
        if !host.kernels_without_callback.is_empty() {
            self.row("no callback for", host.kernels_without_callback.join(", "))?;
        }
        self.row_if("effect not known", host.not_probed.as_ref())?;
        if let Some(copy) = &host.second_copy {
            let same = if copy.same_bytes { "the same bytes" } else { "OTHER BYTES" };
            self.row("second copy", format!("at {:#x}, {same}", copy.offset))?;
        }
        self.indent -= 2;
        Ok(())
    }

    fn extras(&mut self, image: &Inspection) -> Result {
        if let Some(metadata) = &image.metadata {
            let filled = if metadata.initialised { "filled" } else { "zero" };
            let copy = match metadata.host_object_copy {
                Some(true) => ", holds the host object once more",
                Some(false) => ", holds another host object",
                None => "",
            };
            self.row("metadata symbol", format!("{} bytes in {}, {filled}{copy}", metadata.bytes, metadata.section))?;
        }
        self.row_if("embedded PTX", image.embedded_ptx_bytes.map(|b| format!("{b} bytes")))?;
        self.row_if("embedded Tile IR", image.embedded_tile_ir_bytes.map(|b| format!("{b} bytes of text")))?;
        for source in &image.source_paths {
            self.row(
                &format!("gives away {}", source.kind),
                format!("{}  (in {})", source.name, source.sections.join(", ")),
            )?;
        }
        Ok(())
    }

    fn sections(&mut self, image: &Inspection) -> Result {
        if image.sections.is_empty() {
            return Ok(());
        }
        self.row("sections", image.sections.len())?;
        let indent = self.indent + 2;
        for section in &image.sections {
            let place = if section.in_file { format!("at {:#x}", section.offset) } else { "not in the file".into() };
            let (name, kind, bytes) = (&section.name, section.section_type, section.bytes);
            writeln!(self.out, "{:indent$}{bytes:>9} bytes  type {kind:#010x}  {name}  {place}", "")?;
        }
        Ok(())
    }

    fn member(&mut self, index: usize, member: &MemberFacts) -> Result {
        let place = member.section.as_ref().map(|s| format!(" in {s}")).unwrap_or_default();
        let packed = match member.compression.as_str() {
            "none" => String::new(),
            packing => format!(", packed with {packing}"),
        };
        let (kind, arch, offset, bytes) = (&member.kind, &member.arch, member.offset, member.packed_bytes);
        self.row(
            &format!("member {index}"),
            format!("{kind} for {arch} at {offset:#x}{place}, {bytes} bytes{packed}"),
        )?;
        self.indent += 2;
        self.row_if("cannot be read", member.error.as_ref())?;
        if let Some(image) = &member.image {
            self.image(image)?;
        }
        self.indent -= 2;
        Ok(())
    }
}

fn kind(word: &str) -> &str {
    match word {
        "fatbin" => "fat binary",
        "ptx" => "PTX text",
        "tile_bytecode" => "Tile IR bytecode",
        "elf" => "ELF file with fat binaries",
        other => other,
    }
}

/// Prints a difference table: facts down, images across.
///
/// # Errors
/// What `out` answers.
pub fn print_differences(images: &[Inspection], rows: &[super::Difference], out: &mut dyn Write) -> Result {
    let names: Vec<&str> = images.iter().map(|i| i.path.as_str()).collect();
    let fact_width = rows.iter().map(|r| r.fact.chars().count()).max().unwrap_or(0).min(48);
    let cell = |value: &Option<String>| value.as_deref().map_or("-".to_owned(), |v| shorten(v, 44));
    let width = |column: usize| {
        let cells = rows.iter().map(|r| cell(&r.values[column]).chars().count());
        cells.chain([names[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..images.len()).map(width).collect();
    let line = |first: &str, cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().zip(&widths).map(|(c, w)| format!("{c:<w$}")).collect();
        format!("{first:<fact_width$}  {}", cells.join("  ")).trim_end().to_owned()
    };
    writeln!(out, "{}", line("differs in", names.iter().map(ToString::to_string).collect()))?;
    for row in rows {
        writeln!(out, "{}", line(&shorten(&row.fact, 48), row.values.iter().map(cell).collect()))?;
    }
    Ok(())
}

fn shorten(text: &str, limit: usize) -> String {
    match text.chars().count() > limit {
        true => text.chars().take(limit - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
