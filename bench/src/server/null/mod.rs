//! Null servers: they parse a request into the same types as the service, with the same crates and limits, and always
//! send the same answer, of the same length as the service's. They are the upper bound of a server's speed.

mod grpc;
mod http;
mod resp;

use std::path::Path;
use std::{fs, io};

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};

use crate::doors::Door;

/// Recorded answers of the service, by door; empty where it gave none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers([Option<Bytes>; 4]);

impl Answers {
    pub(crate) fn set(&mut self, door: Door, answer: Vec<u8>) {
        self.0[door as usize] = Some(answer.into());
    }

    pub(crate) fn save(&self, folder: &Path) -> io::Result<()> {
        let named = |(number, answer): (usize, &Option<Bytes>)| {
            answer.as_ref().map(|answer| (folder.join(number.to_string()), answer.clone()))
        };
        self.0.iter().enumerate().filter_map(named).try_for_each(|(path, it)| fs::write(path, it))
    }

    fn load(folder: &Path) -> Self {
        let read = |number: usize| fs::read(folder.join(number.to_string())).ok().map(Bytes::from);
        Self([0, 1, 2, 3].map(read))
    }

    fn of(&self, door: Door) -> Bytes {
        self.0[door as usize].clone().unwrap_or_default()
    }
}

/// Serves the answers in `folder` on these ports, until the process is killed.
pub(crate) fn serve(folder: &Path, ports: [u16; 4]) -> io::Result<()> {
    let answers = Answers::load(folder);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        for door in Door::ALL {
            let listener = TcpListener::bind(("127.0.0.1", ports[door as usize])).await?;
            let answer = answers.of(door);
            match door {
                Door::Http => tokio::spawn(http::serve(listener, answer)),
                Door::Grpc => tokio::spawn(grpc::serve(listener, answer)),
                Door::Resp | Door::RespCheck => tokio::spawn(resp::serve(listener, answer)),
            };
        }
        std::future::pending().await
    })
}

/// Accepts a connection with the service's socket options.
async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
