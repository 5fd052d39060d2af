//! A client of the rate limit service.

use std::net::SocketAddr;

use tokio::runtime::{Builder, Runtime};
use tonic::transport::Channel;
use tonic::{IntoRequest, Status};

pub(crate) use self::proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use self::proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
pub(crate) use self::proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
pub(crate) use self::proto::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
pub(crate) use self::proto::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus,
};
use self::proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
pub(crate) use self::proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
pub(crate) use self::proto::envoy::r#type::v3::RateLimitUnit;
use crate::common::{Server, suite_bearer};

mod proto {
    #![allow(clippy::all, clippy::pedantic, warnings, reason = "nobody wrote this code")]
    #![allow(
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "nor its attributes"
    )]
    include!(concat!(env!("OUT_DIR"), "/rls.rs"));
}

/// A connection to the service for one call at a time.
#[derive(Debug)]
pub(crate) struct Rls {
    runtime: Runtime,
    channel: Channel,
}

impl Rls {
    pub(crate) fn of(server: &Server) -> Self {
        Self::connect(server.address_of("grpc"))
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
        let channel = runtime.block_on(endpoint.connect()).unwrap();
        Self { runtime, channel }
    }

    /// Channel of the connection, for other services.
    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Runs a future to completion.
    pub(crate) fn wait<T>(&self, doing: impl Future<Output = T>) -> T {
        self.runtime.block_on(doing)
    }

    /// Calls the service.
    pub(crate) fn call(
        &self,
        call: impl IntoRequest<RateLimitRequest>,
    ) -> Result<RateLimitResponse, Status> {
        let (mut client, mut call) =
            (RateLimitServiceClient::new(self.channel()), call.into_request());
        if let Some(bearer) = suite_bearer()
            && !call.metadata().contains_key("authorization")
        {
            call.metadata_mut().insert("authorization", bearer.parse().unwrap());
        }
        self.wait(client.should_rate_limit(call)).map(tonic::Response::into_inner)
    }

    /// Calls it with these descriptors in the domain `edge`.
    pub(crate) fn ask(&self, descriptors: &[RateLimitDescriptor]) -> RateLimitResponse {
        self.call(call(descriptors)).unwrap()
    }

    /// Calls it with one descriptor.
    pub(crate) fn ask_one(&self, descriptor: &RateLimitDescriptor) -> RateLimitResponse {
        self.ask(std::slice::from_ref(descriptor))
    }
}

/// A call in the domain `edge`.
pub(crate) fn call(descriptors: &[RateLimitDescriptor]) -> RateLimitRequest {
    RateLimitRequest { domain: "edge".into(), descriptors: descriptors.into(), hits_addend: 0 }
}

/// A descriptor of these entries.
pub(crate) fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |&(key, value): &(&str, &str)| Entry { key: key.into(), value: value.into() };
    RateLimitDescriptor {
        entries: entries.iter().map(entry).collect(),
        ..RateLimitDescriptor::default()
    }
}

impl RateLimitDescriptor {
    /// Sets the number of hits.
    pub(crate) fn hits(mut self, hits: u64) -> Self {
        self.hits_addend = Some(hits);
        self
    }

    /// Makes it a refund.
    pub(crate) fn negative(mut self) -> Self {
        self.is_negative_hits = true;
        self
    }

    /// Sets a limit in the descriptor.
    pub(crate) fn limit(mut self, requests_per_unit: u32, unit: RateLimitUnit) -> Self {
        self.limit = Some(RateLimitOverride { requests_per_unit, unit: unit.into() });
        self
    }
}

impl RateLimitResponse {
    /// True if the whole call was allowed. Panics if the code is unknown.
    pub(crate) fn is_ok(&self) -> bool {
        match self.overall_code() {
            Code::Ok => true,
            Code::OverLimit => false,
            Code::Unknown => panic!("never unknown: {self:?}"),
        }
    }

    /// Tokens left, by descriptor.
    pub(crate) fn remaining(&self) -> Vec<u32> {
        self.statuses.iter().map(|status| status.limit_remaining).collect()
    }

    /// Code of each descriptor.
    pub(crate) fn codes(&self) -> Vec<Code> {
        self.statuses.iter().map(DescriptorStatus::code).collect()
    }

    /// Header field for the client.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.response_headers_to_add.iter();
        headers.find(|header| header.key == name).map(|header| header.value.as_str())
    }

    /// Member of the metadata.
    pub(crate) fn metadata(&self, name: &str) -> Option<&prost_types::value::Kind> {
        self.dynamic_metadata.as_ref()?.fields.get(name)?.kind.as_ref()
    }
}
