//! Walks a stopped thread's stack by call frame information, with all sixteen registers.
//!
//! Every step is either taken by the unwind tables or marked as scanned; a walk ends with its reason. At most one frame a
//! stack is scanned: code that no table covers (emitted at run time, or no code at all) hides only its own frame.

use super::registers::{DWARF_NAMES, PC, SP};
use crate::evidence::Found;
use gimli::{CfaRule, EvaluationResult, Expression, Register, RegisterRule, Value};

/// Frames kept of one stack: the innermost and, where there are more, the outermost.
const KEPT: (usize, usize) = (192, 64);
/// Frames walked of one stack.
const MOST_FRAMES: usize = 20_000;
/// Words looked at when a return address is scanned for: 4 KiB of stack.
const SCAN_WORDS: u64 = 512;
/// Return addresses tried.
const MOST_CANDIDATES: usize = 32;

/// What a walk may ask about the process.
pub trait Process {
    /// A 64-bit word of memory.
    fn word(&self, address: u64) -> Option<u64>;
    /// A value of 1 to 8 bytes.
    fn value(&self, address: u64, size: usize) -> Option<u64>;
    /// The bytes just before an address, at most 8, the last of them at `address - 1`.
    fn before(&self, address: u64) -> Vec<u8>;
    /// Whether an address lies in executable memory.
    fn is_code(&self, address: u64) -> bool;
    /// The unwind tables that an address lies under, and their bias.
    fn tables(&self, address: u64) -> Option<(std::sync::Arc<super::image::Image>, u64)>;
}

/// A frame as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFrame {
    /// Program counter.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// How it was found.
    pub found: Found,
    /// The frame of a signal trampoline.
    pub signal_frame: bool,
    /// Whether `pc` is the instruction itself and not a return address.
    pub exact: bool,
}

impl RawFrame {
    /// The address to look tables and names up with: the call is before its return address.
    pub fn lookup(&self) -> u64 {
        if self.exact { self.pc } else { self.pc.wrapping_sub(1) }
    }
}

/// Registers of a frame; none where they cannot be known.
pub type Known = [Option<u64>; 17];

/// How a whole stack ends.
const END: &str = "end of stack";

/// Walks from these registers. Also answers why it ended, and whether frames in the middle were left out.
pub fn walk(process: &impl Process, registers: [u64; 17]) -> (Vec<RawFrame>, String) {
    let (mut frames, mut end) = walk_all(process, registers);
    let (inner, outer) = KEPT;
    if frames.len() > inner + outer {
        let left_out = frames.len() - inner - outer;
        frames.drain(inner..inner + left_out);
        end = format!("{end}; {left_out} frames in the middle left out");
    }
    (frames, end)
}

fn walk_all(process: &impl Process, registers: [u64; 17]) -> (Vec<RawFrame>, String) {
    let (mut frames, mut known) = (Vec::new(), registers.map(Some));
    let stuck = match walk_from(process, &mut known, Found::Registers, &mut frames) {
        Ok(()) => return (frames, END.to_owned()),
        Err(stuck) => stuck,
    };
    let Some(sp) = stuck.uncovered_sp else { return (frames, stuck.why) };
    // Old return addresses lie about on stacks: the one that leads to the end is the right one, failing that the nearest.
    let mut nearest = None;
    for mut next in return_addresses(process, &known, sp) {
        let mut rest = Vec::new();
        match walk_from(process, &mut next, Found::Scanned, &mut rest) {
            Ok(()) => {
                frames.append(&mut rest);
                return (frames, END.to_owned());
            }
            Err(stuck) => nearest = nearest.or(Some((rest, stuck.why))),
        }
    }
    let Some((mut rest, why)) = nearest else {
        return (frames, format!("{}, no return address on the stack", stuck.why));
    };
    frames.append(&mut rest);
    (frames, why)
}

/// Where a walk by tables got stuck.
struct Stuck {
    /// Stack pointer of a frame that no table covers; none where the walk ended for another reason.
    uncovered_sp: Option<u64>,
    why: String,
}

