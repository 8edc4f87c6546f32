//! Writer against reader, over a real sealed memfd; and the reader against journals that were tampered with.

use super::clock::Clock;
use super::layout::{CONTROL_AT, Geometry, NOTES_AT};
use super::reader::{Journaled, Source};
use super::*;
use crate::vocabulary::Call;
use proptest::prelude::*;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

fn pair(threads: usize) -> (Journal, JournalWriter) {
    let journal = Journal::create(&JournalSpec { threads, ..JournalSpec::default() }).unwrap();
    let writer = JournalWriter::attach(journal.fd()).unwrap();
    (journal, writer)
}

fn rounds(thread: &mut ThreadWriter, n: u64) {
    for serial in 1..=n {
        let open = thread.enter(Call::Load, serial);
        let open = thread.next(open, 0, Call::GetFunction, serial);
        let open = thread.next(open, 0, Call::Launch, serial);
        let open = thread.next(open, 700, Call::Sync, 0);
        let open = thread.next(open, 0, Call::LibraryUnload, serial);
        thread.leave(open, 0);
        thread.round_done();
    }
}

#[test]
fn what_is_written_is_read() {
    let (journal, writer) = pair(2);
    let before = monotonic_ns();
    let mut thread = writer.thread(1);
    thread.begin();
    writer.set_began();
    rounds(&mut thread, 1000);
    thread.kept(250);
    let _open = thread.enter(Call::Launch, 1001);
    writer.note(NoteKind::ApiError, Some(1), Some(Call::Launch), 700, 9, 251, "launch failed");
    writer.note(NoteKind::Info, None, None, 0, 0, 0, &"x".repeat(1000));

    let snapshot = journal.snapshot(7);
    assert_eq!(snapshot.soft_errors, Vec::<String>::new());
    assert_eq!(snapshot.threads.len(), 3);
    assert_eq!(snapshot.threads[0], ThreadSnapshot::default());
    let read = &snapshot.threads[1];
    assert_eq!(read.tid, rustix::thread::gettid().as_raw_nonzero().get());
    assert_eq!((read.rounds, read.kept, read.unrecorded), (1000, 250, 0));
    let calls =
        [Call::Sync, Call::LibraryUnload, Call::Load, Call::GetFunction, Call::Launch, Call::Sync, Call::LibraryUnload];
    assert_eq!(read.last.iter().map(|r| r.call).collect::<Vec<_>>(), calls);
    assert_eq!(read.last.iter().map(|r| r.module).collect::<Vec<_>>(), [0, 999, 1000, 1000, 1000, 0, 1000]);
    assert_eq!(read.last.iter().map(|r| r.result).collect::<Vec<_>>(), [0, 0, 0, 0, 700, 0, 0]);
    assert!(read.last.windows(2).all(|w| w[0].leave_ns <= w[1].enter_ns));
    assert_eq!(read.last.iter().map(|r| r.index).collect::<Vec<_>>(), (4993..5000).collect::<Vec<_>>());
    let open = read.in_flight.unwrap();
    assert_eq!((open.call, open.module), (Call::Launch, 1001));
    assert!(before <= read.last[0].enter_ns && open.entered_ns <= snapshot.read_ns);
    assert_eq!(read.totals[&Call::Launch], CallTotals { count: 1000, errors: 1000 });
    assert_eq!(snapshot.notes.len(), 2);
    assert_eq!(snapshot.notes[0].text, "launch failed");
    assert_eq!((snapshot.notes[0].thread, snapshot.notes[0].code), (Some(1), 700));
    assert_eq!((snapshot.notes[1].thread, snapshot.notes[1].text.len()), (None, 448));
    assert!(snapshot.began_ns.is_some() && !snapshot.finished);
}

