//! Progress on a terminal: a bar for the run and one for the experiment, with the time left.
//! Where standard error is no terminal, a line for each step.

use crate::plan::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How finely the bar of the run divides each experiment.
const PARTS: u64 = 1000;

/// Bars on standard error.
#[derive(Debug)]
pub struct Bars {
    screen: Option<MultiProgress>,
    whole: ProgressBar,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    current: ProgressBar,
    /// Experiments that are over.
    over: u64,
    /// Work of the experiment, of its steps that are done, and of the step that runs.
    work: u64,
    done: u64,
    running: u64,
    begun: Instant,
}

impl Bars {
    /// Bars for so many experiments.
    pub fn new(experiments: usize) -> Bars {
        let screen = std::io::stderr().is_terminal().then(MultiProgress::new);
        let length = PARTS * experiments as u64;
        let whole = match &screen {
            Some(screen) => screen.add(ProgressBar::new(length)),
            None => ProgressBar::hidden(),
        };
        whole.set_style(style("  run {bar:30} {percent:>3} %  {elapsed} gone, {eta} left"));
        whole.enable_steady_tick(Duration::from_millis(500));
        let state = State {
            current: ProgressBar::hidden(),
            over: 0,
            work: 0,
            done: 0,
            running: 0,
            begun: Instant::now(),
        };
        Bars { screen, whole, state: Mutex::new(state) }
    }

    /// Takes the bars away.
    pub fn clear(&self) {
        self.state().current.finish_and_clear();
        self.whole.finish_and_clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, begun: Instant, text: &str) {
        match &self.screen {
            Some(screen) => drop(screen.println(text)),
            None => eprintln!("{:>6.1} s  {text}", begun.elapsed().as_secs_f64()),
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    // A template that does not parse is a mistake of ours; a bar of another look is no reason to stop.
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("━━╌")
}

impl Progress for Bars {
    fn begin(&self, experiment: &str, work: u64) {
        let mut state = self.state();
        (state.work, state.done, state.running) = (work.max(1), 0, 0);
        if let Some(screen) = &self.screen {
            state.current = screen.add(ProgressBar::new(work.max(1)));
            let template = "{prefix:>5} {bar:30} {percent:>3} %  {eta} left  {wide_msg}";
            state.current.set_style(style(template));
            state.current.set_prefix(experiment.to_owned());
            state.current.enable_steady_tick(Duration::from_millis(500));
        } else {
            self.line(state.begun, experiment);
        }
    }

    fn step(&self, what: &str, work: u64) {
        let mut state = self.state();
        state.done = (state.done + state.running).min(state.work);
        state.running = work;
        state.current.set_position(state.done);
        state.current.set_message(what.to_owned());
        self.whole.set_position(state.over * PARTS + state.done * PARTS / state.work.max(1));
        if self.screen.is_none() {
            self.line(state.begun, &format!("  {what}"));
        }
    }

    fn note(&self, text: &str) {
        let begun = self.state().begun;
        self.line(begun, text);
    }

    fn end(&self) {
        let mut state = self.state();
        state.current.finish_and_clear();
        state.over += 1;
        self.whole.set_position(state.over * PARTS);
    }
}
