//! The interface's description, which also says which routes there are.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The whole interface, as OpenAPI.
pub(crate) const OPENAPI: &str = include_str!("../openapi.json");

#[derive(Deserialize)]
struct Document {
    paths: BTreeMap<String, Value>,
}

/// The templates of all paths. A test of the router compares them with it.
pub(crate) fn paths() -> Vec<String> {
    let document = serde_json::from_str::<Document>(OPENAPI);
    document.map(|document| document.paths.into_keys().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_names_the_routes() {
        let paths = paths();
        assert!(
            paths.len() > 30 && paths.contains(&"/v1/exchanges/{requestId}/wait".to_owned()),
            "{paths:?}"
        );
    }
}
