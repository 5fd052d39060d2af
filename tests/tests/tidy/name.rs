//! The product's name: the former one stands in one line of the changelog and nowhere else.

use super::sources::below;

/// The former name in two parts, so that this file does not contain it.
const FORMER: [&str; 2] = ["toll", "gate"];

#[test]
fn the_former_name_is_gone() {
    let former = FORMER.concat();
    let mut lines = Vec::new();
    for (file, text) in below("", "") {
        assert!(!file.to_lowercase().contains(&former), "{file} has the former name");
        let of_file = text.lines().filter(|line| line.to_lowercase().contains(&former));
        lines.extend(of_file.map(|line| format!("{file}: {line}")));
    }
    assert_eq!(lines.len(), 1, "{}", lines.join("\n"));
    assert!(lines[0].starts_with("CHANGELOG.md: "), "{}", lines[0]);
}
