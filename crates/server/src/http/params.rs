//! What paths and queries say.

use std::{str::FromStr, time::Duration};

use axum::{
    extract::{FromRequestParts, Query, RawPathParams},
    http::request::Parts,
};
use countersign_wire::{Error, limits};

use super::error_response::Refusal;
use crate::app::Shared;

/// The one id in a path.
#[derive(Debug)]
pub(crate) struct InPath<T>(pub(crate) T);

/// The two ids in a path.
#[derive(Debug)]
pub(crate) struct BothInPath<A, B>(pub(crate) A, pub(crate) B);

fn id<T: FromStr>(text: Option<String>) -> Result<T, Refusal> {
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        Refusal::invalid(&Error::breaks(
            "path",
            "must have ids of 1 to 256 bytes of UTF-8 without control characters",
        ))
    })
}

async fn values(parts: &mut Parts, app: &Shared) -> Vec<String> {
    match RawPathParams::from_request_parts(parts, app).await {
        Ok(params) => params.iter().map(|(_, value)| value.to_owned()).collect(),
        // Not UTF-8: no id at all.
        Err(_) => Vec::new(),
    }
}

impl<T: FromStr> FromRequestParts<Shared> for InPath<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let mut values = values(parts, app).await.into_iter();
        Ok(Self(id(values.next())?))
    }
}

impl<A: FromStr, B: FromStr> FromRequestParts<Shared> for BothInPath<A, B> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let mut values = values(parts, app).await.into_iter();
        Ok(Self(id(values.next())?, id(values.next())?))
    }
}

/// The query, each name at most once. Names that are not asked for are ignored.
#[derive(Debug)]
pub(crate) struct Asked(Vec<(String, String)>);

impl FromRequestParts<Shared> for Asked {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::from_request_parts(parts, app).await else {
            return Err(Refusal::invalid(&Error::breaks("query", "can't be read")));
        };
        Ok(Self(pairs))
    }
}

impl Asked {
    /// One parameter.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<&str>, Refusal> {
        let mut found = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match (found.next(), found.next()) {
            (found, None) => Ok(found),
            _ => Err(Refusal::invalid(&Error::breaks(name, "is given more than once"))),
        }
    }

    /// How many items; more than there can be is cut.
    pub(crate) fn limit(&self) -> Result<u32, Refusal> {
        let rule = "must be a whole number from 1";
        match self.whole("limit", rule)? {
            None => Ok(limits::DEFAULT_PAGE_ITEMS),
            Some(0) => Err(Refusal::invalid(&Error::breaks("limit", rule))),
            Some(limit) => Ok(u32::try_from(limit)
                .map_or(limits::MAX_PAGE_ITEMS, |limit| limit.min(limits::MAX_PAGE_ITEMS))),
        }
    }

    /// How long to wait; longer than there can be is cut.
    pub(crate) fn timeout(&self) -> Result<Duration, Refusal> {
        let seconds = self.whole("timeout", "must be a whole number of seconds, 0 to 60")?;
        Ok(Duration::from_secs(seconds.unwrap_or(limits::DEFAULT_WAIT_SECONDS).min(limits::MAX_WAIT_SECONDS)))
    }

    fn whole(&self, name: &'static str, rule: &'static str) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Refusal::invalid(&Error::breaks(name, rule)));
        }
        // All digits and yet too large for a u64: cut like any other that is too large.
        Ok(Some(text.parse().unwrap_or(u64::MAX)))
    }
}
