//! Several threads at one phase of a vacuum.
//!
//! # Invariants
//! - Nobody works on alone: who fails, or panics, sets `stop`, and the others come back at their next page. The leader returns only when
//!   all have.
//! - What the helpers have used (pages, WAL, sleep) is counted as the leader's, who reports it.
//! - Messages go out from the leader's thread only.
//! - Each helper is a backend of its own to those who look on, from its thread's start to its end.

use crate::throttle::Throttle;
use base::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use txn::Backend;

/// Tells the others to stop when a thread unwinds.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

/// Works in this thread and in one for each of `helpers`; gives them back. If several fail, this thread's error is told.
///
/// # Errors
/// The work's.
pub(crate) fn side_by_side<H: Send>(
    leader: &Arc<Backend>,
    helpers: Vec<H>,
    purpose: &str,
    stop: &AtomicBool,
    throttle: &mut Throttle,
    say: &mut dyn FnMut(String),
    help: &(dyn Fn(&mut H, &mut Throttle) -> Result<()> + Sync),
    own: impl FnOnce(&mut Throttle) -> Result<()>,
) -> Result<Vec<H>> {
    let planned = helpers.len();
    if planned == 0 {
        own(throttle)?;
        return Ok(helpers);
    }
    let sharers = planned as u32 + 1;
    let role = buffer::Role::mine();
    let settings = throttle.settings().clone();
    let done = std::thread::scope(|scope| {
        let _alarm = Alarm(stop);
        let mut threads = Vec::with_capacity(planned);
        for mut helper in helpers {
            let settings = settings.clone();
            let worker = leader.helper();
            let work = move || {
                let _alarm = Alarm(stop);
                role.take();
                worker.runs_here();
                let mut throttle = Throttle::new(settings);
                throttle.sleeps_as(&worker);
                throttle.share(sharers);
                let result = help(&mut helper, &mut throttle);
                if result.is_err() {
                    stop.store(true, Ordering::SeqCst);
                }
                let usage = (buffer::my_usage(), wal::thread_usage(), throttle.delayed());
                (result.map(|()| helper), usage)
            };
            match std::thread::Builder::new()
                .name("parallel vacuum".to_owned())
                .spawn_scoped(scope, work)
            {
                Ok(thread) => threads.push(thread),
                // No thread to be had: the others do it.
                Err(_) => break,
            }
        }
        let launched = threads.len();
        let plural = if launched == 1 { "worker" } else { "workers" };
        say(format!(
            "launched {launched} parallel vacuum {plural} for {purpose} (planned: {planned})"
        ));
        throttle.share(launched as u32 + 1);
        let result = own(throttle);
        if result.is_err() {
            stop.store(true, Ordering::SeqCst);
        }
        let mut all = Ok(Vec::with_capacity(launched));
        for thread in threads {
            let (theirs, (buffers, wal, delayed)) = match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            buffer::add_usage(buffers);
            wal::add_thread_usage(wal);
            throttle.add_helper(delayed);
            match (theirs, &mut all) {
                (Ok(helper), Ok(all)) => all.push(helper),
                (Err(e), Ok(_)) => all = Err(e),
                (_, Err(_)) => {}
            }
        }
        result.and(all)
    });
    throttle.share(1);
    done
}
