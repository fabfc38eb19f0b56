use super::*;
use base::Result;
use std::sync::atomic::AtomicU64;

const DATABASE: Oid = Oid(5);

fn queue(limit: usize) -> Arc<NotifyQueue> {
    Arc::new(NotifyQueue::new(limit))
}

/// A session that commits one thing at a time.
struct Talker {
    queue: Arc<NotifyQueue>,
    outgoing: Outgoing,
    who: Listener,
}

impl Talker {
    fn new(queue: &Arc<NotifyQueue>, pid: i32) -> Talker {
        Talker::of(queue, DATABASE, pid)
    }
    fn of(queue: &Arc<NotifyQueue>, database: Oid, pid: i32) -> Talker {
        let who = Listener { database, pid };
        Talker { queue: Arc::clone(queue), outgoing: Outgoing::default(), who }
    }
    fn notify(&mut self, channel: &str, payload: &str) {
        self.outgoing.notify(self.queue.limit(), self.who.pid, channel, payload).unwrap();
    }
    /// Those to be woken, and the warning.
    fn try_commit(&mut self) -> Result<(Vec<i32>, Option<SqlError>)> {
        let (mut commit, warning) = self.outgoing.prepare(&self.queue, self.who)?;
        let mut wake = commit.publish(&mut || {});
        self.outgoing.committed(&commit);
        wake.sort_unstable();
        Ok((wake, warning))
    }
    fn commit(&mut self) -> Vec<i32> {
        self.try_commit().unwrap().0
    }
    fn listen(&mut self, channel: &str) {
        self.outgoing.change(Change::Listen(channel.into()));
        self.commit();
    }
    fn say(&mut self, channel: &str, payload: &str) -> Vec<i32> {
        self.notify(channel, payload);
        self.commit()
    }
    fn hear(&self) -> Vec<String> {
        let mut heard = Vec::new();
        while self.outgoing.is_pending() {
            heard.extend(self.queue.read(self.who));
        }
        heard.iter().map(|n| format!("{} {} {}", n.pid, n.channel, n.payload)).collect()
    }
}

#[test]
fn what_is_said_is_heard_in_order_by_those_who_listen() {
    let q = queue(1 << 20);
    let (mut a, mut b, mut c) = (Talker::new(&q, 1), Talker::new(&q, 2), Talker::new(&q, 3));
    let mut elsewhere = Talker::of(&q, Oid(6), 4);
    for t in [&mut a, &mut b, &mut elsewhere] {
        t.listen("x");
    }
    c.listen("y");
    // Not the one who says it: its own thread knows.
    assert_eq!(a.say("x", "one"), [2]);
    a.notify("x", "two");
    a.notify("y", "");
    a.notify("x", "two");
    a.notify("z", "nobody");
    // The second one has not read yet, and is on its way.
    assert_eq!(a.commit(), [3]);
    assert_eq!(a.hear(), ["1 x one", "1 x two"]);
    assert_eq!(b.hear(), ["1 x one", "1 x two"]);
    assert_eq!(c.hear(), ["1 y "]);
    assert!(elsewhere.hear().is_empty());
    assert_eq!(q.usage(), 0.0);
    assert!(b.hear().is_empty());
}

#[test]
fn nothing_is_kept_for_those_who_do_not_listen_to_it() {
    let q = queue(1 << 20);
    let (mut a, mut b, mut elsewhere) =
        (Talker::new(&q, 1), Talker::new(&q, 2), Talker::of(&q, Oid(6), 3));
    assert!(a.say("x", "early").is_empty());
    assert_eq!(q.usage(), 0.0);
    b.listen("y");
    elsewhere.listen("x");
    assert!(a.say("x", "elsewhere only").is_empty());
    assert_eq!(q.usage(), 0.0);
    a.listen("x");
    for i in 0..1000 {
        a.say("x", &i.to_string());
        // Idle on another channel, the second session holds nothing up.
        assert_eq!(a.hear(), [format!("1 x {i}")]);
        assert_eq!(q.usage(), 0.0);
    }
    // One that has something to read does, until it has read it.
    a.say("y", "for b");
    a.say("x", "for a");
    assert_eq!(a.hear().len(), 1);
    assert!(q.usage() > 0.0);
    assert_eq!(b.hear(), ["1 y for b"]);
    assert_eq!(q.usage(), 0.0);
    a.say("y", "for b");
    q.forget(b.who);
    assert_eq!(q.usage(), 0.0);
    a.say("y", "for nobody");
    assert_eq!(q.usage(), 0.0);
}

