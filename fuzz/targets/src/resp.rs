//! Arbitrary bytes in the Redis protocol, in pieces of any size: no panic, the same commands for every size, and no
//! command beyond the limits; arguments of commands for the limiter are valid or refused.

use sluicegate_server::fuzzing::is_valid_command;
use sluicegate_server::parser::{
    ARGUMENT_BYTES_MAX, ARGUMENTS_MAX, COMMAND_BYTES_MAX, Malformed, Parser,
};

/// Parses a stream that arrives in pieces of this size.
fn parse(bytes: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, Option<Malformed>) {
    let (mut parser, mut input, mut commands) = (Parser::default(), Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        input.extend_from_slice(piece);
        loop {
            let bytes = match parser.next(&input) {
                Ok(Some(command)) => {
                    assert!(command.len() <= ARGUMENTS_MAX);
                    assert!(command.bytes() <= COMMAND_BYTES_MAX.min(input.len()));
                    assert!(
                        command.arguments(0).all(|argument| argument.len() <= ARGUMENT_BYTES_MAX)
                    );
                    let _ = is_valid_command(&command);
                    commands.push(command.arguments(0).map(<[u8]>::to_vec).collect());
                    command.bytes()
                }
                Ok(None) => break,
                Err(malformed) => return (commands, Some(malformed)),
            };
            assert!(bytes > 0);
            input.drain(..bytes);
        }
    }
    (commands, None)
}

/// Runs the target. The first byte is the size of the pieces.
pub fn run(data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    assert_eq!(parse(bytes, bytes.len().max(1)), parse(bytes, usize::from(*piece).max(1)));
}
