//! What kind of address a fault is about, from the signal, the registers and the instruction that faulted.
//!
//! The kernel gives no address for one that is not canonical, and freed memory that is called through leaves its pattern in
//! no register: so the memory operand of the instruction is read too. The instruction is described, not disassembled.

use super::ExecLog;
use super::maps::Maps;
use super::memory::Memory;
use super::registers::Registers;
use crate::evidence::{AddressClass, Trigger};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

/// First 64 KiB: never mapped.
const NULL_PAGE: u64 = 64 << 10;
/// A fault this near to the stack pointer is about the stack, bytes.
const NEAR_STACK: u64 = 1 << 20;

/// What was found out about a fault address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) class: AddressClass,
    /// Why, in words.
    pub(super) note: Option<String>,
    /// What the instruction does with memory, in words.
    pub(super) instruction: Option<String>,
}

/// A word that the faulting instruction used as an address, and where it stood.
type Used = (String, u64);

/// Judges the fault of a thread.
pub(super) fn judge(
    trigger: &Trigger,
    registers: &Registers,
    maps: &Maps,
    memory: &Memory,
    log: Option<&ExecLog>,
) -> Finding {
    let Trigger::Signal { signal: libc::SIGSEGV | libc::SIGBUS, si_code, address, .. } = *trigger else {
        return Finding { class: AddressClass::Unknown, note: None, instruction: None };
    };
    let decoded = decode(registers, memory);
    let used = decoded.as_ref().map(|instruction| used_words(instruction, registers, memory)).unwrap_or_default();
    let instruction = decoded.as_ref().and_then(describe);
    let (class, note) = match address {
        Some(address) => known(address, &used, registers, maps, log),
        None if si_code == libc::SI_KERNEL => unknown(&used),
        None => (AddressClass::Unknown, None),
    };
    Finding { class, note, instruction }
}

/// The kernel named the address.
fn known(
    address: u64,
    used: &[Used],
    registers: &Registers,
    maps: &Maps,
    log: Option<&ExecLog>,
) -> (AddressClass, Option<String>) {
    if address < NULL_PAGE {
        return (AddressClass::NullPage, None);
    }
    if let Some(poison) = poison_in(used).or_else(|| pattern(address).map(|p| format!("the address holds {p}"))) {
        return (AddressClass::Poison, Some(poison));
    }
    let jumped = address == registers.pc();
    let mapping = maps.find(address);
    let no_access = mapping.is_none_or(|mapping| !mapping.read && !mapping.write && !mapping.execute);
    if !jumped && no_access && address.abs_diff(registers.sp()) < NEAR_STACK {
        return (
            AddressClass::StackGuard,
            Some(format!("{} bytes from the stack pointer", address.abs_diff(registers.sp()))),
        );
    }
    match mapping {
        Some(mapping) => {
            let access = [('r', mapping.read), ('w', mapping.write), ('x', mapping.execute)];
            let access: String = access.into_iter().map(|(letter, has)| if has { letter } else { '-' }).collect();
            let of = if mapping.path.is_empty() { "anonymous memory" } else { &mapping.path };
            let what = if jumped { "a jump into" } else { "an access to" };
            (AddressClass::Protected, Some(format!("{what} {of}, mapped {access}")))
        }
        None => match log.and_then(|log| log.covering(address)) {
            Some(was) => {
                let note = format!("{} was mapped executable here by thread {}", was.name, was.tid);
                (AddressClass::WasExecutable, Some(note))
            }
            None => (AddressClass::Unmapped, None),
        },
    }
}

/// The kernel named no address: one of the words that the instruction used is none.
fn unknown(used: &[Used]) -> (AddressClass, Option<String>) {
    if let Some(poison) = poison_in(used) {
        return (AddressClass::Poison, Some(poison));
    }
    match used.iter().find(|(_, word)| !is_canonical(*word)) {
        Some((place, word)) => (AddressClass::NonCanonical, Some(format!("{place} holds {word:#x}"))),
        None => (AddressClass::Unknown, None),
    }
}

fn poison_in(used: &[Used]) -> Option<String> {
    used.iter().find_map(|(place, word)| Some(format!("{place} holds {}", pattern(*word)?)))
}

/// A value that only an allocator's filling makes: one byte over and over (the lowest two may differ, by an offset that was
/// added), or one of the words that debuggers use.
fn pattern(word: u64) -> Option<String> {
    const WORDS: [u32; 4] = [0xdead_beef, 0xbaad_f00d, 0xfeed_face, 0xdead_c0de];
    let bytes = word.to_be_bytes();
    let fill = bytes[0];
    if ![0x00, 0xff].contains(&fill) && bytes[..6].iter().all(|&byte| byte == fill) {
        return Some(format!("{word:#x}, the byte {fill:#04x} over and over"));
    }
    let (high, low) = ((word >> 32) as u32, word as u32);
    let known = WORDS.contains(&high) && (low == high || low.abs_diff(high) < 4096);
    known.then(|| format!("{word:#x}, a word that marks dead memory"))
}

fn is_canonical(word: u64) -> bool {
    let top = word >> 47;
    top == 0 || top == (1 << 17) - 1
}

