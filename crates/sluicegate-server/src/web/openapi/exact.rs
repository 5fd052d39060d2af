//! Details of the OpenAPI document that cannot be derived.

use serde_json::{Map, Value, json};

/// Adds tags, ranges, required fields, refusals and required headers.
pub(crate) fn exact(document: &mut Value) {
    integers(document);
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        schemas.values_mut().for_each(nullable_is_there);
    }
    let Some(Value::Object(paths)) = document.get_mut("paths") else { return };
    for (path, operations) in paths {
        let tag = tag(path);
        let Value::Object(operations) = operations else { continue };
        for (method, operation) in operations {
            operation["tags"] = json!([tag]);
            let needs_token = operation.get("security").is_some();
            if let Some(Value::Object(responses)) = operation.get_mut("responses") {
                if needs_token {
                    for (status, refusal) in refusals() {
                        responses.entry(status).or_insert(refusal);
                    }
                }
                headers(method, responses);
            }
        }
    }
}

/// Tag of an operation: `rules` for `/v1/rules/{id}`.
fn tag(path: &str) -> String {
    let of_api = path.strip_prefix("/v1/").and_then(|path| path.split('/').next());
    of_api.unwrap_or(if path == "/json" { "json" } else { "health" }).into()
}

/// Declares non-negative integers as unsigned 64-bit numbers.
fn integers(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let is_unsigned = object.get("minimum").is_some_and(Value::is_u64);
            if is_unsigned && object.get("format") == Some(&json!("int64")) {
                object.insert("format".into(), "uint64".into());
                object.entry("maximum").or_insert(json!(u64::MAX));
            }
            object.values_mut().for_each(integers);
        }
        Value::Array(values) => values.iter_mut().for_each(integers),
        _ => {}
    }
}

/// Declares nullable fields of answers as required: a field is either nullable or optional. Bodies are recognised by
/// `additionalProperties: false` and left alone.
fn nullable_is_there(schema: &mut Value) {
    if schema.get("additionalProperties") == Some(&json!(false)) {
        return;
    }
    if let Some(Value::Array(parts)) = schema.get_mut("allOf") {
        parts.iter_mut().for_each(nullable_is_there);
    }
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    let nullable = properties.iter().filter(|(_, property)| is_nullable(property));
    let nullable: Vec<_> = nullable.map(|(name, _)| json!(name)).collect();
    if nullable.is_empty() {
        return;
    }
    match schema.get_mut("required") {
        Some(Value::Array(required)) => required.extend(nullable),
        _ => schema["required"] = nullable.into(),
    }
}

fn is_nullable(property: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null" || kind.get("type") == Some(&json!("null"));
    let among = |key| property.get(key).and_then(Value::as_array);
    ["type", "oneOf"].into_iter().filter_map(among).flatten().any(is_null)
}

/// Responses of operations that need a token to unauthorised requests.
fn refusals() -> Map<String, Value> {
    let problem = |description: &str, headers: Value| {
        json!({
            "description": description,
            "headers": headers,
            "content": {
                "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
            },
        })
    };
    let challenge = json!({
        "www-authenticate": {
            "description": "Always `Bearer`", "required": true, "schema": { "type": "string" },
        },
    });
    [
        ("401", problem("The token is missing or unknown", challenge)),
        (
            "403",
            problem(
                "The role or the rights do not suffice, or a page of another site asks",
                json!({}),
            ),
        ),
        ("429", problem("Too many wrong tokens from this address", retry_after())),
        ("503", problem("The tokens are not loaded yet", retry_after())),
    ]
    .map(|(status, response)| (status.into(), response))
    .into_iter()
    .collect()
}

fn retry_after() -> Value {
    json!({
        "retry-after": {
            "description": "Seconds to wait before trying again",
            "required": true,
            "schema": { "type": "integer", "minimum": 1 },
        },
    })
}

/// Declares headers that are always present as required.
fn headers(method: &str, responses: &mut Map<String, Value>) {
    for (status, response) in responses {
        let is_problem = response.pointer("/content/application~1problem+json").is_some();
        if status == "503" && is_problem {
            response["headers"] = retry_after();
        }
        let Some(Value::Object(headers)) = response.get_mut("headers") else { continue };
        for (name, header) in headers {
            // A dry run answers 200 without a version.
            let has_version = name == "etag" && (method == "get" || status == "201");
            if has_version || name == "location" {
                header["required"] = true.into();
            }
            if name == "retry-after" {
                header["schema"]["minimum"] = 1.into();
            }
        }
    }
}
