//! Faults in a thread of a Rust program, whose own handler resets itself and lets the instruction fault again.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

#[inline(never)]
fn faults() {
    // Volatile, so that it is not taken for what cannot happen.
    unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
}

fn main() {
    let mut byte = [0];
    if let Ok(0) = unsafe { File::from_raw_fd(6) }.read(&mut byte) {
        std::process::exit(99);
    }
    let thread = std::thread::spawn(faults);
    let _ = thread.join();
}
