//! A stopped thread's registers, through the tracer's own requests.
#![allow(unsafe_code)] // ptrace has no safe form.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;

/// Registers of x86-64 in DWARF's order: the sixteen general ones, then the return address.
pub const DWARF_NAMES: [&str; 17] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
];

/// DWARF's number of the stack pointer.
pub const SP: usize = 7;
/// DWARF's number of the return address, which for the innermost frame is the program counter.
pub const PC: usize = 16;

/// General registers of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    raw: libc::user_regs_struct,
}

impl Registers {
    /// Reads them of a thread that this thread traces and that stands still.
    pub fn read(tid: i32) -> io::Result<Registers> {
        let mut raw = MaybeUninit::<libc::user_regs_struct>::zeroed();
        // SAFETY: the request writes one user_regs_struct, which `raw` is.
        let answer = unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0usize, raw.as_mut_ptr()) };
        if answer == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: filled in by the kernel, and zeros are valid anyway.
        Ok(Registers { raw: unsafe { raw.assume_init() } })
    }

    /// As a handler in the process wrote them down: in the journal's order. The others are not known and read as 0.
    pub fn written(words: &[u64; crate::journal::REGISTERS]) -> Registers {
        // SAFETY: user_regs_struct is plain integers, of which zeros are valid.
        let mut raw = unsafe { MaybeUninit::<libc::user_regs_struct>::zeroed().assume_init() };
        [raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi, raw.rbp, raw.rsp] =
            *words.first_chunk().expect("eighteen");
        [raw.r8, raw.r9, raw.r10, raw.r11, raw.r12, raw.r13, raw.r14, raw.r15] =
            words[8..16].try_into().expect("eighteen");
        [raw.rip, raw.eflags] = words[16..].try_into().expect("eighteen");
        Registers { raw }
    }

    /// Program counter.
    pub fn pc(&self) -> u64 {
        self.raw.rip
    }

    /// Stack pointer.
    pub fn sp(&self) -> u64 {
        self.raw.rsp
    }

    /// Base of the `fs` segment: the thread's own data.
    pub fn fs_base(&self) -> u64 {
        self.raw.fs_base
    }

    /// Base of the `gs` segment.
    pub fn gs_base(&self) -> u64 {
        self.raw.gs_base
    }

    /// The system call that it is in, or -1.
    pub fn syscall(&self) -> i64 {
        self.raw.orig_rax as i64
    }

    /// In DWARF's order, see [`DWARF_NAMES`].
    pub fn dwarf(&self) -> [u64; 17] {
        let r = &self.raw;
        [
            r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15, r.rip,
        ]
    }

    /// By name.
    pub fn named(&self) -> BTreeMap<String, u64> {
        let r = &self.raw;
        let rest = [("eflags", r.eflags), ("fs_base", r.fs_base), ("gs_base", r.gs_base), ("orig_rax", r.orig_rax)];
        let general = DWARF_NAMES.into_iter().zip(self.dwarf());
        general.chain(rest).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// As the kernel lays them out (`NT_PRSTATUS`).
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: user_regs_struct is 27 plain 64-bit words without padding.
        unsafe { std::slice::from_raw_parts((&raw const self.raw).cast::<u8>(), size_of::<libc::user_regs_struct>()) }
    }
}

/// A register set by its note type (`NT_FPREGSET` 2, `NT_X86_XSTATE` 0x202), as the kernel lays it out.
pub fn register_set(tid: i32, note: u32) -> io::Result<Vec<u8>> {
    // AVX-512 and AMX state is below 12 KiB.
    let mut buffer = vec![0u8; 16 << 10];
    let mut io = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the request writes at most iov_len bytes to iov_base and sets iov_len; both outlive the call.
    let answer = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, note as usize, &raw mut io) };
    if answer == -1 {
        return Err(io::Error::last_os_error());
    }
    buffer.truncate(io.iov_len);
    Ok(buffer)
}
