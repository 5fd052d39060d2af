//! Listener of the proxy.

use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::counts::add;
use super::{Shared, connection, loopback};
use crate::servers::free_port;

/// Connections beyond this number are reset on accept.
const CONNECTIONS_MAX: usize = 4096;

/// Binds a free port.
pub(super) fn bind_free() -> (u16, StdListener) {
    loop {
        let port = free_port();
        if let Ok(listener) = StdListener::bind((Ipv4Addr::LOCALHOST, port)) {
            listener.set_nonblocking(true).expect("a listener need not block");
            return (port, listener);
        }
    }
}

/// Serves until it is aborted, which also ends the connections.
pub(super) async fn run(port: u16, listener: StdListener, shared: Arc<Shared>) {
    let mut refuse = shared.refuse.subscribe();
    let mut connections = JoinSet::new();
    let mut listener = TcpListener::from_std(listener).expect("a bound listener");
    loop {
        accept_until_refused(&listener, &mut refuse, &mut connections, &shared).await;
        drop(listener);
        shared.refusing.send_replace(true);
        let _ = refuse.wait_for(|&refuse| !refuse).await;
        listener = bind_again(port).await;
        shared.refusing.send_replace(false);
    }
}

async fn accept_until_refused(
    listener: &TcpListener,
    refuse: &mut watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
    shared: &Arc<Shared>,
) {
    loop {
        tokio::select! {
            _ = refuse.wait_for(|&refuse| refuse) => return,
            Some(_) = connections.join_next() => {}
            Ok((client, _)) = listener.accept() => {
                if connections.len() >= CONNECTIONS_MAX || shared.reset_new.load(Ordering::SeqCst) {
                    reset_new(client, shared);
                } else {
                    connections.spawn(connection::run(client, Arc::clone(shared)));
                }
            }
        }
    }
}

fn reset_new(client: TcpStream, shared: &Shared) {
    drop(shared.counters.open());
    add(&shared.counters.reset_new, 1);
    let _ = client.set_zero_linger();
    drop(client);
}

async fn bind_again(port: u16) -> TcpListener {
    loop {
        match TcpListener::bind(loopback(port)).await {
            Ok(listener) => return listener,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}
