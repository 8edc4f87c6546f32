//! Everything that an image tells, as `stress inspect` shows it.
//!
//! [`Inspection`] is the public shape (`--format json`, schema `cubin-stress/inspect/1`); `build` fills it from bytes,
//! `text` prints it, `difference` compares several.

mod build;
mod difference;
mod text;

pub use build::inspect;
pub use difference::{Difference, differences};
pub use text::{print_differences, print_image, print_line};

use schemars::JsonSchema;
use serde::Serialize;

/// Name of the shape of `stress inspect --format json`.
pub const INSPECT_SCHEMA: &str = "cubin-stress/inspect/1";

/// The document that `stress inspect --format json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InspectReport {
    /// [`INSPECT_SCHEMA`].
    pub schema: String,
    /// Images that could be read, in the order named.
    pub images: Vec<Inspection>,
    /// Files that could not.
    pub refused: Vec<Refused>,
    /// What differs between the images, where two or more were named.
    pub differences: Vec<Difference>,
}

/// A file that is no image that can be read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Refused {
    /// The file.
    pub path: String,
    /// One line: where, what was expected, what was found.
    pub error: String,
}

/// One image.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Inspection {
    /// The file that was named.
    pub path: String,
    /// Size of the file, bytes.
    pub bytes: u64,
    /// SHA-256 of the file, hex.
    pub sha256: String,
    /// `cubin`, `fatbin`, `ptx`, `tile_bytecode`, `elf`.
    pub kind: String,
    /// Architecture, such as `sm_120`.
    pub arch: Option<String>,
    /// Architecture that the back end was asked for, such as `sm_120a`.
    pub target: Option<String>,
    /// Which devices a driver takes it for.
    pub runs_on: Option<String>,
    /// Who made it.
    pub compiler: Option<CompilerFacts>,
    /// Source languages that its kernels name.
    pub languages: Vec<String>,
    /// Debug information, as `e_flags` tells it.
    pub debug: Option<String>,
    /// Whether the Tile IR compiler made it: it has a host object, or is Tile IR bytecode.
    pub tile: bool,
    /// Its kernels.
    pub kernels: Vec<KernelFacts>,
    /// The host object of a Tile image.
    pub host_object: Option<HostFacts>,
    /// The metadata symbol of Tile images from 13.3 on.
    pub metadata: Option<MetadataFacts>,
    /// Size of the PTX text that it brings along, bytes.
    pub embedded_ptx_bytes: Option<u64>,
    /// Size of the Tile IR text that it brings along, bytes.
    pub embedded_tile_ir_bytes: Option<u64>,
    /// Folder and file names of its sources that it gives away.
    pub source_paths: Vec<SourceFacts>,
    /// Sections of a cubin.
    pub sections: Vec<SectionFacts>,
    /// Images inside a fat binary, or inside an ELF file with fat binaries.
    pub members: Vec<MemberFacts>,
}

/// Who made an image.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CompilerFacts {
    /// `tileiras`, `ptxas` or `unknown`.
    pub name: String,
    /// Exact for ptxas; a release for tileiras, which images name no closer.
    pub version: Option<String>,
    /// Exact version of the back end of a Tile image.
    pub back_end: Option<String>,
    /// Command line of the back end, as the image notes it.
    pub flags: Option<String>,
}

