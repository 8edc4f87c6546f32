//! Planted bugs: one file a bug, chosen by `CUDA_SIM_BUG=NAME[:key=value,...]`. The driver calls the hooks of this file at
//! the places where a bug may act; without a bug they do nothing.

mod bystander;
mod callback_list_race;
mod fail_context;
mod freed;
mod host_object_freed_early;
mod load_unload_deadlock;
mod meeting;
mod missing_entry;
mod missing_jit;
mod module_limit;
mod module_table_race;
mod no_device;
mod stale_function;
mod wrong_code;

use crate::catalogue::BugEntry;
use crate::context::Context;
use crate::error::{Answer, Code};
use crate::host_object::HostObject;
use crate::image::Image;
use crate::lock;
use crate::module::Module;
use crate::random;
use crate::settings::Setting;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

/// What a bug's file says about itself.
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// What goes wrong.
    pub text: &'static str,
    /// Whose fault it is: for the ground truth, never for what attributes.
    pub owner: &'static str,
    /// What kind of fault it is.
    pub kind: &'static str,
    /// Its own keys, beside `seed`.
    pub keys: &'static [(&'static str, &'static str)],
    /// Reads its keys.
    plant: fn(&Setting) -> Result<Bug, String>,
}

impl Plan {
    /// The plan as public data.
    pub fn entry(&self) -> BugEntry {
        BugEntry { name: self.name, text: self.text, owner: self.owner, kind: self.kind, keys: self.keys }
    }
}

/// All bugs.
pub const CATALOGUE: &[&Plan] = &[
    &callback_list_race::PLAN,
    &host_object_freed_early::PLAN,
    &module_table_race::PLAN,
    &load_unload_deadlock::PLAN,
    &wrong_code::PLAN,
    &module_limit::PLAN,
    &fail_context::PLAN,
    &no_device::PLAN,
    &missing_entry::PLAN,
    &missing_jit::PLAN,
    &stale_function::PLAN,
];

/// The planted bug with its keys.
enum Bug {
    None,
    CallbackListRace(callback_list_race::CallbackListRace),
    HostObjectFreedEarly(host_object_freed_early::HostObjectFreedEarly),
    ModuleTableRace(module_table_race::ModuleTableRace),
    LoadUnloadDeadlock(load_unload_deadlock::LoadUnloadDeadlock),
    WrongCode(wrong_code::WrongCode),
    ModuleLimit(module_limit::ModuleLimit),
    FailContext(fail_context::FailContext),
    NoDevice(no_device::NoDevice),
    MissingEntry(missing_entry::MissingEntry),
    MissingJit,
    StaleFunction(stale_function::Reaction),
}

/// What bugs keep per context.
pub enum PerContext {
    /// Nothing.
    None,
    /// Its list of records.
    Records(callback_list_race::List),
    /// Its host objects that may be shared.
    Objects(host_object_freed_early::Open),
    /// Its functions.
    Functions(module_table_race::FunctionTable),
    /// Its locks.
    Locks(load_unload_deadlock::TwoLocks),
}

impl Default for PerContext {
    fn default() -> Self {
        match active() {
            Bug::CallbackListRace(_) => PerContext::Records(Default::default()),
            Bug::HostObjectFreedEarly(_) => PerContext::Objects(Default::default()),
            Bug::ModuleTableRace(_) => PerContext::Functions(Default::default()),
            Bug::LoadUnloadDeadlock(_) => PerContext::Locks(Default::default()),
            _ => PerContext::None,
        }
    }
}

/// What bugs keep per module.
#[derive(Default)]
pub struct PerModule {
    /// Its record in the context's list.
    record: AtomicPtr<callback_list_race::Record>,
    /// Its use of a shared host object.
    shared: OnceLock<Arc<host_object_freed_early::Shared>>,
}

fn planted() -> &'static Result<Bug, String> {
    static PLANTED: OnceLock<Result<Bug, String>> = OnceLock::new();
    PLANTED.get_or_init(|| match Setting::from_env("CUDA_SIM_BUG") {
        Some(setting) => plant(&setting),
        None => Ok(Bug::None),
    })
}

fn plant(setting: &Setting) -> Result<Bug, String> {
    let plan = CATALOGUE
        .iter()
        .find(|plan| plan.name == setting.name)
        .ok_or_else(|| format!("there is no planted bug named '{}'", setting.name))?;
    let known: Vec<&str> = plan.keys.iter().map(|key| key.0).chain(["seed"]).collect();
    if let Some(key) = setting.unknown_key(&known) {
        return Err(format!("planted bug '{}' has no key '{key}' (it takes {})", plan.name, known.join(", ")));
    }
    random::seed(setting.get("seed", 0u64) ^ child().rotate_left(32));
    lock::choose_kind(LOCK_KINDS[random::seeded(3) as usize % LOCK_KINDS.len()]);
    (plan.plant)(setting)
}

/// Kinds of locks, one of which a seed chooses.
const LOCK_KINDS: [i32; 3] =
    [libc::PTHREAD_MUTEX_NORMAL, libc::PTHREAD_MUTEX_RECURSIVE, libc::PTHREAD_MUTEX_ERRORCHECK];

