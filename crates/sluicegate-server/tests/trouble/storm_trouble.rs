//! T36 with database faults: the database is slow, locked, full or down during a storm of denials. Denials continue,
//! violations that do not fit the queue are counted, writing resumes by itself, and no violation is lost or counted
//! twice.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use sluicegate_tests::proxy::{FaultProxy, Faults};
use sluicegate_tests::seed::Seed;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

use crate::common::{Launch, Server, eventually, now, pause};
use crate::trouble::place::Place;
use crate::trouble::storm::{GROWTH_MAX, SUM, Storm, prepare};
use crate::trouble::support::{count, fired, memory, mib, ms, report, sized, within};

/// A fast writer with a short queue, so that faults show quickly.
const SETTINGS: [&str; 6] =
    ["--audit-rows-per-second", "200", "--audit-queue-max", "400", "--database-timeout-ms", "1000"];

/// Maximum time of a shutdown.
const END_MAX: Duration = Duration::from_millis(5500);

/// Duration of the fault.
fn lasts() -> Duration {
    Duration::from_secs(sized(3, 30))
}

/// Runs a storm on this service. `begin` and `end` start and end the fault, `seen` counts how often it acted, and
/// `on_record` sums all counts in the database.
fn storm_with_fault(
    name: &str,
    server: &Server,
    begin: impl FnOnce(),
    end: impl FnOnce(),
    seen: impl FnOnce() -> u64,
    on_record: impl FnOnce() -> u64,
) {
    let seed = Seed::announce(name);
    prepare(server);
    let storm = Storm::default();
    let base = storm.blow(server, Duration::from_millis(1500));
    let before = memory(server);
    let during = storm.blow_while(server, || {
        begin();
        pause(lasts());
    });
    let after = memory(server);
    let written = count(server, "violations_written_total");
    let seen = seen();
    end();
    let mended = now();
    let gust = storm.blow_while(server, || {
        eventually("writing to resume", || {
            (count(server, "violations_written_total") > written).then_some(())
        });
    });
    let resumed = now() - mended;
    let account = storm.all_is_accounted_for(server, on_record);
    fired(name, seen);
    fired("a violation that found no room", account.dropped);
    assert!(after <= before + GROWTH_MAX, "{} became {}", mib(before), mib(after));
    let most = base.took(99) * 10 + Duration::from_secs(1);
    assert!(during.took(99) <= most, "{base} before, {during} during");
    let measured = format!(
        "before {base}; during {during}; after {gust}; {account}; writing resumed after {}; memory {} became {}",
        ms(resumed),
        mib(before),
        mib(after)
    );
    report(name, &seed, format_args!("{seen} times"), measured);
    assert_eq!(count(server, "panics_total"), 0);
}

fn write_errors(server: &Server) -> u64 {
    count(server, "violations_write_errors_total")
}

#[test]
fn t36_postgres_is_slow() {
    let place = Place::postgres();
    let Place::Postgres { server: postgres, .. } = &place else { panic!("a server") };
    let proxy = FaultProxy::start(postgres.port());
    let server = place
        .launch(&SETTINGS)
        .env("SLUICEGATE_DATABASE_URL", &place.url_through(proxy.port()))
        .start();
    let latency = Duration::from_millis(80);
    storm_with_fault(
        "T36 slow PostgreSQL",
        &server,
        || proxy.set_both(Faults::latency(latency)),
        || proxy.heal(),
        || proxy.counts().down.delayed_bytes,
        || place.number(SUM),
    );
}

/// Every write of a batch times out, although it may still arrive.
#[test]
fn t36_postgres_is_too_slow() {
    let place = Place::postgres();
    let Place::Postgres { server: postgres, .. } = &place else { panic!("a server") };
    let proxy = FaultProxy::start(postgres.port());
    let server = place
        .launch(&SETTINGS)
        .env("SLUICEGATE_DATABASE_URL", &place.url_through(proxy.port()))
        .start();
    let latency = Duration::from_millis(300);
    storm_with_fault(
        "T36 PostgreSQL too slow",
        &server,
        || proxy.set_both(Faults::latency(latency)),
        || proxy.heal(),
        || write_errors(&server),
        || place.number(SUM),
    );
}

#[test]
fn t36_postgres_is_down() {
    let (postgres, place) = Place::own_postgres();
    let server = place.launch(&SETTINGS).start();
    storm_with_fault(
        "T36 PostgreSQL down",
        &server,
        || postgres.kill(),
        || postgres.restart(),
        || write_errors(&server),
        || place.number(SUM),
    );
}

