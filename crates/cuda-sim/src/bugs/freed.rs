//! What freed memory looks like, and how the driver goes through a pointer in it. Both vary by seed, so that no rule can
//! learn one look.
#![allow(unsafe_code)] // frees memory under its readers' feet: that is the planted fault

use crate::lock::Lock;
use crate::random;
use crate::settings::Setting;
use std::alloc::Layout;
use std::collections::VecDeque;

/// What becomes of freed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Overwritten with 0xa5.
    Poison,
    /// In use for something else.
    Reused,
    /// Not mapped any more.
    Unmapped,
    /// As it was.
    Untouched,
}

/// How a pointer in it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// A function is called through it.
    Call,
    /// A value is loaded through it.
    Load,
}

/// What a block begins with: a pointer to [`Operations`].
#[repr(C)]
pub struct Head {
    /// Two words that an allocator would overwrite first.
    pub links: [usize; 2],
    /// What may be done with the block.
    pub operations: *const Operations,
}

/// The table behind [`Head::operations`].
#[repr(C)]
pub struct Operations {
    kind: u64,
    touch: extern "C" fn(),
}

/// The operations of every live block.
pub static OPERATIONS: Operations = Operations { kind: 1, touch };

extern "C" fn touch() {}

/// Keys of [`Shape::read`].
pub const KEYS: [(&str, &str); 2] = [
    ("look", "what freed memory holds: poison, reused, unmapped or untouched (default: by seed)"),
    ("through", "call or load: how the freed pointer is used (default: by seed)"),
];

/// The look and the way of this run.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    look: Look,
    /// Whether `look` was asked for by name.
    fixed: bool,
    through: Through,
}

impl Shape {
    /// Reads `look` and `through`, else draws them by the seed.
    pub fn read(setting: &Setting) -> Result<Shape, String> {
        let looks = [Look::Poison, Look::Reused, Look::Unmapped, Look::Untouched];
        let look = match setting.text("look") {
            None => looks[random::seeded(1) as usize % 4],
            Some("poison") => Look::Poison,
            Some("reused") => Look::Reused,
            Some("unmapped") => Look::Unmapped,
            Some("untouched") => Look::Untouched,
            Some(other) => return Err(format!("look is poison, reused, unmapped or untouched, not '{other}'")),
        };
        let through = match setting.text("through") {
            None if random::seeded(2).is_multiple_of(2) => Through::Call,
            None | Some("load") => Through::Load,
            Some("call") => Through::Call,
            Some(other) => return Err(format!("through is call or load, not '{other}'")),
        };
        Ok(Shape { look, fixed: setting.text("look").is_some(), through })
    }

    /// Allocates a block; [`Shape::free`] frees it.
    pub fn allocate(&self, size: usize) -> *mut u8 {
        if self.look == Look::Unmapped {
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a fresh mapping at an address of the kernel's choice.
            let at = unsafe { libc::mmap(std::ptr::null_mut(), size.next_multiple_of(4096), protection, flags, -1, 0) };
            if at == libc::MAP_FAILED { std::ptr::null_mut() } else { at.cast() }
        } else {
            // SAFETY: the size is not zero.
            unsafe { std::alloc::alloc_zeroed(layout(size)) }
        }
    }

    /// Frees a block: it takes on its look. Seeds whose look is `untouched` draw another one now and then, since nothing
    /// ever comes of it.
    ///
    /// # Safety
    /// The block is from [`Shape::allocate`] with this size and is not freed yet. Others may still read it: the fault.
    pub unsafe fn free(&self, block: *mut u8, size: usize) {
        let now = match self.look {
            Look::Untouched if !self.fixed => {
                [Look::Poison, Look::Reused, Look::Untouched][random::next() as usize % 3]
            }
            look => look,
        };
        // SAFETY: the block has this size.
        unsafe {
            match now {
                Look::Unmapped => {
                    libc::munmap(block.cast(), size.next_multiple_of(4096));
                    return;
                }
                Look::Poison => fill(block, size, |_| 0xa5a5_a5a5_a5a5_a5a5),
                Look::Reused => fill(block, size, reused_word),
                Look::Untouched => {}
            }
        }
        park(block as usize, size);
    }

    /// Uses the pointer in a block's head. On a freed block this is where the fault happens, in the driver's own code.
    ///
    /// # Safety
    /// None: freed blocks are followed too.
    #[inline(never)]
    pub unsafe fn follow(&self, block: *const Head) {
        // SAFETY: none: the planted fault.
        unsafe {
            let operations = (&raw const (*block).operations).read_volatile();
            match self.through {
                Through::Load => std::hint::black_box((&raw const (*operations).kind).read_volatile()),
                Through::Call => call(operations),
            };
        }
    }
}

/// Calls through the table in one instruction, as compiled C++ does: no register holds the function.
#[inline(never)]
unsafe fn call(operations: *const Operations) -> u64 {
    // SAFETY: as for `follow`; the called function is an ordinary C function.
    unsafe {
        std::arch::asm!(
            "call qword ptr [{table} + {offset}]",
            table = in(reg) operations,
            offset = const std::mem::offset_of!(Operations, touch),
            clobber_abi("C"),
        );
    }
    0
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).expect("small sizes have a layout")
}

unsafe fn fill(block: *mut u8, size: usize, word: impl Fn(usize) -> u64) {
    for at in 0..size / 8 {
        // SAFETY: the block has this size.
        unsafe { block.cast::<u64>().add(at).write_volatile(word(at)) };
    }
}

/// What a new owner keeps there: numbers, text, and where the pointer was, two 32-bit counts.
fn reused_word(at: usize) -> u64 {
    match at % 4 {
        0 => 0x31,
        1 => u64::from_le_bytes(*b"repro_ke"),
        2 => 0x0000_0080_0000_0010 + ((at as u64) << 36),
        _ => 1,
    }
}

/// Freed blocks go back to the allocator after many others.
fn park(block: usize, size: usize) {
    static PARKED: std::sync::OnceLock<Lock<VecDeque<(usize, usize)>>> = std::sync::OnceLock::new();
    let mut parked = PARKED.get_or_init(|| Lock::new(VecDeque::new())).lock();
    parked.push_back((block, size));
    if parked.len() > 1024
        && let Some((oldest, size)) = parked.pop_front()
    {
        // SAFETY: parked blocks came from the allocator with this layout and are in no list any more.
        unsafe { std::alloc::dealloc(oldest as *mut u8, layout(size)) };
    }
}
