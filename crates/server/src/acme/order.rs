//! One order: an account, challenges, a certificate.

use std::{fs, time::Duration};

use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Error, ExternalAccountKey, Identifier,
    NewAccount, NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use super::{
    contents::{Challenge, Issued},
    http::AuthorityClient,
};
use crate::config::{AcmeConfig, ChallengeKind};

/// How long the authority gets to look at the challenges, and to issue.
const PATIENCE: Duration = Duration::from_mins(1);

fn retries() -> RetryPolicy {
    RetryPolicy::new().initial_delay(Duration::from_millis(500)).backoff(1.5).timeout(PATIENCE)
}

/// The account that these credentials are of, or a new one with its credentials.
pub(super) async fn account(
    config: &AcmeConfig,
    known: Option<serde_json::Value>,
) -> anyhow::Result<(Account, Option<serde_json::Value>)> {
    let builder =
        || anyhow::Ok(Account::builder_with_http(Box::new(AuthorityClient::new(config.ca.as_deref())?)));
    if let Some(credentials) =
        known.and_then(|known| serde_json::from_value::<AccountCredentials>(known).ok())
    {
        return Ok((builder()?.from_credentials(credentials).await?, None));
    }
    let contact: Vec<&str> = config.contact.as_deref().into_iter().collect();
    let account =
        NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let external = config.eab.as_ref().map(|eab| {
        let key = fs::read_to_string(&eab.key_file)
            .with_context(|| format!("tls.acme.eab: {} can't be read", eab.key_file.display()))?;
        let key = URL_SAFE_NO_PAD
            .decode(key.trim().trim_end_matches('='))
            .with_context(|| format!("tls.acme.eab: {} is not base64url", eab.key_file.display()))?;
        anyhow::Ok(ExternalAccountKey::new(eab.id.clone(), &key))
    });
    let external = external.transpose()?;
    let created = builder()?.create(&account, config.directory.clone(), external.as_ref()).await;
    let (account, credentials) = created.context("the authority makes no account")?;
    Ok((account, Some(serde_json::to_value(credentials)?)))
}

/// Whether the authority has refused because it has no such account.
pub(super) fn is_unknown_account(error: &anyhow::Error) -> bool {
    let problem = error.downcast_ref::<Error>().and_then(|error| match error {
        Error::Api(problem) => problem.r#type.as_deref(),
        _ => None,
    });
    problem == Some("urn:ietf:params:acme:error:accountDoesNotExist")
}

/// Places an order, and collects what the authority asks.
pub(super) async fn place(account: &Account, config: &AcmeConfig) -> anyhow::Result<(Order, Vec<Challenge>)> {
    let names: Vec<Identifier> = config.names.iter().map(|name| Identifier::Dns(name.clone())).collect();
    let mut order =
        account.new_order(&NewOrder::new(&names)).await.context("the authority takes no order")?;
    let mut challenges = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            status => bail!("the authority says that a name is {status:?}"),
        }
        let name = authorization.identifier().to_string();
        let Some(challenge) = authorization.challenge(kind(config.challenge)) else {
            bail!(
                "the authority offers no {} for {name}; choose the other tls.acme.challenge",
                config.challenge
            )
        };
        challenges.push(Challenge {
            name,
            kind: config.challenge,
            token: challenge.token.clone(),
            authorization: challenge.key_authorization().as_str().to_owned(),
        });
    }
    Ok((order, challenges))
}

fn kind(challenge: ChallengeKind) -> ChallengeType {
    match challenge {
        ChallengeKind::TlsAlpn01 => ChallengeType::TlsAlpn01,
        ChallengeKind::Http01 => ChallengeType::Http01,
    }
}

/// Lets the authority look at the challenges, which all nodes answer, and takes the certificate.
pub(super) async fn finish(order: &mut Order, config: &AcmeConfig) -> anyhow::Result<Issued> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Pending
            && let Some(mut challenge) = authorization.challenge(kind(config.challenge))
        {
            challenge.set_ready().await?;
        }
    }
    match order.poll_ready(&retries()).await {
        Ok(OrderStatus::Invalid) => bail!("{}", refusal(order, None).await),
        Ok(_) => {}
        Err(Error::Api(problem)) => bail!("{}", refusal(order, Some(problem)).await),
        Err(error) => return Err(error).context("the authority did not look at the challenges in time"),
    }
    let key = KeyPair::generate()?;
    let mut parameters = CertificateParams::new(config.names.clone())?;
    parameters.distinguished_name = DistinguishedName::new();
    let request = parameters.serialize_request(&key)?;
    order.finalize_csr(request.der()).await.context("the authority does not issue")?;
    let chain = order.poll_certificate(&retries()).await.context("the authority did not issue in time")?;
    Ok(Issued::new(chain, &key.serialize_der()))
}

/// Why the authority refused, in its words.
async fn refusal(order: &mut Order, known: Option<Problem>) -> String {
    let mut reasons = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { continue };
        let problems = state.challenges.iter().filter_map(|challenge| challenge.error.as_ref());
        reasons.extend(problems.map(|problem| format!("{}: {problem}", state.identifier())));
    }
    if reasons.is_empty() {
        reasons.push(known.map_or_else(|| "it gives no reason".to_owned(), |problem| problem.to_string()));
    }
    format!("the authority refused: {}", reasons.join("; "))
}
