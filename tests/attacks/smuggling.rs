//! Requests whose end two parsers would see at different places.