/// The child's number in the run, from 0.
fn child() -> u64 {
    std::env::var("CUDA_SIM_CHILD").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[inline]
fn active() -> &'static Bug {
    planted().as_ref().unwrap_or(&Bug::None)
}

/// Says what is wrong with the setting, if anything.
pub fn check() -> Result<(), String> {
    planted().as_ref().map(|_| ()).map_err(Clone::clone)
}

/// In `cuInit`.
pub fn before_init() -> Answer {
    match active() {
        Bug::NoDevice(bug) => bug.refuse(),
        _ => Ok(()),
    }
}

/// At the end of `cuInit`: threads that a bug wants.
pub fn start_threads() {
    if !matches!(active(), Bug::None) {
        bystander::start();
    }
}

/// When a context is made.
pub fn before_context() -> Answer {
    match active() {
        Bug::FailContext(bug) => bug.refuse(),
        _ => Ok(()),
    }
}

/// Before an image is read.
pub fn before_image(bytes: &[u8]) -> Answer {
    match active() {
        Bug::MissingJit => missing_jit::refuse(bytes),
        _ => Ok(()),
    }
}

/// Before a module is made of an image.
pub fn before_load(context: &Context, image: &Image) -> Answer {
    match active() {
        Bug::ModuleLimit(bug) => bug.refuse(context),
        Bug::MissingJit if image.is_tile() => Err(Code::JIT_COMPILER_NOT_FOUND),
        _ => Ok(()),
    }
}

/// Makes the host object of a module, or finds one to share.
pub fn host_object(
    context: &Context,
    image: &Image,
    keep: &PerModule,
    make: impl FnOnce() -> Answer<Arc<HostObject>>,
) -> Answer<Arc<HostObject>> {
    match (active(), &context.bugs) {
        (Bug::HostObjectFreedEarly(bug), PerContext::Objects(open)) => {
            let shared = bug.find_or_make(open, image, make)?;
            let object = Arc::clone(shared.object());
            let _ = keep.shared.set(shared);
            Ok(object)
        }
        _ => make(),
    }
}

/// Once a module is made.
pub fn after_load(module: &Module) {
    match (active(), &module.context.bugs) {
        (Bug::CallbackListRace(bug), PerContext::Records(list)) if module.host.is_some() => {
            module.bugs.record.store(bug.add(list), Ordering::Release);
        }
        (Bug::LoadUnloadDeadlock(bug), PerContext::Locks(locks)) => bug.load(locks),
        _ => {}
    }
}

/// Before what a module holds is given back.
pub fn before_release(module: &Module) {
    match (active(), &module.context.bugs) {
        (Bug::CallbackListRace(bug), PerContext::Records(list)) => {
            bug.remove(list, module.bugs.record.swap(std::ptr::null_mut(), Ordering::AcqRel));
        }
        (Bug::LoadUnloadDeadlock(bug), PerContext::Locks(locks)) => bug.unload(locks),
        _ => {}
    }
}

/// Unmaps the host object of a module that ends.
pub fn unmap(module: &Module, host: &HostObject) {
    match (active(), &module.context.bugs, module.bugs.shared.get()) {
        (Bug::HostObjectFreedEarly(bug), PerContext::Objects(open), Some(shared)) => bug.give_up(open, shared),
        _ => host.unmap(),
    }
}

/// Once a function was made.
pub fn after_function(context: &Context, handle: u64) {
    if let (Bug::ModuleTableRace(bug), PerContext::Functions(table)) = (active(), &context.bugs) {
        bug.add(table, handle);
    }
}

/// Before a function ends.
pub fn before_function_ends(context: &Context, handle: u64) {
    if let (Bug::ModuleTableRace(bug), PerContext::Functions(table)) = (active(), &context.bugs) {
        bug.remove(table, handle);
    }
}

/// In a launch, before the image's host code is called.
pub fn at_launch(module: &Module, function: u64) {
    match (active(), &module.context.bugs) {
        (Bug::CallbackListRace(bug), PerContext::Records(list)) if module.host.is_some() => {
            bug.walk(list, module.bugs.record.load(Ordering::Acquire));
        }
        (Bug::ModuleTableRace(bug), PerContext::Functions(table)) => bug.read(table, function),
        _ => {}
    }
}

/// A launch of a function that is not live.
pub fn stale_function(context: &Context, handle: u64) -> Answer {
    match active() {
        Bug::StaleFunction(reaction) => reaction.answer(context, handle),
        _ => Err(Code::INVALID_HANDLE),
    }
}

/// Whether the device is about to run another module's kernel.
pub fn runs_another_kernel() -> bool {
    match active() {
        Bug::WrongCode(bug) => bug.now(),
        _ => false,
    }
}

/// Whether an entry point is not exported.
pub fn is_missing(symbol: &str) -> bool {
    match active() {
        Bug::MissingEntry(bug) => bug.names(symbol),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_can_be_planted_by_its_name_alone() {
        for plan in CATALOGUE {
            let planted = plant(&Setting::parse(plan.name));
            assert!(planted.is_ok() || plan.name == "missing-entry", "{}: {:?}", plan.name, planted.err());
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text| plant(&Setting::parse(text)).err().unwrap();
        assert!(error("callback-race").contains("'callback-race'"));
        assert!(error("no-device:cod=1").contains("'cod'"));
    }
}
