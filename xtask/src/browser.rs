//! `cargo xtask browser`: the page of `tamis report` in a browser, on a wide screen and on a
//! phone, light and dark: nothing is cut off or scrolls sideways, and its calculator answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Failure, cargo, root, run, succeeds};

/// Written into a copy of the page: what a reader would see, as a message to the page around it.
const LOOK: &str = r#"<script>
addEventListener('load', () => {
  const box = e => e.getBoundingClientRect();
  const all = [...document.querySelectorAll('body *')];
  const wide = all.filter(e => !e.closest('.scroll, svg') && box(e).right > innerWidth + 1);
  // One of two drawings is for the other kind of screen.
  const drawings = [...document.querySelectorAll('svg')].filter(e => e.getClientRects().length > 0);
  let cut = 0, over = 0, least = 99;
  for (const drawing of drawings) {
    const texts = [...drawing.querySelectorAll('text')].map(box);
    const frame = box(drawing);
    cut += texts.filter(t => t.right > frame.right + 1 || t.left < frame.left - 1 || t.bottom > frame.bottom + 1).length;
    const labels = [...drawing.querySelectorAll('.label')].map(box);
    labels.forEach((a, i) => labels.slice(i + 1).forEach(b => {
      const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top + 4 || b.bottom <= a.top + 4;
      over += apart ? 0 : 1;
    }));
    least = Math.min(least, ...texts.map(t => t.height));
  }
  const style = getComputedStyle(document.body);
  const scroll = () => document.documentElement.scrollWidth;
  const before = scroll();
  // The calculator, used as a reader would.
  const by = id => document.getElementById(id);
  const ask = (box, how) => { how(box); box.dispatchEvent(new Event('input', { bubbles: true })); };
  const rows = () => [...by('answer').tBodies[0].rows].filter(row => box(row).height > 0);
  ask(by('all'), box => box.checked = true);
  ask(document.querySelector('.need[value=remove]'), box => box.checked = true);
  const kinds = rows().map(row => row.cells[0].textContent).sort().join(',');
  const size = rows()[0].cells[1].textContent;
  ask(by('keys'), input => input.value = '20M');
  const larger = rows()[0].cells[1].textContent;
  const after = scroll();
  ask(by('keys'), input => input.value = 'many');
  const refused = rows().length === 0 && by('keys').matches('[aria-invalid=true]');
  parent.postMessage(['SEEN', innerWidth, Math.max(before, after), wide.length, drawings.length, cut, over,
    Math.round(least), style.backgroundColor.replace(/[^0-9,]/g, ''), kinds, size.replace(' ', ''), larger.replace(' ', ''),
    Number(refused), 'END'].join(' '), '*');
});
</script></body>"#;

/// What the page is like for a reader.
struct Seen {
    width: u32,
    scroll_width: u32,
    wide: u32,
    drawings: u32,
    cut: u32,
    over: u32,
    least: u32,
    background: u32,
    /// What the calculator says of filters that keys leave again, sorted.
    kinds: String,
    /// The size of the first of them, for the page's keys and for a thousand times as many.
    sizes: [String; 2],
    /// Whether what is no number is refused.
    refused: bool,
}

pub(crate) fn check() -> Result<(), Failure> {
    let browser = browser()?;
    run(cargo().args(["build", "--quiet", "--package", "tamis-cli"]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let directory = target.join("browser");
    // Pages and the browser's own files of an earlier run.
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let tamis = || {
        let mut command = Command::new(target.join("debug/tamis"));
        command.current_dir(&directory);
        command
    };
    let keys = root().join("examples/data/blocklist.txt");
    run(tamis()
        .arg("build")
        .arg(keys)
        .args(["-o", "f.tamis", "--kind", "bloom"]))?;
    run(tamis().args(["report", "f.tamis", "-o", "page.html", "--keys", "20k"]))?;
    let advice = [
        "advise", "--keys", "20k", "--fpr", "0.01", "--delete", "--all", "--json",
    ];
    let advised = advised(tamis().args(advice))?;
    let page = read(&directory.join("page.html"))?;
    write(&directory.join("page.html"), &page.replace("</body>", LOOK))?;
    for width in [390, 1280] {
        let around = format!(
            "<!DOCTYPE html><body><script>onmessage = e => document.body.append(e.data)</script>\
             <iframe src=\"page.html\" width=\"{width}\" height=\"900\" style=\"border: 0\"></iframe></body>"
        );
        write(&directory.join("around.html"), &around)?;
        for dark in [false, true] {
            let seen = look(&browser, &directory, dark)?;
            let screen = if dark { "dark" } else { "light" };
            judge(&seen, width, dark, &advised)
                .map_err(|why| format!("report at {width}, {screen}: {why}"))?;
            eprintln!(
                "   {width} pixels, {screen}: {} drawings, nothing cut; the calculator answers",
                seen.drawings
            );
        }
    }
    Ok(())
}

/// The kinds that are advised, sorted.
fn advised(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|e| format!("tamis advise: {e}"))?;
    let json: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("tamis advise: {e}"))?;
    let choices = json["choices"].as_array().into_iter().flatten();
    let mut kinds: Vec<&str> = choices
        .filter_map(|choice| choice["kind"].as_str())
        .collect();
    kinds.sort_unstable();
    match kinds.is_empty() {
        true => Err("tamis advise names no kind".into()),
        false => Ok(kinds.join(",")),
    }
}

