//! `stress [OPTIONS] IMAGE... [SECONDS]`: the main job.

use super::options::{Options, argument_list};
use super::{plan_file, span};
use crate::cubin::Image;
use crate::driver::{self, Chosen};
use crate::exit::Exit;
use crate::plan::{Arm, Dim3, RunPlan, SimSettings, Workload};
use crate::report::live::Live;
use crate::store::{Driver, RUN_SCHEMA, RunData, RunHeader};
use crate::supervisor::run::{self as supervise, Ending};
use crate::{host, report};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How the summary is printed on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// The summary as one JSON document.
    Json,
    /// A line for each trial as it ends, then the summary as one line.
    Jsonl,
}

/// Which findings make the exit code 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailOn {
    /// Any fault.
    #[default]
    Any,
    /// None: faults are reported, and the code is 0.
    None,
}

/// What can be said on the main job's command line.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Images to load, and at the end how long to go on
    #[arg(value_name = "IMAGE... [SECONDS]")]
    positional: Vec<String>,
    #[command(flatten)]
    options: Options,
    /// A further arm: 'NAME: OPTIONS', the images under other options (repeatable)
    #[arg(long, value_name = "NAME: OPTIONS")]
    arm: Vec<String>,
    /// Read options from a TOML file; the command line and the environment win over it
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Print the plan as TOML, with where each value came from, and do nothing
    #[arg(long)]
    print_config: bool,
    /// What to print: text, json, jsonl
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = super::options::word::<Format>)]
    format: Format,
    /// Write the run for other programs too: hlog=PATH, trace=PATH (repeatable)
    #[arg(long, value_name = "FMT=PATH")]
    export: Vec<report::Export>,
    /// Which findings make the exit code 1: any, none
    #[arg(long, value_name = "WHAT", default_value = "any", value_parser = super::options::word::<FailOn>)]
    fail_on: FailOn,
    /// No progress and no log
    #[arg(short, long)]
    quiet: bool,
    /// More log (-v, -vv)
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Why a run did not begin.
struct Refused {
    exit: Exit,
    text: String,
}

fn bad_input(text: impl Into<String>) -> Refused {
    Refused { exit: Exit::BadInput, text: text.into() }
}

/// Runs the command.
pub fn main(args: &RunArgs) -> Exit {
    match run(args) {
        Ok(exit) => exit,
        Err(refused) => {
            crate::say::log(format_args!("stress: {}", refused.text));
            refused.exit
        }
    }
}

fn run(args: &RunArgs) -> Result<Exit, Refused> {
    let (said, file) = gather(args)?;
    let merged = said.clone().over(file.clone());
    let paths = merged.image.clone().unwrap_or_default();
    if paths.is_empty() {
        return Err(bad_input("no image given; try `stress cubins/tile/add.sm_120.cubin 20`, or `stress --help`"));
    }
    let images = super::sources::images(&merged, &paths).map_err(|e| Refused { exit: e.exit, text: e.text })?;
    let plan = plan(&merged, &images, &args.arm)?;
    if args.print_config {
        print!("{}", plan_file::explain(&said, &file, &plan));
        return Ok(Exit::Clean);
    }
    let by_arm: Vec<&Image> = plan.arms.iter().map(|arm| image_of(arm, &images)).collect();
    if let Err(refused) = check_kernels(&plan, &by_arm) {
        return Err(with_leniency(refused, plan, &by_arm));
    }
    let chosen = driver::choose(&plan.driver).map_err(|e| Refused { exit: Exit::CannotRun, text: e.to_string() })?;
    announce(&chosen, args.quiet);
    let header = header(plan, &by_arm, &chosen);
    let bytes = by_arm.iter().map(|image| image.bytes.clone()).collect();
    let mut live = Live::new(args.quiet, args.format == Format::Jsonl, header.plan.seconds);
    let ended =
        supervise::run(header, bytes, &mut live).map_err(|e| Refused { exit: unbegun(&e), text: e.to_string() })?;
    drop(live);
    finish(args, ended)
}

