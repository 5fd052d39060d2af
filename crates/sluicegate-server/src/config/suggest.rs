//! "Did you mean?"

/// The name that was probably meant, if one is close enough: at most a third of its letters differ.
pub(super) fn closest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(wrong, name), name))
        .filter(|(distance, name)| distance * 3 <= name.len().max(wrong.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["http", "max_buckets", "on_full"];
        assert_eq!(closest("htpt", known), Some("http"));
        assert_eq!(closest("max_bucket", known), Some("max_buckets"));
        assert_eq!(closest("on-full", known), Some("on_full"));
        assert_eq!(closest("grpc", known), None);
        assert_eq!(closest("", known), None);
    }
}
