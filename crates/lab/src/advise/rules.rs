//! From facts to advice. No server is asked here.
//!
//! Each rule says what to set, why for this table, and the figure that it rests on: a published table of the five
//! experiments, a constant of PostgreSQL's, or arithmetic on the facts.

use super::facts::{Facts, is_off};
use super::{count, share, span};
use crate::plots::bytes;

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// In the order of weight.
    pub items: Vec<Item>,
    /// The statements, ready to run.
    pub statements: Vec<String>,
}

/// One piece of advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What to do, in a line.
    pub what: String,
    /// Why, for this table.
    pub why: String,
    /// The figure behind the rule.
    pub rests_on: String,
}

const PAGE: f64 = 8192.0;
const MIB: f64 = 1_048_576.0;
/// Below this a vacuum of the whole takes moments, whatever the settings.
const SMALL_TABLE: f64 = 64.0 * MIB;
/// Vacuums of a table closer together than this read its indexes more often than they clean.
const SHORTEST_INTERVAL: f64 = 300.0;
/// PostgreSQL's own bound of index bypass: dead items on fewer pages than this.
const BYPASS: f64 = 0.02;

struct Draft {
    items: Vec<Item>,
    /// Storage parameters to set, and to reset.
    set: Vec<(String, String)>,
    reset: Vec<String>,
    /// Statements of their own: first, and last.
    before: Vec<String>,
    after: Vec<String>,
}

impl Draft {
    fn say(
        &mut self,
        what: impl Into<String>,
        why: impl Into<String>,
        rests_on: impl Into<String>,
    ) {
        self.items.push(Item { what: what.into(), why: why.into(), rests_on: rests_on.into() });
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.set.push((name.into(), value.into()));
    }
}

/// The advice for a table.
pub fn advise(f: &Facts) -> Advice {
    let mut d = Draft {
        items: Vec::new(),
        set: Vec::new(),
        reset: Vec::new(),
        before: Vec::new(),
        after: Vec::new(),
    };
    turned_off(f, &mut d);
    held_back(f, &mut d);
    wraparound(f, &mut d);
    scale_factor(f, &mut d);
    inserts(f, &mut d);
    throttle(f, &mut d);
    ring(f, &mut d);
    index_cleanup(f, &mut d);
    fillfactor(f, &mut d);
    let mut statements = d.before;
    if !d.reset.is_empty() {
        statements.push(format!("ALTER TABLE {} RESET ({});", f.table, d.reset.join(", ")));
    }
    if !d.set.is_empty() {
        let set: Vec<String> = d.set.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        statements.push(format!("ALTER TABLE {} SET ({});", f.table, set.join(", ")));
    }
    statements.extend(d.after);
    Advice { items: d.items, statements }
}

fn heap(f: &Facts) -> f64 {
    size(f.heap_bytes)
}

#[expect(clippy::cast_precision_loss, reason = "sizes, compared roughly")]
fn size(bytes: u64) -> f64 {
    bytes as f64
}

fn turned_off(f: &Facts, d: &mut Draft) {
    if f.turned_off() {
        d.reset.push("autovacuum_enabled".into());
        d.say(
            "Turn autovacuum on for this table again",
            format!("autovacuum_enabled is off. {} dead rows have gathered; only the age of {} would bring a vacuum, and that one would be aggressive.", count(f.dead), count(f.freeze_max_age)),
            "experiment 2: a table left to its age was vacuumed in one go of 1,201 s, 15,800,948 pages and 11.8 GB of WAL",
        );
    } else if !f.autovacuum {
        d.before.push("ALTER SYSTEM SET autovacuum = on;  -- then SELECT pg_reload_conf();".into());
        d.say(
            "Turn autovacuum on",
            "It is off for the whole server, so nothing below happens by itself.",
            "experiment 2: a table left to its age was vacuumed in one go of 1,201 s, 15,800,948 pages and 11.8 GB of WAL",
        );
    }
}

/// More transactions than this, and a snapshot holds back more than a vacuum's worth.
fn holder(f: &Facts) -> Option<&(f64, String)> {
    f.oldest_snapshot
        .as_ref()
        .filter(|(age, _)| *age > 1e6 || (*age > 1e4 && f.dead > 2.0 * f.trigger()))
}

