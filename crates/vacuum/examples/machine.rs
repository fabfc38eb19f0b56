//! This machine's paces, as a server measures them at its start, a few times over: for `Machine::REFERENCE`.
//! `cargo run --release -p vacuum --example machine`
#![expect(clippy::print_stdout, reason = "a bench")]
#![allow(unfulfilled_lint_expectations, reason = "the lints need not be on")]

fn main() {
    for _ in 0..8 {
        let began = std::time::Instant::now();
        let machine = vacuum::Machine::measured();
        let took = began.elapsed();
        let paces: Vec<String> = machine.lines().map(|(n, us)| format!("{n} {us:.4}")).collect();
        println!("{:.2} ms: {}", took.as_secs_f64() * 1e3, paces.join(", "));
    }
}
