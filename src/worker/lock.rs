//! The process-wide lock that keeps chosen driver calls apart: a contrast, not a cure. A locked run that never fails where
//! the free one does says that the calls must overlap.

use crate::plan::LockKind;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What a call is to the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Loads, looks up or launches: may overlap its like.
    Use,
    /// Unloads.
    Unload,
    /// Anything else.
    Other,
}

/// The lock.
pub(super) enum Lock {
    /// None.
    None,
    /// Unload against everything that uses modules.
    Unload(RwLock<()>),
    /// One call at a time.
    All(Mutex<()>),
}

/// Holds the lock until it is dropped.
#[expect(dead_code, reason = "held, never looked into")]
pub(super) enum Held<'a> {
    Nothing,
    Shared(RwLockReadGuard<'a, ()>),
    Alone(RwLockWriteGuard<'a, ()>),
    All(MutexGuard<'a, ()>),
}

impl Lock {
    /// The lock of this kind.
    pub fn new(kind: LockKind) -> Lock {
        match kind {
            LockKind::None => Lock::None,
            LockKind::Unload => Lock::Unload(RwLock::new(())),
            LockKind::All => Lock::All(Mutex::new(())),
        }
    }

    /// Waits until a call of this kind may go on. The lock guards no data, so a holder that panicked leaves nothing broken.
    pub fn take(&self, access: Access) -> Held<'_> {
        match (self, access) {
            (Lock::None, _) | (Lock::Unload(_), Access::Other) => Held::Nothing,
            (Lock::Unload(lock), Access::Use) => Held::Shared(lock.read().unwrap_or_else(PoisonError::into_inner)),
            (Lock::Unload(lock), Access::Unload) => Held::Alone(lock.write().unwrap_or_else(PoisonError::into_inner)),
            (Lock::All(lock), _) => Held::All(lock.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unload_stands_alone_and_uses_overlap() {
        let lock = Lock::new(LockKind::Unload);
        let Lock::Unload(inner) = &lock else { unreachable!() };
        let first = lock.take(Access::Use);
        let second = lock.take(Access::Use);
        assert!(inner.try_write().is_err());
        drop((first, second));
        let _alone = lock.take(Access::Unload);
        assert!(inner.try_read().is_err());
        let _other = lock.take(Access::Other);
    }

    #[test]
    fn all_admits_one_call_of_any_kind() {
        let lock = Lock::new(LockKind::All);
        let Lock::All(inner) = &lock else { unreachable!() };
        for access in [Access::Use, Access::Unload, Access::Other] {
            let held = lock.take(access);
            assert!(inner.try_lock().is_err());
            drop(held);
        }
    }
}