fn judge(seen: &Seen, width: u32, dark: bool, advised: &str) -> Result<(), Failure> {
    // A thousand times as many keys, in units of 1024.
    let grown = match &seen.sizes {
        [few, many] => few.ends_with("KiB") && many.ends_with("MiB"),
    };
    if seen.kinds != advised {
        let kinds = &seen.kinds;
        return Err(format!(
            "the calculator names other kinds than `tamis advise`:\n  {kinds}\n  {advised}"
        ));
    }
    let good = [
        (seen.width == width, "the frame has another width"),
        (seen.scroll_width <= width, "the page scrolls sideways"),
        (seen.wide == 0, "elements stick out on the right"),
        (seen.drawings > 6, "charts are missing"),
        (seen.cut == 0, "text of a chart is cut off"),
        (seen.over == 0, "names in a chart lie over one another"),
        (seen.least >= 9, "text of a chart is too small to read"),
        (
            (seen.background < 3 * 128) == dark,
            "the colours are the other ones",
        ),
        (grown, "the calculator's sizes do not follow the keys"),
        (seen.refused, "the calculator takes any text for a number"),
    ];
    match good.into_iter().find(|(good, _)| !good) {
        Some((_, why)) => Err(why.to_string()),
        None => Ok(()),
    }
}

/// Opens the page in the browser, which prints it with the message that came from inside.
fn look(browser: &Path, directory: &Path, dark: bool) -> Result<Seen, Failure> {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu"]);
    command.args(["--window-size=1400,1000", "--virtual-time-budget=10000"]);
    command.arg(format!(
        "--user-data-dir={}",
        directory.join("profile").display()
    ));
    if dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    let page = format!("file://{}", directory.join("around.html").display());
    let output = command
        .args(["--dump-dom", &page])
        .output()
        .map_err(|e| format!("{}: {e}", browser.display()))?;
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let seen = dom
        .rsplit_once("SEEN ")
        .and_then(|(_, rest)| Some(rest.split_once(" END")?.0));
    let words: Vec<&str> = seen
        .ok_or_else(|| format!("the browser has not shown the page:\n{dom}"))?
        .split(' ')
        .collect();
    let number = |i: usize| words.get(i).and_then(|word| word.parse::<u32>().ok());
    let rgb = words.get(7).map(|rgb| rgb.split(','));
    let seen = || {
        Some(Seen {
            width: number(0)?,
            scroll_width: number(1)?,
            wide: number(2)?,
            drawings: number(3)?,
            cut: number(4)?,
            over: number(5)?,
            least: number(6)?,
            background: rgb?.filter_map(|part| part.parse::<u32>().ok()).sum(),
            kinds: words.get(8)?.to_string(),
            sizes: [words.get(9)?.to_string(), words.get(10)?.to_string()],
            refused: number(11)? == 1,
        })
    };
    seen().ok_or_else(|| format!("`{}` is not what was asked", words.join(" ")))
}

/// Finds a browser, or installs one.
fn browser() -> Result<PathBuf, Failure> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let find = || {
        let works = |name: &&&str| succeeds(Command::new(name).arg("--version"));
        names.iter().find(works).map(PathBuf::from)
    };
    if let Some(browser) = find() {
        return Ok(browser);
    }
    run(Command::new("apt-get").args(["update", "--quiet"]))?;
    run(Command::new("apt-get").args(["install", "--quiet", "--yes", "chromium"]))?;
    find().ok_or_else(|| "no browser: install chromium and run this again".into())
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
