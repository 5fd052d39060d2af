//! Style as a test: dependencies between folders, the words of comments, and the name.

#![cfg(test)]

mod house;
mod name;
mod sources;
mod words;
