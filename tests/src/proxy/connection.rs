//! One connection through the proxy.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use super::counts::add;
use super::lane::{Broken, Lane};
use super::{Direction, Shared};

/// Timeout of connecting to the target.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Copies bytes both ways until both ends are done, one breaks, or the connection is to be reset.
///
/// If one end breaks, both get a RST.
pub(super) async fn run(mut client: TcpStream, shared: Arc<Shared>) {
    let _open = shared.counters.open();
    let mut resets = shared.resets.subscribe();
    let mut server = None;
    let outcome = tokio::select! {
        biased;
        _ = resets.changed() => Err(Broken::Reset),
        outcome = carry(&mut client, &mut server, &shared) => outcome,
    };
    if let Err(broken) = outcome {
        if matches!(broken, Broken::Reset) {
            add(&shared.counters.reset, 1);
        }
        reset(client);
        server.into_iter().for_each(reset);
    }
}

async fn carry(
    client: &mut TcpStream,
    server: &mut Option<TcpStream>,
    shared: &Shared,
) -> Result<(), Broken> {
    let target = *shared.target.lock();
    let connected = tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(target)).await;
    let Ok(Ok(stream)) = connected else {
        add(&shared.counters.unreachable, 1);
        return Err(Broken::Peer);
    };
    both_ways(client, server.insert(stream), shared).await
}

async fn both_ways(
    client: &mut TcpStream,
    server: &mut TcpStream,
    shared: &Shared,
) -> Result<(), Broken> {
    // Small replies are sent at once, and slices stay slices.
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let up = Lane::new(shared, Direction::Up).pump(from_client, to_server);
    let down = Lane::new(shared, Direction::Down).pump(from_server, to_client);
    tokio::try_join!(up, down).map(drop)
}

/// Closes with a RST: the kernel drops pending data.
fn reset(stream: TcpStream) {
    let _ = stream.set_zero_linger();
    drop(stream);
}
