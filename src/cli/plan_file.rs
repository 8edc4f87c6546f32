//! Options in a TOML file, and `--print-config`.

use super::options::Options;
use crate::plan::RunPlan;
use std::path::Path;

/// Reads a plan file.
///
/// # Errors
/// With the file, the line and what was expected.
pub fn read(path: &Path) -> Result<Options, String> {
    let bytes = crate::cubin::read_file(path).map_err(|e| e.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8 text", path.display()))?;
    let mut options: Options =
        toml::from_str(&text).map_err(|e| format!("{}: {}", path.display(), e.to_string().trim_end()))?;
    // Images in a plan file are meant from where the file stands.
    let base = path.parent().unwrap_or(Path::new(""));
    for image in options.image.iter_mut().flatten() {
        *image = base.join(&*image);
    }
    Ok(options)
}

/// The plan as TOML, with where each option came from.
pub fn explain(said: &Options, file: &Options, plan: &RunPlan) -> String {
    let mut out = String::from("# where each option came from: ");
    let words: Vec<String> = Options::names()
        .into_iter()
        .map(|name| {
            let from = match () {
                () if said.says(&name) => "command line or environment",
                () if file.says(&name) => "plan file",
                () => "default",
            };
            format!("#   {name}: {from}")
        })
        .collect();
    out.push('\n');
    out.push_str(&words.join("\n"));
    out.push_str("\n\n");
    match toml::to_string_pretty(plan) {
        Ok(text) => out.push_str(&text),
        Err(e) => out.push_str(&format!("# the plan cannot be shown as TOML: {e}\n")),
    }
    out
}
