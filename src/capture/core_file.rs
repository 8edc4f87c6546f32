//! Writes an ELF core of a process that stands still: all threads, all libraries, no more memory than a debugger needs.
//!
//! The layout is the kernel's (`fs/binfmt_elf.c`, `linux/elfcore.h`). What is left out of memory stands there with no bytes
//! in the file, so that a debugger takes it from the libraries' own files.

use super::core_memory::{Pages, chosen_pages};
use super::maps::{Mapping, Maps};
use super::memory::{Memory, PAGE};
use super::process;
use super::registers::{Registers, register_set};
use crate::evidence::Trigger;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

const NT_PRSTATUS: u32 = 1;
const NT_FPREGSET: u32 = 2;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_FILE: u32 = 0x4649_4c45;
const NT_SIGINFO: u32 = 0x5349_4749;
const NT_X86_XSTATE: u32 = 0x202;
const HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
/// More segments than this are left out: their count is a 16-bit number.
const MOST_SEGMENTS: usize = 60_000;

/// One part of memory as the core's headers tell of it.
struct Part {
    start: u64,
    end: u64,
    flags: u32,
    kept: bool,
}

/// Writes a core of `pid` to `path`, the faulting thread first. `standing` are the threads that this thread has stopped.
/// Answers its size, bytes.
pub fn write_core(
    path: &Path,
    pid: i32,
    faulting: Option<i32>,
    standing: &[i32],
    trigger: &Trigger,
) -> io::Result<u64> {
    let mut threads: Vec<(i32, Registers)> =
        standing.iter().filter_map(|&tid| Some((tid, Registers::read(tid).ok()?))).collect();
    threads.sort_by_key(|&(tid, _)| Some(tid) != faulting);
    let through = threads.first().ok_or(io::ErrorKind::NotFound)?.0;
    let (maps, memory) = (Maps::of(through)?, Memory::of(through));
    let auxv = fs::read(format!("/proc/{through}/auxv")).unwrap_or_default();
    let pages = chosen_pages(&maps, &memory, &threads, &auxv);
    let notes = notes(pid, &threads, trigger, &maps, &auxv);
    let parts = parts(&maps, &pages);
    let mut file = BufWriter::new(File::create_new(path)?);
    let size = write_all(&mut file, &notes, &parts, &memory)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(size)
}

fn write_all(file: &mut impl Write, notes: &[u8], parts: &[Part], memory: &Memory) -> io::Result<u64> {
    let headers = HEADER + PROGRAM_HEADER * (parts.len() as u64 + 1);
    let data = (headers + notes.len() as u64).next_multiple_of(PAGE);
    file.write_all(&elf_header(parts.len() as u16 + 1))?;
    file.write_all(&program_header(4, 4, headers, 0, notes.len() as u64, 0, 4))?;
    let mut offset = data;
    for part in parts {
        let size = part.end - part.start;
        let in_file = if part.kept { size } else { 0 };
        file.write_all(&program_header(1, part.flags, offset, part.start, in_file, size, PAGE))?;
        offset += in_file;
    }
    file.write_all(notes)?;
    file.write_all(&vec![0; (data - headers) as usize - notes.len()])?;
    for part in parts.iter().filter(|part| part.kept) {
        let mut bytes = memory.bytes(part.start, (part.end - part.start) as usize);
        // A page that has gone since it was chosen reads as zeros.
        bytes.resize((part.end - part.start) as usize, 0);
        file.write_all(&bytes)?;
    }
    Ok(offset)
}

/// Splits the mappings into parts that are kept and parts that are only told of.
fn parts(maps: &Maps, pages: &Pages) -> Vec<Part> {
    let mut parts = Vec::new();
    for mapping in maps.0.iter().filter(|mapping| mapping.path != "[vsyscall]") {
        let flags = flags(mapping);
        let mut at = mapping.start;
        for &page in pages.range(mapping.start..mapping.end) {
            let last: Option<&mut Part> = parts.last_mut();
            match last {
                Some(last) if last.kept && last.end == page && at == page => last.end = page + PAGE,
                _ => {
                    if at < page {
                        parts.push(Part { start: at, end: page, flags, kept: false });
                    }
                    parts.push(Part { start: page, end: page + PAGE, flags, kept: true });
                }
            }
            at = page + PAGE;
        }
        if at < mapping.end {
            parts.push(Part { start: at, end: mapping.end, flags, kept: false });
        }
    }
    if parts.len() > MOST_SEGMENTS {
        parts.retain(|part| part.kept);
        parts.truncate(MOST_SEGMENTS);
    }
    parts
}

fn flags(mapping: &Mapping) -> u32 {
    u32::from(mapping.execute) | u32::from(mapping.write) << 1 | u32::from(mapping.read) << 2
}

