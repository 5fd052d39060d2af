//! The measured doors and the servers behind them.

use clap::ValueEnum;
use serde::Serialize;

use crate::load::Shape;
use crate::requests::Dialect;

pub(crate) const NULL: &str = "null";
pub(crate) const SLUICEGATE: &str = "sluicegate";
pub(crate) const THROTTLECRAB: &str = "throttlecrab";

/// A protocol and its kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Door {
    /// JSON over HTTP/1.1, three tiers.
    Http,
    /// Envoy's protocol over gRPC, three tiers.
    Grpc,
    /// The Redis protocol, one bucket.
    Resp,
    /// The Redis protocol, three tiers.
    RespCheck,
}

/// A door at a number of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    pub(crate) door: Door,
    pub(crate) depth: usize,
}

/// Connections of a load; of gRPC there are fewer with more on each.
const CONNECTIONS: usize = 16;
const GRPC_CONNECTIONS: usize = 4;
const GRPC_STREAMS: usize = 8;
const PIPELINES: [usize; 3] = [1, 16, 64];

impl Door {
    pub(crate) const ALL: [Self; 4] = [Self::Http, Self::Grpc, Self::Resp, Self::RespCheck];

    /// Numbers of requests in flight at which it is measured.
    pub(crate) fn places(self) -> impl Iterator<Item = Place> {
        let depths: &[usize] = match self {
            Self::Http => &[1],
            Self::Grpc => &[GRPC_STREAMS],
            Self::Resp | Self::RespCheck => &PIPELINES,
        };
        depths.iter().map(move |depth| Place { door: self, depth: *depth })
    }

    /// Request for a contender; `None` if it has no such door.
    pub(crate) fn dialect(self, contender: &str) -> Option<Dialect> {
        Some(match (self, contender) {
            (Self::Http, THROTTLECRAB) => Dialect::CrabHttp,
            (Self::Grpc, THROTTLECRAB) => Dialect::CrabGrpc,
            (Self::Resp, THROTTLECRAB) => Dialect::CrabResp,
            (Self::RespCheck, THROTTLECRAB) => return None,
            (Self::Http, _) => Dialect::Check,
            (Self::Grpc, _) => Dialect::Envoy,
            (Self::Resp, _) => Dialect::Throttle,
            (Self::RespCheck, _) => Dialect::RespCheck,
        })
    }

    /// Requests per second of the open loop, well below the capacity of every server.
    pub(crate) fn rate(self) -> u64 {
        match self {
            Self::Http | Self::Grpc => 8_000,
            Self::Resp | Self::RespCheck => 16_000,
        }
    }
}

impl Place {
    pub(crate) fn shape(self) -> Shape {
        let connections = if self.door == Door::Grpc { GRPC_CONNECTIONS } else { CONNECTIONS };
        Shape { connections, depth: self.depth }
    }

    pub(crate) fn name(self) -> String {
        let Self { door, depth } = self;
        match door {
            Door::Http => "HTTP".to_owned(),
            Door::Grpc => "gRPC".to_owned(),
            Door::Resp => format!("RESP, depth {depth}"),
            Door::RespCheck => format!("RESP, 3 tiers, depth {depth}"),
        }
    }
}
