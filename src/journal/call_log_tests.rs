//! Files of calls: what goes in comes out, losses are counted, broken files are read as far as they go.

use super::*;
use crate::journal::{Journal, JournalSpec, JournalWriter};
use proptest::prelude::*;

fn call(thread: &mut crate::journal::ThreadWriter, module: u64) {
    let open = thread.enter(Call::Launch, module);
    thread.leave(open, -(module as i32));
}

fn journal(ring_capacity: usize) -> (Journal, JournalWriter) {
    let journal = Journal::create(&JournalSpec { threads: 2, ring_capacity }).unwrap();
    let writer = JournalWriter::attach(journal.fd()).unwrap();
    (journal, writer)
}

#[test]
fn every_call_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.calls");
    let (journal, writer) = journal(FULL_RING);
    let mut log = CallLog::create(&path, u64::MAX).unwrap();
    std::thread::scope(|scope| {
        let workers = [0, 1].map(|i| {
            scope.spawn(move || {
                let mut thread = writer.thread(i);
                (0..100_000).for_each(|module| call(&mut thread, module));
            })
        });
        while !workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            journal.drain_into(&mut log);
        }
    });
    journal.drain_into(&mut log);
    let end = log.finish();
    assert_eq!((end.written, end.lost, end.failed.is_none()), (200_000, 0, true));
    let mut next = [0u64; 2];
    for block in read_calls(&path).unwrap() {
        let block = block.unwrap();
        for call in &block.calls {
            assert_eq!((call.index, call.module, call.result), (next[block.thread], call.index, -(call.index as i32)));
            next[block.thread] += 1;
        }
    }
    assert_eq!(next, [100_000; 2]);
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 200_000 * 12, "{bytes} bytes");
}

#[test]
fn what_is_overwritten_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.calls");
    let (journal, writer) = journal(4096);
    let mut log = CallLog::create(&path, u64::MAX).unwrap();
    let mut thread = writer.thread(1);
    for _ in 0..3 {
        (0..5000).for_each(|module| call(&mut thread, module));
        journal.drain_into(&mut log);
    }
    let blocks = {
        let end = log.finish();
        assert_eq!(end.written + end.lost, 15_000);
        // The slot that a writer may be busy with is not trusted.
        assert_eq!(end.lost, 3 * (5000 - 4095));
        read_calls(&path).unwrap().collect::<io::Result<Vec<_>>>().unwrap()
    };
    assert_eq!(blocks.iter().map(|b| b.lost).collect::<Vec<_>>(), [905; 3]);
    assert_eq!(blocks[1].calls[0].index, 5905);
}

#[test]
fn a_limit_ends_the_file_and_not_the_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.calls");
    let (journal, writer) = journal(4096);
    let mut log = CallLog::create(&path, 3000).unwrap();
    for _ in 0..10 {
        (0..100).for_each(|module| call(&mut writer.thread(0), module));
        journal.drain_into(&mut log);
    }
    let end = log.finish();
    assert!(end.failed.is_some() && end.written >= 100 && end.lost >= 100 && end.written + end.lost == 1000);
    assert!(std::fs::metadata(&path).unwrap().len() <= 3000);
    assert!(CallLog::create(&path, 1).is_err(), "never writes over another");
}

#[test]
fn a_file_that_was_cut_off_is_read_up_to_there() {
    let record = |index| CallRecord {
        index,
        call: Call::Load,
        module: 7,
        enter_ns: 10 * index,
        leave_ns: 10 * index + 5,
        result: 0,
    };
    let first = block(0, 0, &[record(1), record(2)]);
    let second = block(1, 3, &[record(9)]);
    let bytes = [MAGIC, &first, &second].concat();
    let read = |bytes: &[u8]| CallBlocks::new(bytes).unwrap().collect::<Vec<_>>();
    assert_eq!(read(&bytes).len(), 2);
    assert_eq!(read(&bytes)[1].as_ref().unwrap(), &CallBlock { thread: 1, lost: 3, calls: vec![record(9)] });
    let cut = read(&bytes[..bytes.len() - 1]);
    assert!(cut.len() == 2 && cut[0].is_ok() && cut[1].is_err());
    assert!(CallBlocks::new(&b"something else entirely"[..]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn noise_is_no_panic(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..60, byte in any::<u8>()) {
        let with_magic = [MAGIC, &noise].concat();
        let _ = CallBlocks::new(with_magic.as_slice()).unwrap().count();
        let record = CallRecord { index: 4, call: Call::Sync, module: 1 << 50, enter_ns: 1 << 60, leave_ns: (1 << 60) + 9, result: -5 };
        let mut good = [MAGIC, &block(3, 2, &[record, record])].concat();
        let at = at.min(good.len() - 1);
        if at >= MAGIC.len() {
            good[at] = byte;
        }
        let _ = CallBlocks::new(good.as_slice()).unwrap().count();
    }

    #[test]
    fn numbers_come_back(number in any::<u64>()) {
        let mut bytes = Vec::new();
        put(&mut bytes, number);
        put(&mut bytes, zigzag(number.cast_signed()));
        let rest = &mut bytes.as_slice();
        prop_assert_eq!((take(rest), take_signed(rest)), (Some(number), Some(number.cast_signed())));
    }
}