/// Command line and environment, and the plan file.
fn gather(args: &RunArgs) -> Result<(Options, Options), Refused> {
    let mut said = args.options.clone();
    let mut words = args.positional.clone();
    // The last word is a span of time unless it is a file.
    if let Some(seconds) = words.last().filter(|word| !Path::new(word).exists()).and_then(|word| span::parse(word)) {
        words.pop();
        said.seconds = Some(seconds);
    }
    if let Some(word) = words.last().filter(|word| looks_like_a_span(word) && !Path::new(word).exists()) {
        return Err(bad_input(format!("`{word}` is neither a file nor a span of time such as 20, 90s, 2m or 1h")));
    }
    if !words.is_empty() {
        said.image = Some(words.into_iter().map(PathBuf::from).collect());
    }
    let file = match &args.plan {
        Some(path) => plan_file::read(path).map_err(bad_input)?,
        None => Options::default(),
    };
    Ok((said, file))
}

fn looks_like_a_span(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains(['/', '*'])
        || ["nan", "inf"].contains(&word.to_ascii_lowercase().as_str())
}

fn plan(o: &Options, images: &[Image], more: &[String]) -> Result<RunPlan, Refused> {
    let base = workload(o)?;
    let mut arms = named(images, None, &base);
    for text in more {
        let (name, options) = arm_options(text)?;
        let with = workload(&options.over(o.clone()))?;
        arms.extend(named(images, Some(&name), &with));
    }
    let names: BTreeSet<&str> = arms.iter().map(|a| a.name.as_str()).collect();
    if names.len() != arms.len() {
        return Err(bad_input("two arms have the same name: name them apart with --arm 'NAME: OPTIONS'"));
    }
    let d = RunPlan::default();
    let life = if arms.len() > 1 { 2.0 } else { d.life };
    let plan = RunPlan {
        seconds: o.seconds.unwrap_or(d.seconds),
        life: o.life.unwrap_or(life),
        seed: o.seed.unwrap_or_else(host::seed_from_clock),
        driver: o.driver.as_deref().map_or(d.driver, |driver| driver.parse().unwrap_or_default()),
        device: o.device.unwrap_or(d.device),
        sim: sim_settings(o, images)?,
        max_faults: o.max_faults,
        trials: o.trials,
        hang_after: o.hang_after.unwrap_or(d.hang_after),
        observe: o.observe.unwrap_or(d.observe),
        journal: o.journal.unwrap_or(d.journal),
        gate: o.gate.unwrap_or(d.gate),
        core: o.core.unwrap_or(d.core),
        rlimits: o.rlimit.clone().unwrap_or(d.rlimits),
        out: o.out.clone().unwrap_or(d.out),
        confidence: o.confidence.unwrap_or(d.confidence),
        exposure_floor: o.exposure_floor.unwrap_or(d.exposure_floor),
        arms,
    };
    plan.validate().map_err(bad_input)?;
    Ok(plan)
}

fn workload(o: &Options) -> Result<Workload, Refused> {
    let d = Workload::default();
    let args = argument_list(o.args.as_deref().unwrap_or("auto")).map_err(|e| bad_input(format!("--args: {e}")))?;
    let w = Workload {
        threads: o.threads.unwrap_or(d.threads),
        keep: o.keep.unwrap_or(d.keep),
        kernel: o.kernel.clone(),
        grid: o.grid.unwrap_or(Dim3(1, 1, 1)),
        block: o.block,
        args,
        context: o.context.unwrap_or_default(),
        sync: o.sync.unwrap_or_default(),
        lock: o.lock.unwrap_or_default(),
        api: o.api.unwrap_or_default(),
        verify: o.verify.unwrap_or_default(),
        steer: o.steer.unwrap_or_default(),
        spread: o.spread.unwrap_or_default(),
        unique_byte: None,
        script: o.op.clone().unwrap_or_default(),
    };
    if !(1..=1024).contains(&w.threads) {
        return Err(bad_input(format!("--threads {}: takes 1 to 1024", w.threads)));
    }
    Ok(w)
}

