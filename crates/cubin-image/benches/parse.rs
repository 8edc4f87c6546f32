//! How many bytes of image the reader takes a second, over all committed cubins.
//!
//! `cargo bench -p cubin-image`

#[path = "../tests/committed/mod.rs"]
mod committed;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cubin_image::Cubin;
use std::hint::black_box;

fn parse(criterion: &mut Criterion) {
    let cubins: Vec<_> = committed::images().into_iter().filter(|(name, _)| name.ends_with(".cubin")).collect();
    let mut group = criterion.benchmark_group("cubin");
    group.throughput(Throughput::Bytes(cubins.iter().map(|(_, image)| image.len() as u64).sum()));
    group.bench_function("parse all committed", |bencher| {
        bencher.iter(|| cubins.iter().for_each(|(_, image)| drop(black_box(Cubin::parse(black_box(image))))));
    });
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