#[test]
fn a_transaction_changes_its_mind() {
    let q = queue(1 << 20);
    let mut a = Talker::new(&q, 1);
    // Both in one: it hears itself.
    a.outgoing.change(Change::Listen("x".into()));
    a.notify("x", "1");
    let mark = a.outgoing.mark();
    a.notify("x", "2");
    a.notify("x", "1");
    a.outgoing.change(Change::Listen("y".into()));
    a.outgoing.roll_back_to(mark);
    a.notify("x", "3");
    a.notify("x", "2");
    assert!(a.outgoing.listening().is_empty());
    a.commit();
    assert_eq!(a.outgoing.listening(), ["x".into()]);
    assert_eq!(a.hear(), ["1 x 1", "1 x 3", "1 x 2"]);
    a.notify("x", "never");
    a.outgoing.change(Change::UnlistenAll);
    a.outgoing.clear();
    assert!(a.outgoing.is_empty());
    a.say("x", "again");
    assert_eq!(a.hear(), ["1 x again"]);
    // What was not read when it stopped listening is not heard.
    a.notify("x", "unheard");
    a.outgoing.change(Change::Unlisten("x".into()));
    a.commit();
    assert!(a.outgoing.listening().is_empty() && a.hear().is_empty());
    assert_eq!(q.usage(), 0.0);
    a.say("x", "unheard");
    a.listen("x");
    assert!(a.hear().is_empty());
    // Who stops and listens again in one transaction has missed nothing.
    for stop in [Change::Unlisten("x".into()), Change::UnlistenAll] {
        a.say("x", "between");
        a.outgoing.change(stop);
        a.outgoing.change(Change::Listen("x".into()));
        a.commit();
        assert_eq!(a.hear(), ["1 x between"]);
    }
    // Who does not listen has nothing to stop.
    let mut b = Talker::new(&q, 2);
    b.outgoing.change(Change::UnlistenAll);
    assert!(b.outgoing.is_empty());
}

#[test]
fn lengths() {
    let q = queue(1 << 20);
    let mut a = Talker::new(&q, 1);
    let mut refused = |channel: &str, payload: &str| {
        let e = a.outgoing.notify(1 << 20, 1, channel, payload).unwrap_err();
        assert_eq!(e.state(), SqlState::INVALID_PARAMETER_VALUE);
        e.to_sql_error().message.to_string()
    };
    assert_eq!(refused("", "x"), "channel name cannot be empty");
    assert_eq!(refused(&"x".repeat(64), "x"), "channel name too long");
    assert_eq!(refused("x", &"x".repeat(8000)), "payload string too long");
    a.notify(&"x".repeat(63), &"x".repeat(7999));
    a.notify("x", "");
}

