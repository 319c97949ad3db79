//! Sends spans with OTLP over HTTP, from a thread of its own. The queue is bounded: what does not fit is dropped.

use std::{thread, time::Duration};

use anyhow::Context as _;
use countersign_core::metrics::SPANS;
use opentelemetry::{
    KeyValue, SpanId, TraceFlags, TraceId,
    trace::{SpanContext, TraceContextExt as _, TraceState, TracerProvider as _},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider},
};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use crate::{config::TracesConfig, traceparent::TraceParent};

/// Spans that wait to be sent, about a kilobyte each.
const MAX_QUEUED_SPANS: usize = 4_096;

const MAX_BATCH_SPANS: usize = 512;

/// How long spans wait for others to be sent with.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// A collector that takes longer is given up.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the end of the program waits for what is queued.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends until it is dropped.
#[derive(Debug)]
pub(crate) struct Exporter(SdkTracerProvider);

impl Drop for Exporter {
    fn drop(&mut self) {
        // What could not be sent in time is lost, as it would be with a collector that does not answer.
        drop(self.0.shutdown_with_timeout(END_TIMEOUT));
    }
}

/// The layer that takes our spans and nothing else, and what sends them; `None` if no collector is configured.
pub(crate) fn layer<S>(
    config: &TracesConfig,
) -> anyhow::Result<Option<(impl Layer<S> + Send + Sync + use<S>, Exporter)>>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let Some(endpoint) = &config.endpoint else { return Ok(None) };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client()?)
        .with_endpoint(endpoint)
        .with_timeout(SEND_TIMEOUT)
        .build()
        .with_context(|| format!("traces.endpoint = \"{endpoint}\" can't be used"))?;
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(MAX_QUEUED_SPANS)
        .with_max_export_batch_size(MAX_BATCH_SPANS)
        .with_scheduled_delay(BATCH_DELAY)
        .build();
    let ratio = Sampler::TraceIdRatioBased(1.0 / f64::from(config.one_in.get()));
    let provider = SdkTracerProvider::builder()
        .with_span_processor(BatchSpanProcessor::new(exporter, batches))
        .with_sampler(Sampler::ParentBased(Box::new(ratio)))
        .with_resource(
            Resource::builder_empty()
                .with_attributes([
                    KeyValue::new("service.name", "countersign-gateway"),
                    KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                ])
                .build(),
        )
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("countersign"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_filter(filter_fn(|metadata| metadata.is_span() && metadata.target() == SPANS));
    Ok(Some((layer, Exporter(provider))))
}

/// A client that blocks has a runtime of its own, which must not be made where another runs.
fn client() -> anyhow::Result<reqwest::blocking::Client> {
    let make = || {
        reqwest::blocking::Client::builder()
            .timeout(SEND_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
    };
    let built = thread::Builder::new().name("traces".to_owned()).spawn(make)?.join();
    let built = built.map_err(|_| anyhow::anyhow!("the client for traces can't be made"))?;
    built.context("the client for traces can't be made")
}

pub(super) fn continue_from(span: &Span, parent: &TraceParent) {
    let flags = if parent.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let parent = SpanContext::new(
        TraceId::from(parent.trace_id),
        SpanId::from(parent.span_id),
        flags,
        true,
        TraceState::default(),
    );
    // Fails only for a span that has begun already.
    drop(span.set_parent(opentelemetry::Context::new().with_remote_span_context(parent)));
}

pub(super) fn reference(span: &Span) -> Option<TraceParent> {
    let context = span.context();
    let span = context.span();
    let context = span.span_context();
    context.is_valid().then(|| TraceParent {
        trace_id: u128::from_be_bytes(context.trace_id().to_bytes()),
        span_id: u64::from_be_bytes(context.span_id().to_bytes()),
        is_sampled: context.is_sampled(),
    })
}
