//! File descriptor limit: every connection takes one descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, warn};

/// Descriptors for everything else: listeners, files, the runtime.
const OTHERS: u64 = 64;

/// Raises the limit to what the maximum number of connections needs, as far as allowed. Beyond the
/// limit, connections wait until others end.
pub(crate) fn provide_for(connections: usize) {
    let wanted = (connections as u64).saturating_add(OTHERS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(have) = current.filter(|have| *have < wanted) else { return };
    let may = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised =
        may > have && setrlimit(Resource::Nofile, Rlimit { current: Some(may), maximum }).is_ok();
    let have = if raised { may } else { have };
    debug!(descriptors = have, "descriptors allowed");
    if have < wanted {
        let fitting = have.saturating_sub(OTHERS);
        warn!(
            descriptors = have,
            connections_max = connections,
            fitting,
            "fewer descriptors than connections_max needs: more connections have to wait"
        );
    }
}
