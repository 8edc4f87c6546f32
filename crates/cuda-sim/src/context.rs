//! Contexts: created and primary, current per thread, with the error that sticks to them.
#![allow(unsafe_code)] // context handles come from C programs

use crate::bugs;
use crate::driver::{Driver, driver};
use crate::error::{Answer, Code};
use crate::lock::Lock;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// A context.
pub struct Context {
    /// Counted over the process, from 1.
    pub number: u64,
    /// The flags that it was made with.
    pub flags: u32,
    /// Whether it is the device's primary context.
    pub primary: bool,
    /// Number of its newest work in the device's queue.
    pub last_work: AtomicU64,
    /// Handles of its modules.
    pub modules: Lock<HashSet<u64>>,
    /// What planted bugs keep per context.
    pub bugs: bugs::PerContext,
    sticky: AtomicI32,
    dead: AtomicBool,
}

impl Context {
    fn new(flags: u32, primary: bool) -> Arc<Context> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Arc::new(Context {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed) + 1,
            flags,
            primary,
            last_work: AtomicU64::new(0),
            modules: Lock::new(HashSet::new()),
            bugs: bugs::PerContext::default(),
            sticky: AtomicI32::new(0),
            dead: AtomicBool::new(false),
        })
    }

    /// The device error that the context is stuck with, if any.
    #[inline]
    pub fn sticky(&self) -> Answer {
        match self.sticky.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    /// Makes the context unusable: every later call on it answers this code. The first one stays.
    pub fn fail(&self, code: Code) {
        let _ = self.sticky.compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Waits for all work of the context so far; its error, if any.
    pub fn synchronize(&self, driver: &Driver) -> Answer {
        driver.device.queue.wait(self.last_work.load(Ordering::Acquire));
        self.sticky()
    }

    /// Ends everything that belongs to the context.
    fn destroy(&self, driver: &'static Driver) {
        driver.device.queue.wait(self.last_work.load(Ordering::Acquire));
        self.dead.store(true, Ordering::Release);
        let modules: Vec<u64> = self.modules.lock().drain().collect();
        for handle in modules {
            if let Some(module) = driver.modules.remove(handle) {
                module.release(driver);
            }
        }
        driver.device.memory.free_owned(self.number);
    }
}

/// The primary context's state.
#[derive(Default)]
pub struct Primary {
    live: Option<(u64, u64)>,
    flags: u32,
}

/// What is current to a thread, newest last.
struct Current {
    handle: u64,
    context: Arc<Context>,
}

thread_local! {
    static STACK: RefCell<Vec<Current>> = const { RefCell::new(Vec::new()) };
}

/// Does something with the thread's stack of contexts; none while the thread's own state is being destroyed.
fn with_stack<T>(action: impl FnOnce(&mut Vec<Current>) -> T) -> Option<T> {
    STACK.try_with(|stack| action(&mut stack.borrow_mut())).ok()
}

/// The context that is current to the calling thread, whatever state it is in.
fn top() -> Answer<(u64, Arc<Context>)> {
    with_stack(|stack| stack.last().map(|current| (current.handle, Arc::clone(&current.context))))
        .flatten()
        .ok_or(Code::INVALID_CONTEXT)
}

/// The driver and the context that is current to the calling thread, if calls on it can work.
pub fn current() -> Answer<(&'static Driver, Arc<Context>)> {
    let driver = driver()?;
    let (_, context) = top()?;
    if context.dead.load(Ordering::Acquire) {
        return Err(Code::CONTEXT_IS_DESTROYED);
    }
    context.sticky()?;
    Ok((driver, context))
}

/// Handle of the current context; 0: none.
pub fn current_handle() -> Answer<u64> {
    driver()?;
    Ok(top().map_or(0, |(handle, _)| handle))
}

/// Makes a context and pushes it.
pub fn create(flags: u32) -> Answer<u64> {
    let driver = driver()?;
    bugs::before_context()?;
    let context = Context::new(flags, false);
    let handle = driver.contexts.insert(Arc::clone(&context));
    with_stack(|stack| stack.push(Current { handle, context }));
    Ok(handle)
}

/// Destroys a context that [`create`] made; pops it where it is current to the calling thread.
///
/// # Safety
/// The handle must be live; a stale one is dereferenced.
pub unsafe fn destroy(handle: u64) -> Answer {
    let driver = driver()?;
    if handle == 0 {
        return Err(Code::INVALID_CONTEXT);
    }
    // SAFETY: by the caller.
    let context = unsafe { driver.contexts.get(handle) };
    if context.primary {
        return Err(Code::INVALID_CONTEXT);
    }
    // SAFETY: as above.
    drop(unsafe { driver.contexts.remove(handle) });
    context.destroy(driver);
    with_stack(|stack| stack.pop_if(|current| current.handle == handle));
    Ok(())
}

/// Replaces the calling thread's current context; 0 only pops.
///
/// # Safety
/// As for [`destroy`].
pub unsafe fn set_current(handle: u64) -> Answer {
    let driver = driver()?;
    // SAFETY: by the caller.
    let context = (handle != 0).then(|| unsafe { driver.contexts.get(handle) });
    with_stack(|stack| {
        stack.pop();
        stack.extend(context.map(|context| Current { handle, context }));
    });
    Ok(())
}

/// Pushes a context.
///
/// # Safety
/// As for [`destroy`].
pub unsafe fn push(handle: u64) -> Answer {
    let driver = driver()?;
    if handle == 0 {
        return Err(Code::INVALID_CONTEXT);
    }
    // SAFETY: by the caller.
    let context = unsafe { driver.contexts.get(handle) };
    with_stack(|stack| stack.push(Current { handle, context }));
    Ok(())
}

/// Pops the current context; its handle.
pub fn pop() -> Answer<u64> {
    driver()?;
    with_stack(|stack| stack.pop().map(|current| current.handle)).flatten().ok_or(Code::INVALID_CONTEXT)
}

/// Takes a reference to the primary context, which is made where there is none.
pub fn retain_primary() -> Answer<u64> {
    let driver = driver()?;
    let mut primary = driver.primary.lock();
    if let Some((handle, count)) = &mut primary.live {
        *count += 1;
        return Ok(*handle);
    }
    bugs::before_context()?;
    let handle = driver.contexts.insert(Context::new(primary.flags, true));
    primary.live = Some((handle, 1));
    Ok(handle)
}

/// Gives a reference back; the last one destroys the primary context.
pub fn release_primary() -> Answer {
    let driver = driver()?;
    let mut primary = driver.primary.lock();
    let (handle, count) = primary.live.as_mut().ok_or(Code::INVALID_CONTEXT)?;
    *count -= 1;
    if *count > 0 {
        return Ok(());
    }
    let handle = *handle;
    primary.live = None;
    drop(primary);
    // SAFETY: the handle was live until it was taken out above, under the lock.
    unsafe { driver.contexts.remove(handle) }.destroy(driver);
    Ok(())
}

/// Destroys the primary context whoever holds it.
pub fn reset_primary() -> Answer {
    let driver = driver()?;
    let live = driver.primary.lock().live.take();
    if let Some((handle, _)) = live {
        // SAFETY: as in `release_primary`.
        unsafe { driver.contexts.remove(handle) }.destroy(driver);
    }
    Ok(())
}

/// The primary context's flags, and whether it exists.
pub fn primary_state() -> Answer<(u32, bool)> {
    let primary = driver()?.primary.lock();
    Ok((primary.flags, primary.live.is_some()))
}

/// Sets the flags of the primary context.
pub fn set_primary_flags(flags: u32) -> Answer {
    driver()?.primary.lock().flags = flags;
    Ok(())
}
