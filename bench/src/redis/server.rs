//! The private Redis of the measurements.

use std::path::PathBuf;

use redis::Connection;
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::units::Scripts;
use crate::wire::Wire;

/// Module built by `make bench-redis`.
const CELL_MODULE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/target/redis-cell/release/libredis_cell.so");

pub(crate) struct Server {
    redis: RedisServer,
    connection: Connection,
    pub(crate) has_cell: bool,
}

/// Cost of a round to the server.
pub(crate) struct Used {
    pub(crate) command_us: f64,
    pub(crate) processor_us: f64,
}

/// The server's processor time when a round began.
pub(crate) struct Before {
    processor_us: f64,
}

impl Server {
    /// Starts Redis 7.0 of Debian, with redis-cell if that was built.
    pub(crate) fn start() -> Self {
        let module = PathBuf::from(CELL_MODULE);
        let has_cell = module.exists();
        let mut builder = RedisServer::builder(Flavour::Redis70);
        if has_cell {
            builder = builder.config(format!("loadmodule {}", module.display()));
        }
        let redis = builder.start();
        let connection = redis.connection().expect("the server takes connections");
        Self { redis, connection, has_cell }
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(self.redis.port()).expect("the server takes connections")
    }

    pub(crate) fn url(&self) -> String {
        self.redis.url()
    }

    pub(crate) fn version(&mut self) -> String {
        let info = self.info("server");
        field(&info, "redis_version").unwrap_or("unknown").to_owned()
    }

    pub(crate) fn load_scripts(&mut self) -> Scripts {
        let [empty, naive, charge] = Scripts::SOURCES.map(|source| self.load(source));
        Scripts { empty, naive, charge }
    }

    pub(crate) fn load(&mut self, source: &str) -> String {
        self.ask(redis::cmd("SCRIPT").arg("LOAD").arg(source))
    }

    /// Deletes all buckets.
    pub(crate) fn clear(&mut self) {
        let _: String = self.ask(redis::cmd("FLUSHALL").arg("SYNC"));
    }

    pub(crate) fn memory_bytes(&mut self) -> f64 {
        let info = self.info("memory");
        number(&info, "used_memory")
    }

    /// Starts counting script calls and other commands.
    pub(crate) fn start_counting(&mut self) -> Before {
        let _: String = self.ask(redis::cmd("CONFIG").arg("RESETSTAT"));
        Before { processor_us: self.processor_us() }
    }

    pub(crate) fn stop_counting(&mut self, before: &Before, command: &str) -> Used {
        let processor_us = self.processor_us() - before.processor_us;
        let info = self.info("commandstats");
        let line = field(&info, &format!("cmdstat_{command}")).unwrap_or_default();
        let usec = line.split(',').find_map(|part| part.strip_prefix("usec="));
        let command_us = usec.and_then(|usec| usec.parse().ok()).unwrap_or(f64::NAN);
        Used { command_us, processor_us }
    }

    fn processor_us(&mut self) -> f64 {
        let info = self.info("cpu");
        let user = number(&info, "used_cpu_user_main_thread");
        (user + number(&info, "used_cpu_sys_main_thread")) * 1e6
    }

    fn info(&mut self, section: &str) -> String {
        self.ask(redis::cmd("INFO").arg(section))
    }

    fn ask(&mut self, command: &redis::Cmd) -> String {
        command.query(&mut self.connection).expect("the server answers")
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

fn number(info: &str, name: &str) -> f64 {
    field(info, name).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}
