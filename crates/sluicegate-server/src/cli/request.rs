//! A request, as flags describe it: for `check` and `explain`.

use clap::Args;
use serde_json::{Map, Value, json};

/// What is known about a request. What is left out is missing from it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(super) struct Request {
    /// Who asks
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,

    /// From which address
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<String>,

    /// For what: a path
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,

    /// To do what with it: GET, POST
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    /// Under which plan
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,

    /// How many tokens it takes; 0 only looks
    #[arg(long, value_name = "N")]
    cost: Option<u64>,

    /// Anything else that rules ask for; may be given several times
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
}

/// A name and a value with `=` between them.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE".into()),
    }
}

impl Request {
    /// The body of a question about this request.
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