fn elf_header(segments: u16) -> Vec<u8> {
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // ET_CORE, EM_X86_64, version 1.
    header.extend([4, 0, 62, 0, 1, 0, 0, 0]);
    header.extend([0, HEADER, 0].iter().flat_map(|word: &u64| word.to_le_bytes()));
    header.extend(0u32.to_le_bytes());
    let sizes = [HEADER as u16, PROGRAM_HEADER as u16, segments, 0, 0, 0];
    header.extend(sizes.iter().flat_map(|half| half.to_le_bytes()));
    header
}

fn program_header(kind: u32, flags: u32, offset: u64, address: u64, in_file: u64, size: u64, align: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(PROGRAM_HEADER as usize);
    header.extend([kind, flags].iter().flat_map(|word| word.to_le_bytes()));
    header.extend([offset, address, 0, in_file, size, align].iter().flat_map(|word| word.to_le_bytes()));
    header
}

fn notes(pid: i32, threads: &[(i32, Registers)], trigger: &Trigger, maps: &Maps, auxv: &[u8]) -> Vec<u8> {
    let mut notes = Vec::new();
    for (index, (tid, registers)) in threads.iter().enumerate() {
        note(&mut notes, "CORE", NT_PRSTATUS, &status(*tid, registers, signal_of(trigger)));
        if index == 0 {
            note(&mut notes, "CORE", NT_PRPSINFO, &program(pid, *tid));
            note(&mut notes, "CORE", NT_SIGINFO, &signal_info(trigger));
            note(&mut notes, "CORE", NT_AUXV, auxv);
            note(&mut notes, "CORE", NT_FILE, &files(maps));
        }
        if let Ok(set) = register_set(*tid, NT_FPREGSET) {
            note(&mut notes, "CORE", NT_FPREGSET, &set);
        }
        if let Ok(set) = register_set(*tid, NT_X86_XSTATE) {
            note(&mut notes, "LINUX", NT_X86_XSTATE, &set);
        }
    }
    notes
}

fn note(notes: &mut Vec<u8>, name: &str, kind: u32, bytes: &[u8]) {
    let sizes = [name.len() as u32 + 1, bytes.len() as u32, kind];
    notes.extend(sizes.iter().flat_map(|word| word.to_le_bytes()));
    notes.extend(name.as_bytes());
    notes.push(0);
    notes.resize(notes.len().next_multiple_of(4), 0);
    notes.extend(bytes);
    notes.resize(notes.len().next_multiple_of(4), 0);
}

fn signal_of(trigger: &Trigger) -> i32 {
    match *trigger {
        Trigger::Signal { signal, .. } => signal,
        Trigger::Exit { status } => status & 0x7f,
        Trigger::Hang { .. } => 0,
    }
}

/// `struct elf_prstatus`. Every thread tells of the same signal, as in the kernel's cores: readers take the last one.
fn status(tid: i32, registers: &Registers, signal: i32) -> Vec<u8> {
    let mut bytes = vec![0; 112];
    bytes[0..4].copy_from_slice(&signal.to_le_bytes());
    bytes[12..14].copy_from_slice(&(signal as i16).to_le_bytes());
    bytes[32..36].copy_from_slice(&tid.to_le_bytes());
    bytes.extend(registers.bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes
}

/// `struct elf_prpsinfo`.
fn program(pid: i32, through: i32) -> Vec<u8> {
    let mut bytes = vec![0; 136];
    let name = process::name_of(pid, pid);
    let command = fs::read(format!("/proc/{through}/cmdline")).unwrap_or_default();
    let command: Vec<u8> = command.iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect();
    bytes[1] = b'R';
    bytes[24..28].copy_from_slice(&pid.to_le_bytes());
    let (name, command) = (&name.as_bytes()[..name.len().min(15)], &command[..command.len().min(79)]);
    bytes[40..40 + name.len()].copy_from_slice(name);
    bytes[56..56 + command.len()].copy_from_slice(command);
    bytes
}

/// `siginfo_t`.
fn signal_info(trigger: &Trigger) -> Vec<u8> {
    let mut bytes = vec![0; 128];
    bytes[0..4].copy_from_slice(&signal_of(trigger).to_le_bytes());
    if let Trigger::Signal { si_code, address, sender, .. } = *trigger {
        bytes[8..12].copy_from_slice(&si_code.to_le_bytes());
        let word = address.unwrap_or_else(|| sender.map_or(0, |pid| u64::from(pid.cast_unsigned())));
        bytes[16..24].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Which file is mapped where (`NT_FILE`).
fn files(maps: &Maps) -> Vec<u8> {
    let files: Vec<&Mapping> = maps.0.iter().filter(|mapping| mapping.is_file()).collect();
    let mut bytes: Vec<u8> = [files.len() as u64, PAGE].iter().flat_map(|word| word.to_le_bytes()).collect();
    for file in &files {
        bytes.extend([file.start, file.end, file.offset / PAGE].iter().flat_map(|word| word.to_le_bytes()));
    }
    for file in &files {
        bytes.extend(file.path.as_bytes());
        bytes.push(0);
    }
    bytes
}
