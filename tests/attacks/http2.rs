//! Frames of HTTP/2 that cost the service more than the client.
