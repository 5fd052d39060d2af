//! Style as a test: dependencies between folders, one module style, the words of comments, and the name.

#![cfg(test)]

mod house;
mod modules;
mod name;
mod sources;
mod words;