fn held_back(f: &Facts, d: &mut Draft) {
    let Some((age, who)) = holder(f) else { return };
    let mut why = format!(
        "{who} holds a snapshot {} transactions old. No setting lets VACUUM remove rows that died since",
        count(*age)
    );
    why.push_str(if f.ebb {
        ", except those that were also born since, which Ebb removes. End it, or bound it with idle_in_transaction_session_timeout."
    } else {
        ". End it, or bound it with idle_in_transaction_session_timeout."
    });
    d.say(
        "First let go of the oldest snapshot",
        why,
        format!(
            "{} dead rows now, {} would already have brought a vacuum",
            count(f.dead),
            count(f.trigger())
        ),
    );
}

fn wraparound(f: &Facts, d: &mut Draft) {
    let due = f.age / f.freeze_max_age;
    let failsafe = f.failsafe_age.unwrap_or(1.6e9);
    if f.age >= failsafe * 0.8 {
        d.before.push(format!("VACUUM (FREEZE, INDEX_CLEANUP off, TRUNCATE off) {};", f.table));
        d.before.push(format!(
            "VACUUM (INDEX_CLEANUP on) {};  -- afterwards, to give back what the first left",
            f.table
        ));
        d.say(
            "Freeze now, without the indexes",
            format!("relfrozenxid is {} transactions old; at {} VACUUM drops its throttle and index work{}", count(f.age), count(failsafe), if f.ebb { " (Ebb's 64-bit XIDs do not run out; its commit log grows)." } else { ", and at about 2,144,000,000 the server gives out no more XIDs." }),
            "experiment 3: with 55 % of 10 M rows updated, INDEX_CLEANUP off took 3.68 s and on 10.14 s; dead line pointers stay until a VACUUM with it on",
        );
    } else if due >= 0.8 {
        d.before.push(format!("VACUUM (FREEZE) {};  -- at a quiet hour", f.table));
        let when = match f.xids_per_second.filter(|x| *x > 0.0) {
            Some(xids) => format!(
                " in {} at the present rate",
                span((f.freeze_max_age - f.age).max(0.0) / xids)
            ),
            None => String::new(),
        };
        let read = f.backlog_pages.map_or(heap(f), |p| p * PAGE);
        d.say(
            "Freeze at an hour of your choosing",
            format!("relfrozenxid has reached {} of autovacuum_freeze_max_age; an aggressive vacuum that no conflicting lock cancels comes{when}, and reads up to {} more than an ordinary one.", share(due), bytes(read)),
            "experiment 2: first aggressive vacuum 1,201 s and p99 16 ms without freezing in advance, 44 s and 1 ms with it",
        );
    }
}

/// Dead rows at which a vacuum should come: what dies in five minutes, but between a share that makes reading every index worth
/// it and 5 % of the rows, beyond which the table carries more rubbish than it needs to.
fn wanted_trigger(f: &Facts) -> f64 {
    let most = (0.05 * f.live).max(1000.0);
    // Ebb takes few dead rows out of an index by their keys; PostgreSQL reads every index whole.
    let least: f64 =
        if f.ebb || f.indexes.is_empty() { 1000.0 } else { (BYPASS * f.live).max(1000.0) };
    let now = f.dead_rate_now.unwrap_or(0.0) * (1.0 - f.hot_share);
    let in_time = f.dead_rate().max(now) * SHORTEST_INTERVAL;
    in_time.clamp(least.min(most), most)
}

