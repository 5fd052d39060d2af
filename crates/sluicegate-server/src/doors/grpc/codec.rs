//! Codec of the rate limit service's messages.

use bytes::Buf;
use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

use super::rls::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use super::size;

/// Initial size of the buffers. Nearly all messages fit; larger ones grow it.
const BUFFER_BYTES: usize = 1024;

/// Codec of the rate limit service.
#[derive(Debug)]
pub(super) struct Rls {
    /// Maximum number of entries of a descriptor.
    pub(super) entries_max: usize,
}

/// Decodes requests.
#[derive(Debug)]
pub(super) struct RequestDecoder {
    entries_max: usize,
}

fn buffer() -> BufferSettings {
    // One message each way: nothing must be flushed before the next message.
    BufferSettings::new(BUFFER_BYTES, usize::MAX)
}

impl Codec for Rls {
    type Encode = RateLimitResponse;
    type Decode = RateLimitRequest;
    type Encoder = ProstEncoder<RateLimitResponse>;
    type Decoder = RequestDecoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(buffer())
    }

    fn decoder(&mut self) -> RequestDecoder {
        RequestDecoder { entries_max: self.entries_max }
    }
}

/// Decodes a message that is contiguous in its buffer.
pub(crate) fn decode(bytes: impl Buf, entries_max: usize) -> Result<RateLimitRequest, Status> {
    size::check(bytes.chunk(), entries_max)?;
    // An invalid message is the client's error; tonic's own decoder reports it as internal.
    RateLimitRequest::decode(bytes).map_err(|error| {
        Status::invalid_argument(format!("the message is not a RateLimitRequest: {error}"))
    })
}

impl Decoder for RequestDecoder {
    type Item = RateLimitRequest;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<RateLimitRequest>, Status> {
        decode(bytes, self.entries_max).map(Some)
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffer()
    }
}
