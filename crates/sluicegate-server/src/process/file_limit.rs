//! File descriptor limit: every connection takes one descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, warn};

/// Descriptors for everything else: listeners, files, the runtime.
const OTHERS: u64 = 64;

/// Raises the limit to what the maximum number of connections needs, as far as allowed, and returns
/// the number of connections that fit: without a descriptor, none could be accepted and none evicted.
pub(crate) fn provide_for(connections: usize) -> usize {
    let wanted = (connections as u64).saturating_add(OTHERS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(have) = current.filter(|have| *have < wanted) else { return connections };
    let may = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised =
        may > have && setrlimit(Resource::Nofile, Rlimit { current: Some(may), maximum }).is_ok();
    let have = if raised { may } else { have };
    debug!(descriptors = have, "descriptors allowed");
    if have >= wanted {
        return connections;
    }
    let fitting = usize::try_from(have.saturating_sub(OTHERS).max(have / 2)).unwrap_or(usize::MAX);
    let fitting = fitting.clamp(1, connections);
    warn!(
        descriptors = have,
        connections_max = connections,
        fitting,
        "fewer descriptors than limits.connections_max needs: raise the limit of open files"
    );
    fitting
}
