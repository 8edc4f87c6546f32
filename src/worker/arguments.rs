//! A kernel's arguments: from the plan, or from what the image says about its parameters.
//!
//! Without a plan's word an array is a device pointer, then its extents, then its strides; a matrix is 128 x 128, with
//! strides 128 and 1, as in the report that this tool began with. Every argument buffer is zeroed and holds at least
//! `CBANK_PARAM_SIZE` bytes: the host code of Tile IR images writes descriptors behind the arguments that a caller knows.

use super::image::{Kernel, Parameter};
use crate::driver::entries::CuDevicePtr;
use crate::plan::Argument;
use std::ffi::c_void;

/// The name under which this project's add kernels are compiled: what they compute is known.
pub(super) const ADD_KERNEL: &str = "repro_kernel";
/// Extent of each dimension of an array.
const EXTENT: u64 = 128;
/// Elements of one array of the add kernel.
pub(super) const ADD_ELEMENTS: usize = (EXTENT * EXTENT) as usize;
/// Most bytes of arguments that a launch takes (CUDA programming guide: 32,764 from CUDA 12.1 on).
const MOST_BYTES: usize = 32_764;

/// What stands at one place of the argument buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// The address of the buffer with this index.
    Buffer(usize),
    /// These bytes, little endian.
    Plain([u8; 8]),
    /// Nothing but the zeros that are there.
    Zero,
}

/// One argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    offset: usize,
    size: usize,
    value: Value,
}

/// How a launch's arguments look, before device memory is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    slots: Vec<Slot>,
    bytes: usize,
    /// Sizes of the device buffers that it needs, bytes.
    pub buffers: Vec<usize>,
    /// The arguments are those of the add kernel: buffers 0, 1 and 2 are a, b and c, and c must become a + b.
    pub adds: bool,
}

/// One thread's arguments, as `cuLaunchKernel` takes them: `kernelParams`, whose pointers lead into a buffer. Both live as
/// long as the process, as a driver may look at them whenever it likes.
#[derive(Clone, Copy)]
pub(super) struct Arguments(*mut *mut c_void);

impl Arguments {
    /// The array of pointers for `kernelParams`.
    pub fn as_mut_ptr(self) -> *mut *mut c_void {
        self.0
    }
}

impl Layout {
    /// The arguments of `kernel` (none: the image does not tell its kernels), by the plan's word or by default.
    ///
    /// # Errors
    /// In words, where the plan's arguments do not fit the kernel's parameters.
    pub fn new(kernel: Option<&Kernel>, given: Option<&[Argument]>) -> Result<Layout, String> {
        let layout = match (kernel, given) {
            (Some(kernel), Some(given)) => from_plan(Some(&kernel.parameters), given)?,
            (None, Some(given)) => from_plan(None, given)?,
            (Some(kernel), None) => from_image(kernel),
            (None, None) => add_kernel(),
        };
        let least = kernel.map_or(0, |kernel| kernel.buffer_bytes);
        let end = layout.slots.iter().map(|slot| slot.offset + slot.size).max().unwrap_or(0);
        if end > MOST_BYTES {
            return Err(format!("the arguments take {end} bytes, a launch takes at most {MOST_BYTES}"));
        }
        Ok(Layout { bytes: layout.bytes.max(least).max(end), ..layout })
    }

    /// Puts addresses of device buffers (one for each of [`Layout::buffers`]) into a fresh argument buffer.
    pub fn bind(&self, addresses: &[CuDevicePtr]) -> Arguments {
        let buffer = vec![0u64; self.bytes.div_ceil(8) + 8].leak();
        let base = buffer.as_mut_ptr().cast::<u8>();
        let mut pointers = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            // SAFETY: `Layout::new` made `bytes` reach past the end of every slot, and the buffer holds more than that.
            let place = unsafe { base.add(slot.offset) };
            let bytes = match slot.value {
                Value::Buffer(index) => addresses[index].to_le_bytes(),
                Value::Plain(bytes) => bytes,
                Value::Zero => [0; 8],
            };
            // SAFETY: as above; at most the slot's own size is written.
            unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), slot.size.min(8)) };
            pointers.push(place.cast::<c_void>());
        }
        Arguments(pointers.leak().as_mut_ptr())
    }
}

