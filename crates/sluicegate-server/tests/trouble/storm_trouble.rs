//! T36, in bad weather: the database is slow, locked, full or down in the middle of a storm. Denials go on, what
//! finds no room is counted, writing resumes by itself, and not one violation is lost or counted twice.

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

/// A quick writer with little room, so that trouble shows soon.
const SETTINGS: [&str; 6] =
    ["--audit-rows-per-second", "200", "--audit-queue-max", "400", "--database-timeout-ms", "1000"];

/// How long a service may take to end.
const END_MAX: Duration = Duration::from_millis(5500);

/// How long the database is in trouble.
fn lasts() -> Duration {
    Duration::from_secs(sized(3, 30))
}

/// A storm on this service: `begin` and `end` bring trouble and take it away, `seen` says how often it was seen
/// to act, and `on_record` the sum of all counts in the database.
fn weather(
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
    weather(
        "T36 slow PostgreSQL",
        &server,
        || proxy.set_both(Faults::latency(latency)),
        || proxy.heal(),
        || proxy.counts().down.delayed_bytes,
        || place.number(SUM),
    );
}

/// Too slow for any batch to be written in time, though each may well arrive.
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
    weather(
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
    weather(
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
    weather(
        "T36 locked SQLite",
        &server,
        || hand.lock().sql("BEGIN EXCLUSIVE"),
        || hand.lock().sql("ROLLBACK"),
        || write_errors(&server),
        || place.number(SUM),
    );
}

/// A service that is asked to end while its database does not answer ends in time, and says what it could not write.
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
    let left = "violations not recorded: there was no time left";
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
    weather(
        &format!("T36 full disk ({disk:?})"),
        &server,
        || disk.fill(&server),
        || disk.empty(&server),
        || write_errors(&server),
        || on_disk(&server),
    );
}

// ===== a disk that is soon full =====

/// How a disk is made small, without being root if need be.
#[derive(Clone, Copy, Debug)]
enum Disk {
    /// A file system of its own, which nobody else sees and which ends with the process.
    Tmpfs,
    /// Where that is not allowed: no file may grow any more.
    FileSize,
}

impl Disk {
    fn find() -> Self {
        let try_it = "mount -t tmpfs -o size=64k tmpfs /mnt";
        let tried = Command::new("unshare").args(["-rm", "sh", "-c", try_it]).output();
        let is_allowed = tried.is_ok_and(|output| output.status.success());
        if is_allowed { Self::Tmpfs } else { Self::FileSize }
    }

    /// What is done in the process of the service before it begins.
    fn before(self) -> &'static str {
        match self {
            Self::Tmpfs => {
                "exec unshare -rm sh -c \
                 'mount -t tmpfs -o size=4m tmpfs disk && cd . && exec \"$0\" \"$@\"' \"$0\" \"$@\""
            }
            // Whoever goes beyond is told so, and not ended.
            Self::FileSize => "trap '' XFSZ",
        }
    }

    fn fill(self, server: &Server) {
        match self {
            Self::Tmpfs => {
                // Byte by byte in the end: not even a page is left.
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

/// The disk as the service sees it.
fn folder(server: &Server) -> PathBuf {
    let inside = server.folder().join("disk");
    let inside = inside.strip_prefix("/").unwrap();
    PathBuf::from(format!("/proc/{}/root", server.pid())).join(inside)
}

/// The sum of all that is on record, read from a copy: nobody writes any more.
fn on_disk(server: &Server) -> u64 {
    let copy = TempDir::new().unwrap();
    for name in ["t.db", "t.db-wal"] {
        // Without a log everything is in the file.
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