fn named(images: &[Image], arm: Option<&str>, workload: &Workload) -> Vec<Arm> {
    let short = images.iter().map(|image| image.short_name()).collect::<BTreeSet<_>>().len() == images.len();
    let name = |image: &Image| if short { image.short_name() } else { image.path.display().to_string() };
    let full = |image: &Image| match arm {
        None => name(image),
        Some(arm) if images.len() == 1 => arm.to_owned(),
        Some(arm) => format!("{} {arm}", name(image)),
    };
    let workload = |image: &Image| {
        let kernel = image.launch.clone().or_else(|| workload.kernel.clone());
        Workload { kernel, unique_byte: image.unique_byte, ..workload.clone() }
    };
    images.iter().map(|i| Arm { name: full(i), image: i.path.clone(), workload: workload(i) }).collect()
}

/// Reads `NAME: OPTIONS` with the same parser as the command line.
fn arm_options(text: &str) -> Result<(String, Options), Refused> {
    #[derive(clap::Parser)]
    #[command(no_binary_name = true, disable_help_flag = true)]
    struct ArmCli {
        #[command(flatten)]
        options: Options,
    }
    let (name, words) =
        text.split_once(':').ok_or_else(|| bad_input(format!("--arm '{text}': expected 'NAME: OPTIONS'")))?;
    let parsed = <ArmCli as clap::Parser>::try_parse_from(words.split_whitespace());
    let parsed = parsed.map_err(|e| bad_input(format!("--arm '{text}': {}", e.to_string().trim_end())))?;
    Ok((name.trim().to_owned(), parsed.options))
}

fn sim_settings(o: &Options, images: &[Image]) -> Result<SimSettings, Refused> {
    let bugs = driver::embedded::bugs().iter().map(|bug| (bug.name, bug.keys));
    check_setting("--sim-bug", "bugs", o.sim_bug.as_deref(), bugs)?;
    let profiles = driver::embedded::profiles().iter().map(|profile| (profile.name, profile.keys));
    check_setting("--sim-profile", "profiles", o.sim_profile.as_deref(), profiles)?;
    let device = o.sim_device.clone().or_else(|| images.iter().find_map(Image::arch_name));
    Ok(SimSettings { bug: o.sim_bug.clone(), profile: o.sim_profile.clone(), device })
}

/// A setting `NAME[:key=value,...]` of the simulated driver whose name or key it does not know is refused here, by name.
fn check_setting(
    flag: &str,
    list: &str,
    said: Option<&str>,
    known: impl Iterator<Item = (&'static str, &'static [(&'static str, &'static str)])>,
) -> Result<(), Refused> {
    let Some(said) = said else { return Ok(()) };
    let (name, pairs) = said.split_once(':').unwrap_or((said, ""));
    let Some((_, keys)) = known.into_iter().find(|(other, _)| *other == name) else {
        return Err(bad_input(format!("{flag} {name}: there is no such thing (see `stress sim {list}`)")));
    };
    let said_keys = pairs.split(',').filter(|pair| !pair.is_empty()).map(|pair| pair.split('=').next().unwrap_or(pair));
    match said_keys.into_iter().find(|key| *key != "seed" && !keys.iter().any(|(known, _)| known == key)) {
        Some(key) => Err(bad_input(format!("{flag} {name}: it has no key `{key}` (see `stress sim {list}`)"))),
        None => Ok(()),
    }
}

fn image_of<'a>(arm: &Arm, images: &'a [Image]) -> &'a Image {
    images.iter().find(|image| image.path == arm.image).unwrap_or(&images[0])
}

/// A kernel that is not in the image is the user's error whatever the driver makes of it: found here, before any driver call.
fn check_kernels(plan: &RunPlan, by_arm: &[&Image]) -> Result<(), Refused> {
    for (arm, image) in plan.arms.iter().zip(by_arm) {
        image.kernel(arm.workload.kernel.as_deref()).map_err(|e| bad_input(e.to_string()))?;
    }
    Ok(())
}

/// Asks the driver too, in a child, and adds what it says where that is worth knowing.
fn with_leniency(refused: Refused, plan: RunPlan, by_arm: &[&Image]) -> Refused {
    let Ok(chosen) = driver::choose(&plan.driver) else { return refused };
    let bytes = by_arm.iter().map(|image| image.bytes.clone()).collect();
    match supervise::first_words(header(plan, by_arm, &chosen), bytes) {
        Some(words) => Refused { text: format!("{}\nstress: note: {words}", refused.text), ..refused },
        None => refused,
    }
}

