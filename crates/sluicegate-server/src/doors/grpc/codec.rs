//! Messages on the wire.

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

use super::rls::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

/// Room for an answer, and for what is read of a request at once: nearly all of them fit, and those that do not
/// get more.
const BUFFER_BYTES: usize = 1024;

/// Requests to, and answers of, the rate limit service.
#[derive(Debug)]
pub(super) struct Rls;

/// Reads requests.
#[derive(Debug)]
pub(super) struct RequestDecoder;

fn buffer() -> BufferSettings {
    // There is one message each way: none has to be sent before the next is written.
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
        RequestDecoder
    }
}

impl Decoder for RequestDecoder {
    type Item = RateLimitRequest;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<RateLimitRequest>, Status> {
        // Whoever sends something else has made the mistake, which tonic's own decoder takes on itself.
        RateLimitRequest::decode(bytes).map(Some).map_err(|error| {
            Status::invalid_argument(format!("the message is no RateLimitRequest: {error}"))
        })
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffer()
    }
}
