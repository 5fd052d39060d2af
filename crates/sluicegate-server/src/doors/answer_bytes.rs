//! Size of an answer whose body does not tell it.

/// Bytes of an answer, approximately, as an extension of the response. Messages of gRPC are encoded only when the client
/// reads them, and their memory is counted until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerBytes(pub(crate) usize);