#[test]
fn t36_sqlite_is_locked() {
    let place = Place::sqlite();
    let server = place.launch(&SETTINGS).start();
    let hand = parking_lot::Mutex::new(place.hand());
    storm_with_fault(
        "T36 locked SQLite",
        &server,
        || hand.lock().sql("BEGIN EXCLUSIVE"),
        || hand.lock().sql("ROLLBACK"),
        || write_errors(&server),
        || place.number(SUM),
    );
}

/// A service that is stopped while its database does not answer ends in time and logs how much it could not write.
#[test]
fn t36_the_end_comes_in_time() {
    let name = "T36 the end";
    let seed = Seed::announce(name);
    let place = Place::sqlite();
    let server = place.launch(&SETTINGS).start();
    prepare(&server);
    let mut hand = place.hand();
    hand.sql("BEGIN EXCLUSIVE");
    let gust = Storm::default().blow(&server, Duration::from_millis(500));
    let asked = now();
    server.signal("TERM");
    let ended = server.wait();
    let took = within("the end", END_MAX, asked, || Some(()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let left = "violations dropped: the process stopped before they were written";
    assert!(ended.stderr.contains(left), "VACUOUS: {}", ended.stderr);
    hand.sql("ROLLBACK");
    report(name, &seed, gust, format_args!("ended in {}", ms(took)));
}

#[test]
fn t36_the_disk_is_full() {
    let disk = Disk::find();
    let launch = Launch::serve(&SETTINGS).env("SLUICEGATE_DATABASE_URL", "sqlite:disk/t.db");
    fs::create_dir(launch.folder().join("disk")).unwrap();
    let server = launch.after_shell(disk.before()).start();
    storm_with_fault(
        &format!("T36 full disk ({disk:?})"),
        &server,
        || disk.fill(&server),
        || disk.empty(&server),
        || write_errors(&server),
        || on_disk(&server),
    );
}

// ===== full disk =====

/// Method of limiting the disk's size, without root privileges if necessary.
#[derive(Clone, Copy, Debug)]
enum Disk {
    /// A private file system that ends with the process.
    Tmpfs,
    /// A limit on file size, where mounting is not allowed.
    FileSize,
}

impl Disk {
    fn find() -> Self {
        let try_it = "mount -t tmpfs -o size=64k tmpfs /mnt";
        let tried = Command::new("unshare").args(["-rm", "sh", "-c", try_it]).output();
        let is_allowed = tried.is_ok_and(|output| output.status.success());
        if is_allowed { Self::Tmpfs } else { Self::FileSize }
    }

    /// Shell commands run before the service, in its process.
    fn before(self) -> &'static str {
        match self {
            Self::Tmpfs => {
                "exec unshare -rm sh -c \
                 'mount -t tmpfs -o size=4m tmpfs disk && cd . && exec \"$0\" \"$@\"' \"$0\" \"$@\""
            }
            // A write beyond the limit fails instead of killing the process.
            Self::FileSize => "trap '' XFSZ",
        }
    }

    fn fill(self, server: &Server) {
        match self {
            Self::Tmpfs => {
                // Ends byte by byte, so that not even a page is left.
                let ballast = folder(server).join("ballast");
                for bytes in [64 << 10, 4 << 10, 1] {
                    while append(&ballast, bytes) {}
                }
            }
            Self::FileSize => limit_file_size(server, "8192"),
        }
    }

    fn empty(self, server: &Server) {
        match self {
            Self::Tmpfs => fs::remove_file(folder(server).join("ballast")).unwrap(),
            Self::FileSize => limit_file_size(server, "unlimited"),
        }
    }
}

fn append(path: &PathBuf, bytes: usize) -> bool {
    use std::io::Write as _;
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(&vec![0; bytes])).is_ok()
}

fn limit_file_size(server: &Server, bytes: &str) {
    let (pid, limit) = (server.pid().to_string(), format!("--fsize={bytes}:unlimited"));
    let done = Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap();
    assert!(done.success(), "prlimit {limit}");
}

/// The disk's folder in the mount namespace of the service.
fn folder(server: &Server) -> PathBuf {
    let inside = server.folder().join("disk");
    let inside = inside.strip_prefix("/").unwrap();
    PathBuf::from(format!("/proc/{}/root", server.pid())).join(inside)
}

/// Sum of all counts in the database, read from a copy after writing has ended.
fn on_disk(server: &Server) -> u64 {
    let copy = TempDir::new().unwrap();
    for name in ["t.db", "t.db-wal"] {
        // There may be no write-ahead log: then everything is in the file.
        let _ = fs::copy(folder(server).join(name), copy.path().join(name));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sum: i64 = runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(copy.path().join("t.db"));
        let mut connection = options.connect().await.unwrap();
        sqlx::query_scalar(SUM).fetch_one(&mut connection).await.unwrap()
    });
    u64::try_from(sum).unwrap()
}
