//! What an approver says to an enforcer without being asked: text for its agent, or a statement about a device
//! (docs/prompts.md). Built, sealed and sent by the approver; opened, checked and answered by the enforcer.

mod write;

mod read;

pub(crate) use read::answer;
pub use read::{OpenedPrompt, PromptReader, PromptRefused};
pub use write::{Prompt, PromptContent, PromptDraft, PromptError};
