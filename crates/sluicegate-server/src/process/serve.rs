//! Start and orderly shutdown of the service.

use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::{Limiter, QuotaError, TlsFilesError};
use thiserror::Error;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{info, warn};

use super::signals::EndSignals;
use crate::app::{App, RequestLimits};
use crate::auth::admission::Admission;
use crate::auth::callers::UseRecorder;
use crate::auth::connection::ListenerTraits;
use crate::auth::guard::Guard;
use crate::config::{Address, Config, Door, HttpRoutes, ListenTls, StoreUrl, UnixAddress, reason};
use crate::doors::dispatch::Dispatch;
use crate::doors::listen::{
    Listener, ListenerConfig, ListenerLimit, ProtocolHandler, ProxyProtocol, Renewal, Slots, Tls,
};
use crate::doors::resp::Resp;
use crate::lifecycle::{Phase, Phases};
use crate::observe::audit::Audit;
use crate::observe::history::History;
use crate::observe::live::{Live, Sources};
use crate::observe::logging::{self, Audience};
use crate::observe::metrics::Metrics;
use crate::observe::overflow::OverflowWatch;
use crate::observe::ready::{Check, Readiness};
use crate::observe::recent::Recent;
use crate::observe::stats::Stats;
use crate::process::file_limit;
use crate::process::startup::{Announced, Startup};
use crate::rules::reload::Reloader;
use crate::rules::snapshot::{self, Keeper, Parts, Start};
use crate::rules::source::{RulesError, RulesSource};
use crate::store::{self, StoreError};
use crate::time::Timestamp;

/// Longest time from the signal to the end of the last connection: a second less than promised, for the last writes.
const END_AFTER: Duration = Duration::from_secs(4);

/// Time for the last writes of the audit and of callers' uses, beyond that.
const WRITES_AFTER: Duration = Duration::from_millis(500);

