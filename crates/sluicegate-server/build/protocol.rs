//! Generates Rust of Envoy's rate limit protocol, without `protoc`.

use std::error::Error;
use std::fs;
use std::path::Path;

use protox::prost_reflect::prost_types::FileDescriptorSet;
use protox::prost_reflect::prost_types::field_descriptor_proto::Type;

/// Folder of the protocol's files, and the file that imports the others.
const FOLDER: &str = "proto";
const SERVICE: &str = "envoy/service/ratelimit/v3/rls.proto";

/// Message with values sent by clients, and the field that holds them.
const ENTRY: (&str, &str, &str) = ("RateLimitDescriptor", "Entry", "value");

/// Writes `rls.rs` and `rls.bin`, which `doors::grpc` includes.
pub(crate) fn generate(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut compiler = protox::Compiler::new([FOLDER])?;
    // Comments are written for Envoy's documentation pages, not for rustdoc.
    compiler.include_imports(true).include_source_info(false).open_file(SERVICE)?;

    // Description of the protocol for the reflection service.
    fs::write(out.join("rls.bin"), compiler.encode_file_descriptor_set())?;
    tonic_prost_build::configure()
        // `doors::grpc::service` implements the service, and the client is for tests.
        .build_server(false)
        .build_transport(false)
        .include_file("rls.rs")
        .compile_fds(with_values_as_bytes(compiler.file_descriptor_set()))?;
    Ok(())
}

/// The protocol with the values of entries as bytes, which is the same on the wire. Values come
/// from headers of clients and need not be UTF-8, and such a message must still be read.
fn with_values_as_bytes(mut set: FileDescriptorSet) -> FileDescriptorSet {
    let (outer, inner, name) = ENTRY;
    let messages = set.file.iter_mut().flat_map(|file| &mut file.message_type);
    let entries = messages
        .filter(|message| message.name() == outer)
        .flat_map(|message| &mut message.nested_type)
        .filter(|message| message.name() == inner);
    for field in entries.flat_map(|entry| &mut entry.field).filter(|field| field.name() == name) {
        field.set_type(Type::Bytes);
    }
    set
}
