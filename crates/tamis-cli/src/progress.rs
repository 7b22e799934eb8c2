//! A bar on standard error while keys are read, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// Shows how far the work is, at which rate it goes, and how long it will take.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over so many bytes, or a count of them where there is no end in sight; nothing where there is no terminal.
    pub(crate) fn over(bytes: Option<u64>) -> Progress {
        let (bar, look) = match bytes {
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            ),
            None => (
                ProgressBar::new_spinner(),
                "{spinner} {bytes}, {bytes_per_sec}",
            ),
        };
        // Cleared also where an error ends it, so that the error stands on a line of its own.
        let bar = bar.with_finish(ProgressFinish::AndClear);
        if let Ok(style) = ProgressStyle::with_template(look) {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// So many more bytes were read.
    pub(crate) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Another part of the work begins, which cannot be measured.
    pub(crate) fn stage(&self, name: &'static str) {
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
            self.bar.set_style(style);
        }
        self.bar.set_message(name);
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
