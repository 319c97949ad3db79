//! What an operator can change while the gateway runs.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use parking_lot::RwLock;

use crate::{
    config::Config,
    cors::AllowedOrigins,
    limits::{RateLimiters, TrustedProxies},
};

/// The settings that can be changed.
#[derive(Debug, Default)]
pub struct LiveSettings {
    /// Shared with the settings before if the limits are the same, so that a reload forgives nobody.
    pub rates: Arc<RateLimiters>,
    /// Without one, the address of a client is known only where it is connected directly.
    pub proxies: TrustedProxies,
    /// Websites that may call from a browser.
    pub allowed_origins: AllowedOrigins,
    /// Whether API keys are accepted with `Authorization: Basic`, too.
    pub allow_basic: bool,
    /// Days for which browsers remember that this name speaks TLS only.
    pub hsts_days: u32,
}

impl LiveSettings {
    /// What the configuration says. `before` was in force until now.
    pub fn new(config: &Config, before: Option<(&Config, &Self)>) -> Self {
        let same = before.filter(|(old, _)| old.rates == config.rates);
        Self {
            rates: same
                .map_or_else(|| Arc::new(RateLimiters::new(config.rates)), |(_, old)| Arc::clone(&old.rates)),
            proxies: TrustedProxies {
                addresses: config.trusted_proxies.clone(),
                header: config.proxy_header,
            },
            allowed_origins: AllowedOrigins::new(&config.allowed_origins),
            allow_basic: config.allow_basic,
            hsts_days: config.tls.hsts_days,
        }
    }

    /// What an answer over TLS says to browsers. Nothing for `localhost`: it would hold for every other program there.
    pub(crate) fn hsts(&self, request: &HeaderMap) -> Option<HeaderValue> {
        let host = request.get(header::HOST)?.to_str().ok()?;
        let name = host.split(':').next().unwrap_or_default();
        let is_local = name == "localhost" || name.ends_with(".localhost");
        let seconds = u64::from(self.hsts_days) * 86_400;
        (seconds > 0 && !is_local).then(|| HeaderValue::from_str(&format!("max-age={seconds}")).ok())?
    }
}

/// The settings in force. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Live(Arc<RwLock<Arc<LiveSettings>>>);

impl Live {
    pub fn new(settings: LiveSettings) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(settings))))
    }

    pub(crate) fn current(&self) -> Arc<LiveSettings> {
        Arc::clone(&self.0.read())
    }

    pub(crate) fn replace(&self, settings: LiveSettings) {
        *self.0.write() = Arc::new(settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Rate;

    #[test]
    fn counters_are_kept_unless_the_limits_change() {
        let config = Config::default();
        let first = LiveSettings::new(&config, None);
        let origins =
            Config { allowed_origins: vec!["https://review.example.org".to_owned()], ..Config::default() };
        let second = LiveSettings::new(&origins, Some((&config, &first)));
        assert!(Arc::ptr_eq(&first.rates, &second.rates));
        let mut limits = config.clone();
        limits.rates.credential = Rate { per_second: 1, burst: 1 };
        let third = LiveSettings::new(&limits, Some((&config, &first)));
        assert!(!Arc::ptr_eq(&first.rates, &third.rates));
    }

    #[test]
    fn browsers_remember_names_and_never_localhost() {
        let settings = LiveSettings { hsts_days: 365, ..LiveSettings::default() };
        let said = |settings: &LiveSettings, host: &str| {
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
            settings.hsts(&headers).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(said(&settings, "gateway.example.org").as_deref(), Some("max-age=31536000"));
        assert_eq!(said(&settings, "gateway.example.org:8443").as_deref(), Some("max-age=31536000"));
        for local in ["localhost", "localhost:8443", "a.localhost:1"] {
            assert_eq!(said(&settings, local), None, "{local}");
        }
        assert_eq!(said(&LiveSettings::default(), "gateway.example.org"), None);
    }
}