#[test]
fn a_full_queue_refuses_and_says_who_is_behind() {
    let q = queue(100_000);
    let (mut a, mut slow, mut b) = (Talker::new(&q, 1), Talker::new(&q, 2), Talker::new(&q, 3));
    slow.listen("x");
    b.listen("x");
    let payload = "p".repeat(7000);
    let mut warnings = Vec::new();
    let mut said = 0;
    let full = loop {
        a.notify("x", &format!("{payload}{said}"));
        match a.try_commit() {
            Ok((_, warning)) => warnings.extend(warning),
            Err(e) => break e,
        }
        assert_eq!(b.hear().len(), 1);
        said += 1;
    };
    assert_eq!(said, 100_000 / (7001 + 1 + OVERHEAD));
    assert_eq!(full.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    assert_eq!(full.to_string(), "too many notifications in the NOTIFY queue");
    assert!(q.usage() > 0.9 && q.usage() <= 1.0);
    // Once in a while.
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(warning.message, "NOTIFY queue is 57% full");
    let detail = "The server process with PID 2 is among those with the oldest transactions.";
    assert_eq!(warning.detail.as_deref(), Some(detail));
    // What was refused is not heard, and takes no room.
    a.outgoing.clear();
    assert_eq!(slow.hear().len(), said);
    assert_eq!(q.usage(), 0.0);
    assert_eq!(a.say("x", &payload), [2, 3]);
    // A transaction that could never commit is told so at once.
    let more = (0..100).map(|i| a.outgoing.notify(100_000, 1, "x", &format!("{payload}{i}")));
    assert!(more.collect::<Result<Vec<()>>>().is_err());
}

#[test]
fn what_is_reserved_comes_back() {
    let q = queue(1000);
    let (mut a, mut b) = (Talker::new(&q, 1), Talker::new(&q, 2));
    a.notify("x", &"p".repeat(500));
    b.notify("x", &"p".repeat(500));
    let (commit, _) = a.outgoing.prepare(&q, a.who).unwrap();
    assert!(b.try_commit().is_err());
    // The commit fails.
    drop(commit);
    assert!(a.outgoing.is_empty());
    assert!(b.try_commit().is_ok());
    assert_eq!(q.state.lock().reserved, 0);
}

/// Whoever hears of a commit finds it visible, and all hear commits in the order in which they became that.
#[test]
fn the_order_of_commits_is_the_order_of_notifications() {
    let q = queue(1 << 26);
    let visible = AtomicU64::new(0);
    let (sessions, commits) = (4, 500);
    let heard: Vec<Vec<u64>> = std::thread::scope(|s| {
        let mut listeners: Vec<Talker> = (0..2).map(|i| Talker::new(&q, 100 + i)).collect();
        listeners.iter_mut().for_each(|l| l.listen("x"));
        for pid in 0..sessions {
            let (q, visible) = (&q, &visible);
            s.spawn(move || {
                for i in 0..commits {
                    let mut t = Talker::new(q, pid);
                    // Its number is its place in the order in which commits become visible.
                    let (mut commit, _) = {
                        t.notify("x", &format!("{pid} {i}"));
                        t.outgoing.prepare(q, t.who).unwrap()
                    };
                    let said = Arc::clone(&commit.said[0]);
                    commit.publish(&mut || {
                        let place = visible.load(Ordering::SeqCst);
                        std::thread::yield_now();
                        visible.store(place + 1, Ordering::SeqCst);
                        PLACES.lock().unwrap().insert(said.payload.to_string(), place);
                    });
                }
            });
        }
        let handles: Vec<_> = listeners
            .into_iter()
            .map(|l| {
                let visible = &visible;
                s.spawn(move || {
                    let mut places = Vec::new();
                    let total = usize::try_from(sessions * commits).unwrap();
                    let begun = std::time::Instant::now();
                    while places.len() < total {
                        assert!(begun.elapsed() < base::stop::PATIENCE);
                        for said in l.hear() {
                            let payload = said.split_once(" x ").unwrap().1;
                            let place = PLACES.lock().unwrap()[payload];
                            assert!(place < visible.load(Ordering::SeqCst));
                            places.push(place);
                        }
                        std::thread::yield_now();
                    }
                    places
                })
            })
            .collect();
        handles.into_iter().map(|h| h.join().unwrap()).collect()
    });
    for places in heard {
        assert!(places.is_sorted(), "{places:?}");
    }
    assert_eq!(q.usage(), 0.0);
}

static PLACES: std::sync::LazyLock<std::sync::Mutex<HashMap<String, u64>>> =
    std::sync::LazyLock::new(Default::default);
