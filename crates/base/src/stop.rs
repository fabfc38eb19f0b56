//! Stop points: named places inside races at which a test can hold a thread.
//!
//! `stop_point!("heap.update.before_log")` costs one relaxed load when no test has armed any. A test
//! arms a point, waits until a thread has arrived there, does what the race needs, and releases it.

use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[doc(hidden)]
pub static ARMED: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct Point {
    waiting: usize,
    armed: bool,
}

static POINTS: Mutex<Option<HashMap<&'static str, Point>>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

/// Marks a place where a test can hold the thread.
#[macro_export]
macro_rules! stop_point {
    ($name:literal) => {
        if $crate::stop::ARMED.load(std::sync::atomic::Ordering::Relaxed) != 0 {
            $crate::stop::reached($name);
        }
    };
}

/// Arms the point `name`: every thread that reaches it waits until [`release`].
pub fn arm(name: &'static str) {
    let mut points = POINTS.lock();
    let point = points.get_or_insert_default().entry(name).or_default();
    if !point.armed {
        point.armed = true;
        ARMED.fetch_add(1, Ordering::SeqCst);
    }
}

/// Lets the threads at `name` go on and disarms it.
pub fn release(name: &'static str) {
    let mut points = POINTS.lock();
    if let Some(point) = points.get_or_insert_default().get_mut(name)
        && point.armed
    {
        point.armed = false;
        ARMED.fetch_sub(1, Ordering::SeqCst);
        CHANGED.notify_all();
    }
}

/// Waits until a thread is held at `name`; false after `timeout`.
pub fn wait_reached(name: &'static str, timeout: Duration) -> bool {
    let deadline = std::time::Instant::now() + timeout;
    let mut points = POINTS.lock();
    loop {
        if points.get_or_insert_default().get(name).is_some_and(|p| p.waiting > 0) {
            return true;
        }
        if CHANGED.wait_until(&mut points, deadline).timed_out() {
            return false;
        }
    }
}

#[doc(hidden)]
pub fn reached(name: &'static str) {
    let mut points = POINTS.lock();
    if !points.get_or_insert_default().get(name).is_some_and(|p| p.armed) {
        return;
    }
    points.get_or_insert_default().entry(name).or_default().waiting += 1;
    CHANGED.notify_all();
    while points.get_or_insert_default().get(name).is_some_and(|p| p.armed) {
        CHANGED.wait(&mut points);
    }
    if let Some(p) = points.get_or_insert_default().get_mut(name) {
        p.waiting -= 1;
    }
}
