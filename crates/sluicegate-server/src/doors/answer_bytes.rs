//! Sizes of answers that their bodies do not tell, or that do not exist yet.

/// Bytes of an answer, approximately, as an extension of the response. Messages of gRPC are encoded only when the client
/// reads them, and their memory is counted until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerBytes(pub(crate) usize);

/// Size of the answers to be expected of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerSize {
    /// Small, whatever is asked: their number is limited by that of a connection's streams.
    Small,
    /// Depends on the number of members in the request.
    Batch,
    /// Documents and lists.
    Large,
}