fn decode(registers: &Registers, memory: &Memory) -> Option<Instruction> {
    let bytes = memory.bytes(registers.pc(), 15);
    let mut decoder = Decoder::with_ip(64, &bytes, registers.pc(), DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// The words that an instruction uses as addresses: registers of its memory operand, that operand's address, and for a call
/// or a jump or a return through memory the word that is read there.
fn used_words(instruction: &Instruction, registers: &Registers, memory: &Memory) -> Vec<Used> {
    let mut used = Vec::new();
    let jumps = matches!(
        instruction.flow_control(),
        FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return
    );
    for operand in 0..instruction.op_count() {
        match instruction.op_kind(operand) {
            OpKind::Memory => {
                for register in [instruction.memory_base(), instruction.memory_index()] {
                    used.extend(value(register, registers).map(|word| (name(register), word)));
                }
                let address = instruction.virtual_address(operand, 0, |register, _, _| value(register, registers));
                if let Some(address) = address {
                    used.push((format!("the operand's address {}", operand_text(instruction)), address));
                    let target = memory.word(address).filter(|_| jumps);
                    used.extend(target.map(|word| (format!("the pointer at {}", operand_text(instruction)), word)));
                }
            }
            OpKind::Register if jumps => {
                let register = instruction.op_register(operand);
                used.extend(value(register, registers).map(|word| (name(register), word)));
            }
            OpKind::MemorySegRSI | OpKind::MemoryESRDI | OpKind::MemorySegRDI => {
                used.extend([Register::RSI, Register::RDI].map(|r| (name(r), value(r, registers).unwrap_or(0))));
            }
            _ => {}
        }
    }
    if instruction.flow_control() == FlowControl::Return {
        used.extend(memory.word(registers.sp()).map(|word| ("the return address on the stack".to_owned(), word)));
    }
    used
}

fn name(register: Register) -> String {
    format!("{register:?}").to_lowercase()
}

/// The value of a general register at the size that it is used with.
fn value(register: Register, registers: &Registers) -> Option<u64> {
    use Register as R;
    let words = registers.dwarf();
    // Numbers of DWARF's order for iced's order of rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    const DWARF: [usize; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
    match register {
        R::FS => Some(registers.fs_base()),
        R::GS => Some(registers.gs_base()),
        R::ES | R::CS | R::SS | R::DS => Some(0),
        R::RIP => Some(registers.pc()),
        _ if register.is_gpr() => {
            let word = words[DWARF[register.full_register().number()]];
            Some(if register.is_gpr32() { word & 0xffff_ffff } else { word })
        }
        _ => None,
    }
}

fn operand_text(instruction: &Instruction) -> String {
    let mut parts = Vec::new();
    if instruction.memory_base() != Register::None {
        parts.push(name(instruction.memory_base()));
    }
    if instruction.memory_index() != Register::None {
        parts.push(format!("{}*{}", name(instruction.memory_index()), instruction.memory_index_scale()));
    }
    let displacement = instruction.memory_displacement64();
    if displacement != 0 || parts.is_empty() {
        parts.push(format!("{displacement:#x}"));
    }
    format!("[{}]", parts.join("+"))
}

/// What an instruction does with memory.
fn describe(instruction: &Instruction) -> Option<String> {
    let through = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let target = if through { operand_text(instruction) } else { name(instruction.op0_register()) };
    Some(match instruction.flow_control() {
        FlowControl::IndirectCall => format!("calls through {target}"),
        FlowControl::IndirectBranch => format!("jumps through {target}"),
        FlowControl::Return => "returns".to_owned(),
        FlowControl::Call => "calls".to_owned(),
        _ if through && instruction.op0_kind() == OpKind::Memory => {
            format!("uses memory at {target} as its first operand")
        }
        _ if through => format!("reads memory at {target}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_memory_is_known_by_its_pattern() {
        for word in [0xa5a5_a5a5_a5a5_a5a5, 0x5a5a_5a5a_5a5a_5a6a, 0xdead_beef_dead_beef] {
            assert!(pattern(word).is_some(), "{word:#x}");
        }
        for word in [0, u64::MAX, 0x7fff_ffff_e000, 0x5555_5555_4000, 0xa5a5_a5a5, 0xffff_ffff_ffff_0010] {
            assert_eq!(pattern(word), None, "{word:#x}");
        }
    }

    #[test]
    fn canonical_addresses_have_equal_top_bits() {
        assert!(is_canonical(0x7fff_ffff_ffff) && is_canonical(0xffff_8000_0000_0000));
        assert!(!is_canonical(0x8000_0000_0000) && !is_canonical(0xa5a5_a5a5_a5a5_a5a5));
    }

    #[test]
    fn an_operand_is_described_without_its_mnemonic() {
        let call = |bytes: &[u8]| {
            let mut decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
            describe(&decoder.decode()).unwrap()
        };
        assert_eq!(call(&[0xff, 0x57, 0x10]), "calls through [rdi+0x10]");
        assert_eq!(call(&[0xff, 0xd0]), "calls through rax");
        assert_eq!(call(&[0x8b, 0x04, 0x25, 8, 0, 0, 0]), "reads memory at [0x8]");
        assert_eq!(call(&[0x48, 0x89, 0x04, 0xd1]), "uses memory at [rcx+rdx*8] as its first operand");
    }
}