fn scale_factor(f: &Facts, d: &mut Draft) {
    let rate = f.dead_rate();
    if rate <= 0.0 || f.live <= 0.0 {
        return;
    }
    let now = f.trigger();
    let interval = now / rate;
    let by_index = format!(
        "{} of indexes, which {}",
        bytes(size(f.index_bytes())),
        if f.ebb {
            "Ebb reads whole only when enough of them is dead"
        } else {
            "every vacuum reads whole unless fewer than 2 % of the pages have dead items"
        }
    );
    // A queue: few rows live, many come and go.
    if f.live < 10_000.0 && rate * 60.0 > f.live.max(1000.0) {
        let threshold = round(rate * 60.0).clamp(1000.0, 1e6);
        if now > threshold * 2.0 || (heap(f) > SMALL_TABLE && now < threshold / 4.0) {
            d.set("autovacuum_vacuum_scale_factor", "0");
            d.set("autovacuum_vacuum_threshold", format!("{threshold:.0}"));
            d.say(
                format!("Vacuum after {} dead rows, whatever the table's size", count(threshold)),
                format!("{} live rows and {}/s dying: it works as a queue, and a share of its few live rows says nothing.", count(f.live), count(rate)),
                format!("{} a second, a vacuum about once a minute (autovacuum_naptime allows no more)", count(rate)),
            );
        }
        return;
    }
    if heap(f) < SMALL_TABLE {
        return;
    }
    let wanted = wanted_trigger(f);
    if now > wanted * 1.9 {
        let factor = nice((wanted - f.threshold).max(0.0) / f.live);
        d.set("autovacuum_vacuum_scale_factor", factor.clone());
        let why = format!(
            "Autovacuum now waits for {} dead rows ({} of the table), about {} at {}/s that HOT pruning does not take. Smaller, more frequent vacuums keep the table small and each one short; more often than every five minutes would not pay: {by_index}.",
            count(now),
            share(now / f.live),
            span(interval),
            count(rate)
        );
        d.say(
            format!("Vacuum at {} dead rows instead of {}", count(f.threshold + factor.parse::<f64>().unwrap_or(0.2) * f.live), count(now)),
            why,
            "experiment 3: INDEX_CLEANUP on took 0.3 s with 1 % of 10 M rows updated, 3.85 s with 21 % and 10.14 s with 55 %, so a vacuum costs by what has died, above what reading the indexes costs",
        );
        if size(f.toast_bytes) > heap(f).max(SMALL_TABLE) {
            d.set("toast.autovacuum_vacuum_scale_factor", factor);
        }
    } else if now < wanted / 4.0 && interval < 60.0 && !f.ebb && size(f.index_bytes()) > SMALL_TABLE
    {
        let factor = nice(wanted / f.live);
        d.set("autovacuum_vacuum_scale_factor", factor);
        d.say(
            "Vacuum less often",
            format!("At {}/s, {} dead rows gather every {}; each vacuum reads {by_index}.", count(rate), count(now), span(interval)),
            "experiment 3: with 1 % updated, reading the indexes made VACUUM 0.3 s instead of 0.03 s",
        );
    }
}

/// Rows that only come: their pages should be frozen while they are in memory.
fn inserts(f: &Facts, d: &mut Draft) {
    let changed = f.updates + f.deletes;
    if f.inserts <= 0.0
        || f.inserts < 10.0 * changed
        || heap(f) < SMALL_TABLE
        || f.insert_threshold < 0.0
    {
        return;
    }
    let row = heap(f) / f.live.max(1.0);
    // About 1 GB of new pages a vacuum.
    let wanted = (1024.0 * MIB / row).clamp(1000.0, (0.2 * f.live).max(1000.0));
    let now = f.insert_threshold + f.insert_scale_factor * f.live;
    let spike = "experiment 2: on an append-mostly table the first aggressive vacuum took 1,201 s, 11.8 GB of WAL and a p99 of 16 ms; spread over the ordinary ones, 44 s, 0.28 GB and 1 ms";
    if now > wanted * 1.9 {
        let factor = nice((wanted - f.insert_threshold).max(0.0) / f.live);
        d.set("autovacuum_vacuum_insert_scale_factor", factor);
        d.say(
            "Vacuum new rows sooner",
            format!("Rows come at {}/s and hardly any die. Autovacuum waits for {} new rows ({}, {}); with about 1 GB of new pages each time, they are likely still in shared_buffers, become all-visible for index-only scans, and are frozen with no second read.", count(f.inserts), count(now), bytes(now * row), span(now / f.inserts)),
            spike,
        );
    }
    if !f.ebb && changed * 100.0 < f.inserts && f.freeze_min_age > 1e6 {
        d.set("autovacuum_freeze_min_age", "0");
        d.say(
            "Freeze rows at their first vacuum",
            format!("Fewer than one row in a hundred is changed later, so freezing at once is hardly ever wasted; at the present {} transactions pages are read and written a second time.{}", count(f.freeze_min_age), f.backlog_pages.filter(|p| *p > 0.0).map_or_else(String::new, |p| format!(" {} of all-visible pages already wait.", bytes(p * PAGE)))),
            spike,
        );
    }
    if (180_000..1_000_000).contains(&f.version_num)
        && f.options.get("vacuum_max_eager_freeze_failure_rate").and_then(|v| v.parse::<f64>().ok())
            == Some(0.0)
    {
        d.reset.push("vacuum_max_eager_freeze_failure_rate".into());
        d.say("Let ordinary vacuums scan eagerly", "vacuum_max_eager_freeze_failure_rate is 0 for this table, so its all-visible pages wait for the aggressive vacuum.", spike);
    }
}

