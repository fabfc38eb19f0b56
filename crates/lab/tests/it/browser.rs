//! The report as a browser shows it, where one is installed: no error in its console, every plot
//! visible at a desk's and at a phone's width, no label outside its plot or over another.

use crate::fixture;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Looks at the report in a frame and writes what is wrong, a line each, between two marks.
const PROBE: &str = r#"<!doctype html><meta charset="utf-8"><body><iframe id="f" style="width:WIDTHpx;height:900px;border:0"></iframe>
<pre id="said"></pre><script>
const wrong = [];
const frame = document.getElementById('f');
addEventListener('error', e => wrong.push('error: ' + e.message));
frame.onload = () => {
  try {
    const doc = frame.contentDocument, width = frame.clientWidth;
    if (doc.documentElement.scrollWidth > width) wrong.push('the page is ' + doc.documentElement.scrollWidth + ' wide');
    const figures = [...doc.querySelectorAll('figure')];
    let seen = 0;
    for (const figure of figures) {
      const shown = [...figure.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 0);
      const name = figure.querySelector('svg').getAttribute('aria-label');
      if (shown.length !== 1) { wrong.push(name + ': ' + shown.length + ' pictures'); continue; }
      const box = shown[0].getBoundingClientRect();
      if (box.width < 250 || box.height < 80 || box.right > width + 1) wrong.push(name + ': ' + box.width + ' by ' + box.height);
      const texts = [...shown[0].querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
      if (texts.length < 4) wrong.push(name + ': no labels');
      for (const [text, at] of texts)
        if (at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 1 || at.bottom > box.bottom + 1)
          wrong.push(name + ': "' + text.trim() + '" leaves the picture');
      for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++) {
        const a = texts[i][1], b = texts[j][1];
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4)
          wrong.push(name + ': "' + texts[i][0].trim() + '" over "' + texts[j][0].trim() + '"');
      }
      seen++;
    }
    document.getElementById('said').textContent = 'BEGIN\n' + wrong.join('\n') + '\nSEEN ' + seen + '\nEND';
  } catch (e) { document.getElementById('said').textContent = 'BEGIN\n' + e + '\nEND'; }
};
frame.srcdoc = REPORT;
</script>"#;

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    std::env::split_paths(&path).flat_map(|f| names.map(|n| f.join(n))).find(|p| p.is_file())
}

/// What the browser made of a page: its document, and its log with the console's lines.
fn shown(browser: &Path, folder: &Path, page: &Path, more: &[&str]) -> (String, String) {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=5000", "--window-size=1300,1000"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn every_plot_is_seen_at_both_widths() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium or google-chrome here to look at the report with");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let results = fixture::results();
    lab::report::write(&results, folder.path()).expect("written");
    let page = folder.path().join("report.html");
    let report = fs::read_to_string(&page).expect("the report");
    let plots: usize = results
        .experiments
        .iter()
        .map(|e| lab::plots::plots(&results, e).expect("drawn").len())
        .sum();
    // A closing tag inside a script's text would end the script.
    let text = serde_json::to_string(&report).expect("text").replace("</", "<\\/");
    for width in ["1240", "375"] {
        let probe = folder.path().join(format!("probe-{width}.html"));
        fs::write(&probe, PROBE.replace("WIDTH", width).replace("REPORT", &text)).expect("written");
        let (document, log) = shown(&browser, folder.path(), &probe, &["--dump-dom"]);
        let said = document.split_once("<pre id=\"said\">").map(|(_, rest)| rest);
        let said = said.and_then(|r| r.split_once("</pre>")).map_or("", |(text, _)| text);
        assert_eq!(said, format!("BEGIN\n\nSEEN {plots}\nEND"), "at {width}:\n{log}");
    }
    let picture = folder.path().join("report.png");
    let shot = format!("--screenshot={}", picture.display());
    let (_, log) = shown(&browser, folder.path(), &page, &[&shot]);
    let console: Vec<&str> = log.lines().filter(|l| l.contains(":CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
    assert!(fs::metadata(&picture).is_ok_and(|m| m.len() > 10_000), "no picture:\n{log}");
}
