//! What the run stands on: a device, a library, an entry point or memory that is not there.

use super::device_code::STICKY;
use super::{Facts, Judgement, judgement, lines};
use crate::vocabulary::{Confidence, Kind, Owner, Phase};

/// Codes that speak of the machine and not of the calls, with what to do.
const CODES: &[(i32, &str)] = &[
    (2, "free memory on the device, or use another one"),
    (3, "look at the driver's installation"),
    (34, "this is a stub library: point --driver at the real one"),
    (35, "update the driver"),
    (46, "another process holds the device: see `nvidia-smi`"),
    (100, "no device is visible: see `nvidia-smi` and CUDA_VISIBLE_DEVICES"),
    (101, "choose another --device"),
    (209, "use an image for this device's architecture"),
    (221, "install the JIT library that the message names"),
    (222, "use an image made for this driver, or update the driver"),
    (500, "choose a kernel that is in the image with --kernel"),
    (802, "wait for the system's services (fabric manager), then run again"),
    (803, "driver and kernel module differ: reboot"),
    (804, "driver and kernel module differ: reboot"),
];

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let known = facts.code.and_then(|code| CODES.iter().find(|(known, _)| *known == code));
    // Before the first module call nothing of the plan has happened yet: whatever fails there was there before. Not so a
    // sticky code, which a thread that is still getting ready meets when another one's launch went wrong.
    let sticky = facts.code.is_some_and(|code| STICKY.contains(&code));
    let startup =
        (facts.phase == Phase::Startup && !sticky).then_some("see what `--driver` names, and try --driver sim");
    let early = matches!(facts.phase, Phase::Startup | Phase::Load | Phase::GetFunction);
    let next = known.map(|(_, next)| *next).or(startup)?;
    (facts.kind == Kind::ApiError && early).then(|| {
        judgement(
            Owner::Environment,
            Some(Confidence::Likely),
            "what the run stands on is not there",
            lines([facts.note.clone(), facts.code.map(|code| format!("code {code} in {}", facts.phase))]),
            next,
        )
    })
}