#[test]
fn totals_merge_into_histograms() {
    let (journal, writer) = pair(2);
    rounds(&mut writer.thread(0), 300);
    rounds(&mut writer.thread(1), 200);
    let mut totals = journal.totals();
    assert_eq!(totals.soft_errors, Vec::<String>::new());
    assert_eq!(totals.of(HotCall::Unload), CallTotals { count: 500, errors: 0 });
    assert_eq!(totals.latency(HotCall::Unload).len(), 500);
    assert_eq!(totals.calls[&Call::LibraryUnload].count, 500);
    assert!(!totals.calls.contains_key(&Call::Unload));
    let again = totals.clone();
    totals.merge(&again);
    assert_eq!(totals.latency(HotCall::Load).len(), 1000);
    assert_eq!((totals.of(HotCall::Launch).errors, totals.rounds), (1000, 1000));
}

#[test]
fn latencies_are_those_of_the_calls() {
    let (journal, writer) = pair(1);
    let mut thread = writer.thread(0);
    for wanted in [1_000, 50_000, 3_000_000] {
        let open = thread.enter(Call::Load, 1);
        let until = monotonic_ns() + wanted;
        while monotonic_ns() < until {}
        thread.leave(open, 0);
    }
    let snapshot = journal.snapshot(3);
    let mut spans = snapshot.threads[0].last.iter().map(|r| r.leave_ns - r.enter_ns).collect::<Vec<_>>();
    spans.sort_unstable();
    let totals = journal.totals();
    let counted = totals.latency(HotCall::Load).iter_recorded().map(|v| v.value_iterated_to()).collect::<Vec<_>>();
    for (span, counted) in spans.iter().zip(counted) {
        assert!(counted.abs_diff(*span) <= span / 50 + 100, "{counted} against {span}");
    }
    assert!(spans[0] >= 990 && spans[2] >= 2_990_000);
}

#[test]
fn a_frozen_journal_keeps_the_moment() {
    let (journal, writer) = pair(1);
    let mut thread = writer.thread(0);
    rounds(&mut thread, 10);
    let open = thread.enter(Call::Launch, 11);
    journal.freeze().unwrap();
    let frozen = journal.snapshot(100).threads[0].clone();
    let next = thread.next(open, 0, Call::Sync, 11);
    thread.leave(next, 0);
    thread.round_done();
    thread.kept(3);
    let later = journal.snapshot(100).threads[0].clone();
    assert_eq!(ThreadSnapshot { unrecorded: 0, ..later.clone() }.totals, frozen.totals);
    assert_eq!((later.in_flight.unwrap().call, later.last.len(), later.rounds), (Call::Launch, 50, 10));
    assert_eq!(later.unrecorded, 2);

    let open = thread.enter(Call::Unload, 11);
    journal.thaw().unwrap();
    thread.leave(open, 0);
    let thawed = journal.snapshot(100).threads[0].clone();
    assert_eq!(thawed.in_flight, None, "a call that ended in the freeze is not open after it");
    rounds(&mut thread, 1);
    assert_eq!(journal.snapshot(100).threads[0].last.len(), 55);
}

#[test]
fn the_two_sides_hear_each_other() {
    let (journal, writer) = pair(1);
    assert!(!writer.stop_requested());
    journal.request_stop().unwrap();
    assert!(writer.stop_requested());
    assert!(!journal.progress().finished);
    writer.set_finished();
    assert!(journal.progress().finished);
    let mut main = writer.main_thread();
    main.begin();
    let _open = main.enter(Call::Init, 0);
    let progress = journal.progress();
    let (thread, open, age) = progress.oldest_open().unwrap();
    assert_eq!((thread, open.call), (1, Call::Init));
    assert_eq!(age, progress.read_ns - open.entered_ns);
    writer.thread(0).set_recording(false);
}

#[test]
fn switched_off_it_writes_nothing() {
    let (journal, writer) = pair(1);
    let mut thread = writer.thread(0);
    thread.set_recording(false);
    rounds(&mut thread, 5);
    assert_eq!(journal.snapshot(9).threads[0], ThreadSnapshot::default());
    thread.set_recording(true);
    rounds(&mut thread, 1);
    assert_eq!(journal.snapshot(9).threads[0].rounds, 1);
}

