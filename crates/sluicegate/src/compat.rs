//! Functions of the standard library that are newer than the oldest Rust this crate builds with.

/// `str::floor_char_boundary`, stable since Rust 1.91: the last character boundary at or before `index`.
pub(crate) fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut end = index.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::floor_char_boundary;

    #[test]
    fn a_boundary_is_at_or_before_the_index() {
        let text = "a\u{20ac}b";
        let ends = [0, 1, 2, 3, 4, 5, 6].map(|index| floor_char_boundary(text, index));
        assert_eq!(ends, [0, 1, 1, 1, 4, 5, 5]);
        assert_eq!(floor_char_boundary("", 9), 0);
    }
}
