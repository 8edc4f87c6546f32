//! The images of a run: what the words on the command line name, read or compiled.

use super::derived::with_derived;
use super::options::Options;
use crate::cubin::child::{Child, Ending};
use crate::cubin::compile::{CompileError, CompilerFinding};
use crate::cubin::sources::{SourceError, Workshop, load};
use crate::cubin::tools::Tools;
use crate::cubin::{Image, read_file};
use crate::driver;
use crate::exit::Exit;
use crate::plan::{DriverChoice, Spread};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a driver may take to come up and name its device.
const DEVICE_LIMIT: Duration = Duration::from_secs(60);

/// Why there are no images.
pub struct NoImages {
    /// The exit code.
    pub exit: Exit,
    /// One line.
    pub text: String,
}

/// Name of the shape of a compiler's crash or hang on disk.
const FINDING_SCHEMA: &str = "cubin-stress/compiler-finding/1";

/// A compiler's crash or hang, as it is written beside its input.
#[derive(Serialize)]
struct Finding<'a> {
    schema: &'static str,
    kind: crate::vocabulary::Kind,
    phase: crate::vocabulary::Phase,
    #[serde(flatten)]
    finding: &'a CompilerFinding,
    input_sha256: Option<String>,
}

/// Reads or compiles the images that `words` name.
///
/// # Errors
/// With the exit code of the first that gives none. A compiler that crashed or hung is kept under the results folder.
pub fn images(options: &Options, words: &[PathBuf]) -> Result<Vec<Image>, NoImages> {
    let own = own_program()?;
    let io = |what: &str, e: std::io::Error| NoImages { exit: Exit::CannotRun, text: format!("{what}: {e}") };
    let scratch = tempfile::tempdir().map_err(|e| io("a folder for compilers", e))?;
    let keep_in = options.out.clone().unwrap_or_else(|| "results".into()).join("compiler-findings");
    let device = std::cell::OnceCell::new();
    let arch = || device.get_or_init(|| device_arch(options, &own)).clone();
    let workshop = Workshop {
        tools: &Tools::new(own.clone(), options.python.as_deref()),
        arch: &arch,
        say: &|text| crate::say::log(format_args!("stress: {text}")),
        scratch: scratch.path(),
        keep_in: &keep_in,
    };
    let mut images = Vec::new();
    for word in words {
        match load(word, options.source, &workshop) {
            Ok(found) => images.extend(found),
            Err(error) => {
                let kept = keep(&error, &keep_in);
                return Err(NoImages { exit: error.exit(), text: format!("{error}{kept}") });
            }
        }
    }
    if options.spread.unwrap_or_default() != Spread::Same && images.len() > 1 {
        return spread(options, words, &images);
    }
    with_derived(options, images, &workshop)
}

/// All images as one arm, whose threads take different ones.
fn spread(options: &Options, words: &[PathBuf], images: &[Image]) -> Result<Vec<Image>, NoImages> {
    if options.with_twin == Some(true) || options.with_variants == Some(true) {
        let text =
            "--spread makes one arm of all images, --with-twin and --with-variants more arms of each: say one of them";
        return Err(NoImages { exit: Exit::BadInput, text: text.into() });
    }
    let name = match words {
        [word] => word.clone(),
        _ => PathBuf::from(format!("{} and {} more", images[0].path.display(), images.len() - 1)),
    };
    Ok(Image::bundle(&name, images).into_iter().collect())
}

fn own_program() -> Result<PathBuf, NoImages> {
    std::env::current_exe()
        .map_err(|e| NoImages { exit: Exit::Internal, text: format!("cannot find this program: {e}") })
}

/// Writes a compiler's crash or hang down; where to, for the message.
fn keep(error: &SourceError, folder: &Path) -> String {
    let SourceError::Compile(CompileError::Finding(finding)) = error else { return String::new() };
    let input_sha256 = read_file(&finding.input).ok().map(|bytes| {
        use sha2::Digest;
        crate::cubin::hex(&sha2::Sha256::digest(bytes))
    });
    let (kind, phase) = (crate::vocabulary::Kind::Compiler, crate::vocabulary::Phase::Compile);
    let record = Finding { schema: FINDING_SCHEMA, kind, phase, finding, input_sha256 };
    let path = folder.join(format!("finding-{}.json", std::process::id()));
    let written = serde_json::to_string_pretty(&record)
        .map_err(std::io::Error::other)
        .and_then(|json| std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, json + "\n")));
    match written {
        Ok(()) => format!("; what is known is in {}", path.display()),
        Err(e) => format!("; it could not be written down: {}: {e}", path.display()),
    }
}

/// The architecture that `--sim-device` names, else that of the driver's device, asked in a child.
fn device_arch(options: &Options, own: &Path) -> Result<u32, String> {
    if let Some(named) = &options.sim_device {
        let digits: String = named.trim_start_matches("sm_").chars().filter(char::is_ascii_digit).collect();
        return digits.parse().map_err(|_| format!("--sim-device {named}: expected an architecture such as sm_120"));
    }
    let choice = options.driver.as_deref().map_or(DriverChoice::Auto, |text| text.parse().unwrap_or_default());
    let chosen = driver::choose(&choice).map_err(|e| e.to_string())?;
    let device = options.device.unwrap_or(0).to_string();
    let words = ["device-arch".as_ref(), chosen.path.as_os_str(), device.as_ref()];
    let child = Child { own_program: own.to_owned(), limit: DEVICE_LIMIT };
    let finished = child.run(own, &words, None, &[]).map_err(|e| format!("cannot ask for the device: {e}"))?;
    match finished.ending {
        Ending::Exited(0) => {
            let text = String::from_utf8_lossy(&finished.stdout).trim().to_owned();
            text.parse().map_err(|_| format!("the driver's device has no architecture: {text:?}"))
        }
        Ending::Exited(_) => Err(finished.last_words(300)),
        other => Err(format!("asking the driver for its device failed: the child {other}")),
    }
}