#[test]
fn more_notes_than_room_are_counted() {
    let (journal, writer) = pair(1);
    for i in 0..300 {
        writer.note(NoteKind::Info, Some(0), None, i, 0, 0, "again");
    }
    let snapshot = journal.snapshot(0);
    assert_eq!(snapshot.notes.len(), 256);
    assert_eq!(snapshot.soft_errors, ["the last 44 notes found no room"]);
}

#[test]
fn a_running_writer_is_never_read_torn() {
    let (journal, writer) = pair(1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut thread = writer.thread(0);
            let mut index = 0u64;
            while !stop.load(Ordering::Relaxed) {
                let open = thread.enter(Call::Launch, index);
                thread.leave(open, index as i32);
                index += 1;
            }
        });
        let mut seen = 0;
        while seen < 300_000 {
            let snapshot = journal.snapshot(usize::MAX);
            assert_eq!(snapshot.soft_errors, Vec::<String>::new());
            for record in &snapshot.threads[0].last {
                assert_eq!((record.index, record.index as i32), (record.module, record.result));
            }
            seen += snapshot.threads[0].last.len();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_child_can_neither_shrink_nor_seal_it() {
    let (journal, _) = pair(1);
    let size = rustix::fs::fstat(journal.fd()).unwrap().st_size as u64;
    assert!(rustix::fs::ftruncate(journal.fd(), size - 1).is_err());
    assert!(rustix::fs::ftruncate(journal.fd(), size + 1).is_err());
    assert!(rustix::fs::fcntl_add_seals(journal.fd(), rustix::fs::SealFlags::WRITE).is_err());
}

#[test]
fn what_is_no_journal_is_refused() {
    let file = tempfile::tempfile().unwrap();
    assert_eq!(JournalWriter::attach(&file).err().unwrap().kind(), io::ErrorKind::InvalidData);
    let (journal, _) = pair(1);
    let file = std::fs::File::from(journal.fd().try_clone_to_owned().unwrap());
    file.write_all_at(&[0; 8], 0).unwrap();
    assert_eq!(JournalWriter::attach(&file).err().unwrap().kind(), io::ErrorKind::InvalidData);
    let unreadable = journal.snapshot(1).soft_errors;
    assert!(unreadable[0].starts_with("journal unreadable"), "{unreadable:?}");
}

/// A journal's bytes in our own memory, to tamper with.
impl Source for Vec<u8> {
    fn copy(&self, offset: usize, bytes: &mut [u8]) -> io::Result<()> {
        let there = self.get(offset..offset + bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(there);
        Ok(())
    }
}

/// A journal with something in every part of it.
fn specimen() -> (Vec<u8>, Geometry, Clock) {
    let (journal, writer) = pair(1);
    let (geometry, clock) = (journal.geometry, journal.clock);
    rounds(&mut writer.thread(0), 2000);
    let _open = writer.main_thread().enter(Call::CtxCreate, 0);
    for _ in 0..5 {
        writer.note(NoteKind::WrongResult, Some(0), Some(Call::Verify), 0, 3, 4, "sum is 2, not 3");
    }
    let mut bytes = vec![0; geometry.size()];
    std::fs::File::from(journal.fd().try_clone_to_owned().unwrap()).read_exact_at(&mut bytes, 0).unwrap();
    (bytes, geometry, clock)
}

fn next_random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Places where a change matters: the parts that are not megabytes of zeros.
fn any_place(geometry: &Geometry, seed: &mut u64) -> usize {
    let block = geometry.block(next_random(seed) as usize % 2);
    let (start, length) = match next_random(seed) % 6 {
        0 => (0, 64),
        1 => (CONTROL_AT, 128),
        2 => (NOTES_AT, 4096),
        3 => (block, 64),
        4 => (block, 4096),
        _ => (geometry.entry(0, next_random(seed) as usize % geometry.ring), 64),
    };
    start + next_random(seed) as usize % length
}

/// Flips, fills or scrambles, and says what to undo.
fn tamper(bytes: &mut [u8], geometry: &Geometry, seed: &mut u64) -> (usize, Vec<u8>) {
    let at = any_place(geometry, seed).min(bytes.len() - 1);
    let length = match next_random(seed) % 4 {
        0 => 1,
        1 => 8,
        2 => 64,
        _ => 4096,
    };
    let range = at..(at + length).min(bytes.len());
    let old = bytes[range.clone()].to_vec();
    let fill = [0, 0xff, 0x7f, 1][next_random(seed) as usize % 4];
    let how = next_random(seed) % 3;
    for byte in &mut bytes[range] {
        *byte = match how {
            0 => next_random(seed) as u8,
            1 => fill,
            _ => *byte ^ 1 << (next_random(seed) % 8),
        };
    }
    (at, old)
}

fn judge(snapshot: &Snapshot, geometry: &Geometry) {
    assert_eq!(snapshot.threads.len(), geometry.blocks);
    for thread in &snapshot.threads {
        assert!(thread.last.len() <= geometry.ring);
        assert!(thread.last.windows(2).all(|w| w[0].leave_ns <= w[1].enter_ns && w[0].index < w[1].index));
        assert!(thread.last.iter().all(|r| r.enter_ns <= r.leave_ns));
        assert!(thread.totals.values().all(|t| t.errors <= t.count));
    }
    assert!(snapshot.notes.len() <= 256 && snapshot.notes.iter().all(|n| n.text.len() <= 3 * 448));
}

#[test]
fn twenty_thousand_tampered_journals_are_read() {
    let (mut bytes, geometry, clock) = specimen();
    assert_eq!(Journaled::new(&bytes, geometry, clock).snapshot(4096).soft_errors, Vec::<String>::new());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(20_000));
    let bytes = std::cell::RefCell::new(&mut bytes);
    let complained_at = std::cell::Cell::new(0);
    runner
        .run(&(1u64.., 1usize..6, 0usize..200), |(mut seed, times, last)| {
            let bytes = &mut **bytes.borrow_mut();
            let undo = (0..times).map(|_| tamper(bytes, &geometry, &mut seed)).collect::<Vec<_>>();
            let journaled = Journaled::new(bytes, geometry, clock);
            let snapshot = journaled.snapshot(last);
            judge(&snapshot, &geometry);
            let _ = journaled.progress().oldest_open();
            if seed % 16 == 0 {
                let totals = journaled.totals();
                let _ = totals.latency(HotCall::Load).value_at_quantile(0.99);
            }
            complained_at.set(complained_at.get() + usize::from(!snapshot.soft_errors.is_empty()));
            for (at, old) in undo.into_iter().rev() {
                bytes[at..at + old.len()].copy_from_slice(&old);
            }
            Ok(())
        })
        .unwrap();
    let complained = complained_at.get();
    assert!(complained > 10_000, "only {complained} of 20,000 tampered journals were found out");
}

#[test]
fn noise_is_unreadable_and_says_so() {
    let geometry = Geometry::new(2, 0);
    let mut seed = 42;
    for _ in 0..20 {
        let noise = (0..geometry.size() / 8).flat_map(|_| next_random(&mut seed).to_le_bytes()).collect::<Vec<u8>>();
        let journaled = Journaled::new(&noise, geometry, Clock::start());
        let snapshot = journaled.snapshot(4096);
        judge(&snapshot, &geometry);
        assert!(snapshot.soft_errors[0].starts_with("journal unreadable"));
        assert!(snapshot.threads.iter().all(|t| t.last.is_empty() && t.in_flight.is_none() && t.totals.is_empty()));
        assert!(journaled.totals().calls.is_empty());
    }
    let short = Journaled::new(&Vec::new(), geometry, Clock::start()).snapshot(10);
    assert!(short.soft_errors.iter().all(|line| line.starts_with("journal unreadable")));
}