/// Walks by tables alone until the end of the stack. Leaves the registers of the last frame in `known`.
fn walk_from(
    process: &impl Process,
    known: &mut Known,
    mut found: Found,
    frames: &mut Vec<RawFrame>,
) -> Result<(), Stuck> {
    let mut exact = found == Found::Registers;
    let mut context = Box::new(Context::new());
    loop {
        let stuck = |why: String| Err(Stuck { uncovered_sp: None, why });
        let (Some(pc), Some(sp)) = (known[PC], known[SP]) else { return stuck("stack pointer lost".to_owned()) };
        if frames.len() >= MOST_FRAMES {
            return stuck(format!("stopped after {MOST_FRAMES} frames"));
        }
        let mut frame = RawFrame { pc, sp, found, signal_frame: false, exact };
        let step = step(process, known, frame.lookup(), &mut context);
        frame.signal_frame = matches!(step, Ok(Step { signal_frame: true, .. }));
        frames.push(frame);
        match step {
            Ok(Step { end: true, .. }) => return Ok(()),
            Ok(step) if step.known[PC] == Some(0) => return stuck(format!("a return address of zero above {pc:#x}")),
            Ok(step) if !step.signal_frame && step.known[SP].is_none_or(|next| next <= sp) => {
                return stuck(format!("unwind tables lead nowhere at {pc:#x}"));
            }
            Ok(step) => (*known, found, exact) = (step.known, Found::Cfi, step.signal_frame),
            Err(Obstacle::NoTables) => {
                return Err(Stuck { uncovered_sp: Some(sp), why: format!("no unwind tables at {pc:#x}") });
            }
            Err(obstacle) => return stuck(format!("{} at {pc:#x}", obstacle.text())),
        }
    }
}

type Context = gimli::UnwindContext<usize>;

struct Step {
    known: Known,
    signal_frame: bool,
    end: bool,
}

enum Obstacle {
    NoTables,
    BadTables(gimli::Error),
    Lost(usize),
    Unreadable(u64),
    Unsupported,
}

impl Obstacle {
    fn text(&self) -> String {
        match self {
            Obstacle::NoTables => "no unwind tables".to_owned(),
            Obstacle::BadTables(error) => format!("bad unwind tables ({error})"),
            Obstacle::Lost(register) => {
                format!("unwind tables need {}, which is lost,", DWARF_NAMES.get(*register).unwrap_or(&"a register"))
            }
            Obstacle::Unreadable(address) => format!("stack memory {address:#x} cannot be read"),
            Obstacle::Unsupported => "unwind tables ask for what is not supported".to_owned(),
        }
    }
}

impl From<gimli::Error> for Obstacle {
    fn from(error: gimli::Error) -> Self {
        Obstacle::BadTables(error)
    }
}

/// One frame up by the tables that cover `lookup`.
fn step(process: &impl Process, known: &Known, lookup: u64, context: &mut Context) -> Result<Step, Obstacle> {
    let (image, bias) = process.tables(lookup).ok_or(Obstacle::NoTables)?;
    let address = lookup.wrapping_sub(bias);
    let stepped = image.with_fde(address, |fde, section, bases| {
        let row = fde.unwind_info_for_address(section, bases, context, address)?;
        let evaluator = Evaluator { process, known, encoding: fde.cie().encoding() };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                evaluator.register(*register)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => evaluator.run(expression.get(section)?, None)?,
        };
        let mut next = [None; 17];
        for (number, value) in next.iter_mut().enumerate() {
            let rule = row.register(Register(number as u16));
            *value = evaluator.apply(rule, number, cfa, section)?;
        }
        let return_address = fde.cie().return_address_register().0 as usize;
        let undefined = matches!(row.register(Register(return_address as u16)), Some(RegisterRule::Undefined));
        if !undefined && next[PC].is_none() {
            return Err(Obstacle::Lost(PC));
        }
        Ok(Step { known: next, signal_frame: fde.is_signal_trampoline(), end: undefined })
    });
    stepped.ok_or(Obstacle::NoTables)?
}

struct Evaluator<'a, P> {
    process: &'a P,
    known: &'a Known,
    encoding: gimli::Encoding,
}

type Slice<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;