/// Whether autovacuum falls behind because of its sleeps.
fn throttle(f: &Facts, d: &mut Draft) {
    if f.turned_off() || !f.autovacuum || holder(f).is_some() || heap(f) < SMALL_TABLE {
        return;
    }
    if f.cost_delay <= 0.0 || f.dead < 2.0 * f.trigger() || f.trigger() < 1.0 {
        return;
    }
    // 20 for each page dirtied: vacuum_cost_page_dirty.
    let rate = f.cost_limit / 20.0 * PAGE / (f.cost_delay / 1000.0);
    let whole = (heap(f) + size(f.index_bytes())) / rate;
    let limit = (f.cost_limit * 5.0).min(10_000.0);
    d.set("autovacuum_vacuum_cost_limit", format!("{limit:.0}"));
    d.say(
        "Let autovacuum work faster here",
        format!("{} rows are dead, {} times the {} at which it should have come. Its throttle lets it dirty {} a second at most, shared by all workers: {} for this table and its indexes.", count(f.dead), (f.dead / f.trigger()).round(), count(f.trigger()), bytes(rate), span(whole)),
        format!("cost limit {} and delay {} ms, 20 a page dirtied; a table's own limit also takes it out of the sharing among workers", f.cost_limit, f.cost_delay),
    );
    d.after.push(format!("VACUUM {};  -- once, for what has gathered", f.table));
}

/// How much of shared_buffers a VACUUM by hand should use.
fn ring(f: &Facts, d: &mut Draft) {
    let all = heap(f) + size(f.index_bytes());
    if all < SMALL_TABLE {
        return;
    }
    if f.ebb {
        d.say(
            "Leave BUFFER_USAGE_LIMIT alone",
            "Dirty pages that leave VACUUM's ring are written behind it, neighbours together, so a small ring costs no waiting and keeps the pool for others.",
            "`ebb lab ring` and `ebb lab sync` measure it: write calls and WAL syncs at 256 kB beside those without a limit",
        );
        return;
    }
    if f.version_num < 160_000 {
        d.say(
            "BUFFER_USAGE_LIMIT is not to be had",
            "Before PostgreSQL 16 VACUUM's ring is 256 kB, and a VACUUM of more than that writes its own pages out and syncs WAL as it goes. Run it at a quiet hour, or update.",
            "experiment 1: 337,800 data-file writes and 32.42 s on 15.4; on 16.4 without a practical limit 1 write and 12.96 s",
        );
        return;
    }
    let cap = size(f.shared_buffers) / 8.0;
    let limit = ring_size(all.min(cap));
    if f.ring == 0 || size(f.ring) >= limit * 0.9 {
        return;
    }
    d.after.push(format!(
        "VACUUM (BUFFER_USAGE_LIMIT '{}') {};  -- by hand, at a quiet hour",
        whole_megabytes(limit),
        f.table
    ));
    d.say(
        format!("Give a VACUUM by hand BUFFER_USAGE_LIMIT '{}'", whole_megabytes(limit)),
        format!("Its ring is {}, the table and its indexes are {}: each time round, VACUUM must sync WAL and write its dirty pages before it goes on. A limit of at most 1/8 of shared_buffers ({}) takes effect; autovacuum is better left with the small ring while others work.", bytes(size(f.ring)), bytes(all), bytes(cap)),
        "experiment 1: 332,453 writes and 30.30 s at 256 kB, 104,868 and 24.06 s at 2 GB; experiment 4: 12,018 WAL syncs at 256 kB, 49 without a limit",
    );
    if size(f.ring) < 2.0 * MIB {
        d.after.push("ALTER SYSTEM SET vacuum_buffer_usage_limit = '2MB';  -- for autovacuum; then SELECT pg_reload_conf();".into());
    }
}

