//! What watching takes, as plain figures: a capture of a child with 64 threads, the time from a child's death to the next
//! child's first load, and the supervisor's share of a processor. `cargo bench --bench watching`.

use cubin_stress::driver;
use cubin_stress::evidence::Evidence;
use cubin_stress::journal::monotonic_ns;
use cubin_stress::plan::{DriverChoice, Order, Workload};
use cubin_stress::supervisor::interrupt::StopFlag;
use cubin_stress::supervisor::trial::{self, TrialObserver, TrialOutcome, TrialSpec};
use cubin_stress::vocabulary::Call;
use std::path::Path;

/// Notes how long each capture took, ns: from the moment that the signal was seen.
#[derive(Default)]
struct Stopwatch(Vec<u64>);

impl TrialObserver for Stopwatch {
    fn fault(&mut self, evidence: &Evidence) {
        self.0.push(monotonic_ns() - evidence.at_ns);
    }
}

fn spec(seconds: f64) -> TrialSpec {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins/tile/add.sm_120.cubin");
    let order = Order {
        driver: driver::choose(&DriverChoice::Sim).expect("the simulated driver is inside").path,
        device: 0,
        image_path: path.clone(),
        workload: Workload::default(),
        seconds,
        seed: 1,
        child: 0,
        record: true,
        alternate: None,
    };
    let image = std::fs::read(path).expect("the committed image");
    let mut spec = TrialSpec::new(order, image.into(), StopFlag::new());
    spec.program.0 = env!("CARGO_BIN_EXE_stress").into();
    spec
}

fn run(spec: &TrialSpec, stopwatch: &mut Stopwatch) -> TrialOutcome {
    trial::run(spec.clone(), stopwatch).expect("a trial that runs")
}

fn report(what: &str, mut ns: Vec<u64>) {
    ns.sort_unstable();
    let at = |share: f64| ns[((ns.len() - 1) as f64 * share) as usize] as f64 / 1e6;
    println!(
        "{what}: median {:.2} ms, 95 % below {:.2} ms, most {:.2} ms ({} times)",
        at(0.5),
        at(0.95),
        at(1.0),
        ns.len()
    );
}

/// This process's memory in use, KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line VmRSS");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn captures() {
    let mut spec = spec(60.0);
    spec.program = (victims::program("many-threads"), vec!["64".into()]);
    let mut stopwatch = Stopwatch::default();
    run(&spec, &mut stopwatch);
    let before = resident();
    for _ in 0..100 {
        run(&spec, &mut stopwatch);
    }
    println!("memory before and after 100 captures: {before} KiB, {} KiB", resident());
    report("capture of 64 threads, signal seen to observer told", stopwatch.0.split_off(1));
}

/// From a child's death to the first load of the next.
fn turnaround() {
    let mut spec = spec(20.0);
    spec.env.push(("CUDA_SIM_BUG".into(), "callback-list-race:force=1".into()));
    let mut gaps = Vec::new();
    let mut died = None;
    for seed in 0..101 {
        spec.order.seed = seed;
        let outcome = run(&spec, &mut Stopwatch::default());
        let loads =
            outcome.journal.threads.iter().flat_map(|thread| &thread.last).filter(|call| call.call == Call::Load);
        let first_load = loads.map(|call| call.enter_ns).min();
        if let (Some(died), Some(load)) = (died, first_load) {
            gaps.push(load - died);
        }
        died = Some(outcome.timings.ended_ns);
    }
    report("from a child's death to the next child's first load", gaps);
}

fn processor_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn share_of_a_processor() {
    let seconds = 10.0;
    let before = processor_time_ns();
    let outcome = run(&spec(seconds), &mut Stopwatch::default());
    let used = (processor_time_ns() - before) as f64 / 1e9;
    println!(
        "supervisor over {seconds} s of {} rounds: {:.2} % of one processor",
        outcome.totals.rounds,
        used / seconds * 100.0
    );
}

fn main() {
    captures();
    turnaround();
    share_of_a_processor();
}
