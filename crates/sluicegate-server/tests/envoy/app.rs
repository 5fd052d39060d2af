//! The application behind Envoy, which echoes the path and counts requests.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// An HTTP server that lives as long as the test process.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl App {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                // A broken connection is handled by Envoy.
                thread::spawn(move || serve(stream, &count));
            }
        });
        Self { address, asked }
    }

    /// Number of requests that reached the application.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn serve(mut stream: TcpStream, count: &AtomicUsize) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(first) = lines.next() {
        let path = first?.split(' ').nth(1).unwrap_or_default().to_owned();
        for line in lines.by_ref() {
            if line?.is_empty() {
                break;
            }
        }
        count.fetch_add(1, Ordering::Relaxed);
        let length = path.len();
        write!(stream, "HTTP/1.1 200 OK\r\nx-app: yes\r\ncontent-length: {length}\r\n\r\n{path}")?;
    }
    Ok(())
}
