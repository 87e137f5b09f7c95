//! Exit codes, and failures that carry theirs.
use std::process::ExitCode;

/// A gate found *worse*.
pub(crate) const WORSE: Code = Code(1);
/// The request makes no sense: a wrong option, unit, file or path.
pub(crate) const BAD_REQUEST: Code = Code(2);
/// Refused, because someone's data could be lost.
pub(crate) const REFUSED: Code = Code(3);
/// Something that is needed is missing: space, permission, a kernel feature.
pub(crate) const MISSING: Code = Code(4);
/// A trial failed, or something was left behind that could not be removed.
pub(crate) const TRIAL_FAILED: Code = Code(5);
/// A gate that must judge by intervals cannot tell.
pub(crate) const CANNOT_TELL: Code = Code(6);
/// Interrupted, and cleaned up.
pub(crate) const INTERRUPTED: Code = Code(130);

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u8);

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}

/// How a command that did what it was asked to do ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done.
    Done,
    /// Done, and the answer is that the candidate is worse.
    Worse,
    /// Done, and the answer that was required cannot be told.
    CannotTell,
    /// Stopped by the user; nothing is left behind.
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Worse => WORSE.into(),
            Outcome::CannotTell => CANNOT_TELL.into(),
            Outcome::Interrupted => INTERRUPTED.into(),
        }
    }
}

/// Why a command could not do what it was asked to do, and what would help.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    /// What failed, with the cause.
    pub(crate) message: String,
    /// What the user can do about it.
    pub(crate) remedy: Option<String>,
    /// The message is laid out and coloured already: problems of a file, each with its line.
    pub(crate) laid_out: bool,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            remedy: None,
            laid_out: false,
        }
    }

    /// A request with a file that is wrong; `text` tells all of it, laid out for a terminal.
    pub(crate) fn bad_file(text: impl Into<String>) -> Self {
        Self {
            laid_out: true,
            ..Self::new(BAD_REQUEST, text)
        }
    }

    /// A request that makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(BAD_REQUEST, message)
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// An error of a library with all its causes on one line.
    pub(crate) fn from_error(code: Code, error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let text = inner.to_string();
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = inner.source();
        }
        Self::new(code, message)
    }
}