/// The plan's arguments in the image's places; in places of their natural alignment where the image tells none.
fn from_plan(parameters: Option<&[Parameter]>, given: &[Argument]) -> Result<Layout, String> {
    if let Some(parameters) = parameters
        && parameters.len() != given.len()
    {
        return Err(format!("the kernel takes {} arguments, the plan gives {}", parameters.len(), given.len()));
    }
    let (mut slots, mut buffers, mut end) = (Vec::new(), Vec::new(), 0usize);
    for (index, argument) in given.iter().enumerate() {
        let (size, value) = match *argument {
            Argument::Ptr { bytes } => {
                buffers
                    .push(usize::try_from(bytes).map_err(|_| format!("argument {index}: {bytes} bytes are too many"))?);
                (8, Value::Buffer(buffers.len() - 1))
            }
            Argument::I32 { value } => (4, plain(u64::from(value.cast_unsigned()))),
            Argument::I64 { value } => (8, plain(value.cast_unsigned())),
            Argument::F32 { value } => (4, plain(u64::from(value.to_bits()))),
            Argument::F64 { value } => (8, plain(value.to_bits())),
            Argument::Zero { bytes } => (bytes as usize, Value::Zero),
        };
        let offset = match parameters {
            Some(parameters) if parameters[index].size != size => {
                let wanted = parameters[index].size;
                return Err(format!("argument {index}: the kernel takes {wanted} bytes there, the plan gives {size}"));
            }
            Some(parameters) => parameters[index].offset,
            None => end.next_multiple_of(size.clamp(1, 8).next_power_of_two()),
        };
        end = offset.saturating_add(size);
        slots.push(Slot { offset, size, value });
    }
    Ok(Layout { slots, bytes: end, buffers, adds: false })
}

/// Default arguments: see the head of this file.
fn from_image(kernel: &Kernel) -> Layout {
    let parameters = &kernel.parameters;
    let (mut slots, mut buffers, mut matrices) = (Vec::new(), Vec::new(), 0);
    let mut at = 0;
    while at < parameters.len() {
        let run = parameters[at + 1..].iter().take_while(|p| !p.pointer && p.size <= 8).count();
        if !parameters[at].pointer {
            slots.push(scalar(&parameters[at], EXTENT));
            at += 1;
            continue;
        }
        let dimensions = run / 2;
        slots.push(Slot { offset: parameters[at].offset, size: 8, value: Value::Buffer(buffers.len()) });
        for (index, parameter) in parameters[at + 1..=at + run].iter().enumerate() {
            slots.push(scalar(parameter, extent_or_stride(index, dimensions)));
        }
        matrices += usize::from(run == 4 && parameters[at + 1..=at + 4].iter().all(|p| p.size == 4));
        // Room for elements of eight bytes, whatever they are; more than three dimensions are not known to be arrays.
        buffers.push(8 * EXTENT.pow(dimensions.clamp(2, 3) as u32) as usize);
        at += run + 1;
    }
    let adds = kernel.name == ADD_KERNEL && parameters.len() == 15 && matrices == 3 && buffers.len() == 3;
    if adds {
        buffers = vec![4 * ADD_ELEMENTS; 3];
    }
    Layout { slots, bytes: 0, buffers, adds }
}

/// Value number `index` behind a pointer: first the extents, then the strides of an array whose last dimension is dense;
/// anything behind them is a number of elements.
fn extent_or_stride(index: usize, dimensions: usize) -> u64 {
    let is_stride = index >= dimensions && index < 2 * dimensions;
    if is_stride { EXTENT.pow((2 * dimensions - 1 - index).min(3) as u32) } else { EXTENT }
}

fn scalar(parameter: &Parameter, value: u64) -> Slot {
    let value = if parameter.size <= 8 { plain(value) } else { Value::Zero };
    Slot { offset: parameter.offset, size: parameter.size, value }
}

/// The add kernel's fifteen parameters, for images that do not tell theirs.
fn add_kernel() -> Layout {
    let parameters = (0..15).map(|index| {
        let (array, place) = (index / 5, index % 5);
        let offset = array * 24 + if place == 0 { 0 } else { 4 + place * 4 };
        Parameter { offset, size: if place == 0 { 8 } else { 4 }, pointer: place == 0 }
    });
    let parameters = parameters.collect();
    from_image(&Kernel { name: ADD_KERNEL.into(), parameters, buffer_bytes: 0, block: None })
}

