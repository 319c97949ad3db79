//! Traces for an OpenTelemetry collector, if one is configured. Spans are ordinary ones of `tracing` with a target of
//! their own; without a collector nobody subscribes to it, and making one costs a comparison.

#[cfg(feature = "otel")]
mod otlp;

use tracing::Span;

use crate::traceparent::TraceParent;

pub(crate) use countersign_core::metrics::SPANS;
#[cfg(feature = "otel")]
pub(crate) use otlp::{Exporter, layer};

/// Makes a span the child of the one that a client named.
pub(crate) fn continue_from(span: &Span, parent: Option<&TraceParent>) {
    #[cfg(feature = "otel")]
    if let (false, Some(parent)) = (span.is_disabled(), parent) {
        otlp::continue_from(span, parent);
    }
    #[cfg(not(feature = "otel"))]
    let _ = (span, parent);
}

/// How others refer to a span; `None` without a collector.
pub(crate) fn reference(span: &Span) -> Option<TraceParent> {
    #[cfg(feature = "otel")]
    return (!span.is_disabled()).then(|| otlp::reference(span)).flatten();
    #[cfg(not(feature = "otel"))]
    {
        let _ = span;
        None
    }
}
