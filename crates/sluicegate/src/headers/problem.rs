//! Body of a denial: `application/problem+json` (RFC 9457) of the type that the draft defines.

use std::fmt::{self, Write as _};

use http::{HeaderValue, StatusCode};

use super::policies::{Excess, Policies};
use super::policy::Policy;

/// Content type of the body.
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// URI of the problem type.
pub const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

const TITLE: &str = "Request cannot be satisfied as assigned quota has been exceeded";

/// Typical length of a body, in bytes.
const BODY_BYTES: usize = 384;

impl Policies<'_> {
    /// Body of a denial with this status: the policies that denied the request, and the wait.
    ///
    /// ```json
    /// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
    ///  "title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,
    ///  "detail":"the limit of rule 1, user:{user_id}, is reached: try again in 1 s",
    ///  "violated-policies":["user"],"rule_id":1,"retry_after_ms":100}
    /// ```
    ///
    /// `retry_after_ms` is `null` if waiting does not help, and `rule_id` if the bucket has no rule. Both are about
    /// the policy that denies for longest.
    #[must_use]
    pub fn problem_json(&self, status: StatusCode) -> Vec<u8> {
        let mut body = String::with_capacity(BODY_BYTES);
        // Writing to a string does not fail.
        let _ = self.write_problem(status, &mut body);
        body.into_bytes()
    }

    fn write_problem(&self, status: StatusCode, to: &mut String) -> fmt::Result {
        let violated = self.tightest().filter(|policy| policy.is_violated());
        let violated = violated.filter(|_| self.excess().is_none());
        write!(
            to,
            r#"{{"type":"{QUOTA_EXCEEDED}","title":"{TITLE}","status":{}"#,
            status.as_u16()
        )?;
        to.push_str(r#","detail":""#);
        self.write_detail(violated, &mut Escaped(to))?;
        to.push_str(r#"","violated-policies":["#);
        for (place, policy) in self.violated().enumerate() {
            to.push_str(if place == 0 { "\"" } else { ",\"" });
            write!(Escaped(to), "{}", self.name(policy))?;
            to.push('"');
        }
        to.push(']');
        write_member(to, "rule_id", violated.and_then(|policy| Some(policy.rule()?.rule_id())))?;
        let retry_after_ms = violated.and_then(|policy| policy.decision().retry_after_ms());
        write_member(to, "retry_after_ms", retry_after_ms)?;
        to.push('}');
        Ok(())
    }

    /// The `detail` member, for people.
    fn write_detail(&self, violated: Option<&Policy<'_>>, to: &mut Escaped<'_>) -> fmt::Result {
        match self.excess() {
            Some(Excess::Rules(max)) => {
                return write!(
                    to,
                    "more than {max} rules apply to the request: waiting does not help"
                );
            }
            Some(Excess::Work) => {
                return to
                    .write_str("matching the request takes too much work: waiting does not help");
            }
            None => {}
        }
        let Some(policy) = violated else {
            return to.write_str("the request is not allowed");
        };
        to.write_str("the limit of ")?;
        match policy.rule() {
            Some(rule) => write!(to, "rule {}, {},", rule.rule_id(), rule.key_pattern().as_str())?,
            None => write!(to, "{}", self.name(policy))?,
        }
        match self.retry_after_s() {
            Some(seconds) => write!(to, " is reached: try again in {seconds} s"),
            None if policy.limit() == 0 => {
                to.write_str(" lets nothing through: waiting does not help")
            }
            None => write!(
                to,
                " is {}, which is less than the request costs: waiting does not help",
                policy.limit()
            ),
        }
    }
}

fn write_member(to: &mut String, name: &str, value: Option<u64>) -> fmt::Result {
    match value {
        Some(value) => write!(to, r#","{name}":{value}"#),
        None => write!(to, r#","{name}":null"#),
    }
}

/// Writes text as the inside of a JSON string.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            match char {
                '"' | '\\' => {
                    self.0.push('\\');
                    self.0.push(char);
                }
                '\0'..='\x1f' => write!(self.0, "\\u{:04x}", u32::from(char))?,
                _ => self.0.push(char),
            }
        }
        Ok(())
    }
}
