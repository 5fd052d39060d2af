use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Commands parsed from a stream that arrives in pieces.
fn parse(pieces: &[&[u8]]) -> (Vec<Vec<Vec<u8>>>, Option<Malformed>) {
    let (mut parser, mut input, mut commands) = (Parser::default(), Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            let bytes = match parser.next(&input) {
                Ok(Some(command)) => {
                    commands.push(command.arguments(0).map(<[u8]>::to_vec).collect());
                    command.bytes()
                }
                Ok(None) => break,
                Err(malformed) => return (commands, Some(malformed)),
            };
            input.drain(..bytes);
        }
    }
    (commands, None)
}

fn framed(command: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn command() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 0..40), 1..12)
}

/// Bytes that resemble commands.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        command().prop_map(|command| framed(&command)),
        "[*$]-?[0-9]{0,9}(\r\n|\r|\n)?".prop_map(String::into_bytes),
        "[a-zA-Z'\" ]{0,12}(\r\n|\n)".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..20),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn framed_commands_are_parsed(commands in vec(command(), 0..8)) {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| framed(command)).collect();
        prop_assert_eq!(parse(&[&bytes]), (commands, None));
    }

    #[test]
    fn pieces_make_no_difference(bytes in noise(), mut cuts in vec(0usize..400, 0..6)) {
        cuts.retain(|cut| *cut < bytes.len());
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut start = 0;
        for cut in cuts {
            pieces.push(&bytes[start..cut]);
            start = cut;
        }
        pieces.push(&bytes[start..]);
        let whole = parse(&[&bytes]);
        prop_assert_eq!(parse(&pieces), whole.clone());
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(parse(&single), whole);
    }

    #[test]
    fn announced_lengths_reserve_no_memory(count in 0usize..10_000_000, length in 0usize..10_000_000) {
        let mut parser = Parser::default();
        let announced = format!("*{count}\r\n${length}\r\n");
        let _ = parser.next(announced.as_bytes());
        prop_assert!(parser.spans.capacity() <= 8);
    }
}

fn read(text: &str) -> (Vec<String>, Option<Malformed>) {
    let (commands, malformed) = parse(&[text.as_bytes()]);
    let joined = |command: &Vec<Vec<u8>>| {
        let arguments =
            command.iter().map(|argument| String::from_utf8_lossy(argument).into_owned());
        arguments.collect::<Vec<_>>().join("|")
    };
    (commands.iter().map(joined).collect(), malformed)
}

#[test]
fn lines_are_commands_too() {
    let (commands, malformed) =
        read("PING\r\n  ECHO \"two words\"\t'a\"b'  \n\r\nECHO \"\"\r\n*1\r\n$4\r\nPING\r\n");
    assert_eq!(commands, ["PING", "ECHO|two words|a\"b", "", "ECHO|", "PING"]);
    assert_eq!(malformed, None);
    assert_eq!(read("ECHO \"a\r\n").1, Some(Malformed::Quotes));
    assert_eq!(read("ECHO \"a\"b\r\n").1, Some(Malformed::Quotes));
    assert_eq!(read("ECHO \"a\\n\"\r\n").1, Some(Malformed::Escape));
}

#[test]
fn empty_arrays_are_empty_commands() {
    assert_eq!(read("*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n").0, ["", "", "PING"]);
}

#[test]
fn lengths_are_bounded_as_they_are_read() {
    let refused =
        |text: &str, malformed| assert_eq!(read(text), (vec![], Some(malformed)), "{text}");
    refused("*1025\r\n", Malformed::ArgumentCount);
    refused("*99999999", Malformed::ArgumentCount);
    refused("*1x\r\n", Malformed::ArgumentCount);
    refused("*\r\n", Malformed::ArgumentCount);
    refused("*1\rx", Malformed::ArgumentCount);
    refused("*1\r\n$65537\r\n", Malformed::ArgumentLength);
    refused("*1\r\n$-1\r\n", Malformed::ArgumentLength);
    refused("*1\r\n$+4\r\n", Malformed::ArgumentLength);
    refused("*1\r\n:4\r\n", Malformed::NoArgument(b':'));
    refused("*1\r\n*1\r\n", Malformed::NoArgument(b'*'));
    refused("*1\r\n$4\r\nPINGS\r\n", Malformed::ArgumentEnd);
    refused(&"x".repeat(ARGUMENT_BYTES_MAX + 1), Malformed::InlineBytes);
    let argument = format!("${ARGUMENT_BYTES_MAX}\r\n{}\r\n", "x".repeat(ARGUMENT_BYTES_MAX));
    refused(&format!("*3\r\n{argument}{argument}"), Malformed::CommandBytes(COMMAND_BYTES_MAX));
    refused(&format!("*2\r\n{argument}{argument}"), Malformed::CommandBytes(COMMAND_BYTES_MAX));
    assert_eq!(read(&format!("*1\r\n{argument}")).1, None);
}

#[test]
fn a_smaller_maximum_size_can_be_set() {
    let mut parser = Parser::default();
    let ping = b"*1\r\n$4\r\nPING\r\n";
    assert_eq!(parser.next_within(ping, 14).unwrap().unwrap().bytes(), 14);
    for begun in [&b"*1\r\n$60000\r\nPINGPINGPING"[..], b"PINGPINGPINGPING"] {
        let refused = Parser::default().next_within(begun, 15).unwrap_err();
        assert_eq!(refused, Malformed::CommandBytes(15));
        assert!(Parser::default().next_within(begun, 100).unwrap().is_none());
    }
}

#[test]
fn errors_name_what_was_wrong() {
    assert_eq!(Malformed::NoArgument(b'\n').to_string(), "expected '$', got '\\n'");
    let text = Malformed::ArgumentCount.to_string();
    assert!(text.starts_with("invalid multibulk length"), "{text}");
}
