//! The files whose code is mapped in a process, and a cache of what was read of them.

use super::image::{Image, build_id};
use super::maps::{Mapping, Maps};
use super::memory::{Memory, PAGE};
use object::LittleEndian as Le;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{ReadCache, ReadRef};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Files remembered at most; more than that means that a child makes up new ones.
const MOST_FILES: usize = 256;

/// What makes a file the same file: device, inode, size, modified at (seconds, nanoseconds).
type Identity = (u64, u64, u64, i64, i64);

/// Files read so far, shared by all trials of a run.
#[derive(Clone, Debug, Default)]
pub struct ModuleCache(Arc<Mutex<HashMap<Identity, Option<Arc<Image>>>>>);

impl ModuleCache {
    fn image(&self, file: File) -> Option<Arc<Image>> {
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let identity = (meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MOST_FILES && !files.contains_key(&identity) {
            files.clear();
        }
        files.entry(identity).or_insert_with(|| Image::from_file(&ReadCache::new(file)).map(Arc::new)).clone()
    }
}

/// A file whose code is mapped.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Path as in `/proc/pid/maps`, without ` (deleted)`.
    pub path: String,
    /// Where to read the file, if it is still there.
    pub file: Option<PathBuf>,
    /// What was read of it.
    pub image: Arc<Image>,
    /// What has to be added to an address in the file.
    pub bias: u64,
    /// First mapped address.
    pub start: u64,
    /// End of the last mapping.
    pub end: u64,
}

/// All files with code in a process. Also answers which could not be read, one line each.
pub fn loaded(pid: i32, maps: &Maps, memory: &Memory, cache: &ModuleCache) -> (Vec<Loaded>, Vec<String>) {
    let (mut found, mut soft) = (Vec::new(), Vec::new());
    for group in groups(maps) {
        match load(pid, &group, memory, cache) {
            Some(module) => found.push(module),
            None => soft.push(format!("no unwind tables: {} could not be read as an ELF file", group[0].path)),
        }
    }
    (found, soft)
}

/// The mappings of each mapped file that has code, and the vdso.
fn groups(maps: &Maps) -> Vec<Vec<&Mapping>> {
    let mut groups: Vec<Vec<&Mapping>> = Vec::new();
    for mapping in maps.0.iter().filter(|mapping| mapping.is_file() || mapping.path == "[vdso]") {
        match groups.last_mut() {
            Some(last) if last[0].inode == mapping.inode && last[0].path == mapping.path && !begins(last, mapping) => {
                last.push(mapping);
            }
            _ => groups.push(vec![mapping]),
        }
    }
    groups.retain(|group| group.iter().any(|mapping| mapping.execute));
    groups
}

/// Whether a mapping is the beginning of a second copy of the file that `group` holds.
fn begins(group: &[&Mapping], mapping: &Mapping) -> bool {
    mapping.offset == 0 && group.iter().any(|earlier| earlier.execute)
}

fn load(pid: i32, group: &[&Mapping], memory: &Memory, cache: &ModuleCache) -> Option<Loaded> {
    let code = group.iter().find(|mapping| mapping.execute)?;
    let (path, deleted) = match code.path.strip_suffix(" (deleted)") {
        Some(path) => (path, true),
        None => (code.path.as_str(), false),
    };
    let start = group[0].start;
    let file = (!deleted && path.starts_with('/')).then(|| PathBuf::from(format!("/proc/{pid}/root{path}")));
    let in_memory = (group[0].offset == 0).then(|| build_id_in_memory(memory, start)).flatten();
    let from_file = file.as_ref().and_then(|file| {
        let file = File::open(file).ok()?;
        let same_inode = file.metadata().is_ok_and(|meta| meta.ino() == code.inode);
        let image = cache.image(file)?;
        // A file that was replaced since it was mapped has other tables.
        let same = if in_memory.is_some() { image.build_id == in_memory } else { same_inode };
        same.then_some(image)
    });
    let file = file.filter(|_| from_file.is_some());
    let image = match from_file {
        Some(image) => image,
        None => Arc::new(Image::from_memory(memory, start)?),
    };
    let bias = image.bias(code.start, code.offset)?;
    let end = group.last().map_or(start, |mapping| mapping.end);
    Some(Loaded { path: path.to_owned(), file, image, bias, start, end })
}

/// The build id of a file as it lies in memory: it stands in the first page nearly always.
fn build_id_in_memory(memory: &Memory, start: u64) -> Option<String> {
    let page = memory.bytes(start, PAGE as usize);
    let data = page.as_slice();
    let header = elf::FileHeader64::<Le>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let notes = header.program_headers(endian, data).ok()?.iter().filter(|ph| ph.p_type(endian) == elf::PT_NOTE);
    let mut bytes = notes.filter_map(|ph| data.read_bytes_at(ph.p_offset(endian), ph.p_filesz(endian)).ok());
    bytes.find_map(build_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_its_program_its_c_library_and_the_vdso() {
        let pid = std::process::id() as i32;
        let (maps, memory, cache) = (Maps::of(pid).unwrap(), Memory::of(pid), ModuleCache::default());
        let (modules, soft) = loaded(pid, &maps, &memory, &cache);
        assert_eq!(soft, Vec::<String>::new());
        let exe = std::fs::read_link("/proc/self/exe").unwrap();
        let program = modules.iter().find(|module| module.path == exe.to_str().unwrap()).unwrap();
        assert!(program.image.function(load as *const () as u64 - program.bias).is_some());
        assert!(modules.iter().any(|module| module.path.contains("libc.so")));
        assert!(modules.iter().any(|module| module.path == "[vdso]"));
        let again = loaded(pid, &maps, &memory, &cache).0;
        assert!(again.iter().any(|module| Arc::ptr_eq(&module.image, &program.image)));
    }
}
