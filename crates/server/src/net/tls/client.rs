//! Certificates of clients: which are accepted, and whom they name.

use std::{sync::Arc, time::SystemTime};

use anyhow::{Context as _, bail};
use countersign_core::model::credential::{CertificateSpec, Role};
use countersign_wire::{
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, TenantId},
    timestamp::Timestamp,
};
use rustls::{
    RootCertStore,
    pki_types::CertificateDer,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_cert::{
    Certificate as X509,
    der::Decode as _,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

use super::{certificates::chain, provider::provider};
use crate::config::ClientCertificates;

/// What the name of a client begins with.
const SCHEME: &str = "countersign://";

/// Checks certificates against the authorities: their chain, their time and their purpose.
pub(super) fn verifier(config: &ClientCertificates) -> anyhow::Result<Arc<dyn ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for authority in chain(&config.ca).context("[tls.clients]")? {
        roots.add(authority).with_context(|| format!("[tls.clients] {}", config.ca.display()))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    let builder = if config.required { builder } else { builder.allow_unauthenticated() };
    Ok(builder.build()?)
}

/// The client that a certificate names; `None` if it names none, more than one, or one of a tenant that its authority may not
/// vouch for.
pub(super) fn named(
    certificate: &CertificateDer<'_>,
    config: &ClientCertificates,
) -> Option<CertificateSpec> {
    let spec = read(certificate).inspect_err(|error| {
        tracing::debug!(error = format!("{error:#}"), "a certificate of a client names nobody");
    });
    let spec = spec.ok()?;
    (config.tenants.is_empty() || config.tenants.contains(&spec.tenant)).then_some(spec)
}

/// Reads whom a certificate names.
pub(crate) fn read(certificate: &CertificateDer<'_>) -> anyhow::Result<CertificateSpec> {
    let parsed = X509::from_der(certificate).context("the certificate can't be read")?.tbs_certificate;
    let alternatives = parsed.get::<SubjectAltName>().context("its names can't be read")?;
    let names: Vec<String> = alternatives
        .into_iter()
        .flat_map(|(_, names)| names.0)
        .filter_map(|name| match name {
            GeneralName::UniformResourceIdentifier(uri) => Some(uri.as_str().to_owned()),
            _ => None,
        })
        .filter(|uri| uri.starts_with(SCHEME))
        .collect();
    let [name] = names.as_slice() else {
        bail!("it must have exactly one name that begins with {SCHEME}, and has {}", names.len())
    };
    let (tenant, role) = who(name).with_context(|| {
        format!(
            "{name} must be {SCHEME}TENANT/enforcer/ID, {SCHEME}TENANT/approver/ID or {SCHEME}TENANT/operator"
        )
    })?;
    let end = parsed.validity.not_after.to_system_time().duration_since(SystemTime::UNIX_EPOCH)?;
    let expires_at = Timestamp::from_unix_micros(i64::try_from(end.as_micros())?);
    Ok(CertificateSpec { tenant, role, thumbprint: Sha256Hex::digest(certificate), expires_at })
}

fn who(name: &str) -> Option<(TenantId, Role)> {
    let mut parts = name.strip_prefix(SCHEME)?.split('/');
    let (tenant, role, id) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let tenant = TenantId::new(tenant).ok()?;
    countersign_wire::api_key::check_tenant(&tenant).ok()?;
    let role = match (role, id) {
        ("enforcer", Some(id)) => Role::Enforcer(Some(EnforcerId::new(plain(id)?).ok()?)),
        ("approver", Some(id)) => Role::Approver(Some(ApproverId::new(plain(id)?).ok()?)),
        ("operator", None) => Role::Operator,
        _ => return None,
    };
    Some((tenant, role))
}

/// Ids with other characters are not written into certificates: there would be two ways to write one.
fn plain(id: &str) -> Option<&str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (!id.is_empty() && id.bytes().all(fits)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_form_and_never_stands_for_many() {
        let (tenant, role) = who("countersign://acme/enforcer/build-1").unwrap();
        assert_eq!(
            (tenant.as_str(), role),
            ("acme", Role::Enforcer(Some(EnforcerId::new("build-1").unwrap())))
        );
        assert_eq!(who("countersign://acme/operator").unwrap().1, Role::Operator);
        for wrong in [
            "countersign://acme",
            "countersign://acme/enforcer",
            "countersign://acme/enforcer/",
            "countersign://acme/enforcer/a/b",
            "countersign://acme/enforcer/a%2Fb",
            "countersign://acme/enforcer/*",
            "countersign://acme/approver",
            "countersign://acme/operator/x",
            "countersign://acme/gatewayOperator",
            "countersign://acme/gateway-operator",
            "countersign://ACME/enforcer/a",
            "countersign:///enforcer/a",
            "countersign://_nodes/operator",
            "countersign://user@acme/enforcer/a",
            "https://acme/enforcer/a",
        ] {
            assert!(who(wrong).is_none(), "{wrong}");
        }
    }
}