/// Error that keeps the service from starting.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    /// No rules could be loaded.
    #[error("{0}")]
    Rules(#[from] snapshot::SnapshotError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Other machines can reach data listeners, and their clients would not have to prove who they are.
    #[error("other machines can reach {listeners}, and no caller exists")]
    Open {
        /// The listeners with their addresses.
        listeners: String,
        /// Ways to protect them.
        help: String,
    },
    /// The certificate or key of a listener cannot be used.
    #[error("cannot listen with TLS: {0}")]
    Tls(#[from] TlsFilesError),
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {}", reason(source))]
    Listen {
        /// Door that was to listen there.
        door: Door,
        /// Address as configured.
        address: Address,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another refusal of the operating system.
    #[error("cannot {what}: {}", reason(source))]
    System {
        /// Action that failed, as a verb: `catch signals`.
        what: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl ServeError {
    /// The error and a hint, for a terminal, in colours or without.
    #[must_use]
    pub(crate) fn report(&self, in_colours: bool) -> String {
        let help = match self {
            Self::Rules(snapshot::SnapshotError::Rules(RulesError::Refused(errors))) => {
                return if in_colours { errors.coloured().to_string() } else { errors.to_string() };
            }
            Self::Rules(snapshot::SnapshotError::Down { .. }) => {
                "check that database.url is the address of a running database, or start from a file \
                 with --rules"
            }
            Self::Rules(snapshot::SnapshotError::Refused { .. }) => {
                "correct them with `sluicegate rules import --database URL FILE` or by SQL, or start from a \
                 file with --rules"
            }
            Self::Open { help, .. } => help,
            Self::Store(error) => store::help(error),
            Self::Listen { door, address, source } => &help_to_listen(*door, address, source),
            _ => "",
        };
        let help = if help.is_empty() { String::new() } else { format!("\n  = help: {help}") };
        format!("error: {self}{help}")
    }
}

/// Serves until a signal arrives.
///
/// # Errors
///
/// [`ServeError`] if it cannot start.
pub(crate) fn run(config: Config, audience: Audience) -> Result<(), ServeError> {
    let system = |what| move |source| ServeError::System { what, source };
    let is_text = logging::start(&config.log, audience);
    for note in &config.notes {
        warn!("{note}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(system("start threads"))?;
    let served = runtime.block_on(async {
        // Before anything starts, so that every signal ends the process in order.
        let mut signals = EndSignals::catch().map_err(system("catch signals"))?;
        let service = tokio::select! {
            service = Box::pin(Service::start(config)) => service?,
            signal = signals.next() => {
                info!(signal = signal.name, "stopped before serving");
                return Ok(());
            }
        };
        service.announce(is_text && audience.is_person);
        service.serve(signals).await;
        Ok(())
    });
    // Tasks that are left have had their grace period.
    runtime.shutdown_background();
    served
}

/// Hint for an address that cannot be bound.
fn help_to_listen(door: Door, address: &Address, error: &io::Error) -> String {
    let door = door.name();
    if let Address::Unix(UnixAddress { path, .. }) = address {
        return help_with_socket(door, path, error);
    }
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another process listens there: stop it, or choose another address with --listen-{door}"
        ),
        io::ErrorKind::PermissionDenied => {
            format!("ports below 1024 need a privilege: choose a higher one with --listen-{door}")
        }
        _ => String::new(),
    }
}

/// Hint for a Unix socket that cannot be bound.
fn help_with_socket(door: &str, path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another process listens there: stop it, or choose another path with --listen-{door}"
        ),
        io::ErrorKind::AlreadyExists => {
            format!("remove {path}, or choose another path with --listen-{door}")
        }
        io::ErrorKind::NotFound => {
            format!("the folder of {path} must exist")
        }
        io::ErrorKind::PermissionDenied => format!(
            "this user must be able to write to the folder of {path}, and be a member of the socket's group"
        ),
        _ => String::new(),
    }
}

fn no_signals(source: io::Error) -> ServeError {
    ServeError::System { what: "catch signals", source }
}

/// Unreachable within the bounds of the setting.
fn uncountable(error: QuotaError) -> ServeError {
    ServeError::System { what: "count wrong tokens and passwords", source: io::Error::other(error) }
}

/// Assembles everything that the handlers need, with the first rules in force. Nothing runs yet.
pub(crate) async fn app(config: &Config, start: Start) -> Result<Arc<App>, ServeError> {
    let limiter = Limiter::new(store::open(&config.store).await?, start.rules());
    let parts = Parts {
        metrics: Metrics::new(Arc::clone(limiter.store())),
        limiter,
        ready: Readiness::new(),
        guard: Arc::new(Guard::new(config).map_err(uncountable)?),
        callers: Arc::default(),
    };
    let keeper = Keeper::new(config, start, parts.clone());
    let Parts { limiter, metrics, ready, guard, callers } = parts;
    let admission = Admission::new(callers, Arc::clone(&guard), config).map_err(uncountable)?;
    let audit = Audit::new(&config.audit, keeper.database_handle(), &metrics);
    let history = History::new(
        &config.history,
        keeper.database_handle(),
        audit.pseudonyms().clone(),
        limiter.clone(),
        &metrics,
    );
    let recent = Recent::new(&config.recent, audit.pseudonyms().clone());
    let live = Live::new(&metrics, audit.pseudonyms().clone());
    let bodies = metrics.body_budget(config.limits.bodies_bytes_max, &config.proxies.trusted);
    let app = Arc::new(App {
        limiter,
        metrics,
        ready,
        overflow: OverflowWatch::default(),
        guard,
        admission: Arc::new(admission),
        limits: RequestLimits::of(config),
        bodies: Arc::new(bodies),
        client_ip: config.proxies.client_ip(),
        has_trusted_proxies: !config.proxies.trusted.is_empty(),
        headers: config.headers.headers(),
        has_refunds: config.grpc.has_refunds,
        authorize: config.authorize.clone(),
        keeper,
        audit,
        history,
        recent,
        stats: Stats::default(),
        live,
    });
    app.metrics.reloaded(&app.limiter.rules(), Timestamp::now().seconds());
    app.ready.pass(Check::Rules);
    Ok(app)
}

/// Binds every configured listener; if one fails, none is started.
fn listen(
    config: &Config,
    app: &Arc<App>,
    slots: &Slots,
    phases: &Phases,
    tls: &[(ListenTls, Tls)],
) -> Result<Vec<Listening>, ServeError> {
    let mut bound = Vec::new();
    for ((door, address), listener_slots) in config.listen.addresses().zip(slots.per_listener()) {
        let app = Arc::clone(app);
        let files = config.listen.tls_of(door);
        let limits = config.listen.limits_of(door, &config.limits);
        let listener_config = ListenerConfig {
            metrics: app.metrics.clone(),
            slots: listener_slots,
            phase: phases.watch(),
            proxy_protocol: config
                .listen
                .proxied
                .contains(&door)
                .then(|| ProxyProtocol::trusting(&config.proxies.trusted)),
            traits: ListenerTraits {
                door,
                is_local: config.listen.is_local(door),
                requires_certificates: files.client_ca.is_some(),
            },
            tls: tls.iter().find(|(of, _)| *of == files).map(|(_, tls)| tls.clone()),
            handler: match door {
                Door::Http | Door::Admin => {
                    let routes = config.listen.routes_of(door);
                    ProtocolHandler::Http(Dispatch::http(app, routes))
                }
                Door::Grpc => ProtocolHandler::Http(Dispatch::grpc(app)),
                Door::Resp => {
                    ProtocolHandler::Resp(Resp::new(app, config, &limits).map_err(uncountable)?)
                }
            },
            limits,
        };
        let listener = Listener::bind(address, listener_config)
            .map_err(|source| ServeError::Listen { door, address: address.clone(), source })?;
        bound.push((door, listener));
    }
    let run = |(door, listener): (Door, Listener)| Listening {
        door,
        address: listener.address().clone(),
        is_tls: listener.is_tls(),
        routes: config.listen.routes_of(door),
        task: tokio::spawn(listener.run()),
    };
    Ok(bound.into_iter().map(run).collect())
}

/// A running service.
struct Service {
    app: Arc<App>,
    phases: Phases,
    source: RulesSource,
    store: StoreUrl,
    listening: Vec<Listening>,
    slots: Slots,
    uses: UseRecorder,
    grace: Duration,
}

/// A running listener.
struct Listening {
    door: Door,
    address: Address,
    is_tls: bool,
    routes: HttpRoutes,
    task: JoinHandle<()>,
}

impl Listening {
    fn announced(&self) -> Announced<'_> {
        Announced {
            door: self.door,
            address: &self.address,
            is_tls: self.is_tls,
            has_health: self.routes.has_health,
            has_metrics: self.routes.has_metrics,
        }
    }
}

impl Service {
    async fn start(config: Config) -> Result<Self, ServeError> {
        let open = |files: ListenTls| Ok((files.clone(), Tls::open(files.files())?));
        let tls = config.listen.tls_sets().into_iter().map(open);
        let tls = tls.collect::<Result<Vec<_>, TlsFilesError>>()?;
        let start = Start::find(&config).await?;
        if !config.listen.is_anonymous_allowed
            && start.is_without_callers(&config)
            && let Some(listeners) = config.open_listeners_shown()
        {
            return Err(ServeError::Open { listeners, help: config.ways_to_protect() });
        }
        let (source, text) = (start.source.clone(), start.text.clone());
        let app = app(&config, start).await?;
        app.history.apply_privacy();

        let connections_max = file_limit::provide_for(config.limits.connections_max);
        let limit = |(door, _): (Door, _)| ListenerLimit {
            listener: door.name(),
            connections_max: config.listen.of(door).connections_max,
        };
        let limits: Vec<_> = config.listen.addresses().map(limit).collect();
        let slots = Slots::new(connections_max, &limits, &config.proxies.trusted, &app.metrics);
        let phases = Phases::new();
        if !tls.is_empty() {
            let all = tls.iter().map(|(_, tls)| tls.clone());
            let renewal = Renewal::new(all, app.ready.clone()).map_err(no_signals)?;
            tokio::spawn(renewal.run());
        }
        let listening = listen(&config, &app, &slots, &phases, &tls)?;
        app.ready.pass(Check::Listeners);

        let reloader =
            Reloader::new(app.keeper.clone(), source.clone(), text).map_err(no_signals)?;
        tokio::spawn(reloader.run());
        tokio::spawn(app.keeper.clone().run());
        tokio::spawn(app.audit.clone().run());
        let callers = Arc::clone(&app.admission.callers);
        let uses = UseRecorder::new(callers, app.keeper.database_handle());
        tokio::spawn(uses.clone().run());
        tokio::spawn(app.history.clone().run());
        tokio::spawn(app.stats.clone().run(app.metrics.clone()));
        let sources = Sources {
            limiter: app.limiter.clone(),
            metrics: app.metrics.clone(),
            status: app.keeper.shared_status(),
        };
        tokio::spawn(app.live.clone().run(sources));
        tokio::spawn(store::sweep(Arc::clone(app.limiter.store())));
        tokio::spawn(app.overflow.clone().run(Arc::clone(app.limiter.store())));
        let grace = config.shutdown.grace;
        let store = config.store.url;
        Ok(Self { app, phases, source, store, listening, slots, uses, grace })
    }

    /// Announces the start: with examples on a terminal, as log events otherwise.
    fn announce(&self, to_a_person: bool) {
        let max_buckets = self.app.limiter.store().local_stats().max_buckets;
        let has_token = !self.app.guard.is_open();
        if self.app.guard.is_closed() {
            warn!(
                "the administration is closed, because no token exists: create one with `sluicegate tokens create`"
            );
        }
        if to_a_person {
            let startup = Startup {
                listeners: &self.listening.iter().map(Listening::announced).collect::<Vec<_>>(),
                source: &self.source,
                rules: &self.app.limiter.rules(),
                store: &self.store,
                max_buckets,
                has_token,
            };
            // A closed terminal does not matter.
            let _ = io::stderr().write_all(startup.message().as_bytes());
        } else {
            let version = env!("CARGO_PKG_VERSION");
            let (source, store) = (&self.source, &self.store);
            let rules = self.app.limiter.rules().rules().len();
            info!(version, rules, rules_source = %source, %store, max_buckets, has_token, "starting");
            for Listening { door, address, is_tls, .. } in &self.listening {
                info!(listener = door.name(), tls = is_tls, %address, "listening");
            }
        }
    }

    /// Serves until a signal comes and requests in flight are answered. A second signal ends the process at once.
    async fn serve(self, mut signals: EndSignals) {
        let first = signals.next().await;
        let end_at = Instant::now() + END_AFTER;
        // ## Serving => Leaving: load balancers see that it is not ready and choose another
        // replica.
        self.app.ready.fail(Check::Shutdown, format!("shutting down after {}", first.name));
        self.phases.enter(Phase::Leaving);
        info!(signal = first.name, "shutting down: not ready any more");
        tokio::select! {
            () = self.end(end_at) => {}
            second = signals.next() => {
                warn!(signal = second.name, "stopping at once");
                process::exit(second.exit_code.into());
            }
        }
    }

    async fn end(self, end_at: Instant) {
        sleep(self.grace).await;
        // ## Leaving => Draining: no new connections.
        self.phases.enter(Phase::Draining);
        for listening in self.listening {
            // Whatever its result, it accepts no more connections.
            let _ = listening.task.await;
        }
        // ## Draining => stopped: all requests are answered, or the time is up.
        let connections = self.slots.taken();
        if timeout_at(end_at, self.slots.all_free()).await.is_err() {
            warn!(
                connections = self.slots.taken(),
                "stopped: these connections were closed before they were answered"
            );
        } else {
            info!(connections, "stopped: all requests were answered");
        }
        // After the last decision, the rest of the audit and of the history and the last uses of callers are written.
        let end_at = end_at + WRITES_AFTER;
        let recording = timeout_at(end_at, self.uses.record());
        let (audit, history) = (self.app.audit.finish(end_at), self.app.history.finish(end_at));
        let _ = tokio::join!(audit, history, recording);
    }
}
