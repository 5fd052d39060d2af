//! Flags that describe a request, for `check` and `explain`.

use clap::Args;
use serde_json::{Map, Value, json};

/// Attributes of a request. Those that are not given are absent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(super) struct Request {
    /// Id of the user
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,

    /// Client address
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<String>,

    /// Path of the request
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,

    /// HTTP method: GET, POST
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    /// Plan of the user
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,

    /// Tokens that the request costs; 0 charges nothing [default: 1]
    #[arg(long, value_name = "N")]
    cost: Option<u64>,

    /// Further attribute; may be given several times
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
}

/// Parses `NAME=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("must have the form NAME=VALUE".into()),
    }
}

impl Request {
    /// The body of a call about this request.
    pub(super) fn body(&self) -> Value {
        let mut body = Map::new();
        let texts = [
            ("user_id", &self.user_id),
            ("ip", &self.ip),
            ("endpoint", &self.endpoint),
            ("method", &self.method),
            ("plan", &self.plan),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                body.insert(name.into(), json!(value));
            }
        }
        if let Some(cost) = self.cost {
            body.insert("cost".into(), json!(cost));
        }
        if !self.attributes.is_empty() {
            let attributes =
                self.attributes.iter().map(|(name, value)| (name.clone(), json!(value)));
            body.insert("attributes".into(), Value::Object(attributes.collect()));
        }
        body.into()
    }
}
