//! A charge over several slots of a cluster: all slots decide in the same round trip, and if one denies, the
//! grants of the others are undone.

use std::mem;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call::Call;
use super::deny_cache::Ticket;
use super::groups::{Group, GroupReply, Groups};
use super::store::Shared;
use super::trouble::{Trouble, TroubleKind};

/// Replies of the slots to one charge. If it is dropped without being [settled](Self::settle), as when the
/// caller has gone, grants are undone unless all slots granted.
pub(super) struct SlotReplies {
    shared: Arc<Shared>,
    groups: Groups,
    answers: Vec<Result<GroupReply, Trouble>>,
    is_settled: bool,
}

impl SlotReplies {
    /// Sends the charge to all slots concurrently.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future charges everything or nothing: a task completes the calls.
    ///
    /// # Errors
    ///
    /// If the runtime shuts down.
    pub(super) async fn ask(
        shared: &Arc<Shared>,
        groups: Groups,
        deadline: Instant,
    ) -> Result<Self, Trouble> {
        let (sender, replies) = oneshot::channel();
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            // If the receiver has gone, the value is dropped, which settles it.
            let _ = sender.send(Self::ask_here(shared, groups, deadline).await);
        });
        replies
            .await
            .map_err(|_| Trouble::new(TroubleKind::Connection, "the runtime is shutting down"))
    }

    /// Calls all groups concurrently, then, for a migrating slot, each of its buckets separately.
    async fn ask_here(shared: Arc<Shared>, groups: Groups, deadline: Instant) -> Self {
        let nodes = &shared.nodes;
        let read =
            |group: &Group, reply| group.read(reply).inspect_err(|trouble| nodes.report(trouble));
        let whole = groups.iter().map(|group| nodes.call_whole(group.charge(), deadline));
        let (mut called, mut answers, mut rest) = (Groups::new(), Vec::new(), Groups::new());
        for (reply, group) in join_all(whole).await.into_iter().zip(groups) {
            match reply.transpose() {
                Some(reply) => {
                    answers.push(reply.and_then(|reply| read(&group, reply)));
                    called.push(group);
                }
                None => rest.extend(group.apart()),
            }
        }
        let apart = rest.iter().map(|group| async move {
            let reply = nodes.call(group.charge(), deadline).await?;
            read(group, reply)
        });
        answers.extend(join_all(apart).await);
        called.extend(rest);
        Self { shared, groups: called, answers, is_settled: false }
    }

    /// Did a slot deny?
    pub(super) fn is_denied(&self) -> bool {
        self.answers.iter().flatten().any(|answered| !answered.reply.done)
    }

    /// The groups with a reply.
    pub(super) fn answered(&self) -> impl Iterator<Item = (&Group, &GroupReply)> {
        let both = self.groups.iter().zip(&self.answers);
        both.filter_map(|(group, answer)| Some((group, answer.as_ref().ok()?)))
    }

    /// The groups without a reply.
    pub(super) fn silent(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().zip(&self.answers).filter(|(_, answer)| answer.is_err()).map(|(g, _)| g)
    }

    /// Keeps the charge, or undoes it asynchronously: then the decisions are those of an uncharged peek.
    pub(super) fn settle(&mut self, is_granted: bool) {
        self.is_settled = true;
        if is_granted {
            return;
        }
        let granted = self.groups.iter().zip(&mut self.answers).filter_map(|(group, answer)| {
            answer.as_mut().ok().filter(|answered| answered.reply.done).map(|it| (group, it))
        });
        let calls: Vec<Call> = granted.flat_map(|(group, it)| group.undo(it)).collect();
        // Without a runtime the process is shutting down, and its connections with it.
        if let Ok(runtime) = Handle::try_current()
            && !calls.is_empty()
        {
            let shared = Arc::clone(&self.shared);
            let deadline = Instant::now() + shared.settings.budget;
            runtime.spawn(async move {
                join_all(calls.into_iter().map(|call| shared.undo(call, deadline))).await;
            });
        }
    }

    /// Caches the denials, each with the last figures of the tiers that did not deny.
    pub(super) fn remember(&self, ticket: Ticket) {
        for (denying, (group, answer)) in self.answered().enumerate() {
            if answer.reply.done {
                continue;
            }
            let (mut parts, mut reply) = (group.parts.clone(), answer.reply.clone());
            let mut decisions = answer.decisions.clone();
            for (_, (group, answer)) in self.answered().enumerate().filter(|(i, _)| *i != denying) {
                let each = group.parts.iter().zip(&answer.reply.seen).zip(&answer.decisions);
                for ((part, seen), decision) in each.filter(|(_, decision)| decision.is_granted()) {
                    parts.push(part.clone());
                    reply.seen.push(*seen);
                    decisions.push(*decision);
                }
            }
            self.shared.denied.insert(ticket, &parts, &reply, &decisions);
        }
    }
}

impl Drop for SlotReplies {
    fn drop(&mut self) {
        if !mem::replace(&mut self.is_settled, true) {
            self.settle(
                self.answers.iter().all(|answer| answer.as_ref().is_ok_and(|it| it.reply.done)),
            );
        }
    }
}
