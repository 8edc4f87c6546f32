//! Notes: what the worker writes down in words. Rare, from any thread, never in the way of the loop.
//!
//! A slot is claimed by one atomic addition and marked valid when it is whole, so that a thread that dies in the middle costs
//! its own note only. When the slots are used up, further notes are counted and lost.
#![allow(unsafe_code)] // looks at the mapped slots through atomics

use super::clock::Conversion;
use super::layout::{Geometry, NOTE_SLOTS, NOTE_TEXT, NOTES_AT, NoteSlot};
use super::writer::JournalWriter;
use super::{Note, NoteKind};
use crate::vocabulary::Call;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

impl JournalWriter {
    /// Writes something down in words.
    ///
    /// `thread` counts from 0 (none: the main thread), `code` is the driver's answer (0: none concerned), `module` a serial (0:
    /// none), `live` how many modules are loaded in this child. `text` is cut at 448 bytes.
    #[expect(clippy::too_many_arguments, reason = "the columns of one row")]
    pub fn note(
        &self,
        kind: NoteKind,
        thread: Option<usize>,
        call: Option<Call>,
        code: i32,
        module: u64,
        live: u64,
        text: &str,
    ) {
        // SAFETY: NOTES_AT is page-aligned and inside the mapping, which is never unmapped and consists of atomics.
        let next = unsafe { &*self.base.add(NOTES_AT).cast::<AtomicU64>() };
        let index = next.fetch_add(1, Relaxed);
        let Some(number) = usize::try_from(index).ok().filter(|n| *n < NOTE_SLOTS) else { return };
        // SAFETY: the slot is inside the mapping, aligned to 64 bytes, and consists of atomics.
        let slot = unsafe { &*self.base.add(self.geometry.note(number)).cast::<NoteSlot>() };
        slot.at.store(self.tick(), Relaxed);
        slot.module.store(module, Relaxed);
        slot.live.store(live, Relaxed);
        slot.thread.store(thread.map_or(0, |t| t as u32 + 1), Relaxed);
        slot.code.store(code.cast_unsigned(), Relaxed);
        slot.kind.store(kind_number(kind), Relaxed);
        slot.call.store(call.map_or(0, |c| c as u32), Relaxed);
        let text = &text.as_bytes()[..cut(text)];
        for (word, bytes) in slot.text.iter().zip(text.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(whole), Relaxed);
        }
        slot.length.store(text.len() as u64, Relaxed);
        slot.valid.store(index + 1, Release);
    }
}

/// How many bytes of `text` fit without splitting a character.
fn cut(text: &str) -> usize {
    (0..=text.len().min(NOTE_TEXT)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0)
}

const KINDS: [NoteKind; 5] =
    [NoteKind::SetupFailed, NoteKind::BadPlan, NoteKind::ApiError, NoteKind::WrongResult, NoteKind::Info];

fn kind_number(kind: NoteKind) -> u32 {
    KINDS.iter().position(|k| *k == kind).map_or(0, |n| n as u32 + 1)
}

/// Bytes of the counter and all slots.
pub(super) fn area(geometry: &Geometry) -> (usize, usize) {
    (NOTES_AT, geometry.note(NOTE_SLOTS) - NOTES_AT)
}

/// Reads the notes from the bytes of [`area`], which are not to be trusted.
pub(super) fn parse(bytes: &[u8], geometry: &Geometry, time: &Conversion, soft_errors: &mut Vec<String>) -> Vec<Note> {
    let claimed = word(bytes, 0);
    let mut notes = Vec::new();
    let (mut unfinished, mut nonsense) = (0, 0);
    for number in 0..NOTE_SLOTS.min(usize::try_from(claimed).unwrap_or(NOTE_SLOTS)) {
        let start = geometry.note(number) - NOTES_AT;
        let slot = bytes.get(start..start + size_of::<NoteSlot>()).unwrap_or_default();
        match word(slot, offset_of!(NoteSlot, valid)) {
            0 => unfinished += 1,
            valid if valid == number as u64 + 1 => match note(slot, time) {
                Some(note) => notes.push(note),
                None => nonsense += 1,
            },
            _ => nonsense += 1,
        }
    }
    if nonsense > 0 {
        soft_errors.push(format!("journal unreadable in part: {nonsense} notes make no sense"));
    } else if claimed > NOTE_SLOTS as u64 {
        soft_errors.push(format!("the last {} notes found no room", claimed - NOTE_SLOTS as u64));
    }
    if unfinished > 0 {
        soft_errors.push(format!("{unfinished} notes were begun and not finished"));
    }
    notes
}

fn note(slot: &[u8], time: &Conversion) -> Option<Note> {
    let half = |at| (word(slot, at & !7) >> (8 * (at & 7))) as u32;
    let kind = *KINDS.get((half(offset_of!(NoteSlot, kind)) as usize).checked_sub(1)?)?;
    let call = match half(offset_of!(NoteSlot, call)) {
        0 => None,
        number => Some(Call::from_number(u8::try_from(number).ok()?)?),
    };
    let at = word(slot, offset_of!(NoteSlot, at));
    let length = usize::try_from(word(slot, offset_of!(NoteSlot, length))).ok()?;
    let text = slot.get(offset_of!(NoteSlot, text)..)?.get(..length)?;
    time.plausible(at).then(|| Note {
        kind,
        thread: (half(offset_of!(NoteSlot, thread)) as usize).checked_sub(1),
        call,
        code: half(offset_of!(NoteSlot, code)).cast_signed(),
        module: word(slot, offset_of!(NoteSlot, module)),
        live_modules: word(slot, offset_of!(NoteSlot, live)),
        at_ns: time.ns(at),
        text: String::from_utf8_lossy(text).into_owned(),
    })
}

/// The 64-bit word at `at`; 0 where there is none.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("plain"), 5);
        let long = "a".to_string() + &"ß".repeat(300);
        assert_eq!(cut(&long), 447);
    }
}
