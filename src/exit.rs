//! Every exit code of `stress`. Public: they change only with a major version.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Ran, enough exposure, no fault.
    Clean = 0,
    /// At least one fault.
    FaultFound = 1,
    /// Bad arguments, configuration or image.
    BadInput = 2,
    /// Cannot run here: no usable driver or GPU, wrong architecture, missing library or entry point, foreign host object.
    CannotRun = 3,
    /// Too little work or exposure to say anything.
    Inconclusive = 4,
    /// The host or the GPU is not trustworthy after the run.
    Untrusted = 5,
    /// Something in this tool went wrong.
    Internal = 70,
    /// Ended at once by a second Ctrl-C.
    Interrupted = 130,
    /// Ended by SIGTERM, after saving.
    Terminated = 143,
}

impl Exit {
    /// The order in which several endings of one run are weighed: the first that applies is the exit code.
    const PRECEDENCE: [Exit; 7] = [
        Exit::Internal,
        Exit::BadInput,
        Exit::CannotRun,
        Exit::Untrusted,
        Exit::FaultFound,
        Exit::Inconclusive,
        Exit::Clean,
    ];

    /// The ending that wins when both apply.
    pub fn or(self, other: Exit) -> Exit {
        // A run that was ended at once says so, whatever it had found by then.
        let ended = [self, other].into_iter().find(|e| !Self::PRECEDENCE.contains(e));
        ended.or_else(|| Self::PRECEDENCE.into_iter().find(|&e| e == self || e == other)).unwrap_or(self)
    }

    /// The ending of this number; a number that none has is a bug of this tool.
    pub fn from_code(code: u8) -> Exit {
        let all = [Exit::Interrupted, Exit::Terminated].into_iter().chain(Self::PRECEDENCE);
        all.into_iter().find(|exit| exit.code() == code).unwrap_or(Exit::Internal)
    }

    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit::*;

    #[test]
    fn a_fault_outweighs_too_little_exposure_and_a_broken_host_outweighs_a_fault() {
        assert_eq!(FaultFound.or(Inconclusive), FaultFound);
        assert_eq!(FaultFound.or(Untrusted), Untrusted);
        assert_eq!(Clean.or(Inconclusive), Inconclusive);
        assert_eq!(CannotRun.or(FaultFound), CannotRun);
        assert_eq!(Internal.or(BadInput), Internal);
        assert_eq!((Clean.or(Terminated), Interrupted.or(FaultFound)), (Terminated, Interrupted));
    }
}