fn announce(chosen: &Chosen, quiet: bool) {
    if chosen.fallback {
        crate::say::log(format_args!(
            "stress: NO NVIDIA DRIVER AND NO DEVICE HERE: using the SIMULATED driver (say --driver sim to mean it, or --driver real to refuse it)"
        ));
    } else if !quiet && chosen.kind == crate::plan::DriverKind::Simulated {
        crate::say::log(format_args!("stress: using the SIMULATED driver"));
    }
}

fn header(plan: RunPlan, by_arm: &[&Image], chosen: &Chosen) -> RunHeader {
    let mut command: Vec<String> = std::env::args().collect();
    if let Some(program) = command.first_mut() {
        *program = "stress".to_owned();
    }
    let started = host::now();
    let driver = Driver {
        kind: chosen.kind,
        path: chosen.path.clone(),
        version: chosen.identity.version.clone(),
        build_id: chosen.identity.build_id.clone(),
        device: None,
        bug: None,
    };
    RunHeader {
        schema: RUN_SCHEMA.to_owned(),
        run_id: host::run_id(&started, plan.seed),
        command,
        started,
        driver,
        images: by_arm.iter().map(|image| crate::store::Image::from(*image)).collect(),
        host: host::describe(),
        plan,
    }
}

/// Writes and prints the summary, and gives the exit code.
fn finish(args: &RunArgs, mut ended: supervise::Ended) -> Result<Exit, Refused> {
    let exit = exit_code(&ended.data, &ended.ending, args.fail_on);
    let exit = exports(&args.export, &ended.data, &ended.folder).or(exit);
    if let Some(end) = &mut ended.data.end {
        end.exit_code = exit.code();
    }
    let data: &RunData = &ended.data;
    let summary = report::summary(data);
    let text = report::text(&summary, Some(&ended.folder));
    let json = serde_json::to_string_pretty(&summary)
        .map_err(|e| Refused { exit: Exit::Internal, text: format!("cannot write the summary: {e}") })?;
    for (name, bytes) in [("summary.json", json.as_bytes()), ("summary.txt", text.as_bytes())] {
        if let Err(e) = ended.write_report(name, bytes) {
            crate::say::log(format_args!("stress: {e}"));
        }
    }
    let line = serde_json::to_string(&summary).unwrap_or_default();
    let shown = match args.format {
        Format::Text => text,
        Format::Json => json + "\n",
        Format::Jsonl => line + "\n",
    };
    match crate::say::data(shown.as_bytes()) {
        Ok(()) => Ok(exit),
        Err(e) => {
            crate::say::log(format_args!("stress: the summary cannot be printed: {e}"));
            Ok(exit.or(Exit::Internal))
        }
    }
}

/// The exit code of a run that could not be carried out: a folder that cannot be written is the user's to choose, a child
/// that cannot be started is the machine's.
fn unbegun(error: &supervise::RunError) -> Exit {
    match error {
        supervise::RunError::Store(_) => Exit::BadInput,
        supervise::RunError::Trial(_) => Exit::CannotRun,
        supervise::RunError::Signals(_) => Exit::Internal,
    }
}

/// Writes what `--export` asks for; what cannot be written makes the exit code 2.
pub fn exports(exports: &[report::Export], data: &RunData, folder: &Path) -> Exit {
    let mut exit = Exit::Clean;
    for problem in exports.iter().filter_map(|export| export.write(data, folder).err()) {
        crate::say::log(format_args!("stress: {problem}"));
        exit = Exit::BadInput;
    }
    exit
}

fn exit_code(data: &RunData, ending: &Ending, fail_on: FailOn) -> Exit {
    match ending {
        Ending::Interrupted => return Exit::Interrupted,
        Ending::Terminated => return Exit::Terminated,
        Ending::TimeUp | Ending::Enough => {}
    }
    let exit = data.end.as_ref().map_or(Exit::Internal, |end| Exit::from_code(end.exit_code));
    if exit == Exit::FaultFound && fail_on == FailOn::None { Exit::Clean } else { exit }
}
