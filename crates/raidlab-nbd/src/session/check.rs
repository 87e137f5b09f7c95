//! Whether a request can be carried out.
use super::{Action, Export, Request};
use crate::wire::{Command, RawRequest, command, error, flag};

/// The request, or the error to answer with.
pub(super) fn check(raw: &RawRequest, export: &Export, aligned: bool) -> Result<Request, u32> {
    let has = |flag: u16| export.flags & flag != 0;
    let (action, known, allowed) = match raw.command {
        Command::Read => (Action::Read, true, command::FUA),
        Command::Write => (Action::Write, true, command::FUA),
        Command::Flush => (Action::Flush, has(flag::SEND_FLUSH), command::FUA),
        Command::Trim => (Action::Trim, has(flag::SEND_TRIM), command::FUA),
        Command::WriteZeroes => {
            let hole = raw.flags & command::NO_HOLE == 0;
            let known = has(flag::SEND_WRITE_ZEROES);
            (
                Action::Zeroes { hole },
                known,
                command::FUA | command::NO_HOLE,
            )
        }
        Command::Disconnect | Command::Other(_) => return Err(error::EINVAL),
    };
    let fua = raw.flags & command::FUA != 0;
    if !known || raw.flags & !allowed != 0 || (fua && !has(flag::SEND_FUA)) {
        return Err(error::EINVAL);
    }
    let writes = !matches!(action, Action::Read | Action::Flush);
    if writes && has(flag::READ_ONLY) {
        return Err(error::EPERM);
    }
    let request = Request {
        action,
        cookie: raw.cookie,
        offset: raw.offset,
        len: raw.len,
        fua: fua && writes,
    };
    if action == Action::Flush {
        return Ok(Request {
            offset: 0,
            len: 0,
            ..request
        });
    }
    let carries = matches!(action, Action::Read | Action::Write);
    if carries && raw.len > export.blocks.maximum {
        return Err(error::EOVERFLOW);
    }
    let end = raw.offset.checked_add(u64::from(raw.len));
    if end.is_none_or(|end| end > export.size) {
        // As the protocol has it: no room for what is written, nonsense otherwise.
        return Err(match action {
            Action::Write | Action::Zeroes { .. } => error::ENOSPC,
            _ => error::EINVAL,
        });
    }
    let minimum = u64::from(export.blocks.minimum.max(1));
    let whole = raw.offset.is_multiple_of(minimum) && u64::from(raw.len).is_multiple_of(minimum);
    if raw.len == 0 || (aligned && !whole) {
        return Err(error::EINVAL);
    }
    Ok(request)
}