impl<P: Process> Evaluator<'_, P> {
    fn register(&self, register: Register) -> Result<u64, Obstacle> {
        let number = register.0 as usize;
        self.known.get(number).copied().flatten().ok_or(Obstacle::Lost(number))
    }

    fn memory(&self, address: u64) -> Result<u64, Obstacle> {
        self.process.word(address).ok_or(Obstacle::Unreadable(address))
    }

    /// A register of the caller, or none where it cannot be known.
    fn apply(
        &self,
        rule: Option<RegisterRule<usize>>,
        number: usize,
        cfa: u64,
        section: &gimli::EhFrame<Slice<'_>>,
    ) -> Result<Option<u64>, Obstacle> {
        let Some(rule) = rule else { return Ok(self.default(number, cfa)) };
        Ok(match rule {
            RegisterRule::Undefined => None,
            RegisterRule::SameValue => self.known[number],
            RegisterRule::Offset(offset) => Some(self.memory(cfa.wrapping_add_signed(offset))?),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(offset)),
            RegisterRule::Register(other) => Some(self.register(other)?),
            RegisterRule::Expression(expression) => Some(self.memory(self.run(expression.get(section)?, Some(cfa))?)?),
            RegisterRule::ValExpression(expression) => Some(self.run(expression.get(section)?, Some(cfa))?),
            RegisterRule::Constant(value) => Some(value),
            RegisterRule::Architectural => return Err(Obstacle::Unsupported),
        })
    }

    /// What the calling convention of x86-64 says where the tables are silent.
    fn default(&self, number: usize, cfa: u64) -> Option<u64> {
        match number {
            SP => Some(cfa),
            // rbx, rbp, r12 to r15 belong to the caller.
            3 | 6 | 12..=15 => self.known[number],
            _ => None,
        }
    }

    fn run(&self, expression: Expression<Slice<'_>>, initial: Option<u64>) -> Result<u64, Obstacle> {
        let mut evaluation = expression.evaluation(self.encoding);
        evaluation.set_max_iterations(10_000);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut state = evaluation.evaluate()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let value = self.process.value(address, size as usize).ok_or(Obstacle::Unreadable(address))?;
                    evaluation.resume_with_memory(Value::Generic(value))?
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?))?
                }
                EvaluationResult::RequiresCallFrameCfa => match initial {
                    Some(cfa) => evaluation.resume_with_call_frame_cfa(cfa)?,
                    None => return Err(Obstacle::Unsupported),
                },
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address)?
                }
                _ => return Err(Obstacle::Unsupported),
            };
        }
        let pieces = evaluation.as_result();
        match pieces.last().map(|piece| &piece.location) {
            Some(gimli::Location::Address { address }) => Ok(*address),
            Some(gimli::Location::Value { value: Value::Generic(value) }) => Ok(*value),
            Some(gimli::Location::Register { register }) => self.register(*register),
            _ => Err(Obstacle::Unsupported),
        }
    }
}

/// Words on the stack that may be return addresses, nearest first: in code that unwind tables cover, just behind a call
/// instruction. Each with the registers of its frame.
fn return_addresses<'a>(process: &'a impl Process, known: &'a Known, sp: u64) -> impl Iterator<Item = Known> + 'a {
    let start = sp.next_multiple_of(8);
    let slots = (0..SCAN_WORDS).map(move |index| start.wrapping_add(index * 8));
    let words = slots.map_while(|at| Some((at, process.word(at)?)));
    let likely = words
        .filter(|&(_, word)| process.is_code(word) && follows_call(&process.before(word)) && covered(process, word));
    likely.take(MOST_CANDIDATES).map(|(at, word)| {
        let mut next = *known;
        next[PC] = Some(word);
        next[SP] = Some(at.wrapping_add(8));
        next
    })
}

fn covered(process: &impl Process, return_address: u64) -> bool {
    let lookup = return_address.wrapping_sub(1);
    process.tables(lookup).is_some_and(|(image, bias)| image.function(lookup.wrapping_sub(bias)).is_some())
}

/// Whether these bytes end in a call instruction of x86-64.
pub fn follows_call(before: &[u8]) -> bool {
    let n = before.len();
    if n >= 5 && before[n - 5] == 0xe8 {
        return true;
    }
    // ff /2: the length follows from the addressing byte.
    (2..=7.min(n)).any(|length| {
        let instruction = &before[n - length..];
        instruction[0] == 0xff && (instruction[1] >> 3) & 7 == 2 && indirect_length(instruction) == Some(length)
    })
}

fn indirect_length(instruction: &[u8]) -> Option<usize> {
    let (mode, low) = (instruction[1] >> 6, instruction[1] & 7);
    let sib = usize::from(mode != 3 && low == 4);
    let base = if sib == 1 { instruction.get(2)? & 7 } else { low };
    let displacement = match mode {
        0 if base == 5 => 4,
        0 | 3 => 0,
        1 => 1,
        _ => 4,
    };
    Some(2 + sib + displacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_instructions_are_known_by_their_bytes() {
        assert!(follows_call(&[0x90, 0xe8, 1, 2, 3, 4]));
        assert!(follows_call(&[0x41, 0xff, 0xd4])); // call *%r12
        assert!(follows_call(&[0xff, 0x57, 0x10])); // call *0x10(%rdi)
        assert!(follows_call(&[0xff, 0x15, 1, 2, 3, 4])); // call *disp(%rip)
        assert!(follows_call(&[0xff, 0x14, 0xc2])); // call *(%rdx,%rax,8)
        assert!(follows_call(&[0xff, 0x94, 0x24, 8, 0, 0, 0])); // call *8(%rsp)
        assert!(!follows_call(&[0xff, 0x67, 0x10])); // jmp *0x10(%rdi)
        assert!(!follows_call(&[0x90, 0x90, 0x90]));
        assert!(!follows_call(&[]));
    }
}
