//! Stop points: named places inside races at which a test can hold a thread.
//!
//! `stop_point!("heap.update.before_log")` costs one relaxed load when no test has armed any. A test
//! arms a point, lets a thread run as its [`Subject`], waits until that thread has arrived, does what
//! the race needs, and releases it.
//!
//! # Invariant
//! An armed point holds its own subjects and nobody else: the tests of a binary share one process,
//! and many run through the places that one of them has armed.

use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a test waits for what is bound to happen, on however loaded a machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

#[doc(hidden)]
pub static ARMED: AtomicUsize = AtomicUsize::new(0);

thread_local!(static SUBJECT_OF: RefCell<Option<Arc<Point>>> = const { RefCell::new(None) });

struct Point {
    name: &'static str,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: usize,
    /// Subjects whose work is over.
    over: usize,
    armed: bool,
    /// So many more arrivals pass.
    pass: usize,
    /// How often those held were let on.
    let_on: usize,
}

/// Marks a place where a test can hold the thread.
#[macro_export]
macro_rules! stop_point {
    ($name:literal) => {
        if $crate::stop::ARMED.load(std::sync::atomic::Ordering::Relaxed) != 0 {
            $crate::stop::reached($name);
        }
    };
}

/// Arms the point `name`: each of its subjects that reaches it waits until it is released.
pub fn arm(name: &'static str) -> Armed {
    arm_at(name, 0)
}

/// Arms the point `name`: its subjects pass it `n` times, whichever of them, before it holds them.
pub fn arm_at(name: &'static str, n: usize) -> Armed {
    ARMED.fetch_add(1, Ordering::SeqCst);
    let state = Mutex::new(State { waiting: 0, over: 0, armed: true, pass: n, let_on: 0 });
    Armed(Arc::new(Point { name, state, changed: Condvar::new() }))
}

/// A point that is armed; dropping it lets the threads held there go on.
#[must_use = "it is released when dropped"]
pub struct Armed(Arc<Point>);

impl Armed {
    /// What makes a thread one of those the point holds.
    pub fn subject(&self) -> Subject {
        Subject(Arc::clone(&self.0))
    }

    /// Waits until a subject is held.
    ///
    /// # Panics
    /// If none comes; what is held elsewhere is let go before.
    pub fn wait_reached(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.0.state.lock();
        while state.waiting == 0 {
            if self.0.changed.wait_until(&mut state, deadline).timed_out() && state.waiting == 0 {
                drop(state);
                self.let_go();
                panic!("nobody reaches {}", self.0.name);
            }
        }
    }

    /// Waits until a subject is held, or the work of one is over without that; whether one is held.
    ///
    /// # Panics
    /// If neither comes; what is held elsewhere is let go before.
    pub fn is_reached(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.0.state.lock();
        while state.waiting == 0 && state.over == 0 {
            if self.0.changed.wait_until(&mut state, deadline).timed_out() {
                drop(state);
                self.let_go();
                panic!("{} is neither reached nor passed", self.0.name);
            }
        }
        state.waiting > 0
    }

    /// Lets the threads held go on; the point is passed `n` times more before it holds again.
    pub fn let_on(&self, n: usize) {
        let mut state = self.0.state.lock();
        (state.waiting, state.pass) = (0, n);
        state.let_on += 1;
        self.0.changed.notify_all();
    }

    /// Lets the threads held go on, and disarms the point.
    pub fn release(self) {}

    fn let_go(&self) {
        let was = std::mem::replace(&mut self.0.state.lock().armed, false);
        if was {
            ARMED.fetch_sub(1, Ordering::SeqCst);
            self.0.changed.notify_all();
        }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Makes threads those that a point holds.
#[derive(Clone)]
pub struct Subject(Arc<Point>);

impl Subject {
    /// Runs `work` on this thread, which the point holds if it comes there.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Before<'a>(Option<Arc<Point>>, &'a Point);
        impl Drop for Before<'_> {
            fn drop(&mut self) {
                SUBJECT_OF.set(self.0.take());
                self.1.state.lock().over += 1;
                self.1.changed.notify_all();
            }
        }
        let _before = Before(SUBJECT_OF.replace(Some(Arc::clone(&self.0))), &self.0);
        work()
    }
}

#[doc(hidden)]
pub fn reached(name: &'static str) {
    // A thread that is ending is nobody's subject any more.
    let Ok(Some(point)) = SUBJECT_OF.try_with(|of| of.borrow().clone()) else { return };
    if point.name != name {
        return;
    }
    let mut state = point.state.lock();
    if !state.armed {
        return;
    }
    if state.pass > 0 {
        state.pass -= 1;
        return;
    }
    state.waiting += 1;
    point.changed.notify_all();
    let before = state.let_on;
    while state.armed && state.let_on == before {
        point.changed.wait(&mut state);
    }
    if state.let_on == before {
        state.waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::arm;
    use std::sync::mpsc;

    /// Two tests of one process arm the same point, and a third runs through it.
    #[test]
    fn a_point_holds_its_subjects_only() {
        let (first, second) = (arm("test.point"), arm("test.point"));
        let (tell, told) = mpsc::channel();
        let work = || {
            let tell = tell.clone();
            move |who| {
                stop_point!("test.elsewhere");
                stop_point!("test.point");
                tell.send(who).unwrap();
            }
        };
        work()("nobody's subject");
        assert_eq!(told.recv().unwrap(), "nobody's subject");
        let go = |subject: super::Subject, who| {
            let work = work();
            std::thread::spawn(move || subject.run(|| work(who)))
        };
        let one = go(first.subject(), "first");
        first.wait_reached();
        let two = go(second.subject(), "second");
        second.wait_reached();
        assert!(told.try_recv().is_err());
        second.release();
        two.join().unwrap();
        assert_eq!(told.try_recv().unwrap(), "second");
        assert!(told.try_recv().is_err());
        drop(first);
        one.join().unwrap();
        assert_eq!(told.try_recv().unwrap(), "first");
    }

    #[test]
    fn a_point_is_passed_a_few_times_first() {
        for (times, held) in [(3, false), (4, true)] {
            let third = super::arm_at("test.often", 3);
            let subject = third.subject();
            let work = move || subject.run(|| (0..times).for_each(|_| stop_point!("test.often")));
            let run = std::thread::spawn(work);
            assert_eq!(third.is_reached(), held);
            third.let_on(0);
            assert!(!third.is_reached());
            drop(third);
            run.join().unwrap();
        }
    }

    #[test]
    fn a_point_that_is_not_on_the_way() {
        let (passed, met) = (arm("test.not_there"), arm("test.there"));
        passed.subject().run(|| ());
        assert!(!passed.is_reached());
        let subject = met.subject();
        let held = std::thread::spawn(move || subject.run(|| stop_point!("test.there")));
        assert!(met.is_reached());
        met.release();
        held.join().unwrap();
    }

    #[test]
    fn a_subject_is_one_for_the_length_of_its_work() {
        let point = arm("test.over");
        point.subject().run(|| ());
        stop_point!("test.over");
        point.release();
    }
}
