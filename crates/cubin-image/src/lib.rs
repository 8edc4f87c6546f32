//! Reads CUDA images as data: cubins with their kernels, parameters and Tile IR host objects, fatbins, PTX text and Tile IR
//! bytecode.
//!
//! Every byte is hostile here: nothing panics, loops, or allocates by a size that an image states without the bytes to
//! back it. What cannot be read is an [`ImageError`] that says at which file offset what was expected. The crate does no
//! I/O and runs nothing; the layouts were taken from images that tileiras 13.1 to 13.5 and ptxas made.
#![forbid(unsafe_code)]

mod attribute;
mod callbacks;
mod compiler;
mod cubin;
mod elf;
mod error;
mod fatbin;
mod giveaway;
mod host;
mod kernel;
mod kind;
mod link;
mod ptx;
mod reader;
mod tile_bytecode;
mod tile_metadata;
mod unpack;

pub use attribute::{Attribute, Attributes, Format, attribute_name};
pub use callbacks::{CallbackEntry, CallbackTable};
pub use compiler::{Compiler, CompilerKind, Language, ToolNote};
pub use cubin::Cubin;
pub use elf::{Section, SectionKind};
pub use error::{ErrorKind, ImageError};
pub use fatbin::{Compression, Fatbin, FatbinEntry, FatbinKind, embedded_fatbins};
pub use giveaway::SourcePath;
pub use host::{HostObject, HostRelocation, HostSymbol, Machine, RelocationKind, SymbolPlace};
pub use kernel::{Kernel, PLANTED_DEVICE_FAULT, Parameter, Pointer};
pub use kind::ImageKind;
pub use link::LinkedHost;
pub use ptx::{Ptx, PtxEntry, PtxParameter};
pub use tile_bytecode::{TileBytecode, TileKernel, TileParameter};
pub use tile_metadata::TileMetadata;