/// One kernel.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct KernelFacts {
    /// Its symbol.
    pub name: String,
    /// Its parameters in order; none where the image's form does not tell.
    pub parameters: Option<Vec<ParameterFacts>>,
    /// Bytes of the listed parameters.
    pub user_parameter_bytes: u32,
    /// Size of the parameter buffer that a launch needs, hidden parameters included, bytes.
    pub cbank_param_size: u32,
    /// Bytes behind the listed parameters that only the host object fills.
    pub hidden_parameter_bytes: u32,
    /// Where parameters start in constant bank 0, bytes.
    pub param_base: Option<u32>,
    /// Size of constant bank 0, bytes.
    pub constant_bank_bytes: u64,
    /// Required block size, threads.
    pub required_block: Option<[u32; 3]>,
    /// Largest block size, threads.
    pub max_block: Option<[u32; 3]>,
    /// Cluster size, blocks.
    pub cluster: Option<[u32; 3]>,
    /// The grid is counted in clusters.
    pub blocks_are_clusters: bool,
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Static shared memory, bytes.
    pub shared_bytes: u64,
    /// Stack frame, bytes.
    pub frame_bytes: Option<u32>,
    /// Least stack, bytes.
    pub min_stack_bytes: Option<u32>,
    /// Machine code, bytes.
    pub code_bytes: u64,
    /// SHA-256 of the machine code, hex.
    pub code_sha256: Option<String>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ParameterFacts {
    /// Offset in the parameter buffer, bytes.
    pub offset: u32,
    /// Size, bytes.
    pub size: u32,
    /// `yes` (the image names an address space), `maybe` (eight bytes, no word about it), `inside` (a structure that may
    /// hold pointers), `no`.
    pub pointer: String,
    /// Alignment of what it points to, bytes, where the image promises one.
    pub pointee_alignment: Option<u32>,
    /// Filled by the host object, not by the caller.
    pub hidden: bool,
}

/// The host object of a Tile image.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HostFacts {
    /// `x86-64`, `aarch64` or `machine N`.
    pub machine: String,
    /// Whether it runs on this machine.
    pub native: bool,
    /// Its file offset.
    pub offset: u64,
    /// Size of the object, bytes.
    pub bytes: u64,
    /// Machine code in it, bytes.
    pub code_bytes: u64,
    /// Its relocations.
    pub relocations: usize,
    /// Its named symbols.
    pub symbols: Vec<String>,
    /// Version of the host interface that its table names.
    pub api_version: Option<u32>,
    /// One callback a kernel of its table.
    pub callbacks: Vec<CallbackFacts>,
    /// Kernels of the image that its table does not have.
    pub kernels_without_callback: Vec<String>,
    /// Why the callbacks' effect is not known, where it is not.
    pub not_probed: Option<String>,
    /// A second copy (`.nv.merc.nv.host`), and whether its bytes are the same.
    pub second_copy: Option<SecondCopy>,
}

/// A second copy of the host object.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SecondCopy {
    /// Its file offset.
    pub offset: u64,
    /// Its bytes equal the first one's.
    pub same_bytes: bool,
}

/// One callback.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallbackFacts {
    /// The kernel.
    pub kernel: String,
    /// The function that is called before a launch.
    pub function: Option<String>,
    /// Its size, bytes.
    pub code_bytes: u64,
    /// Whether it writes descriptors behind the listed parameters; none where it was not called.
    pub writes_descriptors: Option<bool>,
    /// First and last offset in the parameter buffer that it wrote.
    pub written: Option<(u32, u32)>,
    /// How many bytes it wrote.
    pub written_bytes: Option<u32>,
    /// It wrote behind the buffer.
    pub beyond_buffer: bool,
}

/// The metadata symbol.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MetadataFacts {
    /// Its section.
    pub section: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// Its bytes stand in the image (13.3); else it is zeroed device memory.
    pub initialised: bool,
    /// Number of tensor descriptors that it names.
    pub descriptors: Option<u16>,
    /// It holds a copy of the host object with the same bytes.
    pub host_object_copy: Option<bool>,
}

/// A name that the image gives away.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SourceFacts {
    /// `folder` or `file`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Sections that hold it.
    pub sections: Vec<String>,
}

/// One section.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SectionFacts {
    /// Its name.
    pub name: String,
    /// `sh_type`.
    pub section_type: u32,
    /// Its file offset.
    pub offset: u64,
    /// Its size, bytes.
    pub bytes: u64,
    /// Its bytes stand in the file.
    pub in_file: bool,
}

/// One image inside a container.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemberFacts {
    /// Section of the ELF file that holds the container.
    pub section: Option<String>,
    /// File offset of the entry.
    pub offset: u64,
    /// What the entry says that it is.
    pub kind: String,
    /// Architecture that the entry names.
    pub arch: String,
    /// `none`, `lz4`, `zstd`.
    pub compression: String,
    /// Its size in the container, bytes.
    pub packed_bytes: u64,
    /// The image itself; none where it cannot be read.
    pub image: Option<Box<Inspection>>,
    /// Why it cannot.
    pub error: Option<String>,
}
