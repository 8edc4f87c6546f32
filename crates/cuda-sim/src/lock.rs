//! Locks of this driver: `pthread_mutex_t`, as in a C library, so that who holds one can be read from outside.
#![allow(unsafe_code)] // a mutex that C tools can read is made with the C library's calls

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicI32, Ordering};

/// The kind (`PTHREAD_MUTEX_*`) of the locks made from now on.
static KIND: AtomicI32 = AtomicI32::new(libc::PTHREAD_MUTEX_NORMAL);

/// Chooses the kind of the locks made from now on: what a lock looks like from outside depends on it.
pub fn choose_kind(kind: i32) {
    KIND.store(kind, Ordering::Relaxed);
}

/// A value behind a `pthread_mutex_t`.
pub struct Lock<T> {
    mutex: Box<UnsafeCell<libc::pthread_mutex_t>>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, and one guard exists at a time.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock around `value`.
    pub fn new(value: T) -> Self {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: the attribute and the mutex are valid for writes and no one else knows the mutex yet.
        unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attributes);
            libc::pthread_mutexattr_settype(&mut attributes, KIND.load(Ordering::Relaxed));
            libc::pthread_mutex_init(mutex.get(), &attributes);
            libc::pthread_mutexattr_destroy(&mut attributes);
        }
        Lock { mutex, value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        // SAFETY: the mutex was initialised in `new` and lives as long as `self`.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        Guard { lock: self }
    }
}

impl<T: Default> Default for Lock<T> {
    fn default() -> Self {
        Lock::new(T::default())
    }
}

impl<T> Drop for Lock<T> {
    fn drop(&mut self) {
        // SAFETY: no guard can outlive the lock, so the mutex is free.
        unsafe { libc::pthread_mutex_destroy(self.mutex.get()) };
    }
}

/// Holds a [`Lock`].
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the mutex.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the mutex.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this thread locked the mutex when the guard was made.
        unsafe { libc::pthread_mutex_unlock(self.lock.mutex.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time() {
        let lock = Lock::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 40_000);
    }
}
