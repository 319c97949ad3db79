//! Ids in paths, and query parameters.

use std::{str::FromStr, time::Duration};

use axum::{
    extract::{FromRequestParts, Query, RawPathParams},
    http::request::Parts,
};
use countersign_wire::limits;

use crate::{error::ApiError, state::SharedState};

/// The one id in a path.
#[derive(Debug)]
pub(crate) struct PathId<T>(pub(crate) T);

/// The two ids in a path.
#[derive(Debug)]
pub(crate) struct PathIds<A, B>(pub(crate) A, pub(crate) B);

fn id<T: FromStr>(text: Option<String>) -> Result<T, ApiError> {
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        ApiError::breaks("path", "must have ids of 1 to 256 bytes of UTF-8 without control characters")
    })
}

async fn values(parts: &mut Parts, app: &SharedState) -> Vec<String> {
    match RawPathParams::from_request_parts(parts, app).await {
        Ok(params) => params.iter().map(|(_, value)| value.to_owned()).collect(),
        // Not UTF-8: no id at all.
        Err(_) => Vec::new(),
    }
}

impl<T: FromStr> FromRequestParts<SharedState> for PathId<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
        let mut values = values(parts, app).await.into_iter();
        Ok(Self(id(values.next())?))
    }
}

impl<A: FromStr, B: FromStr> FromRequestParts<SharedState> for PathIds<A, B> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
        let mut values = values(parts, app).await.into_iter();
        Ok(Self(id(values.next())?, id(values.next())?))
    }
}

/// The query parameters. Unknown names are ignored.
#[derive(Debug)]
pub(crate) struct QueryParams(Vec<(String, String)>);

impl FromRequestParts<SharedState> for QueryParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
        let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::from_request_parts(parts, app).await else {
            return Err(ApiError::breaks("query", "can't be read"));
        };
        Ok(Self(pairs))
    }
}

impl QueryParams {
    /// The value of a parameter; `None` if it is absent or empty. Given twice is an error.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<&str>, ApiError> {
        let named = self.0.iter().filter(|(known, value)| known == name && !value.is_empty());
        let mut found = named.map(|(_, value)| value.as_str());
        match (found.next(), found.next()) {
            (found, None) => Ok(found),
            _ => Err(ApiError::breaks(name, "is given more than once")),
        }
    }

    /// The number of items of a page; above the maximum it is cut.
    pub(crate) fn limit(&self) -> Result<u32, ApiError> {
        let rule = "must be a whole number from 1";
        match self.whole("limit", rule)? {
            None => Ok(limits::DEFAULT_PAGE_ITEMS),
            Some(0) => Err(ApiError::breaks("limit", rule)),
            Some(limit) => Ok(u32::try_from(limit)
                .map_or(limits::MAX_PAGE_ITEMS, |limit| limit.min(limits::MAX_PAGE_ITEMS))),
        }
    }

    /// How long to wait; above the maximum it is cut.
    pub(crate) fn timeout(&self) -> Result<Duration, ApiError> {
        let seconds = self.whole("timeout", "must be a whole number of seconds, 0 to 60")?;
        Ok(Duration::from_secs(seconds.unwrap_or(limits::DEFAULT_WAIT_SECONDS).min(limits::MAX_WAIT_SECONDS)))
    }

    fn whole(&self, name: &'static str, rule: &'static str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ApiError::breaks(name, rule));
        }
        // All digits and yet too large for a u64: cut like any other value above the maximum.
        Ok(Some(text.parse().unwrap_or(u64::MAX)))
    }
}