fn plain(value: u64) -> Value {
    Value::Plain(value.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first `count` bytes of the argument buffer.
    fn bytes(arguments: Arguments, count: usize) -> Vec<u8> {
        // SAFETY: the first argument stands at the buffer's start, and the callers ask for no more than it holds.
        unsafe { std::slice::from_raw_parts((*arguments.as_mut_ptr()).cast::<u8>(), count).to_vec() }
    }

    fn words(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
    }

    #[test]
    fn the_add_kernel_gets_the_reports_arguments() {
        let layout = Layout::new(None, None).unwrap();
        assert!(layout.adds);
        assert_eq!(layout.buffers, [65536; 3]);
        let arguments = layout.bind(&[0x1111, 0x2222, 0x3333]);
        let filled = words(&bytes(arguments, 0x48));
        let array = |pointer| [pointer, 0, 128, 128, 128, 1];
        assert_eq!(filled, [array(0x1111), array(0x2222), array(0x3333)].concat());
        // SAFETY: the array holds fifteen pointers into the buffer.
        let (first, third) = unsafe { (*arguments.as_mut_ptr(), *arguments.as_mut_ptr().add(10)) };
        assert_eq!(third.addr() - first.addr(), 0x30);
    }

    fn kernel(parameters: &[(usize, usize, bool)], buffer_bytes: usize) -> Kernel {
        let parameters =
            parameters.iter().map(|&(offset, size, pointer)| Parameter { offset, size, pointer }).collect();
        Kernel { name: "k".into(), parameters, buffer_bytes, block: None }
    }

    #[test]
    fn a_buffer_reaches_to_the_hidden_parameters_and_is_zero_there() {
        let kernel = kernel(&[(0, 8, true), (8, 4, false), (12, 4, false)], 0x200);
        let arguments = Layout::new(Some(&kernel), None).unwrap().bind(&[u64::MAX]);
        let bytes = bytes(arguments, 0x200);
        assert!(bytes[16..].iter().all(|&byte| byte == 0));
        assert_eq!(words(&bytes[8..16]), [128, 1]);
    }

    #[test]
    fn a_lone_number_behind_a_pointer_counts_elements() {
        let kernel = kernel(&[(0, 8, true), (8, 8, true), (16, 4, false)], 20);
        let layout = Layout::new(Some(&kernel), None).unwrap();
        assert_eq!(layout.buffers.len(), 2);
        assert!(!layout.adds);
        assert_eq!(words(&bytes(layout.bind(&[1, 2]), 20)[16..]), [128]);
    }

    #[test]
    fn three_dimensions_are_dense() {
        assert_eq!((0..6).map(|i| extent_or_stride(i, 3)).collect::<Vec<_>>(), [128, 128, 128, 16384, 128, 1]);
    }

    #[test]
    fn a_plans_arguments_stand_where_the_image_wants_them() {
        let kernel = kernel(&[(0, 8, true), (16, 4, false), (24, 16, false)], 64);
        let given = [Argument::Ptr { bytes: 10 }, Argument::F32 { value: 1.5 }, Argument::Zero { bytes: 16 }];
        let layout = Layout::new(Some(&kernel), Some(&given)).unwrap();
        assert_eq!(layout.buffers, [10]);
        assert_eq!(words(&bytes(layout.bind(&[7]), 20)[16..]), [1.5f32.to_bits()]);
        assert!(Layout::new(Some(&kernel), Some(&given[..2])).unwrap_err().contains("takes 3 arguments"));
        let wrong = [given[0].clone(), Argument::I64 { value: 1 }, given[2].clone()];
        assert!(Layout::new(Some(&kernel), Some(&wrong)).unwrap_err().contains("argument 1"));
    }

    #[test]
    fn without_an_images_word_arguments_are_aligned_by_their_size() {
        let given = [Argument::I32 { value: -1 }, Argument::I64 { value: -2 }, Argument::Zero { bytes: 12 }];
        let layout = Layout::new(None, Some(&given)).unwrap();
        assert_eq!(layout.slots.iter().map(|slot| slot.offset).collect::<Vec<_>>(), [0, 8, 16]);
        let huge = [Argument::Zero { bytes: u32::MAX }];
        assert!(Layout::new(None, Some(&huge)).unwrap_err().contains("at most"));
    }
}
