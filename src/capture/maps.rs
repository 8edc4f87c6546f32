//! `/proc/pid/maps`, read as bytes: paths are whatever the child chose.

use std::fs;
use std::io;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// End, exclusive.
    pub end: u64,
    /// Readable.
    pub read: bool,
    /// Writable.
    pub write: bool,
    /// Executable.
    pub execute: bool,
    /// Shared with others, not private.
    pub shared: bool,
    /// Offset in the file.
    pub offset: u64,
    /// Inode of the file, 0 for none.
    pub inode: u64,
    /// Path as the kernel prints it, with ` (deleted)` where that is so; empty for anonymous memory.
    pub path: String,
}

impl Mapping {
    /// Whether an address lies in it.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether a file (or a memfd) is mapped.
    pub fn is_file(&self) -> bool {
        self.inode != 0
    }
}

/// All mappings of a process, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps(pub Vec<Mapping>);

impl Maps {
    /// Reads them.
    pub fn of(pid: i32) -> io::Result<Maps> {
        Ok(Maps::parse(&fs::read(format!("/proc/{pid}/maps"))?))
    }

    /// Reads them from the file's bytes; lines that make no sense are left out.
    pub fn parse(bytes: &[u8]) -> Maps {
        let mut maps: Vec<Mapping> = bytes.split(|&byte| byte == b'\n').filter_map(parse_line).collect();
        maps.sort_by_key(|mapping| mapping.start);
        Maps(maps)
    }

    /// The mapping that an address lies in.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let index = self.0.partition_point(|mapping| mapping.end <= address);
        self.0.get(index).filter(|mapping| mapping.contains(address))
    }

    /// Whether an address lies in executable memory.
    pub fn is_code(&self, address: u64) -> bool {
        self.find(address).is_some_and(|mapping| mapping.execute)
    }
}

fn parse_line(line: &[u8]) -> Option<Mapping> {
    let line = String::from_utf8_lossy(line);
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (access, rest) = rest.split_once(' ')?;
    let (offset, rest) = rest.split_once(' ')?;
    let (_device, rest) = rest.split_once(' ')?;
    let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let has = |flag| access.contains(flag);
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        read: has('r'),
        write: has('w'),
        execute: has('x'),
        shared: has('s'),
        offset: hex(offset)?,
        inode: inode.parse().ok()?,
        path: path.trim_start().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
55d0c0000000-55d0c0002000 r--p 00000000 fe:01 1234                       /usr/bin/a b (deleted)
55d0c0002000-55d0c0003000 r-xp 00002000 fe:01 1234                       /usr/bin/a b (deleted)
garbage
7f0000000000-7f0000001000 rw-s 00000000 00:01 99                         /memfd:journal (deleted)
7f0000001000-7f0000002000 rwxp 00000000 00:00 0 
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
";

    #[test]
    fn lines_become_mappings_and_garbage_is_left_out() {
        let maps = Maps::parse(TEXT);
        assert_eq!(maps.0.len(), 5);
        assert_eq!(maps.0[1].path, "/usr/bin/a b (deleted)");
        assert_eq!((maps.0[1].offset, maps.0[1].execute, maps.0[1].is_file()), (0x2000, true, true));
        assert!(maps.0[2].shared && maps.0[2].write);
        assert_eq!((maps.0[3].path.as_str(), maps.0[3].is_file()), ("", false));
    }

    #[test]
    fn addresses_are_found_and_gaps_are_not() {
        let maps = Maps::parse(TEXT);
        assert_eq!(maps.find(0x7f00_0000_0fff).unwrap().inode, 99);
        assert!(maps.find(0x7f00_0000_2000).is_none() && maps.find(0).is_none() && maps.find(u64::MAX).is_none());
        assert!(maps.is_code(0x55d0_c000_2000) && !maps.is_code(0x55d0_c000_1fff));
    }

    #[test]
    fn this_process_has_code() {
        let maps = Maps::of(std::process::id() as i32).unwrap();
        assert!(maps.is_code(this_process_has_code as *const () as u64));
    }
}
