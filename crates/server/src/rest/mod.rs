//! Requests and answers over HTTP.

pub(crate) mod access_log;
pub(crate) mod body;
pub(crate) mod cursor;
pub(crate) mod limited_answer;
pub(crate) mod pair_id;
pub(crate) mod params;
pub(crate) mod response;
pub(crate) mod unread_body;
