//! A host object in memory: mapped, relocated, its table fetched by `on_pre_load`, unmapped with its module.
#![allow(unsafe_code)] // writes code into memory and calls it

use super::arena::{Kind, Place, arena};
use super::callbacks::{Callbacks, HOST_API, HOST_API_VERSION, OnArgumentsChange};
use super::template::{Spot, Target, Template};
use crate::error::{Answer, Code};
use crate::image::Image;
use cubin_image::RelocationKind;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// A host object in memory.
pub struct HostObject {
    text: Place,
    tables: Place,
    bss: Place,
    unmapped: AtomicBool,
    /// The image's table, which lies in the object itself.
    table: *const Callbacks,
    /// For each kernel of the image, its record; 13.1 and 13.2 images have one for the first kernel only.
    records: Box<[Option<Record>]>,
}

// SAFETY: the places are plain memory that only this object gives up; the tables are read only.
unsafe impl Send for HostObject {}
// SAFETY: as above.
unsafe impl Sync for HostObject {}

impl HostObject {
    /// Maps and relocates the template, then asks the image for its table on behalf of `context`.
    pub fn load(template: &Template, image: &Image, context: u64) -> Answer<HostObject> {
        let text = arena(Kind::Text).map(template.text.len())?;
        let tables = arena(Kind::Tables).map(template.tables.len()).inspect_err(|_| arena(Kind::Text).unmap(&text))?;
        let bss = arena(Kind::Bss).map(template.bss_size).inspect_err(|_| {
            arena(Kind::Text).unmap(&text);
            arena(Kind::Tables).unmap(&tables);
        })?;
        let mut object = HostObject {
            text,
            tables,
            bss,
            unmapped: AtomicBool::new(false),
            table: std::ptr::null(),
            records: Box::default(),
        };
        object.link(template)?;
        object.pre_load(template, context)?;
        object.records = image.kernels.iter().map(|kernel| object.find(&kernel.name)).collect();
        Ok(object)
    }

    /// Whether the image has host code for a kernel.
    #[cfg(test)]
    pub fn has_record(&self, kernel: usize) -> bool {
        self.records[kernel].is_some()
    }

    /// Where its code begins.
    #[cfg(test)]
    pub fn code(&self) -> usize {
        self.text.at as usize
    }

    /// Unmaps it; a second time does nothing.
    pub fn unmap(&self) {
        if !self.unmapped.swap(true, Ordering::AcqRel) {
            arena(Kind::Text).unmap(&self.text);
            arena(Kind::Tables).unmap(&self.tables);
            arena(Kind::Bss).unmap(&self.bss);
        }
    }

    fn address(&self, spot: Spot) -> *mut u8 {
        let place = match spot.part {
            Kind::Text => &self.text,
            Kind::Tables => &self.tables,
            Kind::Bss => &self.bss,
        };
        // SAFETY: a template's spots lie within its parts, and the places are at least as long.
        unsafe { place.at.add(spot.offset) }
    }

    fn link(&self, template: &Template) -> Answer {
        // SAFETY: the places are fresh, writable, and at least as long as the template's parts.
        unsafe {
            std::ptr::copy_nonoverlapping(template.text.as_ptr(), self.text.at, template.text.len());
            std::ptr::copy_nonoverlapping(template.tables.as_ptr(), self.tables.at, template.tables.len());
        }
        let got = self.address(Spot { part: Kind::Tables, offset: template.got });
        for fix in &template.fixes {
            let place = self.address(fix.at);
            let target = match fix.target {
                Target::Spot(spot) => self.address(spot) as u64,
                Target::Got => got as u64,
                Target::Absolute(value) => value,
            };
            let value = match fix.kind {
                RelocationKind::Absolute64 => target.wrapping_add_signed(fix.addend),
                RelocationKind::Relative64 => target.wrapping_add_signed(fix.addend).wrapping_sub(place as u64),
                RelocationKind::GotOffset64 => target.wrapping_add_signed(fix.addend).wrapping_sub(got as u64),
                RelocationKind::GotRelative64 => {
                    (got as u64).wrapping_add_signed(fix.addend).wrapping_sub(place as u64)
                }
                RelocationKind::GotSlot64 => {
                    // SAFETY: the table has a slot of eight bytes for every symbol.
                    unsafe { got.add(fix.slot).cast::<u64>().write_unaligned(target) };
                    (fix.slot as u64).wrapping_add_signed(fix.addend)
                }
                RelocationKind::Other(_) => return Err(Code::INVALID_IMAGE),
            };
            // SAFETY: a fix has eight bytes of room in its part.
            unsafe { place.cast::<u64>().write_unaligned(value) };
        }
        arena(Kind::Text).finish(&self.text)?;
        arena(Kind::Tables).finish(&self.tables)
    }

    fn pre_load(&mut self, template: &Template, context: u64) -> Answer {
        let table = self.address(template.callbacks).cast::<Callbacks>();
        let mut out: *const Callbacks = std::ptr::null();
        // SAFETY: the table was linked above; its function follows the x86-64 System V convention, which no mark in the
        // image can tell from Windows': an image made for that crashes here, in any driver.
        let result = unsafe {
            let on_pre_load = (*table).on_pre_load.ok_or(Code::INVALID_IMAGE)?;
            on_pre_load(&HOST_API, context as *mut c_void, HOST_API_VERSION, &mut out)
        };
        if result != 0 || out.is_null() {
            return Err(Code::INVALID_IMAGE);
        }
        self.table = out;
        Ok(())
    }

    /// The record of the kernel of that name.
    fn find(&self, name: &CStr) -> Option<Record> {
        // SAFETY: the image handed this table over; it lies in the mapped object.
        unsafe {
            let table = &*self.table;
            let entry = (0..table.nfuncs as usize)
                .map(|index| table.funcs.byte_add(index * table.func_size as usize))
                .find(|entry| !(**entry).name.is_null() && CStr::from_ptr((**entry).name) == name)?;
            Some(Record { callback: (*entry).on_arguments_change?, state: table.state })
        }
    }

    /// Calls a kernel's callback on its parameters. Takes no lock: callbacks of many threads run at once.
    ///
    /// # Safety
    /// The object must be mapped, and `parameters` must hold the kernel's `buffer_size` bytes.
    #[inline]
    pub unsafe fn arguments_change(&self, kernel: usize, parameters: &mut [u8]) -> Answer {
        let Some(record) = &self.records[kernel] else { return Ok(()) };
        let (api, size) = ((&raw const HOST_API).cast(), parameters.len() as u64);
        // SAFETY: the caller keeps the object mapped, and the buffer is as large as the kernel asks for.
        let result = unsafe { (record.callback)(api, record.state, size, parameters.as_mut_ptr()) };
        // Guess: anything but 0 is an error.
        if result == 0 { Ok(()) } else { Err(Code::LAUNCH_FAILED) }
    }
}

/// What the driver keeps of a kernel's host code.
struct Record {
    callback: OnArgumentsChange,
    state: *mut c_void,
}

impl Drop for HostObject {
    fn drop(&mut self) {
        self.unmap();
    }
}