fn index_cleanup(f: &Facts, d: &mut Draft) {
    match f.options.get("vacuum_index_cleanup").map(String::as_str) {
        Some(value) if is_off(value) => {
            d.reset.push("vacuum_index_cleanup".into());
            d.after.push(format!(
                "VACUUM (INDEX_CLEANUP on) {};  -- once, for the line pointers left",
                f.table
            ));
            d.say(
                "Reset vacuum_index_cleanup",
                "It is off: line pointers of dead rows stay for good, in the heap and in every index. AUTO already leaves the indexes alone while few pages are concerned.",
                "AUTO's bypass: dead items on under 2 % of the pages; experiment 3: off saves 0.27 s at 1 %, and 6.46 s at 55 % that the next vacuum has to spend",
            );
        }
        Some(value)
            if !value.eq_ignore_ascii_case("auto")
                && size(f.index_bytes()) > SMALL_TABLE
                && !f.ebb =>
        {
            d.reset.push("vacuum_index_cleanup".into());
            d.say(
                "Reset vacuum_index_cleanup to AUTO",
                format!(
                    "It is on: every vacuum reads {} of indexes, however few rows died.",
                    bytes(size(f.index_bytes()))
                ),
                "experiment 3: at 1 % updated, 0.3 s on and 0.03 s off; AUTO is off there",
            );
        }
        _ if size(f.index_bytes()) > SMALL_TABLE && f.dead_rate() > 0.0 => {
            let why = if f.ebb {
                "Few dead rows are taken out of an index by their keys, many by one pass over it, by cost; AUTO needs no help."
            } else {
                "AUTO passes over the indexes while dead items are on under 2 % of the pages, and cleans them beyond. Off is for an emergency of age only, on for after it."
            };
            d.say(
                "Leave INDEX_CLEANUP at AUTO",
                why,
                "experiment 3, seconds on and off: 0.3 and 0.03 at 1 %, 0.45 and 0.06 at 2 %, 10.14 and 3.68 at 55 %",
            );
        }
        _ => {}
    }
}

fn fillfactor(f: &Facts, d: &mut Draft) {
    if f.fillfactor <= 95.0 || heap(f) < SMALL_TABLE || f.hot_share >= 0.7 {
        return;
    }
    // Updates that matter: a tenth of the table a day.
    if f.updates * 86_400.0 < 0.1 * f.live || f.updates < f.deletes {
        return;
    }
    d.set("fillfactor", "90");
    d.say(
        "Leave room on pages for updates",
        format!("{} of {} updates a second stay on their page (HOT). The others write to every index, and each leaves dead entries there. Room helps only updates of columns that no index has; it counts for pages written from now on.", share(f.hot_share), count(f.updates.max(1.0))),
        "HOT updates add no index entries, so nothing to clean there; below about 70 % they are the exception",
    );
}

/// A factor with one significant digit or a half of one, no less than 0.001.
fn nice(factor: f64) -> String {
    let steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
    let best = steps
        .into_iter()
        .min_by(|a, b| (a / factor).ln().abs().total_cmp(&(b / factor).ln().abs()));
    format!("{}", best.unwrap_or(0.05))
}

/// Two significant digits.
fn round(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1.0).log10().floor() - 1.0);
    (value / power).round() * power
}

/// A power of two of megabytes, no more than `most`, from 2 MB to 16 GB.
fn ring_size(most: f64) -> f64 {
    (2.0 * MIB * 2f64.powf((most / (2.0 * MIB)).log2().floor().max(0.0))).min(16_384.0 * MIB)
}

fn whole_megabytes(bytes: f64) -> String {
    format!("{:.0} MB", bytes / MIB)
}

#[cfg(test)]
mod tests;
