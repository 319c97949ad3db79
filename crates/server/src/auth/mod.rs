//! Who calls. Permission shows in a handler's signature: it names the role it wants, and gets nothing else.

mod caller;
mod keys;
mod standing;

pub(crate) use caller::{Approver, Caller, Enforcer, Operator, Participant};
pub(crate) use keys::Keys;
pub(crate) use standing::Standing;
