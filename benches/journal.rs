//! What the journal costs a call. The promise is 40 ns for enter and leave where the time stamp counter is trusted.
//!
//! `cargo bench --bench journal`
#![allow(unsafe_code, missing_docs)] // reads the time stamp counter to show what it costs alone

use criterion::{Criterion, criterion_group, criterion_main};
use cubin_stress::journal::{ClockSource, Journal, JournalSpec, JournalWriter, monotonic_ns};
use cubin_stress::stats::OverlapSampler;
use cubin_stress::vocabulary::Call;
use std::hint::black_box;

fn calls(c: &mut Criterion) {
    let journal = Journal::create(&JournalSpec::default()).expect("a journal");
    let writer = JournalWriter::attach(journal.fd()).expect("the same journal");
    let mut thread = writer.thread(0);
    thread.begin();
    println!("clock: {:?}", journal.clock_source());

    c.bench_function("two readings of the clock alone", |b| match journal.clock_source() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has this instruction.
        ClockSource::Tsc => b.iter(|| unsafe { std::arch::x86_64::_rdtsc() + std::arch::x86_64::_rdtsc() }),
        _ => b.iter(|| monotonic_ns() + monotonic_ns()),
    });
    c.bench_function("enter and leave", |b| {
        b.iter(|| {
            let open = thread.enter(Call::Launch, black_box(7));
            thread.leave(open, black_box(0));
        });
    });
    c.bench_function("chained, per call", |b| {
        let mut open = Some(thread.enter(Call::Launch, 7));
        b.iter(|| {
            let next = open.take().map(|e| thread.next(e, black_box(0), Call::Sync, black_box(7)));
            open = next;
        });
        if let Some(e) = open {
            thread.leave(e, 0);
        }
    });
    thread.set_recording(false);
    c.bench_function("recording off", |b| {
        b.iter(|| {
            let open = thread.enter(Call::Launch, black_box(7));
            thread.leave(open, black_box(0));
        });
    });
    c.bench_function("snapshot of 64 last calls", |b| b.iter(|| journal.snapshot(64)));
    c.bench_function("sample of overlaps", |b| b.iter(|| journal.sample_overlaps(&mut OverlapSampler::new(true))));
    c.bench_function("progress", |b| b.iter(|| journal.progress()));
    c.bench_function("totals", |b| b.iter(|| journal.totals()));
}

criterion_group!(benches, calls);
criterion_main!(benches);
