//! The service from its first moment to its last.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tollgate::{Limiter, SettingsError, StartError};
use tracing::{info, warn};

use crate::config::{Config, StoreUrl, is_loopback, reason};
use crate::descriptors;
use crate::http::{App, Guard, HttpLimits, router};
use crate::listen::{Listener, Remaining, Serving};
use crate::logging::{self, Audience};
use crate::metrics::Metrics;
use crate::ready::{Check, Readiness};
use crate::reload::{Reloader, unix_seconds};
use crate::rules_source::{RulesError, RulesSource};
use crate::shutdown::{EndSignals, Phase, Phases};
use crate::startup::Startup;
use crate::store;

/// From the signal to the end, at most: a second less than is promised, for what comes after.
const END_AFTER: Duration = Duration::from_secs(4);

/// Why the service did not start.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The rules are wrong.
    #[error("{0}")]
    Rules(#[from] RulesError),
    /// The settings of the store do not go together.
    #[error("cannot use the settings of the store: {0}")]
    StoreSettings(#[from] SettingsError),
    /// The store will never do.
    #[error("cannot use the store {url}: {source}")]
    Store {
        /// Where it is, without a password.
        url: String,
        /// Why.
        source: StartError,
    },
    /// An address cannot be had.
    #[error("cannot listen on {address}: {}", reason(source))]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The operating system refuses something else.
    #[error("cannot {what}: {}", reason(source))]
    System {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl ServeError {
    /// What went wrong and what to do about it, for people, in colours or without.
    #[must_use]
    pub fn report(&self, in_colours: bool) -> String {
        let help = match self {
            Self::Rules(RulesError::Refused(errors)) if in_colours => {
                return errors.coloured().to_string();
            }
            Self::Rules(RulesError::Refused(errors)) => return errors.to_string(),
            Self::Store { source, .. } => store::help(source),
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "another process listens there: end it, or listen elsewhere with --listen-http"
            }
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "ports below 1024 need a privilege: listen on a higher one with --listen-http"
            }
            _ => "",
        };
        let help = if help.is_empty() { String::new() } else { format!("\n  = help: {help}") };
        format!("error: {self}{help}")
    }
}

/// Serves until a signal ends it.
///
/// # Errors
///
/// If it cannot begin to.
pub fn run(config: Config, audience: Audience) -> Result<(), ServeError> {
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
        // Caught before anything can be asked for, so that no signal finds the process unprepared.
        let signals = EndSignals::catch().map_err(system("catch signals"))?;
        let service = Service::start(config).await?;
        service.announce(is_text && audience.is_person);
        service.serve(signals).await;
        Ok(())
    });
    // What is left was given its time.
    runtime.shutdown_background();
    served
}

/// A service that serves.
struct Service {
    app: Arc<App>,
    phases: Phases,
    source: RulesSource,
    store: StoreUrl,
    address: SocketAddr,
    listening: JoinHandle<Remaining>,
    grace: Duration,
    has_token: bool,
}

impl Service {
    async fn start(config: Config) -> Result<Self, ServeError> {
        let source = RulesSource::new(config.rules.file.as_deref());
        let (rules, text) = source.load()?;
        let limiter = Limiter::new(store::open(&config.store).await?, rules);
        let ready = Readiness::new();
        let metrics = Metrics::new(Arc::clone(limiter.store()));
        let has_token = config.admin.token.is_some();
        let Some(address) = config.listen.http else {
            // The settings were checked: there is a listener.
            let source = io::Error::other("there is no listener");
            return Err(ServeError::System { what: "listen", source });
        };
        let app = Arc::new(App {
            limiter,
            metrics,
            ready,
            guard: Guard::new(config.admin.token, is_loopback(address)),
            limits: HttpLimits {
                body_bytes_max: config.limits.body_bytes_max,
                body_timeout: config.limits.body_timeout,
                batch_max: config.limits.batch_max,
                attributes_max: config.limits.attributes_max,
                value_bytes_max: config.limits.value_bytes_max,
            },
        });
        app.metrics.reloaded(&app.limiter.rules(), unix_seconds());
        app.ready.pass(Check::Rules);

        descriptors::provide_for(config.limits.connections_max);
        let phases = Phases::new();
        let serving = Serving {
            router: router(Arc::clone(&app)),
            metrics: app.metrics.clone(),
            limits: config.limits,
            phase: phases.watch(),
        };
        let listener = Listener::bind(address, serving)
            .map_err(|source| ServeError::Listen { address, source })?;
        let address = listener.address();
        let listening = tokio::spawn(listener.run());
        app.ready.pass(Check::Listeners);

        let reloader = Reloader::new(Arc::clone(&app), source.clone(), text)
            .map_err(|source| ServeError::System { what: "catch signals", source })?;
        tokio::spawn(reloader.run());
        tokio::spawn(store::sweep(Arc::clone(app.limiter.store())));
        let grace = config.shutdown.grace;
        let store = config.store.url;
        Ok(Self { app, phases, source, store, address, listening, grace, has_token })
    }

    /// Says that it serves: to a person what and how to try it, to others the facts.
    fn announce(&self, to_a_person: bool) {
        let rules = self.app.limiter.rules().rules().len();
        let max_buckets = store::local_stats(self.app.limiter.store()).max_buckets;
        let has_token = self.has_token;
        if to_a_person {
            let startup = Startup {
                address: self.address,
                source: &self.source,
                rules,
                store: &self.store,
                max_buckets,
                has_token,
            };
            // Nobody reads it if that fails.
            let _ = io::stderr().write_all(startup.message().as_bytes());
        } else {
            let version = env!("CARGO_PKG_VERSION");
            let (source, store) = (&self.source, &self.store);
            info!(version, rules, rules_source = %source, %store, max_buckets, has_token, "starting");
            info!(listener = "http", address = %self.address, "listening");
        }
    }

    /// Serves until a signal has come and what was in flight is answered. A second signal ends the
    /// process at once.
    async fn serve(self, mut signals: EndSignals) {
        let first = signals.next().await;
        let end_at = Instant::now() + END_AFTER;
        // ## Serving => Leaving: load balancers see it and go elsewhere.
        self.app.ready.fail(Check::Shutdown, format!("ending, for {} came", first.name));
        self.phases.enter(Phase::Leaving);
        info!(signal = first.name, "ending: not ready any more");
        tokio::select! {
            () = self.end(end_at) => {}
            second = signals.next() => {
                warn!(signal = second.name, "ending at once");
                process::exit(second.exit_code.into());
            }
        }
    }

    async fn end(self, end_at: Instant) {
        sleep(self.grace).await;
        // ## Leaving => Draining: nothing new.
        self.phases.enter(Phase::Draining);
        let Ok(remaining) = self.listening.await else { return };
        // ## Draining => the end: everything is answered, or its time is up.
        let connections = remaining.count();
        if timeout_at(end_at, remaining.ended()).await.is_err() {
            warn!(connections = remaining.count(), "ended: these connections were cut");
        } else {
            info!(connections, "ended: everything is answered");
        }
    }
}
