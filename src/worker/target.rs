//! Which kernel is launched, and how: the plan's word, else the image's, else the report's.

use super::arguments::{ADD_KERNEL, Layout};
use super::crew::Target;
use super::image::Image;
use crate::plan::{Dim3, Workload};
use std::ffi::CString;

/// What keeps a plan from fitting its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The image holds no kernel of that name.
    Absent {
        /// The name that the plan wants.
        kernel: CString,
        /// One line.
        text: String,
    },
    /// Anything else, in one line.
    Other(String),
}

impl Target {
    /// Fits the plan to the image.
    ///
    /// # Errors
    /// Where they do not fit: known before any driver call.
    pub fn new(workload: &Workload, image: &Image) -> Result<Target, Misfit> {
        let other = |text: String| Misfit::Other(format!("{}: {text}", image.path.display()));
        let name = name(workload, image).map_err(other)?;
        let kernel =
            CString::new(name.as_str()).map_err(|_| other(format!("a kernel's name with NUL in it: {name:?}")))?;
        let facts = image.kernel(&name);
        if let (Some(kernels), None) = (&image.kernels, facts) {
            let present: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            let present = if present.is_empty() { "none".into() } else { present.join(", ") };
            let text = format!("{}: no kernel {name} in this image; kernels present: {present}", image.path.display());
            return Err(Misfit::Absent { kernel, text });
        }
        let layout = Layout::new(facts, workload.args.as_deref()).map_err(other)?;
        let block = workload.block.unwrap_or_else(|| default_block(image, facts.and_then(|facts| facts.block)));
        Ok(Target { kernel, layout, grid: workload.grid, block })
    }
}

impl Target {
    /// Whether a further image takes the very same launch.
    ///
    /// # Errors
    /// One line, where it does not.
    pub fn also_fits(&self, workload: &Workload, image: &Image) -> Result<(), String> {
        let other = Target::new(workload, image).map_err(|misfit| match misfit {
            Misfit::Absent { text, .. } | Misfit::Other(text) => text,
        })?;
        let same = other.kernel == self.kernel && other.layout == self.layout && other.block == self.block;
        let text = "kernel, parameters or block differ from those of the first image: threads cannot share one launch";
        if same { Ok(()) } else { Err(format!("{}: {text}", image.path.display())) }
    }
}

/// A driver applies the block size that a Tile image requires by itself, so 1 x 1 x 1 is what its callers give.
fn default_block(image: &Image, required: Option<Dim3>) -> Dim3 {
    if image.tile { Dim3::default() } else { required.unwrap_or_default() }
}

/// The plan's kernel, the image's only one, or the one that this project's images hold.
fn name(workload: &Workload, image: &Image) -> Result<String, String> {
    if let Some(name) = &workload.kernel {
        return Ok(name.clone());
    }
    match image.kernels.as_deref() {
        None => Ok(ADD_KERNEL.into()),
        Some([only]) => Ok(only.name.clone()),
        Some(kernels) if kernels.iter().any(|kernel| kernel.name == ADD_KERNEL) => Ok(ADD_KERNEL.into()),
        Some([]) => Err("the image holds no kernel".into()),
        Some(kernels) => {
            let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            Err(format!("the image holds several kernels, choose one with --kernel: {}", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn committed(name: &str) -> Image {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins").join(name);
        Image::read(std::fs::read(&path).unwrap(), &path).unwrap()
    }

    #[test]
    fn a_tile_image_is_launched_with_one_thread_and_a_regular_one_as_it_requires() {
        let workload = Workload::default();
        let tile = Target::new(&workload, &committed("tile/add.sm_120.cubin")).unwrap();
        assert_eq!((tile.grid, tile.block), (Dim3(1, 1, 1), Dim3(1, 1, 1)));
        let regular = Target::new(&workload, &committed("ptx/add.sm_120.cubin")).unwrap();
        assert!(regular.block.0 > 1);
        assert!(tile.layout.adds && regular.layout.adds);
    }

    #[test]
    fn an_absent_kernel_is_named_beside_those_that_are_there() {
        let workload = Workload { kernel: Some("no_such_kernel".into()), ..Workload::default() };
        let misfit = Target::new(&workload, &committed("ptx/add.sm_120.cubin")).err().unwrap();
        let Misfit::Absent { text, .. } = misfit else { panic!("{misfit:?}") };
        for part in ["no_such_kernel", "ptx/add.sm_120.cubin", "repro_kernel"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn of_several_kernels_one_must_be_chosen() {
        let image = committed("tile/multi.sm_120.cubin");
        let misfit = Target::new(&Workload::default(), &image).err().unwrap();
        assert!(matches!(&misfit, Misfit::Other(text) if text.contains("--kernel")), "{misfit:?}");
        let name = image.kernels.as_ref().unwrap()[0].name.clone();
        Target::new(&Workload { kernel: Some(name), ..Workload::default() }, &image).unwrap();
    }
}
